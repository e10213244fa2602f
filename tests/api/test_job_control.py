"""Jobs under control: queue, pause, resume, retry, cancel, the fence, time limits."""

import concurrent.futures
import json
import os
import signal

import pytest

from harness import wait_for


def fences(daemon, playbook):
    """Runs that the latest call of a playbook had to end first."""
    inventory = json.loads((daemon.double.calls(playbook)[-1]["dir"] / "inventory.json").read_text())
    return inventory["all"]["vars"]["clusterctl_fence_runs"]


def run_of(job, stage):
    return next(s["run"] for s in job["stages"] if s["name"] == stage)


def power_cut(daemon):
    daemon.kill()
    for pid in daemon.processes():
        os.kill(pid, signal.SIGKILL)


def in_state(daemon, job_id, state):
    return wait_for(lambda: (lambda j: j if j["state"] == state else None)(daemon.job(job_id)), "job %s to be %s" % (job_id, state))


def test_of_twenty_requests_for_one_node_exactly_one_is_accepted(fleet):
    fleet.double.orders(site="gate:go")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1"]}), range(20)))
    accepted = [a.json for a in answers if a.status == 202]
    assert len(accepted) == 1
    for answer in answers:
        if answer.status != 202:
            assert accepted[0]["id"] in answer.problem(409, "duplicate")["detail"]
    fleet.double.open_gate("go")
    fleet.wait(accepted[0]["id"], "succeeded")
    assert len(fleet.double.calls("site")) == 1 and len(fleet.get("/v1/jobs").ok()["jobs"]) == 1


@pytest.mark.parametrize("status, body", [
    (400, {"kind": "dance", "nodes": ["m1"]}),
    (400, {"kind": "commission", "nodes": "m1"}),
    (400, {"kind": "commission", "nodes": ["m1"], "timeout": "soon"}),
    (400, {"kind": "commission", "nodes": ["m1"], "silence_timeout": 0}),
    (404, {"kind": "commission", "nodes": ["m1", "nobody"]}),
    (409, {"kind": "decommission", "nodes": ["m1"]}),
    (422, {"kind": "commission", "nodes": ["w1"]}),
])
def test_a_refused_request_never_blocks_the_next(fleet, status, body):
    assert fleet.send("POST", "/v1/jobs", body).status == status
    assert fleet.get("/v1/jobs").ok()["jobs"] == []
    fleet.commission("m1")


def test_a_waiting_job_says_behind_which_on_which_node_since_when(cluster):
    cluster.double.orders(verify="gate:go")
    first = cluster.submit("verify", nodes=["w1"])
    cluster.double.wait_gate("go")
    second = cluster.submit("decommission", nodes=["w1"])
    waiting = cluster.job(second["id"])["waiting"]
    assert waiting == {"job": first["id"], "node": "w1", "reason": "node", "since": second["created"]}
    line = "waiting for job %s on w1 since " % first["id"]
    assert line in cluster.cli("job", "ls").stdout and line in cluster.cli("job", "inspect", second["id"]).stdout
    cluster.double.open_gate("go")
    assert "waiting" not in cluster.wait(second["id"], "succeeded")


def test_the_removal_of_a_dead_node_never_waits_behind_bulk_work(stopped):
    stopped.config["jobs"] = {"max_parallel_runs": 1}
    daemon = stopped.start()
    for name in ("m1", "m2", "m3"):
        daemon.add(name, "service-master")
    daemon.add("w1", "service-worker")
    daemon.add("w2", "service-worker")
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
    daemon.commission("m1", "m2", "m3", "w1")
    daemon.double.orders(site="gate:go", down=["m3"])
    bulk = daemon.submit("commission", nodes=["w2"])
    daemon.double.wait_gate("go")
    queued = daemon.submit("verify", nodes=["w1"])
    assert daemon.job(queued["id"])["waiting"]["reason"] == "parallel_runs"
    daemon.wait(daemon.submit("decommission", nodes=["m3"], force=True, powered_off=True)["id"], "succeeded")
    assert daemon.job(bulk["id"])["state"] == "running" and daemon.job(queued["id"])["state"] == "queued"
    daemon.double.open_gate("go")
    daemon.wait(bulk["id"], "succeeded")
    daemon.wait(queued["id"], "succeeded")


def test_pause_at_the_next_gate_survives_a_restart(fleet):
    fleet.double.orders(check="gate:go")
    job = fleet.submit("commission", nodes=["m1"])
    fleet.double.wait_gate("go")
    told = fleet.cli("job", "pause", job["id"])
    assert told.returncode == 0 and "pauses at its next gate" in told.stdout
    assert fleet.job(job["id"])["pause_requested"]
    fleet.double.open_gate("go")
    assert in_state(fleet, job["id"], "paused")["paused"]
    fleet.kill()
    fleet.start()
    assert fleet.job(job["id"])["state"] == "paused" and fleet.double.playbooks() == ["check"]
    assert "paused since" in fleet.cli("job", "ls").stdout
    fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1"]}).problem(409, "duplicate")
    resumed = fleet.cli("job", "resume", job["id"])
    assert resumed.returncode == 0, resumed.stderr
    assert fleet.wait(job["id"], "succeeded")["id"] == job["id"]
    assert fleet.double.playbooks() == ["check", "site", "verify"]
    fleet.send("POST", "/v1/jobs/%s/pause" % job["id"], {}).problem(409, "ended")
    fleet.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).problem(409, "succeeded")


def test_pause_in_the_last_stage_and_in_the_queue_is_refused(cluster):
    cluster.double.orders(verify="gate:go")
    job = cluster.submit("verify", nodes=["w1"])
    cluster.double.wait_gate("go")
    queued = cluster.submit("decommission", nodes=["w1"])
    cluster.send("POST", "/v1/jobs/%s/pause" % job["id"], {}).problem(409, "no_gate")
    cluster.send("POST", "/v1/jobs/%s/pause" % queued["id"], {}).problem(409, "not_started")
    cluster.send("POST", "/v1/jobs/%s/resume" % queued["id"], {}).problem(409, "not_paused")
    cluster.send("POST", "/v1/jobs/%s/cancel" % queued["id"], {}).ok(202)
    cluster.double.open_gate("go")
    cluster.wait(job["id"], "succeeded")


def test_a_paused_job_can_be_cancelled_and_twice_is_once(fleet):
    fleet.double.orders(check="gate:go")
    job = fleet.submit("commission", nodes=["m1"])
    fleet.double.wait_gate("go")
    fleet.send("POST", "/v1/jobs/%s/pause" % job["id"], {}).ok(202)
    fleet.double.open_gate("go")
    in_state(fleet, job["id"], "paused")
    fleet.send("POST", "/v1/jobs/%s/cancel" % job["id"], {}).ok(202)
    ended = fleet.wait(job["id"], "cancelled")
    assert fleet.double.playbooks() == ["check"] and fleet.lifecycle("m1") == "Unallocated"
    again = fleet.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": True}).ok(202)
    assert again["resource_version"] == ended["resource_version"]
    fleet.double.orders()
    fleet.commission("m1")


def test_resume_after_a_power_cut_goes_on_from_the_stage_with_the_same_variables(fleet):
    fleet.double.orders(site="hang")
    job = fleet.submit("commission", nodes=["m1"], vars={"some_token": "T0ken-Value", "plain": "word"})
    wait_for(lambda: fleet.double.calls("site"), "the run")
    power_cut(fleet)
    fleet.double.orders()
    fleet.start()
    broken = fleet.wait(job["id"], "interrupted")
    assert broken["resumable"] and broken["resumable_until"]
    preview = fleet.send("POST", "/v1/jobs/%s/resume" % job["id"], {"dry_run": True}).ok()
    assert preview["nodes"] == ["m1"] and [s["name"] for s in preview["plan"]["stages"]] == ["site", "verify"]
    answer = fleet.send("POST", "/v1/jobs/%s/resume" % job["id"], {})
    new = answer.ok(202)
    assert answer.headers["Location"] == "/v1/jobs/" + new["id"] and new["continues"] == job["id"]
    new = fleet.wait(new["id"], "succeeded")
    assert fleet.double.playbooks() == ["check", "site", "site", "verify"], "nothing is cleaned away"
    assert run_of(broken, "site") in fences(fleet, "site") and fleet.node("m1")["status"]["fence_runs"] == []
    given = json.loads((fleet.double.calls("site")[-1]["dir"] / "vars.json").read_text())
    assert "T0ken-Value" in json.dumps(given) and "word" in json.dumps(given)
    assert fleet.job(job["id"])["continued_by"] == new["id"]
    told = fleet.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).problem(409, "continued")
    assert new["id"] in told["detail"]
    assert "T0ken-Value" not in json.dumps(new) + fleet.log()
    assert fleet.lifecycle("m1") == "Allocated" and fleet.node("m1")["status"]["conditions"] == []


def test_resume_leaves_out_what_is_done(cluster):
    cluster.add("w2", "service-worker")
    cluster.add("w3", "service-worker")
    cluster.double.orders(site="fail-host:w2:docker:no space")
    failed = cluster.commission("w2", "w3", state="failed", keep_on_failure=True)
    cluster.double.orders()
    seen = len(cluster.double.calls())
    done = cluster.cli("job", "resume", failed["id"])
    assert done.returncode == 0, done.stderr
    assert [(p["playbook"], p["targets"]) for p in cluster.double.calls()[seen:]] == [("site", ["w2"]), ("verify", ["w2"])]
    assert cluster.lifecycle("w2") == "Allocated"


def test_retry_says_how_many_nodes_match_and_takes_only_them(cluster):
    for name in ("w2", "w3", "w4"):
        cluster.add(name, "service-worker")
    cluster.double.orders(site=["fail-host:w2:docker:no space", "fail-host:w4:docker:no space"])
    failed = cluster.commission("w2", "w3", "w4", state="failed")
    asked = cluster.cli("job", "retry", failed["id"], "--failed")
    assert asked.returncode == 64 and "--yes" in asked.stderr
    plan = cluster.cli("job", "retry", failed["id"], "--failed", "--plan")
    assert plan.returncode == 0 and "2 nodes match: w2, w4" in plan.stdout
    none = cluster.cli("job", "retry", failed["id"], "--untouched", "--yes")
    assert none.returncode == 65 and "no node of job %s was left untouched" % failed["id"] in none.stderr
    cluster.double.orders()
    done = cluster.cli("job", "retry", failed["id"], "--failed", "--yes")
    assert done.returncode == 0 and "2 nodes match: w2, w4" in done.stderr, done.stderr
    new = cluster.get("/v1/jobs/last").ok()
    assert sorted(n["name"] for n in new["nodes"]) == ["w2", "w4"] and new["continues"] == failed["id"]
    cluster.send("POST", "/v1/jobs/%s/retry" % failed["id"], {}).problem(409, "continued")
    cluster.send("POST", "/v1/jobs/%s/retry" % new["id"], {}).problem(409, "succeeded")


def test_nodes_of_another_job_are_not_taken_from_it(fleet):
    fleet.double.orders(site="fail:2")
    failed = fleet.commission("m1", state="failed")
    fleet.double.orders(check="gate:go")
    other = fleet.submit("check", nodes=["m1"])
    fleet.double.wait_gate("go")
    for way in ("retry", "resume"):
        problem = fleet.send("POST", "/v1/jobs/%s/%s" % (failed["id"], way), {}).problem(409, "busy")
        assert other["id"] in problem["detail"]
        fleet.send("POST", "/v1/jobs/%s/%s" % (other["id"], way), {}).problem(409)
    fleet.double.open_gate("go")
    fleet.wait(other["id"], "succeeded")
    assert len(fleet.get("/v1/jobs").ok()["jobs"]) == 2


def test_the_fence_is_told_to_the_next_job_whatever_it_is(cluster):
    cluster.double.orders(cleanup="fork-hang")
    job = cluster.submit("decommission", nodes=["w1"])
    wait_for((cluster.double.directory / "grandchild.pid").exists, "the run")
    cluster.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": True}).ok(202)
    broken = cluster.wait(job["id"], "cancelled")
    run = run_of(broken, "cleanup")
    assert cluster.node("w1")["status"]["fence_runs"] == [run]
    cluster.restart()
    cluster.double.orders(verify="unreachable:w1")
    cluster.wait(cluster.submit("check", nodes=["w1"])["id"])
    assert fences(cluster, "check") == [run]
    assert cluster.node("w1")["status"]["fence_runs"] == [], "a run that had the fence ended well there"
    cluster.double.orders()
    cluster.wait(cluster.submit("decommission", nodes=["w1"])["id"], "succeeded")
    assert fences(cluster, "cleanup") == []


def test_a_timeout_ends_the_job_and_says_so(fleet):
    fleet.double.orders(site="slow:10")
    begun = fleet.cli("node", "commission", "m1", "--timeout", "3s", "--yes")
    assert begun.returncode == 1 and "not done within 3s in stage site: stopped by its timeout" in begun.stderr
    job = fleet.get("/v1/jobs/last").ok()
    assert job["state"] == "failed" and job["reason"] == "timeout"
    assert fleet.lifecycle("m1") == "Unallocated"


def test_silence_is_told_from_slowness(fleet):
    fleet.double.orders(site="slow:8")
    fleet.commission("m1", silence_timeout="6s")
    fleet.wait(fleet.submit("decommission", nodes=["m1"])["id"], "succeeded")
    fleet.double.orders(site="slow:20")
    job = fleet.commission("m1", state="failed", silence_timeout=2)
    assert job["reason"] == "silence_timeout" and "no sign of life for 2s in stage site" in job["error"]
