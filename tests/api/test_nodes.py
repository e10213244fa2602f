"""Node records over REST."""

import pytest

from harness import wait_for


def names(daemon, query=""):
    return [node["name"] for node in daemon.get("/v1/nodes" + query).ok()["nodes"]]


def test_a_new_node(daemon):
    answer = daemon.send("POST", "/v1/nodes", {"name": "n1", "spec": {"addr": "192.0.2.1", "host_group": "service-master", "labels": {"rack": "a"}}})
    node = answer.ok(201)
    assert answer.headers["Location"] == "/v1/nodes/" + node["id"]
    assert len(node["id"]) == 12 and node["name"] == "n1" and node["generation"] == 1 and node["role"] == "manager"
    assert node["spec"]["addr"] == "192.0.2.1" and node["spec"]["labels"] == {"rack": "a"} and node["spec"]["availability"] == "active"
    assert node["status"]["lifecycle"] == "Unallocated" and node["status"]["applied"] is None and node["status"]["services"] == {}
    for key in (node["id"], node["id"][:4], "n1"):
        found = daemon.get("/v1/nodes/" + key)
        assert found.ok() == node
        assert found.headers["ETag"].strip('"') == str(node["resource_version"])


@pytest.mark.parametrize("name", ["", "-n", "n-", "n_1", "n 1", "a" * 64, "n1\n", "{{ 1 }}", "$(id)", "-oProxyCommand=id", "n/1", "\u00e4", "n1;id"])
def test_names_that_could_mean_something_else_are_refused(daemon, name):
    daemon.send("POST", "/v1/nodes", {"name": name, "spec": {"addr": "192.0.2.1"}}).problem(400)
    assert names(daemon) == []


@pytest.mark.parametrize("spec", [
    {"addr": "{{ lookup('pipe', 'id') }}"}, {"addr": "-oProxyCommand=id"}, {"addr": "192.0.2.1\nx"}, {"addr": "999.1.1.1"}, {"addr": 5}, {},
    {"addr": "192.0.2.1", "host_group": "service-mastr"}, {"addr": "192.0.2.1", "capabilities": ["{{ x }}"]}, {"addr": "192.0.2.1", "capabilities": "x"},
    {"addr": "192.0.2.1", "labels": {"a b": "x"}}, {"addr": "192.0.2.1", "labels": {"a": 1}}, {"addr": "192.0.2.1", "availability": "asleep"},
    {"addr": "192.0.2.1", "ssh": {"port": 0}}, {"addr": "192.0.2.1", "ssh": {"port": 70000}}, {"addr": "192.0.2.1", "ssh": {"user": "-x"}},
    {"addr": "192.0.2.1", "ssh": {"host_key": "ssh-ed25519 AAAA\nevil"}}, {"addr": "192.0.2.1", "vars": []},
    {"addr": "192.0.2.1", "vars": {"ansible_connection": "local"}}, {"addr": "192.0.2.1", "vars": {"ansible_ssh_common_args": "x"}}])
def test_bad_specs_are_refused(daemon, spec):
    daemon.send("POST", "/v1/nodes", {"name": "n1", "spec": spec}).problem(400)
    assert names(daemon) == []


@pytest.mark.parametrize("name", ["all", "ungrouped", "localhost", "last", "service-master"])
def test_names_that_mean_something_else_are_refused(daemon, name):
    daemon.send("POST", "/v1/nodes", {"name": name, "spec": {"addr": "192.0.2.1"}}).problem(400, "reserved_name")


def test_names_and_addresses_are_unique(daemon):
    daemon.add("n1", addr="192.0.2.1")
    daemon.send("POST", "/v1/nodes", {"name": "n1", "spec": {"addr": "192.0.2.9"}}).problem(409)
    daemon.send("POST", "/v1/nodes", {"name": "n9", "spec": {"addr": "192.0.2.1"}}).problem(409)
    assert names(daemon) == ["n1"]


def test_lists_are_sorted_filtered_and_paged(daemon):
    for name, group, rack in (("c", "service-master", "1"), ("a", "service-worker", "1"), ("b", "service-worker", "2")):
        daemon.add(name, group, labels={"rack": rack})
    assert names(daemon) == ["a", "b", "c"]
    assert names(daemon, "?host_group=service-worker") == ["a", "b"]
    assert names(daemon, "?selector=rack%3D1") == ["a", "c"]
    assert names(daemon, "?selector=rack!%3D1") == ["b"]
    assert names(daemon, "?lifecycle=Allocated") == []
    page = daemon.get("/v1/nodes?limit=2").ok()
    assert [node["name"] for node in page["nodes"]] == ["a", "b"]
    rest = daemon.get("/v1/nodes?limit=2&after=" + page["next"]).ok()
    assert [node["name"] for node in rest["nodes"]] == ["c"] and "next" not in rest
    assert daemon.get("/v1/nodes").body == daemon.get("/v1/nodes").body


def test_patch_merges_and_counts(daemon):
    node = daemon.add("n1", labels={"a": "1", "b": "2"})
    patched = daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"a": None, "c": "3"}}}).ok()
    assert patched["spec"]["labels"] == {"b": "2", "c": "3"}
    assert patched["generation"] == node["generation"] + 1 and patched["resource_version"] > node["resource_version"]


def test_patch_of_an_old_version_is_412(daemon):
    node = daemon.add("n1")
    first = {"If-Match": '"%d"' % node["resource_version"]}
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"a": "1"}}}, first).ok()
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"a": "2"}}}, first).problem(412)
    assert daemon.node("n1")["spec"]["labels"] == {"a": "1"}


@pytest.mark.parametrize("patch", [{"status": {"lifecycle": "Allocated"}}, {"id": "x"}, {"name": "other"}, {"spec": {"addr": "{{x}}"}}, {"spec": []}, {"spec": {"labels": {"a": 1}}}])
def test_a_refused_patch_changes_nothing(daemon, patch):
    node = daemon.add("n1")
    assert daemon.send("PATCH", "/v1/nodes/n1", patch).status in (400, 409)
    assert daemon.node("n1") == node


def test_an_ambiguous_prefix_is_no_answer(daemon):
    daemon.add("n1")
    daemon.get("/v1/nodes/" + daemon.node("n1")["id"][:3]).problem(404)


def test_delete(daemon):
    daemon.add("n1")
    assert daemon.ask("DELETE", "/v1/nodes/n1").status == 204
    daemon.get("/v1/nodes/n1").problem(404)
    daemon.ask("DELETE", "/v1/nodes/n1").problem(404)
    daemon.add("n1")


def test_a_commissioned_node_is_neither_deleted_nor_changed_beside_a_job(cluster):
    cluster.ask("DELETE", "/v1/nodes/w1").problem(409)
    before = cluster.node("w1")
    problem = cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"host_group": "service-master"}}).problem(409, "needs_job")
    assert "clusterctl " in problem.get("hint", "") + problem["detail"]
    assert cluster.node("w1") == before
    cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"labels": {"x": "1"}}}).ok()


def test_everything_is_there_after_a_restart_and_after_kill_nine(daemon):
    nodes = [daemon.add("n%d" % i, labels={"i": str(i)}) for i in range(5)]
    daemon.restart()
    assert [daemon.node(node["name"]) for node in nodes] == nodes
    daemon.send("PATCH", "/v1/nodes/n0", {"spec": {"labels": {"i": "new"}}}).ok()
    daemon.kill()
    daemon.start()
    assert daemon.node("n0")["spec"]["labels"] == {"i": "new"}


def test_secret_variables_are_never_shown(daemon):
    daemon.add("n1", vars={"bmc_password": "S3cr3t-Value", "plain": "seen"})
    shown = daemon.node("n1")["spec"]["vars"]
    assert shown["plain"] == "seen" and set(shown["bmc_password"]) == {"secret"}
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"vars": {"bmc_password": shown["bmc_password"], "plain": "new"}}}).ok()
    assert daemon.node("n1")["spec"]["vars"]["bmc_password"] == shown["bmc_password"]
    for place in (daemon.get("/v1/nodes").body, daemon.get("/v1/events?since=0").body, daemon.log()):
        assert "S3cr3t-Value" not in place


def test_changes_are_events(daemon):
    daemon.add("n1")
    daemon.ask("DELETE", "/v1/nodes/n1")
    events = wait_for(lambda: [e for e in daemon.get("/v1/events?since=0").ok()["events"] if e["type"].startswith("node.")][1:], "two events")
    everything = daemon.get("/v1/events?since=0").ok()["events"]
    assert [event["seq"] for event in everything] == sorted({event["seq"] for event in everything})
    assert events[-1]["type"] == "node.removed"
    assert daemon.get("/v1/events?since=%d" % everything[-1]["seq"]).ok()["events"] == []
