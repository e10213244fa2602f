"""One Idempotency-Key, one thing made: over lost answers, concurrency, restarts and kill -9."""

import concurrent.futures
import json
import re

import pytest

N1 = {"name": "n1", "spec": {"addr": "192.0.2.77"}}
N2 = {"name": "n2", "spec": {"addr": "192.0.2.78"}}


def key(word):
    return {"Idempotency-Key": word}


def post(daemon, path, body, word, status):
    answer = daemon.send("POST", path, body, key(word))
    assert answer.status == status, answer.body
    return answer


def same(first, again):
    """The second answer is that of a request that was done before."""
    assert first.headers["Idempotency-Replayed"] is None and again.headers["Idempotency-Replayed"] == "true"
    assert again.status == first.status and again.headers["Location"] == first.headers["Location"]
    return again


def test_a_node_a_job_a_retry_and_a_plan(fleet):
    first = post(fleet, "/v1/nodes", N1, "node", 201)
    assert same(first, post(fleet, "/v1/nodes", N1, "node", 201)).json == first.json
    fleet.double.orders(site="fail:2")
    job = {"kind": "commission", "nodes": ["m1"]}
    first = post(fleet, "/v1/jobs", job, "job", 202)
    fleet.wait(first.json["id"], "failed")
    assert same(first, post(fleet, "/v1/jobs", job, "job", 202)).json["state"] == "failed", "as it is by now"
    fleet.double.orders()
    retry = "/v1/jobs/%s/retry" % first.json["id"]
    first = post(fleet, retry, {}, "retry", 202)
    assert same(first, post(fleet, retry, {}, "retry", 202)).json["id"] == first.json["id"]
    fleet.wait(first.json["id"], "succeeded")
    fleet.send("POST", retry, {}).problem(409, "continued")
    body = {"changes": {"nodes": [{"name": "n1", "spec": {"labels": {"rack": "r1"}}}]}}
    first = post(fleet, "/v1/plans", body, "plan", 201)
    assert same(first, post(fleet, "/v1/plans", body, "plan", 201)).json == first.json
    apply = "/v1/plans/%s/apply" % first.json["id"]
    first = post(fleet, apply, {}, "apply", 200)
    assert same(first, post(fleet, apply, {}, "apply", 200)).json == first.json
    post(fleet, "/v1/plans", body, "plan", 409).problem(409, "plan_applied")


def test_another_request_with_the_key_is_refused_and_changes_nothing(fleet):
    post(fleet, "/v1/nodes", N1, "k", 201)
    before = fleet.get("/v1/nodes").body
    for path, body in (("/v1/nodes", N2), ("/v1/jobs", {"kind": "check", "nodes": ["m1"]}), ("/v1/plans", {"changes": {"globals": {"mtu": 9000}}})):
        problem = fleet.send("POST", path, body, key("k")).problem(409, "idempotency_key")
        assert "n1" in problem["detail"] or fleet.node("n1")["id"] in problem["detail"]
        assert "new key" in problem["hint"]
    assert fleet.get("/v1/nodes").body == before and fleet.get("/v1/jobs").ok()["jobs"] == []


def test_the_order_of_a_bodys_keys_does_not_matter_and_a_missing_key_is_no_key(daemon):
    headers = dict({"Content-Type": "application/json"}, **key("k"))
    first = daemon.ask("POST", "/v1/nodes", '{"name": "n1", "spec": {"addr": "192.0.2.1", "host_group": ""}}', headers)
    same(first, daemon.ask("POST", "/v1/nodes", '{ "spec": {"host_group": "", "addr": "192.0.2.1"}, "name": "n1" }', headers))
    daemon.send("POST", "/v1/nodes", N1).problem(409, "name_taken")


def test_of_twenty_at_once_one_makes_it_and_all_are_answered(daemon):
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: post(daemon, "/v1/nodes", N1, "k", 201), range(20)))
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sorted(answer.headers["Idempotency-Replayed"] or "" for answer in answers) == [""] + ["true"] * 19


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_keys_outlive_the_daemon(daemon, end):
    first = post(daemon, "/v1/nodes", N1, "k", 201)
    getattr(daemon, end)()
    daemon.start()
    same(first, post(daemon, "/v1/nodes", N1, "k", 201))
    daemon.ask("DELETE", "/v1/nodes/n1").ok(204)
    problem = post(daemon, "/v1/nodes", N1, "k", 409).problem(409, "idempotency_gone")
    assert first.json["id"] in problem["detail"]
    assert daemon.get("/v1/nodes").ok()["nodes"] == []


def test_a_refused_request_and_a_dry_run_leave_no_key(fleet):
    fleet.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["nobody"]}, key("k")).problem(404)
    fleet.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["m1"], "dry_run": True}, key("k")).ok(200)
    post(fleet, "/v1/jobs", {"kind": "check", "nodes": ["m1"]}, "k", 202)


@pytest.mark.parametrize("word", ["", "with space", "ü", "x" * 129])
def test_a_key_that_is_none_is_400_on_every_route_that_takes_one(fleet, word):
    for path, body in (("/v1/nodes", N1), ("/v1/jobs", {"kind": "check", "nodes": ["m1"]}), ("/v1/plans", {"changes": {"globals": {"mtu": 9000}}})):
        answer = fleet.ask("POST", path, json.dumps(body), {"Content-Type": "application/json", "Idempotency-Key": word.encode()})
        answer.problem(400, "bad_idempotency_key")
    assert fleet.get("/v1/jobs").ok()["jobs"] == []


def test_every_post_that_makes_something_takes_a_key(daemon):
    """By the description: what answers with a Location has the header."""
    document = daemon.get("/openapi.json").json
    told_once = ("/v1/tokens", "/v1/join-tokens")  # secrets that are not kept: there is nothing to answer a second time
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters" or path in told_once:
                continue
            makes = any("Location" in (r if "$ref" not in r else document["components"]["responses"][r["$ref"].split("/")[-1]]).get("headers", {}) for r in operation["responses"].values())
            takes = {"$ref": "#/components/parameters/idempotencyKey"} in operation.get("parameters", [])
            assert takes == makes or (takes and path == "/v1/plans/{id}/apply"), (method, path)


def test_every_other_post_refuses_a_key(stopped):
    """None is silently ignored: what a route does not promise, it says."""
    stopped.config["compat"] = {"enabled": True}
    daemon = stopped.start()
    takes = 0
    for path, item in daemon.get("/openapi.json").json["paths"].items():
        if "post" not in item:
            continue
        answer = daemon.send("POST", re.sub(r"\{\w+\}", "n1", path), {}, key("a b"))
        if {"$ref": "#/components/parameters/idempotencyKey"} in item["post"].get("parameters", []):
            takes += 1
            assert answer.json["code"] != "idempotency_unsupported", path
        else:
            answer.problem(400, "idempotency_unsupported")
    assert takes == 6
    for kind in ("commission", "decommission", "update"):
        for where in ("nodes", "node/n1"):
            answer = daemon.send("POST", "/%s/%s" % (kind, where), {"nodes": ["n1"]}, key("k"))
            assert answer.status == 400 and "Idempotency-Key" in answer.body and answer.body.count("\n") == 1
    assert daemon.get("/v1/tokens").ok()["tokens"] == daemon.get("/v1/join-tokens").ok()["tokens"] == daemon.get("/v1/jobs").ok()["jobs"] == []
