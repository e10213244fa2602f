"""What can be said of the roles and playbooks without a node. Fast; part of every run of the tests."""

import os
import pathlib
import re
import subprocess

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
DOORS = ("check", "main", "upgrade", "verify", "cleanup", "forget")
ROLES = sorted(path for path in (TOP / "roles").iterdir() if path.is_dir())
PLAYBOOKS = ("site", "check", "verify", "observe", "cleanup", "forget", "show", "availability", "handover", "reboot")
FORBIDDEN = {"serial", "run_once", "throttle", "tags", "import_role", "ansible.builtin.import_role"}


def read(path):
    return yaml.safe_load(path.read_text())


def mappings(value):
    """Every mapping in a document, from the outside in."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from mappings(inner)


def task_files():
    return sorted(TOP.glob("playbooks/*.yml")) + sorted(TOP.glob("playbooks/tasks/*.yml")) + sorted(TOP.glob("roles/*/tasks/*.yml"))


def specs(role):
    return read(role / "meta" / "argument_specs.yml")["argument_specs"]


@pytest.mark.parametrize("role", ROLES, ids=lambda r: r.name)
def test_every_door_is_there_and_has_its_entry_point(role):
    for door in DOORS:
        assert (role / "tasks" / (door + ".yml")).exists(), "%s has no door %s" % (role.name, door)
        assert specs(role)[door]["short_description"]
    for entry in specs(role):
        assert (role / "tasks" / (entry + ".yml")).exists(), "%s: the entry point %s has no task file" % (role.name, entry)


def test_what_schedules_has_the_door_availability():
    services = read(TOP / "playbooks" / "catalog.yml")["services"]
    named = [name for name, service in services.items() if service.get("schedules")]
    assert named
    assert [role.name for role in ROLES if (role / "tasks" / "availability.yml").exists()] == sorted(named)
    assert all("availability" in specs(TOP / "roles" / name) for name in named)


def test_what_hands_over_has_the_door_handover():
    services = read(TOP / "playbooks" / "catalog.yml")["services"]
    named = [name for name, service in services.items() if service.get("hands_over")]
    assert named
    assert [role.name for role in ROLES if (role / "tasks" / "handover.yml").exists()] == sorted(named)


@pytest.mark.parametrize("role", ROLES, ids=lambda r: r.name)
def test_defaults_are_those_of_the_specs(role):
    options = {}
    for door in specs(role).values():
        options.update(door.get("options") or {})
    assert all(option.get("description") and option.get("type") for option in options.values())
    described = {name: option["default"] for name, option in options.items() if "default" in option}
    assert (read(role / "defaults" / "main.yml") or {}) == described


@pytest.mark.parametrize("role", ROLES, ids=lambda r: r.name)
def test_a_role_has_its_papers(role):
    for name in ("README.md", "meta/main.yml", "vars/Debian.yml", "vars/RedHat.yml"):
        assert (role / name).exists(), name
    assert read(role / "meta" / "main.yml")["dependencies"] == []


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_plays_follow_the_contract(name):
    for play in read(TOP / "playbooks" / (name + ".yml")):
        assert re.match(r"clusterctl_targets(:clusterctl_peers)?$", play["hosts"])
        assert play["strategy"] == "linear" and play["gather_facts"] is False and play["become"] is True and play["any_errors_fatal"] is False
        assert play["environment"] == {"CLUSTERCTL_RUN_ID": "{{ clusterctl_run_id | default('') }}"}


@pytest.mark.parametrize("path", task_files(), ids=lambda p: str(p.relative_to(TOP)))
def test_forbidden_words(path):
    for mapping in mappings(read(path)):
        assert not FORBIDDEN & set(map(str, mapping)), path
        # With an extension the arguments are not validated, and nobody says so.
        assert not str(mapping.get("tasks_from", "")).endswith((".yml", ".yaml"))
        for name in ("ansible.builtin.shell", "shell", "ansible.builtin.raw", "raw", "ansible.builtin.service", "service"):
            assert name not in mapping or name == "service" and not isinstance(mapping[name], dict), "%s uses %s" % (path, name)
        command = mapping.get("ansible.builtin.command")
        assert command is None or isinstance(command, dict) and "argv" in command, "%s: commands are lists" % path


def test_nothing_stands_beside_the_playbooks():
    """It would override what the controller says."""
    assert not (TOP / "playbooks" / "group_vars").exists() and not (TOP / "playbooks" / "host_vars").exists()
    for name in ("group_vars", "host_vars"):
        assert os.readlink(TOP / "inventory" / name) == "../" + name


def test_variables_page_is_current():
    subprocess.run([str(TOP / "scripts" / "gen-variables"), "--check"], check=True)


def test_yamllint():
    subprocess.run(["yamllint", "--strict", "."], cwd=TOP, check=True)


def test_ansible_lint():
    lint = read(TOP / ".ansible-lint")
    assert lint["profile"] == "production" and not lint["skip_list"] and not lint["warn_list"]
    environment = dict(os.environ, PATH="/usr/bin:/bin", LANG="C.UTF-8", ANSIBLE_CONFIG=str(TOP / "ansible.cfg"))
    done = subprocess.run(["ansible-lint", "--offline", "-q", "--nocolor"], cwd=TOP, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_the_example_inventory():
    environment = dict(os.environ, LANG="C.UTF-8", ANSIBLE_CONFIG=str(TOP / "ansible.cfg"))
    done = subprocess.run(["/usr/bin/ansible-inventory", "-i", str(TOP / "inventory" / "lab.yml"), "--list", "--yaml"],
                          cwd=TOP, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    children = yaml.safe_load(done.stdout)["all"]["children"]["clusterctl_targets"]["children"]
    assert set(children) == {"service-master", "service-worker"}
    # The files of group_vars/ and host_vars/ are read.
    assert any("service_vip" in host for host in children["service-master"]["hosts"].values())
