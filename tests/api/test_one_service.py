"""`node update --service`: some services of a node, and no more than these."""

import json

import pytest

from test_drift import reasons



def narrowed(call):
    """The services that a run was narrowed to."""
    only = json.loads((call["dir"] / "inventory.json").read_text())["all"]["vars"].get("clusterctl_only_services", [])
    return [s["__ansible_unsafe"] if isinstance(s, dict) else s for s in only]


def ledger(cluster):
    return [json.loads(line) for line in (cluster.double.directory / "ledger.jsonl").read_text().splitlines()]


def converged(cluster, since):
    """What was really done, from that line of the ledger on."""
    return {(entry["host"], entry["service"]) for entry in ledger(cluster)[since:] if entry["door"] == "main"}


def test_one_service_of_the_nodes_that_carry_it(cluster):
    since, begun = len(cluster.double.calls()), len(ledger(cluster))
    done = cluster.cli("node", "update", "--service", "etcd", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert converged(cluster, begun) == {(m, "etcd") for m in ("m1", "m2", "m3")}
    played = [c["playbook"] for c in cluster.double.calls()[since:]]
    assert "cleanup" not in played and "availability" not in played, "nothing is torn down, and nobody drained for etcd"
    verified = [c for c in cluster.double.calls()[since:] if c["playbook"] == "verify"]
    assert verified and all(narrowed(c) == ["etcd"] for c in verified), "what else is wanted now is not asked of the others"
    job = cluster.get("/v1/jobs?limit=1").ok()["jobs"][0]
    assert job["title"] == "update etcd on 3 nodes" and job["request"]["services"] == ["etcd"]


def test_what_is_recorded_of_the_others_stays(cluster):
    cluster.send("PATCH", "/v1/globals", {"vars": {"etcd_quota_bytes": 3000000000, "docker_wait": 77, "zone": 1}}).ok()
    before = reasons(cluster, "Drifted")
    assert before["m1"].endswith("variable docker_wait, variable etcd_quota_bytes, variable zone")
    cluster.wait(cluster.submit("update", nodes=["m1"], services=["etcd"])["id"], "succeeded")
    assert reasons(cluster, "Drifted") == dict(before, m1="differs from what was applied: variable docker_wait, variable zone")
    cluster.restart()
    assert reasons(cluster, "Drifted")["m1"] == "differs from what was applied: variable docker_wait, variable zone"
    cluster.wait(cluster.submit("update", nodes=["m1"], services=["docker"])["id"], "succeeded")
    assert reasons(cluster, "Drifted")["m1"] == "differs from what was applied: variable zone", "which belongs to no service alone"
    cluster.wait(cluster.submit("update", nodes=["m1"])["id"], "succeeded")
    assert "m1" not in reasons(cluster, "Drifted")


def test_all_of_its_differences_at_once_leave_none(cluster):
    cluster.send("PATCH", "/v1/globals", {"vars": {"etcd_quota_bytes": 3000000000}}).ok()
    cluster.wait(cluster.submit("update", services=["etcd"])["id"], "succeeded")
    assert reasons(cluster, "Drifted") == {}
    since = len(cluster.double.calls())
    cluster.wait(cluster.submit("update")["id"], "succeeded")
    assert "availability" not in [c["playbook"] for c in cluster.double.calls()[since:]], "nothing differs, so nobody is drained"


def test_a_service_that_variables_brought_is_installed_by_itself(cluster):
    cluster.send("PATCH", "/v1/globals", {"vars": {"vip_provider": "none"}}).ok()
    cluster.wait(cluster.submit("update")["id"], "succeeded")
    assert "ucarp" not in cluster.node("m1")["status"]["applied"]["services"]
    cluster.send("PATCH", "/v1/globals", {"vars": {"vip_provider": "ucarp"}}).ok()
    since = len(ledger(cluster))
    cluster.wait(cluster.submit("update", nodes=["m1"], services=["ucarp"])["id"], "succeeded")
    assert converged(cluster, since) == {("m1", "ucarp")}
    assert "ucarp" in cluster.node("m1")["status"]["applied"]["services"]
    assert "ucarp" not in cluster.node("m2")["status"]["applied"]["services"]


def test_only_what_stops_the_node_drains_it(cluster):
    since = len(cluster.double.calls())
    cluster.wait(cluster.submit("update", nodes=["w1"], services=["docker"], vars={"docker_wait": 60})["id"], "succeeded")
    assert [c["playbook"] for c in cluster.double.calls()[since:]] == ["check", "observe", "availability", "site", "verify", "availability"]
    since = len(cluster.double.calls())
    cluster.wait(cluster.submit("update", nodes=["w1"], services=["swarm"], vars={"swarm_wait": 60})["id"], "succeeded")
    assert [c["playbook"] for c in cluster.double.calls()[since:]] == ["check", "observe", "site", "verify"]


@pytest.mark.parametrize("body, status, words", [
    ({"services": ["ectd"]}, 422, ["there is no service ectd", "did you mean etcd", "base, docker, etcd, ucarp, swarm"]),
    ({"services": ["netplugin"], "nodes": ["m1"]}, 422, ["there is no service netplugin", "base, docker, etcd, ucarp, swarm"]),
    ({"services": ["etcd"], "nodes": ["w1"]}, 409, ["w1 does not carry etcd", "it carries: base, docker, swarm"]),
    ({"services": ["etcd"], "nodes": ["m1"], "host_group": "service-worker"}, 422, ["means nothing for update"]),
    ({"services": ["etcd"], "nodes": ["m1"], "capabilities": ["service-worker"]}, 422, ["means nothing for update"]),
    ({"services": ["etcd"], "host_group": "service-worker"}, 404, ["no commissioned node carries etcd"]),
    ({"services": []}, 422, ["is an empty list"]),
    ({"services": "etcd"}, 422, ["services"]),
    ({"services": ["a b"]}, 422, ["a b"]),
    ({"services": ["s%d" % i for i in range(5000)]}, 422, ["too many services"]),
])
def test_what_makes_no_sense_is_refused_and_changes_nothing(cluster, body, status, words):
    before, calls = cluster.get("/v1/nodes").body, len(cluster.double.calls())
    answer = cluster.send("POST", "/v1/jobs", dict(body, kind="update"))
    assert answer.status in (status, 400 if status == 422 else status), answer.body
    assert all(word in answer.body for word in words), answer.body
    assert cluster.get("/v1/nodes").body == before and len(cluster.double.calls()) == calls
    assert len(answer.body) < 20000


def test_other_kinds_know_no_services(cluster):
    for kind in ("commission", "decommission", "check", "drain", "promote"):
        answer = cluster.send("POST", "/v1/jobs", {"kind": kind, "nodes": ["w1"], "services": ["docker"]})
        assert answer.status in (400, 422) and "means nothing for " + kind in answer.body


def test_a_node_that_failed_is_verified_as_a_whole(cluster):
    cluster.double.orders(site="fail-host:w1:swarm")
    cluster.wait(cluster.submit("update", nodes=["w1"], services=["swarm"])["id"], "failed")
    assert "Failed" in {c["type"] for c in cluster.node("w1")["status"]["conditions"]}
    cluster.double.orders()
    calls = len(cluster.double.calls())
    cluster.wait(cluster.submit("update", nodes=["w1"], services=["swarm"])["id"], "succeeded")
    assert [narrowed(c) for c in cluster.double.calls()[calls:] if c["playbook"] == "verify"] == [[]], "before it counts as well again, all of it is looked at"
    assert not cluster.node("w1")["status"]["conditions"] and cluster.lifecycle("w1") == "Allocated"


def test_an_early_error_leaves_the_node_as_it_was(cluster):
    cluster.double.orders(check="problem:w1")
    cluster.wait(cluster.submit("update", nodes=["w1"], services=["docker"])["id"], "failed")
    assert cluster.lifecycle("w1") == "Allocated"


def test_a_retry_keeps_the_service(cluster):
    cluster.double.orders(site="fail-host:m1:etcd")
    job = cluster.submit("update", services=["etcd"])
    cluster.wait(job["id"], "failed")
    cluster.double.orders()
    since = len(ledger(cluster))
    done = cluster.cli("job", "retry", job["id"], "--failed", "--untouched", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert converged(cluster, since) == {(m, "etcd") for m in ("m1", "m2", "m3")}


def test_another_service_that_is_not_as_wanted_fails_nothing(cluster):
    """It is verified against what it was given, and it was given nothing new."""
    cluster.double.orders(verify="unhealthy:m1:docker")
    cluster.wait(cluster.submit("update", nodes=["m1"], services=["etcd"])["id"], "succeeded")
    cluster.double.orders(verify="unhealthy:m1:etcd")
    cluster.wait(cluster.submit("update", nodes=["m1"], services=["etcd"])["id"], "failed")
