"""The product on real nodes: a lab of its own, a daemon of its own, the command line as people use it."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "build" / "bin" / "clusterctl"


class Lab:
    """Real nodes. `scripts/lab` with a name of this test's own."""

    def __init__(self, name, directory):
        self.env = dict(os.environ, CLUSTERCTL_LAB_NAME=name, CLUSTERCTL_LAB_DIR=str(directory))
        self.env.pop("DOCKER_HOST", None)

    def run(self, *args, check=True, **options):
        return subprocess.run([ROOT / "scripts" / "lab", *args], env=self.env, check=check, text=True,
                              capture_output=True, timeout=600, **options)

    def up(self, count):
        self.run("up", str(count))
        text = self.run("env").stdout
        self.settings = dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines() if "=" in line)
        self.settings = {key: value.strip("'\"") for key, value in self.settings.items()}
        self.vip = self.settings["LAB_VIP"]
        self.inventory = yaml.safe_load(pathlib.Path(self.settings["LAB_INVENTORY"]).read_text())

    def sh(self, node, command, check=True):
        return self.run("exec", node, "sh", "-c", command, check=check).stdout.strip()

    def address(self, node):
        for group in self.inventory["all"]["children"].values():
            hosts = (group or {}).get("hosts") or {}
            if node in hosts and hosts[node]:
                return hosts[node]["ansible_host"]
        return self.inventory["all"]["hosts"][node]["ansible_host"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Product:
    """A daemon with its state, and the command line that talks to it."""

    def __init__(self, lab, directory, playbooks=ROOT / "playbooks", name="labtest"):
        self.directory = pathlib.Path(directory)
        self.socket = self.directory / "c.sock"
        self.state = self.directory / "state"
        self.config = self.directory / "clusterctl.yml"
        self.log = self.directory / "daemon.log"
        self.config.write_text(yaml.safe_dump({
            "listen": {"unix": str(self.socket)},
            "state_dir": str(self.state),
            "cluster_name": name,
            "ansible": {"playbooks": str(playbooks)},
            "ssh": {"user": lab.settings["LAB_SSH_USER"], "private_key": lab.settings["LAB_SSH_KEY"]},
        }))
        self.process = None

    def start(self):
        with open(self.log, "a") as log:
            start = log.tell()
            self.process = subprocess.Popen([BINARY, "serve", "--config", self.config], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        self.until(lambda: "listening on" in self.log.read_text()[start:] or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.log.read_text()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)

    @staticmethod
    def until(condition, seconds=60, what=""):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, f"not in {seconds} s: {what or condition}"
            time.sleep(0.2)

    def cli(self, *args, code=0, timeout=1200):
        env = dict(os.environ, CLUSTERCTL_SERVER=f"unix:{self.socket}", NO_COLOR="1")
        result = subprocess.run([BINARY, *args], env=env, text=True, capture_output=True, timeout=timeout,
                                stdin=subprocess.DEVNULL)
        assert code is None or result.returncode == code, f"{args}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    def rest(self, method, path, body=None, status=None):
        connection = UnixConnection(self.socket)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert status is None or answer.status == status, f"{method} {path}: {answer.status} {text}"
        kind = answer.getheader("Content-Type") or ""
        return json.loads(text) if "json" in kind and "ndjson" not in kind else text

    def submit(self, kind, nodes, **fields):
        return self.rest("POST", "/v1/jobs", dict(fields, kind=kind, nodes=nodes), status=202)["id"]

    def job(self, ref="last"):
        return self.rest("GET", f"/v1/jobs/{ref}", status=200)

    def wait(self, job, seconds=900):
        final = ("succeeded", "failed", "cancelled", "interrupted")
        self.until(lambda: self.job(job)["state"] in final, seconds, f"job {job}")
        return self.job(job)

    def do(self, kind, nodes, state="succeeded", **fields):
        job = self.wait(self.submit(kind, nodes, **fields))
        assert job["state"] == state, self.explain(job)
        return job

    def explain(self, job):
        return json.dumps({k: job[k] for k in ("state", "reason", "error", "nodes", "problems")}, indent=1) + \
            self.rest("GET", f"/v1/jobs/{job['id']}/log")[-3000:]

    def events(self, job):
        text = self.rest("GET", f"/v1/jobs/{job}/events")
        return [json.loads(line) for line in text.splitlines()]

    def node(self, name):
        return self.rest("GET", f"/v1/nodes/{name}", status=200)

    def lifecycle(self, name):
        return self.node(name)["status"]["lifecycle"]

    def conditions(self, name):
        return {c["type"] for c in self.node(name)["status"]["conditions"]}

    def changed(self, job, stage="site"):
        """Services that reported a change, per node: counted from events."""
        out = {}
        for event in self.events(job):
            if event.get("stage") == stage and event["event"] == "result" and event.get("changed"):
                out.setdefault(event["host"], set()).add(event["service"])
        return out


def playbooks_with(directory, *services):
    """A copy of playbooks and roles in which test services stand behind `docker`."""
    target = pathlib.Path(directory)
    for part in ("playbooks", "roles"):
        shutil.copytree(ROOT / part, target / part, symlinks=True)
    shutil.copy(ROOT / "ansible.cfg", target / "ansible.cfg")
    catalog = (target / "playbooks" / "catalog.yml").read_text()
    for service in services:
        shutil.copytree(pathlib.Path(__file__).parent / "extra_roles" / service, target / "roles" / service)
        catalog += f'  {service}:\n    "on": all\n    needs: [docker]\n    disrupts: nothing\n'
    (target / "playbooks" / "catalog.yml").write_text(catalog)
    return target / "playbooks"


def leftovers(lab, node):
    """What the level `state` promises to remove, found on a node."""
    checks = {
        "containers": "docker ps -aq 2>/dev/null",
        "units": "systemctl list-units --plain --no-legend 'etcd*' 'ucarp*' 'clusterctl*' 'docker*' --state=active",
        "enabled": "systemctl list-unit-files --no-legend --state=enabled 'etcd*' 'ucarp*' 'clusterctl*' 'docker*'",
        "etcd data": "find /var/lib/etcd -mindepth 1 2>/dev/null | head -3",
        "swarm data": "find /var/lib/docker/swarm -mindepth 1 2>/dev/null | head -3",
        "etcd configuration": "ls /etc/etcd/etcd.yml /etc/etcd/*.crt /etc/etcd/*.key 2>/dev/null",
        "address": f"ip -4 -o addr | grep -w '{lab.vip}' || true",
        "bridges": "ip -br link | grep -E 'docker|vxlan' || true",
    }
    found = {name: lab.sh(node, command, check=False) for name, command in checks.items()}
    return {name: text for name, text in found.items() if text}


def processes_with(text):
    """Processes on the controller whose command line names a run."""
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_text() and int(path.parent.name) != os.getpid():
                out.append(int(path.parent.name))
        except OSError:
            pass
    return out


def running_lab(name, nodes=4):
    """A fixture: so many fresh nodes for one module."""
    @pytest.fixture(scope="module", name="lab")
    def lab_of_module(tmp_path_factory):
        lab = Lab(name, tmp_path_factory.mktemp("lab"))
        lab.run("down", check=False)
        lab.up(nodes)
        yield lab
        lab.run("down")
    return lab_of_module
