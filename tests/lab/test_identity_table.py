"""Every row of the table of docs/identity.md on real nodes, with faked DMI and network cards and real host keys: the table as it is
printed is the expectation. Rows are tried on commissioned workers, several at a time; what a row leaves, a verification settles."""

import itertools

import pytest

import product
from dmi import dmi, network_cards, new_host_key

pytestmark = pytest.mark.full

WORKERS = ["node2", "node3", "node4"]
SAME, OTHER, UNKNOWN = "same", "other", "unknown"
# What is written where nothing is known.
NO_SERIALS = ["To be filled by O.E.M.", "0000000000", "Default string"]
NO_UUIDS = ["03000200-0400-0500-0006-000700080009", "ffffffff-ffff-ffff-ffff-ffffffffffff", "Not Settable"]


def table():
    """[(number, (serial, UUID, MAC addresses, host key), it is, for example)]"""
    text = (product.ROOT / "docs" / "identity.md").read_text()
    lines = text.split("<!-- table of likeness -->")[1].split("<!-- end of the table -->")[0].strip().splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(int(row[0]), tuple(row[1:5]), row[5], row[6]) for row in rows]


ROWS = table()


def first_fitting(evidence):
    return next(row[0] for row in ROWS if all(wanted in ("any", is_) for wanted, is_ in zip(row[1], evidence)))


def evidence_for(number):
    """Something that this row decides and no other; a run knows the host key of the machine that it spoke to."""
    choices = itertools.product((UNKNOWN, OTHER, SAME), (UNKNOWN, OTHER, SAME), (UNKNOWN, OTHER, SAME), (OTHER, SAME))
    return next(evidence for evidence in choices if first_fitting(evidence) == number)


class Machine:
    """A node, what it was accepted as, and how it looks now."""

    def __init__(self, lab, name, number):
        self.lab, self.name, self.number, self.times = lab, name, number, 0
        self.serial, self.uuid, self.mac = "FCH-%d" % number, "4c4c4544-0031-3010-8052-b4c04f4e310%d" % number, "00:25:b5:00:00:0%d" % number

    def look_as_accepted(self):
        dmi(self.lab, self.name, product_serial=self.serial, product_uuid=self.uuid)
        network_cards(self.lab, self.name, self.mac)

    def look(self, evidence):
        """True: with another host key."""
        self.times += 1
        serial, uuid, macs, host_key = evidence
        mark = "%d%02d" % (self.number, self.times)
        at = self.times % 3
        dmi(self.lab, self.name,
            product_serial={SAME: self.serial, OTHER: "FCH-X" + mark, UNKNOWN: NO_SERIALS[at]}[serial],
            product_uuid={SAME: self.uuid, OTHER: "4c4c4544-0031-3010-8052-b4c04f4ef" + mark, UNKNOWN: NO_UUIDS[at]}[uuid])
        network_cards(self.lab, self.name, *{SAME: [self.mac], OTHER: ["00:25:b5:0f:0%d:%02d" % (self.number, self.times)], UNKNOWN: []}[macs])
        if host_key == OTHER:
            new_host_key(self.lab, self.name)
        return host_key == OTHER


@pytest.fixture(scope="module", name="machines")
def faked(lab):
    machines = [Machine(lab, name, number) for number, name in enumerate(WORKERS, 1)]
    for machine in machines:
        machine.look_as_accepted()
    return machines


lab = product.running_lab("idtable", 4)


@pytest.fixture(scope="module", name="c")
def commissioned(lab, machines, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    daemon.do("commission", ["node1"])
    daemon.do("commission", WORKERS, host_group="service-worker")
    yield daemon
    daemon.stop()


def told(c, name):
    return {x["type"]: x["reason"] for x in c.node(name)["status"]["conditions"]}


def accepted(c, machine):
    """Its identity as the record has it, without the host key."""
    identity = dict(c.node(machine.name)["status"]["identity"])
    identity.pop("host_key")
    return identity


def may_be_updated(c, name):
    """None, or the code of the refusal."""
    answer = c.rest("POST", "/v1/jobs", {"kind": "update", "nodes": [name], "dry_run": True})
    return answer.get("code")


def as_the_row_says(c, machine, row):
    number, _, it_is, meaning = row
    found = told(c, machine.name)
    if it_is in ("the same node on other hardware", "another machine"):
        assert list(found) == ["HardwareReplaced"], found
        assert found["HardwareReplaced"].startswith(meaning + ": "), (number, found)
        assert may_be_updated(c, machine.name) == "hardware_replaced"
        assert accepted(c, machine) == {"serial": machine.serial, "uuid": machine.uuid, "macs": [machine.mac]}, "not accepted by itself"
        return
    assert may_be_updated(c, machine.name) is None
    if it_is == "the same machine, installed anew":
        assert list(found) == ["NeedsVerification"], found
        assert found["NeedsVerification"].startswith(meaning + ": was it installed anew?"), (number, found)
    else:
        assert it_is in ("the same machine", "not known") and found == {}, (number, found)
    kept = accepted(c, machine)
    assert (kept["serial"], kept["uuid"]) == (machine.serial, machine.uuid), "what says nothing makes nothing forgotten"


@pytest.mark.parametrize("rows", [ROWS[at:at + len(WORKERS)] for at in range(0, len(ROWS), len(WORKERS))],
                         ids=lambda rows: "rows %s" % "-".join(str(row[0]) for row in rows))
def test_rows(lab, c, machines, rows):
    names = [machine.name for machine in machines]
    for machine, row in zip(machines, rows):
        if machine.look(evidence_for(row[0])):
            refused = c.wait(c.submit("check", [machine.name]))
            assert refused["nodes"][0]["code"] == "host_key_changed"
            c.cli("node", "forget-hostkey", machine.name)
    c.do("check", names)
    for machine, row in zip(machines, rows):
        as_the_row_says(c, machine, row)
    for machine in machines:
        machine.look_as_accepted()
    c.do("verify", names)
    for machine in machines:
        assert told(c, machine.name) == {}
        assert accepted(c, machine) == {"serial": machine.serial, "uuid": machine.uuid, "macs": [machine.mac]}
    ready = lab.sh("node1", "docker node ls --format '{{.Hostname}} {{.Status}}'").splitlines()
    assert sorted(ready) == ["%s Ready" % name for name in ["node1"] + names], "the swarm has them all, as before"


def test_the_table_is_whole():
    """Each row decides something that a run can meet."""
    assert [first_fitting(evidence_for(row[0])) for row in ROWS] == [row[0] for row in ROWS]
    assert [row[0] for row in ROWS] == list(range(1, len(ROWS) + 1)) and len(ROWS) > 20
