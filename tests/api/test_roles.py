"""promote, demote, pause, replace, update of the group, tombstones: what is the state after each way in which they end."""

import pytest

from harness import wait_for


def members(daemon, service):
    """Nodes that carry the service, with their role."""
    return {name: node["role"] for name, node in daemon.double.members().items() if service in node["services"]}


def conditions(daemon, name):
    return {c["type"] for c in daemon.node(name)["status"]["conditions"]}


def groups(daemon, name):
    """(wanted, verified)"""
    node = daemon.node(name)
    return node["spec"]["host_group"], (node["status"]["applied"] or {}).get("host_group")


def is_manager(daemon, name):
    return members(daemon, "swarm").get(name) == "manager" and "etcd" in daemon.double.members()[name]["services"] and \
        "ucarp" in daemon.double.members()[name]["services"]


def is_worker(daemon, name):
    found = daemon.double.members()[name]
    return found["role"] == "worker" and set(found["services"]) == {"base", "docker", "swarm"}


def stages(job):
    return [stage["name"] for stage in job["stages"] if stage["state"] != "skipped"]


def ended(daemon, kind, state, nodes, **request):
    return daemon.wait(daemon.submit(kind, nodes=nodes, **request)["id"], state)


def unchanged(daemon, send):
    """A refused request changes nothing and starts no run."""
    before, calls = daemon.get("/v1/nodes").body, len(daemon.double.calls())
    answer = send()
    assert daemon.get("/v1/nodes").body == before and len(daemon.double.calls()) == calls
    return answer


# ---- promote, demote ----------------------------------------------------------------------------


def test_promote_and_demote(cluster):
    done = cluster.cli("node", "promote", "w1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clusterctl node ls" in done.stdout + done.stderr
    assert is_manager(cluster, "w1") and groups(cluster, "w1") == ("service-master", "service-master")
    assert cluster.lifecycle("w1") == "Allocated" and not conditions(cluster, "w1")
    assert cluster.get("/v1/status").ok()["services"]["etcd"]["members"] == 4
    asked = cluster.cli("node", "demote", "m2")
    assert asked.returncode == 64 and "--yes" in asked.stderr
    done = cluster.cli("node", "demote", "m2", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert is_worker(cluster, "m2") and groups(cluster, "m2") == ("service-worker", "service-worker")
    assert cluster.get("/v1/status").ok()["services"]["etcd"]["members"] == 3
    assert cluster.wait(cluster.submit("verify", nodes=["m2", "w1"])["id"], "succeeded")


def test_a_demotion_cleans_with_the_old_role_and_makes_with_the_new(cluster):
    ended(cluster, "demote", "succeeded", ["m3"])
    given = {}
    for call in cluster.double.calls()[-5:]:
        hosts = {}
        import json
        tree = json.loads((call["dir"] / "inventory.json").read_text())["all"]
        for group in [tree] + list(tree["children"].values()):
            for name, variables in (group.get("hosts") or {}).items():
                hosts.setdefault(name, {}).update(variables or {})
        plain = lambda v: v["__ansible_unsafe"] if isinstance(v, dict) else v  # noqa: E731
        if "m3" in hosts:
            services = [plain(s) for s in hosts["m3"]["clusterctl_services"]]
            given.setdefault(call["playbook"], []).append((plain(hosts["m3"]["clusterctl_role"]), services))
    assert given["cleanup"] == [("manager", ["etcd", "ucarp"])]
    assert given["site"][-1] == ("worker", ["base", "docker", "swarm"])


@pytest.mark.parametrize("where,order", [("check", "problem:w1"), ("site", "fail-host:w1:etcd"), ("site", "fail-host:w1:swarm"),
                                         ("verify", "unhealthy:w1:etcd:no leader")])
def test_a_promotion_that_fails_leaves_a_worker(cluster, where, order):
    cluster.double.orders(**{where: {"do": order, "times": 1}})
    job = ended(cluster, "promote", "failed", ["w1"])
    assert is_worker(cluster, "w1"), cluster.double.members()["w1"]
    assert groups(cluster, "w1") == ("service-worker", "service-worker")
    assert members(cluster, "etcd").keys() == {"m1", "m2", "m3"}
    if where == "check":
        assert cluster.lifecycle("w1") == "Allocated" and "nothing was changed" in job["error"]
    else:
        assert cluster.lifecycle("w1") == "Maintenance" and conditions(cluster, "w1") == {"Failed"}
        assert [n["cleanup"] for n in job["nodes"]] == ["put back"]
    assert cluster.get("/v1/status").ok()["services"]["etcd"]["members"] == 3
    ended(cluster, "promote", "succeeded", ["w1"])
    assert is_manager(cluster, "w1") and cluster.lifecycle("w1") == "Allocated" and not conditions(cluster, "w1")


@pytest.mark.parametrize("where,order", [("site", "fail-host:m2:swarm"), ("cleanup", "fail-host:m2:etcd"), ("verify", "unhealthy:m2:docker")])
def test_a_demotion_that_fails_leaves_a_manager(cluster, where, order):
    cluster.double.orders(**{where: {"do": order, "times": 1}})
    job = ended(cluster, "demote", "failed", ["m2"])
    assert is_manager(cluster, "m2"), job
    assert groups(cluster, "m2") == ("service-master", "service-master")
    assert cluster.lifecycle("m2") == "Maintenance" and conditions(cluster, "m2") == {"Failed"}
    cluster.double.orders()
    ended(cluster, "update", "succeeded", ["m2"])
    assert cluster.lifecycle("m2") == "Allocated" and not conditions(cluster, "m2")


def test_a_node_that_cannot_be_put_back_says_so_and_has_a_way_out(cluster):
    cluster.double.orders(site="fail-host:w1:swarm", cleanup="fail-host:w1:etcd")
    job = ended(cluster, "promote", "failed", ["w1"])
    assert job["nodes"][0]["cleanup"].startswith("failed: ")
    assert conditions(cluster, "w1") == {"Failed", "Dirty"} and cluster.lifecycle("w1") == "Maintenance"
    assert groups(cluster, "w1") == ("service-worker", "service-worker")
    cluster.double.orders()
    ended(cluster, "decommission", "succeeded", ["w1"])
    assert "w1" not in cluster.double.members(), "also what only a manager carries"


def test_kept_on_request(cluster):
    cluster.double.orders(verify="unhealthy:w1:etcd")
    job = ended(cluster, "promote", "failed", ["w1"], keep_on_failure=True)
    assert is_manager(cluster, "w1") and [n["cleanup"] for n in job["nodes"]] == ["kept"]
    assert groups(cluster, "w1") == ("service-worker", "service-worker") and cluster.lifecycle("w1") == "Maintenance"
    assert conditions(cluster, "w1") == {"Failed", "Dirty"}
    cluster.double.orders()
    ended(cluster, "update", "succeeded", ["w1"])
    assert is_worker(cluster, "w1") and cluster.lifecycle("w1") == "Allocated" and not conditions(cluster, "w1")


def test_a_cancelled_demotion_is_put_back(cluster):
    cluster.double.orders(cleanup="gate:go:etcd")
    job = cluster.submit("demote", nodes=["m2"])
    cluster.double.wait_gate("go")
    cluster.send("POST", "/v1/jobs/%s/cancel" % job["id"], {}).ok(202)
    cluster.double.open_gate("go")
    job = cluster.wait(job["id"], "cancelled")
    assert is_manager(cluster, "m2") and cluster.lifecycle("m2") == "Maintenance"
    assert groups(cluster, "m2") == ("service-master", "service-master")


def test_a_restart_in_the_middle_goes_on(cluster):
    cluster.double.orders(site="gate:go:swarm")
    job = cluster.submit("demote", nodes=["m2"])
    cluster.double.wait_gate("go")
    cluster.kill()
    cluster.start()
    cluster.double.open_gate("go")
    cluster.wait(job["id"], "succeeded")
    assert is_worker(cluster, "m2") and cluster.lifecycle("m2") == "Allocated"


def test_the_last_manager_stays(cluster):
    for names in (["m1", "m2", "m3"], ["m1"]):
        if names == ["m1"]:
            ended(cluster, "demote", "succeeded", ["m2", "m3"])
        for kind, more in (("demote", {}), ("update", {"host_group": "service-worker"})):
            answer = unchanged(cluster, lambda k=kind, n=names, m=more: cluster.send("POST", "/v1/jobs", dict(m, kind=k, nodes=n)))
            problem = answer.problem(409)
            assert {p["code"] for p in problem["problems"]} == {"last_manager"}, problem
    assert is_worker(cluster, "m2") and is_worker(cluster, "m3")


def test_quorum_is_looked_at_again_before_the_first_change(cluster):
    cluster.double.orders(down=["m3"])
    job = ended(cluster, "demote", "failed", ["m2"])
    assert job["reason"] == "quorum_lost" and "nothing was changed" in job["error"], job["error"]
    assert is_manager(cluster, "m2") and cluster.lifecycle("m2") == "Allocated" and groups(cluster, "m2")[0] == "service-master"


def test_one_and_many_take_the_same_options(cluster):
    text = cluster.cli("node", "update", "--help").stdout
    assert "--host-group" in text and "--capabilities" in text
    done = cluster.cli("node", "update", "w1", "--host-group=service-master", "--plan")
    assert "step-down" not in done.stdout and "etcd" in done.stdout
    answer = cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"host_group": "service-master"}}).problem(409, "needs_job")
    assert "clusterctl node update w1 --host-group=service-master" in answer["hint"]


def test_a_drain_that_waits_behind_a_failed_promotion_does_not_keep_its_group(cluster):
    cluster.double.orders(site=["gate:go:swarm", {"do": "fail-host:w1:swarm", "times": 1}])
    job = cluster.submit("promote", nodes=["w1"])
    cluster.double.wait_gate("go")
    drain = cluster.submit("drain", nodes=["w1"])
    cluster.double.open_gate("go")
    cluster.wait(job["id"], "failed")
    cluster.wait(drain["id"], "succeeded")
    assert groups(cluster, "w1") == ("service-worker", "service-worker")
    assert cluster.node("w1")["spec"]["availability"] == "drain"


def test_an_update_gives_another_group(cluster):
    job = cluster.wait(cluster.submit("update", nodes=["w1"], host_group="service-master")["id"], "succeeded")
    assert job["request"]["host_group"] == "service-master"
    node = cluster.node("w1")
    assert node["status"]["applied"]["host_group"] == node["spec"]["host_group"] == "service-master" and node["role"] == "manager"
    assert cluster.double.members()["w1"]["role"] == "manager"


def test_a_promotion_that_waits_behind_an_update_is_not_taken_for_done(cluster):
    cluster.double.orders(site="gate:go:swarm")
    update = cluster.submit("update", nodes=["w1"])
    cluster.double.wait_gate("go")
    promote = cluster.submit("promote", nodes=["w1"])
    assert groups(cluster, "w1") == ("service-master", "service-worker")
    cluster.double.open_gate("go")
    cluster.wait(update["id"], "succeeded")
    cluster.wait(promote["id"], "succeeded")
    assert is_manager(cluster, "w1") and groups(cluster, "w1") == ("service-master", "service-master")


# ---- pause, manager only ------------------------------------------------------------------------


def test_pause(cluster):
    done = cluster.cli("node", "pause", "w1")
    assert done.returncode == 0 and "clusterctl node activate w1" in done.stdout + done.stderr, done.stdout + done.stderr
    assert cluster.double.members()["w1"]["availability"] == "pause"
    assert cluster.node("w1")["status"]["applied"]["availability"] == "pause"
    answer = cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"availability": "pause"}})
    assert answer.status == 200
    answer = cluster.send("PATCH", "/v1/nodes/m1", {"spec": {"availability": "pause"}}).problem(409, "needs_job")
    assert "clusterctl node pause m1" in answer["hint"]


def test_manager_only_is_told_to_the_first_join(fleet):
    fleet.commission("m1", "m2", "m3", availability="drain")
    for name in ("m1", "m2", "m3"):
        assert fleet.double.members()[name]["availability"] == "drain"
        assert fleet.node(name)["status"]["applied"]["availability"] == "drain"


# ---- replace ------------------------------------------------------------------------------------


@pytest.fixture
def spare(cluster):
    cluster.add("n9")
    return cluster


def test_replace_a_live_manager(spare):
    spare.send("PATCH", "/v1/nodes/m2", {"spec": {"labels": {"tier": "gold"}, "vars": {"x": 1}}}).ok()
    done = spare.cli("node", "replace", "m2", "--with", "n9", "--take-vars", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clusterctl node rm m2" in done.stdout + done.stderr
    assert is_manager(spare, "n9") and "m2" not in spare.double.members()
    assert spare.lifecycle("m2") == "Decommissioned" and spare.lifecycle("n9") == "Allocated"
    assert groups(spare, "n9") == ("service-master", "service-master")
    spec = spare.node("n9")["spec"]
    assert spec["labels"] == {"tier": "gold"} and spec["vars"] == {"x": 1}
    played = spare.double.playbooks()
    assert played.index("cleanup") > len(played) - 1 - played[::-1].index("verify")
    # Its place is taken: a second one would be one more.
    spare.add("n8")
    again = unchanged(spare, lambda: spare.cli("node", "replace", "m2", "--with", "n8", "--yes"))
    assert again.returncode == 65 and "m2 has left, and n9 has its place" in again.stderr
    assert conditions(spare, "m2") == {"Replaced"} and "m2:" not in spare.cli("status").stdout
    spare.restart()
    assert spare.cli("node", "replace", "m2", "--with", "n8", "--yes").returncode == 65
    done = spare.cli("node", "replace", "n9", "--with", "n8", "--yes")
    assert (done.stdout + done.stderr).count("node rm n9") == 1, "the way on is said once"
    spare.commission("m2")
    assert not conditions(spare, "m2")


def test_replace_a_dead_manager(spare):
    spare.double.orders(down=["m2"])
    spare.wait(spare.submit("verify", nodes=["m2"])["id"], "failed")
    plain = unchanged(spare, lambda: spare.send("POST", "/v1/jobs", {"kind": "replace", "nodes": ["m2"], "with": "n9"}))
    assert "--i-have-powered-it-off" in str(plain.problem(409))
    calls = len(spare.double.calls())
    ended(spare, "replace", "succeeded", ["m2"], **{"with": "n9", "force": True, "powered_off": True})
    assert all("m2" not in call["targets"] + call["peers"] for call in spare.double.calls()[calls:]), "nobody goes there"
    assert is_manager(spare, "n9") and "m2" not in spare.double.members()
    assert spare.lifecycle("m2") == "Decommissioned" and conditions(spare, "m2") == {"NotCleaned", "Replaced"}


@pytest.mark.parametrize("order", [{"check": "problem:n9"}, {"site": "fail-host:n9:swarm"}, {"verify": "unhealthy:n9:etcd"}])
def test_a_replacement_whose_new_node_fails_leaves_the_old_one_alone(spare, order):
    spare.double.orders(**order)
    job = ended(spare, "replace", "failed", ["m2"], **{"with": "n9"})
    assert is_manager(spare, "m2") and spare.lifecycle("m2") == "Allocated" and not conditions(spare, "m2")
    assert spare.lifecycle("n9") == "Unallocated" and "n9" not in spare.double.members()
    assert groups(spare, "n9")[0] == "" and "n9" in job["error"]
    spare.double.orders()
    new = spare.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).ok(202)
    spare.wait(new["id"], "succeeded")
    assert is_manager(spare, "n9") and spare.lifecycle("m2") == "Decommissioned"


def test_a_replacement_whose_old_node_cannot_be_cleaned_goes_on_with_that(spare):
    spare.double.orders(cleanup="fail-host:m2:docker")
    job = ended(spare, "replace", "failed", ["m2"], **{"with": "n9"})
    assert is_manager(spare, "n9") and spare.lifecycle("n9") == "Allocated" and not conditions(spare, "n9")
    assert spare.lifecycle("m2") == "Cancelled" and "NotCleaned" in conditions(spare, "m2")
    spare.double.orders()
    calls = len(spare.double.calls())
    new = spare.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).ok(202)
    spare.wait(new["id"], "succeeded")
    assert "site" not in [c["playbook"] for c in spare.double.calls()[calls:]]
    assert spare.lifecycle("m2") == "Decommissioned" and conditions(spare, "m2") == {"Replaced"} and "m2" not in spare.double.members()


def test_a_dead_one_is_gone_although_the_new_one_fails(spare):
    spare.double.orders(down=["m2"], verify="unhealthy:n9:etcd")
    job = ended(spare, "replace", "failed", ["m2"], **{"with": "n9", "force": True, "powered_off": True})
    assert spare.lifecycle("m2") == "Decommissioned" and spare.lifecycle("n9") == "Unallocated"
    spare.double.orders(down=["m2"])
    new = spare.send("POST", "/v1/jobs/%s/resume" % job["id"], {}).ok(202)
    spare.wait(new["id"], "succeeded")
    assert is_manager(spare, "n9")


def test_a_replacement_survives_a_restart_and_holds_both_nodes(spare):
    spare.double.orders(site="gate:go:etcd")
    job = spare.submit("replace", nodes=["m2"], **{"with": "n9"})
    spare.double.wait_gate("go")
    assert spare.lifecycle("m2") == "Allocated", "it serves until the new one does"
    for name in ("m2", "n9"):
        kind = "update" if name == "m2" else "check"
        answer = spare.send("POST", "/v1/jobs", {"kind": kind, "nodes": [name], "if_busy": "refuse"})
        assert answer.problem(409)["code"] == "busy"
    assert spare.send("POST", "/v1/jobs", {"kind": "replace", "nodes": ["m1"], "with": "n9"}).problem(409)["code"] == "duplicate"
    spare.kill()
    spare.start()
    spare.double.open_gate("go")
    spare.wait(job["id"], "succeeded")
    assert is_manager(spare, "n9") and spare.lifecycle("m2") == "Decommissioned"


def test_a_cancelled_replacement(spare):
    spare.double.orders(site="gate:go:etcd")
    job = spare.submit("replace", nodes=["w1"], **{"with": "n9"})
    wait_for(lambda: spare.lifecycle("n9") == "Provisioning", "the new node's work")
    spare.send("POST", "/v1/jobs/%s/cancel" % job["id"], {"now": True}).ok(202)
    spare.double.open_gate("go")
    spare.wait(job["id"])
    assert spare.lifecycle("w1") == "Allocated" or spare.job(job["id"])["state"] == "succeeded"


# ---- warnings, tombstones, next steps -----------------------------------------------------------


def test_what_a_decommission_costs_is_said_before(cluster):
    plan = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["m2"], "dry_run": True}).ok()["plan"]
    assert {w["code"] for w in plan["warnings"]} == {"less_tolerance"} and len(plan["warnings"]) == 2
    everything = ["m1", "m2", "m3", "w1"]
    plan = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": everything, "dry_run": True}).ok()["plan"]
    assert {w["code"] for w in plan["warnings"]} == {"ends_cluster"}
    plan = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["w1"], "dry_run": True}).ok()["plan"]
    assert plan["warnings"] == []


def test_a_removed_node_that_was_not_cleaned_is_known_when_it_comes_back(cluster):
    cluster.double.orders(down=["w1"])
    ended(cluster, "decommission", "succeeded", ["w1"], force=True, powered_off=True)
    assert conditions(cluster, "w1") == {"NotCleaned"}
    addr = cluster.node("w1")["spec"]["addr"]
    assert cluster.cli("node", "rm", "w1").returncode == 0
    cluster.restart()
    cluster.double.orders()
    cluster.add("other", addr=addr)
    assert conditions(cluster, "other") == {"NotCleaned"} and "w1" in str(cluster.node("other")["status"]["conditions"])
    calls = len(cluster.double.calls())
    cluster.commission("other", host_group="service-worker")
    assert cluster.double.calls()[calls]["playbook"] == "cleanup" and not conditions(cluster, "other")
    ended(cluster, "decommission", "succeeded", ["other"])
    cluster.cli("node", "rm", "other")
    cluster.add("third", addr=addr)
    assert conditions(cluster, "third") == set(), "what was cleaned owes nothing"


def test_a_dead_node_that_answers_again_is_flagged(cluster):
    cluster.double.orders(down=["w1"])
    ended(cluster, "decommission", "succeeded", ["w1"], force=True, powered_off=True)
    cluster.wait(cluster.submit("check", nodes=["w1"])["id"], "failed")
    cluster.double.orders()
    ended(cluster, "check", "succeeded", ["w1"])
    events = cluster.get("/v1/events?since=0&limit=10000").ok()["events"]
    assert [e["node"] for e in events if e["type"] == "node.returned"] == ["w1"]
    assert conditions(cluster, "w1") == {"NotCleaned"}


def test_hints_name_what_can_be_done(cluster):
    cluster.add("u1")
    problem = cluster.send("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["u1"]}).problem(409)
    assert "clusterctl node rm u1" in str(problem)
    problem = cluster.send("POST", "/v1/jobs", {"kind": "update", "nodes": ["u1"]}).problem(409)
    assert "maintenance" not in str(problem) and "clusterctl node commission u1" in str(problem)
    cluster.double.orders(availability="blocked:w1")
    job = ended(cluster, "drain", "failed", ["w1"], deadline=5)
    assert "--deadline" in job["hint"]
    done = cluster.cli("node", "check", "w1")
    assert "node commission" not in done.stdout + done.stderr and "clusterctl node verify" in done.stdout + done.stderr


def test_who_watches_is_told_that_the_job_is_paused(cluster):
    import subprocess

    import harness
    cluster.double.orders(check="gate:go")
    job = cluster.submit("update", nodes=["w1"])
    cluster.double.wait_gate("go")
    cluster.send("POST", "/v1/jobs/%s/pause" % job["id"], {}).ok(202)
    out = cluster.directory / "watch.txt"
    with open(out, "w") as file:
        watcher = subprocess.Popen([str(harness.BINARY), "job", "wait", job["id"]], stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                                   env=dict(cluster.environment(), CLUSTERCTL_SERVER="unix:%s" % cluster.socket))
    cluster.double.open_gate("go")
    wait_for(lambda: "paused; clusterctl job resume" in out.read_text(), "the word of the pause")
    cluster.send("POST", "/v1/jobs/%s/resume" % job["id"], {})
    assert watcher.wait(60) == 0 and "goes on" in out.read_text()
