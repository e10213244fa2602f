"""Names, acceptance, allocation, versions, history: what a node is beside the work on it."""

import json

import pytest


def conditions(daemon, name):
    return {c["type"]: c["reason"] for c in daemon.node(name)["status"]["conditions"]}


def version(daemon, path):
    return {"If-Match": daemon.get(path).headers["ETag"]}


def listing(daemon):
    return daemon.cli("node", "ls", "-o", "json").stdout


# -- names --


def test_two_spellings_are_one_node(daemon):
    daemon.add("N1.Example.COM.")
    daemon.add("n2")
    for spelling in ("n1.example.com", "N1.EXAMPLE.COM", "n1.example.com.", "n1", "N1"):
        assert daemon.node(spelling)["name"] == "n1.example.com"
        assert "n1.example.com" in daemon.cli("node", "inspect", spelling).stdout
    before = listing(daemon)
    for name in ("n1", "N1", "n1.example.com", "N2.", "n2.example.com"):
        daemon.send("POST", "/v1/nodes", {"name": name, "spec": {"addr": "192.0.2.77"}}).problem(409, "name_taken")
    daemon.get("/v1/nodes/n1.example.org").problem(404)
    assert listing(daemon) == before
    daemon.add("n1.example.org")
    daemon.get("/v1/nodes/n1").problem(400, "ambiguous")


def test_a_node_named_twice_is_refused(daemon):
    daemon.add("n1", "service-master")
    before = listing(daemon)
    problem = daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1", "N1."]}).problem(400, "named_twice")
    assert "N1." in problem["detail"] and problem["problems"][0]["node"] == "n1"
    assert daemon.cli("node", "commission", "n1", "n1", "--detach").returncode in (64, 65)
    assert listing(daemon) == before and daemon.double.calls() == []


def test_an_import_in_another_spelling_is_the_same_node(daemon, tmp_path):
    daemon.add("n1", "service-master", addr="192.0.2.1")
    file = tmp_path / "hosts.yml"
    file.write_text("service-master:\n  hosts:\n    N1: {ansible_host: 192.0.2.1, x: 1}\n")
    done = daemon.cli("inventory", "import", str(file))
    assert done.returncode == 0, done.stderr
    assert [n["name"] for n in daemon.get("/v1/nodes").ok()["nodes"]] == ["n1"] and daemon.node("n1")["spec"]["vars"] == {"x": 1}
    file.write_text("service-master:\n  hosts:\n    N1: {ansible_host: 192.0.2.1}\n    n1: {ansible_host: 192.0.2.2}\n")
    before = listing(daemon)
    refused = daemon.cli("inventory", "import", str(file))
    assert refused.returncode == 65 and "two spellings" in refused.stderr and listing(daemon) == before


# -- acceptance and allocation --


def test_accept_reject_and_what_they_grant(daemon):
    daemon.send("PATCH", "/v1/cluster", {"accept_policy": "manual"}).ok()
    node = daemon.add("n1")
    assert node["spec"]["acceptance"] == "pending"
    assert daemon.cli("node", "check", "n1", "--detach").returncode == 65
    done = daemon.cli("node", "accept", "n1", "-g", "service-master", "--label", "rack=r3", "--reason", "new blade")
    assert done.returncode == 0, done.stderr
    spec = daemon.node("n1")["spec"]
    assert (spec["acceptance"], spec["host_group"], spec["labels"]) == ("accepted", "service-master", {"rack": "r3"})
    assert daemon.cli("node", "reject", "n1").returncode == 0 and daemon.node("n1")["spec"]["acceptance"] == "rejected"
    before = listing(daemon)
    for action, body in (("accept", {"label": {}}), ("accept", {"host_group": "no-such"}), ("accept", {"labels": {"a b": "x"}}),
                         ("reject", {"reason": "a\nb"}), ("reject", {"reason": "x" * 501}), ("reject", {"labels": {}})):
        daemon.send("POST", "/v1/nodes/n1/" + action, body).problem(400)
    daemon.send("POST", "/v1/nodes/n9/accept", {}).problem(404)
    assert listing(daemon) == before


def test_a_host_key_is_forgotten(daemon):
    daemon.add("n1", ssh={"host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43})
    assert daemon.cli("node", "forget-hostkey", "n1", "--reason", "installed anew").returncode == 0
    assert daemon.node("n1")["spec"]["ssh"]["host_key"] == ""
    entry = daemon.get("/v1/nodes/n1/history").ok()["history"][0]
    assert entry["message"] == "spec changed: ssh" and entry["reason"] == "installed anew" and entry["by"]


def test_spare_nodes_wait_until_they_are_named_and_allocated(fleet):
    fleet.commission("m1")
    fleet.add("s1", "service-worker")
    assert fleet.cli("node", "allocate", "s1", "--as", "spare").returncode == 0
    before = listing(fleet)
    refused = fleet.cli("node", "commission", "s1", "--detach")
    assert refused.returncode == 65 and "node allocate s1 --as in-service" in refused.stderr
    assert listing(fleet) == before
    plan = fleet.send("POST", "/v1/jobs", {"kind": "commission", "host_group": "service-worker", "dry_run": True}).ok()["plan"]
    assert plan["stages"][0]["nodes"] == ["w1"]
    fleet.send("PATCH", "/v1/nodes/m1", {"spec": {"allocation": "retired"}}).problem(409, "needs_job")
    assert fleet.cli("node", "allocate", "s1", "--as", "in-service").returncode == 0
    fleet.commission("s1")


def test_a_worker_is_pending_until_there_is_a_manager(fleet):
    assert "without a manager" in conditions(fleet, "w1")["Pending"] and "Pending" not in conditions(fleet, "m1")
    assert fleet.get("/v1/status").ok()["problems"] == []
    fleet.commission("m1")
    assert conditions(fleet, "w1") == {}
    fleet.restart()
    assert conditions(fleet, "w1") == {}


# -- versions --


@pytest.mark.parametrize("method, path, body", [
    ("PATCH", "", {"spec": {"labels": {"a": "1"}}}), ("POST", "/accept", {}), ("POST", "/reject", {}), ("POST", "/forget-hostkey", {}), ("DELETE", "", None)])
def test_a_stale_change_of_a_node_is_412(daemon, method, path, body):
    daemon.add("n1")
    old = version(daemon, "/v1/nodes/n1")
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"x": "1"}}}, old).ok()
    before = listing(daemon)
    send = daemon.send(method, "/v1/nodes/n1" + path, body, old) if body is not None else daemon.ask(method, "/v1/nodes/n1", headers=old)
    send.problem(412, "stale")
    assert listing(daemon) == before


def test_a_stale_job_of_one_node_is_412(daemon):
    daemon.add("n1", "service-master")
    daemon.add("n2", "service-master")
    old = version(daemon, "/v1/nodes/n1")
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"x": "1"}}}, old).ok()
    daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1"]}, old).problem(412, "stale")
    daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1", "n2"]}, old).problem(400, "bad_if_match")
    assert daemon.get("/v1/jobs").ok()["jobs"] == []
    daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1"]}, version(daemon, "/v1/nodes/n1")).ok(202)


def test_globals_and_cluster_have_versions(daemon):
    for path, first, second in (("/v1/globals", {"vars": {"a": 1}}, {"vars": {"a": 2}}), ("/v1/cluster", {"drift_policy": "never"}, {"drift_policy": "auto"})):
        old = version(daemon, path)
        daemon.send("PATCH", path, first, old).ok()
        daemon.send("PATCH", path, second, old).problem(412, "stale")
        daemon.send("PATCH", path, second, version(daemon, path)).ok()
    old = version(daemon, "/v1/globals")
    daemon.restart()
    daemon.send("PUT", "/v1/globals", {"vars": {}}, version(daemon, "/v1/globals")).ok()
    daemon.send("PUT", "/v1/globals", {"vars": {"b": 1}}, old).problem(412, "stale")


# -- settings of the cluster, and variables --


def test_settings_of_the_cluster(daemon):
    done = daemon.cli("cluster", "update", "--max-unavailable", "10%", "--drift-policy", "never", "--name", "lab", "-o", "json")
    assert done.returncode == 0, done.stderr
    cluster = json.loads(done.stdout)
    assert (cluster["max_unavailable"], cluster["drift_policy"], cluster["name"]) == ("10%", "never", "lab")
    before = daemon.get("/v1/cluster").body
    for body in ({"max_unavailable": "0"}, {"max_unavailable": "many"}, {"drift_policy": "x"}, {"accept_policy": 1}, {"id": "x"}, {"name": "-x"}):
        daemon.send("PATCH", "/v1/cluster", body).problem(400)
    assert daemon.get("/v1/cluster").body == before
    daemon.restart()
    assert daemon.get("/v1/cluster").body == before


@pytest.mark.parametrize("vars", [{"docker_version": 20.1}, {"base_manage_hosts": "no"}, {"etcd_wait": "soon"}, {"etcd_extra_names": "a,b"}, {"env": "a=b"},
                                  {"scheduler_provider": "nomad"}, {"etcd_extra_names": [True]}, {"x": "a\u0000b"}, {"x": {"a": ["\u0000"]}}])
def test_a_value_of_the_wrong_type_is_refused_everywhere(daemon, vars):
    daemon.add("n1", "service-master")
    before, globals_before = listing(daemon), daemon.get("/v1/globals").body
    for method in ("PUT", "PATCH"):
        problem = daemon.send(method, "/v1/globals", {"vars": vars}).problem(400)
        assert list(vars)[0] in problem["detail"]
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"vars": vars}}).problem(400)
    daemon.send("POST", "/v1/jobs", {"kind": "check", "nodes": ["n1"], "vars": vars}).problem(400)
    daemon.send("POST", "/v1/nodes", {"name": "n2", "spec": {"addr": "192.0.2.9", "vars": vars}}).problem(400)
    assert listing(daemon) == before and daemon.get("/v1/globals").body == globals_before


# -- labels --


def test_labels_of_a_selection(daemon):
    for name, rack in (("n1", "1"), ("n2", "1"), ("n3", "2")):
        daemon.add(name, labels={"rack": rack, "old": "x"})
    done = daemon.cli("node", "label", "-l", "rack=1", "zone=east", "old-")
    assert done.returncode == 0 and done.stdout == "node n1 labelled\nnode n2 labelled\n", done.stderr
    assert [daemon.node(n)["spec"]["labels"] for n in ("n1", "n2", "n3")] == [{"rack": "1", "zone": "east"}] * 2 + [{"rack": "2", "old": "x"}]
    old = daemon.node("n3")["resource_version"]
    assert daemon.cli("node", "label", "n3", "a=1", "--if-match", str(old)).returncode == 0
    assert daemon.cli("node", "label", "n3", "a=2", "--if-match", str(old)).returncode == 65
    assert daemon.cli("node", "label", "-l", "rack=9", "a=2").returncode != 0
    assert daemon.node("n3")["spec"]["labels"]["a"] == "1"


# -- history --


def test_the_history_of_a_node(fleet):
    fleet.commission("m1")
    fleet.double.orders(verify="unhealthy:m1:docker:it is sick")
    fleet.wait(fleet.submit("verify", nodes=["m1"])["id"])
    entries = fleet.get("/v1/nodes/m1/history").ok()["history"]
    messages = [e["message"] for e in reversed(entries)]
    assert messages[0] == "192.0.2.1" and "Unallocated → Provisioning" in messages and "Provisioning → Allocated" in messages
    assert "commission succeeded" in messages
    assert all(e["by"] for e in entries) and all(e["job"] for e in entries if e["type"] in ("job", "node.lifecycle"))
    assert len(fleet.get("/v1/nodes/m1/history?limit=2").ok()["history"]) == 2
    fleet.get("/v1/nodes/m1/history?limit=0").problem(400)
    fleet.get("/v1/nodes/nobody/history").problem(404)
    fleet.kill()
    fleet.start()
    assert fleet.get("/v1/nodes/m1/history").ok()["history"] == entries
    shown = fleet.cli("node", "history", "m1")
    assert shown.returncode == 0 and shown.stdout.splitlines()[0].split() == ["TIME", "WHAT", "BY", "JOB", "REASON"]
    assert json.loads(fleet.cli("node", "history", "m1", "-o", "json").stdout) == entries


def test_the_reason_of_a_job_is_in_the_history_of_its_nodes(daemon):
    daemon.add("m1", "service-master")
    daemon.commission("m1")
    daemon.add("w1", "service-worker")
    done = daemon.cli("node", "commission", "w1", "--reason", "rack 3 grows", "--yes")
    assert done.returncode == 0, done.stderr
    history = daemon.get("/v1/nodes/w1/history").ok()["history"]
    assert history[0]["type"] == "job" and {e["reason"] for e in history if e["job"]} == {"rack 3 grows"}
    assert "rack 3 grows" in daemon.cli("node", "history", "w1").stdout
    assert "rack 3 grows" in daemon.cli("job", "inspect", "last").stdout
    assert daemon.get("/v1/nodes/m1/history").ok()["history"][0]["reason"] == ""
