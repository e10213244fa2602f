"""The role ucarp on three managers: one holder, whatever happens, and how long it takes."""

import json
import re
import subprocess
import time

import pytest

MANAGERS = ["node1", "node2", "node3"]
ONLY = {"clusterctl_only_services": ["ucarp"]}
UNIT, WATCHDOG = "clusterctl-ucarp.service", "clusterctl-ucarp-watchdog.service"
SHARE = "/usr/local/lib/clusterctl-ucarp"


@pytest.fixture
def ucarp(cluster):
    """The cluster before each test: one holder, two that stand by."""
    until = time.time() + 15
    while not settled(cluster) and time.time() < until:
        time.sleep(1)
    if not settled(cluster):
        cluster.play("site", inventory(cluster)).must()
        seconds_until(lambda: settled(cluster), 20, "converged, one holder")
    return cluster


def settled(lab):
    """One holder, and units that run and will start at boot, without a playbook."""
    for node in MANAGERS:
        words = lab.on(node, "systemctl is-active %s %s; systemctl is-enabled %s %s; ls /run/clusterctl-ucarp" % (UNIT, WATCHDOG, UNIT, WATCHDOG), check=False).split()
        if words[:4] != ["active", "active", "enabled", "enabled"] or "demoted" in words:
            return False
    return len(holders(lab)) == 1 and len(answering(lab)) == 1


def inventory(lab, targets=None, peers=(), **more):
    return lab.inventory(targets or MANAGERS, peers, None, **dict(ONLY, **more))


def converge(lab, **more):
    return lab.play("site", inventory(lab, **more))


def look(lab, targets=None, extra=None, **more):
    return lab.play("verify", inventory(lab, targets, **more), extra=extra).facts("clusterctl_service_ucarp")


def vip(lab):
    return lab.variables["service_vip"]


def holders(lab, nodes=MANAGERS):
    """Who has the address on an interface. Nodes that do not answer have none that counts."""
    return [node for node in nodes if vip(lab) + "/32" in lab.on(node, "ip -o -4 address show", check=False)]


def answering(lab):
    """MACs that answer for the address, seen from the node that stands apart (the engine's side of the network)."""
    script = "import socket,struct,select,time,json;" \
        "s=socket.socket(17,3,socket.htons(3));s.bind(('eth0',3));m=s.getsockname()[4];a=socket.inet_aton('%s');" \
        "s.send(b'\\xff'*6+m+b'\\x08\\x06'+struct.pack('!HHBBH',1,2048,6,4,1)+m+b'\\0'*10+a);e=time.time()+1;f=set()\n" \
        "while time.time()<e:\n" \
        "  if select.select([s],[],[],.1)[0]:\n" \
        "    d=s.recv(2048)\n" \
        "    if d[12:14]==b'\\x08\\x06' and d[20:22]==b'\\0\\2' and d[28:32]==a: f.add(d[22:28].hex())\n" \
        "print(json.dumps(sorted(f)))" % vip(lab)
    return json.loads(lab.on("node4", "python3 -c \"%s\"" % script.replace('"', '\\"')))


def seconds_until(condition, limit, what):
    began = time.time()
    while not condition():
        assert time.time() - began < limit, "%s: not within %d s" % (what, limit)
        time.sleep(0.2)
    took = time.time() - began
    print("%s: %.1f s" % (what, took))
    return took


def holder(lab, nodes=MANAGERS):
    found = holders(lab, nodes)
    assert len(found) == 1, found
    return found[0]


def moved(lab, node):
    """Exactly one holder, and another one than `node`."""
    found = holders(lab)
    return len(found) == 1 and found != [node]


def repaired(run, node):
    run.must()
    return run.changed_services() == {node: {"ucarp"}}


def wrong(lab, node, **more):
    fact = look(lab, extra={"ucarp_verify_wait": 3}, **more)[node]
    assert fact["healthy"] is False and "\n" not in fact["message"]
    print("verify of %s: %s" % (node, fact["message"]))
    return fact["message"]


# ---- converge ---------------------------------------------------------------------------------

def test_one_holder(ucarp):
    facts = look(ucarp)
    assert sorted(fact["role"] for fact in facts.values()) == ["backup", "backup", "holder"]
    assert {fact["endpoint"] for fact in facts.values()} == {vip(ucarp)} and all(re.match(r"1\.\d", fact["version"]) for fact in facts.values())
    assert facts[holder(ucarp)]["role"] == "holder" and len(answering(ucarp)) == 1
    ucarp.on("node4", "ping -c 1 -W 2 %s" % vip(ucarp))


def test_second_converge_changes_nothing(ucarp):
    run = converge(ucarp).must()
    assert run.changed() == {}
    print("module runs: %s" % dict(run.module_runs()))


def test_secret_is_nowhere_but_in_its_file(ucarp):
    secrets = {ucarp.on(node, "cat /etc/clusterctl-ucarp/secret") for node in MANAGERS}
    assert len(secrets) == 1
    secret = secrets.pop()
    assert 1 <= len(secret) <= 19
    for node in MANAGERS:
        assert ucarp.on(node, "stat -c %a /etc/clusterctl-ucarp/secret /etc/clusterctl-ucarp").split() == ["600", "700"]
        assert secret not in ucarp.on(node, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '; journalctl --no-pager -o cat", check=False)
    run = converge(ucarp, node_vars={name: {"ucarp_secret": "another one!"} for name in MANAGERS}).must()
    assert "another one!" not in run.output and "another one!" not in json.dumps(run.events)
    assert converge(ucarp).must().changed_services() == {name: {"ucarp"} for name in MANAGERS}


def test_id_and_secret_differ_between_clusters(ucarp):
    now = json.loads(ucarp.on("node1", "cat /etc/clusterctl-ucarp/config.json"))
    converge(ucarp, targets=["node1"], clusterctl_cluster_name="another").must()
    other = json.loads(ucarp.on("node1", "cat /etc/clusterctl-ucarp/config.json"))
    assert other["vhid"] != now["vhid"] and 1 <= int(other["vhid"]) <= 255
    converge(ucarp).must()


@pytest.mark.parametrize("damage", [
    "systemctl stop " + UNIT, "systemctl stop " + WATCHDOG, "systemctl disable -q " + UNIT, "echo '# edited' >> %s/vip-up" % SHARE,
    "rm /etc/clusterctl-ucarp/config.json", "echo x > /etc/clusterctl-ucarp/secret", "rm -r %s /etc/clusterctl-ucarp" % SHARE,
], ids=["stopped", "watchdog stopped", "disabled", "script edited", "no config", "secret edited", "no files"])
def test_damage_is_repaired_by_this_role_alone(ucarp, damage):
    node = next(n for n in MANAGERS if n != holder(ucarp))
    ucarp.on(node, damage)
    assert repaired(converge(ucarp), node)
    assert settled(ucarp)


# ---- scripts ----------------------------------------------------------------------------------

def test_scripts_repeat_and_undo_each_other(ucarp):
    """On a node where nothing of ours runs, with an address that nobody uses."""
    for name in ("vip-up", "vip-down"):
        text = ucarp.on("node1", "cat %s/%s" % (SHARE, name))
        ucarp.on("node4", "cat > /tmp/%s <<'END'\n%s\nEND\nchmod +x /tmp/%s" % (name, text, name))
    other = vip(ucarp).rsplit(".", 1)[0] + ".199"
    state = "ip -4 route show table all; ip -o -4 address"
    before = ucarp.on("node4", state)
    ucarp.on("node4", "/tmp/vip-up eth0 %s" % other)
    once = ucarp.on("node4", state)
    ucarp.on("node4", "/tmp/vip-up eth0 %s" % other)
    assert ucarp.on("node4", state) == once
    routes = [line for line in once.splitlines() if "inet" not in line and line not in before.splitlines()]
    assert all(line.startswith("local %s " % other) for line in routes) and other + "/32" in once
    for _turn in range(2):
        ucarp.on("node4", "/tmp/vip-down eth0 %s" % other)
        assert ucarp.on("node4", state) == before
    ucarp.on("node4", "/tmp/vip-up eth0 %s; /tmp/vip-down" % other)
    assert ucarp.on("node4", state) == before
    ucarp.on("node4", "rm -r /run/clusterctl-ucarp /tmp/vip-*")


# ---- one holder, whatever happens ----------------------------------------------------------------

def test_lost_address_comes_back(ucarp):
    node = holder(ucarp)
    ucarp.on(node, "ip address delete %s/32 dev eth0" % vip(ucarp))
    assert seconds_until(lambda: holders(ucarp) == [node], 30, "address removed from the holder, back") < 30
    assert len(answering(ucarp)) == 1


def test_address_on_a_backup_goes_away(ucarp):
    node = holder(ucarp)
    other = next(n for n in MANAGERS if n != node)
    ucarp.on(other, "ip address add %s/32 dev eth0" % vip(ucarp))
    seconds_until(lambda: holders(ucarp) == [node], 30, "address added on a backup, gone")


def test_ucarp_killed(ucarp):
    """The killed one gives the address back at once and stands by. Three times."""
    for _turn in range(3):
        node = holder(ucarp)
        ucarp.on(node, "systemctl kill -s KILL " + UNIT)
        took = seconds_until(lambda: moved(ucarp, node), 10, "holder's ucarp killed, another one holds")
        assert took < 10 and len(answering(ucarp)) == 1
    assert settled(ucarp)


def test_power_cut_of_the_holder(ucarp):
    node = holder(ucarp)
    rest = [n for n in MANAGERS if n != node]
    ucarp.lab("kill", node)
    try:
        assert seconds_until(lambda: len(holders(ucarp, rest)) == 1, 10, "power cut of the holder, another one holds") < 10
        new = holder(ucarp, rest)
    finally:
        ucarp.lab("start", node)
    seconds_until(lambda: ucarp.lab("ssh", node, "true", check=False).returncode == 0, 60, "node up again")
    time.sleep(8)
    assert holders(ucarp) == [new], "a node that comes back does not take the address"
    assert settled(ucarp)


def test_holder_frozen(ucarp):
    node = holder(ucarp)
    rest = [n for n in MANAGERS if n != node]
    ucarp.lab("pause", node)
    try:
        seconds_until(lambda: len(holders(ucarp, rest)) == 1, 10, "holder frozen, another one holds")
    finally:
        ucarp.lab("unpause", node)
    seconds_until(lambda: len(holders(ucarp)) == 1, 15, "holder thawed, one holder again")
    time.sleep(4)
    assert len(holders(ucarp)) == 1 and len(answering(ucarp)) == 1
    assert settled(ucarp)


def test_ucarp_stopped(ucarp):
    """SIGSTOP: it announces nothing and keeps the address. The watchdog ends it."""
    node = holder(ucarp)
    before = ucarp.on(node, "systemctl show -p MainPID --value " + UNIT)
    ucarp.on(node, "systemctl kill -s STOP " + UNIT)
    seconds_until(lambda: ucarp.on(node, "systemctl show -p MainPID --value " + UNIT) not in (before, "0"), 20, "holder's ucarp stopped, ended and started again")
    seconds_until(lambda: settled(ucarp), 15, "holder's ucarp stopped, one holder again")


def test_watchdog_killed(ucarp):
    node = holder(ucarp)
    ucarp.on(node, "systemctl kill -s KILL %s; ip address delete %s/32 dev eth0" % (WATCHDOG, vip(ucarp)))
    seconds_until(lambda: holders(ucarp) == [node], 30, "watchdog killed and address removed, back")


@pytest.mark.parametrize("stop,start", [("systemctl stop etcd", "systemctl start etcd")], ids=["etcd"])
def test_dead_service_hands_over(ucarp, stop, start):
    if "etcd" not in ucarp.on("node1", "cat /etc/clusterctl-ucarp/config.json"):
        pytest.skip("etcd is not selected")
    node = holder(ucarp)
    ucarp.on(node, stop)
    try:
        seconds_until(lambda: moved(ucarp, node), 30, "%s on the holder, another one holds" % stop)
        new = holder(ucarp)
        assert "etcd" in ucarp.on(node, "cat /run/clusterctl-ucarp/demoted") and len(answering(ucarp)) == 1
    finally:
        ucarp.on(node, start)
    seconds_until(lambda: "demoted" not in ucarp.on(node, "ls /run/clusterctl-ucarp"), 40, "%s, back in the ranks" % start)
    time.sleep(6)
    assert holders(ucarp) == [new]
    assert converge(ucarp).must().changed() == {}


def test_dead_dockerd_hands_over(ucarp):
    if "docker" not in ucarp.on("node1", "cat /etc/clusterctl-ucarp/config.json"):
        pytest.skip("docker is not selected")
    node = holder(ucarp)
    ucarp.on(node, "systemctl kill -s STOP docker")
    try:
        seconds_until(lambda: moved(ucarp, node), 40, "dockerd hangs on the holder, another one holds")
    finally:
        ucarp.on(node, "systemctl kill -s CONT docker")


def test_own_check_command_and_a_cluster_where_all_are_unhealthy(ucarp):
    settings = {"ucarp_check_command": ["test", "-e", "/tmp/may hold $(reboot)"], "ucarp_check_interval": 1}
    for node in MANAGERS:
        ucarp.on(node, "touch '/tmp/may hold $(reboot)'")
    converge(ucarp, node_vars={name: settings for name in MANAGERS}).must()
    seconds_until(lambda: len(holders(ucarp)) == 1, 15, "settings changed, one holder")
    node = holder(ucarp)
    ucarp.on(node, "rm '/tmp/may hold $(reboot)'")
    seconds_until(lambda: moved(ucarp, node), 20, "check command fails on the holder, another one holds")
    for other in MANAGERS:
        ucarp.on(other, "rm -f '/tmp/may hold $(reboot)'")
    time.sleep(5)
    seconds_until(lambda: len(holders(ucarp)) == 1, 20, "check command fails everywhere, the address still is somewhere")
    last = next(n for n in MANAGERS if n != holder(ucarp))
    ucarp.on(last, "touch '/tmp/may hold $(reboot)'")
    seconds_until(lambda: holders(ucarp) == [last], 20, "one node is healthy again, and holds")
    converge(ucarp).must()
    for other in MANAGERS:
        ucarp.on(other, "rm -f '/tmp/may hold $(reboot)'")
    seconds_until(lambda: len(holders(ucarp)) == 1, 15, "settings back, one holder")


# ---- check ------------------------------------------------------------------------------------

def problems(lab, node="node1", targets=None, **variables):
    given = lab.inventory(targets or MANAGERS, (), None, node_vars={name: variables for name in MANAGERS}, **ONLY)
    run = lab.play("check", given)
    return [problem["code"] for problem in run.facts("clusterctl_problems")[node]]


def test_check_finds_addresses_that_cannot_be(ucarp):
    base = vip(ucarp).rsplit(".", 1)[0]
    assert problems(ucarp) == []
    for value, code in ((base + ".12", "ucarp_vip_is_node"), ("192.0.2.9", "ucarp_vip_subnet"), (base + ".255", "ucarp_vip_subnet"), ("not an address", "ucarp_vip"),
                        ("127.0.0.5", "ucarp_vip"), ("{{ lookup('pipe','id') }}", "ucarp_vip"), (base + ".1", "ucarp_vip_taken")):
        found = problems(ucarp, service_vip=value)
        print("service_vip %s: %s" % (value, found))
        assert found == [code], value
    assert problems(ucarp, control_interface="nope0") == ["ucarp_interface"]
    assert problems(ucarp, control_subnet="192.0.2.0/24") == ["ucarp_vip_subnet"]
    assert problems(ucarp, service_vip=base + ".197") == []


def test_check_finds_a_stranger_with_our_group_id(ucarp):
    """The holder, seen by a cluster that does not know it."""
    node = holder(ucarp)
    fresh = [n for n in MANAGERS if n != node]
    given = ucarp.inventory(fresh, (), None, node_vars={n: {"service_vip": vip(ucarp).rsplit(".", 1)[0] + ".197"} for n in fresh}, **ONLY)
    found = ucarp.play("check", given).facts("clusterctl_problems")
    assert [p["code"] for p in found[fresh[0]]] == ["ucarp_vhid_taken"]


# ---- verify sees it ---------------------------------------------------------------------------

def still(lab, node):
    """Nothing repairs this node now."""
    lab.on(node, "systemctl kill -s STOP " + WATCHDOG)


def moving(lab, node):
    lab.on(node, "systemctl kill -s CONT " + WATCHDOG)


@pytest.mark.parametrize("damage,message", [
    ("systemctl stop " + UNIT, UNIT + " is inactive"), ("systemctl stop " + WATCHDOG, WATCHDOG + " is inactive"),
    ("systemctl disable -q " + UNIT, UNIT + " is not enabled"), ("systemctl disable -q " + WATCHDOG, WATCHDOG + " is not enabled"),
], ids=["ucarp dead", "watchdog dead", "ucarp not enabled", "watchdog not enabled"])
def test_verify_units(ucarp, damage, message):
    node = next(n for n in MANAGERS if n != holder(ucarp))
    ucarp.on(node, damage)
    assert message in wrong(ucarp, node)


def test_verify_holder_without_the_address(ucarp):
    node = holder(ucarp)
    still(ucarp, node)
    ucarp.on(node, "ip address delete %s/32 dev eth0" % vip(ucarp))
    facts = look(ucarp, extra={"ucarp_verify_wait": 1})
    print({n: f["message"] for n, f in facts.items()})
    moving(ucarp, node)
    assert "this node is the holder, but the address is on none" in facts[node]["message"]
    assert all("nobody holds the address" == fact["message"] for name, fact in facts.items() if name != node)


def test_verify_backup_with_the_address(ucarp):
    node = holder(ucarp)
    other = next(n for n in MANAGERS if n != node)
    still(ucarp, other)
    ucarp.on(other, "ip address add %s/32 dev eth0" % vip(ucarp))
    facts = look(ucarp, extra={"ucarp_verify_wait": 1})
    print({n: f["message"] for n, f in facts.items()})
    moving(ucarp, other)
    assert "not the holder, but the address is on eth0" in facts[other]["message"]
    assert "answers for the address, too" in facts[node]["message"]
    third = next(n for n in MANAGERS if n not in (node, other))
    assert "several machines answer" in facts[third]["message"]


def test_verify_subnet_route(ucarp):
    node = holder(ucarp)
    still(ucarp, node)
    ucarp.on(node, "ip address delete %s/32 dev eth0; ip address add %s/24 dev eth0" % (vip(ucarp), vip(ucarp)))
    try:
        assert "subnet route" in wrong(ucarp, node)
    finally:
        ucarp.on(node, "ip address delete %s/24 dev eth0" % vip(ucarp))
        moving(ucarp, node)


def test_verify_ucarp_stopped(ucarp):
    node = next(n for n in MANAGERS if n != holder(ucarp))
    still(ucarp, node)
    ucarp.on(node, "systemctl kill -s STOP " + UNIT)
    try:
        assert "ucarp is stopped" in wrong(ucarp, node)
    finally:
        ucarp.on(node, "systemctl kill -s CONT " + UNIT)
        moving(ucarp, node)


def test_show_names_one_holder(ucarp):
    facts = ucarp.play("show", inventory(ucarp)).must().facts("clusterctl_service_ucarp")
    assert [name for name, fact in facts.items() if fact["role"] == "holder"] == [holder(ucarp)]


# ---- going ------------------------------------------------------------------------------------

def leave(lab, node, level="state"):
    peers = [n for n in MANAGERS if n != node]
    return lab.play("cleanup", inventory(lab, [node], peers, clusterctl_managers=peers, clusterctl_leaving=[node], clusterctl_cleanup_level=level))


def test_the_holder_leaves(ucarp):
    node = holder(ucarp)
    # The worst case: everything was killed, and systemd does not look after it any more.
    ucarp.on(node, "systemctl stop %s %s; ip address add %s/32 dev eth0; mkdir -p /run/clusterctl-ucarp; echo eth0 %s > /run/clusterctl-ucarp/held" % (
        WATCHDOG, UNIT, vip(ucarp), vip(ucarp)))
    leave(ucarp, node).must()
    left = ucarp.on(node, "ls -d /etc/clusterctl-ucarp %s /etc/systemd/system/clusterctl-ucarp* /run/clusterctl-ucarp /var/lib/clusterctl-node/ucarp* 2>/dev/null; "
                    "ip -o address | grep -w %s; pgrep -x ucarp; systemctl list-units --all --no-legend 'clusterctl-ucarp*'" % (SHARE, vip(ucarp)), check=False)
    assert left == ""
    assert leave(ucarp, node).must().changed() == {}
    seconds_until(lambda: len(holders(ucarp)) == 1, 10, "the holder has left, another one holds")
    converge(ucarp).must()
    assert settled(ucarp)


def test_running_holder_leaves(ucarp):
    node = holder(ucarp)
    leave(ucarp, node).must()
    assert node not in holders(ucarp)
    seconds_until(lambda: len(holders(ucarp)) == 1, 10, "the running holder has left, another one holds")
    converge(ucarp).must()


def test_level_membership_keeps_the_files(ucarp):
    node = holder(ucarp)
    leave(ucarp, node, "membership").must()
    assert ucarp.on(node, "ls /etc/clusterctl-ucarp").split() == ["config.json", "secret"] and node not in holders(ucarp)
    assert repaired(converge(ucarp), node)


def test_hostile_values_execute_nothing(ucarp):
    evil = "{{ lookup('pipe','touch /tmp/ucarp-pwned') }} $(touch /tmp/ucarp-pwned)\n; touch /tmp/ucarp-pwned"
    for name in ("control_interface", "ucarp_secret", "service_vip", "ucarp_program"):
        run = converge(ucarp, node_vars={"node3": {name: evil}})
        assert set(run.failed()) == {"node3"}, name
        assert ucarp.on("node3", "ls /tmp/ucarp-pwned 2>/dev/null", check=False) == ""
        assert subprocess.run(["ls", "/tmp/ucarp-pwned"], stderr=subprocess.DEVNULL).returncode != 0
        converge(ucarp).must()
