"""drain, activate and update: one batch after the other, and whatever happens, nodes get back the availability they had."""

import json
import os
import signal

import pytest

from harness import wait_for


def availability(daemon, name):
    """What the scheduler has."""
    return daemon.double.members()[name].get("availability", "active")


def settings(daemon):
    """Every availability that was ever set to something else, in order."""
    state = json.loads((daemon.double.directory / "cluster.json").read_text())
    return [tuple(entry) for entry in state.get("availability_log", []) if entry[1] != entry[2]]


def spec_and_applied(daemon, name):
    node = daemon.node(name)
    return node["spec"]["availability"], node["status"]["applied"]["availability"]


def states(job):
    return {node["name"]: node["state"] for node in job["nodes"]}


def ledger(job):
    return [(e["node"], e["from"], e["to"], e["state"]) for e in job["undo"]]


def power_cut(daemon):
    daemon.kill()
    for pid in daemon.processes():
        os.kill(pid, signal.SIGKILL)


# ---- drain, activate ----------------------------------------------------------------------------


def test_drain_and_activate(cluster):
    done = cluster.cli("node", "drain", "w1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert availability(cluster, "w1") == "drain" and spec_and_applied(cluster, "w1") == ("drain", "drain")
    assert cluster.lifecycle("w1") == "Allocated"
    call = cluster.double.calls("availability")[-1]
    assert call["targets"] == ["w1"] and set(call["peers"]) == {"m1", "m2", "m3"}
    assert cluster.cli("node", "verify", "w1").returncode == 0  # a drained node is in good order
    done = cluster.cli("node", "activate", "w1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert availability(cluster, "w1") == "active" and spec_and_applied(cluster, "w1") == ("active", "active")


def test_the_list_shows_what_is_applied_and_what_is_wanted(cluster):
    cluster.double.orders(availability="gate:go")
    job = cluster.submit("drain", nodes=["w1"])
    cluster.double.wait_gate("go")
    row = next(line for line in cluster.cli("node", "ls").stdout.splitlines() if " w1 " in line)
    assert "active→drain" in row
    cluster.double.open_gate("go")
    cluster.wait(job["id"], "succeeded")
    row = next(line for line in cluster.cli("node", "ls").stdout.splitlines() if " w1 " in line)
    assert " drain " in row and "→" not in row


def test_a_drain_that_misses_its_deadline_says_what_blocks_and_is_put_back(cluster):
    why = "service web: task web.1 is pending: no suitable node (scheduling constraints not satisfied on 3 nodes)"
    cluster.double.orders(availability="blocked:w1:" + why)
    done = cluster.cli("node", "drain", "w1", "--deadline", "45s")
    assert done.returncode == 1
    assert "error: job" in done.stderr and "w1: swarm: Wait until nothing runs there any more: on m1: not drained after 45 s: " + why in done.stderr
    assert availability(cluster, "w1") == "active" and spec_and_applied(cluster, "w1") == ("active", "active")
    assert settings(cluster) == [("w1", "active", "drain"), ("w1", "drain", "active")]
    shown = cluster.cli("job", "inspect", "last").stdout
    assert [line.split() for line in shown.splitlines() if "undone" in line] == [["w1", "availability", "active", "drain", "undone"]]
    call = cluster.double.calls("availability")[0]
    assert json.loads((call["dir"] / "inventory.json").read_text())["all"]["vars"]["clusterctl_drain_deadline"] == 45


def test_evidence_of_a_drain_is_kept_when_asked(cluster):
    cluster.double.orders(availability="blocked:w1")
    job = cluster.wait(cluster.submit("drain", nodes=["w1"], keep_on_failure=True)["id"], "failed")
    assert availability(cluster, "w1") == "drain" and ledger(job) == [("w1", "active", "drain", "kept")]


def test_exit_code_nought_alone_is_no_drain(cluster):
    cluster.double.orders(availability=[{"do": "nofacts", "times": 1}])
    job = cluster.wait(cluster.submit("drain", nodes=["w1"])["id"], "failed")
    assert "was not reported" in job["error"] and availability(cluster, "w1") == "active"


@pytest.mark.parametrize("now", [False, True], ids=["at the task boundary", "now"])
def test_a_cancelled_drain_is_put_back(cluster, now):
    cluster.double.orders(availability=[{"do": "gate:go", "times": 1}])
    job = cluster.submit("drain", nodes=["w1"])
    cluster.double.wait_gate("go")
    assert availability(cluster, "w1") == "drain"
    cluster.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": now}).ok(202)
    if not now:
        cluster.double.open_gate("go")
    job = cluster.wait(job["id"], "cancelled")
    assert availability(cluster, "w1") == "active" and spec_and_applied(cluster, "w1") == ("active", "active")
    assert ledger(job) == [("w1", "active", "drain", "undone")]


def test_a_power_cut_puts_a_drain_back_as_soon_as_the_daemon_is_there(cluster):
    cluster.double.orders(availability=[{"do": "gate:go", "times": 1}])
    job = cluster.submit("drain", nodes=["w1"])
    cluster.double.wait_gate("go")
    power_cut(cluster)
    assert availability(cluster, "w1") == "drain"
    cluster.start()
    job = cluster.wait(job["id"], "interrupted")
    assert availability(cluster, "w1") == "active" and spec_and_applied(cluster, "w1") == ("active", "active")
    assert ledger(job) == [("w1", "active", "drain", "undone")]
    # What the dead run still does on the manager is ended before.
    calls = cluster.double.calls("availability")
    assert json.loads((calls[-1]["dir"] / "inventory.json").read_text())["all"]["vars"]["clusterctl_fence_runs"] == [
        calls[0]["env"]["CLUSTERCTL_RUN_ID"]]


def test_a_second_power_cut_hits_the_undo(cluster):
    cluster.double.orders(availability=[{"do": "gate:one", "times": 1}])
    job = cluster.submit("drain", nodes=["w1"])
    cluster.double.wait_gate("one")
    power_cut(cluster)
    cluster.double.orders(availability=[{"do": "kill", "times": 1}])
    cluster.start()
    job = cluster.wait(job["id"], "interrupted")
    assert availability(cluster, "w1") == "active" and ledger(job)[0][3] == "undone"


def test_kill_nine_of_the_daemon_does_not_disturb_a_drain(cluster):
    cluster.double.orders(availability="gate:go")
    job = cluster.submit("drain", nodes=["w1"])
    cluster.double.wait_gate("go")
    cluster.kill()
    cluster.double.open_gate("go")
    cluster.start()
    job = cluster.wait(job["id"], "succeeded")
    assert spec_and_applied(cluster, "w1") == ("drain", "drain") and len(cluster.double.calls("availability")) == 1


def test_a_target_that_is_off_is_drained_through_a_manager(cluster):
    cluster.double.orders(down=["w1"])
    cluster.wait(cluster.submit("check", nodes=["w1"])["id"], "failed")
    assert cluster.node("w1")["status"]["presence"] == "Disappeared"
    cluster.wait(cluster.submit("drain", nodes=["w1"])["id"], "succeeded")
    assert cluster.node("w1")["status"]["presence"] == "Disappeared", "nobody has seen it"


def test_refusals_of_a_drain(fleet):
    problem = fleet.send("POST", "/v1/jobs", {"kind": "drain", "nodes": ["w1"]}).problem(409, "transition")
    assert "clusterctl node commission w1" in problem["hint"]
    for arguments in (["drain"], ["activate"], ["drain", "w1", "--deadline", "soon"],
                      ["update", "w1", "--drain", "--no-drain"]):
        done = fleet.cli("node", *arguments)
        assert done.returncode == 64 and done.stderr.startswith("error: "), (arguments, done)
    assert fleet.get("/v1/jobs").ok()["jobs"] == [] and fleet.double.calls() == []


def test_patch_names_the_command(cluster):
    problem = cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"availability": "drain"}}).problem(409, "needs_job")
    assert "clusterctl node drain w1" in problem["hint"]


# ---- update -------------------------------------------------------------------------------------


def rounds(daemon, since=0):
    """The runs as ("site", [targets]), in order."""
    return [(call["playbook"], call["targets"]) for call in daemon.double.calls()[since:]]


def test_update_rolls_over_everything(workers):
    before = len(workers.double.calls())
    done = workers.cli("node", "update", "--yes", "--max-unavailable", "2", "--var", "docker_version=24")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = rounds(workers, before)
    assert seen[0] == ("check", ["m1", "m2", "m3", "w1", "w2", "w3", "w4"])
    assert [targets for name, targets in seen if name == "site"] == [["m1"], ["m2"], ["m3"], ["w1", "w2"], ["w3", "w4"]]
    batch = [("availability", ["w1", "w2"]), ("site", ["w1", "w2"]), ("verify", ["w1", "w2"]), ("availability", ["w1", "w2"])]
    begin = seen.index(batch[0])
    assert seen[begin:begin + 4] == batch
    # Before each manager the majorities are looked at.
    assert [name for name, _ in seen].count("observe") == 3
    for name in ("m1", "m2", "m3", "w1", "w2", "w3", "w4"):
        assert workers.lifecycle(name) == "Allocated" and availability(workers, name) == "active"
    job = workers.job("last")
    assert {entry[3] for entry in ledger(job)} == {"undone"} and len(job["undo"]) == 7
    for name in ("m1", "w3"):
        assert [s for s in settings(workers) if s[0] == name] == [(name, "active", "drain"), (name, "drain", "active")]


def test_an_update_without_a_change_drains_nothing(workers):
    job = workers.wait(workers.submit("update", nodes=["w1"])["id"], "succeeded")
    assert [stage["name"] for stage in job["stages"]] == ["check", "observe", "site", "verify"] and settings(workers) == []


def test_changed_variables_are_applied_by_an_update(workers):
    workers.send("PATCH", "/v1/nodes/w1", {"spec": {"vars": {"docker_daemon_options": {"debug": True}}}}).ok()
    assert [c["type"] for c in workers.node("w1")["status"]["conditions"]] == ["Drifted"]
    before = workers.node("w1")["status"]["applied"]["vars_fingerprint"]
    job = workers.wait(workers.submit("update", nodes=["w1"])["id"], "succeeded")
    assert [stage["name"] for stage in job["stages"]][2:] == ["drain", "site", "verify", "restore"]
    node = workers.node("w1")
    assert node["status"]["conditions"] == [] and node["status"]["applied"]["vars_fingerprint"] != before


def test_an_update_stops_at_the_first_failure(workers):
    workers.double.orders(site="fail-host:w2:docker:the package is held")
    done = workers.cli("node", "update", "w1", "w2", "w3", "-e", '{"docker_version": "24"}')
    assert done.returncode == 1
    assert "w2: docker: main docker: the package is held (1 done, 1 failed, 1 untouched)" in done.stderr
    job = workers.job("last")
    assert states(job) == {"w1": "succeeded", "w2": "failed", "w3": "untouched"}
    assert workers.lifecycle("w2") == "Maintenance" and [c["type"] for c in workers.node("w2")["status"]["conditions"]] == ["Failed"]
    assert workers.lifecycle("w1") == workers.lifecycle("w3") == "Allocated"
    assert availability(workers, "w2") == "active" and not [s for s in settings(workers) if s[0] == "w3"]
    assert "w2" in workers.double.members(), "nothing is torn down"
    # It spends the budget until it is in order again; the way on is the same command.
    problem = workers.send("POST", "/v1/jobs", {"kind": "update", "nodes": ["w3"]}).problem(409, "budget")
    assert "w2" in problem["detail"]
    workers.double.orders()
    workers.wait(workers.submit("update", nodes=["w2", "w3"])["id"], "succeeded")
    assert workers.lifecycle("w2") == "Allocated"


def test_max_failures(workers):
    workers.double.orders(site="fail-host:w1:docker:no")
    job = workers.wait(workers.submit("update", nodes=["w1", "w2", "w3", "w4"], max_failures=2, max_unavailable=2)["id"], "failed")
    assert states(job) == {"w1": "failed", "w2": "succeeded", "w3": "succeeded", "w4": "succeeded"}
    assert [stage["nodes"] for stage in job["stages"] if stage["name"] == "site"] == [["w1", "w2"], ["w3"], ["w4"]]


def test_a_cancelled_update_puts_its_batch_back(workers):
    workers.double.orders(site="gate:go:docker")
    job = workers.submit("update", nodes=["w1", "w2"], vars={"docker_version": "24"})
    workers.double.wait_gate("go")
    assert availability(workers, "w1") == "drain" and workers.lifecycle("w1") == "Maintenance" and workers.lifecycle("w2") == "Allocated"
    workers.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": True}).ok(202)
    job = workers.wait(job["id"], "cancelled")
    assert availability(workers, "w1") == "active" and states(job)["w2"] == "untouched"
    assert ledger(job) == [("w1", "active", "drain", "undone")]


def test_a_power_cut_in_an_update_puts_its_batch_back(workers):
    workers.double.orders(site="gate:go:docker")
    job = workers.submit("update", nodes=["w1", "w2"], vars={"docker_version": "24"})
    workers.double.wait_gate("go")
    power_cut(workers)
    workers.start()
    job = workers.wait(job["id"], "interrupted")
    assert availability(workers, "w1") == "active" and len(workers.double.calls("site")) == 3  # two commissions, and this one once
    assert workers.lifecycle("w1") == "Maintenance" and workers.lifecycle("w2") == "Allocated"
    assert {c["type"] for c in workers.node("w1")["status"]["conditions"]} == {"Failed", "Interrupted"}
    workers.double.orders()
    workers.wait(workers.submit("update", nodes=["w1"])["id"], "succeeded")
    assert workers.lifecycle("w1") == "Allocated" and workers.node("w1")["status"]["conditions"] == []


def test_kill_nine_in_an_update_and_it_rolls_on(workers):
    workers.double.orders(site="gate:go:docker")
    job = workers.submit("update", nodes=["w1", "w2"], vars={"docker_version": "24"})
    workers.double.wait_gate("go")
    workers.kill()
    workers.double.open_gate("go")
    workers.start()
    job = workers.wait(job["id"], "succeeded")
    assert [stage["name"] for stage in job["stages"]] == ["check", "observe"] + ["drain", "site", "verify", "restore"] * 2
    assert availability(workers, "w1") == availability(workers, "w2") == "active"


def test_a_manager_that_cannot_be_spared_is_not_updated(workers):
    workers.double.orders(down=["m3"])
    workers.wait(workers.submit("verify", nodes=["m3"])["id"], "failed")
    problem = workers.send("POST", "/v1/jobs", {"kind": "update", "nodes": ["m1"]}).problem(409, "quorum")
    assert "while m1 is down only 1 of 3 members would answer, 2 must" in problem["detail"]
    workers.wait(workers.submit("update", nodes=["w1"])["id"], "succeeded")


def test_few_managers_need_allow_outage(daemon):
    daemon.add("m1", "service-master")
    daemon.commission("m1")
    problem = daemon.send("POST", "/v1/jobs", {"kind": "update", "nodes": ["m1"]}).problem(409, "quorum")
    assert "--allow-outage" in problem["hint"]
    daemon.wait(daemon.submit("update", nodes=["m1"], allow_outage=True)["id"], "succeeded")


def test_the_plan_shows_the_batches(workers):
    before = len(workers.double.calls())
    done = workers.cli("node", "update", "m1", "w1", "w2", "--plan", "--var", "docker_version=24")
    assert done.returncode == 0
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "3. drain (1 node), batch 1" in lines and "11. drain (1 node), batch 3" in lines
    assert len(workers.double.calls()) == before


def test_without_names_it_asks(workers):
    done = workers.cli("node", "update")
    assert done.returncode == 64 and "--yes" in done.stderr


def test_a_node_with_a_finding_is_not_begun(workers):
    workers.double.orders(check="problem:w2:docker:no space left")
    job = workers.wait(workers.submit("update", nodes=["w1", "w2"])["id"], "failed")
    assert job["reason"] == "check_failed" and "nothing was changed" in job["error"]
    assert wait_for(lambda: workers.lifecycle("w1") == "Allocated", "w1") and settings(workers) == []
