"""Commands that take several names: all are looked up, and all that is wrong is told, before the first change."""

import re

import pytest

from test_apply import commands

# What one such command needs besides names; the others need nothing.
MORE = {"node allocate": ["--as", "spare"], "node label": ["x=1"], "node commission": ["-g", "service-worker", "--yes"], "node decommission": ["--yes"], "node promote": ["--yes"],
        "node demote": ["--yes"], "node update": ["--yes"], "node maintenance": ["--yes"], "node reboot": ["--yes"]}
BEFORE = {"node maintenance": ["enter"], "cluster token": ["revoke"]}
# They only look, or concern no daemon's things, or one thing.
LOOK = {"node get", "node inspect", "global get", "context rm", "node replace"}


def world(daemon):
    return [daemon.get(path).body for path in ("/v1/nodes", "/v1/jobs", "/v1/tokens", "/v1/join-tokens", "/v1/globals")]


def test_no_command_changes_one_when_another_is_unknown(fleet):
    fleet.send("POST", "/v1/tokens", {"name": "w1"}).ok(201)
    joined = fleet.send("POST", "/v1/join-tokens", {}).ok(201)["id"]
    found = [name for name, text in commands(fleet) if re.search(r"Usage: .*\[?(NAMES|OLD)\b.*\.\.\.", text)]
    tried = 0
    for name in found:
        if name in LOOK:
            continue
        tried += 1
        for good, options in ((("w1", []), (joined, ["--join"])) if name == "cluster token" else (("w1", []),)):
            before = world(fleet)
            done = fleet.cli(*name.split(), *BEFORE.get(name, []), good, "nope", "nope2", *MORE.get(name, []), *options)
            assert done.returncode == 65, (name, done)
            assert '"nope"' in done.stderr and '"nope2"' in done.stderr, (name, done.stderr)
            assert world(fleet) == before, name
    assert tried >= 15, found


def test_a_refusal_of_one_node_keeps_the_others(cluster):
    cluster.add("spare1", "service-worker")
    done = cluster.cli("node", "rm", "spare1", "w1")
    assert done.returncode == 65 and "w1" in done.stderr
    assert cluster.node("spare1")["name"] == "spare1"


def test_a_name_and_an_id_of_one_thing_are_one(daemon):
    made = daemon.add("a1")
    done = daemon.cli("node", "rm", "a1", made["id"])
    assert done.returncode == 0 and done.stdout == "node a1 removed\n", done
