"""What blocks a drain, from tasks and services as an engine lists them."""

import pytest

NODE = {"id": "n1", "name": "w1", "state": "ready"}
SERVICES = {
    "s1": {"ID": "s1", "Spec": {"Name": "web", "Mode": {"Replicated": {"Replicas": 2}}, "TaskTemplate": {"ContainerSpec": {}}}},
    "s2": {"ID": "s2", "Spec": {"Name": "agent", "Mode": {"Global": {}}}},
    "s3": {"ID": "s3", "Spec": {"Name": "db", "Mode": {"Replicated": {"Replicas": 1}},
                                "TaskTemplate": {"ContainerSpec": {"StopGracePeriod": 90 * 10 ** 9}}}},
}


@pytest.fixture(scope="module")
def tasks(plugin):
    return plugin("module_utils", "clusterctl_tasks")


def task(service, slot, node, state, desired="running", made=1, **status):
    out = {"ID": "%s.%s.%d" % (service, slot, made), "ServiceID": service, "NodeID": node, "DesiredState": desired, "CreatedAt": "2026-01-01T00:00:%02d" % made,
           "Status": dict(status, State=state)}
    if slot:
        out["Slot"] = slot
    return out


def test_an_empty_node_blocks_nothing(tasks):
    assert tasks.blockers(NODE, [], {}, []) == []
    assert tasks.blockers(NODE, [task("s1", 1, "n2", "running")], SERVICES, []) == []


def test_held_slots_are_those_of_replicas_that_live_there(tasks):
    found = tasks.held_slots([task("s1", 1, "n1", "running"), task("s1", 2, "n2", "running"), task("s2", None, "n1", "running"),
                              task("s3", 1, "n1", "shutdown", "shutdown")], "n1")
    assert found == ["s1.1"]


def test_what_still_runs_there(tasks):
    lines = tasks.blockers(NODE, [task("s3", 1, "n1", "running", "shutdown"), task("s2", None, "n1", "starting", "shutdown")], SERVICES, ["s3.1"])
    assert lines == ["service db: task db.1 still runs on w1 (its stop grace period is 90 s)", "service agent: task agent still is starting on w1"]


def test_a_node_that_is_down_is_said_to_be(tasks):
    lines = tasks.blockers(dict(NODE, state="down"), [task("s1", 1, "n1", "running", "shutdown")], SERVICES, [])
    assert lines == ["service web: task web.1 still runs on w1 as far as known: the cluster sees the node as down"]


def test_a_replica_has_to_run_elsewhere(tasks):
    gone = task("s1", 1, "n1", "shutdown", "shutdown")
    waiting = task("s1", 1, "", "pending", made=2, Err="no suitable node (scheduling constraints not satisfied on 2 nodes)")
    assert tasks.blockers(NODE, [gone, waiting], SERVICES, ["s1.1"]) == [
        "service web: task web.1 is pending: no suitable node (scheduling constraints not satisfied on 2 nodes)"]
    assert tasks.blockers(NODE, [gone, task("s1", 1, "n2", "preparing", made=2, Message="preparing")], SERVICES, ["s1.1"])
    assert tasks.blockers(NODE, [gone, task("s1", 1, "n2", "running", made=2)], SERVICES, ["s1.1"]) == []


def test_a_place_is_known_from_the_history_too(tasks):
    """A drain that is tried again finds the node drained already."""
    gone, waiting = task("s1", 1, "n1", "shutdown", "shutdown"), task("s1", 1, "", "pending", made=2)
    assert len(tasks.blockers(NODE, [gone, waiting], SERVICES, [])) == 1
    # Not what was in trouble before: it failed here, or ran elsewhere in between.
    assert tasks.blockers(NODE, [task("s1", 1, "n1", "failed", "shutdown"), waiting], SERVICES, []) == []
    assert tasks.blockers(NODE, [gone, task("s1", 1, "n2", "failed", "shutdown", made=2), task("s1", 1, "", "pending", made=3)], SERVICES, []) == []


def test_what_nobody_wants_any_more_blocks_nothing(tasks):
    assert tasks.blockers(NODE, [task("s1", 2, "n1", "shutdown", "shutdown")], SERVICES, ["s1.2"]) == []  # scaled down
    assert tasks.blockers(NODE, [task("s9", 1, "n1", "shutdown", "shutdown")], {}, ["s9.1"]) == []  # removed
    assert tasks.blockers(NODE, [task("s2", None, "n1", "shutdown", "shutdown")], SERVICES, []) == []  # global: no place elsewhere


def test_one_line(tasks):
    assert tasks.in_one_line(["a", "b"]) == "a; b"
    assert tasks.in_one_line(list("abcde")) == "a; b; c and 2 more"


# ---- the module's steps, against an engine that answers from a table -----------------------------


class Engine:
    def __init__(self, nodes, tasks=()):
        self.members, self.list, self.posted = nodes, list(tasks), []

    def get(self, path, query=None, timeout=None):
        if path == "/nodes":
            return list(self.members.values())
        if path.startswith("/nodes/"):
            return self.members[path.rsplit("/", 1)[1]]
        if path == "/services":
            return list(SERVICES.values())
        assert path == "/tasks"
        wanted = __import__("json").loads(query["filters"])
        return [t for t in self.list if t["NodeID"] in wanted.get("node", [t["NodeID"]]) and t["ServiceID"] in wanted.get("service", [t["ServiceID"]])]

    def post(self, path, body=None, query=None, timeout=None):
        node = self.members[path.split("/")[2]]
        node["Spec"] = body
        self.posted.append((path, body["Availability"]))


def engine(*tasks):
    node = {"ID": "n1", "Version": {"Index": 7}, "Spec": {"Role": "worker", "Availability": "active"}, "Description": {"Hostname": "w1"},
            "Status": {"State": "ready", "Addr": "10.0.0.1"}}
    return Engine({"n1": node}, tasks)


def swarm(plugin, engine, **params):
    module = plugin("modules", "clusterctl_swarm")
    return module, module.Swarm(engine, dict({"members": [{"name": "w1", "addr": "10.0.0.1", "ids": ["n1"]}], "slots": [], "wait": 0,
                                              "availability": "drain"}, **params))


def test_schedule_sets_and_reads_back(plugin):
    there = engine(task("s1", 1, "n1", "running"))
    _, made = swarm(plugin, there)
    assert made.schedule() == {"before": "active", "availability": "drain", "slots": ["s1.1"]}
    assert made.changes and there.posted == [("/nodes/n1/update", "drain")]
    _, again = swarm(plugin, there)
    assert again.schedule()["before"] == "drain" and not again.changes


def test_schedule_by_an_older_id_or_by_name(plugin):
    _, made = swarm(plugin, engine(), members=[{"name": "w1", "addr": "10.0.0.1", "ids": ["old"]}])
    assert made.schedule()["availability"] == "drain"
    module, made = swarm(plugin, engine(), members=[{"name": "w2", "addr": "10.0.0.2", "ids": ["old"]}])
    with pytest.raises(module.Refused, match=r"the cluster does not list w2 \(old\)"):
        made.schedule()


def test_vacate_says_what_blocks(plugin):
    module, made = swarm(plugin, engine(task("s3", 1, "n1", "running", "shutdown")), slots=["s3.1"])
    with pytest.raises(module.Refused, match="not drained after 0 s: service db: task db.1 still runs on w1"):
        made.vacate()
    _, made = swarm(plugin, engine(task("s3", 1, "n1", "shutdown", "shutdown"), task("s3", 1, "n2", "running", made=2)), slots=["s3.1"])
    assert made.vacate() == {}
