"""What was applied and what is wanted now: Drifted, NeedsVerification, and what the policy makes of them."""

import json

from harness import wait_for


def reasons(daemon, condition):
    return {n["name"]: c["reason"] for n in daemon.get("/v1/nodes").ok()["nodes"] for c in n["status"]["conditions"] if c["type"] == condition}


def test_a_changed_variable_marks_the_nodes_concerned(cluster):
    assert reasons(cluster, "Drifted") == {}
    done = cluster.cli("global", "set", "etcd_quota_bytes=3000000000")
    assert done.returncode == 0 and "clusterctl node update --plan" in done.stdout
    assert reasons(cluster, "Drifted") == {m: "differs from what was applied: variable etcd_quota_bytes" for m in ("m1", "m2", "m3")}
    hints = {p["hint"] for p in cluster.get("/v1/status").ok()["problems"] if p["code"] == "Drifted"}
    assert hints == {"clusterctl node update m1", "clusterctl node update m2", "clusterctl node update m3"}
    assert cluster.cli("global", "set", "etcd_quota_bytes-").returncode == 0
    assert reasons(cluster, "Drifted") == {}
    cluster.send("PATCH", "/v1/globals", {"vars": {"env": {"a": "b"}}}).ok()
    assert set(reasons(cluster, "Drifted")) == {"m1", "m2", "m3", "w1"}
    cluster.restart()
    assert set(reasons(cluster, "Drifted")) == {"m1", "m2", "m3", "w1"}
    cluster.wait(cluster.submit("update")["id"], "succeeded")
    assert reasons(cluster, "Drifted") == {}


def test_of_a_secret_only_the_name_is_told(cluster):
    cluster.send("PATCH", "/v1/globals", {"vars": {"registry_password": "first-Value"}}).ok()
    cluster.wait(cluster.submit("update")["id"], "succeeded")
    cluster.send("PATCH", "/v1/globals", {"vars": {"registry_password": "second-Value"}}).ok()
    assert reasons(cluster, "Drifted")["w1"] == "differs from what was applied: variable registry_password"
    nodes = cluster.get("/v1/nodes").body
    assert "digest" not in nodes and "-Value" not in nodes and "-Value" not in cluster.get("/v1/nodes/w1/history").body
    cluster.send("PATCH", "/v1/globals", {"vars": {"registry_password": "first-Value"}}).ok()
    assert reasons(cluster, "Drifted") == {}


def test_who_was_away_needs_a_verification(cluster):
    cluster.double.orders(down=["w1"])
    cluster.wait(cluster.submit("check", nodes=["w1"])["id"], "failed")
    assert cluster.node("w1")["status"]["presence"] == "Disappeared"
    cluster.double.orders()
    cluster.wait(cluster.submit("check", nodes=["w1"])["id"], "succeeded")
    assert "it was away" in reasons(cluster, "NeedsVerification")["w1"] and cluster.lifecycle("w1") == "Allocated"
    cluster.wait(cluster.submit("verify", nodes=["w1"])["id"], "succeeded")
    assert reasons(cluster, "NeedsVerification") == {}


def test_the_policy_auto_updates_what_differs_once(cluster):
    cluster.cli("cluster", "update", "--drift-policy", "auto")
    cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"vars": {"x": 1}}}).ok()

    def automatic():
        return [j for j in cluster.get("/v1/jobs").ok()["jobs"] if j["initiator"] == "drift-policy"]

    job = wait_for(automatic, "a job of the policy")[0]
    cluster.wait(job["id"], "succeeded")
    assert job["kind"] == "update" and [n["name"] for n in job["nodes"]] == ["w1"] and reasons(cluster, "Drifted") == {}
    # What fails is left to people, over a restart as well.
    cluster.double.orders(check="problem:w1:no space")
    cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"vars": {"x": 2}}}).ok()
    wait_for(lambda: len(automatic()) == 2, "the second one")
    cluster.wait(automatic()[0]["id"], "failed")
    cluster.restart()
    cluster.wait(cluster.submit("observe")["id"])
    assert len(automatic()) == 2 and set(reasons(cluster, "Drifted")) == {"w1"}


def test_verify_and_check_on_any_selection(cluster):
    cluster.add("n5", "service-worker", labels={"rack": "r3"})
    for name in ("m1", "w1"):
        cluster.send("PATCH", "/v1/nodes/" + name, {"spec": {"labels": {"rack": "r3"}}}).ok()

    def nodes(*arguments):
        done = cluster.cli("node", *arguments, "--plan", "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["stages"][0]["nodes"]

    assert nodes("verify", "-l", "rack=r3") == ["m1", "w1"] and nodes("check", "-l", "rack=r3") == ["m1", "n5", "w1"]
    assert nodes("verify", "-g", "service-worker") == ["w1"] and nodes("check", "-g", "service-worker") == ["n5", "w1"]
    assert nodes("verify") == ["m1", "m2", "m3", "w1"] and nodes("check") == ["m1", "m2", "m3", "n5", "w1"]
    before = cluster.cli("node", "ls", "-o", "json").stdout
    refused = cluster.cli("node", "verify", "w1", "n5", "--detach")
    assert refused.returncode == 65 and "n5" in refused.stderr and "carries nothing that was verified" in refused.stderr
    assert cluster.cli("node", "ls", "-o", "json").stdout == before
