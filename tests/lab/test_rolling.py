"""drain, activate and update on real nodes with a real swarm, in order: every test builds on the one before."""

import json
import os
import signal
import subprocess

import pytest

import product

ALL = ["node1", "node2", "node3", "node4"]


lab = product.running_lab("rolling")


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    yield daemon
    daemon.stop()


def give_image(lab, *nodes):
    """An image without a registry: one static program."""
    archive = subprocess.run(["tar", "-C", "/bin", "-c", "busybox"], check=True, capture_output=True).stdout
    for node in nodes:
        subprocess.run([product.ROOT / "scripts" / "lab", "exec", node, "docker", "import", "-", "box:1"], env=lab.env, input=archive, check=True,
                       capture_output=True)


def create(lab, name, *options):
    lab.sh("node1", "docker service create --detach --no-resolve-image --endpoint-mode dnsrr --stop-grace-period 1s --name %s %s box:1 "
                    "/busybox sleep 100000" % (name, " ".join(options)))


def running(lab, service):
    """Nodes on which tasks of the service run, one entry for each task."""
    rows = lab.sh("node1", "docker service ps --no-trunc --format '{{.Node}} {{.CurrentState}}' " + service).splitlines()
    return sorted(row.split()[0] for row in rows if row.split()[1] == "Running")


def availability(lab, node):
    return lab.sh("node1", "docker node inspect --format '{{.Spec.Availability}}' " + node)


def test_a_drain_moves_what_runs(lab, c):
    c.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    c.do("commission", ["node1", "node4"])
    give_image(lab, "node1", "node4")
    create(lab, "web", "--replicas 2")
    c.until(lambda: running(lab, "web") == ["node1", "node4"], 60, "a replica on each node")
    out = c.cli("node", "drain", "node4")
    assert "succeeded" in out.stdout
    assert availability(lab, "node4") == "drain"
    assert running(lab, "web") == ["node1", "node1"], "the drain has ended, so everything has moved"
    assert lab.sh("node4", "docker ps -q") == ""
    assert c.node("node4")["status"]["applied"]["availability"] == "drain"
    c.do("verify", ["node4"])

    c.cli("node", "activate", "node4")
    assert availability(lab, "node4") == "active"


def test_what_blocks_a_drain_is_said_and_the_node_comes_back(lab, c):
    create(lab, "pinned", "--constraint node.hostname==node4")
    c.until(lambda: running(lab, "pinned") == ["node4"], 60, "the pinned task")
    out = c.cli("node", "drain", "node4", "--deadline", "8s", code=1)
    assert "not drained after 8 s: service pinned: task pinned.1 is pending: no suitable node (" in out.stderr
    assert availability(lab, "node4") == "active" and c.node("node4")["spec"]["availability"] == "active"
    c.until(lambda: running(lab, "pinned") == ["node4"], 60, "it runs again where it has to")
    assert [e["state"] for e in c.job()["undo"]] == ["undone"]
    lab.sh("node1", "docker service rm pinned")


def engine_starts(lab, nodes):
    return {node: lab.sh(node, "systemctl show -p ActiveEnterTimestampMonotonic --value docker") for node in nodes}


@pytest.mark.full
def test_an_update_rolls_over_a_real_cluster(lab, c):
    c.do("commission", ["node2", "node3"])
    give_image(lab, "node2", "node3")
    before = engine_starts(lab, ALL)
    c.rest("PATCH", "/v1/globals", {"vars": {"docker_daemon_options": {"debug": True}}}, status=200)
    out = c.cli("node", "update", "--yes")
    assert "succeeded" in out.stdout
    job = c.job()
    assert [s["nodes"] for s in job["stages"] if s["name"] == "site"] == [["node1"], ["node2"], ["node3"], ["node4"]]
    assert {e["state"] for e in job["undo"]} == {"undone"} and len(job["undo"]) == 4
    after = engine_starts(lab, ALL)
    for node in ALL:
        assert json.loads(lab.sh(node, "cat /etc/docker/daemon.json"))["debug"] is True
        assert before[node] != after[node], "the engine was started anew"
        assert availability(lab, node) == "active" and c.lifecycle(node) == "Allocated"
    assert len(running(lab, "web")) == 2
    c.do("verify", ALL)


@pytest.mark.full
def test_a_second_update_changes_nothing_and_drains_nothing(lab, c):
    before = engine_starts(lab, ALL)
    job = c.do("update", ALL)
    assert c.changed(job["id"]) == {} and engine_starts(lab, ALL) == before
    assert not job["undo"]


def unit_starts(lab, node):
    """Since when each of these runs; etcd's own unit may carry another name than its package."""
    out = lab.sh(node, "systemctl show -p Id,ActiveEnterTimestampMonotonic docker 'etcd*' 'clusterctl-ucarp*' 'ucarp*'")
    return {block.split("Id=")[1].split()[0]: block.split("Monotonic=")[1].split()[0] for block in out.split("\n\n") if "Id=" in block}


@pytest.mark.full
def test_one_service_alone(lab, c):
    """What another service is converged with, and when it was started, stays."""
    before = {node: unit_starts(lab, node) for node in ("node1", "node2", "node3")}
    assert all(any("etcd" in unit for unit in units) for units in before.values()), before
    c.rest("PATCH", "/v1/globals", {"vars": {"etcd_log_level": "debug", "docker_daemon_options": {"debug": False}}}, status=200)
    out = c.cli("node", "update", "--service", "etcd", "--yes")
    assert "succeeded" in out.stdout and "drain" not in [s["name"] for s in c.job()["stages"]]
    for node, units in before.items():
        after = unit_starts(lab, node)
        assert [unit for unit in units if units[unit] != after[unit]] == [unit for unit in units if "etcd" in unit], (units, after)
        assert "debug" in lab.sh(node, "systemctl cat 'etcd*'; cat /etc/default/etcd* /etc/etcd*/* 2>/dev/null || true")
        assert json.loads(lab.sh(node, "cat /etc/docker/daemon.json"))["debug"] is True
        assert [d["type"] for d in c.node(node)["status"]["conditions"]] == ["Drifted"]
    c.rest("PATCH", "/v1/globals", {"vars": {"docker_daemon_options": {"debug": True}}}, status=200)
    assert not any(c.node(node)["status"]["conditions"] for node in ALL)


@pytest.mark.full
def test_a_power_cut_of_the_controller_in_an_update(lab, c):
    job = c.submit("update", ["node4"], vars={"docker_daemon_options": {"debug": False}})
    c.until(lambda: any(s["name"] == "site" and s["state"] == "running" for s in c.job(job)["stages"]), 300, "the site stage")
    assert availability(lab, "node4") == "drain"
    c.kill()
    for pid in product.processes_with(str(c.state)):
        os.kill(pid, signal.SIGKILL)
    c.start()
    ended = c.wait(job)
    assert ended["state"] == "interrupted" and [e["state"] for e in ended["undo"]] == ["undone"]
    assert availability(lab, "node4") == "active"
    c.do("update", ["node4"])
    assert c.lifecycle("node4") == "Allocated" and not c.conditions("node4")
