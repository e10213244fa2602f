"""What must be true after any sequence of deaths, read from what really ran and not from what the daemon believes it did."""

import json
import pathlib

CHANGING = ("main", "upgrade", "cleanup")
BUSY = ("Provisioning",)


def lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()] if pathlib.Path(path).exists() else []


def doubled_runs(calls):
    """A run is one process in its life: the same run id in two calls is work done twice."""
    seen = {}
    for call in calls:
        seen.setdefault(call["env"]["CLUSTERCTL_RUN_ID"], []).append(call["pid"])
    return ["run %s was started %d times" % (run, len(pids)) for run, pids in seen.items() if len(pids) > 1]


def interleaved(ledger):
    """Two runs that change the same node at the same time show as A, B, A in the order of the clock."""
    found, order = [], {}
    for line in sorted(ledger, key=lambda entry: entry["t"]):
        if line["door"] not in CHANGING:
            continue
        runs = order.setdefault(line["host"], [])
        if runs and runs[-1] == line["run"]:
            continue
        if line["run"] in runs:
            found.append("%s was changed by run %s while run %s worked on it" % (line["host"], line["run"], runs[-1]))
        runs.append(line["run"])
    return found


def lost_jobs(accepted, jobs):
    """Every job that was accepted is there; the same request sent twice is one job."""
    known = {job["id"] for job in jobs}
    return ["job %s was accepted and is gone" % job for job in accepted if job not in known]


def stuck_jobs(jobs):
    final = ("succeeded", "failed", "cancelled", "interrupted")
    return ["job %s is still %s" % (job["id"], job["state"]) for job in jobs if job["state"] not in final]


def untrue_jobs(jobs, calls):
    """A job that succeeded has really run each of its stages that has a run; an interrupted one has not all of them done."""
    ran = {call["env"]["CLUSTERCTL_RUN_ID"] for call in calls}
    found = []
    for job in jobs:
        for stage in job["stages"]:
            if stage["state"] == "succeeded" and stage["run"] not in ran:
                found.append("job %s: stage %s succeeded without having run" % (job["id"], stage["name"]))
    return found


def untrue_nodes(nodes, installed):
    """What a node is said to be is what is on it, or the node says that it is not known."""
    found = []
    for node in nodes:
        name, status = node["name"], node["status"]
        marks = {c["type"] for c in status["conditions"]}
        there = set(installed.get(name, {}).get("services", {}))
        unsure = marks & {"Dirty", "Interrupted", "NotCleaned", "Failed", "NeedsVerification"}
        if status["lifecycle"] in BUSY:
            found.append("%s is %s although nothing works on it" % (name, status["lifecycle"]))
        elif status["lifecycle"] == "Allocated":
            wanted = set(status["applied"]["services"])
            if not wanted <= there and not unsure:
                found.append("%s is Allocated without %s" % (name, ", ".join(sorted(wanted - there))))
            if there - wanted and not unsure:
                found.append("%s is Allocated as %s and has %s as well" % (name, status["applied"]["host_group"], ", ".join(sorted(there - wanted))))
            role = "manager" if status["applied"]["host_group"] == "service-master" else "worker"
            if installed.get(name, {}).get("role", role) != role and not unsure:
                found.append("%s is Allocated as %s and the scheduler has a %s" % (name, role, installed[name]["role"]))
            if node["spec"]["host_group"] != status["applied"]["host_group"]:
                found.append("%s is %s and %s is wanted" % (name, status["applied"]["host_group"], node["spec"]["host_group"]))
        elif status["lifecycle"] in ("Unallocated", "Decommissioned") and there and not unsure:
            found.append("%s is %s and has %s" % (name, status["lifecycle"], ", ".join(sorted(there))))
        elif status["lifecycle"] in ("Cancelled", "Maintenance") and not unsure and not status["maintenance"]:
            found.append("%s is %s and does not say why" % (name, status["lifecycle"]))
    return found


def untrue_availability(nodes, installed):
    """What the scheduler has for a node is what was applied and what is wanted, or the node says that it is not known."""
    found = []
    for node in nodes:
        name, status = node["name"], node["status"]
        if status["lifecycle"] not in ("Allocated", "Maintenance") or "swarm" not in installed.get(name, {}).get("services", {}):
            continue
        if {c["type"] for c in status["conditions"]} & {"NeedsVerification"}:
            continue
        words = (installed[name].get("availability", "active"), status["applied"]["availability"], node["spec"]["availability"])
        if status["maintenance"]:  # what is wanted is what it gets back
            words = words[:2]
        if len(set(words)) > 1:
            found.append("%s: the scheduler has %s, applied is %s, wanted is %s" % ((name,) + words))
    return found


def broken_sequence(numbers):
    """Fleet events are numbered without gap or repeat, over all restarts."""
    return ["event %d follows event %d" % (b, a) for a, b in zip(numbers, numbers[1:]) if b != a + 1]


def check(daemon, accepted, event_numbers):
    """Every violation, one line each. The daemon is running and idle."""
    jobs = [daemon.job(item["id"]) for item in daemon.get("/v1/jobs?limit=1000").ok()["jobs"]]
    nodes = daemon.get("/v1/nodes").ok()["nodes"]
    calls = daemon.double.calls()
    ledger = lines(daemon.double.directory / "ledger.jsonl")
    orphans = [pid for pid in daemon.processes() if pid != daemon.process.pid]
    return (doubled_runs(calls) + interleaved(ledger) + lost_jobs(accepted, jobs) + stuck_jobs(jobs) + untrue_jobs(jobs, calls) +
            untrue_nodes(nodes, daemon.double.members()) + untrue_availability(nodes, daemon.double.members()) + broken_sequence(event_numbers) +
            ["process %d was left behind" % pid for pid in orphans])
