"""What still has to happen before a drained node is empty: reckoned from the tasks and services of a swarm, as the engine lists them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# Everything before an end; a task that ended is complete, shutdown, failed, rejected, orphaned or removed.
LIVE = ("assigned", "accepted", "preparing", "ready", "starting", "running")
# What the scheduler still wants to run.
WANTED = ("running", "ready", "accepted", "assigned")


def state_of(task):
    return (task.get("Status") or {}).get("State", "unknown")


def slot_of(task):
    return "%s.%s" % (task.get("ServiceID", ""), task.get("Slot") or 0)


def is_live(task):
    return state_of(task) in LIVE


def held_slots(tasks, node_id):
    """Places of replicated services that this node holds now, as "service id.number"."""
    return sorted(set(slot_of(t) for t in tasks if t.get("NodeID") == node_id and is_live(t) and t.get("Slot")))


def by_slot(tasks):
    found = {}
    for task in tasks:
        if task.get("Slot"):
            found.setdefault(slot_of(task), []).append(task)
    for slot in found.values():
        slot.sort(key=lambda t: (t.get("CreatedAt", ""), t.get("ID", "")))
    return found


def is_replicated(service):
    return "Replicated" in ((service.get("Spec") or {}).get("Mode") or {})


def name_of(services, service_id):
    service = services.get(service_id) or {}
    return (service.get("Spec") or {}).get("Name") or service_id[:12]


def reason_of(task):
    status = task.get("Status") or {}
    return status.get("Err") or status.get("Message") or ""


def grace_of(services, service_id):
    spec = ((services.get(service_id) or {}).get("Spec") or {}).get("TaskTemplate") or {}
    period = (spec.get("ContainerSpec") or {}).get("StopGracePeriod")
    return "" if not period else " (its stop grace period is %d s)" % (period // 10 ** 9)


def taken_from(slot, node_id):
    """The replica stood on this node until it was told to stop, and what came after it does not run."""
    before = slot[-2] if len(slot) > 1 else None
    return bool(before) and before.get("NodeID") == node_id and state_of(before) in ("shutdown",) + LIVE and state_of(slot[-1]) != "running"


def blockers(node, tasks, services, slots):
    """One line for each task that still runs on the node, and for each replica that left it and does not run elsewhere.

    `node`: {id, name, state}. `tasks`: those of the services concerned. `slots`: places the node held before. Global services have no
    place elsewhere; a service that was removed or scaled down wants nothing back.
    """
    lines = []
    for task in tasks:
        if task.get("NodeID") != node["id"] or not is_live(task):
            continue
        name = name_of(services, task["ServiceID"])
        what = "service %s: task %s still %s on %s" % (
            name, "%s.%s" % (name, task["Slot"]) if task.get("Slot") else name, "runs" if state_of(task) == "running" else "is " + state_of(task),
            node["name"])
        if node["state"] != "ready":
            lines.append("%s as far as known: the cluster sees the node as %s" % (what, node["state"]))
        else:
            lines.append(what + grace_of(services, task["ServiceID"]))
    for key, slot in sorted(by_slot(tasks).items()):
        service_id = slot[-1]["ServiceID"]
        if service_id not in services or not is_replicated(services[service_id]):
            continue
        wanted = [t for t in slot if t.get("DesiredState") in WANTED]
        if not wanted or not (key in slots or taken_from(slot, node["id"])):
            continue
        if any(state_of(t) == "running" and t.get("NodeID") != node["id"] for t in wanted):
            continue
        last = wanted[-1]
        if last.get("NodeID") == node["id"]:
            continue  # told above
        name = name_of(services, service_id)
        reason = reason_of(last)
        lines.append("service %s: task %s.%s is %s%s" % (name, name, last["Slot"], state_of(last), ": " + reason if reason else ""))
    return lines


def in_one_line(lines, shown=3):
    more = len(lines) - shown
    return "; ".join(lines[:shown]) + (" and %d more" % more if more > 0 else "")
