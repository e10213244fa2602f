"""A machine that has none of the packages: setup, build and unit tests, from a clone."""

import subprocess

import pytest

import product

pytestmark = pytest.mark.full


@pytest.fixture(name="machine")
def bare_machine(tmp_path):
    lab = product.Lab("fresh", tmp_path)
    lab.run("down", check=False)
    lab.up(1)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", product.ROOT, clone], check=True)
    archive = subprocess.run(["tar", "-C", clone, "-c", "."], check=True, capture_output=True).stdout
    container = "clusterctl-" + lab.settings["LAB_NAME"] + "-node1"
    subprocess.run(["docker", "exec", "-i", container, "sh", "-c", "mkdir /root/clusterctl && tar -C /root/clusterctl -x --no-same-owner"],
                   input=archive, check=True, env=dict(lab.env, DOCKER_HOST=lab.settings["DOCKER_HOST"]))
    yield lab
    lab.run("down")


def test_setup_build_and_unit_tests_pass_on_a_bare_machine(machine):
    def run(command, seconds):
        result = subprocess.run([product.ROOT / "scripts" / "lab", "exec", "node1", "sh", "-c", f"cd /root/clusterctl && {command}"],
                                env=machine.env, text=True, capture_output=True, timeout=seconds)
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
        return result.stdout

    assert machine.sh("node1", "command -v g++ cmake ninja", check=False) == ""
    run("scripts/setup --build-only", 600)
    run("cmake --preset release && cmake --build build -j 2", 3600)
    out = run("ctest --test-dir build -L unit -j 2 --no-tests=error", 1800)
    assert "100% tests passed" in out
    print(out.splitlines()[-5:])
