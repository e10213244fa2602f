"""The rows of docs/identity.md on real nodes. Containers have no DMI: what it would say is put below /sys/class, where the program looks.
In order: every test builds on the one before."""

import pytest
import yaml

import product
from dmi import dmi, new_host_key

pytestmark = pytest.mark.full

UUIDS = {"node1": "4c4c4544-0031-3010-8052-b4c04f4e3131", "node2": "4c4c4544-0031-3010-8052-b4c04f4e3132",
         "node3": "4c4c4544-0031-3010-8052-b4c04f4e3133", "node4": "4c4c4544-0031-3010-8052-b4c04f4e3134"}

lab = product.running_lab("identity", 4)


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    config = yaml.safe_load(daemon.config.read_text())
    daemon.config.write_text(yaml.safe_dump(dict(config, monitor={"interval": 2, "timeout": 2, "misses": 2})))
    daemon.start()
    for node, uuid in UUIDS.items():
        dmi(lab, node, product_serial="FCH-" + node, product_uuid=uuid, sys_vendor="Cisco Systems Inc", product_name="UCSB-B200-M4")
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    yield daemon
    daemon.stop()


def reason(c, node, kind):
    return {x["type"]: x["reason"] for x in c.node(node)["status"]["conditions"]}.get(kind, "")


def discovered(c, node, addr, serial):
    body = {"name": "discovered", "nodes": [{"name": node, "addr": addr, "serial": serial}]}
    return c.rest("POST", "/v1/monitor/event", body, status=200)["nodes"][0]


def presence(c):
    return {n["name"]: n["status"]["presence"] for n in c.rest("GET", "/v1/nodes")["nodes"]}


def test_what_a_machine_says_of_itself_is_read(lab, c):
    c.until(lambda: set(presence(c).values()) == {"Discovered"}, 60, "the prober to see them")
    c.do("check", list(UUIDS))
    for node, uuid in UUIDS.items():
        hardware = c.node(node)["status"]["hardware"]
        assert hardware["serial"] == "FCH-" + node and hardware["uuid"] == uuid and hardware["series"] == "b-series"
        assert hardware["macs"] == [lab.sh(node, "cat /sys/class/net/eth0/address")]
        identity = c.node(node)["status"]["identity"]
        assert identity["serial"] == "FCH-" + node and identity["macs"] == hardware["macs"]
        assert identity["host_key"] == c.node(node)["spec"]["ssh"]["host_key"] != ""
        assert c.conditions(node) <= {"Pending"}, "a worker waits for a manager"


def test_a_blade_swap_asks_and_is_verified(lab, c):
    c.do("commission", ["node1"])
    dmi(lab, "node1", product_serial="FCH-spare")
    c.do("verify", ["node1"])
    assert "FCH-node1" in reason(c, "node1", "HardwareReplaced") and "FCH-spare" in reason(c, "node1", "HardwareReplaced")
    refused = c.rest("POST", "/v1/jobs", {"kind": "update", "nodes": ["node1"], "allow_outage": True}, status=409)
    assert refused["code"] == "hardware_replaced"
    c.cli("node", "confirm-hardware", "node1")
    assert c.conditions("node1") == {"NeedsVerification"}
    c.do("verify", ["node1"])
    assert not c.conditions("node1") and c.node("node1")["status"]["identity"]["serial"] == "FCH-spare"


def test_a_machine_installed_anew_is_the_same_machine(lab, c):
    new_host_key(lab, "node1")
    job = c.do("verify", ["node1"], state="failed")
    assert job["nodes"][0]["code"] == "host_key_changed"
    c.cli("node", "forget-hostkey", "node1")
    old = c.node("node1")["status"]["identity"]["host_key"]
    c.do("verify", ["node1"])
    node = c.node("node1")
    assert node["status"]["identity"]["host_key"] == node["spec"]["ssh"]["host_key"] != old
    assert not node["status"]["conditions"], "it was a verification that took the new key"
    assert not c.conditions("node1"), "a verify that went well has cleared it"


def leave_address(lab, node, old, new):
    lab.sh(node, "ip addr del %s/24 dev eth0" % old)
    # Deleting the first address of a subnet takes the others along.
    lab.sh(node, "ip addr show dev eth0 | grep -q %s || ip addr add %s/24 dev eth0" % (new, new))


def test_a_moved_address_is_followed(lab, c):
    old = lab.address("node2")
    new = old.rsplit(".", 1)[0] + ".61"
    lab.sh("node2", "ip addr add %s/24 dev eth0" % new)
    assert discovered(c, "node2", new, "FCH-node2")["finding"] == "conflict", "both addresses answer"
    assert old in reason(c, "node2", "IdentityConflict") and new in reason(c, "node2", "IdentityConflict")
    leave_address(lab, "node2", old, new)
    c.until(lambda: c.node("node2")["spec"]["addr"] == new, 60, "the node to follow its machine")
    assert not c.conditions("node2")
    job = c.do("check", ["node2"])
    assert job["nodes"][0]["state"] == "succeeded"


def test_a_member_that_moved_is_verified_at_its_new_address(lab, c):
    c.do("commission", ["node4"])
    old = lab.address("node4")
    new = old.rsplit(".", 1)[0] + ".64"
    leave_address(lab, "node4", old, new)
    c.until(lambda: presence(c)["node4"] == "Disappeared", 60, "the old address to fall silent")
    assert discovered(c, "node4", new, "FCH-node4")["finding"] == "moved"
    assert c.node("node4")["spec"]["addr"] == new and c.conditions("node4") == {"NeedsVerification"}
    assert old in reason(c, "node4", "NeedsVerification") and new in reason(c, "node4", "NeedsVerification")
    c.until(lambda: lab.sh("node1", "docker node inspect node4 --format '{{.Status.State}} {{.Status.Addr}}'") == "ready " + new, 90,
            "the swarm to see it there")
    # The node is well as far as the scheduler can tell; its overlay networks still speak of the old address.
    job = c.do("verify", ["node4"], state="failed")
    assert "/etc/hosts" in job["nodes"][0]["message"] or old in job["nodes"][0]["message"]
    assert c.conditions("node4") == {"NeedsVerification"}
    c.do("update", ["node4"])
    assert lab.sh("node4", "docker info --format '{{.Swarm.NodeAddr}}'") == new
    listed = lab.sh("node1", "docker node ls --format '{{.Hostname}} {{.Status}} {{.Availability}}'").splitlines()
    assert sorted(listed) == ["node1 Ready Active", "node4 Ready Active"], "one entry for each"
    assert lab.sh("node1", "docker node inspect node4 --format '{{.ID}}'") == c.node("node4")["status"]["services"]["swarm"]["member_id"]
    assert new + " node4" in lab.sh("node4", "cat /etc/hosts")
    c.do("verify", ["node4"])
    assert not c.conditions("node4") and c.lifecycle("node4") == "Allocated"


def test_serials_of_an_enclosure_are_no_conflict(lab, c):
    for node in ("node2", "node3"):
        dmi(lab, node, product_serial="CHASSIS-1")
    c.do("check", ["node2", "node3"])
    for node in ("node2", "node3"):
        # The serial changed below the same UUID and card: that is asked about, and nothing else.
        c.cli("node", "confirm-hardware", node)
        assert not c.conditions(node)
    c.do("check", ["node2", "node3"])
    assert not c.conditions("node2") and not c.conditions("node3")


def test_two_living_machines_with_one_identity(lab, c):
    dmi(lab, "node2", product_serial="FCH-node2")
    c.do("check", ["node2"])
    c.cli("node", "confirm-hardware", "node2", code=None)  # asked for if the serial before was its own
    dmi(lab, "node3", product_serial="FCH-node2", product_uuid=UUIDS["node2"])
    c.do("check", ["node2", "node3"])
    for node in ("node2", "node3"):
        for addr in (c.node("node2")["spec"]["addr"], c.node("node3")["spec"]["addr"]):
            assert addr in reason(c, node, "IdentityConflict"), reason(c, node, "IdentityConflict")
        refused = c.rest("POST", "/v1/jobs", {"kind": "commission", "nodes": [node], "host_group": "service-worker"}, status=422)
        assert refused["code"] == "identity_conflict"
        assert lab.sh(node, "test -e /etc/docker || echo untouched") == "untouched"
    dmi(lab, "node3", product_serial="FCH-node3", product_uuid=UUIDS["node3"])
    c.do("check", ["node2", "node3"])
    assert "IdentityConflict" not in c.conditions("node2") | c.conditions("node3")


def test_reports_about_machines_that_are_no_node_yet(lab, c):
    """A record is made for a machine of its own, whatever it is called; another name is offered; an address is not given away."""
    addr = lab.address("node3")
    c.cli("node", "rm", "node3")
    seen = discovered(c, "node2", addr, "FCH-node3")
    assert (seen["finding"], seen["node"]) == ("new", "node2-fch-node3"), "the name is that of another machine"
    c.do("check", ["node2-fch-node3"])
    assert c.node("node2-fch-node3")["status"]["identity"]["uuid"] == UUIDS["node3"] and not c.conditions("node2-fch-node3")

    seen = discovered(c, "node3", addr, "FCH-node3")
    assert (seen["finding"], seen["node"]) == ("known", "node2-fch-node3") and "node rename node2-fch-node3 node3" in seen["message"]
    c.cli("node", "rename", "node2-fch-node3", "node3")
    c.do("check", ["node3"])

    before = sorted(presence(c))
    seen = discovered(c, "stranger", addr, "FCH-stranger")
    assert (seen["finding"], seen["node"]) == ("conflict", "node3") and sorted(presence(c)) == before, "no node is made"
    assert "stranger" in reason(c, "node3", "IdentityConflict") and addr in reason(c, "node3", "IdentityConflict")
    assert discovered(c, "node3", addr, "FCH-node3")["finding"] == "known"
    assert not c.conditions("node3"), "its own machine is there"
