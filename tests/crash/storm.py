"""Concurrent work on a fleet while the controller dies again and again, at any instant. What became of it all is for checker.py to say.

usage: tests/crash/storm.py [--kills N] [--power-cuts N] [--seed N]      (defaults: 300, 30, the clock)
"""

import argparse
import http.client
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests" / "api"), str(TOP / "tests" / "crash")]

import checker  # noqa: E402
import harness  # noqa: E402

MANAGERS = ["m1", "m2", "m3"]
WORKERS = ["w%d" % n for n in range(1, 9)]
# What an operator may ask for, by what the node is. Each is refused or accepted by the daemon, never by us.
KINDS = {
    "Unallocated": ["commission", "commission", "check"],
    "Decommissioned": ["commission", "commission", "check"],
    "Allocated": ["decommission", "update", "drain", "activate", "verify", "promote", "demote", "pause", "maintenance-enter", "reboot"],
    "Maintenance": ["update", "decommission", "promote", "demote", "maintenance-exit", "maintenance-exit", "reboot"],
    "Cancelled": ["decommission"],
}
GROUPS = {"m": "service-master", "w": "service-worker"}
TROUBLE = (OSError, http.client.HTTPException)


def alive(action):
    """`action` again and again until a daemon answers it: what a client with an Idempotency-Key does."""
    while True:
        try:
            return action()
        except TROUBLE:
            time.sleep(0.02)


class Operator(threading.Thread):
    """Asks for work as fast as it is answered. A request whose answer was lost is sent again with the same key."""

    def __init__(self, daemon, seed, kinds):
        super().__init__(daemon=True)
        self.target, self.kinds = daemon, kinds
        self.dice = random.Random(seed)
        self.accepted, self.refused, self.wrong = {}, {}, []
        self.over = threading.Event()

    def run(self):
        number = 0
        while not self.over.is_set():
            number += 1
            request = self.choose()
            if request:
                self.send("%s-%d" % (self.name, number), request)
            self.over.wait(self.dice.uniform(0, 0.3))

    def choose(self):
        nodes = {n["name"]: n["status"]["lifecycle"] for n in alive(lambda: self.target.get("/v1/nodes").ok())["nodes"]}
        pool = WORKERS if self.dice.random() < 0.75 else MANAGERS
        first = self.dice.choice(pool)
        kinds = [k for k in KINDS.get(nodes[first], []) if k in self.kinds]
        if not kinds:
            return None
        same = [n for n in pool if nodes[n] == nodes[first]]
        names = self.dice.sample(same, min(len(same), self.dice.randint(1, 3)))
        request = {"kind": self.dice.choice(kinds), "nodes": names}
        if request["kind"] == "commission":
            request["host_group"] = GROUPS[first[0]]
        return request

    def send(self, key, request):
        ids = set()
        for _ in range(2 if self.dice.random() < 0.1 else 1):  # a client that is not sure asks twice
            answer = alive(lambda: self.target.send("POST", "/v1/jobs", request, headers={"Idempotency-Key": key}))
            if answer.status in (200, 202):
                ids.add(answer.json["id"])
            elif answer.status in (409, 422, 429, 503):
                self.refused[answer.json["code"]] = self.refused.get(answer.json["code"], 0) + 1
            else:
                self.wrong.append("%s: %d %s" % (request, answer.status, answer.body[:300]))
        if len(ids) > 1:
            self.wrong.append("one key made the jobs %s" % ", ".join(sorted(ids)))
        for job in ids:
            self.accepted[job] = request
            if self.dice.random() < 0.1:
                alive(lambda: self.target.send("POST", "/v1/jobs/%s/cancel" % job, {"now": self.dice.random() < 0.5}))


class Storm:
    def __init__(self, directory, seed, kinds, operators=3):
        self.daemon = harness.Daemon(directory)
        self.daemon.config["jobs"] = {"keep": 5000, "max_parallel_runs": 6}
        self.dice = random.Random(seed)
        self.operators = [Operator(self.daemon, seed * 1000 + n, kinds) for n in range(operators)]
        self.deaths = {}

    def begin(self):
        self.daemon.start()
        for name in MANAGERS + WORKERS:
            self.daemon.add(name, GROUPS[name[0]])
        self.daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
        self.daemon.commission(*MANAGERS)
        self.daemon.double.orders(**{"*": "slow:0.4"})
        for operator in self.operators:
            operator.start()

    def die(self, what):
        self.deaths[what] = self.deaths.get(what, 0) + 1
        getattr(self, what)()

    def daemon_killed(self):
        self.daemon.kill()
        self.daemon.start()

    def daemon_killed_while_it_starts(self):
        self.daemon.kill()
        self.daemon.launch()
        time.sleep(self.dice.uniform(0, 0.25))
        self.daemon.kill()
        self.daemon.start()

    def one_of_the_run_killed(self, which):
        found = [pid for pid in self.daemon.processes() if pid != self.daemon.process.pid and which in command_of(pid)]
        if found:
            end(self.dice.choice(found))

    def shim_killed(self):
        self.one_of_the_run_killed("run-shim")

    def ansible_killed(self):
        self.one_of_the_run_killed("ansible-playbook")

    def power_cut(self):
        """Everything stops at the same moment, then nothing of it is there any more."""
        pids = [self.daemon.process.pid] + self.daemon.processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                end(pid, number)
        self.daemon.kill()
        harness.wait_for(lambda: not self.daemon.processes(), "the power to be off")
        self.daemon.start()

    def rage(self, kills, power_cuts):
        plan = ["power_cut"] * power_cuts + self.dice.choices(
            ["daemon_killed", "daemon_killed_while_it_starts", "shim_killed", "ansible_killed"], [6, 2, 1, 1], k=kills)
        self.dice.shuffle(plan)
        for what in plan:
            time.sleep(self.dice.uniform(0, 0.7))
            self.die(what)

    def calm(self):
        """Nobody asks for more, and what was accepted comes to its end."""
        for operator in self.operators:
            operator.over.set()
        for operator in self.operators:
            operator.join(60)
        harness.wait_for(lambda: not self.open_jobs(), "every job to end", 300)

    def open_jobs(self):
        return [j["id"] for j in self.daemon.get("/v1/jobs?limit=1000").ok()["jobs"] if j["state"] not in harness.FINAL]

    def violations(self):
        accepted = {job for operator in self.operators for job in operator.accepted}
        events = self.daemon.get("/v1/events?since=0&limit=10000").ok()["events"]
        wrong = [line for operator in self.operators for line in operator.wrong]
        return wrong + checker.check(self.daemon, accepted, [event["seq"] for event in events])

    def way_on(self):
        """From wherever a node is, without a hand on it: every one of them can serve again. The managers first."""
        self.daemon.double.orders()
        for name in MANAGERS + WORKERS:
            for attempt in range(4):
                lifecycle = self.daemon.lifecycle(name)
                marks = {c["type"] for c in self.daemon.node(name)["status"]["conditions"]}
                if lifecycle == "Allocated" and not marks & {"Failed", "Interrupted", "NeedsVerification"}:
                    break
                kind = {"Allocated": "update" if attempt else "verify", "Maintenance": "maintenance-exit" if attempt % 2 == 0 else "update", "Cancelled": "decommission"}.get(
                    lifecycle, "commission")
                group = {"host_group": GROUPS[name[0]]} if kind == "commission" else {}
                more = dict(group, allow_outage=True, max_unavailable="100%") if kind == "update" else group
                answer = self.daemon.send("POST", "/v1/jobs", dict(more, kind=kind, nodes=[name]))
                if answer.status != 202:
                    return ["%s (%s) cannot %s: %s" % (name, lifecycle, kind, answer.body[:400])]
                job = self.daemon.wait(answer.json["id"])
                if job["state"] != "succeeded" and kind == "commission":
                    return ["%s (%s) cannot %s: %s" % (name, lifecycle, kind, job["error"])]
            else:
                return ["%s is %s with %s and does not come back" % (name, lifecycle, ", ".join(sorted(marks)))]
        return []

    def report(self):
        jobs = {}
        for job in self.daemon.get("/v1/jobs?limit=1000").ok()["jobs"]:
            jobs[job["state"]] = jobs.get(job["state"], 0) + 1
        refused = {}
        for operator in self.operators:
            for code, count in operator.refused.items():
                refused[code] = refused.get(code, 0) + count
        runs = len(self.daemon.double.calls())
        tell = lambda counts: ", ".join("%d %s" % (counts[k], k.replace("_", " ")) for k in sorted(counts))  # noqa: E731
        return "deaths: %s\njobs: %s\nrefused: %s\nruns: %d" % (tell(self.deaths), tell(jobs), tell(refused) or "none", runs)


def command_of(pid):
    try:
        return (pathlib.Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def end(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def run(kills, power_cuts, seed, kinds=frozenset(sum(KINDS.values(), [])), keep=None):
    """(violations, report)"""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="s"))
    storm = Storm(directory, seed, kinds)
    try:
        storm.begin()
        storm.rage(kills, power_cuts)
        storm.calm()
        found = storm.violations()
        if not found:
            found = storm.way_on() or storm.violations()
        report = storm.report()
        if found and keep:
            shutil.copytree(directory, keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
        return found, report
    finally:
        for operator in storm.operators:
            operator.over.set()
        storm.daemon.end()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--power-cuts", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kinds", help="separated by commas; otherwise every kind")
    parser.add_argument("--keep", help="folder that gets the state when something is wrong")
    given = parser.parse_args()
    print("seed %d" % given.seed, flush=True)
    begin = time.monotonic()
    kinds = {"kinds": set(given.kinds.split(","))} if given.kinds else {}
    found, report = run(given.kills, given.power_cuts, given.seed, keep=given.keep, **kinds)
    print(report)
    print("%d violations in %.0f s" % (len(found), time.monotonic() - begin))
    for line in found[:40]:
        print("  " + line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
