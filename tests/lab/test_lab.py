"""The lab keeps its promises: nodes are machines, each its own, and survive what happens to machines."""

import os
import pathlib
import signal
import subprocess
import time

import pytest
import yaml

LAB = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lab"


class Lab:
    def __init__(self, directory):
        self.env = dict(os.environ, CLUSTERCTL_LAB_NAME="selftest", CLUSTERCTL_LAB_DIR=str(directory))
        self.env.pop("DOCKER_HOST", None)

    def run(self, *args, check=True, **options):
        return subprocess.run([LAB, *args], env=self.env, check=check, text=True, capture_output=True,
                              timeout=600, **options)

    def ssh(self, node, command, **options):
        return self.run("ssh", node, command, **options).stdout.strip()

    def state(self, node):
        rows = [line.split() for line in self.run("ls").stdout.splitlines()[1:]]
        return {row[0]: row[1] for row in rows}.get(node)

    def identity(self, node):
        return self.ssh(node, "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub; hostname; "
                              "ip -4 -br addr show eth0 | awk '{print $3}'")

    def boot_id(self, node):
        return self.ssh(node, "cat /proc/sys/kernel/random/boot_id")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.run("ls").stdout
            time.sleep(0.3)


@pytest.fixture(scope="module", name="lab")
def running_lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.run("up", "4")
    yield lab
    lab.run("down")


def test_nodes_are_machines_of_their_own(lab):
    nodes = ["node1", "node2", "node3", "node4"]
    for field in zip(*(lab.identity(node).splitlines() for node in nodes)):
        assert len(set(field)) == len(nodes), field
    assert lab.ssh("node1", "systemctl is-system-running") == "running"
    assert lab.ssh("node1", "sudo id -u") == "0"


def test_inventory_names_groups_and_pinned_keys(lab):
    inventory = yaml.safe_load(pathlib.Path(lab.run("inventory").stdout.strip()).read_text())["all"]
    masters = inventory["children"]["service-master"]["hosts"]
    workers = inventory["children"]["service-worker"]["hosts"]
    assert (sorted(masters), sorted(workers)) == (["node1", "node2", "node3"], ["node4"])
    key = lab.ssh("node4", "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub")
    assert workers["node4"]["clusterctl_ssh_host_key"] == key
    assert inventory["vars"]["service_vip"] == workers["node4"]["ansible_host"].rsplit(".", 1)[0] + ".100"


def test_up_again_changes_nothing(lab):
    before = lab.identity("node1"), lab.boot_id("node1")
    lab.run("up", "4")
    assert (lab.identity("node1"), lab.boot_id("node1")) == before


@pytest.mark.parametrize("how", ["power cut", "reboot", "reboot from inside"])
def test_identity_survives_a_restart(lab, how):
    lab.ssh("node2", "touch /tmp/lost kept; sync")
    identity, boot = lab.identity("node2"), lab.boot_id("node2")
    if how == "power cut":
        lab.run("kill", "node2")
        assert lab.state("node2") == "exited"
        lab.run("start", "node2")
    elif how == "reboot":
        lab.run("reboot", "node2")
    else:
        lab.ssh("node2", "sudo systemctl reboot", check=False)
        lab.wait(lambda: lab.ssh("node2", "systemctl is-system-running", check=False) == "running"
                 and lab.boot_id("node2") != boot)
    assert lab.identity("node2") == identity
    assert lab.boot_id("node2") != boot
    assert lab.ssh("node2", "ls kept /tmp/lost 2>/dev/null", check=False) == "kept"


def test_powered_off_from_inside_stays_off(lab):
    lab.ssh("node3", "sudo systemctl poweroff", check=False)
    lab.wait(lambda: lab.state("node3") == "exited")
    time.sleep(2)
    assert lab.state("node3") == "exited"
    lab.run("start", "node3")


def test_a_paused_node_is_silent(lab):
    lab.run("pause", "node3")
    assert lab.run("ssh", "node3", "true", check=False).returncode != 0
    lab.run("unpause", "node3")
    assert lab.ssh("node3", "echo back") == "back"


def test_the_name_of_a_node_can_be_changed(lab):
    lab.ssh("node4", "sudo hostnamectl set-hostname other && sudo hostnamectl set-hostname node4")
    assert lab.ssh("node4", "cat /etc/hostname") == "node4"


def test_containers_run_inside_a_node(lab):
    lab.ssh("node1", "sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy docker.io >/dev/null 2>&1")
    archive = subprocess.run(["tar", "-C", "/bin", "-c", "busybox"], check=True, capture_output=True).stdout
    subprocess.run([LAB, "exec", "node1", "docker", "import", "-", "busybox"], env=lab.env, input=archive,
                   check=True, capture_output=True)
    assert lab.ssh("node1", "sudo docker run --rm busybox /busybox echo nested") == "nested"
    assert lab.ssh("node1", "sudo docker info --format '{{.Driver}}'") == "overlay2"


@pytest.mark.parametrize("seconds", [0.5, 1, 2, 3])
def test_recovers_from_an_interrupted_up(lab, seconds):
    lab.run("down")
    with subprocess.Popen([LAB, "up", "4"], env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
        time.sleep(seconds)
        up.send_signal(signal.SIGKILL)
    lab.run("up", "4")
    assert lab.ssh("node4", "echo up") == "up"


def test_another_directory_does_not_take_the_lab(lab, tmp_path):
    other = Lab(tmp_path / "other")
    for command in (["up", "1"], ["down"]):
        refused = other.run(*command, check=False)
        assert refused.returncode == 1
        assert "belongs to" in refused.stderr
    assert lab.state("node4") == "running"


@pytest.mark.parametrize("args, message", [
    (["exec", "node9", "true"], "there is no node9"), (["ssh", "--help"], "not a node"), (["up", "0"], "1 to 80"),
    (["reboot"], "not a node"), (["exec", "node1"], "which command"), (["nonsense"], "usage:")])
def test_wrong_words_are_refused_in_one_line(lab, args, message):
    result = lab.run(*args, check=False)
    assert result.returncode != 0
    assert message in result.stderr
