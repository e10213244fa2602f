"""Faults, most of them real, through the real Ansible: each must get its right one-line cause and its right hint."""

import shutil

import pytest
import yaml

import faults
from harness import TOP

REAL = "/usr/bin/ansible-playbook"


@pytest.fixture
def real(stopped):
    """A daemon with the real Ansible and a folder of playbooks that is ours."""
    folder = stopped.directory
    books = folder / "playbooks"
    books.mkdir()
    for name in ("catalog.yml", "hints.yml"):
        shutil.copy(TOP / "playbooks" / name, books / name)
    program = folder / "ansible-playbook"
    program.write_text("#!/bin/sh\necho $$ > %s/pid\nexec %s \"$@\" ${MORE_INVENTORY:+-i \"$MORE_INVENTORY\"}\n" % (folder, REAL))
    program.chmod(0o755)
    stopped.books = books
    stopped.config["ansible"].update(playbooks=str(books), playbook_program=str(program), env={
        "MORE_INVENTORY": str(folder / "more.yml"), "ANSIBLE_FORKS": "8", "ANSIBLE_TIMEOUT": "2", "ANSIBLE_SSH_RETRIES": "0"})
    (folder / "more.yml").write_text("all: {}\n")
    return stopped


def stand_in(folder, name, text):
    """A program that only says something and fails: for ssh and sudo."""
    program = folder / ("says-" + name)
    program.write_text("#!/bin/sh\ncat >&2 <<'END'\n%s\nEND\nexit 255\n" % text)
    program.chmod(0o755)
    return str(program)


def prepare(daemon, todo):
    """One node for each fault, and one task file."""
    hosts = {}
    for number, fault in enumerate(todo):
        daemon.add(fault.name, "service-worker", addr=fault.addr or "127.0.0.%d" % (number + 10))
        local = fault.task is not None and not fault.ssh
        variables = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"} if local else {}
        variables.update(fault.variables)
        if not fault.addr and not local:
            variables["ansible_host"] = "127.0.0.1"
        if fault.ssh:
            variables["ansible_ssh_executable"] = stand_in(daemon.directory, fault.name, fault.ssh)
        if " " in variables.get("ansible_become_exe", ""):
            variables["ansible_become_exe"] = stand_in(daemon.directory, fault.name, variables["ansible_become_exe"])
        hosts[fault.name] = variables
        task = dict(fault.task or faults.command("true"), name="The fault")
        (daemon.books / ("task-%s.yml" % fault.name)).write_text(yaml.safe_dump([task]))
    (daemon.directory / "more.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    check = [{"hosts": "clusterctl_targets", "gather_facts": False, "strategy": "free",
              "tasks": [{"ansible.builtin.include_tasks": "task-{{ inventory_hostname }}.yml"}]}]
    (daemon.books / "check.yml").write_text(yaml.safe_dump(check))


def judge(fault, code, line, hint, log):
    """Which of (line, hint) are right."""
    right = (fault.line in line and "\n" not in line, code in fault.codes and fault.hint in hint)
    if not all(right):
        log.append("%s: code %s, line %r, hint %r" % (fault.name, code, line, hint))
    return right


def test_at_least_forty_causes_get_the_right_line_and_hint(real, tmp_path, capsys):
    servers = faults.Servers()
    try:
        todo = faults.of_nodes(servers, tmp_path)
        real.start()
        prepare(real, todo)
        job = real.wait(real.submit("check", nodes=[fault.name for fault in todo])["id"], "failed", seconds=600)
        wrong, found = [], []
        nodes = {node["name"]: node for node in job["nodes"]}
        # An ssh that ends before Ansible has written to it leaves only "Broken pipe" to tell: by chance, so it is asked again.
        for _ in range(3):
            by_chance = [name for name, node in nodes.items() if "Data could not be sent" in node["message"]]
            if not by_chance:
                break
            again = real.wait(real.submit("check", nodes=by_chance)["id"], "failed", seconds=600)
            nodes.update((node["name"], node) for node in again["nodes"])
        # Where it never tells more, there is no cause to be found; what ssh says of it stands in the unit test of the hints.
        todo = [fault for fault in todo if "Data could not be sent" not in nodes[fault.name]["message"]]
        for fault in todo:
            node = nodes[fault.name]
            found.append(judge(fault, node["code"], node["message"], node["hint"], wrong))
        runs = faults.of_runs(real.directory)
        for fault, book in runs:
            path = real.books / "check.yml"
            if book is None:
                path.unlink()
            else:
                path.write_text(book if isinstance(book, str) else yaml.safe_dump(book))
            job = real.wait(real.submit("check", nodes=["no-space"])["id"], "failed")
            found.append(judge(fault, job["nodes"][0]["code"], job["error"], job["hint"], wrong))
        real.stop()
        missing = faults.Fault("no-ansible", "ansible_missing", "no-such-ansible", "PATH", real=True)
        real.config["ansible"]["playbook_program"] = "no-such-ansible"
        real.start()
        job = real.wait(real.submit("check", nodes=["no-space"])["id"], "failed")
        found.append(judge(missing, "ansible_missing", job["error"], job["hint"] or job["error"], wrong))
    finally:
        servers.close()
    every = todo + [fault for fault, _ in runs] + [missing]
    with capsys.disabled():
        print("\n%d causes (%d of them real): %d right lines, %d right hints" % (
            len(found), sum(fault.real for fault in every), sum(line for line, _ in found), sum(hint for _, hint in found)))
    assert len(found) >= 40
    assert not wrong, "\n".join(wrong)
