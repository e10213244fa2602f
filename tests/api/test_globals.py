"""Cluster-wide variables."""

import json

import pytest


def test_put_replaces_and_patch_merges(daemon):
    first = daemon.send("PUT", "/v1/globals", {"vars": {"a": 1, "b": {"x": True}}}).ok()
    assert first["vars"] == {"a": 1, "b": {"x": True}}
    second = daemon.send("PATCH", "/v1/globals", {"vars": {"a": None, "c": "text"}}).ok()
    assert second["vars"] == {"b": {"x": True}, "c": "text"} and second["revision"] != first["revision"]
    assert daemon.send("PUT", "/v1/globals", {"vars": {"d": 1}}).ok()["vars"] == {"d": 1}
    daemon.restart()
    assert daemon.get("/v1/globals").ok()["vars"] == {"d": 1}


def test_values_come_back_as_they_are(daemon):
    values = {"large": 12345678901234567890, "negative": -5, "fraction": 0.5, "empty": "", "zero": 0, "no": False, "list": [], "map": {},
              "odd": "\u00e4 \U0001f600 ' \" ` $(touch /tmp/x) {{ 1 + 1 }} \\ \n\t\u0001", "deep": {"a": [{"b": [1, None]}]}}
    daemon.send("PUT", "/v1/globals", {"vars": values}).ok()
    assert daemon.get("/v1/globals").ok()["vars"] == values
    assert "12345678901234567890" in daemon.get("/v1/globals").body


@pytest.mark.parametrize("body", [{"vars": []}, {"vars": "a=b"}, {"vars": None}, {"vars": {"ansible_host": "x"}}, {"vars": {"a b": 1}}, {"vars": {"a-b": 1}},
                                  {"vars": {"1a": 1}}, {"vars": {"": 1}}, {}, {"var": {}}])
def test_a_refused_change_changes_nothing(daemon, body):
    daemon.send("PUT", "/v1/globals", {"vars": {"a": 1}}).ok()
    for method in ("PUT", "PATCH"):
        daemon.send(method, "/v1/globals", body).problem(400)
    assert daemon.get("/v1/globals").ok()["vars"] == {"a": 1}


def test_secrets_are_references(daemon):
    daemon.send("PUT", "/v1/globals", {"vars": {"registry_password": "S3cr3t-Value"}}).ok()
    answer = daemon.get("/v1/globals")
    assert "S3cr3t-Value" not in answer.body
    reference = answer.json["vars"]["registry_password"]
    assert set(reference) == {"secret"}
    daemon.send("PUT", "/v1/globals", {"vars": {"registry_password": reference, "b": 1}}).ok()
    assert daemon.get("/v1/globals").ok()["vars"]["registry_password"] == reference
    assert "S3cr3t-Value" not in daemon.log()


def test_the_command_line_sets_and_shows_them(daemon):
    assert daemon.cli("global", "set", "a=1").returncode == 0
    shown = json.loads(daemon.cli("global", "get", "-o", "json").stdout)
    assert shown.get("vars", shown).keys() == {"a"}
    assert daemon.cli("global", "set").returncode == 64
    assert daemon.get("/v1/globals").ok()["vars"].keys() == {"a"}
