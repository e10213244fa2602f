"""What goes wrong in the middle of real work: cancelled, powered off, cut off, rebooted. What became of it, the line that says why, and
the way on. In order: every test builds on the one before."""

import pytest

import product

pytestmark = pytest.mark.full


lab = product.running_lab("trouble")


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    daemon.do("commission", ["node1"])
    yield daemon
    daemon.stop()


def of_run(lab, node, run):
    """Processes of a run on a node."""
    return lab.sh(node, f"grep -lzxs CLUSTERCTL_RUN_ID={run} /proc/[0-9]*/environ || true").split()


def site_run(c, job):
    return next((s["run"] for s in c.job(job)["stages"] if s["name"] == "site" and s["state"] == "running"), None)


def commission_until(lab, c, node, command):
    """A commission of a worker has come so far that `command` succeeds on it; (job, run)."""
    job = c.submit("commission", [node], host_group="service-worker")
    run = c.until(lambda: site_run(c, job), 120, "the site stage")
    c.until(lambda: lab.sh(node, command + " >/dev/null && echo yes || true") == "yes", 300, command)
    return job, run


def comes_back(lab, c, node):
    """Without a hand on it."""
    c.do("commission", [node], host_group="service-worker")
    assert c.lifecycle(node) == "Allocated" and c.conditions(node) == set()
    assert lab.sh(node, "dpkg --audit") == ""
    c.do("decommission", [node])
    assert product.leftovers(lab, node) == {}


@pytest.mark.parametrize("node,now", [("node4", True), ("node3", False)])
def test_cancel_in_the_middle_of_a_package_transaction(lab, c, node, now):
    job, run = commission_until(lab, c, node, "pgrep -x dpkg")
    c.rest("POST", f"/v1/jobs/{job}/cancel", {"now": now}, status=202)
    ended = c.wait(job)
    assert ended["state"] == "cancelled", c.explain(ended)
    assert of_run(lab, node, run) == [], "nothing of it goes on behind the cleanup"
    assert not product.processes_with(run)
    assert [n["cleanup"] for n in ended["nodes"]] == ["cleaned"], c.explain(ended)
    assert c.lifecycle(node) == "Unallocated" and product.leftovers(lab, node) == {}
    comes_back(lab, c, node)


def failed_there(c, job, node, *words):
    ended = c.wait(job)
    assert ended["state"] == "failed", c.explain(ended)
    assert all(word in ended["error"] for word in (node, *words)) and "\n" not in ended["error"], ended["error"]
    assert ended["hint"], ended["error"]
    assert c.lifecycle(node) == "Unallocated"
    print(f"{ended['error']}\nhint: {ended['hint']}")
    return ended


def test_a_node_is_powered_off_in_the_middle(lab, c):
    job, _run = commission_until(lab, c, "node4", "systemctl is-active docker")
    lab.run("kill", "node4")
    failed_there(c, job, "node4")
    assert "Dirty" in c.conditions("node4"), "it could not be cleaned, and says so"
    lab.run("start", "node4")
    comes_back(lab, c, "node4")


def test_a_node_is_cut_off_in_the_middle(lab, c):
    job, run = commission_until(lab, c, "node4", "systemctl is-active docker")
    lab.sh("node4", "ip link set eth0 down")
    failed_there(c, job, "node4")
    assert "Dirty" in c.conditions("node4")
    lab.sh("node4", "ip link set eth0 up")
    comes_back(lab, c, "node4")
    assert of_run(lab, "node4", run) == [], "what the lost run left was ended before anything else"


def test_a_node_reboots_in_the_middle(lab, c):
    job, _run = commission_until(lab, c, "node4", "systemctl is-active docker")
    lab.run("reboot", "node4")
    failed_there(c, job, "node4")
    comes_back(lab, c, "node4")


def test_the_daemon_is_killed_in_a_rolling_update(lab, c):
    for node in ("node3", "node4"):
        c.do("commission", [node], host_group="service-worker")
    job = c.submit("update", ["node1", "node3", "node4"], allow_outage=True, vars={"docker_daemon_options": {"debug": True}})
    for number in (1, 2, 3):
        c.until(lambda n=number: sum(s["name"] == "site" and bool(s["run"]) for s in c.job(job)["stages"]) >= n, 300, f"batch {number}")
        c.kill()
        c.start()
    ended = c.wait(job)
    assert ended["state"] == "succeeded", c.explain(ended)
    starts = [event["run"] for event in c.events(job) if event["event"] == "start"]
    assert len(starts) == len(set(starts)), "no run twice"
    for node in ("node1", "node3", "node4"):
        assert c.lifecycle(node) == "Allocated" and c.conditions(node) == set()
        assert '"debug": true' in lab.sh(node, "cat /etc/docker/daemon.json")
        assert lab.sh("node1", "docker node inspect --format '{{.Spec.Availability}}' " + node) == "active"
