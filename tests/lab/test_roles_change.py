"""Roles and availability on real nodes: what the product says is held against what swarm and etcd themselves say. In order: every test
builds on the one before."""

import json
import subprocess

import pytest

import product

MASTERS = ["node1", "node2", "node3"]


@pytest.fixture(scope="module", name="lab")
def five_nodes(tmp_path_factory):
    lab = product.Lab("rolechange", tmp_path_factory.mktemp("lab"))
    lab.run("down", check=False)
    lab.up(5)
    yield lab
    lab.run("down")


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    daemon = product.Product(lab, tmp_path_factory.mktemp("c"))
    daemon.start()
    daemon.cli("inventory", "import", lab.settings["LAB_INVENTORY"])
    yield daemon
    daemon.stop()


def swarm(lab, on):
    """Node -> (availability, what it is among the managers): `docker node ls` on one of them."""
    rows = lab.sh(on, "docker node ls --format '{{.Hostname}}|{{.Status}}|{{.Availability}}|{{.ManagerStatus}}'").splitlines()
    found = {}
    for name, status, availability, manager in (row.split("|") for row in rows):
        assert name not in found, "listed twice: %s" % rows
        found[name] = (availability if status == "Ready" else status, manager or "worker")
    return found


def managers(lab, on):
    found = {name: role for name, (_, role) in swarm(lab, on).items() if role != "worker"}
    assert sorted(found.values()).count("Leader") == 1, found
    return sorted(found)


def leader(lab, on):
    return next(name for name, (_, role) in swarm(lab, on).items() if role == "Leader")


def etcd(lab, on):
    """Name -> voter or learner: `etcdctl member list` on one of them; all of them have to answer."""
    text = lab.sh(on, "set -a; . /etc/etcd/etcdctl.env; etcdctl member list")
    rows = [line.split(", ") for line in text.splitlines()]
    health = lab.sh(on, "set -a; . /etc/etcd/etcdctl.env; etcdctl endpoint health --cluster 2>&1", check=False)
    assert health.count("is healthy") == len(rows), health
    return {row[2]: "learner" if row[5] == "true" else "voter" for row in rows}


def etcd_leader(lab, on):
    text = lab.sh(on, "set -a; . /etc/etcd/etcdctl.env; etcdctl endpoint status --cluster -w json")
    rows = [row["Status"] for row in json.loads(text)]
    wanted = rows[0]["leader"]
    listed = lab.sh(on, "set -a; . /etc/etcd/etcdctl.env; etcdctl member list").splitlines()
    return next(line.split(", ")[2] for line in listed if int(line.split(", ")[0], 16) == wanted)


def both_say(lab, on, names):
    assert managers(lab, on) == sorted(names)
    assert etcd(lab, on) == {name: "voter" for name in names}


def holders(lab, nodes):
    return [node for node in nodes if lab.vip in lab.sh(node, "ip -4 -o addr")]


def carries_no_manager_part(lab, node):
    units = lab.sh(node, "systemctl list-units --plain --no-legend 'etcd*' 'clusterctl-ucarp*' --state=active", check=False)
    data = lab.sh(node, "find /var/lib/etcd -mindepth 1 2>/dev/null | head -3", check=False)
    settings = lab.sh(node, "ls /etc/etcd/etcd.yml /etc/etcd/*.crt /etc/etcd/*.key 2>/dev/null", check=False)
    assert (units, data, settings) == ("", "", ""), "left on %s" % node
    return lab.vip not in lab.sh(node, "ip -4 -o addr")


def give_image(lab, *nodes):
    archive = subprocess.run(["tar", "-C", "/bin", "-c", "busybox"], check=True, capture_output=True).stdout
    for node in nodes:
        subprocess.run([product.ROOT / "scripts" / "lab", "exec", node, "docker", "import", "-", "box:1"], env=lab.env, input=archive, check=True,
                       capture_output=True)


def create(lab, on, name, *options):
    lab.sh(on, "docker service create --detach --no-resolve-image --endpoint-mode dnsrr --stop-grace-period 1s --name %s %s box:1 "
               "/busybox sleep 100000" % (name, " ".join(options)))


def tasks(lab, on, service, state="Running"):
    """Nodes of the service's tasks, one entry for each; state None: whatever became of them."""
    rows = lab.sh(on, "docker service ps --no-trunc --format '{{.Node}} {{.CurrentState}}' " + service).splitlines()
    return sorted(row.split()[0] for row in rows if state is None or row.split()[1] == state)


def manager_states(c):
    """Node -> Leader, Reachable or Unreachable: what the product shows."""
    lines = c.cli("manager", "ls", "--refresh").stdout.splitlines()[1:]
    return {line.split()[0]: line.split()[1] for line in lines}


def applied(c, node):
    return c.node(node)["status"]["applied"]


# ---- the fast tier ------------------------------------------------------------------------------


def test_manager_only_leaves_no_window(lab, c):
    c.do("commission", ["node1"])
    give_image(lab, "node1")
    create(lab, "node1", "everywhere", "--mode global")
    c.until(lambda: tasks(lab, "node1", "everywhere") == ["node1"], 60, "the task that every node gets")
    out = c.cli("node", "commission", "node2", "node3", "node4", "--availability=drain")
    assert "succeeded" in out.stdout
    assert tasks(lab, "node1", "everywhere", None) == ["node1"], "a global service leaves a task on each node that ever took one"
    assert {n: a for n, (a, _) in swarm(lab, "node1").items()} == {"node1": "Active", "node2": "Drain", "node3": "Drain", "node4": "Drain"}
    both_say(lab, "node1", MASTERS)
    for node in ("node2", "node3", "node4"):
        assert lab.sh(node, "docker ps -aq") == ""
        assert applied(c, node)["availability"] == "drain" and c.lifecycle(node) == "Allocated"


def test_promote_a_worker(lab, c):
    c.cli("node", "activate", "node4")
    give_image(lab, "node4")
    create(lab, "node1", "web", "--constraint node.hostname==node4")
    c.until(lambda: tasks(lab, "node1", "web") == ["node4"], 60, "a task on node4")
    container = lab.sh("node4", "docker ps -q --filter name=web")
    out = c.cli("node", "promote", "node4")
    assert "succeeded" in out.stdout
    both_say(lab, "node1", MASTERS + ["node4"])
    both_say(lab, "node4", MASTERS + ["node4"])
    assert lab.sh("node4", "docker ps -q --filter name=web") == container, "what ran goes on"
    assert applied(c, "node4")["host_group"] == "service-master" and c.node("node4")["spec"]["host_group"] == "service-master"
    assert c.lifecycle("node4") == "Allocated" and not c.conditions("node4")
    assert len(holders(lab, MASTERS + ["node4"])) == 1
    c.do("verify", ["node4"])


def test_demote_the_leader_of_both(lab, c):
    one = leader(lab, "node1")
    lab.sh(one, "set -a; . /etc/etcd/etcdctl.env; etcdctl move-leader --endpoints=$(etcdctl endpoint status --cluster -w json | "
                "python3 -c 'import json,sys; r=json.load(sys.stdin); print(next(x[\"Endpoint\"] for x in r if x[\"Status\"][\"header\"]"
                "[\"member_id\"]==x[\"Status\"][\"leader\"]))') $(etcdctl member list | grep -w %s | cut -d, -f1)" % one, check=False)
    assert etcd_leader(lab, one) == one
    rest = sorted(set(MASTERS + ["node4"]) - {one})
    running = lab.sh(one, "docker ps -q")
    out = c.cli("node", "demote", one, "--yes")
    assert "succeeded" in out.stdout
    both_say(lab, rest[0], rest)
    assert swarm(lab, rest[0])[one][1] == "worker", "it stays in the swarm"
    assert lab.sh(one, "docker ps -q") == running, "what ran goes on"
    assert carries_no_manager_part(lab, one)
    assert len(holders(lab, rest)) == 1, "the address is with somebody who carries the service behind it"
    assert applied(c, one)["host_group"] == "service-worker" and c.lifecycle(one) == "Allocated" and not c.conditions(one)
    c.do("verify", [one])
    c.cli("node", "promote", one)
    both_say(lab, one, MASTERS + ["node4"])
    c.cli("node", "demote", "node4", "--yes")
    both_say(lab, "node1", MASTERS)
    assert carries_no_manager_part(lab, "node4") and tasks(lab, "node1", "web") == ["node4"]


# ---- only with --full ---------------------------------------------------------------------------


@pytest.mark.full
def test_a_promotion_that_fails_is_put_back(lab, c):
    """ucarp comes last, when swarm and etcd have made the node a manager already."""
    job = c.do("promote", ["node4"], state="failed", vars={"ucarp_secret": "x" * 40})
    assert [n["cleanup"] for n in job["nodes"]] == ["put back"], c.explain(job)
    both_say(lab, "node1", MASTERS)
    assert swarm(lab, "node1")["node4"] == ("Active", "worker") and carries_no_manager_part(lab, "node4")
    assert c.lifecycle("node4") == "Maintenance" and c.conditions("node4") == {"Failed"}
    assert c.node("node4")["spec"]["host_group"] == "service-worker" and applied(c, "node4")["host_group"] == "service-worker"
    assert tasks(lab, "node1", "web") == ["node4"]
    c.do("update", ["node4"], drain="never")  # web may run nowhere else: a drain would wait for its deadline
    assert c.lifecycle("node4") == "Allocated" and not c.conditions("node4")


@pytest.mark.full
def test_drain_and_pause_a_manager_and_a_worker(lab, c):
    c.cli("node", "activate", "node2")
    c.cli("node", "drain", "node1")
    assert swarm(lab, "node1")["node1"][0] == "Drain" and lab.sh("node1", "docker ps -q") == ""
    both_say(lab, "node1", MASTERS)
    c.cli("node", "activate", "node1")
    lab.sh("node1", "docker service rm web")
    give_image(lab, "node2")
    create(lab, "node1", "work", "--replicas 1", "--constraint node.hostname==node4")
    c.until(lambda: tasks(lab, "node1", "work") == ["node4"], 60, "work on node4")
    out = c.cli("node", "pause", "node4")
    assert "clusterctl node activate node4" in out.stdout + out.stderr
    assert swarm(lab, "node1")["node4"][0] == "Pause" and applied(c, "node4")["availability"] == "pause"
    both_say(lab, "node1", MASTERS)
    lab.sh("node1", "docker service update --detach --constraint-rm node.hostname==node4 --replicas 3 work")
    c.until(lambda: tasks(lab, "node1", "work").count("node4") <= 1 and len(tasks(lab, "node1", "work")) == 3, 90, "three replicas")
    assert tasks(lab, "node1", "work").count("node4") <= 1, "no new work"
    c.do("verify", ["node4"])
    c.cli("node", "activate", "node4")
    lab.sh("node1", "docker service rm work")


@pytest.mark.full
def test_a_live_manager_is_replaced_after_the_new_one_is_verified(lab, c):
    c.cli("node", "label", "node3", "tier=gold", "rack=r1")
    c.cli("node", "label", "node5", "rack=r2")
    out = c.cli("node", "replace", "node3", "--with", "node5", "--yes")
    assert "succeeded" in out.stdout
    both_say(lab, "node1", ["node1", "node2", "node5"])
    assert "node3" not in swarm(lab, "node1")
    assert product.leftovers(lab, "node3") == {}
    assert c.lifecycle("node3") == "Decommissioned" and c.lifecycle("node5") == "Allocated"
    assert c.node("node5")["spec"]["labels"] == {"tier": "gold", "rack": "r2"}
    assert applied(c, "node5")["availability"] == "drain", "node3 was drained"
    order = [s["name"] for s in c.job()["stages"]]
    assert order.index("verify") < order.index("cleanup"), order


@pytest.mark.full
def test_a_dead_manager_is_replaced(lab, c):
    lab.run("kill", "node2")
    c.wait(c.submit("verify", ["node2"]))
    refused = c.cli("node", "replace", "node2", "--with", "node3", "--yes", code=65)
    assert "--i-have-powered-it-off" in refused.stderr
    out = c.cli("node", "replace", "node2", "--with", "node3", "--force", "--i-have-powered-it-off", "--yes")
    assert "succeeded" in out.stdout
    both_say(lab, "node1", ["node1", "node3", "node5"])
    assert "node2" not in swarm(lab, "node1"), "forgotten by the swarm"
    assert c.lifecycle("node2") == "Decommissioned" and c.conditions("node2") == {"NotCleaned", "Replaced"}
    calls = [s["nodes"] for s in c.job()["stages"]]
    assert not any("node2" in nodes for nodes in calls), "nobody went there"


@pytest.mark.full
def test_a_removed_node_that_comes_back_is_known_and_cleaned_first(lab, c):
    c.cli("node", "rm", "node2")
    lab.run("start", "node2")
    assert managers(lab, "node1") == ["node1", "node3", "node5"]
    c.cli("node", "add", "again", "--addr", lab.address("node2"), "--ssh-user", lab.settings["LAB_SSH_USER"])
    assert c.conditions("again") == {"NotCleaned"}
    job = c.do("commission", ["again"], host_group="service-worker")
    assert [s["name"] for s in job["stages"]][0] == "cleanup"
    both_say(lab, "node1", ["node1", "node3", "node5"])
    assert c.lifecycle("again") == "Allocated" and not c.conditions("again")


@pytest.mark.full
def test_a_manager_and_a_worker_that_were_away_are_verified_before_they_are_trusted(lab, c):
    away = ["node3", "node4"]
    for node in away:
        lab.run("kill", node)
    c.until(lambda: all(c.node(n)["status"]["presence"] == "Disappeared" for n in away), 180, "the prober to miss them")
    c.until(lambda: [swarm(lab, "node1")[n][0] for n in away] == ["Down", "Down"], 60, "the swarm to miss them")
    assert manager_states(c)["node3"] == "Unreachable"
    for node in away:
        lab.run("start", node)
    c.until(lambda: all(c.node(n)["status"]["presence"] == "Discovered" for n in away), 120, "the prober to see them again")
    assert [c.conditions(n) for n in away] == [{"NeedsVerification"}] * 2
    c.cli("node", "verify", *away)
    assert [c.conditions(n) for n in away] == [set()] * 2
    both_say(lab, "node1", ["node1", "node3", "node5"])
    assert swarm(lab, "node1")["node4"] == ("Active", "worker")
    assert manager_states(c)["node3"] in ("Leader", "Reachable")
    assert len(holders(lab, ["node1", "node3", "node5"])) == 1


@pytest.mark.full
def test_remove(lab, c):
    refused = c.cli("node", "rm", "node4", code=65)
    assert "decommission" in refused.stderr
    c.cli("node", "decommission", "node4", "--yes")
    assert "node4" not in swarm(lab, "node1") and product.leftovers(lab, "node4") == {}
    both_say(lab, "node1", ["node1", "node3", "node5"])
    c.cli("node", "rm", "node4")
    assert "node4" not in c.cli("node", "ls", "-q").stdout.split()
