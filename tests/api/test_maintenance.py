"""Out of service and back: maintenance enter and exit, reboot; what is put back, what stays, and what is refused."""

import json
import os
import signal

import pytest

from harness import wait_for


def state(daemon):
    return json.loads((daemon.double.directory / "cluster.json").read_text())


def availability(daemon, name):
    """What the scheduler has."""
    return daemon.double.members()[name].get("availability", "active")


def aside(daemon, name):
    return daemon.double.members()[name].get("aside", False)


def boots(daemon, name):
    return daemon.double.members()[name].get("boots", 1)


def stay(daemon, name):
    return daemon.node(name)["status"]["maintenance"]


def conditions(daemon, name):
    return {c["type"] for c in daemon.node(name)["status"]["conditions"]}


def ok(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_service(daemon, name, wanted="active"):
    assert daemon.lifecycle(name) == "Allocated" and stay(daemon, name) is None
    assert availability(daemon, name) == wanted and daemon.node(name)["status"]["applied"]["availability"] == wanted
    assert not aside(daemon, name)


def out_of_service(daemon, name):
    assert daemon.lifecycle(name) == "Maintenance" and stay(daemon, name) is not None
    assert availability(daemon, name) == "drain" and daemon.node(name)["status"]["applied"]["availability"] == "drain"


def power_cut(daemon):
    daemon.kill()
    for pid in daemon.processes():
        os.kill(pid, signal.SIGKILL)


# ---- enter and exit -----------------------------------------------------------------------------


def test_enter_and_exit_on_the_holder_of_the_address(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "m1", "--reason", "new memory", "--owner", "ann", "--for", "2h"))
    out_of_service(cluster, "m1")
    assert aside(cluster, "m1")
    record = stay(cluster, "m1")
    assert (record["reason"], record["owner"], record["availability_before"]) == ("new memory", "ann", "active") and record["until"] > record["since"]
    assert cluster.get("/v1/status").ok()["vip"]["holders"] == ["m2"]
    assert cluster.node("m1")["spec"]["availability"] == "active", "what is wanted stays"
    assert "new memory, for ann, since" in ok(cluster.cli("node", "inspect", "m1"))
    ok(cluster.cli("node", "verify", "m1"))  # a node in maintenance can be looked at
    out_of_service(cluster, "m1")

    cluster.kill()
    cluster.start()
    out_of_service(cluster, "m1")
    ok(cluster.cli("node", "maintenance", "exit", "m1"))
    in_service(cluster, "m1")
    assert conditions(cluster, "m1") == set()


@pytest.mark.parametrize("before", ["active", "pause", "drain"])
def test_exit_gives_back_exactly_the_availability_there_was(fleet, before):
    fleet.commission("m1", "m2", "m3")
    fleet.commission("w1", availability=before)
    ok(fleet.cli("node", "maintenance", "enter", "w1", "--force"))
    out_of_service(fleet, "w1")
    ok(fleet.cli("node", "maintenance", "exit", "w1"))
    in_service(fleet, "w1", before)


def test_enter_again_changes_what_is_said_and_not_what_comes_back(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1", "--reason", "one"))
    first = stay(cluster, "w1")
    ok(cluster.cli("node", "maintenance", "enter", "w1", "--reason", "two", "--for", "1h"))
    second = stay(cluster, "w1")
    assert second["reason"] == "two" and second["until"] and second["since"] == first["since"]
    ok(cluster.cli("node", "maintenance", "exit", "w1"))
    in_service(cluster, "w1")


def test_several_are_made_ineligible_first_and_drained_within_the_budget(workers):
    ok(workers.cli("node", "maintenance", "enter", "w1", "w2", "w3", "--max-unavailable", "3"))
    log = [tuple(e[:3]) for e in state(workers)["availability_log"] if e[1] != e[2]]
    assert [e[2] for e in log] == ["pause"] * 3 + ["drain"] * 3
    for name in ("w1", "w2", "w3"):
        out_of_service(workers, name)
        assert stay(workers, name)["availability_before"] == "active"
    refused = workers.cli("node", "maintenance", "enter", "w4", "--max-unavailable", "3")
    assert refused.returncode == 65 and "worker w4 would go down, 3 of 4 are out of use already (w1, w2, w3), and max_unavailable is 3" in refused.stderr
    ok(workers.cli("node", "maintenance", "exit", "w1", "w2", "w3"))
    for name in ("w1", "w2", "w3"):
        in_service(workers, name)


# ---- refusals -----------------------------------------------------------------------------------


def unchanged(daemon, *command):
    before, calls = daemon.get("/v1/nodes").body, len(daemon.double.calls())
    done = daemon.cli(*command)
    assert done.returncode == 65, done.stdout + done.stderr
    assert daemon.get("/v1/nodes").body == before and len(daemon.double.calls()) == calls
    return done.stderr


def test_two_managers_of_three_cannot_go(cluster):
    told = unchanged(cluster, "node", "maintenance", "enter", "m1", "m2", "--allow-outage", "--force")
    assert "while m1 is down only 1 of 3 members would answer, 2 must; etcd has 3 members, 3 of them answer, and m2 would be down too" in told
    ok(cluster.cli("node", "maintenance", "enter", "m1"))
    told = unchanged(cluster, "node", "maintenance", "enter", "m2")
    assert "m1 is in maintenance" in told, "it may go down at any moment"
    for command in (("reboot", "m2"), ("update", "m2", "--yes"), ("demote", "m2", "--yes"), ("decommission", "m2", "--yes"),
                    ("promote", "w1", "--yes")):
        told = unchanged(cluster, "node", *command)
        assert "m1 is in maintenance" in told and "node maintenance exit m1" in told and "powered" not in told, command


def test_the_only_manager_needs_to_be_told_twice(daemon):
    daemon.add("m1", "service-master")
    daemon.add("w1", "service-worker")
    daemon.commission("m1", "w1")
    assert "--allow-outage" in unchanged(daemon, "node", "maintenance", "enter", "m1", "--force")
    ok(daemon.cli("node", "maintenance", "enter", "m1", "--allow-outage"))
    ok(daemon.cli("node", "maintenance", "exit", "m1"))
    in_service(daemon, "m1")


def test_force_steps_over_warnings_only(workers):
    told = unchanged(workers, "node", "maintenance", "enter", "w1", "w2")
    assert "workers w1, w2 would go down, all 4 are in use, and max_unavailable is 1" in told and "--force" in told
    ok(workers.cli("node", "maintenance", "enter", "w1", "w2", "--force"))
    for name in ("w1", "w2"):
        out_of_service(workers, name)


@pytest.mark.parametrize("command", [["drain", "w1"], ["activate", "w1"]])
def test_others_leave_a_node_in_maintenance_alone(cluster, command):
    ok(cluster.cli("node", "maintenance", "enter", "w1", "--reason", "fans"))
    told = unchanged(cluster, "node", *command)
    assert "w1 is in maintenance since" in told and "fans" in told and "node maintenance exit w1" in told


def test_an_update_of_one_in_maintenance_leaves_it_there(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1"))
    ok(cluster.cli("node", "update", "w1", "--yes"))
    out_of_service(cluster, "w1")
    ok(cluster.cli("node", "maintenance", "exit", "w1"))
    in_service(cluster, "w1")


def test_an_update_of_everything_leaves_it_out(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1"))
    job = cluster.wait(cluster.submit("update")["id"], "succeeded")
    assert "w1" not in {n["name"] for n in job["nodes"]} and [w["code"] for w in job["warnings"]] == ["left_out"]


@pytest.mark.parametrize("fields,code", [
    ({"until": "2001-01-01T00:00:00Z"}, "until_past"), ({"until": "tomorrow"}, "bad_until"), ({"for": "-1h"}, "bad_duration"),
    ({"reason": "a\nb"}, "bad_reason"), ({"reason": "x" * 501}, "bad_reason"), ({"until": "2999-01-01T00:00:00Z", "for": "1h"}, "until_and_for"),
    ({"keep_on_failure": True}, "not_for_kind"), ({"nodes": None}, "no_nodes")])
def test_what_means_nothing_is_refused(cluster, fields, code):
    request = {"kind": "maintenance-enter", "nodes": ["w1"], **fields}
    request = {k: v for k, v in request.items() if v is not None}
    assert cluster.send("POST", "/v1/jobs", request).problem(400)["code"] == code


def test_exit_of_a_node_that_is_in_service_is_refused(cluster):
    assert "w1 is Allocated and not in maintenance" in unchanged(cluster, "node", "maintenance", "exit", "w1")


# ---- failure, cancel, crash ---------------------------------------------------------------------


def test_a_drain_that_fails_puts_everything_back(workers):
    workers.double.orders(availability={"do": "blocked:w1", "times": 2})
    job = workers.wait(workers.submit("maintenance-enter", nodes=["w1", "w2"], max_unavailable=2)["id"], "failed")
    in_service(workers, "w1")
    assert {n["name"]: n["state"] for n in job["nodes"]} == {"w1": "failed", "w2": "succeeded"}
    out_of_service(workers, "w2")


def test_nobody_takes_the_address(cluster):
    cluster.double.orders(handover={"do": "fail-host:m1:ucarp:the address 192.0.2.100 was not handed over within 30 s: nobody answers for it", "times": 1})
    done = cluster.cli("node", "maintenance", "enter", "m1")
    assert done.returncode == 1 and "was not handed over within 30 s" in done.stderr and "hint:" in done.stderr
    in_service(cluster, "m1")
    entries = cluster.job("last")["undo"]
    assert [(e["what"], e["state"]) for e in entries] == [("availability", "undone"), ("handover", "undone")]


@pytest.mark.parametrize("now", [False, True], ids=["at the task boundary", "now"])
@pytest.mark.parametrize("playbook", ["availability", "handover"])
def test_a_cancelled_enter_is_put_back(cluster, playbook, now):
    cluster.double.orders(**{playbook: [{"do": "gate:go", "times": 1}]})
    job = cluster.submit("maintenance-enter", nodes=["m1"])
    cluster.double.wait_gate("go")
    cluster.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": now}).ok(202)
    cluster.double.open_gate("go")
    cluster.wait(job["id"], "cancelled")
    in_service(cluster, "m1")
    assert conditions(cluster, "m1") == set()


@pytest.mark.parametrize("playbook", ["availability", "handover"])
def test_a_power_cut_in_an_enter_puts_it_back(cluster, playbook):
    cluster.double.orders(**{playbook: [{"do": "gate:go", "times": 1}]})
    job = cluster.submit("maintenance-enter", nodes=["m1"])
    cluster.double.wait_gate("go")
    power_cut(cluster)
    cluster.start()
    cluster.wait(job["id"], "interrupted")
    in_service(cluster, "m1")
    ok(cluster.cli("job", "resume", job["id"]))
    out_of_service(cluster, "m1")


def test_exit_of_a_node_that_is_not_well_says_why_and_changes_nothing(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "m1"))
    cluster.double.orders(verify="unhealthy:m1:etcd:disk is slow")
    done = cluster.cli("node", "maintenance", "exit", "m1")
    assert done.returncode == 1 and "m1: Report unhealthy services: etcd: disk is slow" in done.stderr
    out_of_service(cluster, "m1")
    assert aside(cluster, "m1") and "Failed" in conditions(cluster, "m1")
    cluster.double.orders()
    ok(cluster.cli("node", "maintenance", "exit", "m1"))
    in_service(cluster, "m1")
    assert conditions(cluster, "m1") == set()


def test_exit_that_cannot_give_it_back_stays_out(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "m1"))
    cluster.double.orders(availability={"do": "fail:2", "times": 1})
    assert cluster.cli("node", "maintenance", "exit", "m1").returncode == 1
    out_of_service(cluster, "m1")
    assert aside(cluster, "m1"), "it does not take part either"
    ok(cluster.cli("node", "maintenance", "exit", "m1"))
    in_service(cluster, "m1")


def test_a_node_in_maintenance_can_be_decommissioned(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1"))
    ok(cluster.cli("node", "decommission", "w1", "--yes"))
    assert cluster.lifecycle("w1") == "Decommissioned" and stay(cluster, "w1") is None


# ---- overdue ------------------------------------------------------------------------------------


def test_overdue_is_said_once(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1", "--reason", "fans", "--for", "1s"))
    wait_for(lambda: "MaintenanceOverdue" in conditions(cluster, "w1"), "it to be overdue")
    assert "MaintenanceOverdue" in ok(cluster.cli("node", "ls")) and "fans" in ok(cluster.cli("status"))
    cluster.restart()
    ok(cluster.cli("node", "verify", "w1"))
    events = [e for e in cluster.get("/v1/events?since=0&limit=10000").ok()["events"] if e["type"] == "node.maintenance_overdue"]
    assert [e["node"] for e in events] == ["w1"]
    out_of_service(cluster, "w1")
    ok(cluster.cli("node", "maintenance", "exit", "w1"))
    assert conditions(cluster, "w1") == set()


# ---- reboot -------------------------------------------------------------------------------------


def test_reboot_of_managers_and_workers(workers):
    ok(workers.cli("node", "reboot", "m1", "m2", "w1", "w2", "--max-unavailable", "2"))
    assert state(workers)["reboot_log"] == [["m1", "drain", True], ["m2", "drain", True], ["w1", "drain", False], ["w2", "drain", False]]
    for name in ("m1", "m2", "w1", "w2"):
        in_service(workers, name)
        assert boots(workers, name) == 2 and conditions(workers, name) == set()
    targets = [call["targets"] for call in workers.double.calls("reboot")]
    assert targets == [["m1"], ["m2"], ["w1", "w2"]]


def test_reboot_in_maintenance_stays_there(cluster):
    ok(cluster.cli("node", "maintenance", "enter", "w1"))
    ok(cluster.cli("node", "reboot", "w1"))
    out_of_service(cluster, "w1")
    assert boots(cluster, "w1") == 2
    ok(cluster.cli("node", "maintenance", "exit", "w1"))
    in_service(cluster, "w1")


def test_a_node_that_does_not_come_back_stays_out(workers):
    workers.double.orders(reboot="no-return:w1")
    done = workers.cli("node", "reboot", "w1", "w2")
    assert done.returncode == 1
    assert "did not come back within" in done.stderr and "clusterctl node maintenance exit w1" in done.stderr
    out_of_service(workers, "w1")
    assert "Failed" in conditions(workers, "w1") and workers.node("w1")["status"]["presence"] == "Disappeared"
    in_service(workers, "w2")
    assert boots(workers, "w2") == 1, "no further batch"
    workers.double.orders()
    ok(workers.cli("node", "maintenance", "exit", "w1"))
    in_service(workers, "w1")
    assert conditions(workers, "w1") == set()


def test_a_drain_that_fails_reboots_nothing(cluster):
    cluster.double.orders(availability={"do": "blocked:w1", "times": 1})
    assert cluster.cli("node", "reboot", "w1").returncode == 1
    in_service(cluster, "w1")
    assert cluster.double.calls("reboot") == []


def test_the_daemon_dies_in_a_reboot(cluster):
    cluster.double.orders(reboot="gate:go")
    job = cluster.submit("reboot", nodes=["m1"])
    cluster.double.wait_gate("go")
    cluster.kill()
    cluster.double.open_gate("go")
    cluster.start()
    cluster.wait(job["id"], "succeeded")
    in_service(cluster, "m1")
    assert boots(cluster, "m1") == 2


def test_a_reboot_that_broke_off_is_not_done_twice(cluster):
    """The node has rebooted, the run that waited for it died: what goes on from it does not reboot again."""
    cluster.double.orders(verify=[{"do": "gate:go", "times": 1}])
    job = cluster.submit("reboot", nodes=["m1"])
    cluster.double.wait_gate("go")
    power_cut(cluster)
    cluster.start()
    cluster.wait(job["id"], "interrupted")
    out_of_service(cluster, "m1")
    assert boots(cluster, "m1") == 2 and conditions(cluster, "m1") >= {"Failed", "Interrupted"}
    ok(cluster.cli("job", "resume", job["id"]))
    assert boots(cluster, "m1") == 2
    in_service(cluster, "m1")
    assert conditions(cluster, "m1") == set()
    ok(cluster.cli("node", "reboot", "m1"))
    assert boots(cluster, "m1") == 3


# ---- looking ------------------------------------------------------------------------------------


def test_manager_ls_and_cluster_info(cluster):
    rows = {line.split()[0]: line.split() for line in ok(cluster.cli("manager", "ls")).splitlines()[1:]}
    assert [rows[m][1] for m in ("m1", "m2", "m3")] == ["Leader", "Reachable", "Reachable"] and rows["m1"][4] == "holder"
    cluster.double.orders(down=["m1"])
    rows = {line.split()[0]: line.split() for line in ok(cluster.cli("manager", "ls", "--refresh")).splitlines()[1:]}
    assert [rows[m][1] for m in ("m1", "m2", "m3")] == ["Unreachable", "Leader", "Reachable"]
    shown = ok(cluster.cli("cluster", "info"))
    assert "Nodes:        4 (4 Allocated)" in shown and "3 members, 2 reachable, 0 more may fail, leader m2" in shown and "192.0.2.100" in shown
    services = {s["name"]: s for s in cluster.get("/v1/services").ok()["services"]}
    assert services["docker"]["nodes"] == 4 and services["docker"]["versions"] == {"20.10.24": 4} and services["etcd"]["quorum"]["members"] == 3
