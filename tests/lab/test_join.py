"""From nothing to a cluster and back, on real nodes: the controller is node1, the others join it by themselves. In order: every test
builds on the one before."""

import json
import pathlib
import re
import subprocess

import pytest

import product

pytestmark = pytest.mark.full

lab = product.running_lab("join", 3)


def packages_of(binary):
    """Debian packages with the libraries that the program needs."""
    paths = re.findall(r"=> (/\S+)", subprocess.run(["ldd", binary], text=True, capture_output=True, check=True).stdout)
    found = set()
    for path in paths:
        real = str(pathlib.Path(path).resolve())
        for name in (real, real.removeprefix("/usr"), path, path.removeprefix("/usr")):
            owner = subprocess.run(["dpkg", "-S", name], text=True, capture_output=True)
            if owner.returncode == 0:
                found.add(owner.stdout.split(":")[0])
                break
    return sorted(found)


def into(lab, node, command, data):
    container = "clusterctl-%s-%s" % (lab.settings["LAB_NAME"], node)
    subprocess.run(["docker", "exec", "-i", container, "sh", "-c", command], input=data, check=True, timeout=300,
                   env=dict(lab.env, DOCKER_HOST=lab.settings["DOCKER_HOST"]))


def install(lab, node, *more):
    """The program as docs/operations.md installs it, from this build."""
    lab.sh(node, "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends " +
           " ".join(packages_of(product.BINARY) + list(more)) + " >/dev/null")
    into(lab, node, "cat > /usr/bin/clusterctl && chmod 755 /usr/bin/clusterctl", product.BINARY.read_bytes())


@pytest.fixture(scope="module", name="machines")
def with_program(lab):
    install(lab, "node1", "ansible-core", "openssh-client")
    archive = subprocess.run(["tar", "-C", product.ROOT, "-c", "playbooks", "roles", "ansible.cfg"], check=True, capture_output=True).stdout
    into(lab, "node1", "mkdir -p /usr/share/clusterctl && tar -C /usr/share/clusterctl -x --no-same-owner", archive)
    for node in ("node2", "node3"):
        install(lab, node)
    return lab


class Session:
    """What was shown and has to be remembered between the tests."""
    line = ""
    url = ""
    authority = ""


def on(lab, node, command, code=0):
    result = lab.run("exec", node, "sh", "-c", command, check=False)
    assert code is None or result.returncode == code, f"{node}# {command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


def nodes(lab):
    return {n["name"]: n for n in json.loads(lab.sh("node1", "clusterctl node ls -o json"))}


def way_in(lab, node):
    """What a join leaves on a machine."""
    return lab.sh(node, "getent passwd clusterctl; ls -d /home/clusterctl /etc/sudoers.d/clusterctl-* /etc/clusterctl/joined.json 2>/dev/null; true")


def test_the_session(machines):
    """A controller that is its own first node, and a second machine that joins, in three commands."""
    shown = on(machines, "node1", "clusterctl cluster init --node node1 --host-group service-master --accept-policy manual")
    Session.line = re.search(r"clusterctl cluster join https\S+ --token \S+", shown)[0]
    Session.url = Session.line.split()[3]
    Session.authority = re.search(r"authority: (\w{64})", shown)[1]
    joined = on(machines, "node2", Session.line)
    assert "pending" in joined
    assert nodes(machines)["node2"]["spec"]["acceptance"] == "pending"
    fingerprint = on(machines, "node2", "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    assert fingerprint in joined and fingerprint in on(machines, "node1", "clusterctl node inspect node2")
    on(machines, "node1", "clusterctl node accept node2 --host-group service-worker --label rack=r1")
    assert machines.sh("node1", "systemctl is-enabled clusterctl; systemctl is-active clusterctl").split() == ["enabled", "active"]


def test_init_again_changes_nothing(machines):
    before = machines.sh("node1", "cat /etc/clusterctl/clusterctl.yml /etc/clusterctl/id_ed25519.pub; systemctl show -p MainPID clusterctl")
    on(machines, "node1", "clusterctl cluster init --node node1")
    assert machines.sh("node1", "cat /etc/clusterctl/clusterctl.yml /etc/clusterctl/id_ed25519.pub; systemctl show -p MainPID clusterctl") == before


def test_refused_machines_are_as_they_were(machines):
    listed = machines.sh("node1", "clusterctl node ls -o json")
    good = on(machines, "node1", "clusterctl cluster token create --join -q").strip()
    other = good.replace(good.split("-")[2], "ab" * 32)
    for token, code in ((Session.line.split()[-1], 77), (other, None), (good[:-1] + ("a" if good[-1] != "a" else "b"), 77)):
        out = on(machines, "node3", f"clusterctl cluster join {Session.url} --token {token}", code)
        assert out.count("error: ") == 1, out
        assert way_in(machines, "node3") == ""
    out = on(machines, "node3", f"clusterctl cluster join {Session.url} --token {good} --name node2", 65)
    assert "node2" in out and way_in(machines, "node3") == ""
    assert machines.sh("node1", "clusterctl node ls -o json") == listed


def test_the_controllers_machine_and_the_new_one_are_commissioned(machines):
    on(machines, "node1", f"clusterctl global set service_vip={machines.vip}")
    refused = on(machines, "node1", "clusterctl node commission node1", 65)
    assert "controller" in refused
    on(machines, "node1", "clusterctl node commission node1 --controller-host")
    on(machines, "node1", "clusterctl node commission node2")
    found = nodes(machines)
    assert found["node1"]["status"]["lifecycle"] == found["node2"]["status"]["lifecycle"] == "Allocated"
    swarm = dict(row.split("|") for row in machines.sh("node1", "docker node ls --format '{{.Hostname}}|{{.ManagerStatus}}'").splitlines())
    assert swarm == {"node1": "Leader", "node2": ""}


def test_the_list_from_the_second_machine(machines):
    token = on(machines, "node1", "clusterctl cluster token create --name node2 --read-only -q").strip()
    into(machines, "node2", "umask 077; cat > /root/token", token.encode())
    listed = on(machines, "node2", f"clusterctl --server {Session.url} --token-file /root/token --ca-fingerprint {Session.authority} node ls")
    assert re.search(r"node1 .*manager \(leader\)", listed) and re.search(r"node2 .*worker", listed)


def test_a_machine_waits_and_is_let_in_by_its_fingerprint(machines):
    token = on(machines, "node1", "clusterctl cluster token create --join -q").strip()
    on(machines, "node3", f"clusterctl cluster join {Session.url} --token {token} --host-group service-master --label rack=r2")
    assert nodes(machines)["node3"]["spec"]["host_group"] == ""
    fingerprint = on(machines, "node3", "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
    into(machines, "node1", "cat > /root/rack2", fingerprint.encode())
    on(machines, "node1", "clusterctl node accept --fingerprints /root/rack2 -g service-worker")
    assert nodes(machines)["node3"]["spec"]["acceptance"] == "accepted"
    on(machines, "node1", "clusterctl node check node3")


def test_manager_only_promote_demote(machines):
    on(machines, "node1", "clusterctl node drain node1 --force")
    assert machines.sh("node1", "docker node inspect self --format '{{.Spec.Availability}}'") == "drain"
    on(machines, "node1", "clusterctl node activate node1")
    on(machines, "node1", "clusterctl node promote node2")
    assert machines.sh("node1", "docker node inspect node2 --format '{{.Spec.Role}}'") == "manager"
    on(machines, "node1", "clusterctl node demote node2 -y")
    assert machines.sh("node1", "docker node inspect node2 --format '{{.Spec.Role}}'") == "worker"


def test_a_node_goes_and_takes_the_way_in_with_it(machines):
    asked = on(machines, "node2", "clusterctl cluster leave", 65)
    assert "decommission" in asked and way_in(machines, "node2") != ""
    assert "LeaveRequested" in on(machines, "node1", "clusterctl node ls")
    on(machines, "node1", "clusterctl node decommission node2 -y")
    on(machines, "node1", "clusterctl node rm node2")
    on(machines, "node2", "clusterctl cluster leave")
    assert way_in(machines, "node2") == "" and "node2" not in nodes(machines)
