"""A way out of everything: work that hangs while it cleans up, cancels at the worst moments, folders that are gone, runs that say nothing,
nodes that are changed under a job."""

import json
import shutil

import pytest

from harness import wait_for


@pytest.fixture(name="one")
def one_node(daemon):
    daemon.add("m1", "service-master")
    return daemon


def stage(daemon, job, name):
    return next((s for s in daemon.job(job)["stages"] if s["name"] == name), None)


def is_running(daemon, job, name):
    found = stage(daemon, job, name)
    return found and found["state"] == "running"


def conditions(daemon, name):
    return {c["type"] for c in daemon.node(name)["status"]["conditions"]}


def cancel(daemon, job, now=False):
    return daemon.send("POST", "/v1/jobs/%s/cancel" % job, {"now": now}).ok(202)


# ---- what hangs while it puts things in order ----------------------------------------------------


def test_a_cleanup_that_hangs_is_ended_by_now_given_twice(one):
    one.double.orders(site="fail-host:m1:docker:boom", cleanup="hang")
    job = one.submit("commission", nodes=["m1"])["id"]
    wait_for(lambda: is_running(one, job, "cleanup"), "the cleanup")
    cancel(one, job, now=True)
    assert is_running(one, job, "cleanup"), "once is not enough: it would leave the node as it is"
    one.restart()
    told = one.cli("job", "cancel", job, "--now")
    assert told.returncode == 0 and "once more" in told.stderr, told
    ended = one.wait(job, "failed")
    assert ended["nodes"][0]["message"] == "boom" and ended["nodes"][0]["cleanup"].startswith("failed: ")
    assert one.lifecycle("m1") == "Unallocated" and "Dirty" in conditions(one, "m1")
    one.double.orders()
    assert one.commission("m1")["stages"][0]["name"] == "cleanup"
    assert conditions(one, "m1") == set()


def test_an_undo_that_hangs_is_ended_by_now_given_twice(one):
    one.add("w1", "service-worker")
    one.add("w2", "service-worker")
    one.commission("m1", "w1", "w2")
    one.double.orders(availability={"do": "hang", "times": 2})
    job = one.submit("drain", nodes=["w1"])["id"]
    wait_for(lambda: is_running(one, job, "drain"), "the drain")
    cancel(one, job, now=True)
    wait_for(lambda: is_running(one, job, "undo"), "the undo")
    cancel(one, job, now=True)
    one.wait(job, "cancelled")
    assert "NeedsVerification" in conditions(one, "w1")
    one.double.orders()
    one.wait(one.submit("activate", nodes=["w1"])["id"], "succeeded")


def test_what_could_not_be_put_back_is_what_the_scheduler_has(one):
    one.add("w1", "service-worker")
    one.add("w2", "service-worker")
    one.commission("m1", "w1", "w2")
    one.double.orders(site="gate:go", availability={"do": "gate:drained", "times": 1})
    job = one.submit("update", nodes=["w1"], drain="always")["id"]
    one.double.wait_gate("drained")
    one.double.orders(site="gate:go", availability="fail:2")
    one.double.open_gate("drained")
    one.double.wait_gate("go")
    cancel(one, job, now=True)
    one.wait(job, "cancelled")
    assert json.loads((one.double.directory / "cluster.json").read_text())["nodes"]["w1"]["availability"] == "drain"
    node = one.node("w1")
    assert node["status"]["applied"]["availability"] == "drain" and node["spec"]["availability"] == "active"


# ---- a cancel at the last moment -----------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, "2s"])
def test_a_cancel_in_the_last_task_of_a_stage_cleans_as_well(one, limit):
    one.double.orders(site="gate:go:swarm")
    job = one.submit("commission", nodes=["m1"], **({"timeout": limit} if limit else {}))["id"]
    one.double.wait_gate("go")
    if limit:
        wait_for(lambda: one.job(job)["cancel_requested"], "the time limit")
    else:
        cancel(one, job)
    one.double.open_gate("go")
    ended = one.wait(job, "failed" if limit else "cancelled")
    assert ended["nodes"][0]["cleanup"] == "cleaned", ended["nodes"]
    assert one.double.members() == {}
    assert one.lifecycle("m1") == "Unallocated" and "Dirty" not in conditions(one, "m1")


def test_a_cancel_of_a_paused_job_cleans_what_was_begun(one):
    one.double.orders(site="gate:go")
    job = one.submit("commission", nodes=["m1"])["id"]
    one.double.wait_gate("go")
    one.send("POST", "/v1/jobs/%s/pause" % job, {}).ok(202)
    one.double.open_gate("go")
    wait_for(lambda: one.job(job)["state"] == "paused", "the pause")
    cancel(one, job)
    ended = one.wait(job, "cancelled")
    assert ended["nodes"][0]["state"] == "cancelled" and ended["nodes"][0]["cleanup"] == "cleaned"
    assert one.double.members() == {}


def test_a_cancel_behind_a_converged_batch_lets_it_be_verified(one):
    one.add("w1", "service-worker")
    one.add("w2", "service-worker")
    one.commission("m1", "w1", "w2")
    one.double.orders(site={"do": "gate:go:swarm", "times": 1})
    job = one.submit("update", nodes=["w1", "w2"], max_unavailable=1, drain="never")["id"]
    one.double.wait_gate("go")
    cancel(one, job)
    one.double.open_gate("go")
    ended = one.wait(job, "cancelled")
    states = {n["name"]: n["state"] for n in ended["nodes"]}
    assert sorted(states.values()) == ["succeeded", "untouched"], states
    assert {one.lifecycle(n) for n in ("w1", "w2")} == {"Allocated"}
    assert conditions(one, "w1") | conditions(one, "w2") == set()


# ---- runs that say nothing, or are gone ----------------------------------------------------------


def test_a_run_without_a_word_may_have_done_anything(one):
    one.double.orders(site="silent")
    ended = one.commission("m1", state="failed")
    assert ended["nodes"][0]["cleanup"] == "cleaned" and one.double.members() == {}
    one.double.orders()
    one.commission("m1")
    one.double.orders(cleanup="silent")
    one.wait(one.submit("decommission", nodes=["m1"])["id"], "failed")
    assert one.lifecycle("m1") == "Cancelled" and "NotCleaned" in conditions(one, "m1")


def test_a_run_whose_folder_is_gone_was_interrupted(one):
    one.double.orders(site="fork-hang")
    job = one.submit("commission", nodes=["m1"])["id"]
    pid = int(wait_for(lambda: (one.double.directory / "grandchild.pid").exists() and (one.double.directory / "grandchild.pid").read_text().strip(),
                       "the playbook"))
    run = stage(one, job, "site")["run"]
    shutil.rmtree(one.state_dir / "runs" / run)
    one.wait(job, "interrupted")
    wait_for(lambda: pid not in one.processes(), "what is left of the run to end")
    assert "Dirty" in conditions(one, "m1") and one.node("m1")["status"]["fence_runs"] == [run]


# ---- nodes that are changed under a job ----------------------------------------------------------


@pytest.mark.parametrize("change", [{"addr": "192.0.2.99"}, {"ssh": {"port": 2222}}])
def test_where_a_node_is_does_not_change_while_a_job_works_on_it(one, change):
    one.double.orders(site="gate:go")
    job = one.submit("commission", nodes=["m1"])["id"]
    one.double.wait_gate("go")
    before = one.get("/v1/nodes").body
    problem = one.send("PATCH", "/v1/nodes/m1", {"spec": change}).problem(409, "busy")
    assert job in problem["detail"] and job in problem["hint"]
    assert one.get("/v1/nodes").body == before
    one.double.open_gate("go")
    one.wait(job, "succeeded")
    one.send("PATCH", "/v1/nodes/m1", {"spec": change}).ok()


def test_a_node_that_was_changed_since_begins_anew(one):
    one.double.orders(site="fail-host:m1:docker:boom")
    job = one.commission("m1", state="failed", keep_on_failure=True)
    one.send("PATCH", "/v1/nodes/m1", {"spec": {"addr": "192.0.2.99"}}).ok()
    one.double.orders()
    plan = one.send("POST", "/v1/jobs/%s/resume" % job["id"], {"dry_run": True}).ok()["plan"]
    assert "check" in [s["name"] for s in plan["stages"]]


def test_what_was_removed_since_is_left_out_of_a_resume(one):
    one.double.orders(check="unreachable:m1")
    job = one.commission("m1", state="failed")
    one.ask("DELETE", "/v1/nodes/m1").ok(204)
    problem = one.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).problem(409, "removed")
    assert "m1" in problem["detail"]


# ---- what is kept --------------------------------------------------------------------------------


def test_a_long_job_is_kept_like_the_ones_that_ended_with_it(stopped):
    stopped.config["jobs"] = {"keep": 10}
    stopped.start()
    for name in ("m1", "m2"):
        stopped.add(name, "service-master")
    stopped.double.orders(site="gate:go")
    job = stopped.submit("commission", nodes=["m1"])["id"]
    stopped.double.wait_gate("go")
    others = [stopped.wait(stopped.submit("check", nodes=["m2"])["id"], "succeeded")["id"] for _ in range(12)]
    stopped.double.open_gate("go")
    stopped.wait(job, "succeeded")
    wait_for(lambda: stopped.get("/v1/jobs/" + others[1]).status == 404, "old jobs to be forgotten")
    assert stopped.job(job)["state"] == "succeeded" and stopped.job(others[-1])["state"] == "succeeded"
