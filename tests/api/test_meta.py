"""What holds for every route."""

import pytest

ROUTES = ["/v1/nodes", "/v1/nodes/{n}", "/v1/nodes/{n}/confirm-hardware", "/v1/nodes/{n}/rename", "/v1/monitor/event", "/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/{id}/log", "/v1/jobs/{id}/events", "/v1/jobs/{id}/cancel",
          "/v1/jobs/{id}/pause", "/v1/jobs/{id}/resume", "/v1/jobs/{id}/retry", "/v1/globals",
          "/v1/cluster", "/v1/status", "/v1/events", "/v1/inventory", "/v1/version", "/healthz", "/readyz", "/openapi.json"]
JSON = {"Content-Type": "application/json"}


def test_health_and_readiness(daemon):
    assert daemon.get("/healthz").status == 200
    assert daemon.get("/readyz").status == 200


def test_version(daemon):
    version = daemon.get("/v1/version").ok()
    assert version["api"] == 1
    assert version["version"] in daemon.cli("version").stdout


def test_every_route_is_in_openapi(daemon):
    paths = daemon.get("/openapi.json").ok()["paths"]
    shapes = {"/".join("{}" if part.startswith("{") else part for part in path.split("/")) for path in paths}
    missing = [route for route in ROUTES if "/".join("{}" if part.startswith("{") else part for part in route.split("/")) not in shapes]
    assert not missing


def test_an_empty_fleet(daemon):
    assert daemon.get("/v1/nodes").ok() == {"nodes": []}
    assert daemon.get("/v1/jobs").ok() == {"jobs": []}
    assert daemon.get("/v1/globals").ok()["vars"] == {}
    assert daemon.get("/v1/cluster").ok()["name"]
    assert daemon.get("/v1/status").ok()["nodes"]["total"] == 0


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v1/node", "/v2/nodes", "/v1/nodes/none", "/v1/jobs/none", "/v1/jobs/active", "/v1/nodes/a/b/c",
                                  "/v1/nodes/%00", "/v1/nodes/..%2f..%2fetc"])
def test_what_is_not_there_is_404(daemon, path):
    assert daemon.get(path).status in (400, 404)
    daemon.get(path).problem(daemon.get(path).status)


@pytest.mark.parametrize("method, path", [("DELETE", "/v1/nodes"), ("PUT", "/v1/nodes"), ("POST", "/v1/globals"), ("PATCH", "/v1/jobs"), ("POST", "/v1/version"),
                                          ("GET", "/v1/jobs/x/cancel"), ("PROPFIND", "/v1/nodes")])
def test_a_wrong_method_is_405_and_names_the_right_ones(daemon, method, path):
    answer = daemon.ask(method, path, b"{}", JSON)
    answer.problem(405)
    assert answer.headers["Allow"]
    assert method not in answer.headers["Allow"].replace(" ", "").split(",")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_of_another_type_is_415(daemon, content_type):
    daemon.ask("POST", "/v1/nodes", '{"name": "n1"}', {"Content-Type": content_type} if content_type else {}).problem(415)
    assert daemon.get("/v1/nodes").ok()["nodes"] == []


@pytest.mark.parametrize("body", ["", "{", "[]", "1", '"text"', "null", "{} {}", '{"name": "a", "name": "b"}', "{'name': 'a'}", '{"name": "\\ud800"}', b'{"name": "\xff"}',
                                  "[" * 100000, '{"a":' * 1000, b'{"name": "a"}\x00{'])
def test_what_is_no_json_object_is_400(daemon, body):
    for path in ("/v1/nodes", "/v1/jobs"):
        daemon.ask("POST", path, body, JSON).problem(400)
    daemon.ask("PUT", "/v1/globals", body, JSON).problem(400)
    assert daemon.get("/v1/nodes").ok()["nodes"] == []
    assert daemon.get("/v1/globals").ok()["vars"] == {}


def test_unknown_keys_are_named_with_the_nearest_one(daemon):
    problem = daemon.send("POST", "/v1/nodes", {"name": "n1", "spec": {"addr": "192.0.2.1", "host_gruop": "service-master"}}).problem(400, "unknown_key")
    assert "host_gruop" in problem["detail"] and "host_group" in problem["hint"]
    daemon.send("POST", "/v1/jobs", {"kind": "commission", "node": ["n1"]}).problem(400, "unknown_key")
    daemon.send("POST", "/v1/nodes", {"name": "n1", "spce": {}}).problem(400, "unknown_key")


@pytest.mark.parametrize("request_body", [{}, {"kind": 1}, {"kind": "dance"}, {"kind": "commission", "nodes": "m1"}, {"kind": "commission", "nodes": [1]},
                                          {"kind": "commission", "nodes": []}, {"kind": "commission", "vars": []}, {"kind": "commission", "force": "yes"},
                                          {"kind": "decommission", "nodes": ["m1"], "level": "everything"}, {"kind": "commission", "if_busy": "wait"}])
def test_malformed_jobs_are_400_and_leave_no_job(fleet, request_body):
    fleet.send("POST", "/v1/jobs", request_body).problem(400)
    assert fleet.get("/v1/jobs").ok()["jobs"] == []
    assert fleet.double.calls() == []


def test_large_bodies_are_413_and_the_daemon_lives(daemon):
    daemon.ask("POST", "/v1/nodes", '{"name": "' + "x" * (2 << 20) + '"}', JSON).problem(413)
    assert daemon.get("/healthz").status == 200


def test_a_megabyte_of_url_is_414(daemon):
    assert daemon.get("/v1/nodes?selector=" + "x" * (1 << 20)).status in (414, 431)
    assert daemon.get("/healthz").status == 200


@pytest.mark.parametrize("query", ["limit=x", "limit=-1", "lifecycle=Sleeping", "presence=x", "selector=%3D", "colour=red", "limit=1&limit=2"])
def test_bad_queries_are_400(daemon, query):
    daemon.get("/v1/nodes?" + query).problem(400)
