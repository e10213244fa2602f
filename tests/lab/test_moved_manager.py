"""A manager that answers at another address only: the others wait for it where it was, so it leaves and comes again."""

import pytest

import product
from test_roles_change import MASTERS, both_say

pytestmark = pytest.mark.full

lab = product.running_lab("moved", 3)


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    daemon.do("commission", MASTERS)
    yield daemon
    daemon.stop()


def test_a_manager_that_moved_is_commissioned_anew(lab, c):
    old = lab.address("node3")
    new = old.rsplit(".", 1)[0] + ".63"
    lab.sh("node3", "ip addr del %s/24 dev eth0; ip addr show dev eth0 | grep -q %s || ip addr add %s/24 dev eth0" % (old, new, new))
    c.until(lambda: c.node("node3")["status"]["presence"] == "Disappeared", 180, "the old address to fall silent")
    c.cli("node", "move", "node3", new)
    job = c.do("verify", ["node3"], state="failed")
    assert old in job["nodes"][0]["message"] or "/etc/hosts" in job["nodes"][0]["message"] or "etcd" in job["nodes"][0]["message"]
    assert "NeedsVerification" in c.conditions("node3")
    c.cli("node", "decommission", "node3", "--yes")
    both_say(lab, "node1", ["node1", "node2"])
    assert product.leftovers(lab, "node3") == {}
    c.cli("node", "commission", "node3", "--host-group=service-master")
    both_say(lab, "node1", MASTERS)
    assert lab.sh("node1", "docker node inspect node3 --format '{{.ManagerStatus.Addr}}'") == new + ":2377"
    assert "https://%s:2380" % new in lab.sh("node1", "set -a; . /etc/etcd/etcdctl.env; etcdctl member list")
    assert c.lifecycle("node3") == "Allocated" and not c.conditions("node3")
