"""`vagrant up` with the docker provider, then commission of those machines, as the Vagrantfile and docs/lab.md say."""

import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

import product

pytestmark = pytest.mark.full

SUBNET = "192.168.214"


class Vagrant:
    """The machines of the Vagrantfile, in the lab's engine; everything Vagrant keeps is in `directory`."""

    settings = {"LAB_SSH_USER": "root"}

    def __init__(self, directory, count):
        self.key = directory / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        self.settings = dict(self.settings, LAB_SSH_KEY=str(self.key))
        engine = pathlib.Path(os.environ.get("CLUSTERCTL_LAB_ENGINE_DIR", "/var/lib/clusterctl-lab")) / "docker.sock"
        self.env = dict(os.environ, VAGRANT_CWD=str(product.ROOT), VAGRANT_DOTFILE_PATH=str(directory / "dot"), VAGRANT_HOME=str(directory / "home"),
                        VAGRANT_CHECKPOINT_DISABLE="1", CLUSTERCTL_NODES=str(count), CLUSTERCTL_VAGRANT_SUBNET=SUBNET,
                        CLUSTERCTL_SSH_PUBLIC_KEY=str(self.key) + ".pub", DOCKER_HOST=f"unix://{engine}")

    def run(self, *command, check=True):
        result = subprocess.run(command, env=self.env, text=True, capture_output=True, timeout=900, stdin=subprocess.DEVNULL)
        assert not check or result.returncode == 0, f"{command}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        return result.stdout

    def down(self):
        self.run("vagrant", "destroy", "-f", check=False)
        self.run("docker", "network", "rm", f"clusterctl-vagrant-{SUBNET}", check=False)


@pytest.fixture(name="machines")
def machines_of_vagrant(tmp_path):
    if not shutil.which("vagrant"):
        pytest.skip("vagrant is not installed: apt-get install --no-install-recommends vagrant")
    subprocess.run([product.ROOT / "scripts" / "lab", "image"], check=True, capture_output=True, timeout=900)
    made = Vagrant(tmp_path, 2)
    try:
        made.run("vagrant", "up", "--provider=docker")
        yield made
    finally:
        made.down()


@pytest.fixture(name="daemon")
def daemon_for_them(machines, tmp_path):
    daemon = product.Product(machines, tmp_path, name="vagrant")
    daemon.start()
    yield daemon
    daemon.stop()


def test_machines_of_vagrant_are_commissioned(machines, daemon):
    assert "root" not in machines.run("vagrant", "ssh", "node1", "-c", "id -un"), "people log in as Vagrant does"
    made = machines.run("docker", "ps", "-q", "--no-trunc")
    machines.run("vagrant", "up", "--provider=docker")
    assert machines.run("docker", "ps", "-q", "--no-trunc") == made, "a second time nothing is made"
    for index, group in ((1, "service-master"), (2, "service-worker")):
        daemon.cli("node", "add", f"node{index}", "--addr", f"{SUBNET}.{10 + index}", "--host-group", group)
    done = daemon.cli("node", "commission", "node1", "node2", "--yes")
    assert done.returncode == 0
    assert {daemon.lifecycle(name) for name in ("node1", "node2")} == {"Allocated"}
    hosts = yaml.safe_load(machines.run("vagrant", "ssh", "node1", "-c", "sudo docker node ls --format '{{.Hostname}}: {{.Status}}'"))
    assert hosts == {"node1": "Ready", "node2": "Ready"}
    daemon.cli("node", "decommission", "node1", "node2", "--yes")
    assert {daemon.lifecycle(name) for name in ("node1", "node2")} == {"Decommissioned"}
