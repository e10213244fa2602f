"""Who may ask, on every route there is; named tokens."""

import contextlib
import json
import re
import sqlite3

import pytest

from harness import wait_for

METHODS = ("get", "put", "post", "patch", "delete")
OPEN = {("get", "/healthz"), ("post", "/v1/join"), ("post", "/v1/join/leave")}  # those of join: tests/api/test_join.py


@pytest.fixture(params=["tcp", "tls"])
def reached(request, stopped):
    """A daemon and the way to it."""
    if request.param == "tls":
        stopped.config["listen"]["tls"] = True
    return stopped.start(), request.param


def bearer(token):
    return {"Authorization": "Bearer " + token}


def create(daemon, **body):
    return daemon.send("POST", "/v1/tokens", body).ok(201)


def routes(daemon):
    """(method, path) of all that openapi.json describes, with something in place of the parameters."""
    found = []
    for path, item in daemon.get("/openapi.json").ok()["paths"].items():
        found += [(method, path, re.sub(r"\{\w+\}", "n1", path)) for method in METHODS if method in item]
    assert len(found) > 40
    return found


def world(daemon):
    """Everything that a request could have changed."""
    return [daemon.get(path).body for path in ("/v1/nodes", "/v1/globals", "/v1/cluster", "/v1/tokens", "/v1/jobs", "/v1/plans", "/v1/revisions")]


def test_every_route_refuses_who_has_no_right(reached):
    daemon, via = reached
    daemon.add("n1")
    revoked = create(daemon, name="gone")["token"]
    daemon.ask("DELETE", "/v1/tokens/gone").ok(204)
    expired = create(daemon, name="old", expires="1s")
    wait_for(lambda: daemon.get("/v1/cluster", headers=bearer(expired["token"]), via=via).status == 401, "the token to expire")
    good = bearer(daemon.token())
    before = world(daemon)
    strangers = [({}, 401, "no_token"), (bearer("x" * 64), 401, "wrong_token"), (bearer(daemon.token()[:-1]), 401, "wrong_token"),
                 (bearer(revoked), 401, "wrong_token"), (bearer(expired["token"]), 401, "token_expired"), (bearer(expired["token"][:-1] + "0"), 401, None),
                 ({**good, "Host": "evil.example"}, 403, "unknown_host"), ({**good, "Origin": "https://evil.example"}, 403, "cross_site"),
                 ({**good, "Sec-Fetch-Site": "cross-site"}, 403, "cross_site")]
    refused = 0
    for method, path, target in routes(daemon):
        for headers, status, code in strangers:
            if status == 401 and (method, path) in OPEN:
                continue
            body = None if method == "get" else "{}"
            given = dict(headers, **({} if body is None else {"Content-Type": "application/json"}))
            daemon.ask(method.upper(), target, body, given, via=via).problem(status, code)
            refused += 1
    assert refused > 300
    assert world(daemon) == before


def test_a_token_for_reading_changes_nothing(reached):
    daemon, via = reached
    daemon.add("n1")
    reader = bearer(create(daemon, name="dashboard", read_only=True)["token"])
    before = world(daemon)
    for method, path, target in routes(daemon):
        if method == "get" or (method, path) in OPEN:
            continue
        daemon.ask(method.upper(), target, "{}", dict(reader, **{"Content-Type": "application/json"}), via=via).problem(403, "read_only")
    assert world(daemon) == before
    assert [node["name"] for node in daemon.get("/v1/nodes", headers=reader, via=via).ok()["nodes"]] == ["n1"]
    daemon.ask("HEAD", "/v1/nodes", headers=reader, via=via).ok(200)


def test_a_tokens_name_stands_in_jobs_history_and_log(reached):
    daemon, via = reached
    daemon.add("n1", "service-master")
    made = create(daemon, name="ci")
    ci = bearer(made["token"])
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"rack": "r1"}}}, ci, via=via).ok()
    job = daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1"]}, ci, via=via).ok(202)
    assert job["initiator"] == "token:ci"
    daemon.wait(job["id"], "succeeded")
    history = daemon.get("/v1/nodes/n1/history").ok()["history"]
    assert "token:ci" in {entry["by"] for entry in history}
    assert "by token:ci from" in daemon.log()
    events = [e for e in daemon.get("/v1/events").ok()["events"] if e["type"].startswith("token.")]
    assert [(e["type"], e["message"].split()[0]) for e in events] == [("token.created", "ci")]


def test_only_the_digest_is_kept(daemon):
    made = create(daemon, name="ci")
    secret = made["token"].rsplit("-", 1)[1]
    assert secret not in daemon.log() and secret not in json.dumps(daemon.get("/v1/tokens").ok()) + json.dumps(daemon.get("/v1/events").ok())
    daemon.ask("DELETE", "/v1/nodes/none", headers=bearer(made["token"]), via="tcp").problem(404)
    daemon.stop()
    for path in daemon.state_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert secret not in daemon.log_file.read_text()


def test_tokens_outlive_the_daemon(daemon):
    kept, gone = create(daemon, name="ci"), create(daemon, name="gone")
    daemon.ask("DELETE", "/v1/tokens/" + gone["id"]).ok(204)
    daemon.kill()
    daemon.start()
    daemon.get("/v1/nodes", headers=bearer(kept["token"]), via="tcp").ok()
    daemon.get("/v1/nodes", headers=bearer(gone["token"]), via="tcp").problem(401, "wrong_token")
    listed = daemon.get("/v1/tokens").ok()["tokens"]
    assert listed == [{key: value for key, value in kept.items() if key != "token"}]
    assert set(listed[0]) == {"id", "kind", "name", "read_only", "by", "created", "expires"}


@pytest.mark.parametrize("body, code", [
    ({}, None), ({"name": ""}, None), ({"name": "a b"}, None), ({"name": "{{ x }}"}, None), ({"name": 5}, None), ({"name": "x" * 300}, None),
    ({"name": "ci", "expires": "soon"}, None), ({"name": "ci", "expires": 30}, None), ({"name": "ci", "expires": "2001-01-01T00:00:00Z"}, None),
    ({"name": "ci", "expires": "-5m"}, None), ({"name": "ci", "read_only": "yes"}, None), ({"name": "ci", "uses": 3}, "unknown_key")])
def test_bad_requests_make_no_token(daemon, body, code):
    daemon.send("POST", "/v1/tokens", body).problem(400, code)
    assert daemon.get("/v1/tokens").ok() == {"tokens": []}


def test_a_name_is_taken_once_and_a_missing_token_is_missed(daemon):
    create(daemon, name="ci")
    daemon.send("POST", "/v1/tokens", {"name": "ci"}).problem(409, "name_taken")
    daemon.ask("DELETE", "/v1/tokens/other").problem(404, "no_such_token")
    daemon.ask("DELETE", "/v1/tokens/ci").ok(204)
    create(daemon, name="ci")


def test_a_named_token_makes_and_revokes_none(daemon):
    ci = bearer(create(daemon, name="ci")["token"])
    daemon.send("POST", "/v1/tokens", {"name": "more"}, ci, via="tcp").problem(403, "not_by_token")
    daemon.ask("DELETE", "/v1/tokens/ci", headers=ci, via="tcp").problem(403, "not_by_token")
    assert [t["name"] for t in daemon.get("/v1/tokens", headers=ci, via="tcp").ok()["tokens"]] == ["ci"]
    daemon.send("POST", "/v1/tokens", {"name": "more"}, bearer(daemon.token()), via="tcp").ok(201)


def test_the_command_line(daemon):
    made = daemon.cli("cluster", "token", "create", "--name", "ci", "--expires", "30d", "-q")
    assert made.returncode == 0 and re.fullmatch(r"CCTA-1-[a-z0-9]{12}-[0-9a-f]{40}\n", made.stdout) and not made.stderr
    file = daemon.directory / "ci"
    file.write_text(made.stdout)
    over_tcp = {"CLUSTERCTL_SERVER": "http://127.0.0.1:%d" % daemon.port, "CLUSTERCTL_TOKEN_FILE": str(file)}
    assert daemon.cli("node", "ls", env=over_tcp).returncode == 0
    shown = daemon.cli("cluster", "token", "create", "--name", "dashboard", "--read-only")
    assert shown.stdout.startswith("CCTA-1-") and "only time" in shown.stderr
    listed = daemon.cli("cluster", "token", "ls").stdout.splitlines()
    assert [line.split()[1:4] for line in listed] == [["NAME", "KIND", "ACCESS"], ["ci", "api", "all"], ["dashboard", "api", "read"]]
    assert daemon.cli("cluster", "token", "ls", "-q").stdout == "ci\ndashboard\n"
    assert len(json.loads(daemon.cli("cluster", "token", "ls", "--json").stdout)["tokens"]) == 2
    assert daemon.cli("cluster", "token", "revoke", "ci").returncode == 0
    refused = daemon.cli("node", "ls", env=over_tcp)
    assert refused.returncode == 77 and "revoked" in refused.stderr
    assert daemon.cli("cluster", "token", "revoke", "ci").returncode == 65
    for wrong in (["create"], ["create", "ci"], ["revoke"], ["ls", "x"], ["ls", "--name", "x"], ["make"], []):
        assert daemon.cli("cluster", "token", *wrong).returncode == 64, wrong


def test_a_damaged_record_keeps_the_daemon_from_starting(daemon):
    create(daemon, name="ci", read_only=True)
    daemon.stop()
    with contextlib.closing(sqlite3.connect(daemon.state_dir / "clusterctl.db", isolation_level=None)) as db:
        table = next(name for (name,) in db.execute("select name from sqlite_master where type = 'table'")
                     if "value" in [column[1] for column in db.execute("pragma table_info(%s)" % name)])
        db.execute("update %s set value = replace(value, '\"read_only\":true', '\"read_only\":5') where key like 'tokens/%%'" % table)
    _, told = daemon.fails_to_start()
    assert "token" in told and "damaged" in told


def test_a_named_token_makes_and_revokes_no_join_tokens(daemon):
    ci = bearer(create(daemon, name="ci")["token"])
    made = daemon.send("POST", "/v1/join-tokens", {}).ok(201)
    daemon.send("POST", "/v1/join-tokens", {"uses": 10000}, ci, via="tcp").problem(403, "not_by_token")
    daemon.ask("DELETE", "/v1/join-tokens/" + made["id"], headers=ci, via="tcp").problem(403, "not_by_token")
    assert [t["state"] for t in daemon.get("/v1/join-tokens", headers=ci, via="tcp").ok()["tokens"]] == ["active"]
    daemon.send("POST", "/v1/join-tokens", {}, bearer(daemon.token()), via="tcp").ok(201)


@pytest.mark.parametrize("path, option", [("/v1/tokens", []), ("/v1/join-tokens", ["--join"])])
def test_a_token_is_revoked_by_its_text_which_goes_nowhere(daemon, path, option):
    token = daemon.send("POST", path, {} if option else {"name": "ci"}).ok(201)["token"]
    secret = token.rsplit("-", 1)[1]
    revoke = ("cluster", "token", "revoke")
    other = [] if option else ["--join"]
    for text, options in ((token, other), (token[:-1], option)):
        done = daemon.cli(*revoke, text, *options)
        assert done.returncode == 64 and secret[:-1] not in done.stderr, done
    done = daemon.cli(*revoke, token, *option)
    assert done.returncode == 0 and secret not in done.stdout + done.stderr, done
    assert [t.get("state") for t in daemon.get(path).ok()["tokens"]] == (["revoked"] if option else [])
    answer = daemon.ask("DELETE", "%s/%s" % (path, token))
    assert secret not in answer.problem(404, "no_such_token")["detail"]
    daemon.ask("DELETE", "%s/%s" % (path, token.replace("-", "%2D").replace("C", "%43"))).problem(404)
    daemon.ask("DELETE", "/v1/tokens/" + daemon.token()).problem(404)
    assert secret not in daemon.log() and daemon.token() not in daemon.log() and "DELETE " + path in daemon.log()
