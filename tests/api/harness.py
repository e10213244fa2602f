"""A real daemon with its real command line, and the stand-in of ansible-playbook, in a folder of their own."""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("CLUSTERCTL_BIN", TOP / "build/bin/clusterctl"))
DOUBLE = TOP / "tests/doubles/ansible-playbook"
OWN_ADDRESSES = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
FINAL = ("succeeded", "failed", "cancelled", "interrupted")


def wait_for(condition, what, seconds=30):
    """The first true value of `condition()`; machines that run tests are slow at times, so the limit is generous."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited %s s for %s" % (seconds, what)
        time.sleep(0.02)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def problem(self, status, code=None):
        """Checks that this is a problem document with that status and code, and gives it."""
        assert self.status == status, (self.status, self.body[:500])
        assert self.headers.get_content_type() == "application/problem+json"
        problem = self.json
        assert problem["type"] == "about:blank" and problem["status"] == status and problem["title"] and problem["detail"]
        assert "\n" not in problem["detail"]
        if code is not None:
            assert problem["code"] == code, problem
        return problem

    def ok(self, status=200):
        assert self.status == status, (self.status, self.body[:2000])
        return self.json if self.body else None


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Double:
    """What the stand-in shall do and what it was given; see tests/doubles/README.md."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()

    def orders(self, **by_playbook):
        """orders(site="fail:2", down=["n1"]); without arguments everything works again."""
        new = self.directory / "control.new"
        new.write_text(json.dumps(by_playbook))
        new.rename(self.directory / "control.json")

    def calls(self, playbook=None):
        found = []
        for path in sorted((self.directory / "calls").glob("*"), key=lambda p: int(p.name.split("-")[0])):
            if (path / "call.json").exists():
                call = json.loads((path / "call.json").read_text())
                call["dir"] = path
                found.append(call)
        return [c for c in found if playbook is None or pathlib.Path(c["playbook"]).stem == playbook]

    def playbooks(self):
        return [pathlib.Path(call["playbook"]).stem for call in self.calls()]

    def members(self):
        path = self.directory / "cluster.json"
        return json.loads(path.read_text())["nodes"] if path.exists() else {}

    def open_gate(self, name):
        (self.directory / name).touch()

    def wait_gate(self, name):
        wait_for((self.directory / (name + ".waiting")).exists, "gate " + name)


class Daemon:
    def __init__(self, directory):
        self.directory = directory
        self.state_dir = directory / "state"
        self.config_file = directory / "clusterctl.yml"
        self.socket = directory / "c.sock"
        self.log_file = directory / "daemon.log"
        self.double = Double(directory / "double")
        self.process = None
        self.port = None
        key = directory / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.config = {
            "listen": {"unix": str(self.socket), "tcp": "127.0.0.1:0"},
            "ansible": {"playbooks": str(TOP / "playbooks"), "config": str(TOP / "ansible.cfg"), "playbook_program": str(DOUBLE),
                        "env": {"CLUSTERCTL_DOUBLE_DIR": str(self.double.directory)}},
            "ssh": {"user": "root", "private_key": str(key)},
            # Nothing answers at the addresses of these tests; those of the prober turn it on.
            "monitor": {"enabled": False},
            "auth": {"token_file": str(directory / "token")},
        }

    # -- life --

    def environment(self):
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "CLUSTERCTL_TEST_RUN", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        return dict(kept, HOME=str(self.directory), LANG="C.UTF-8")

    def write_config(self):
        self.config_file.write_text(yaml.safe_dump(self.config))

    def launch(self):
        """Starts the process without waiting for it to listen."""
        self.write_config()
        self.start_of_log = self.log_file.stat().st_size if self.log_file.exists() else 0
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [str(BINARY), "serve", "--config", str(self.config_file), "--state-dir", str(self.state_dir)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=self.environment(), cwd="/", start_new_session=True)
        return self

    def log(self):
        """What this process has written so far."""
        with open(self.log_file, errors="replace") as log:
            log.seek(self.start_of_log)
            return log.read()

    def start(self):
        self.launch()
        listeners = sum(1 for name in ("unix", "tcp") if self.config["listen"].get(name))

        def listening():
            found = re.findall(r"listening on (\S+)", self.log())
            assert self.process.poll() is None, "the daemon ended:\n" + self.log()
            return found if len(found) >= listeners else None

        for address in wait_for(listening, "the daemon to listen"):
            port = re.search(r":(\d+)/?$", address)
            if port:
                self.port = int(port[1])
        return self

    def fails_to_start(self, seconds=3):
        """Starts the daemon, expects it to give up within `seconds`, and gives (exit code, its explanation: one line and a hint)."""
        begin = time.monotonic()
        self.launch()
        code = self.process.wait(timeout=30)
        took = time.monotonic() - begin
        self.process = None
        assert code != 0
        assert took < seconds * float(os.environ.get("CLUSTERCTL_SLOW", 1)), took
        told = [line for line in self.log().splitlines() if line.startswith(("error: ", "hint: "))]
        assert told and told[0].startswith("error: ") and len(told) <= 2, self.log()
        return code, " ".join(told)

    def stop(self):
        if self.process:
            self.process.terminate()
            code = self.process.wait(timeout=30)
            self.process = None
            return code

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def restart(self):
        self.stop()
        return self.start()

    def processes(self):
        """Pids of everything that works on this state folder, run shims included."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(self.directory).encode() in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.directory / "state", ignore_errors=True)

    # -- asking --

    def connection(self, via="unix", timeout=30):
        if via == "unix":
            return UnixConnection(self.socket, timeout)
        if via == "tls":
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=ssl.create_default_context(cafile=str(self.ca_file)))
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    @property
    def ca_file(self):
        return self.state_dir / "api-pki/ca.crt"

    def token(self):
        return (self.directory / "token").read_text().strip()

    def ask(self, method, path, body=None, headers=None, via="unix"):
        """One request as it is: `body` is text or bytes."""
        connection = self.connection(via)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def send(self, method, path, value, headers=None, **options):
        return self.ask(method, path, json.dumps(value), dict({"Content-Type": "application/json"}, **(headers or {})), **options)

    def cli(self, *arguments, timeout=60, env=None, **options):
        """The command line as a person's script would call it: no terminal."""
        environment = {**self.environment(), "CLUSTERCTL_SERVER": "unix:%s" % self.socket, **(env or {})}
        return subprocess.run([str(BINARY), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, **options)

    # -- the usual --

    def add(self, name, host_group="", addr=None, **spec):
        if addr is None:
            self.addresses = getattr(self, "addresses", 0) + 1
            while "192.0.2.%d" % self.addresses in OWN_ADDRESSES:  # this machine is never commissioned by accident
                self.addresses += 1
            addr = "192.0.2.%d" % self.addresses
        return self.send("POST", "/v1/nodes", {"name": name, "spec": dict(spec, addr=addr, host_group=host_group)}).ok(201)

    def node(self, name):
        return self.get("/v1/nodes/" + name).ok()

    def lifecycle(self, name):
        return self.node(name)["status"]["lifecycle"]

    def submit(self, kind, **request):
        return self.send("POST", "/v1/jobs", dict(request, kind=kind)).ok(202)

    def job(self, job_id):
        return self.get("/v1/jobs/" + job_id).ok()

    def wait(self, job_id, state=None, seconds=90):
        job = wait_for(lambda: (lambda j: j if j["state"] in FINAL else None)(self.job(job_id)), "job %s to end" % job_id, seconds)
        if state:
            assert job["state"] == state, job
        return job

    def commission(self, *names, state="succeeded", **request):
        return self.wait(self.submit("commission", nodes=list(names), **request)["id"], state)
