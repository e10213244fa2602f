"""The role etcd on three managers: what repairs what, what verify sees, and what is left of a member that goes."""

import json
import os
import re
import subprocess
import time

import pytest

MANAGERS = ["node1", "node2", "node3"]
ONLY = {"clusterctl_only_services": ["etcd"]}
CTL = "set -a; . /etc/etcd/etcdctl.env; set +a; "
DATA = "/var/lib/etcd/clusterctl"


@pytest.fixture
def etcd(cluster):
    """The cluster before each test: three healthy members, whatever the test before has done."""
    if not healthy(cluster):
        cluster.play("site", inventory(cluster)).must()
        assert healthy(cluster)
    return cluster


def healthy(lab):
    """Three voting members that answer, and units that will start at boot, without a playbook."""
    for node in MANAGERS:
        text = lab.on(node, CTL + "systemctl is-active etcd && systemctl is-enabled etcd && etcdctl endpoint health --command-timeout=3s -w json", check=False)
        if not text.startswith("active\nenabled\n") or '"health":true' not in text:
            return False
    return set(ids(lab)) == set(MANAGERS)


def inventory(lab, targets=None, peers=(), **more):
    return lab.inventory(targets or MANAGERS, peers, None, **dict(ONLY, **more))


def converge(lab, **more):
    return lab.play("site", inventory(lab, **more))


def look(lab, targets=None, extra=None, **more):
    """{host: verify fact}"""
    return lab.play("verify", inventory(lab, targets, **more), extra=extra).facts("clusterctl_service_etcd")


def ids(lab, node="node1"):
    text = lab.on(node, CTL + "etcdctl member list -w json")
    return {m.get("name", ""): "%x" % m["ID"] for m in json.loads(text)["members"]}


def remove(lab, node):
    """As an operator does. For some seconds after a member was restarted etcd refuses to change the list."""
    until = time.time() + 20
    while lab.lab("exec", "node1", "sh", "-c", CTL + "etcdctl member remove " + ids(lab)[node], check=False).returncode != 0:
        assert time.time() < until
        time.sleep(1)


def repaired(run, node):
    """Exactly the role etcd of exactly this node has reported a change."""
    run.must()
    return run.changed_services() == {node: {"etcd"}}


def wrong(lab, node, extra=None, **more):
    fact = look(lab, extra=extra, **more)[node]
    assert fact["healthy"] is False and "\n" not in fact["message"]
    print("verify of %s: %s" % (node, fact["message"]))
    return fact["message"]


# ---- converge ---------------------------------------------------------------------------------

def test_facts_of_a_healthy_cluster(etcd):
    facts = look(etcd)
    members = ids(etcd)
    for node, fact in facts.items():
        assert fact["v"] == 1 and re.match(r"3\.\d+\.\d+$", fact["version"]) and fact["message"] == ""
        assert fact["member_id"] == members[node] and fact["endpoint"] == "https://%s:2379" % etcd.hosts[node]["ansible_host"]
        assert [m["name"] for m in fact["members"]] == MANAGERS and all(m["reachable"] for m in fact["members"])
        assert {m["addr"] for m in fact["members"]} == {etcd.hosts[n]["ansible_host"] for n in MANAGERS}
    assert sorted(fact["role"] for fact in facts.values()) == ["leader", "member", "member"]
    leader = next(node for node, fact in facts.items() if fact["role"] == "leader")
    assert all([m["name"] for m in fact["members"] if m["leader"]] == [leader] for fact in facts.values())


def test_second_converge_changes_nothing(etcd):
    run = converge(etcd).must()
    assert run.changed() == {}
    print("module runs: %s" % dict(run.module_runs()))


def test_tls_and_modes(etcd):
    assert etcd.on("node2", "stat -c '%%a %%U' %s /etc/etcd/member.key" % DATA).split() == ["700", "etcd", "600", "etcd"]
    assert "health\":true" in etcd.on("node2", CTL + "etcdctl endpoint health -w json").replace(" ", "")
    assert etcd.on("node1", "ETCDCTL_API=3 etcdctl --endpoints=http://127.0.0.1:2379 --command-timeout=2s get x 2>&1 || echo refused").endswith("refused")
    # Without a client certificate nothing is served, neither to clients nor to members.
    for port in (2379, 2380):
        assert etcd.on("node1", "curl -sk --max-time 3 https://127.0.0.1:%d/version || curl -sk --max-time 3 https://$(hostname -I | cut -d' ' -f1):%d/version || echo no" % (port, port)) == "no"
    names = etcd.on("node1", "openssl x509 -in /etc/etcd/member.crt -noout -ext subjectAltName")
    assert "DNS:node1" in names and "IP Address:127.0.0.1" in names and etcd.hosts["node1"]["ansible_host"] in names
    digests = {etcd.on(node, "sha256sum < /etc/etcd/ca.crt") for node in MANAGERS}
    assert len(digests) == 1 and etcd.on("node1", "ls /etc/etcd").split() == ["ca.crt", "etcd.yml", "etcdctl.env", "member.crt", "member.key"]


@pytest.mark.parametrize("damage", [
    "systemctl stop etcd", "systemctl disable -q etcd", "systemctl mask -q --now etcd 2>/dev/null; rm -f /etc/systemd/system/etcd.service; ln -s /dev/null /etc/systemd/system/etcd.service; systemctl daemon-reload",
    "echo 'log-level: debug' >> /etc/etcd/etcd.yml", "rm /etc/systemd/system/etcd.service.d/clusterctl.conf", ": > /etc/etcd/member.crt",
    "rm /etc/etcd/ca.crt", "rm /etc/etcd/member.key", "chmod 755 " + DATA, "rm -rf /etc/etcd", "rm -rf %s/*; systemctl restart etcd; true" % DATA,
], ids=["stopped", "disabled", "masked", "config edited", "no drop-in", "empty certificate", "no authority", "no key", "mode of data", "no /etc/etcd", "no data"])
def test_damage_is_repaired_by_this_role_alone(etcd, damage):
    before = etcd.on("node3", "systemctl show -p InvocationID --value etcd")
    etcd.on("node3", damage)
    assert repaired(converge(etcd), "node3")
    assert healthy(etcd)
    if "chmod" not in damage and "disable" not in damage:
        assert etcd.on("node3", "systemctl show -p InvocationID --value etcd") != before


def test_a_file_edited_and_a_run_that_died_still_restart(etcd):
    """The file is right again, but the unit was started with the wrong one."""
    etcd.on("node3", "cp -p /etc/etcd/etcd.yml /tmp/good; echo 'log-level: debug' >> /etc/etcd/etcd.yml; systemctl restart etcd; cat /tmp/good > /etc/etcd/etcd.yml")
    assert repaired(converge(etcd), "node3")


def test_an_operators_restart_and_a_reboot_are_no_change(etcd):
    etcd.on("node2", "systemctl restart etcd")
    assert converge(etcd).must().changed() == {}


def test_a_removed_member_joins_again(etcd):
    before = ids(etcd)
    remove(etcd, "node3")
    time.sleep(1)
    assert repaired(converge(etcd), "node3")
    after = ids(etcd)
    assert set(after) == set(MANAGERS) and after["node3"] != before["node3"] and after["node1"] == before["node1"]
    assert healthy(etcd)


def test_the_leader_hands_over_before_a_restart(etcd):
    leader = next(node for node, fact in look(etcd).items() if fact["role"] == "leader")
    etcd.on(leader, "echo '# edited' >> /etc/etcd/etcd.yml")
    assert repaired(converge(etcd), leader)
    assert look(etcd)[leader]["role"] == "member"


def test_a_restart_that_costs_the_majority_is_refused(etcd):
    etcd.on("node2", "systemctl stop etcd")
    etcd.on("node1", "echo '# edited' >> /etc/etcd/etcd.yml")
    run = etcd.play("site", inventory(etcd, ["node1"], ["node3"], clusterctl_managers=MANAGERS))
    assert "would lose the majority" in run.failed()["node1"]["msg"] and "node2" in run.failed()["node1"]["msg"]
    assert etcd.on("node3", CTL + "etcdctl endpoint health -w json | grep -c '\"health\":true'") == "1"
    # One run brings node2 back, too late for node1, which comes before it; the next one restarts node1.
    assert set(converge(etcd).failed()) == {"node1"}
    assert repaired(converge(etcd), "node1")


# ---- verify sees it ---------------------------------------------------------------------------

def test_verify_unit_dead(etcd):
    etcd.on("node3", "systemctl stop etcd")
    facts = look(etcd)
    assert facts["node3"]["healthy"] is False and "etcd.service is inactive" in facts["node3"]["message"]
    # The others are a majority, and say who is missing.
    assert facts["node1"]["healthy"] and [m["name"] for m in facts["node1"]["members"] if not m["reachable"]] == ["node3"]


def test_verify_endpoint_does_not_answer(etcd):
    etcd.on("node3", "systemctl kill -s STOP etcd")
    try:
        assert "does not answer" in wrong(etcd, "node3")
    finally:
        etcd.on("node3", "systemctl kill -s CONT etcd")


def test_verify_not_enabled(etcd):
    etcd.on("node3", "systemctl disable -q etcd")
    assert wrong(etcd, "node3") == "etcd.service is not enabled for boot"


def test_verify_not_a_member(etcd):
    remove(etcd, "node3")
    time.sleep(3)
    assert "is not a member of the cluster any more" in wrong(etcd, "node3")


def rejoin_by_hand(lab, how):
    """node3 starts from nothing, as a learner of the cluster or as a cluster of its own."""
    address = lab.hosts["node3"]["ansible_host"]
    remove(lab, "node3")
    lab.on("node3", "systemctl stop etcd; rm -rf %s/*" % DATA)
    peers = "node3=https://%s:2380" % address
    if how == "existing":
        lab.on("node1", CTL + "etcdctl member add node3 --learner --peer-urls=https://%s:2380" % address)
        peers = ",".join("%s=https://%s:2380" % (n, lab.hosts[n]["ansible_host"]) for n in MANAGERS)
    lab.on("node3", "sed -i -e 's|^initial-cluster: .*|initial-cluster: \"%s\"|' -e 's|^initial-cluster-state: .*|initial-cluster-state: \"%s\"|' "
           "/etc/etcd/etcd.yml; systemctl start etcd" % (peers, how))


def test_verify_learner(etcd):
    rejoin_by_hand(etcd, "existing")
    fact = look(etcd)["node3"]
    assert fact["healthy"] is False and fact["role"] == "learner" and "learner" in fact["message"]
    # An interrupted join is finished, not begun again.
    number = ids(etcd)["node3"]
    assert repaired(converge(etcd), "node3") and ids(etcd)["node3"] == number


def test_verify_foreign_cluster(etcd):
    rejoin_by_hand(etcd, "new")
    facts = look(etcd)
    assert "another etcd cluster" in facts["node3"]["message"] and facts["node3"]["healthy"] is False
    assert facts["node1"]["healthy"] and facts["node2"]["healthy"]
    # Somebody's data: not ours to throw away.
    run = converge(etcd)
    assert "clean this node" in run.failed()["node3"]["msg"] and set(run.failed()) == {"node3"}
    etcd.play("cleanup", inventory(etcd, ["node3"], ["node1", "node2"], clusterctl_managers=MANAGERS[:2], clusterctl_leaving=["node3"])).must()


def test_verify_certificate_expiring(etcd):
    message = wrong(etcd, "node2", extra={"etcd_cert_min_days": 2000})
    assert "/etc/etcd/member.crt expires in less than 2000 days" in message
    assert all(fact["healthy"] for fact in look(etcd, extra={"etcd_cert_min_days": 1000}).values())


def test_verify_certificate_expired(etcd, tmp_path):
    pki = inventory(etcd)["all"]["vars"]["clusterctl_pki_dir"] + "/etcd"
    (tmp_path / "csr").write_text(etcd.on("node3", "openssl req -new -key /etc/etcd/member.key -subj /CN=node3") + "\n")
    (tmp_path / "ext").write_text("subjectAltName=IP:%s,IP:127.0.0.1\n" % etcd.hosts["node3"]["ansible_host"])
    text = subprocess.run(["openssl", "x509", "-req", "-in", tmp_path / "csr", "-CA", pki + "/ca.crt", "-CAkey", pki + "/ca.key", "-days", "0",
                           "-set_serial", "7", "-extfile", tmp_path / "ext"], stdout=subprocess.PIPE, check=True, text=True).stdout
    etcd.on("node3", "cat > /etc/etcd/member.crt <<'END'\n%s\nEND\nsleep 1" % text.strip())
    assert "/etc/etcd/member.crt has expired" in wrong(etcd, "node3")
    assert repaired(converge(etcd), "node3")


def test_verify_alarm(etcd):
    etcd.on("node3", "sed -i 's/^quota-backend-bytes: .*/quota-backend-bytes: 40000/' /etc/etcd/etcd.yml; systemctl restart etcd")
    etcd.on("node3", CTL + "head -c 60000 /dev/zero | tr '\\0' x | etcdctl put big; true", check=False)
    facts = look(etcd)
    assert all(fact["healthy"] is False and "alarm NOSPACE raised by node3" in fact["message"] for fact in facts.values()), facts
    assert repaired(converge(etcd), "node3")
    etcd.on("node3", CTL + "etcdctl del big; etcdctl alarm disarm")


def test_verify_without_a_majority_is_bounded(etcd):
    for node in ("node2", "node3"):
        etcd.on(node, "systemctl stop etcd")
    began = time.time()
    fact = look(etcd, ["node1"])["node1"]
    took = time.time() - began
    print("verify without a majority: %.1f s: %s" % (took, fact["message"]))
    assert fact["healthy"] is False and "no majority: 1 of 3" in fact["message"] and took < 40
    assert sorted(m["name"] for m in fact["members"] if not m["reachable"]) == ["node2", "node3"]
    began = time.time()
    run = etcd.play("site", inventory(etcd, ["node1"], clusterctl_managers=MANAGERS), extra={"etcd_wait": 8, "etcd_join_wait": 8})
    print("converge without a majority: %.1f s: %s" % (time.time() - began, run.failed()["node1"]["msg"]))
    assert "not healthy" in run.failed()["node1"]["msg"] and time.time() - began < 60
    converge(etcd).must()


# ---- going and coming -------------------------------------------------------------------------

def leave(lab, node, level="state", **more):
    peers = [n for n in MANAGERS if n != node]
    return lab.play("cleanup", inventory(lab, [node], peers, clusterctl_managers=peers, clusterctl_leaving=[node], clusterctl_cleanup_level=level, **more))


def nothing_left(lab, node):
    assert lab.on(node, "systemctl is-active etcd; systemctl is-enabled etcd", check=False).split() == ["inactive", "disabled"]
    assert lab.on(node, "ls -d /etc/etcd /etc/systemd/system/etcd.service.d %s 2>/dev/null; pgrep -x etcd; ss -Hltn 'sport = :2379 or sport = :2380'" % DATA, check=False) == ""


def test_three_cycles(etcd):
    for turn in range(3):
        node = ["node3", "node1", "node2"][turn]  # the first one of all, too
        recorded = {node: {"clusterctl_recorded": {"etcd": ids(etcd)[node]}}} if turn else None
        leave(etcd, node, node_vars=recorded).must()
        nothing_left(etcd, node)
        peer = next(n for n in MANAGERS if n != node)
        assert node not in ids(etcd, peer) and len(ids(etcd, peer)) == 2
        assert leave(etcd, node).must().changed() == {}, "a second cleanup changes nothing"
        run = etcd.play("site", inventory(etcd, [node], [n for n in MANAGERS if n != node])).must()
        assert set(run.changed_services()) == {node} and set(ids(etcd)) == set(MANAGERS)
        assert healthy(etcd)


def test_level_membership_keeps_the_files(etcd):
    leave(etcd, "node3", "membership").must()
    assert "node3" not in ids(etcd)
    assert etcd.on("node3", "systemctl is-active etcd; ls /etc/etcd/etcd.yml; ls " + DATA, check=False).split() == ["inactive", "/etc/etcd/etcd.yml", "member"]
    assert repaired(converge(etcd), "node3")


def test_cleanup_without_a_peer_still_leaves(etcd):
    run = etcd.play("cleanup", inventory(etcd, ["node3"], clusterctl_managers=[], clusterctl_leaving=["node3"])).must()
    assert run.changed_services() == {"node3": {"etcd"}}
    nothing_left(etcd, "node3")
    assert set(ids(etcd)) == {"node1", "node2"}


def test_cleanup_of_a_half_installed_node(etcd):
    leave(etcd, "node3").must()
    for damage in ("systemctl enable -q etcd; systemctl start etcd", "mkdir -p /etc/etcd /var/lib/etcd/clusterctl/member/wal; touch /etc/etcd/ca.crt", "true"):
        etcd.on("node3", damage)
        leave(etcd, "node3").must()
        nothing_left(etcd, "node3")


def test_the_packages_own_start_is_undone(etcd):
    """A distribution's etcd with its defaults (plain HTTP) and nothing in it is taken over; one with data is not."""
    leave(etcd, "node3").must()
    etcd.on("node3", "systemctl start etcd; ETCDCTL_API=3 etcdctl put somebodys data")
    problems = etcd.play("check", inventory(etcd, ["node3"], ["node1"], clusterctl_managers=MANAGERS)).facts("clusterctl_problems")["node3"]
    assert [p["code"] for p in problems] == ["etcd_unmanaged"]
    run = etcd.play("site", inventory(etcd, ["node3"], ["node1", "node2"]))
    assert "does not manage" in run.failed()["node3"]["msg"]
    etcd.on("node3", "systemctl stop etcd; rm -rf /var/lib/etcd/default; systemctl start etcd")
    assert etcd.play("check", inventory(etcd, ["node3"], ["node1"], clusterctl_managers=MANAGERS)).facts("clusterctl_problems")["node3"] == []
    etcd.play("site", inventory(etcd, ["node3"], ["node1", "node2"])).must()
    assert etcd.on("node3", "ls /var/lib/etcd/default", check=False) == ""
    assert healthy(etcd)


def test_a_failed_join_removes_its_entry(etcd):
    leave(etcd, "node3").must()
    etcd.on("node3", "systemd-run -q --unit=squatter python3 -c 'import socket,time; s=socket.socket(); s.setsockopt(1,2,1); s.bind((\"0.0.0.0\",2380)); s.listen(); time.sleep(600)'")
    try:
        problems = etcd.play("check", inventory(etcd, ["node3"], ["node1"], clusterctl_managers=MANAGERS)).facts("clusterctl_problems")["node3"]
        assert [p["code"] for p in problems] == ["etcd_port_taken"]
        run = etcd.play("site", inventory(etcd, ["node3"], ["node1", "node2"]))
        message = run.failed()["node3"]["msg"]
        print(message)
        assert "joining the cluster failed" in message and "address already in use" in message
        assert set(ids(etcd)) == {"node1", "node2"} and etcd.on("node3", "ls %s" % DATA) == ""
    finally:
        etcd.on("node3", "systemctl stop squatter")
    etcd.play("site", inventory(etcd, ["node3"], ["node1", "node2"])).must()
    assert set(ids(etcd)) == set(MANAGERS)


def test_a_dead_member_is_forgotten(etcd):
    address = etcd.hosts["node3"]["ansible_host"]
    lost = [{"name": "node3", "addr": address, "ids": {"etcd": ids(etcd)["node3"]}}]
    for known in (lost, [{"name": "node3", "addr": address, "ids": {}}]):
        etcd.lab("kill", "node3")
        try:
            began = time.time()
            run = etcd.play("forget", inventory(etcd, ["node2"], ["node1"], clusterctl_managers=["node1", "node2"], clusterctl_lost=known)).must()
            print("forget: %.1f s" % (time.time() - began))
            assert run.changed_services() == {"node1": {"etcd"}} and set(ids(etcd)) == {"node1", "node2"}
            again = etcd.play("forget", inventory(etcd, ["node2"], ["node1"], clusterctl_managers=["node1", "node2"], clusterctl_lost=known)).must()
            assert again.changed() == {}
        finally:
            etcd.lab("start", "node3")
            wait_for(etcd, "node3")
        assert "is not a member" in wrong(etcd, "node3")
        assert repaired(converge(etcd), "node3")


def test_forget_spares_who_has_the_name_but_not_the_address(etcd):
    lost = [{"name": "node3", "addr": "192.0.2.1", "ids": {"etcd": "123"}}]
    run = etcd.play("forget", inventory(etcd, ["node2"], ["node1"], clusterctl_managers=["node1", "node2"], clusterctl_lost=lost)).must()
    assert run.changed() == {} and set(ids(etcd)) == set(MANAGERS)


def wait_for(lab, node, seconds=60):
    until = time.time() + seconds
    while lab.lab("ssh", node, "true", check=False).returncode != 0:
        assert time.time() < until, "%s does not come back" % node
        time.sleep(0.5)


def test_all_at_once(etcd):
    """Power cut of all managers: nothing but their data directories tells them who they are."""
    for node in MANAGERS:
        etcd.lab("kill", node)
    began = time.time()
    for node in MANAGERS:
        etcd.lab("start", node)
    until = time.time() + 90
    while '"health":true' not in etcd.on("node1", CTL + "etcdctl endpoint health --command-timeout=2s -w json 2>/dev/null", check=False):
        assert time.time() < until
        time.sleep(0.5)
    print("healthy %.1f s after the power cut of all" % (time.time() - began))
    for node in MANAGERS:
        wait_for(etcd, node)
    assert healthy(etcd)
    assert converge(etcd).must().changed() == {}


def test_no_second_cluster_when_the_first_node_is_new(etcd):
    """Without a controller: the first manager was installed anew while the others are down. Their data says that there is a cluster."""
    for node in MANAGERS:
        etcd.on(node, "systemctl stop etcd")
    etcd.on("node1", "rm -rf %s/*" % DATA)
    full = etcd.inventory(MANAGERS, (), "node1", **ONLY)
    run = etcd.play("site", full, extra={"etcd_join_wait": 5})
    assert "there is a cluster, its data is on node2, node3" in run.failed()["node1"]["msg"]
    for node in ("node2", "node3"):
        etcd.on(node, "systemctl start etcd --no-block")
    time.sleep(3)
    etcd.play("site", full).must()
    assert set(ids(etcd)) == set(MANAGERS)


def test_hostile_values_execute_nothing(etcd):
    evil = "{{ lookup('pipe','touch /tmp/etcd-pwned') }} $(touch /tmp/etcd-pwned) `touch /tmp/etcd-pwned`\n; touch /tmp/etcd-pwned"
    for name, value in (("etcd_extra_names", [evil]), ("etcd_address", evil), ("etcd_compaction_retention", evil), ("etcd_log_level", evil)):
        run = converge(etcd, node_vars={"node3": {name: value}})
        assert set(run.failed()) == {"node3"}, name
        assert not os.path.exists("/tmp/etcd-pwned") and etcd.on("node3", "ls /tmp/etcd-pwned", check=False).endswith("No such file or directory")
        converge(etcd).must()
    converge(etcd, clusterctl_cluster_name={"__ansible_unsafe": evil}).must()
    assert not os.path.exists("/tmp/etcd-pwned")
