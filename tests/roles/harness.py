"""Runs the playbooks against lab nodes the way a controller does, and reads their events."""

import collections
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]


def unsafe(value):
    """As the controller writes what operators and machines supplied: nothing in it is evaluated."""
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, dict):
        return {key: unsafe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unsafe(item) for item in value]
    return value


class Run(object):
    """What is left of one ansible-playbook process."""

    def __init__(self, directory, code, output, seconds):
        self.directory, self.code, self.output, self.seconds = directory, code, output, seconds
        path = directory / "events.jsonl"
        self.events = [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
        self.results = [event for event in self.events if event["event"] == "result"]
        self.stats = self.events[-1]["hosts"] if self.events and self.events[-1]["event"] == "stats" else None

    def changed(self):
        """{host: {(service, task)}} of everything that reported a change."""
        found = collections.defaultdict(set)
        for result in self.results:
            if result["changed"]:
                found[result["host"]].add((result["service"], result["task"]))
        return dict(found)

    def changed_services(self):
        return {host: {service for service, _task in entries} for host, entries in self.changed().items()}

    def failed(self):
        """{host: its first failure that counts}."""
        found = {}
        for result in self.results:
            stats = (self.stats or {}).get(result["host"], {})
            if result["status"] != "ok" and not result["ignored"] and (stats.get("failures") or stats.get("unreachable")):
                found.setdefault(result["host"], result)
        return found

    def module_runs(self):
        """Modules that ran on nodes, per inventory host on whose behalf they ran."""
        return collections.Counter(result["host"] for result in self.results if result["module"] and "item" not in result)

    def facts(self, name):
        return {event["host"]: event["value"] for event in self.events if event["event"] == "fact" and event["name"] == name}

    def unhealthy(self):
        """{host: {service: message}}."""
        found = collections.defaultdict(dict)
        for event in self.events:
            if event["event"] == "fact" and event["name"].startswith("clusterctl_service_") and event["value"]["healthy"] is not True:
                found[event["host"]][event["name"][len("clusterctl_service_"):]] = event["value"]["message"]
        return dict(found)

    def must(self):
        assert self.code == 0 and self.stats, "%s\n%s" % (self.failed(), self.output[-6000:])
        return self


class Lab(object):
    def __init__(self, name="roles", nodes=4):
        self.script = os.environ.get("CLUSTERCTL_LAB_SCRIPT", str(TOP / "scripts" / "lab"))
        self.environment = dict(os.environ, CLUSTERCTL_LAB_NAME=os.environ.get("CLUSTERCTL_LAB_NAME", name),
                                CLUSTERCTL_LAB_DIR=os.environ.get("CLUSTERCTL_LAB_DIR", str(TOP / ".lab")))
        self.count = nodes
        self.services = [name for name in os.environ.get("CLUSTERCTL_TEST_SERVICES", "").split(",") if name]

    # ---- nodes --------------------------------------------------------------------------------

    def lab(self, *arguments, check=True):
        return subprocess.run([self.script, *arguments], env=self.environment, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, timeout=600)

    def fresh(self):
        self.lab("down", check=False)
        self.up()

    def up(self):
        self.lab("up", str(self.count))
        self.settings = {}
        for line in self.lab("env").stdout.splitlines():
            words = shlex.split(line)
            if words[:1] == ["export"]:
                name, _, value = words[1].partition("=")
                self.settings[name] = value
        inventory = yaml.safe_load(pathlib.Path(self.settings["LAB_INVENTORY"]).read_text())["all"]
        self.variables = inventory["vars"]
        self.groups = {group: list(part["hosts"]) for group, part in inventory["children"].items()}
        self.hosts = {name: values for part in inventory["children"].values() for name, values in part["hosts"].items()}

    def on(self, node, script, check=True):
        """Standard output of a shell script on a node."""
        done = self.lab("exec", node, "sh", "-c", script, check=check)
        return done.stdout.strip()

    # ---- runs ---------------------------------------------------------------------------------

    def group_of(self, node):
        return next(group for group, names in self.groups.items() if node in names)

    def role_of(self, node):
        return "manager" if self.group_of(node) == "service-master" else "worker"

    def inventory(self, targets, peers=(), initiator=None, node_vars=None, **variables):
        """docs/run-contract.md, section 2."""
        hosts = {}
        managers = variables.pop("clusterctl_managers", None)
        if managers is None:
            managers = [n for n in list(peers) + list(targets) if self.role_of(n) == "manager" and n not in variables.get("clusterctl_leaving", [])]
        for name in list(targets) + list(peers):
            services = ["base", "docker", "etcd", "ucarp", "swarm"] if self.role_of(name) == "manager" else ["base", "docker", "swarm"]
            hosts[name] = {
                "ansible_ssh_common_args": self.settings["ANSIBLE_SSH_COMMON_ARGS"],
                "clusterctl_node_id": "id" + name,
                "clusterctl_role": self.role_of(name),
                "clusterctl_services": [s for s in services if not self.services or s in self.services],
                "clusterctl_recorded": {},
                "clusterctl_availability": "active",
                **{key: value for key, value in self.hosts[name].items() if key.startswith("ansible_")},
                **unsafe(self.variables), **unsafe((node_vars or {}).get(name, {})),
            }
        common = {
            "clusterctl_run_id": "run-%d" % time.time_ns(), "clusterctl_cluster_name": "lab", "clusterctl_managers": managers,
            "clusterctl_endpoint": self.variables["service_vip"], "clusterctl_leaving": [], "clusterctl_lost": [], "clusterctl_fence_runs": [],
            "clusterctl_cleanup_level": "state", "clusterctl_pki_dir": str(pathlib.Path(self.settings["LAB_INVENTORY"]).parent / "pki"), **variables,
        }
        if initiator:
            common["clusterctl_initiator"] = initiator
        elif peers:
            common["clusterctl_peer"] = next(name for name in peers if self.role_of(name) == "manager")
        groups = {group: {"hosts": {n: {} for n in names if n in hosts}} for group, names in self.groups.items()}
        groups["clusterctl_targets"] = {"hosts": {name: {} for name in targets}}
        groups["clusterctl_peers"] = {"hosts": {name: {} for name in peers}}
        return {"all": {"hosts": hosts, "vars": common, "children": groups}}

    def play(self, playbook, inventory=None, extra=None, arguments=(), fresh_environment=None):
        """One run. Without an inventory: the static one, as nobody with a controller would."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="clusterctl-run-"))
        if inventory is not None:
            (directory / "inventory.json").write_text(json.dumps(inventory))
            sources = ["-i", str(directory / "inventory.json")]
        else:
            sources = ["-i", self.settings["LAB_INVENTORY"], "-i", str(TOP / "tests" / "roles" / "targets.yml")]
        if extra:
            (directory / "vars.json").write_text(json.dumps(unsafe(extra)))
            sources += ["-e", "@" + str(directory / "vars.json")]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(pathlib.Path.home()), "LANG": "C.UTF-8",
            "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1", "ANSIBLE_LOCAL_TEMP": str(directory / "tmp"),
            "CLUSTERCTL_RUN_DIR": str(directory), "ANSIBLE_SSH_COMMON_ARGS": self.settings["ANSIBLE_SSH_COMMON_ARGS"], **(fresh_environment or {}),
        }
        began = time.time()
        done = subprocess.run(["/usr/bin/ansible-playbook", *sources, *arguments, str(TOP / "playbooks" / (playbook + ".yml"))], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800)
        (directory / "output.log").write_text(done.stdout)
        run = Run(directory, done.returncode, done.stdout, time.time() - began)
        print("%-8s rc %d, %.1f s, %s" % (playbook, run.code, run.seconds, directory))
        return run

    def everyone(self):
        return list(self.hosts)

    def commission(self, targets=None, peers=(), **more):
        targets = targets or self.everyone()
        initiator = None if peers else next(n for n in targets if self.role_of(n) == "manager")
        inventory = self.inventory(targets, peers, initiator, **more)
        return [self.play(name, inventory) for name in ("check", "site", "verify")]

    def converge(self, **more):
        """Again, as an update does: everybody is a member."""
        return self.play("site", self.inventory(self.everyone(), initiator=None, **more))
