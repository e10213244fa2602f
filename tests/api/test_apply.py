"""plan and apply: a file is made true in one commit and the jobs that follow; a second time there is nothing to do."""

import datetime
import json
import random
import re
import subprocess
import threading
import time

import pytest
import yaml

from harness import BINARY, wait_for

HOSTILE = {
    "quotes": "it's \"quoted\"", "newline": "a\nb\n", "octal": "012", "number": 12, "exponent": "1e3", "fraction": 1.5, "large": 1e16, "yes": "yes",
    "truth": True, "nothing": None, "null_text": "null", "big": 9223372036854775807, "bigger": 18446744073709551615, "digits": "12345678901234567890123",
    "umlaut": "Größe ☃ 漢字", "jinja": "{{ lookup('pipe', 'id') }}", "empty": "", "list": [1, "02", [], {}], "deep": {"a": {"b": ["x: y", "# no comment"]}},
    "date": "2026-11-30", "time": "12:30:45", "tilde": "~", "equals": "=", "merge": "<<", "tab": "a\tb", "bell": "\u0007", "nel": "a\u0085b\u2028c",
    "hex": "0x10", "binary": "0b1", "underscore": "1_000", "plus": "+1", "dash": "- x", "at": "@x", "percent": "%x", "space": " x ", "inf": ".inf"}


def hosts(**groups):
    """groups: service_master={"m1": {...}}"""
    return {"all": {"children": {name.replace("_", "-"): {"hosts": members} for name, members in groups.items()}}}


def write(daemon, document, name="hosts.yml"):
    path = daemon.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, allow_unicode=True))
    return str(path)


def apply(daemon, path, *more, code=0, **options):
    done = daemon.cli("apply", "-f", path, "--yes", *more, **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def plan(daemon, *arguments, code=2):
    done = daemon.cli("plan", *arguments, "-o", "json")
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if code != 3 else done.stderr


def records(daemon):
    return daemon.get("/v1/nodes").body + daemon.get("/v1/globals").body


def last_event(daemon):
    return daemon.get("/v1/events?limit=1").ok()["last"]


def events_since(daemon, seq):
    return daemon.get("/v1/events?since=%d&limit=10000" % seq).ok()["events"]


FOUR = hosts(service_master={"m1": {"ansible_host": "192.0.2.1"}, "m2": {"ansible_host": "192.0.2.62"}, "m3": {"ansible_host": "192.0.2.3"}},
             service_worker={"w1": {"ansible_host": "192.0.2.4", "mtu": 1500}})
FOUR["all"]["vars"] = {"service_vip": "192.0.2.100"}


def with_worker(name, addr, **variables):
    changed = json.loads(json.dumps(FOUR))
    changed["all"]["children"]["service-worker"]["hosts"][name] = dict(variables, ansible_host=addr)
    return changed


# ---- the way there ------------------------------------------------------------------------------


def test_a_directory_is_made_true_and_a_second_time_there_is_nothing_to_do(daemon):
    write(daemon, {"all": {"children": {"service-master": {"hosts": {"m[1:3]": None}}, "service-worker": {"hosts": {"w1": None}}}}}, "fleet/inventory/hosts.yml")
    write(daemon, {"service_vip": "192.0.2.100"}, "fleet/group_vars/all.yml")
    for i, name in enumerate(("m1", "m2", "m3", "w1")):
        write(daemon, {"ansible_host": "192.0.2.%d" % (i + 61), "own": name}, "fleet/host_vars/%s.yml" % name)
    path = str(daemon.directory / "fleet")

    seen = plan(daemon, "-f", path)
    assert [n["what"] for n in seen["nodes"]] == ["add"] * 4 and seen["steps"][0]["kind"] == "commission"
    assert daemon.get("/v1/nodes").ok()["nodes"] == [], "a plan changes nothing"

    apply(daemon, path)
    for name in ("m1", "m2", "m3", "w1"):
        assert daemon.lifecycle(name) == "Allocated" and daemon.node(name)["spec"]["vars"] == {"own": name}
    before, calls, seq = records(daemon), len(daemon.double.calls()), last_event(daemon)
    assert "nothing to do: 4 nodes" in apply(daemon, path).stdout
    assert daemon.cli("plan", "-f", path).returncode == 0
    assert records(daemon) == before and len(daemon.double.calls()) == calls and events_since(daemon, seq) == []


def test_changed_variables_update_their_node_and_no_other(daemon):
    apply(daemon, write(daemon, FOUR))
    others = {name: daemon.node(name) for name in ("m1", "m2", "m3")}
    changed = with_worker("w1", "192.0.2.4", mtu=9000)
    seen = plan(daemon, "-f", write(daemon, changed))
    assert [(n["name"], [(f["field"], f["from"], f["to"]) for f in n["fields"]]) for n in seen["nodes"]] == [("w1", [("vars.mtu", 1500, 9000)])]
    assert [s["kind"] for s in seen["steps"]] == ["update"]
    apply(daemon, write(daemon, changed))
    assert daemon.lifecycle("w1") == "Allocated" and daemon.node("w1")["spec"]["vars"] == {"mtu": 9000}
    assert {name: daemon.node(name)["resource_version"] for name in others} == {name: n["resource_version"] for name, n in others.items()}
    assert daemon.cli("plan", "-f", write(daemon, changed)).returncode == 0


def test_a_name_is_found_in_any_spelling(daemon):
    apply(daemon, write(daemon, FOUR))
    for spelling in ("W1.", "w1.example.com"):
        document = json.loads(json.dumps(FOUR))
        workers = document["all"]["children"]["service-worker"]["hosts"]
        workers[spelling] = workers.pop("w1")
        assert daemon.cli("plan", "-f", write(daemon, document)).returncode == 0, spelling


def test_what_differs_is_marked_until_it_is_applied(daemon):
    apply(daemon, write(daemon, FOUR))
    changed = write(daemon, with_worker("w1", "192.0.2.4", mtu=9000))
    apply(daemon, changed, "--records-only")
    drifted = {n["name"]: [c["reason"] for c in n["status"]["conditions"] if c["type"] == "Drifted"] for n in daemon.get("/v1/nodes").ok()["nodes"]}
    assert "mtu" in drifted.pop("w1")[0] and not any(drifted.values())
    apply(daemon, changed)
    assert daemon.node("w1")["status"]["conditions"] == []


def test_another_group_is_a_promotion_and_a_demotion(daemon):
    apply(daemon, write(daemon, FOUR))
    up = json.loads(json.dumps(FOUR))
    children = up["all"]["children"]
    children["service-master"]["hosts"].update(children["service-worker"].pop("hosts"))
    for document, kind, group in ((up, "promote", "service-master"), (FOUR, "demote", "service-worker")):
        path = write(daemon, document)
        assert [s["kind"] for s in plan(daemon, "-f", path)["steps"]] == [kind]
        apply(daemon, path)
        assert daemon.node("w1")["status"]["applied"]["host_group"] == daemon.node("w1")["spec"]["host_group"] == group
        assert "nothing to do" in apply(daemon, path).stdout


def test_availability_follows_the_file(daemon):
    apply(daemon, write(daemon, with_worker("w2", "192.0.2.5")))
    drained = with_worker("w2", "192.0.2.5", clusterctl_availability="drain")
    assert [s["kind"] for s in plan(daemon, "-f", write(daemon, drained))["steps"]] == ["drain"]
    apply(daemon, write(daemon, drained))
    assert daemon.node("w2")["status"]["applied"]["availability"] == "drain"
    # A file that does not speak of it leaves it: maintenance is not ended by accident.
    assert daemon.cli("plan", "-f", write(daemon, with_worker("w2", "192.0.2.5"))).returncode == 0
    apply(daemon, write(daemon, with_worker("w2", "192.0.2.5", clusterctl_availability="active")))
    assert daemon.node("w2")["spec"]["availability"] == "active"


def test_what_is_in_maintenance_is_left_out_and_nothing_is_said_to_be_done(daemon):
    file = write(daemon, with_worker("w2", "192.0.2.5"))
    apply(daemon, file)
    daemon.wait(daemon.submit("maintenance-enter", nodes=["w2"], force=True)["id"], "succeeded")
    before = records(daemon)
    write(daemon, with_worker("w2", "192.0.2.5", clusterctl_availability="pause"))
    done = apply(daemon, file)
    assert "nothing to do now" in done.stdout and "left as before: w2" in done.stdout and "in maintenance" in done.stdout
    assert "applied" not in done.stdout + done.stderr and records(daemon) == before
    seen = plan(daemon, "-f", file, code=0)
    assert seen["left_out"] == ["w2"] and seen["nodes"] == [] and [w["code"] for w in seen["warnings"]] == ["left_out"]
    daemon.wait(daemon.submit("maintenance-exit", nodes=["w2"])["id"], "succeeded")
    apply(daemon, file)
    assert daemon.node("w2")["spec"]["availability"] == "pause"


def test_one_node_more_among_five_hundred_is_the_work_of_one(daemon):
    document = json.loads(json.dumps(FOUR))
    workers = {"w%d" % i: {"ansible_host": "10.0.%d.%d" % (i // 200, i % 200 + 1), "rack": "r%d" % (i % 10)} for i in range(1, 498)}
    document["all"]["children"]["service-worker"]["hosts"] = workers
    path = write(daemon, document)
    begin = time.monotonic()
    plan(daemon, "-f", path)
    took = time.monotonic() - begin
    apply(daemon, path, timeout=600)
    assert all(n["status"]["lifecycle"] == "Allocated" for n in daemon.get("/v1/nodes").ok()["nodes"])
    assert daemon.cli("plan", "-f", path).returncode == 0

    before = {n["name"]: n for n in daemon.get("/v1/nodes").ok()["nodes"]}
    seq = last_event(daemon)
    workers["w500"] = {"ansible_host": "10.0.9.1"}
    seen = plan(daemon, "-f", write(daemon, document))
    assert [n["name"] for n in seen["nodes"]] == ["w500"] and seen["unchanged"] == 500
    apply(daemon, path)
    after = {n["name"]: n for n in daemon.get("/v1/nodes").ok()["nodes"]}
    assert after.pop("w500")["status"]["lifecycle"] == "Allocated"
    assert {name: n["resource_version"] for name, n in after.items()} == {name: n["resource_version"] for name, n in before.items()}
    assert {e["node"] for e in events_since(daemon, seq) if e.get("node")} == {"w500"}
    for call in daemon.double.calls()[-2:]:
        assert call["targets"] == ["w500"], call
    print("plan of 500 nodes: %.2f s" % took)


# ---- all or nothing -----------------------------------------------------------------------------


REFUSED = [
    ("addr_taken", lambda d: d["all"]["children"]["service-worker"]["hosts"].update(w3={"ansible_host": "192.0.2.1"}), "duplicate_addr"),
    ("no_manager", lambda d: d["all"]["children"].update({"service-master": None}), None),
    ("label", lambda d: d["all"]["children"]["service-worker"]["hosts"]["w1"].update(clusterctl_labels={"a b": "c"}), None),
    ("capability", lambda d: d["all"]["children"]["service-worker"]["hosts"]["w1"].update(clusterctl_capabilities=["A B"]), None),
    ("version", lambda d: d["all"]["children"]["service-worker"]["hosts"]["w1"].update(clusterctl_versions={"docker": "20.10 x"}), None),
    ("variable", lambda d: d["all"]["children"]["service-worker"]["hosts"]["w1"].update(ansible_become_password="x"), None),
    ("type", lambda d: d["all"]["children"]["service-worker"]["hosts"]["w1"].update(docker_version=20.1), None),
    ("spelling", lambda d: d["all"]["children"]["service-worker"]["hosts"].update({"w1.example.com": {"ansible_host": "192.0.2.9"}}), None)]


@pytest.mark.parametrize("name", [entry[0] for entry in REFUSED])
def test_one_bad_node_refuses_the_whole_file(daemon, name):
    document = json.loads(json.dumps(FOUR))
    next(entry for entry in REFUSED if entry[0] == name)[1](document)
    path = write(daemon, document)
    daemon.add("old", "service-worker", addr="192.0.2.77")
    before, seq = records(daemon), last_event(daemon)
    refused = apply(daemon, path, code=65)
    assert refused.stderr.startswith("error: ") or "\nerror: " in refused.stderr
    plan(daemon, "-f", path, code=3)
    assert records(daemon) == before and events_since(daemon, seq) == [] and daemon.get("/v1/jobs").ok()["jobs"] == []
    assert daemon.get("/v1/plans").ok()["plans"] == []


def test_group_of_a_commissioned_node_needs_work_that_is_there_or_is_refused(daemon):
    apply(daemon, write(daemon, FOUR))
    document = json.loads(json.dumps(FOUR))
    document["all"]["children"]["service-worker"]["hosts"]["w1"]["clusterctl_capabilities"] = ["storage"]
    before = records(daemon)
    done = daemon.cli("apply", "-f", write(daemon, document), "--yes", "--records-only")
    assert done.returncode == 65 and "needs_job" in done.stderr + done.stdout or "need work" in done.stderr
    assert records(daemon) == before


def test_kill_nine_in_the_middle_is_all_or_nothing(stopped):
    document = hosts(service_worker={"w%d" % i: {"ansible_host": "10.1.%d.%d" % (i // 200, i % 200 + 1)} for i in range(400)})
    path = write(stopped, document)
    seen = set()
    for delay in (0, 0.02, 0.05, 0.1, 0.2, 0.4):
        stopped.start()
        wanted = stopped.send("POST", "/v1/plans", {"document": json.loads(json.dumps(
            {"nodes": [{"name": name, "spec": {"addr": v["ansible_host"], "host_group": "service-worker"}}
                       for name, v in document["all"]["children"]["service-worker"]["hosts"].items()]})), "work": False}).ok(201)
        thread = threading.Thread(target=lambda: ask_quietly(stopped, "/v1/plans/%s/apply" % wanted["id"]))
        thread.start()
        time.sleep(delay)  # not waiting for anything: the moment of the kill is what varies
        stopped.kill()
        thread.join()
        stopped.start()
        found = len(stopped.get("/v1/nodes").ok()["nodes"])
        assert found in (0, 400), found
        revisions = stopped.get("/v1/revisions").ok()["current"]
        assert (found == 400) == (stopped.get("/v1/plans/" + wanted["id"]).ok()["applied"] is not None)
        seen.add(found)
        if found:
            assert stopped.get("/v1/revisions").ok()["revisions"][0]["nodes"]["added"] != []
            gone = stopped.send("POST", "/v1/plans", {"changes": {"remove": ["w%d" % i for i in range(400)]}, "work": False}).ok(201)
            stopped.send("POST", "/v1/plans/%s/apply" % gone["id"], {}).ok(200)
            assert stopped.get("/v1/revisions").ok()["current"] == revisions + 1
        stopped.stop()
    assert path and seen


def ask_quietly(daemon, path):
    try:
        daemon.send("POST", path, {})
    except OSError:
        pass
    except Exception:  # the daemon is killed in the middle of its answer
        pass


# ---- stored plans -------------------------------------------------------------------------------


def test_a_stored_plan_is_refused_when_a_node_it_concerns_changed(daemon):
    apply(daemon, write(daemon, FOUR))
    wanted = plan(daemon, "-f", write(daemon, with_worker("w1", "192.0.2.4", mtu=9000)))
    daemon.send("PATCH", "/v1/nodes/w1", {"spec": {"labels": {"rack": "r1"}}}).ok()
    before = records(daemon)
    problem = daemon.send("POST", "/v1/plans/%s/apply" % wanted["id"], {}).problem(412, "plan_stale")
    assert [p["node"] for p in problem["problems"]] == ["w1"] and "generation" in problem["detail"]
    refused = daemon.cli("apply", wanted["id"])
    assert refused.returncode == 65 and "w1 was generation" in refused.stderr
    assert records(daemon) == before


def test_a_stored_plan_does_not_mind_changes_of_others(daemon):
    apply(daemon, write(daemon, FOUR))
    wanted = plan(daemon, "-f", write(daemon, with_worker("w1", "192.0.2.4", mtu=9000)))
    daemon.send("PATCH", "/v1/nodes/m1", {"spec": {"labels": {"rack": "r1"}}}).ok()
    done = daemon.cli("apply", wanted["id"])
    assert done.returncode == 0, done.stderr
    again = daemon.send("POST", "/v1/plans/%s/apply" % wanted["id"], {}).ok(202)
    assert len(daemon.get("/v1/jobs?kind=update").ok()["jobs"]) == 1 == len(again["jobs"]), "applying twice is applying once"


def test_a_stored_plan_is_stale_after_a_change_of_globals_or_a_new_node_of_that_name(daemon):
    wanted = plan(daemon, "-f", write(daemon, FOUR))
    daemon.send("PATCH", "/v1/globals", {"vars": {"x": 1}}).ok()
    daemon.send("POST", "/v1/plans/%s/apply" % wanted["id"], {}).problem(412, "plan_stale")
    wanted = plan(daemon, "-f", write(daemon, FOUR))
    daemon.add("w1", "service-worker", addr="192.0.2.50")
    problem = daemon.send("POST", "/v1/plans/%s/apply" % wanted["id"], {}).problem(412, "plan_stale")
    assert problem["problems"][0]["node"] == "w1"


def test_plans_survive_a_restart_and_jobs_can_be_planned_as_well(fleet):
    wanted = fleet.send("POST", "/v1/plans", {"job": {"kind": "commission", "nodes": ["m1", "m2", "m3"], "vars": {"x_password": "s3cr3t-value"}}}).ok(201)
    assert "s3cr3t-value" not in json.dumps(wanted)
    fleet.restart()
    answer = fleet.send("POST", "/v1/plans/%s/apply" % wanted["id"], {}).ok(202)
    fleet.wait(answer["jobs"][0]["id"], "succeeded")
    assert json.loads((fleet.double.calls("site")[0]["dir"] / "vars.json").read_text())["x_password"] == {"__ansible_unsafe": "s3cr3t-value"}
    unknown = fleet.send("POST", "/v1/plans/0123/apply", {})
    unknown.problem(404, "no_such_plan")


@pytest.mark.parametrize("body,status", [
    ({}, 400), ({"document": {}, "changes": {}}, 400), ({"document": []}, 400), ({"document": {"nodes": {}}}, 400), ({"document": {"nodes": [1]}}, 400),
    ({"document": {"nodez": []}}, 400), ({"to_revision": -1}, 400), ({"to_revision": "x"}, 400), ({"to_revision": 7}, 404), ({"job": {"kind": "nonsense"}}, 400),
    ({"document": {"nodes": [{"name": "a", "spec": {"addr": "10.0.0.1"}}, {"name": "a", "spec": {"addr": "10.0.0.2"}}]}}, 400),
    ({"document": {"nodes": [{"name": "A B", "spec": {"addr": "10.0.0.1"}}]}}, 400), ({"changes": {"remove": ["none"]}}, 404),
    ({"document": {"nodes": []}, "options": {"colour": 1}}, 400), ({"document": {"nodes": [], "globals": {"ansible_user": "x"}}}, 400),
    ({"document": {"nodes": [{"name": "a", "spec": {"addr": "10.0.0.1", "vars": {"p": {"secret": "none"}}}}]}}, 400)])
def test_bad_plan_requests_are_refused(daemon, body, status):
    before = records(daemon)
    problem = daemon.send("POST", "/v1/plans", body).problem(status)
    assert problem["code"] and records(daemon) == before and daemon.get("/v1/plans").ok()["plans"] == []


# ---- what the file does not have ----------------------------------------------------------------


def test_missing_nodes_are_listed_and_go_only_with_prune(daemon):
    apply(daemon, write(daemon, with_worker("w2", "192.0.2.5")))
    daemon.add("spare", "", addr="192.0.2.60")
    path = write(daemon, FOUR)
    done = apply(daemon, path)
    assert "not in it, left alone" in done.stdout and "spare, w2" in done.stdout and "nothing to do" in done.stdout
    assert daemon.lifecycle("w2") == "Allocated"
    assert daemon.cli("apply", "-f", path, "--prune").returncode == 64, "no terminal and no --yes"
    seen = plan(daemon, "-f", path, "--prune")
    assert [(n["name"], n["what"]) for n in seen["nodes"]] == [("spare", "remove"), ("w2", "remove")]
    assert seen["steps"][0]["kind"] == "decommission" and seen["steps"][0]["removes"]
    apply(daemon, path, "--prune")
    assert [n["name"] for n in daemon.get("/v1/nodes").ok()["nodes"]] == ["m1", "m2", "m3", "w1"]
    assert daemon.double.calls("cleanup")[-1]["targets"] == ["w2"]
    assert daemon.cli("plan", "-f", path, "--prune").returncode == 0


def test_a_failed_step_keeps_the_ones_after_it_from_beginning(daemon):
    apply(daemon, write(daemon, with_worker("w2", "192.0.2.5")))
    replaced = json.loads(json.dumps(FOUR))
    replaced["all"]["children"]["service-worker"]["hosts"]["w3"] = {"ansible_host": "192.0.2.6"}
    path = write(daemon, replaced)
    daemon.double.orders(site="fail:2")
    done = apply(daemon, path, "--prune", code=1)
    assert "not begun" in done.stderr, done.stderr
    jobs = {j["kind"]: j for j in daemon.get("/v1/jobs?limit=2").ok()["jobs"]}
    wait_for(lambda: daemon.job(jobs["decommission"]["id"])["state"] == "cancelled", "the second step to end")
    assert daemon.job(jobs["decommission"]["id"])["reason"] == "step_failed" and daemon.lifecycle("w2") == "Allocated"
    daemon.double.orders()
    apply(daemon, path, "--prune")
    assert [n["name"] for n in daemon.get("/v1/nodes").ok()["nodes"]] == ["m1", "m2", "m3", "w1", "w3"]


# ---- there and back -----------------------------------------------------------------------------


def test_what_is_exported_is_found_unchanged(daemon):
    daemon.send("PUT", "/v1/globals", {"vars": dict(HOSTILE, service_vip="192.0.2.100", db_password="glob-secret-1")}).ok()
    for i in range(3):
        daemon.add("m%d" % (i + 1), "service-master", vars=HOSTILE)
    daemon.add("w1", "service-worker", vars=dict(HOSTILE, api_token={"a": "tok-secret-2"}, nested={"x_password": "nes-secret-3", "b": 1}),
               labels={"rack": "r3", "yes": "no"}, ssh={"user": "ops", "port": 2222, "jump": "ops@192.0.2.9"})
    daemon.commission("m1", "m2", "m3", "w1")
    daemon.add("w2", "service-worker", allocation="spare", vars=HOSTILE, availability="drain")
    daemon.add("w3", "", vars={"x": None})
    before = records(daemon)
    exported = daemon.cli("inventory", "export")
    assert exported.returncode == 0 and "secret-" not in exported.stdout
    (daemon.directory / "e.yml").write_text(exported.stdout)
    for name, text in (("e.yml", exported.stdout), ("e.json", daemon.cli("inventory", "export", "-o", "json").stdout)):
        (daemon.directory / name).write_text(text)
        for reader in ("own", "ansible"):
            done = daemon.cli("apply", "-f", str(daemon.directory / name), "--reader", reader, "--yes")
            assert done.returncode == 0 and "nothing to do" in done.stdout, (name, reader, done.stdout, done.stderr)
    with open(daemon.directory / "e.yml") as stdin:
        done = subprocess.run([str(BINARY), "apply", "-f", "-", "--yes"], env={**daemon.environment(), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket},
                              stdin=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "nothing to do" in done.stdout, done.stderr
    assert records(daemon) == before


def test_a_secret_that_is_the_same_is_no_change_and_another_one_is(daemon):
    document = with_worker("w1", "192.0.2.4", x_password="first-secret")
    apply(daemon, write(daemon, document))
    assert "nothing to do" in apply(daemon, write(daemon, document)).stdout
    document = with_worker("w1", "192.0.2.4", x_password="second-secret")
    done = daemon.cli("plan", "-f", write(daemon, document))
    assert done.returncode == 2 and "vars.x_password: another secret value" in done.stdout and "-secret" not in done.stdout.replace("another secret", "")
    apply(daemon, write(daemon, document))
    assert "second-secret" in (daemon.double.calls("site")[-1]["dir"] / "inventory.json").read_text()
    assert "nothing to do" in apply(daemon, write(daemon, document)).stdout


def test_revisions_are_listed_and_can_be_gone_back_to(daemon):
    apply(daemon, write(daemon, FOUR))
    first = daemon.get("/v1/revisions").ok()
    assert first["revisions"][0]["nodes"]["added"] == ["m1", "m2", "m3", "w1"] and first["revisions"][0]["by"].startswith("uid:")
    assert first["revisions"][0]["globals"] == ["service_vip"]
    there = first["current"]
    changed = with_worker("w1", "192.0.2.4", mtu=9000)
    changed["all"]["vars"]["ntp"] = "a"
    apply(daemon, write(daemon, changed))
    daemon.add("w9", "service-worker", addr="192.0.2.99")
    daemon.restart()
    done = daemon.cli("revision", "ls")
    assert done.returncode == 0 and "add w9" in done.stdout
    seen = plan(daemon, "--to-revision", str(there))
    assert [(n["name"], [f["field"] for f in n["fields"]]) for n in seen["nodes"]] == [("w1", ["vars.mtu"])]
    assert [(f["field"], f["to"]) for f in seen["globals"]] == [("ntp", None)] and seen["missing"] == ["w9"]
    done = daemon.cli("apply", "--to-revision", str(there), "--prune", "--yes")
    assert done.returncode == 0, done.stderr
    assert daemon.node("w1")["spec"]["vars"] == {"mtu": 1500} and daemon.get("/v1/globals").ok()["vars"] == {"service_vip": "192.0.2.100"}
    assert daemon.get("/v1/nodes/w9").status == 404
    assert daemon.cli("plan", "-f", write(daemon, FOUR)).returncode == 0
    assert daemon.cli("plan", "--to-revision", "999").returncode == 3


def test_a_removed_node_comes_back_with_its_revision(daemon):
    daemon.add("a", "service-worker", labels={"rack": "r1"}, vars={"x": 1})
    there = daemon.get("/v1/revisions").ok()["current"]
    daemon.ask("DELETE", "/v1/nodes/a").ok(204)
    done = daemon.cli("apply", "--to-revision", str(there), "--yes", "--records-only")
    assert done.returncode == 0, done.stderr
    spec = daemon.node("a")["spec"]
    assert spec["labels"] == {"rack": "r1"} and spec["vars"] == {"x": 1}


# ---- --plan of small commands, exit codes -------------------------------------------------------


def test_small_commands_plan_and_change_nothing(fleet):
    before, seq = records(fleet), last_event(fleet)
    for arguments, word in ((("node", "add", "n9", "--addr", "192.0.2.90"), "+ n9"), (("node", "rm", "w1"), "- w1"), (("node", "label", "w1", "rack=r3"), "labels.rack"),
                            (("node", "reject", "w1"), "acceptance"), (("node", "allocate", "w1", "--as", "spare"), "allocation"),
                            (("node", "accept", "w1", "--label", "zone=east"), "labels.zone"), (("node", "move", "w1", "192.0.2.91"), "addr"), (("global", "set", "x=1", "service_vip-"), "service_vip"),
                            (("global", "set", "--replace", "y=1"), "service_vip"), (("node", "rename", "w1", "w7"), "w7"),
                            (("cluster", "update", "--drift-policy", "never"), "never")):
        done = fleet.cli(*arguments, "--plan")
        assert done.returncode == 0 and word in done.stdout, (arguments, done.stdout, done.stderr)
    assert fleet.cli("node", "add", "n9", "--addr", "192.0.2.1", "--plan").returncode == 65, "an address that is taken"
    assert fleet.cli("node", "rm", "nobody", "--plan").returncode == 65
    assert records(fleet) == before and events_since(fleet, seq) == []


# Commands that change nothing that could be planned: they look, concern a job or a token, prepare the machine they run on (some with
# --dry-run), or name another spelling.
PLANLESS = {"node ls", "node inspect", "node get", "node history", "job ls", "job inspect", "job logs", "job wait", "job cancel", "job pause", "cluster info", "global get",
            "inventory export", "inventory import", "revision ls", "manager ls", "plan", "status", "events", "version", "completion", "serve", "cluster init", "cluster join", "cluster leave", "cluster token",
            "config get", "config set", "discover", "context ls", "context set", "context rm", "context use"}


def commands(daemon, path=()):
    text = daemon.cli(*path, "--help").stdout
    names = re.findall(r"^  ([a-z][a-z-]*)", text.split("\nSubcommands:\n")[1], re.M) if "\nSubcommands:\n" in text else []
    if not names:
        return [(" ".join(path), text)]
    return [found for name in names for found in commands(daemon, path + (name,))]


def test_every_command_that_changes_something_has_plan(daemon):
    found = dict(commands(daemon))
    assert len(found) > 40
    assert [name for name in sorted(found) if "--plan" not in found[name] and name not in PLANLESS] == []


def test_an_option_without_its_value_means_nothing_less_than_everything(fleet):
    before = records(fleet)
    for arguments in (("plan", "-f", ""), ("apply", "-f", "", "--yes"), ("node", "update", "-l", "", "--yes"), ("node", "drain", "-g", ""), ("node", "ls", "-l", "")):
        done = fleet.cli(*arguments)
        assert done.returncode == 64 and "is empty" in done.stderr, (arguments, done)
    assert records(fleet) == before


@pytest.mark.parametrize("reader", ["own", "ansible"])
def test_both_readers_take_the_variables_beside_the_inventory(daemon, tmp_path, reader):
    (tmp_path / "inventory").mkdir()
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "inventory" / "hosts.yml").write_text("all: {children: {service-worker: {hosts: {w1: {ansible_host: 192.0.2.61}}}}}\n")
    (tmp_path / "host_vars" / "w1.yml").write_text("zone: 1\n")
    (tmp_path / "group_vars" / "service-worker.yml").write_text("tier: 2\n")
    done = daemon.cli("apply", "-f", str(tmp_path), "--reader", reader, "--yes", "--records-only")
    assert done.returncode == 0, done.stderr
    assert daemon.node("w1")["spec"]["vars"] == {"zone": 1, "tier": 2}
    other = {"own": "ansible", "ansible": "own"}[reader]
    assert daemon.cli("plan", "-f", str(tmp_path), "--reader", other, "--records-only").returncode == 0, "and the other one finds nothing to do"


@pytest.mark.parametrize("hosts", ["w[1:99999999]", "w[1:50000]"])
def test_a_huge_range_is_refused_at_once_and_not_given_to_ansible(daemon, hosts):
    done = daemon.cli("plan", "-f", write(daemon, {"all": {"children": {"service-worker": {"hosts": {hosts: {}}}}}}), timeout=10)
    assert done.returncode == 3 and "too large" in done.stderr and "ansible" not in done.stderr, done.stderr


def test_exit_codes(daemon, tmp_path):
    path = write(daemon, FOUR)
    assert daemon.cli("plan", "-f", path).returncode == 2
    assert daemon.cli("plan", "-f", str(tmp_path / "none.yml")).returncode == 3
    assert daemon.cli("plan", "-f", path, "--to-revision", "1").returncode == 64
    assert daemon.cli("apply").returncode == 64
    assert daemon.cli("apply", "-f", path).returncode == 64
    assert daemon.cli("apply", "-f", path, "--plan").returncode == 0
    assert daemon.cli("plan", "-f", path, env={"CLUSTERCTL_SERVER": "unix:/nowhere"}).returncode == 69
    daemon.double.orders(check="fail:2")
    assert daemon.cli("apply", "-f", path, "--yes").returncode == 1
    daemon.double.orders()
    assert daemon.cli("plan").returncode == 2, "what is missing to what the records say"
    assert daemon.cli("apply", "-f", path, "--yes").returncode == 0
    assert daemon.cli("plan", "-f", path).returncode == 0 == daemon.cli("plan").returncode


def test_a_plan_says_order_quorum_and_where_there_is_no_way_back(daemon):
    text = daemon.cli("plan", "-f", write(daemon, FOUR)).stdout
    for words in ("order: by clusterctl, managers one after the other", "point of no return: stage", "QUORUM", "TOLERATES", "service_vip: - → 192.0.2.100"):
        assert words in text, text


# ---- both readers -------------------------------------------------------------------------------


def test_what_only_ansible_reads_is_read_by_ansible(daemon):
    ini = daemon.directory / "hosts"
    ini.write_text("[service-worker]\nw1 ansible_host=192.0.2.4 mtu=1500\n[all:vars]\nntp=pool\n")
    done = daemon.cli("plan", "-f", str(ini), "--records-only", "-o", "json")
    assert done.returncode == 2 and "read by ansible-inventory" in done.stderr, done.stderr
    found = json.loads(done.stdout)
    assert {f["field"]: f["to"] for f in found["nodes"][0]["fields"]}["vars.mtu"] == 1500 and found["globals"][0]["to"] == "pool"
    assert daemon.cli("plan", "-f", str(ini), "--reader", "own").returncode == 3


def values_of(found):
    """{node: {field: value}} of the nodes a plan would add."""
    return {n["name"]: {f["field"]: f["to"] for f in n["fields"]} for n in found["nodes"]}


def test_plain_scalars_are_those_of_ansible(daemon):
    """PyYAML is what Ansible reads with."""
    chance = random.Random(4)
    words = ["yes", "Yes", "YES", "yEs", "no", "on", "Off", "OFF", "y", "n", "true", "TRUE", "tRUE", "null", "Null", "nULL", "~", "012", "0o14", "08", "0x1F", "0X1f", "0b101",
             "1e3", "1e+3", "1.5e3", "1.5e+3", "1.5E-3", "1.", ".5", "-.5", "+.5", "1_000", "1__0", "_1", "+12", "-0", "-012", "12:30:45", "1:60", "1:5", "1:30.5", "0:10", "190:20:30",
             "2026-11-30", "2026-1-3", "10.0.0.1", "1.10", "20.10", "1.10.2", "0.1.2", "00", "0", "0_7", "9223372036854775807", "9223372036854775808", "18446744073709551615",
             "-9223372036854775808", "0x7fffffffffffffff", "0xffffffffffffffff", "a-b", "1a", "0x", "0b", "0b2", "e3", "1e", "1.e+1", "1_0.5_0", "._5", "5_", "0.0", "1.7976931348623157e+308",
             "123456789.123456789", "0.1", "2.50", "1e-7", "1.0e-7", "-1_2:30"]
    words += ["".join(chance.choice("0123456789_.:+-exb") for _ in range(chance.randint(1, 7))) for _ in range(3000)]
    text, expected = [], {}
    for i, word in enumerate(words):
        try:
            value = yaml.safe_load("k: %s\n" % word)["k"]
        except (yaml.YAMLError, ValueError, AttributeError, KeyError, TypeError, IndexError, OverflowError):
            continue
        if isinstance(value, (dict, list)) or isinstance(value, float) and (value != value or abs(value) == float("inf")):
            continue
        if isinstance(value, datetime.datetime):
            continue
        if isinstance(value, datetime.date):
            value = value.isoformat()
        if isinstance(value, int) and not isinstance(value, bool) and not -2**63 <= value < 2**64:
            if not word.lstrip("+-").replace("_", "").isdigit() or word.lstrip("+-").startswith("0"):
                continue
            value = str(value)
        expected["vars.v%d" % i] = value
        text.append("          v%d: %s" % (i, word))
    assert len(expected) > 1500
    path = daemon.directory / "scalars.yml"
    path.write_text("all:\n  children:\n    service-worker:\n      hosts:\n        w1:\n          ansible_host: 192.0.2.4\n" + "\n".join(text) + "\n")
    found = values_of(plan(daemon, "-f", str(path), "--records-only", "--reader", "own"))["w1"]
    wrong = {words[int(k[6:])]: (v, found.get(k)) for k, v in expected.items() if json.dumps(found.get(k)) != json.dumps(v) and (v is not None or found.get(k) is not None)}
    assert not wrong, wrong


def generated(chance, folder):
    """An inventory with variables on every level, in files and beside them."""
    pool = ["plain", "yes", "012", "1e3", 12, 1.5, True, None, [1, "a"], {"k": "v"}, "Größe", "{{ x }}", "a: b", "", "1_000", "2026-11-30"]
    names = ["v%d" % i for i in range(6)]

    def variables(most=4):
        return {chance.choice(names): chance.choice(pool) for _ in range(chance.randint(0, most))}

    members = ["n%d" % i for i in range(chance.randint(1, 6))]
    racks = ["rack%d" % i for i in range(chance.randint(0, 3))]
    groups = {"service-master": {"hosts": {}}, "service-worker": {"hosts": {}}}
    for i, name in enumerate(members):
        own = dict(variables(), ansible_host="192.0.2.%d" % (i + 1))
        groups[chance.choice(list(groups))]["hosts"][name] = own
    tree = {"all": {"vars": variables(), "children": groups}}
    for rack in racks:
        body = {"hosts": {name: None for name in members if chance.random() < 0.5}, "vars": variables()}
        if chance.random() < 0.4:
            body["children"] = {"inner-" + rack: {"hosts": {name: None for name in members if chance.random() < 0.4}, "vars": variables()}}
        groups[rack] = body
    inventory = folder / "inventory"
    inventory.mkdir(parents=True)
    (inventory / "hosts.yml").write_text(yaml.safe_dump(tree))
    for kind, entries in (("group_vars", ["all", "service-worker", "service-master", *racks, *("inner-" + r for r in racks)]), ("host_vars", members)):
        (inventory / kind).mkdir()
        for entry in entries:
            if chance.random() < 0.6 and (entry == "all" or not entry.startswith("inner") or "inner" in (inventory / "hosts.yml").read_text()):
                (inventory / kind / (entry + ".yml")).write_text(yaml.safe_dump(variables()))
    return str(folder)


@pytest.mark.parametrize("seed", range(6))
def test_both_readers_find_the_same(daemon, seed):
    chance = random.Random(seed)
    for n in range(2):
        path = generated(chance, daemon.directory / ("g%d" % n))
        own = plan(daemon, "-f", path, "--records-only", "--reader", "own")
        other = plan(daemon, "-f", path, "--records-only", "--reader", "ansible")
        assert (values_of(own), own["globals"]) == (values_of(other), other["globals"]), path
