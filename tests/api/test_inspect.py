"""What a job did, does, and why it failed: one line a node, each reason once, and where the time went."""

import json

import pytest

from harness import wait_for


@pytest.fixture
def many(daemon):
    daemon.add("m1", "service-master")
    for number in range(1, 10):
        daemon.add("w%d" % number, "service-worker")
    daemon.commission("m1")
    return daemon


def test_identical_failures_are_told_once_and_counted(many):
    workers = ["w%d" % number for number in range(1, 10)]
    told = ["fail-host:%s:docker:E: Unable to locate package dockr (process 1%d of %s)" % (w, n, w) for n, w in enumerate(workers[:8])]
    many.double.orders(site=told + ["fail-host:w9:swarm:something else"])
    job = many.commission(*workers, state="failed")
    assert job["error"] == ("w1: docker: main docker: E: Unable to locate package dockr (process 10 of w1) "
                            "(same on 7 other nodes; 1 node failed otherwise)")
    assert "no repository" in job["hint"]
    first, second = job["causes"]
    assert first["count"] == 8 and first["nodes"] == workers[:8] and first["code"] == "package_not_found"
    assert second["nodes"] == ["w9"] and second["code"] == "" and second["line"] == "w9: swarm: main swarm: something else"
    assert all(node["code"] == "package_not_found" for node in job["nodes"] if node["name"] != "w9")
    text = many.cli("job", "inspect", job["id"]).stdout
    assert text.count("Unable to locate") == 2, "in the error line and in the row of the first node:\n" + text
    assert "(same on 7 other nodes)" in text and text.count("same as w1") == 7
    assert text.count("hint: w1 and 7 other nodes: no repository of w1") == 1


def test_what_the_check_found_keeps_its_code_and_hint(many):
    many.double.orders(check="problem:w1:docker:the disk is small")
    job = many.wait(many.submit("check", nodes=["w1"])["id"], "failed")
    node = job["nodes"][0]
    assert (node["service"], node["message"], node["code"]) == ("docker", "the disk is small", "double")
    assert node["hint"] == job["hint"] == "take it out of control.json"
    assert [problem["message"] for problem in job["problems"]] == ["the disk is small"]


def test_the_first_manager_is_the_reason_not_those_that_waited_for_it(daemon):
    for number in (1, 2, 3):
        daemon.add("m%d" % number, "service-master")
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
    daemon.double.orders(site="fail-host:m1:etcd:listen tcp 0.0.0.0:2379: bind: address already in use")
    job = daemon.commission("m1", "m2", "m3", state="failed")
    assert job["error"].startswith("m1: etcd: main etcd: listen tcp 0.0.0.0:2379") and "2 nodes failed otherwise" in job["error"]
    assert "ss -ltnp" in job["hint"]
    assert [cause["code"] for cause in job["causes"]] == ["port_in_use", "not_attempted"]


def test_a_run_that_broke_off_says_why(many):
    many.double.orders(check="broken:4")
    job = many.wait(many.submit("check", nodes=["w1"])["id"], "failed")
    assert "ansible-playbook ended with code 4 before its final statistics: the double was told to break" in job["error"]


def test_what_it_does_now_and_for_how_long_nothing_was_heard(many):
    many.double.orders(check="gate:go:docker")
    job = many.submit("check", nodes=["w1", "w2"])["id"]
    many.double.wait_gate("go")
    path = "/v1/jobs/%s/timeline" % job

    def silent(more_than):
        timeline = many.get(path).ok()
        return timeline if (timeline["silence_ms"] or 0) > more_than and timeline["current"] else None
    first = wait_for(lambda: silent(100), "silence")
    current = first["current"]
    assert (current["stage"], current["service"], current["task"]) == ("check", "docker", "check docker")
    assert current["waiting"] == 2 and current["waiting_for"] == ["w1", "w2"]
    later = wait_for(lambda: silent(first["silence_ms"] + 200), "more silence")
    assert later["elapsed_ms"] > first["elapsed_ms"] and later["current"]["ms"] > current["ms"]
    text = many.cli("job", "inspect", "active").stdout
    assert "Silence:" in text and "Elapsed:" in text and "check: docker: check docker, for " in text and "on w1, w2" in text
    many.double.open_gate("go")
    many.wait(job, "succeeded")
    ended = many.get(path).ok()
    assert ended["current"] is None and ended["silence_ms"] is None and ended["ended"]


def test_where_the_time_went(many):
    job = many.wait(many.submit("commission", nodes=["w1", "w2"])["id"], "succeeded")
    timeline = many.get("/v1/jobs/%s/timeline" % job["id"]).ok()
    assert timeline["complete"] and timeline["job"] == job["id"]
    assert [(stage["name"], stage["run"]) for stage in timeline["stages"]] == [(stage["name"], stage["run"]) for stage in job["stages"]]
    site = [stage for stage in timeline["stages"] if stage["name"] == "site"][0]
    assert site["ms"] >= 0 and site["events"] > 0
    assert [node["name"] for node in site["nodes"]] == ["w1", "w2"]
    services = {span["service"]: span for span in site["nodes"][0]["services"]}
    assert {"base", "docker", "swarm"} <= set(services)
    assert services["swarm"]["tasks"] == 1 and services["swarm"]["changed"] == 1 and services["swarm"]["state"] == "ok"
    assert services["base"]["started"] <= services["swarm"]["started"]
    answer = many.cli("job", "inspect", job["id"], "-o", "json")
    assert json.loads(answer.stdout)["timeline"]["stages"][0]["name"] == "check"
    text = many.cli("job", "inspect", job["id"]).stdout
    assert "SLOWEST TASK" in text and "BUSY" in text


def test_a_hints_file_of_the_site_and_a_broken_one(stopped):
    books = stopped.directory / "playbooks"
    books.mkdir()
    source = json.loads(json.dumps(stopped.config["ansible"]["playbooks"]))
    for name in ("catalog.yml", "check.yml", "site.yml"):
        (books / name).write_text(open("%s/%s" % (source, name)).read())
    (books / "hints.yml").write_text("causes: [{code: ours, text: 'the frobnicator is *', hint: 'call 4711 about {node}'}]\n")
    stopped.config["ansible"]["playbooks"] = str(books)
    stopped.start()
    stopped.add("m1", "service-master")
    stopped.double.orders(check="fail-host:m1:docker:The Frobnicator is blue")
    job = stopped.wait(stopped.submit("check", nodes=["m1"])["id"], "failed")
    assert (job["nodes"][0]["code"], job["hint"]) == ("ours", "call 4711 about m1")
    stopped.stop()
    (books / "hints.yml").write_text("causes: [{code: ours, txt: x, hint: h}]\n")
    _, told = stopped.fails_to_start()
    assert "hints.yml" in told and "txt" in told
