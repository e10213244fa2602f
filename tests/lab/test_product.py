"""One cluster's life on real nodes, in order: every test builds on the one before. The fast tier's lab suite."""

import re

import pytest

import product

MASTERS = ["node1", "node2", "node3"]
ALL = MASTERS + ["node4"]


lab = product.running_lab("product")


@pytest.fixture(scope="module", name="c")
def running_daemon(lab, tmp_path_factory):
    directory = tmp_path_factory.mktemp("c")
    daemon = product.Product(lab, directory, product.playbooks_with(directory / "ansible", "noise", "fragile"))
    daemon.start()
    yield daemon
    daemon.stop()


def playbook_process(run):
    """Start time and pid of this run's ansible-playbook on the controller: of its processes the one that was there first."""
    found = []
    for path in product.pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_text().replace("\0", " ")
            if "ansible-playbook" in text and run in text:
                stat = (path.parent / "stat").read_text()
                found.append((int(stat.rsplit(")", 1)[1].split()[19]), int(path.parent.name)))
        except OSError:
            continue
    return min(found, default=None)


def swarm_nodes(lab, on="node1"):
    return dict(line.split() for line in lab.sh(on, "docker node ls --format '{{.Hostname}} {{.Status}}'").splitlines())


def etcd_members(lab, on="node1"):
    text = lab.sh(on, "set -a; . /etc/etcd/etcdctl.env; etcdctl member list")
    return sorted(line.split(", ")[2] for line in text.splitlines())


def test_inventory_becomes_node_records(lab, c):
    out = c.cli("inventory", "import", lab.settings["LAB_INVENTORY"]).stdout
    assert "node4" in out
    listed = c.cli("node", "ls", "-o", "name").stdout.split()
    assert listed == ALL
    assert c.rest("GET", "/v1/globals")["vars"]["service_vip"] == lab.vip


@pytest.mark.full
def test_a_failing_first_master_stops_everything(lab, c):
    c.rest("PATCH", "/v1/globals", {"vars": {"noise_chunks": 0}}, status=200)
    c.rest("PATCH", "/v1/nodes/node1", {"spec": {"vars": {"fragile_fails": True}}}, status=200)
    job = c.do("commission", ALL, state="failed")
    assert all(word in job["error"] for word in ("node1", "fragile", "told to break")), job["error"]
    begun = {event["service"] for event in c.events(job["id"])
             if event.get("stage") == "site" and event["event"] == "result" and event["host"] != "node1"}
    assert not begun & {"etcd", "ucarp", "swarm", "fragile"}, "no other node has come to a service of the cluster"
    for node in ALL:
        assert c.lifecycle(node) == "Unallocated"
        assert product.leftovers(lab, node) == {}
    c.rest("PATCH", "/v1/nodes/node1", {"spec": {"vars": {"fragile_fails": False}}}, status=200)


def test_commission_survives_two_kills_of_the_daemon(lab, c):
    c.rest("PATCH", "/v1/globals", {"vars": {"noise_chunks": 0}}, status=200)
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"noise_chunks": 10}}}, status=200)
    job = c.submit("commission", ALL)
    site = c.until(lambda: next((s for s in c.job(job)["stages"] if s["name"] == "site" and s["run"]), None), 300)
    first = c.until(lambda: playbook_process(site["run"]), 60)
    for marker in ("TASK [docker", "node4 line 2"):
        c.until(lambda m=marker: m in c.rest("GET", f"/v1/jobs/{job}/log"), 600, marker)
        c.kill()
        assert playbook_process(site["run"]) == first, "the run goes on without the daemon"
        c.start()
        assert playbook_process(site["run"]) == first, "and it is the same process"
    result = c.wait(job)
    assert result["state"] == "succeeded", c.explain(result)
    log = c.rest("GET", f"/v1/jobs/{job}/log")
    numbers = [int(n) for n in re.findall(r"node4 line (\d+)", log)]
    assert numbers == list(range(1, 10001)), "no gap and no repeat"
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"noise_chunks": 0}}}, status=200)


def test_the_cluster_is_real(lab, c):
    rows = [line.split() for line in c.cli("node", "ls").stdout.splitlines()[1:]]
    assert [row[1] for row in rows] == ALL
    assert all("Allocated" in row for row in rows)
    assert swarm_nodes(lab, "node2") == {name: "Ready" for name in ALL}
    leaders = lab.sh("node3", "docker node ls --format '{{.Hostname}} {{.ManagerStatus}}'").splitlines()
    assert sum(line.endswith("Leader") for line in leaders) == 1
    assert sum(bool(line.split()[1:]) for line in leaders) == 3
    assert etcd_members(lab) == MASTERS
    health = lab.sh("node1", "set -a; . /etc/etcd/etcdctl.env; etcdctl endpoint health --cluster 2>&1")
    assert health.count("is healthy") == 3 and "https://" in health
    holders = [node for node in MASTERS if lab.vip in lab.sh(node, "ip -4 -o addr")]
    assert len(holders) == 1
    status = c.rest("GET", "/v1/status")
    assert status["vip"]["holders"] == holders
    assert status["services"]["etcd"]["members"] == 3 and status["services"]["etcd"]["tolerates"] == 1


def test_second_converge_changes_nothing(lab, c):
    # A commissioned node cannot be commissioned again; the playbook itself converges, as plain Ansible runs it.
    before = plain_converge(lab, c)
    assert before == {}, before


@pytest.mark.parametrize("damage,service", [
    ("systemctl stop etcd", "etcd"),
    ("systemctl stop docker docker.socket", "docker"),
    ("echo '# edited' >> /etc/etcd/etcd.yml", "etcd"),
    ("echo '{}' > /etc/docker/daemon.json", "docker"),
])
def test_exactly_the_damaged_service_is_repaired(lab, c, damage, service):
    lab.sh("node3", damage)
    changed = plain_converge(lab, c)
    assert changed == {"node3": {service}}
    assert c.do("verify", ["node3"])


def plain_converge(lab, c):
    """site.yml by plain ansible-playbook with the inventory that the controller gives; the changes it reported."""
    directory = c.directory / "plain"
    directory.mkdir(exist_ok=True)
    (directory / "events.jsonl").unlink(missing_ok=True)
    inventory = directory / "inventory"
    inventory.write_text(f"#!/bin/sh\nexec {product.BINARY} inventory \"$@\"\n")
    inventory.chmod(0o755)
    env = dict(product.os.environ, CLUSTERCTL_SERVER=f"unix:{c.socket}", CLUSTERCTL_RUN_DIR=str(directory),
               ANSIBLE_CONFIG=str(c.directory / "ansible" / "ansible.cfg"), LANG="C.UTF-8",
               ANSIBLE_PRIVATE_KEY_FILE=lab.settings["LAB_SSH_KEY"], ANSIBLE_REMOTE_USER=lab.settings["LAB_SSH_USER"],
               ANSIBLE_SSH_COMMON_ARGS=lab.settings["ANSIBLE_SSH_COMMON_ARGS"])
    result = product.subprocess.run(
        ["ansible-playbook", "-i", inventory, c.directory / "ansible" / "playbooks" / "site.yml",
         "-e", f"clusterctl_pki_dir={c.state}/pki"],
        env=env, text=True, capture_output=True, timeout=900)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    changed = {}
    for line in (directory / "events.jsonl").read_text().splitlines():
        event = product.json.loads(line)
        if event["event"] == "result" and event["changed"]:
            changed.setdefault(event["host"], set()).add(event["service"])
    return changed


def test_worker_leaves_and_comes_back(lab, c):
    c.do("decommission", ["node4"])
    assert c.lifecycle("node4") == "Decommissioned"
    assert product.leftovers(lab, "node4") == {}
    assert sorted(swarm_nodes(lab)) == MASTERS
    c.do("commission", ["node4"])
    assert swarm_nodes(lab)["node4"] == "Ready"


def test_master_leaves_and_comes_back(lab, c):
    c.do("decommission", ["node3"])
    assert product.leftovers(lab, "node3") == {}
    assert etcd_members(lab) == ["node1", "node2"]
    assert sorted(swarm_nodes(lab)) == ["node1", "node2", "node4"]
    c.do("commission", ["node3"])
    assert etcd_members(lab) == MASTERS
    assert swarm_nodes(lab)["node3"] == "Ready"


def test_a_failing_node_is_cleaned_and_says_why(lab, c):
    c.do("decommission", ["node4"])
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"fragile_fails": True}}}, status=200)
    job = c.do("commission", ["node4"], state="failed")
    line = c.cli("job", "inspect", job["id"]).stdout
    cause = [row for row in line.splitlines() if "told to break" in row]
    assert cause and all(word in cause[0] for word in ("node4", "fragile")), line
    assert c.lifecycle("node4") == "Unallocated"
    assert product.leftovers(lab, "node4") == {}
    assert sorted(swarm_nodes(lab)) == MASTERS
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"fragile_fails": False}}}, status=200)
    c.do("commission", ["node4"], host_group="service-worker")
    assert c.lifecycle("node4") == "Allocated"


def test_a_removal_that_would_lose_quorum_is_refused(lab, c):
    lab.run("kill", "node2")
    job = c.wait(c.submit("decommission", ["node3"]))
    assert (job["state"], job["reason"]) == ("failed", "quorum_lost"), c.explain(job)
    assert c.lifecycle("node3") == "Allocated"
    problem = c.rest("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["node3"]}, status=409)
    assert "node2" in str(problem) and "etcd" in str(problem)
    lab.run("start", "node2")
    c.until(lambda: etcd_healthy(lab), 90)
    assert etcd_members(lab) == MASTERS
    assert "clusterctl node verify node2" in problem["hint"]
    c.do("verify", ["node2"])


def etcd_healthy(lab):
    text = lab.sh("node1", "set -a; . /etc/etcd/etcdctl.env; etcdctl endpoint health --cluster 2>&1", check=False)
    return text.count("is healthy") == 3


def test_power_cut_of_the_controller(lab, c):
    c.do("decommission", ["node4"])
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"noise_chunks": 60}}}, status=200)
    job = c.submit("commission", ["node4"])
    c.until(lambda: "node4 line 1" in c.rest("GET", f"/v1/jobs/{job}/log"), 300)
    run = next(s["run"] for s in c.job(job)["stages"] if s["name"] == "site")
    c.kill()
    for pid in product.processes_with(run):
        product.os.kill(pid, 9)
    c.until(lambda: not product.processes_with(run), 10)
    c.start()
    result = c.wait(job)
    assert (result["state"], result["reason"]) == ("interrupted", "interrupted"), c.explain(result)
    assert c.lifecycle("node4") == "Unallocated" and "Interrupted" in c.conditions("node4")
    assert sum(event["event"] == "start" for event in c.events(job) if event["run"] == run) == 1, "nothing ran twice"
    c.rest("PATCH", "/v1/nodes/node4", {"spec": {"vars": {"noise_chunks": 0}}}, status=200)
    c.do("commission", ["node4"], host_group="service-worker")
    assert c.conditions("node4") == set()


def vip_holders(lab, nodes=MASTERS):
    return [node for node in nodes if lab.vip in lab.sh(node, "ip -4 -o addr", check=False)]


@pytest.mark.full
def test_the_address_moves_when_its_holder_dies(lab, c):
    holder, = vip_holders(lab)
    others = [node for node in MASTERS if node != holder]
    lab.run("kill", holder)
    start = product.time.monotonic()
    c.until(lambda: vip_holders(lab, others), 10, "another holder within 10 s")
    print(f"holder killed: handed over in {product.time.monotonic() - start:.1f} s")
    lab.run("start", holder)
    c.until(lambda: etcd_healthy(lab), 120)
    c.until(lambda: len(vip_holders(lab)) == 1, 60)


@pytest.mark.full
def test_one_holder_again_after_a_pause(lab, c):
    holder, = vip_holders(lab)
    others = [node for node in MASTERS if node != holder]
    lab.run("pause", holder)
    c.until(lambda: vip_holders(lab, others), 30)
    lab.run("unpause", holder)
    start = product.time.monotonic()
    c.until(lambda: len(vip_holders(lab)) == 1, 30, "one holder again")
    print(f"holder unpaused: one holder again in {product.time.monotonic() - start:.1f} s")
    c.until(lambda: etcd_healthy(lab), 120)


@pytest.mark.full
def test_the_address_leaves_a_node_whose_service_is_dead(lab, c):
    holder, = vip_holders(lab)
    lab.sh(holder, "systemctl stop docker docker.socket etcd")
    start = product.time.monotonic()
    c.until(lambda: vip_holders(lab) not in ([], [holder]), 60, "handed over")
    print(f"service dead: handed over in {product.time.monotonic() - start:.1f} s")
    lab.sh(holder, "systemctl start etcd docker")
    c.until(lambda: etcd_healthy(lab), 120)
    c.until(lambda: len(vip_holders(lab)) == 1, 60)


@pytest.mark.full
def test_a_dead_master_is_removed_through_a_survivor(lab, c):
    lab.run("kill", "node3")
    c.do("decommission", ["node3"], state="failed")
    assert "node3" in etcd_members(lab), "a machine that does not answer is not removed by itself"
    refused = c.rest("POST", "/v1/jobs", {"kind": "decommission", "nodes": ["node3"], "force": True}, status=409)
    assert "powered" in str(refused)
    c.do("decommission", ["node3"], force=True, powered_off=True)
    assert c.lifecycle("node3") == "Decommissioned" and "NotCleaned" in c.conditions("node3")
    assert etcd_members(lab) == ["node1", "node2"]
    assert "node3" not in swarm_nodes(lab)
    lab.run("start", "node3")
    c.do("commission", ["node3"], host_group="service-master")
    assert etcd_members(lab) == MASTERS and swarm_nodes(lab)["node3"] == "Ready"
    assert c.conditions("node3") == set()


@pytest.mark.full
@pytest.mark.parametrize("nodes", [["node4"], ["node3"], ["node3", "node4"]] * 3)
def test_leaving_and_coming_back_again(lab, c, nodes):
    c.do("decommission", nodes)
    for node in nodes:
        assert product.leftovers(lab, node) == {}
        assert node not in swarm_nodes(lab) and node not in etcd_members(lab)
    for group in ("service-master", "service-worker"):
        members = [node for node in nodes if (node in MASTERS) == (group == "service-master")]
        if members:
            c.do("commission", members, host_group=group)
    assert swarm_nodes(lab) == {name: "Ready" for name in ALL}
    assert etcd_members(lab) == MASTERS
