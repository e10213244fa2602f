"""What the stand-in for ansible-playbook is made of: what it was given, its cluster, its events, its orders. See README.md."""

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time

SERVICE_VERSIONS = {"base": "1", "docker": "20.10.24", "etcd": "3.4.23", "ucarp": "1.5.2", "swarm": "20.10.24"}
QUORUM_SERVICES = ("etcd", "swarm")


def plain(value):
    """What Ansible makes of the inventory: {"__ansible_unsafe": text} is text."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if list(value) == ["__ansible_unsafe"] else {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


class Given:
    """Command line, environment, inventory and variables; recorded in calls/<number>-<playbook>/."""

    def __init__(self, argv, environment):
        self.argv, self.env = argv, environment
        self.inventory_file = self.vars_file = self.playbook = None
        words = iter(argv[1:])
        for word in words:
            if word == "-i":
                self.inventory_file = next(words)
            elif word == "-e":
                self.vars_file = next(words).lstrip("@")
            elif not word.startswith("-"):
                self.playbook = word
        self.stem = os.path.splitext(os.path.basename(self.playbook or "none"))[0]
        self.tree = self.read(self.inventory_file)["all"]
        self.extra = self.read(self.vars_file) if self.vars_file else {}
        self.vars = dict(self.tree.get("vars", {}), **self.extra)
        self.hosts = {}
        for group in [self.tree] + list(self.tree.get("children", {}).values()):
            for name, variables in (group.get("hosts") or {}).items():
                self.hosts.setdefault(name, {}).update(variables or {})

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as handle:
            return plain(json.load(handle))

    def group(self, name):
        return list((self.tree.get("children", {}).get(name, {}).get("hosts") or {}))

    def record(self, folder):
        calls = os.path.join(folder, "calls")
        os.makedirs(calls, exist_ok=True)
        number = max([int(name.split("-")[0]) for name in os.listdir(calls)] or [0]) + 1
        place = os.path.join(calls, "%04d-%s" % (number, self.stem))
        os.mkdir(place)
        facts = {"argv": self.argv, "env": dict(self.env), "pid": os.getpid(), "cwd": os.getcwd(), "pgid": os.getpgid(0),
                 "targets": self.group("clusterctl_targets"), "peers": self.group("clusterctl_peers"), "playbook": self.stem,
                 "open_fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1]}
        with open(os.path.join(place, "call.json"), "w") as handle:
            json.dump(facts, handle, indent=1, sort_keys=True)
        for name, path in (("inventory.json", self.inventory_file), ("vars.json", self.vars_file)):
            if path:
                shutil.copy2(path, os.path.join(place, name))  # keeps the mode
        return number


class Cluster:
    """cluster.json: what is installed where. Guarded by a lock, because runs may overlap."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "cluster.json")
        self.lock = open(os.path.join(folder, ".cluster.lock"), "w")
        self.change(lambda nodes: None)

    def change(self, function):
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            state = {"joins": 0, "nodes": {}}
            if os.path.exists(self.path):
                with open(self.path) as handle:
                    state = json.load(handle)
            self.state = state
            out = function(state["nodes"])
            with open(self.path + ".new", "w") as handle:
                json.dump(state, handle, indent=1)
            os.rename(self.path + ".new", self.path)
            return out
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def set_availability(self, name, wanted):
        """True when that was a change; nothing is kept about a node that is no member."""
        def function(nodes):
            if "swarm" not in nodes.get(name, {}).get("services", {}):
                return None
            before = nodes[name].get("availability", "active")
            nodes[name]["availability"] = wanted
            self.state.setdefault("availability_log", []).append([name, before, wanted])
            return before != wanted
        return self.change(function)

    def stand(self, name, aside, down):
        """True when that was a change. Nobody may step aside who has nobody to hand over to, unless alone."""
        def function(nodes):
            if name not in nodes:
                raise ValueError("ucarp is not set up")
            managers = [n for n, node in nodes.items() if "ucarp" in node["services"] and n != name]
            if aside and managers and not [n for n in managers if n not in down and not nodes[n].get("aside")]:
                raise ValueError("the address 192.0.2.100 was not handed over within 30 s: nobody answers for it")
            before = nodes[name].get("aside", False)
            nodes[name]["aside"] = aside
            return before != aside
        return self.change(function)

    def reboot(self, name, order):
        def function(nodes):
            node = nodes.get(name)
            if node is None:
                raise ValueError("not installed")
            if order and node.get("order") == order:
                return False
            node["order"] = order
            node["boots"] = node.get("boots", 1) + 1
            self.state.setdefault("reboot_log", []).append([name, node.get("availability", "active"), node.get("aside", False)])
            return True
        return self.change(function)

    def join(self, name, addr, role, service):
        def function(nodes):
            node = nodes.setdefault(name, {"services": {}})
            node.update(addr=addr)
            if service == "swarm" or "role" not in node:  # the scheduler gives the role, the others follow
                node["role"] = role
            if service not in node["services"]:
                self.state["joins"] += 1
                digest = hashlib.sha256(("%s %s %d" % (name, service, self.state["joins"])).encode()).hexdigest()
                node["services"][service] = digest[:16] if service == "etcd" else digest[:25]
                return True
            return False
        return self.change(function)

    def leave(self, name, service, member=None, addr=None):
        def function(nodes):
            found = [n for n, node in nodes.items() if service in node["services"] and
                     (n == name or node.get("addr") == addr or (member and node["services"][service] == member))]
            for other in found:
                del nodes[other]["services"][service]
                if not nodes[other]["services"]:
                    del nodes[other]
            return bool(found)
        return self.change(function)

    def having(self, service):
        return {n: node for n, node in sorted(self.state["nodes"].items()) if service in node["services"]}

    def managers(self, service):
        return [n for n, node in self.having(service).items() if service == "etcd" or node["role"] == "manager"]

    def fact(self, host, service, down, unhealthy, availability="active", role=""):
        here = self.state["nodes"].get(host, {"services": {}})
        out = {"v": 1, "version": SERVICE_VERSIONS.get(service, "1"), "healthy": True, "message": ""}
        if service not in here["services"]:
            return dict(out, version="", healthy=False, message="%s is not installed" % service)
        up = [n for n in self.managers(service) if n not in down]
        if service in QUORUM_SERVICES:
            out["member_id"] = here["services"][service]
            leader = up[0] if up else ""
            if service == "swarm":
                out["role"] = "worker" if here["role"] == "worker" else "leader" if host == leader else "manager"
            else:
                out["role"] = "leader" if host == leader else "member"
            if here["role"] == "manager" or service == "etcd":
                out["members"] = [
                    {"id": node["services"][service], "name": name, "addr": node["addr"],
                     "role": "member" if service == "etcd" else node["role"], "reachable": name not in down,
                     "leader": name == leader} for name, node in self.having(service).items()]
                if len(up) * 2 <= len(self.managers(service)):
                    out.update(healthy=False, message="%s has lost its quorum" % service)
        elif service == "ucarp":
            taking_part = [n for n in up if not self.state["nodes"][n].get("aside")] or up
            out["role"] = "holder" if taking_part and host == taking_part[0] else "backup"
        if service == "swarm" and here.get("availability", "active") != availability:
            out.update(healthy=False, message="availability is %s, %s is wanted" % (here.get("availability", "active"), availability))
        if service == "swarm" and role and here["role"] != role:
            out.update(healthy=False, message="the node is a %s, a %s is wanted" % (here["role"], role))
        if (host, service) in unhealthy:
            out.update(healthy=False, message=unhealthy[(host, service)])
        return out


class Cancelled(Exception):
    pass


class Events:
    """events.jsonl and the text a person would see."""

    def __init__(self, run_dir):
        self.run_dir = run_dir
        self.fd = os.open(os.path.join(run_dir, "events.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if run_dir else -1
        self.n = 0
        self.counts = {}
        self.task_now = ("", "", "", "")
        self.mute = False

    def write(self, event, **fields):
        if self.fd < 0 or self.mute:
            return
        self.n += 1
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + ".%03dZ" % (now % 1 * 1000)
        line = dict({"v": 1, "n": self.n, "t": stamp, "event": event}, **fields)
        os.write(self.fd, json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def say(self, text):
        if not self.mute:
            sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
            sys.stdout.flush()

    def play(self, name, hosts):
        self.say("\nPLAY [%s] ****" % name)
        self.write("play", play=name, hosts=hosts)

    def task(self, name, service="", door="", action="ansible.builtin.command"):
        if self.run_dir and os.path.exists(os.path.join(self.run_dir, "cancel")):
            raise Cancelled()
        self.task_now = (name, service, door, action)
        self.say("\nTASK [%s%s] ****" % (service + " : " if service else "", name))
        self.write("task", task=name, service=service, door=door, action=action)

    def result(self, host, status="ok", changed=False, ignored=False, module=True, **more):
        name, service, door, action = self.task_now
        count = self.counts.setdefault(host, dict.fromkeys("ok changed failures unreachable skipped rescued ignored".split(), 0))
        if status == "ok" or ignored:
            count["ok"] += 1
            count["ignored"] += ignored
            count["changed"] += changed
        else:
            count["failures" if status == "failed" else "unreachable"] += 1
        self.say("%s: [%s]%s" % ("fatal" if status != "ok" else "changed" if changed else "ok", host,
                                 ": %s! => %s" % (status.upper(), json.dumps(more)) if status != "ok" else ""))
        self.write("result", host=host, task=name, service=service, door=door, action=action, status=status, changed=changed,
                   ignored=ignored, ms=3, module=module, **more)

    def fact(self, host, name, value):
        self.write("fact", host=host, name=name, value=value)

    def stats(self):
        self.say("\nPLAY RECAP ****")
        for host, count in sorted(self.counts.items()):
            self.say("%s : ok=%d changed=%d unreachable=%d failed=%d" % (host, count["ok"], count["changed"], count["unreachable"],
                                                                        count["failures"]))
        self.write("stats", hosts=self.counts)


class Orders:
    """What control.json tells this call to do: {"site": "fail:2", "verify": ["unhealthy:n1:etcd:no leader"], "down": ["n3"]}."""

    def __init__(self, folder, stem, cluster):
        control = {}
        if os.path.exists(os.path.join(folder, "control.json")):
            with open(os.path.join(folder, "control.json")) as handle:
                control = json.load(handle)
        self.folder = folder
        self.down = list(control.get("down", []))
        self.hardware = control.get("hardware", {})
        self.words = []
        for key in ("*", stem):
            entries = control.get(key, [])
            for entry in entries if isinstance(entries, list) else [entries]:
                entry = {"do": entry} if isinstance(entry, str) else entry
                if self.used(cluster, key, entry) <= entry.get("times", 1 << 30):
                    self.words.append(entry["do"].split(":"))
        self.unreachable = {words[1]: ":".join(words[2:]) for words in self.words if words[0] == "unreachable"}
        self.down += list(self.unreachable)

    @staticmethod
    def used(cluster, key, entry):
        """Counts the calls that met an entry with `times`."""
        if "times" not in entry:
            return 0

        def function(nodes):
            del nodes
            uses = cluster.state.setdefault("uses", {})
            name = "%s %s" % (key, entry["do"])
            uses[name] = uses.get(name, 0) + 1
            return uses[name]
        return cluster.change(function)

    def all(self, name):
        return [words[1:] for words in self.words if words[0] == name]

    def has(self, name):
        return bool(self.all(name))

    def about(self, name):
        """{(host, service): text} of orders like fail-host:HOST:SERVICE:TEXT."""
        return {(w[0], w[1] if len(w) > 1 else ""): ":".join(w[2:]) or "the double was told so" for w in self.all(name)}
