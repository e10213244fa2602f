"""SSH as it really is: a machine whose host key has changed, and one that is reached through another."""

import pathlib

import pytest

import product

pytestmark = pytest.mark.full

KNOWN = pathlib.Path("/etc/ssh/ssh_known_hosts")  # where the host key of a jump host belongs

lab = product.running_lab("ssh", 2)


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    yield daemon
    daemon.stop()


@pytest.fixture(name="jump_is_known")
def known_jump_host(lab):
    before = KNOWN.read_bytes() if KNOWN.exists() else None
    key = lab.sh("node1", "cat /etc/ssh/ssh_host_ed25519_key.pub").rsplit(" ", 1)[0]
    with open(KNOWN, "a") as file:
        file.write(f"{lab.address('node1')} {key}\n")
    yield
    if before is None:
        KNOWN.unlink()
    else:
        KNOWN.write_bytes(before)


def logins(lab, node):
    """Addresses that sshd has let in since the machine booted."""
    return lab.sh(node, "journalctl -q -u ssh -o cat | sed -n 's/^Accepted .* from \\([^ ]*\\) port.*/\\1/p'").split()


def test_a_node_behind_another(lab, c, jump_is_known):
    node1 = lab.address("node1")
    c.rest("PATCH", "/v1/nodes/node2", {"spec": {"ssh": {"jump": f"root@{node1}"}}}, status=200)
    before = len(logins(lab, "node2"))
    c.do("check", ["node2"])
    came_from = logins(lab, "node2")[before:]
    assert came_from and set(came_from) == {node1}
    c.rest("PATCH", "/v1/nodes/node2", {"spec": {"ssh": {"jump": ""}}}, status=200)


def test_a_changed_host_key_is_named_at_once_and_can_be_learnt_anew(lab, c):
    old = c.node("node1")["spec"]["ssh"]["host_key"]
    assert old
    lab.sh("node1", "rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
    job = c.do("check", ["node1", "node2"], state="failed")
    row = {n["name"]: n for n in job["nodes"]}
    assert row["node1"]["code"] == "host_key_changed" and row["node1"]["hint"], row["node1"]
    assert row["node2"]["state"] == "succeeded"
    attempts = [e for e in c.events(job["id"]) if e["event"] == "result" and e["host"] == "node1"]
    assert len(attempts) == 1, "a wrong key does not get right by trying again"
    assert c.node("node1")["spec"]["ssh"]["host_key"] == old, "never taken over by itself"
    c.rest("PATCH", "/v1/nodes/node1", {"spec": {"ssh": {"host_key": ""}}}, status=200)
    c.do("check", ["node1"])
    new = c.node("node1")["spec"]["ssh"]["host_key"]
    assert new and new != old
    assert new.split()[1] in lab.sh("node1", "cat /etc/ssh/ssh_host_*.pub")
    for _ in range(2):
        c.do("check", ["node1"])
    assert c.node("node1")["spec"]["ssh"]["host_key"] == new
