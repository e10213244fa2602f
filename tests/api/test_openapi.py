"""A tour over every route: each answer is what openapi.json says, and what it says of answers exists."""

import pytest

from contract import Contract, watched
from harness import wait_for
from joining import announcement, new_token
from test_notifications import Receiver

JSON = {"Content-Type": "application/json"}
# Described and true, but it takes 10,000 events: see the tests of the event log.
NOT_MET = ("GET /v1/events.gap",)


def body_of_stream(daemon, path):
    """The first bytes of a stream, with its head."""
    connection = daemon.connection()
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers.get_content_type() == "text/event-stream"
    text = answer.read1(4096).decode()
    connection.close()
    return text


def ended_badly(daemon, name, order):
    daemon.double.orders(site=order)
    job = daemon.commission(name, state="failed")
    daemon.double.orders()
    return job["id"]


def tour_of_nodes(daemon):
    daemon.add("m1", "service-master", labels={"rack": "r1"}, vars={"mtu": 1500}, capabilities=["dtr-controller"], versions={"etcd": "3.5.9"},
               ssh={"user": "root", "port": 22, "jump": "root@192.0.2.254:22", "extra_args": ["-o", "Compression=yes"]})
    for name in ("m2", "m3"):
        daemon.add(name, "service-master")
    for name in ("w1", "w2", "w3", "w4", "w5"):
        daemon.add(name, "service-worker")
    daemon.add("spare", "")
    daemon.get("/v1/nodes").ok()
    assert daemon.get("/v1/nodes?limit=2&lifecycle=Unallocated").ok()["next"]
    daemon.get("/v1/nodes/m1").ok()
    daemon.send("PATCH", "/v1/nodes/m1", {"spec": {"capabilities": [], "versions": {}, "vars": {}, "ssh": None}}).ok()
    daemon.send("POST", "/v1/nodes/spare/accept", {"labels": {"rack": "r2"}, "reason": "it is new"}).ok()
    daemon.send("POST", "/v1/nodes/spare/reject", {"reason": "it is old"}).ok()
    daemon.send("POST", "/v1/nodes/spare/forget-hostkey", {}).ok()
    daemon.send("POST", "/v1/nodes/spare/rename", {"name": "reserve"}).ok()
    daemon.ask("POST", "/v1/nodes/reserve/confirm-hardware").problem(409, "nothing_to_confirm")
    daemon.get("/v1/nodes/reserve/history?limit=1").ok()["next"]
    daemon.send("POST", "/v1/nodes", {"name": "reserve", "spec": {"addr": "192.0.2.99"}}, {"Idempotency-Key": "a"}).problem(409)
    for _ in range(2):
        daemon.send("POST", "/v1/nodes", {"name": "once", "spec": {"addr": "192.0.2.99"}}, {"Idempotency-Key": "a"}).ok(201)
    daemon.ask("DELETE", "/v1/nodes/once").ok(204)
    daemon.send("POST", "/v1/monitor/event", {"name": "discovered", "nodes": [
        {"name": "stranger", "addr": "192.0.2.200", "serial": "S-9", "macs": ["02:00:00:00:00:09"]}]}).ok()
    daemon.get("/v1/nodes/nobody").problem(404, "no_such_node")
    daemon.ask("PATCH", "/v1/nodes/m2", '{"spec": {}}', dict(JSON, **{"If-Match": '"99"'})).problem(412, "stale")
    daemon.ask("PUT", "/v1/nodes").problem(405, "method_not_allowed")
    daemon.get("/v1/nowhere").problem(404, "no_route")


def tour_of_the_cluster(daemon):
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100", "etcd_no_such_thing": 1}}).ok()
    daemon.send("PUT", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
    daemon.get("/v1/globals").ok()
    daemon.get("/v1/cluster").ok()
    daemon.send("PATCH", "/v1/cluster", {"max_unavailable": "50%"}).ok()
    for path in ("/v1/version", "/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert daemon.get(path).status == 200


def tour_of_jobs(daemon):
    daemon.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1"], "dry_run": True}).ok()
    daemon.double.orders(check="gate:go")
    job = daemon.submit("commission", nodes=["m1", "m2", "m3"])
    daemon.double.wait_gate("go")
    other = daemon.submit("check", nodes=["m1"])
    daemon.get("/v1/jobs/%s/timeline" % job["id"]).ok()
    daemon.get("/v1/metrics").problem(404)
    assert daemon.job(other["id"])["waiting"]["job"] == job["id"]
    daemon.get("/v1/status").ok()
    daemon.send("POST", "/v1/jobs/%s/cancel" % other["id"], {}).ok(202)
    daemon.send("POST", "/v1/jobs/%s/pause" % job["id"], {}).ok(202)
    daemon.double.open_gate("go")
    wait_for(lambda: daemon.job(job["id"])["state"] == "paused", "the pause")
    daemon.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).ok(202)
    daemon.wait(job["id"], "succeeded")
    for path in ("log", "events", "timeline"):
        assert daemon.get("/v1/jobs/%s/%s" % (job["id"], path)).status == 200
    assert "event: log" in body_of_stream(daemon, "/v1/jobs/%s/log?follow=true" % job["id"])
    assert "event: stage" in body_of_stream(daemon, "/v1/jobs/%s/events?follow=true" % job["id"])
    daemon.double.orders()
    daemon.commission("w1", "w2")

    failed = ended_badly(daemon, "w3", "fail-host:w3:docker:no space left on device")
    daemon.send("POST", "/v1/jobs/%s/retry" % failed, {"dry_run": True}).ok()
    daemon.send("POST", "/v1/jobs/%s/resume" % failed, {"dry_run": True}).ok()
    again = daemon.send("POST", "/v1/jobs/%s/retry" % failed, {}, {"Idempotency-Key": "retry"}).ok(202)
    daemon.wait(again["id"], "succeeded")
    failed = ended_badly(daemon, "w4", "fail-host:w4:docker:no space left on device")
    daemon.wait(daemon.send("POST", "/v1/jobs/%s/resume" % failed, {}).ok(202)["id"], "succeeded")
    daemon.double.orders(check="problem:w5:docker:too old")
    daemon.commission("w5", state="failed")
    daemon.double.orders()
    assert daemon.get("/v1/jobs?limit=1").ok()["next"]
    daemon.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1", "w1"]}).problem(409)
    daemon.send("POST", "/v1/jobs", {"kind": "dance"}).problem(400)


def tour_of_work(daemon):
    daemon.double.orders(hardware={"w1": {"serial": "OTHER", "uuid": "4c4c4544-0042-4810-8051-b4c04f564d32"}})
    daemon.wait(daemon.submit("verify", nodes=["w1"])["id"], "succeeded")
    daemon.ask("POST", "/v1/nodes/w1/confirm-hardware").ok()
    daemon.double.orders()
    daemon.wait(daemon.submit("maintenance-enter", nodes=["w2"], reason="a new disk", owner="ann", **{"for": "2h"})["id"], "succeeded")
    assert daemon.node("w2")["status"]["maintenance"]
    daemon.get("/v1/managers?limit=1").ok()
    daemon.get("/v1/services?limit=1").ok()
    daemon.send("POST", "/v1/jobs", {"kind": "update", "nodes": ["w3", "w4"], "max_unavailable": 2, "dry_run": True}).ok()
    machine = {"name": "w4", "addr": "192.0.2.201", "serial": daemon.node("w4")["status"]["identity"]["serial"]}
    daemon.send("POST", "/v1/monitor/event", {"name": "discovered", "nodes": [machine]}).ok()
    assert daemon.node("w4")["status"]["elsewhere"]
    daemon.double.orders(verify="unhealthy:w3:docker:it stopped")
    daemon.wait(daemon.submit("verify", nodes=["w3"])["id"])
    daemon.double.orders()
    for path in ("/v1/managers", "/v1/services", "/v1/inventory", "/v1/status", "/v1/nodes", "/v1/jobs", "/v1/notifications", "/v1/nodes/w3/history"):
        daemon.get(path).ok()
    assert daemon.get("/v1/events?limit=2").ok()["next"]
    daemon.get("/v1/events").ok()
    assert "event: event" in body_of_stream(daemon, "/v1/events?follow=true")


def tour_of_plans(daemon):
    nothing = {"changes": {"nodes": []}}
    assert "id" not in daemon.send("POST", "/v1/plans", nothing).ok(200)
    document = {"changes": {"nodes": [{"name": "m1", "spec": {"labels": {"rack": "r7"}}}], "globals": {"mtu": 9000}}, "work": False}
    daemon.send("PATCH", "/v1/globals", {"vars": {"some_token": "one"}}).ok()
    daemon.send("POST", "/v1/plans", {"changes": {"globals": {"some_token": "another"}}}).ok(201)
    for key in ("records", "records", "more"):
        plan = daemon.send("POST", "/v1/plans", document, {"Idempotency-Key": key}).ok(201)
    assert daemon.get("/v1/plans?limit=1").ok()["next"]
    daemon.get("/v1/plans/" + plan["id"]).ok()
    for _ in range(2):
        daemon.send("POST", "/v1/plans/%s/apply" % plan["id"], {}, {"Idempotency-Key": "apply"}).ok(200)
    plan = daemon.send("POST", "/v1/plans", {"job": {"kind": "verify", "nodes": ["m1"]}}).ok(201)
    done = daemon.send("POST", "/v1/plans/%s/apply" % plan["id"], {}).ok(202)
    daemon.wait(done["jobs"][0]["id"])
    daemon.get("/v1/plans").ok()
    assert daemon.get("/v1/revisions?limit=1").ok()["next"]
    daemon.get("/v1/revisions").ok()


def tour_of_ways_in(daemon):
    daemon.send("POST", "/v1/tokens", {"name": "reader", "expires": "2h", "read_only": True}).ok(201)
    daemon.send("POST", "/v1/tokens", {"name": "writer"}).ok(201)
    assert daemon.get("/v1/tokens?limit=1").ok()["next"] == "reader"
    daemon.get("/v1/tokens?after=reader").ok()
    daemon.ask("DELETE", "/v1/tokens/reader").ok(204)
    daemon.send("PATCH", "/v1/cluster", {"accept_policy": "manual"}).ok()
    token = new_token(daemon, uses=5)
    joined = [daemon.send("POST", "/v1/join", announcement(token["token"], n, requested={"host_group": "service-worker", "labels": {"rack": "r1"}})).ok() for n in (1, 2)]
    daemon.get("/v1/nodes/n1").ok()
    daemon.send("POST", "/v1/nodes/n2/accept", {}).ok()
    for status, machine in zip((200, 202), joined):
        daemon.send("POST", "/v1/join/leave", {"node": machine["id"], "secret": machine["leave_secret"]}).ok(status)
    new_token(daemon)
    assert daemon.get("/v1/join-tokens?limit=1").ok()["next"]
    daemon.ask("DELETE", "/v1/join-tokens/" + token["id"]).ok()
    daemon.get("/v1/join-tokens").ok()
    daemon.send("POST", "/v1/join", announcement(token["token"], 3)).problem(401, "join_token_revoked")


def test_every_answer_is_as_described_and_everything_described_exists(stopped):
    receiver = Receiver(500)
    secret = stopped.directory / "secret"
    secret.write_text("correct-horse-battery-staple\n")
    secret.chmod(0o600)
    hook = {"url": receiver.url, "secret_file": str(secret), "events": ["job.ended"]}
    stopped.config["notifications"] = [dict(hook, name="hook"), dict(hook, name="second", events=["node.presence"])]
    daemon = stopped.start()
    faults = []
    contract = Contract(daemon.get("/openapi.json").json)
    watched(daemon, contract, faults)
    for tour in (tour_of_the_cluster, tour_of_nodes, tour_of_jobs, tour_of_work, tour_of_plans, tour_of_ways_in):
        tour(daemon)
    assert daemon.get("/v1/notifications?limit=1").ok()["next"] == "hook"
    wait_for(lambda: daemon.get("/v1/notifications").ok()["receivers"][0]["delivered"], "a notification")
    receiver.end()
    assert sorted(set(faults)) == []
    assert sorted(contract.answers_never_seen()) == []
    never = [field for field in contract.fields_never_seen() if not any(field.startswith(known) for known in NOT_MET)]
    assert sorted(never) == []


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/jobs", "/v1/plans", "/v1/revisions", "/v1/managers", "/v1/services", "/v1/notifications", "/v1/events", "/v1/tokens", "/v1/join-tokens"])
@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "limit=", "limit=99999999", "limit=1&limit=2", "after=1&after=2"])
def test_bad_pages_are_400(daemon, path, query):
    daemon.get("%s?%s" % (path, query)).problem(400)


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/plans", "/v1/revisions", "/v1/services", "/v1/notifications", "/v1/events"])
def test_a_cursor_that_is_no_place_is_400(daemon, path):
    for after in ("x", "-1", "%0a", "01ABC"):
        daemon.get("%s?after=%s" % (path, after)).problem(400)
