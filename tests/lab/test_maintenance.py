"""Maintenance and reboot on real nodes: the holder of the virtual address goes out of service, loses its power, the controller dies
meanwhile, and all of it comes back as it was. In order: every test builds on the one before."""

import json

import pytest

import product

pytestmark = pytest.mark.full

MANAGERS = ["node1", "node2", "node3"]
ETCDCTL = "set -a; . /etc/etcd/etcdctl.env; ETCDCTL_API=3 etcdctl "

lab = product.running_lab("maint")


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    daemon.do("commission", MANAGERS + ["node4"])
    yield daemon
    daemon.stop()


def holders(lab):
    """Managers that really have the address."""
    return [n for n in MANAGERS if lab.sh(n, f"ip -4 -o addr show | grep -qw '{lab.vip}' && echo yes || true", check=False) == "yes"]


def nodes_of_swarm(lab, at):
    """{name: (availability, manager status)} as the scheduler says it."""
    text = lab.sh(at, "docker node ls --format '{{.Hostname}} {{.Availability}} {{.ManagerStatus}}|{{.Status}}'")
    out = {}
    for line in text.splitlines():
        words, status = line.split("|")
        parts = words.split() + [""]
        out[parts[0]] = (parts[1].lower(), parts[2], status)
    return out


def healthy_etcd(lab, at):
    return [e["health"] for e in json.loads(lab.sh(at, ETCDCTL + "endpoint health --cluster -w json 2>/dev/null"))]


def boot_id(lab, node):
    return lab.sh(node, "cat /proc/sys/kernel/random/boot_id")


def all_is_well(lab, c):
    assert len(holders(lab)) == 1
    at = holders(lab)[0]
    seen = nodes_of_swarm(lab, at)
    assert {n: s[0] for n, s in seen.items()} == dict.fromkeys(MANAGERS + ["node4"], "active")
    assert {s[2] for s in seen.values()} == {"Ready"}
    assert sorted(s[1] for s in seen.values()) == ["", "Leader", "Reachable", "Reachable"]
    assert healthy_etcd(lab, at) == [True, True, True]
    for node in MANAGERS + ["node4"]:
        assert c.lifecycle(node) == "Allocated" and c.conditions(node) == set()


def test_maintenance_on_the_holder_of_the_address(lab, c):
    (holder,) = holders(lab)
    other = next(n for n in MANAGERS if n != holder)
    c.cli("node", "maintenance", "enter", holder, "--reason", "new memory", "--owner", "ops", "--for", "2h")
    assert c.lifecycle(holder) == "Maintenance"
    assert nodes_of_swarm(lab, other)[holder][0] == "drain"
    assert len(holders(lab)) == 1 and holders(lab) != [holder], "another manager has the address"
    shown = c.cli("cluster", "info").stdout
    assert f"{lab.vip}, held by {holders(lab)[0]}" in shown

    before = boot_id(lab, holder)
    lab.run("kill", holder)
    c.kill()
    c.start()
    assert c.lifecycle(holder) == "Maintenance", "the controller remembers"
    lab.run("start", holder)
    c.until(lambda: lab.sh(holder, "cat /proc/sys/kernel/random/boot_id", check=False) not in ("", before), 60, "a new boot")
    c.until(lambda: nodes_of_swarm(lab, other).get(holder, ("", "", ""))[2] == "Ready", 120, "swarm to see it again")
    assert nodes_of_swarm(lab, other)[holder][0] == "drain", "it stays out after a power cycle"
    assert len(holders(lab)) == 1 and holders(lab) != [holder], "and does not take the address back"

    c.cli("node", "maintenance", "exit", holder)
    assert c.node(holder)["status"]["maintenance"] is None
    all_is_well(lab, c)


def test_two_managers_cannot_go(lab, c):
    refused = c.cli("node", "maintenance", "enter", "node1", "node2", code=65)
    assert "of 3 members" in refused.stderr and "etcd" in refused.stderr and "swarm" in refused.stderr
    all_is_well(lab, c)


def test_a_drained_worker_comes_back_drained(lab, c):
    c.cli("node", "drain", "node4")
    c.cli("node", "maintenance", "enter", "node4")
    c.cli("node", "maintenance", "exit", "node4")
    assert nodes_of_swarm(lab, "node1")["node4"][0] == "drain"
    c.cli("node", "activate", "node4")
    all_is_well(lab, c)


def test_reboot_of_the_leader_and_of_a_worker(lab, c):
    leader = next(n for n, s in nodes_of_swarm(lab, "node1").items() if s[1] == "Leader")
    for node in (leader, "node4"):
        before = boot_id(lab, node)
        c.cli("node", "reboot", node)
        assert boot_id(lab, node) != before
    all_is_well(lab, c)
    shown = c.cli("manager", "ls", "--refresh").stdout
    now = next(n for n, s in nodes_of_swarm(lab, "node1").items() if s[1] == "Leader")
    assert [line.split()[1] for line in shown.splitlines() if line.startswith(now)] == ["Leader"]


def test_the_daemon_dies_in_the_middle_of_a_reboot(lab, c):
    before = boot_id(lab, "node4")
    job = c.submit("reboot", ["node4"])
    c.until(lambda: any(s["name"] == "reboot" and s["state"] == "running" for s in c.job(job)["stages"]), 120, "the reboot stage")
    c.kill()
    c.start()
    ended = c.wait(job)
    assert ended["state"] == "succeeded", c.explain(ended)
    assert boot_id(lab, "node4") != before
    starts = [event["run"] for event in c.events(job) if event["event"] == "start"]
    assert len(starts) == len(set(starts)), "no run twice"
    all_is_well(lab, c)
