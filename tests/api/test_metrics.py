"""/metrics as Prometheus reads it, over both ways in."""

import re
import shutil
import subprocess

import pytest

from harness import wait_for

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count"), "counter": ("",), "gauge": ("",)}


class Metrics:
    """Text format 0.0.4, read strictly."""

    def __init__(self, text):
        assert text.endswith("\n")
        self.values, self.types, family = {}, {}, None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = line.split()[2]
                assert family not in self.types, "%s is begun twice" % family
                assert len(line.split(None, 3)) == 4, line
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                assert name == family, line
                self.types[name] = kind
            else:
                match = SAMPLE.fullmatch(line)
                assert match, line
                name, labels = match[1], dict(LABEL.findall(match[2] or ""))
                assert name.removeprefix(family) in SUFFIXES[self.types[family]], line
                key = (name, tuple(sorted(labels.items())))
                assert key not in self.values, "twice: " + line
                self.values[key] = float(match[3])

    def __call__(self, metric, **labels):
        return self.values[(metric, tuple(sorted(labels.items())))]


def metrics(daemon, **options):
    answer = daemon.get("/metrics", **options)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Metrics(answer.body)


def test_the_numbers_follow_the_fleet(cluster):
    before = metrics(cluster)
    assert before("clusterctl_nodes", lifecycle="Allocated") == 4 and before("clusterctl_nodes_presence", presence="Discovered") == 4
    assert before("clusterctl_quorum_margin", service="etcd") == 1 and before("clusterctl_quorum_members", service="swarm") == 3
    assert before("clusterctl_jobs_ended_total", kind="commission", state="succeeded") == 1
    cluster.double.orders(verify="gate:go")
    running = cluster.submit("verify", nodes=["w1"])
    cluster.double.wait_gate("go")
    waits = cluster.submit("drain", nodes=["w1"])
    now = metrics(cluster)
    assert now("clusterctl_jobs", kind="verify", state="running") == 1 and now("clusterctl_runs_running") == 1
    assert now("clusterctl_job_queue_length") == 1 and now("clusterctl_jobs_waiting", reason="node") == 1
    assert now("clusterctl_job_queue_oldest_wait_seconds") >= 0
    cluster.double.open_gate("go")
    cluster.wait(running["id"], "succeeded")
    cluster.wait(waits["id"], "succeeded")
    cluster.double.orders(down=["m3"])
    cluster.wait(cluster.submit("observe")["id"])
    after = metrics(cluster)
    assert after("clusterctl_quorum_margin", service="etcd") == 0 and after("clusterctl_quorum_members_reachable", service="etcd") == 2
    assert after("clusterctl_jobs_ended_total", kind="drain", state="succeeded") == 1
    assert after("clusterctl_runs_ended_total", playbook="verify.yml", state="succeeded") > before("clusterctl_runs_ended_total", playbook="verify.yml", state="succeeded")
    assert after("clusterctl_fleet_events_total") > before("clusterctl_fleet_events_total")
    assert after("clusterctl_store_commit_duration_seconds_count") > before("clusterctl_store_commit_duration_seconds_count")


def test_names_follow_the_conventions(cluster):
    now = metrics(cluster)
    for name, kind in now.types.items():
        assert re.fullmatch(r"(clusterctl|process)_[a-z_]+[a-z]", name), name
        assert name.endswith("_total") == (kind == "counter"), name
        if kind in ("histogram", "summary"):
            assert name.endswith("_seconds"), name
    for (name, labels), value in now.values.items():
        if name.endswith("_bucket") and dict(labels)["le"] == "+Inf":
            assert value == now(name.replace("_bucket", "_count"), **{k: v for k, v in labels if k != "le"})
    series = [labels for (name, labels) in now.values if name.endswith("_duration_seconds_bucket") and ("route", "/v1/nodes") in labels and ("method", "POST") in labels]
    ends = [float(dict(labels)["le"]) for labels in series]
    counts = [now("clusterctl_http_request_duration_seconds_bucket", **dict(labels)) for labels in series]
    assert len(ends) == 14 and ends == sorted(ends) and counts == sorted(counts) and counts[-1] == 4


def test_nothing_a_client_sends_and_no_name_becomes_a_label(cluster):
    for path in ("/v1/nodes/w1", "/v1/nodes/zebra-9", "/zebra-9", "/v1/nodes?selector=zebra-9", "/%00zebra-9"):
        cluster.get(path)
    cluster.ask("ZEBRA9", "/v1/nodes")
    cluster.send("PATCH", "/v1/globals", {"vars": {"some_token": "zebra-9"}})
    text = cluster.get("/metrics").body
    assert "zebra" not in text.lower() and '"w1"' not in text and "192.0.2" not in text
    assert 'route="/v1/nodes/{n}",code="4xx"' in text and 'method="other",route="/v1/nodes",code="4xx"' in text
    assert cluster.token() not in text


def test_connections_and_followers_are_counted(daemon):
    idle = daemon.connection()
    idle.connect()
    follower = daemon.connection()
    follower.request("GET", "/v1/events?follow=true")
    stream = follower.getresponse()
    tcp = daemon.connection("tcp")
    tcp.connect()

    def counted():
        now = metrics(daemon)
        return (now("clusterctl_http_connections", listener="unix"), now("clusterctl_http_followers"), now("clusterctl_http_connections", listener="tcp")) == (2, 1, 1)

    wait_for(counted, "one idle connection, this one, and one follower")
    assert metrics(daemon)("clusterctl_http_followers_max") >= 100
    for one in (idle, follower, tcp):
        one.sock.close() if one.sock else one.close()
    stream.close()
    follower.close()
    wait_for(lambda: metrics(daemon)("clusterctl_http_connections", listener="unix") == 1 and metrics(daemon)("clusterctl_http_connections", listener="tcp") == 0, "them to be gone")


def test_the_process_is_described(daemon):
    now = metrics(daemon)
    assert 8 < now("process_threads") < 40 and now("process_open_fds") < now("process_max_fds")
    assert now("process_resident_memory_bytes") > 1 << 20 and 0 <= now("clusterctl_uptime_seconds") < 600
    assert [value for (name, _), value in now.values.items() if name == "clusterctl_build_info"] == [1]


def test_a_token_is_needed_on_tcp(daemon):
    daemon.get("/metrics", via="tcp").problem(401, "no_token")
    assert metrics(daemon, via="tcp", headers={"Authorization": "Bearer " + daemon.token()})


def test_unless_it_is_opened_and_then_only_this(stopped):
    stopped.config["auth"]["open_metrics"] = True
    daemon = stopped.start()
    assert metrics(daemon, via="tcp")
    daemon.get("/metrics", via="tcp", headers={"Host": "evil.example"}).problem(403, "unknown_host")
    daemon.get("/metrics", via="tcp", headers={"Origin": "http://evil.example"}).problem(403, "cross_site")
    daemon.ask("POST", "/metrics", via="tcp").problem(405)
    daemon.get("/v1/status", via="tcp").problem(401)
    daemon.get("/metrics/", via="tcp").problem(401)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (package prometheus) is not installed")
def test_promtool_has_nothing_to_say(cluster):
    done = subprocess.run(["promtool", "check", "metrics"], input=cluster.get("/metrics").body, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
