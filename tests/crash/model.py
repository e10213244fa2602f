"""One operator, an independent model, and kill -9 of the daemon in the middle of every operation. The model knows only what it asked for
itself: it is never told what the daemon believes. As nothing but the daemon is disturbed, every request that the rules allow has to end as
asked, and every other one has to be refused with the reason the model gives, with nothing changed and nothing started.

usage: tests/crash/model.py [--operations N] [--seed N]      (defaults: 200, the clock)
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests" / "api"), str(TOP / "tests" / "crash")]

import checker  # noqa: E402
import harness  # noqa: E402
from storm import alive  # noqa: E402

MANAGERS = ["m1", "m2", "m3", "m4", "m5"]
WORKERS = ["w1", "w2", "w3", "w4"]
NAMES = MANAGERS + WORKERS


def q(total):
    return total // 2 + 1


class Model:
    """Who is in, who answers, what is drained."""

    def __init__(self):
        self.inside, self.drained, self.down = set(), set(), set()
        self.was = dict.fromkeys(NAMES, "Unallocated")

    def managers(self):
        return [n for n in MANAGERS if n in self.inside]

    def answering(self, names):
        return [n for n in names if n not in self.down]

    def lifecycle(self, name):
        return "Allocated" if name in self.inside else self.was[name]

    def judge(self, request):
        """The code of the reason of a refusal, or None."""
        names = request["nodes"]
        return getattr(self, "judge_" + request["kind"])(request, names)

    def judge_commission(self, request, names):
        if any(n in self.inside for n in names):
            return "transition"
        fresh = [n for n in names if n in MANAGERS]
        if not self.managers() and not fresh:
            return "no_manager"
        if self.managers() and not self.answering(self.managers()):
            return "no_reachable_manager"
        total, alive_ones = len(self.managers()), len(self.answering(self.managers()))
        for _ in fresh:
            if total and (alive_ones < q(total) or (alive_ones < total and not request.get("force"))):
                return "quorum"
            total, alive_ones = total + 1, alive_ones + 1
        return None

    def judge_decommission(self, request, names):
        off = request.get("powered_off")
        if any(n not in self.inside for n in names):
            return "transition"
        if not off and any(n in self.down for n in names):
            return "unreachable"
        others = self.inside - set(names)
        leaving = [n for n in names if n in MANAGERS]
        staying = [n for n in self.managers() if n not in names]
        if not others:
            return None
        if leaving and not staying and not request.get("force"):
            return "last_manager"
        total = len(self.managers())
        alive_ones = len([n for n in self.answering(self.managers()) if not (off and n in names)])
        dead = [n for n in leaving if off or n in self.down]
        if staying:
            for _ in range(len(leaving) - len(dead)):
                if alive_ones < q(total) or alive_ones - 1 < q(total - 1):
                    return "quorum"
                total, alive_ones = total - 1, alive_ones - 1
            for _ in dead:
                if alive_ones < q(total):
                    return "quorum"
                total -= 1
            if not self.answering(staying):
                return "no_reachable_manager"
        return None

    def away(self, without=()):
        return {n for n in WORKERS if n in self.inside and n not in without and (n in self.down or n in self.drained)}

    def judge_update(self, request, names):
        if any(n not in self.inside for n in names):
            return "transition"
        if any(n in self.down for n in names):
            return "unreachable"
        total, alive_ones = len(self.managers()), len(self.answering(self.managers()))
        if any(n in MANAGERS for n in names):
            if total <= 2 and not request.get("allow_outage") or total > 2 and alive_ones - 1 < q(total):
                return "quorum"
        costing = [n for n in names if n in WORKERS and n not in self.away()]
        if costing and len(self.away()) >= self.budget(request):
            return "budget"
        return None

    def judge_drain(self, request, names):
        if any(n not in self.inside for n in names):
            return "transition"
        if not self.answering(self.managers()):
            return "no_reachable_manager"
        costing = [n for n in names if n in WORKERS and n not in self.away()]
        if costing and len(self.away()) + len(costing) > self.budget(request):
            return "budget"
        return None

    def judge_activate(self, request, names):
        if any(n not in self.inside for n in names):
            return "transition"
        return None if self.answering(self.managers()) else "no_reachable_manager"

    @staticmethod
    def budget(request):
        return int(request.get("max_unavailable", 1))

    def apply(self, request):
        for name in request["nodes"]:
            if request["kind"] == "commission":
                self.inside.add(name)
            elif request["kind"] == "decommission":
                self.inside.discard(name)  # what is wanted of its availability stays, should it come back
                self.was[name] = "Decommissioned"
            elif request["kind"] == "drain":
                self.drained.add(name)
            elif request["kind"] == "activate":
                self.drained.discard(name)


class Trial:
    def __init__(self, directory, seed):
        self.daemon = harness.Daemon(directory)
        self.dice = random.Random(seed)
        self.model = Model()
        self.seen_down = set()
        self.kills = self.accepted = self.refused = self.number = 0
        self.codes, self.wrong, self.jobs = {}, [], set()

    def begin(self):
        self.daemon.start()
        for name in NAMES:
            self.daemon.add(name, "service-master" if name in MANAGERS else "service-worker")
        self.daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
        self.ask({"kind": "commission", "nodes": ["m1", "m2", "m3", "w1", "w2"]})

    def orders(self):
        self.daemon.double.orders(**{"*": "slow:0.15", "down": sorted(self.model.down)})

    # ---- operations ----

    def choose(self):
        kind = self.dice.choice(["commission", "commission", "decommission", "decommission", "update", "update", "drain", "activate"])
        pool = [n for n in NAMES if (n in self.model.inside) == (kind != "commission")]
        if self.dice.random() < 0.15 or not pool:
            pool = NAMES
        if kind in ("drain", "activate"):  # the stand-in of Ansible needs the node itself
            pool = self.model.answering(pool) or ["m1"]
        request = {"kind": kind, "nodes": self.dice.sample(pool, min(len(pool), self.dice.choice([1, 1, 1, 2, 3])))}
        if kind == "decommission" and self.dice.random() < 0.05:
            request["nodes"] = sorted(self.model.inside) or request["nodes"]
        if kind == "commission" and self.dice.random() < 0.4:
            request["force"] = True
        dead = [n for n in request["nodes"] if n in self.model.down]
        if kind == "decommission" and dead and self.dice.random() < 0.7:
            request.update(nodes=dead, force=True, powered_off=True)
        if kind == "update" and self.dice.random() < 0.5:
            request["allow_outage"] = True
        if kind in ("update", "drain") and self.dice.random() < 0.5:
            request["max_unavailable"] = self.dice.randint(1, 4)
        return request

    def power(self):
        """A machine goes down or comes back, and is looked at. A majority always answers, and what is out is up."""
        name = self.dice.choice(sorted(self.model.inside | self.model.down) or NAMES)
        if name in self.model.down:
            self.model.down.discard(name)
        elif name in self.model.inside:
            managers = self.model.managers()
            left = len(self.model.answering(managers)) - (name in MANAGERS)
            if name in MANAGERS and left < q(len(managers)):
                return
            self.model.down.add(name)
        else:
            return
        self.orders()
        self.look([name])

    def look(self, names):
        kinds = [{"kind": "check", "nodes": names}]
        if self.model.answering(self.model.managers()):
            kinds.append({"kind": "observe"})
        for request in kinds:
            self.daemon.wait(alive(lambda: self.daemon.submit(**request))["id"])

    def killer(self, delay):
        time.sleep(delay)
        self.daemon.kill()
        self.kills += 1
        self.daemon.start()

    def ask(self, request):
        """The request with kill -9 at a chance moment; the client asks again with the same key until it is answered."""
        self.number += 1
        key = {"Idempotency-Key": "o%d" % self.number}
        expected = self.model.judge(request)
        nodes_before, runs_before = self.listing(), len(self.daemon.double.calls())
        killer = threading.Thread(target=self.killer, args=(self.dice.uniform(0, 0.02 if expected else 1.2),))
        killer.start()
        answer = alive(lambda: self.daemon.send("POST", "/v1/jobs", request, headers=key))
        killer.join()
        if answer.status == 202 or answer.status == 200:
            self.accepted += 1
            self.jobs.add(answer.json["id"])
            job = self.daemon.wait(answer.json["id"])
            if expected:
                self.note(request, "was accepted, the model says %s" % expected)
            elif job["state"] != "succeeded":
                self.note(request, "ended %s: %s" % (job["state"], job["error"]))
            self.model.apply(request)
            if request.get("powered_off"):
                self.model.down -= set(request["nodes"])  # repaired, and not in use
                self.orders()
        else:
            self.refused += 1
            codes = {p["code"] for p in answer.json.get("problems") or [answer.json]}
            for code in codes:
                self.codes[code] = self.codes.get(code, 0) + 1
            if expected not in codes:
                self.note(request, "was refused for %s, the model says %s" % (", ".join(sorted(codes)), expected or "yes"))
            if self.listing() != nodes_before:
                self.note(request, "was refused and changed a node")
            if len(self.daemon.double.calls()) != runs_before:
                self.note(request, "was refused and started a run")
        self.compare(request)

    def listing(self):
        return alive(lambda: self.daemon.get("/v1/nodes")).body

    def compare(self, request):
        members = self.daemon.double.members()
        for node in self.daemon.get("/v1/nodes").ok()["nodes"]:
            name, status = node["name"], node["status"]
            if status["lifecycle"] != self.model.lifecycle(name):
                self.note(request, "%s is %s, the model says %s" % (name, status["lifecycle"], self.model.lifecycle(name)))
            if name in self.model.inside:
                wanted = "drain" if name in self.model.drained else "active"
                if (status["applied"]["availability"], members[name].get("availability", "active")) != (wanted, wanted):
                    self.note(request, "%s is not %s" % (name, wanted))
        there = sorted(n for n in members if "swarm" in members[n]["services"])
        if there != sorted(self.model.inside):
            self.note(request, "members are %s, the model says %s" % (there, sorted(self.model.inside)))

    def note(self, request, what):
        self.wrong.append("operation %d %s: %s" % (self.number, request, what))

    def go(self, operations):
        while self.number < operations and not self.wrong:
            if self.dice.random() < 0.15:
                self.power()
            else:
                self.ask(self.choose())
        events = self.daemon.get("/v1/events?since=0&limit=10000").ok()["events"]
        return self.wrong or checker.check(self.daemon, self.jobs, [event["seq"] for event in events])

    def report(self):
        return "%d operations, %d kills, %d accepted, %d refused (%s), %d runs" % (
            self.number, self.kills, self.accepted, self.refused, ", ".join("%d %s" % (n, c) for c, n in sorted(self.codes.items())),
            len(self.daemon.double.calls()))


def run(operations, seed):
    """(violations, report)"""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="m"))
    trial = Trial(directory, seed)
    try:
        trial.begin()
        trial.orders()
        found = trial.go(operations)
        return found, trial.report()
    finally:
        trial.daemon.end()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print("seed %d" % given.seed, flush=True)
    begin = time.monotonic()
    found, report = run(given.operations, given.seed)
    print(report)
    print("%d violations in %.0f s" % (len(found), time.monotonic() - begin))
    for line in found[:40]:
        print("  " + line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
