"""Work: refused as a whole, done as planned, told as it was."""

import json
import os
import signal
import stat

import pytest

from harness import wait_for


def test_a_dry_run_gives_the_plan_and_stores_nothing(fleet):
    answer = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1", "m2", "m3", "w1"], "dry_run": True}).ok(200)
    assert [stage["name"] for stage in answer["plan"]["stages"]][:1] == ["check"]
    assert {"site", "verify"} <= {stage["name"] for stage in answer["plan"]["stages"]}
    assert fleet.get("/v1/jobs").ok()["jobs"] == []
    assert fleet.double.calls() == []
    assert fleet.lifecycle("m1") == "Unallocated"


def test_commission_of_a_cluster(fleet):
    answer = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1", "m2", "m3", "w1"]})
    job = answer.ok(202)
    assert answer.headers["Location"] == "/v1/jobs/" + job["id"]
    job = fleet.wait(job["id"], "succeeded")
    assert {node["name"]: node["state"] for node in job["nodes"]} == dict.fromkeys(("m1", "m2", "m3", "w1"), "succeeded")
    assert fleet.double.playbooks()[0] == "check" and fleet.double.playbooks()[-2:] == ["site", "verify"]
    for name in ("m1", "m2", "m3", "w1"):
        node = fleet.node(name)
        assert node["status"]["lifecycle"] == "Allocated"
        assert node["status"]["applied"]["host_group"] == node["spec"]["host_group"]
        assert node["status"]["services"]["swarm"]["healthy"] and node["status"]["services"]["swarm"]["member_id"]
    assert set(fleet.double.members()) == {"m1", "m2", "m3", "w1"}
    status = fleet.get("/v1/status").ok()
    assert status["services"]["etcd"]["members"] == 3 and status["services"]["etcd"]["tolerates"] == 1


def test_files_of_a_run_are_private_and_hold_no_second_chance(cluster):
    for call in cluster.double.calls():
        assert call["argv"][1:2] == ["-i"] or "-i" in call["argv"]
        assert sorted(call["env"])  # exactly what the contract lists
        assert set(call["env"]) <= {"PATH", "HOME", "LANG", "TMPDIR", "ANSIBLE_CONFIG", "ANSIBLE_LOCAL_TEMP", "ANSIBLE_SSH_CONTROL_PATH_DIR",
                                    "ANSIBLE_NOCOLOR", "PYTHONUNBUFFERED", "CLUSTERCTL_RUN_DIR", "CLUSTERCTL_RUN_ID", "CLUSTERCTL_DOUBLE_DIR"}
    for path in cluster.state_dir.rglob("inventory.json"):
        pytest.fail("%s is still there after its run" % path)


def test_a_worker_needs_a_manager(fleet):
    problem = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["w1"]}).problem(422)
    assert problem["problems"] and all(p["code"] and p["message"] for p in problem["problems"])
    assert fleet.get("/v1/jobs").ok()["jobs"] == [] and fleet.lifecycle("w1") == "Unallocated"


def test_a_refusal_lists_every_reason_of_every_node(fleet):
    fleet.add("w2", "service-worker", availability="pause")
    fleet.add("x1", "service-worker", acceptance="rejected")
    problem = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["w1", "w2", "x1"]})
    assert problem.status in (409, 422)
    assert {"w1", "w2", "x1"} <= {p.get("node") for p in problem.json["problems"]}
    assert fleet.double.calls() == []


def test_unknown_nodes_are_named(fleet):
    answer = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1", "nobody"]})
    assert answer.status in (400, 404, 422) and "nobody" in answer.body
    assert fleet.get("/v1/jobs").ok()["jobs"] == []


def test_without_names_the_group_decides(fleet):
    job = fleet.wait(fleet.submit("commission", host_group="service-master")["id"], "succeeded")
    assert sorted(node["name"] for node in job["nodes"]) == ["m1", "m2", "m3"]
    assert fleet.lifecycle("w1") == "Unallocated"


def test_one_more_node_is_the_work_of_one_node(cluster):
    cluster.add("w2", "service-worker")
    before = {name: cluster.node(name)["spec"] for name in ("m1", "m2", "m3", "w1")}
    seen = len(cluster.double.calls())
    cluster.commission("w2")
    for call in cluster.double.calls()[seen:]:
        if "site" in call["playbook"]:
            assert call["targets"] == ["w2"] and sorted(call["peers"]) == ["m1", "m2", "m3"]
            inventory = json.loads((call["dir"] / "inventory.json").read_text())
            assert "w1" not in json.dumps(inventory)
    assert before == {name: cluster.node(name)["spec"] for name in before}


def test_a_failed_node_is_cleaned_once_and_the_others_finish(fleet):
    fleet.add("w2", "service-worker")
    fleet.double.orders(site="fail-host:w2:docker:no space left on device")
    job = fleet.commission("m1", "m2", "m3", "w1", "w2", state="failed")
    outcome = {node["name"]: node for node in job["nodes"]}
    assert outcome["w2"]["state"] == "failed" and outcome["w2"]["service"] == "docker" and outcome["w2"]["message"] == "no space left on device"
    assert outcome["w2"]["cleanup"] == "cleaned"
    assert "w2" in job["error"] and "docker" in job["error"] and "no space left on device" in job["error"] and "\n" not in job["error"]
    assert fleet.lifecycle("w2") == "Unallocated" and fleet.lifecycle("w1") == "Allocated"
    assert [call["targets"] for call in fleet.double.calls("cleanup")] == [["w2"]]
    fleet.double.orders()
    fleet.commission("w2")
    assert fleet.lifecycle("w2") == "Allocated"


def test_a_failed_cleanup_is_told_beside_the_failure(fleet):
    fleet.double.orders(site="fail-host:m1:docker:first trouble", cleanup="fail:3")
    job = fleet.commission("m1", state="failed")
    assert "first trouble" in job["nodes"][0]["message"] and job["nodes"][0]["cleanup"].startswith("failed: ")
    assert "Dirty" in {condition["type"] for condition in fleet.node("m1")["status"]["conditions"]}
    assert fleet.lifecycle("m1") == "Unallocated"


def test_evidence_is_kept_when_asked(fleet):
    fleet.double.orders(site="fail:2")
    job = fleet.commission("m1", state="failed", keep_on_failure=True)
    assert job["nodes"][0]["cleanup"] == "kept" and fleet.double.calls("cleanup") == []


def test_an_ignored_failure_is_never_the_reason(fleet):
    fleet.double.orders(site=["ignored-failure:m1:base", "fail-host:m1:docker:the real one"])
    job = fleet.commission("m1", state="failed")
    assert "the real one" in job["error"] and job["nodes"][0]["service"] == "docker"


@pytest.mark.parametrize("order", ["silent", "nofacts", "nohosts"])
def test_exit_code_nought_alone_is_no_success(fleet, order):
    fleet.double.orders(site=order, verify=order)
    fleet.commission("m1", state="failed")
    assert fleet.lifecycle("m1") != "Allocated"


def test_an_unhealthy_service_is_no_success(fleet):
    fleet.double.orders(verify="unhealthy:m1:etcd:etcd has no leader")
    job = fleet.commission("m1", state="failed")
    assert "etcd has no leader" in job["error"] and "m1" in job["error"]
    assert fleet.lifecycle("m1") == "Unallocated"


def test_the_same_work_twice_is_refused_at_once_and_names_the_job(fleet):
    fleet.double.orders(site="gate:go")
    job = fleet.submit("commission", nodes=["m1"])
    fleet.double.wait_gate("go")
    problem = fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1"]}).problem(409, "duplicate")
    assert job["id"] in json.dumps(problem)
    assert fleet.get("/v1/jobs/active").ok()["id"] == job["id"]
    fleet.double.open_gate("go")
    fleet.wait(job["id"], "succeeded")
    assert len(fleet.double.calls("site")) == 1


def test_an_idempotency_key_makes_one_job(fleet):
    request = {"kind": "commission", "nodes": ["m1"]}
    first = fleet.send("POST", "/v1/jobs", request, {"Idempotency-Key": "k-1"}).ok(202)
    again = fleet.send("POST", "/v1/jobs", request, {"Idempotency-Key": "k-1"})
    assert again.status in (200, 202) and again.json["id"] == first["id"]
    fleet.wait(first["id"], "succeeded")
    assert len(fleet.get("/v1/jobs").ok()["jobs"]) == 1


def test_cancel_ends_at_a_task_and_leaves_the_node_workable(fleet):
    fleet.double.orders(site="gate:go")
    job = fleet.submit("commission", nodes=["m1"])
    fleet.double.wait_gate("go")
    assert fleet.send("POST", "/v1/jobs/%s/cancel" % job["id"], {}).status == 202
    fleet.double.open_gate("go")
    fleet.wait(job["id"], "cancelled")
    assert fleet.lifecycle("m1") == "Unallocated"
    fleet.double.orders()
    done = fleet.commission("m1")
    fleet.send("POST", "/v1/jobs/%s/cancel" % done["id"], {}).problem(409, "ended")


def test_cancel_now_ends_what_does_not_listen(fleet):
    fleet.double.orders(site="fork-hang")
    job = fleet.submit("commission", nodes=["m1"])
    pid = int(wait_for(lambda: (fleet.double.directory / "grandchild.pid").exists() and (fleet.double.directory / "grandchild.pid").read_text().strip(), "the child"))
    fleet.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": True}).ok(202)
    fleet.double.orders()
    fleet.wait(job["id"], "cancelled")
    wait_for(lambda: pid not in fleet.processes(), "the child to end")


def test_the_log_is_complete_also_afterwards(fleet):
    fleet.double.orders(site="flood:2000")
    job = fleet.commission("m1")
    text = fleet.get("/v1/jobs/%s/log" % job["id"]).body
    lines = [line for line in text.splitlines() if line.startswith("line ")]
    assert lines == ["line %d" % i for i in range(1, 2001)]
    events = [json.loads(line) for line in fleet.get("/v1/jobs/%s/events" % job["id"]).body.splitlines()]
    assert any(event.get("event") == "stats" for event in events)


def test_kill_nine_of_the_daemon_does_not_disturb_the_run(fleet):
    fleet.double.orders(site=["flood:1000", "gate:go"])
    job = fleet.submit("commission", nodes=["m1"])
    fleet.double.wait_gate("go")
    pid = fleet.double.calls("site")[0]["pid"]
    for _ in range(2):
        fleet.kill()
        fleet.start()
    assert fleet.get("/v1/jobs/active").ok()["id"] == job["id"]
    fleet.double.open_gate("go")
    fleet.wait(job["id"], "succeeded")
    assert [call["pid"] for call in fleet.double.calls("site")] == [pid]
    lines = [line for line in fleet.get("/v1/jobs/%s/log" % job["id"]).body.splitlines() if line.startswith("line ")]
    assert lines == ["line %d" % i for i in range(1, 1001)]
    assert fleet.lifecycle("m1") == "Allocated"


def test_a_power_cut_interrupts_the_job_and_nothing_runs_twice(fleet):
    fleet.double.orders(site="hang")
    job = fleet.submit("commission", nodes=["m1"])
    wait_for(lambda: fleet.double.calls("site"), "the run")
    fleet.kill()
    for pid in fleet.processes():
        os.kill(pid, signal.SIGKILL)
    fleet.double.orders()
    fleet.start()
    fleet.wait(job["id"], "interrupted")
    assert len(fleet.double.calls("site")) == 1
    fleet.commission("m1")
    assert fleet.lifecycle("m1") == "Allocated"


def test_decommission_and_back_again(cluster):
    for _ in range(2):
        cluster.wait(cluster.submit("decommission", nodes=["w1"])["id"], "succeeded")
        assert cluster.lifecycle("w1") == "Decommissioned" and "w1" not in cluster.double.members()
        cluster.commission("w1")
        assert cluster.lifecycle("w1") == "Allocated"


def test_the_last_managers_stay_while_workers_do(cluster):
    problem = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["m1", "m2", "m3"]})
    assert problem.status in (409, 422) and "w1" in problem.body
    cluster.wait(cluster.submit("decommission", nodes=["m1", "m2", "m3", "w1"])["id"], "succeeded")


def test_what_would_lose_quorum_is_refused_and_says_what_breaks(cluster):
    cluster.double.orders(down=["m2", "m3"])
    job = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["m1"]})
    if job.status == 202:  # the last observation was still good: the job itself looks first
        ended = cluster.wait(job.json["id"], "failed")
        assert ended["reason"] == "quorum_lost"
    else:
        assert job.status == 409 and "etcd" in job.body and "swarm" in job.body
    assert cluster.lifecycle("m1") == "Allocated" and cluster.double.calls("cleanup") == []


def test_a_dead_node_is_removed_through_a_survivor(cluster):
    cluster.double.orders(down=["m3"])
    cluster.wait(cluster.submit("verify", nodes=["m3"])["id"], "failed")
    assert cluster.node("m3")["status"]["presence"] == "Disappeared"
    seen = len(cluster.double.calls())
    assert cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["m3"], "force": True}).status in (409, 422)
    cluster.wait(cluster.submit("decommission", nodes=["m3"], force=True, powered_off=True)["id"], "succeeded")
    assert all("m3" not in call["targets"] for call in cluster.double.calls()[seen:] if "observe" not in call["playbook"])
    assert cluster.double.calls("forget") and "m3" not in cluster.double.members()
    assert "NotCleaned" in {condition["type"] for condition in cluster.node("m3")["status"]["conditions"]}


def test_secrets_reach_the_playbook_and_nothing_else(fleet):
    fleet.double.orders(site="echo")
    fleet.send("PATCH", "/v1/globals", {"vars": {"registry_password": "S3cr3t-Value"}}).ok()
    job = fleet.commission("m1", vars={"other_token": "T0ken-Value"})
    given = "".join((call["dir"] / name).read_text() for call in fleet.double.calls("site") for name in ("inventory.json", "vars.json")
                    if (call["dir"] / name).exists())
    assert "S3cr3t-Value" in given and "T0ken-Value" in given
    for call in fleet.double.calls():
        assert "S3cr3t" not in " ".join(call["argv"]) and "T0ken" not in " ".join(call["argv"])
    told = fleet.log() + "".join(fleet.get("/v1/jobs/%s%s" % (job["id"], part)).body for part in ("", "/log", "/events"))
    assert "S3cr3t-Value" not in told and "T0ken-Value" not in told
    assert stat.S_IMODE(fleet.state_dir.stat().st_mode) & 0o077 == 0
    for file in fleet.state_dir.rglob("*"):
        if file.is_file():
            assert ".db" in file.name or b"S3cr3t-Value" not in file.read_bytes(), file
