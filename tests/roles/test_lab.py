"""The roles on real nodes: commission, repeat, break, repair, take away. Needs scripts/lab; about a quarter of an hour.

Tests stand in the order in which they use the cluster. Each leaves it healthy, or says so.
"""

import json
import os
import tempfile
import time

import pytest

CYCLES = int(os.environ.get("CLUSTERCTL_TEST_CYCLES", "1"))
LIMIT = 45

pytestmark = pytest.mark.lab


def healthy(lab):
    found = lab.play("verify", lab.inventory(lab.everyone()))
    assert found.unhealthy() == {} and found.code == 0, (found.unhealthy(), found.output[-3000:])
    return found


def swarm_names(lab, through="node1"):
    return sorted(lab.on(through, "docker node ls --format '{{.Hostname}}'").split())


# ---- commission -------------------------------------------------------------------------------

def test_commission(cluster):
    check, site, verify = [run.must() for run in cluster.first]
    assert set(verify.stats) == set(cluster.everyone())
    assert set(check.facts("clusterctl_hardware")) == set(check.facts("clusterctl_problems")) == set(cluster.everyone())
    runs = {name: sum(run.module_runs()[name] for run in cluster.first) for name in cluster.everyone()}
    print("module runs per node:", runs)
    assert max(runs.values()) <= LIMIT
    assert swarm_names(cluster) == sorted(cluster.everyone())
    assert verify.unhealthy() == {}
    for node in cluster.everyone():
        assert cluster.on(node, "cat /etc/hostname; hostname").split() == [node, node]


def test_managers_join_one_after_another_and_the_initiator_first(cluster):
    """By the events: no task of a manager's turn before the turn of the one before it has ended."""
    site = cluster.first[1]
    turns = [r["host"] for r in site.results if r["service"] == "swarm" and cluster.role_of(r["host"]) == "manager"]
    order = list(dict.fromkeys(turns))
    assert order == ["node1", "node2", "node3"] and turns == sorted(turns, key=order.index)


def test_facts_are_complete(cluster):
    verify = cluster.first[2]
    for host in cluster.everyone():
        fact = verify.facts("clusterctl_service_swarm")[host]
        assert fact["v"] == 1 and fact["member_id"] and fact["version"]
    members = verify.facts("clusterctl_service_swarm")["node1"]["members"]
    assert sorted(m["name"] for m in members) == sorted(cluster.everyone()) and sum(m["leader"] for m in members) == 1


def test_second_converge_changes_nothing(cluster):
    again = cluster.converge().must()
    assert again.changed() == {}


def test_the_static_inventory_gives_the_same(cluster):
    """Without a controller: ansible-playbook, two inventories, nothing else. It must find everything as it should be, but for the name of
    the cluster, which is `default` there; it is given here."""
    extra = {"clusterctl_cluster_name": "lab", "clusterctl_pki_dir": cluster.inventory([])["all"]["vars"]["clusterctl_pki_dir"]}
    assert cluster.play("site", extra=extra).must().changed() == {}
    assert cluster.play("verify", extra=extra).must().unhealthy() == {}


def test_observe_and_show_do_not_fail_for_a_host_that_is_away(cluster):
    cluster.lab("pause", "node3")
    try:
        seen = cluster.play("observe", cluster.inventory(["node2"], ["node1", "node3"]), fresh_environment={"ANSIBLE_TIMEOUT": "5", "ANSIBLE_SSH_RETRIES": "0", "ANSIBLE_SSH_CONTROL_PATH_DIR": tempfile.mkdtemp()})
    finally:
        cluster.lab("unpause", "node3")
    assert seen.code == 0 and seen.stats
    facts = seen.facts("clusterctl_service_swarm")
    assert set(facts) == {"node1", "node2"}
    assert [m["reachable"] for m in facts["node1"]["members"] if m["name"] == "node3"] in ([False], [True])
    assert {r["host"] for r in seen.results if r["status"] == "unreachable"} == {"node3"}
    time.sleep(5)


# ---- negative controls ------------------------------------------------------------------------

# node -> (what is done to it, the services whose verify door must see it with a word of the message, the services that repair it)
BROKEN = {
    "stopped and edited": {
        "node1": ("sed -i 's/ node1$/ nodeX/' /etc/hosts || { sed 's/ node1$/ nodeX/' /etc/hosts >/tmp/h; cat /tmp/h >/etc/hosts; }", {"base": "block hosts"}, {"base"}),
        "node2": ("systemctl stop docker.socket docker.service", {"docker": "started docker", "swarm": "does not answer"}, {"docker"}),
        "node3": ("echo '{}' > /etc/docker/daemon.json", {"docker": "daemon.json"}, {"docker"}),
        "node4": ("docker swarm leave", {"swarm": "not in a swarm"}, {"swarm"}),
    },
    "renamed, disabled, drained, left": {
        "node1": ("hostname somebody-else", {"base": "somebody-else"}, {"base"}),
        "node2": ("docker swarm leave --force", {"swarm": "not in a swarm"}, {"swarm"}),
        "node3": ("systemctl disable docker.service", {"docker": "enabled docker"}, {"docker"}),
        "node4": ("@node1 docker node update --availability drain node4", {"swarm": "drain"}, {"swarm"}),
    },
    "demoted, thrown out": {
        "node3": ("@node1 docker node demote node3", {"swarm": "worker"}, {"swarm"}),
        "node4": ("@node1 docker node rm --force node4", {"swarm": ""}, {"swarm"}),
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_seen_and_repaired_and_nothing_else(cluster, name):
    cases = BROKEN[name]
    for node, (script, _seen, _repaired) in cases.items():
        where, script = script[1:].split(" ", 1) if script.startswith("@") else (node, script)
        cluster.on(where, script)
    time.sleep(2)
    found = cluster.play("verify", cluster.inventory(cluster.everyone()))
    assert found.code != 0
    unhealthy = found.unhealthy()
    for node, (_script, seen, _repaired) in cases.items():
        reported = {service: text for service, text in unhealthy.get(node, {}).items() if service in ("base", "docker", "swarm")}
        assert set(reported) == set(seen), (node, unhealthy)
        for service, word in seen.items():
            assert word in reported[service]
    repaired = cluster.converge().must()
    expected = {node: services for node, (_script, _seen, services) in cases.items()}
    assert repaired.changed_services() == expected, repaired.changed()
    healthy(cluster)
    assert swarm_names(cluster) == sorted(cluster.everyone())


def test_a_restart_that_is_due_is_not_forgotten(cluster):
    """The engine runs with another file than the one on disk; the file is right again, so nothing has to be written."""
    cluster.on("node4", "cp -p /etc/docker/daemon.json /tmp/d; echo '{\"debug\": true}' >/etc/docker/daemon.json; systemctl restart docker; sleep 1; cat /tmp/d >/etc/docker/daemon.json")
    assert cluster.converge().must().changed() == {"node4": {("docker", "Configure and run the engine")}}
    # Written, and then the run died before the restart: the record is gone.
    cluster.on("node4", "rm /var/lib/clusterctl-node/units/docker.service.json")
    assert cluster.converge().must().changed() == {"node4": {("docker", "Configure and run the engine")}}
    assert cluster.converge().must().changed() == {}


def test_a_proxy_reaches_the_engine_and_goes_again(cluster):
    def environment():
        return cluster.on("node4", "docker info --format '{{.HTTPProxy}}|{{.NoProxy}}'")

    def site(env):
        return cluster.play("site", cluster.inventory(["node4"], ["node1", "node2", "node3"], node_vars={"node4": {"env": env}} if env else None)).must()

    assert site({"http_proxy": "http://192.0.2.1:3128", "no_proxy": "intranet"}).changed_services() == {"node4": {"docker"}}
    proxy, excluded = environment().split("|")
    assert proxy == "http://192.0.2.1:3128"
    assert {"intranet", "localhost", cluster.settings["LAB_SUBNET"], "node1", "node4"} <= set(excluded.split(","))
    site({"http_proxy": "http://192.0.2.2:3128"})
    assert environment().startswith("http://192.0.2.2:3128|")
    assert site(None).changed_services() == {"node4": {"docker"}}
    assert environment() == "|"


def test_variables_execute_nothing(cluster, tmp_path):
    evil = "{{ lookup('pipe', 'touch %s/pwned') }}$(touch /tmp/pwned)`touch /tmp/pwned`\n;touch /tmp/pwned" % tmp_path
    values = {"env": {"http_proxy": evil, "no_proxy": evil}, "docker_daemon_options": {"labels": [evil]}, "note": evil}
    run = cluster.play("site", cluster.inventory(["node4"], ["node1"], node_vars={"node4": values}))
    assert run.stats
    assert not (tmp_path / "pwned").exists() and not os.path.exists("/tmp/pwned")
    for node in cluster.everyone():
        assert cluster.on(node, "ls /tmp/pwned 2>/dev/null || true") == ""
    cluster.converge().must()
    healthy(cluster)


def test_check_finds_what_is_wrong_and_changes_nothing(cluster):
    run = cluster.play("check", cluster.inventory(["node4"], ["node1"], node_vars={"node4": {"control_interface": "nope0", "base_min_free_mb": 10 ** 9}}))
    problems = run.facts("clusterctl_problems")["node4"]
    assert {p["code"] for p in problems} == {"no_control_interface", "disk_full"} and run.code != 0
    assert "nope0" in run.failed()["node4"]["msg"] and run.changed() == {}


def test_power_fails_everywhere_at_once(cluster):
    for node in cluster.everyone():
        cluster.lab("kill", node)
    for node in cluster.everyone():
        cluster.lab("start", node)
    until = time.time() + 120
    while time.time() < until:
        if cluster.on("node1", "docker node ls --format '{{.Status}}' 2>/dev/null || true").count("Ready") == 4:
            break
        time.sleep(2)
    healthy(cluster)
    assert cluster.converge().must().changed() == {}


# ---- taking away ------------------------------------------------------------------------------

def leftovers(lab, node):
    """Everything the level `state` promises to remove, looked for one by one."""
    script = """
    for u in docker.service docker.socket containerd.service; do systemctl is-active -q $u && echo active $u; systemctl is-enabled -q $u && echo enabled $u; done
    systemctl --failed --no-legend --plain | sed 's/^/failed /'
    ps -e -o comm= | grep -E '^(dockerd|containerd)' | sed 's/^/process /'
    for p in /etc/docker/daemon.json /etc/systemd/system/docker.service.d /var/lib/docker/swarm /var/lib/docker/containers /var/lib/docker/volumes \
      /var/lib/docker/network /var/lib/clusterctl-node/units /var/lib/clusterctl-node/services/docker; do [ -e $p ] && echo path $p; done
    ip -br link | awk '{print $1}' | grep -E 'docker|veth|vxlan|gwbridge' | sed 's/^/link /'
    iptables -S; iptables -t nat -S
    """
    found = [line for line in lab.on(node, script, check=False).splitlines()]
    found = [line for line in found if not line.startswith("-") or "docker0" in line or " DOCKER" in line and "DOCKER_" not in line]
    if "clusterctl hosts" in lab.on(node, "cat /etc/hosts"):
        found.append("block in /etc/hosts")
    return found


def decommission(lab, nodes, level="state"):
    peers = [name for name in lab.everyone() if name not in nodes and lab.role_of(name) == "manager"]
    return lab.play("cleanup", lab.inventory(nodes, peers, clusterctl_leaving=list(nodes), clusterctl_cleanup_level=level))


@pytest.mark.parametrize("cycle", range(CYCLES))
@pytest.mark.parametrize("node", ["node4", "node3"])
def test_decommission_and_back(cluster, node, cycle):
    others = [name for name in cluster.everyone() if name != node]
    through = "node1"
    cluster.on(node, "docker volume create keep && docker network create net1")
    decommission(cluster, [node]).must()
    assert leftovers(cluster, node) == []
    assert swarm_names(cluster, through) == sorted(others)
    assert decommission(cluster, [node]).must().changed() == {}
    for run in cluster.commission([node], [n for n in others if cluster.role_of(n) == "manager"]):
        run.must()
    assert swarm_names(cluster, through) == sorted(cluster.everyone())


def test_a_lost_worker_is_forgotten_and_can_come_back(cluster):
    identity = cluster.on("node1", "docker node inspect -f '{{.ID}}' node4")
    cluster.lab("kill", "node4")
    lost = [{"name": "node4", "addr": cluster.hosts["node4"]["ansible_host"], "ids": {"swarm": identity}}]
    inventory = cluster.inventory(["node1"], ["node2", "node3"], clusterctl_lost=lost)
    inventory["all"]["vars"]["clusterctl_peer"] = "node2"
    cluster.play("forget", inventory).must()
    assert swarm_names(cluster) == ["node1", "node2", "node3"]
    assert cluster.play("forget", inventory).must().changed() == {}
    cluster.lab("start", "node4")
    time.sleep(3)
    decommission(cluster, ["node4"]).must()
    assert leftovers(cluster, "node4") == []
    for run in cluster.commission(["node4"], ["node1", "node2", "node3"]):
        run.must()


def test_everything_goes_and_again_and_again(cluster):
    everyone = cluster.everyone()
    inventory = cluster.inventory(everyone, clusterctl_leaving=everyone)
    cluster.play("cleanup", inventory).must()
    for node in everyone:
        assert leftovers(cluster, node) == [], node
    for _turn in range(2):
        assert cluster.play("cleanup", inventory).must().changed() == {}


def test_when_the_first_manager_fails_nothing_else_is_attempted(cluster):
    """The port of its swarm is taken, so it cannot make one. Afterwards everything can be commissioned without a manual step."""
    cluster.on("node1", "systemd-run --unit=squatter python3 -m http.server 2377")
    time.sleep(1)
    check, site, _verify = cluster.commission()
    assert "port_taken" in json.dumps(check.facts("clusterctl_problems")["node1"])
    failed = site.failed()
    assert failed["node1"]["service"] == "swarm" and "address already in use" in failed["node1"]["msg"]
    assert set(failed) == set(cluster.everyone())
    for node in ("node2", "node3", "node4"):
        assert failed[node]["task"] == "Not attempted" and "first manager node1 failed" in failed[node]["msg"]
        assert cluster.on(node, "docker info -f '{{.Swarm.LocalNodeState}}'") == "inactive"
    cluster.on("node1", "systemctl stop squatter")
    cluster.play("cleanup", cluster.inventory(cluster.everyone(), clusterctl_leaving=cluster.everyone())).must()
    for run in cluster.commission():
        run.must()
