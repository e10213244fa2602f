"""The event stream, taken from a real ansible-playbook on the local host."""

import json
import os
import pathlib
import re
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]

PLAYBOOK = """
- name: First
  hosts: all
  gather_facts: false
  tasks:
    - name: Ignored
      ansible.builtin.command: {argv: [sh, -c, "echo why >&2; exit 3"]}
      ignore_errors: true
    - name: Told on output
      ansible.builtin.command: {argv: [sh, -c, "echo so; exit 4"]}
      ignore_errors: true
    - name: Skipped
      ansible.builtin.debug: {msg: no}
      when: false
    - name: Looped
      ansible.builtin.command: {argv: [echo, "{{ item }}"]}
      loop: [one, two]
      changed_when: item == 'two'
    - name: Secret
      ansible.builtin.command: {argv: [echo, s3cr3t]}
      no_log: true
      changed_when: true
    - name: A fact
      ansible.builtin.set_fact:
        clusterctl_service_demo: {v: 1, healthy: true, message: "{{ strange }}"}
        other_fact: 1
    - name: Through the role
      ansible.builtin.include_role: {name: demo, tasks_from: verify}
    - name: Rescued
      block:
        - name: Original
          ansible.builtin.fail: {msg: original}
          when: inventory_hostname == 'b'
      rescue:
        - name: Again
          ansible.builtin.fail: {msg: again}
    - name: Long
      ansible.builtin.debug: {msg: "{{ 'x' * 10000 }}"}
    - name: End
      ansible.builtin.command: {argv: ["true"]}
      changed_when: false
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "p.yml").write_text(PLAYBOOK)
    role = tmp_path / "roles" / "demo" / "tasks"
    role.mkdir(parents=True)
    (role / "verify.yml").write_text("- name: Inside\n  ansible.builtin.command: {argv: ['true']}\n  changed_when: false\n")
    (tmp_path / "inventory.json").write_text(json.dumps({"all": {
        "hosts": {"a": {}, "b": {}},
        "vars": {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
                 "strange": {"__ansible_unsafe": "{{ 1 + 1 }}\n\u2028\x00end"}}}}))

    def start(playbook="p.yml", directory=tmp_path, **environment):
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"),
               "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"), "ANSIBLE_LOCAL_TEMP": str(tmp_path / "t"), **environment}
        if directory:
            env["CLUSTERCTL_RUN_DIR"] = str(directory)
        return subprocess.Popen(["/usr/bin/ansible-playbook", "-i", str(tmp_path / "inventory.json"), str(tmp_path / playbook)], env=env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=str(tmp_path))

    return start


def events(directory):
    lines = (directory / "events.jsonl").read_bytes().decode("utf-8").split("\n")
    assert lines[-1] == ""
    return [json.loads(line) for line in lines[:-1]]


def test_stream(run, tmp_path):
    child = run()
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 2, output
    found = events(tmp_path)
    assert [e["n"] for e in found] == list(range(1, len(found) + 1))
    assert all(e["v"] == 1 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e["t"]) for e in found)
    assert found[0]["event"] == "start" and found[0]["playbook"] == "p.yml" and found[0]["pid"] == child.pid
    assert found[1] == dict(found[1], event="play", play="First", hosts=["a", "b"])
    stats = found[-1]
    assert stats["event"] == "stats" and stats["hosts"]["b"]["failures"] == 1 and stats["hosts"]["a"]["failures"] == 0
    assert stats["hosts"]["a"]["ignored"] == 2

    results = [e for e in found if e["event"] == "result"]

    def of(task, host="a"):
        return [e for e in results if e["task"] == task and e["host"] == host]

    ignored, = of("Ignored")
    assert ignored["status"] == "failed" and ignored["ignored"] and ignored["rc"] == 3 and ignored["stderr"] == "why" and ignored["module"]
    assert "stdout" not in ignored
    output, = of("Told on output")
    assert output["stdout"] == "so" and "stderr" not in output
    assert of("Skipped") == []
    item, whole = of("Looped")
    assert item["item"] == "two" and item["changed"] and "item" not in whole and whole["changed"] and whole["status"] == "ok"
    secret, = of("Secret")
    assert secret["msg"] == "censored" and "s3cr3t" not in (tmp_path / "events.jsonl").read_text()
    assert of("Original") == [] and of("Original", "b")[0]["msg"] == "original" and of("Again", "b")[0]["status"] == "failed"
    assert len(of("Long")[0]["msg"]) == 4000 and not of("Long")[0]["module"]
    inside, = of("Inside")
    assert (inside["service"], inside["door"], inside["action"]) == ("demo", "verify", "command")
    assert of("End", "b") == []

    facts = [e for e in found if e["event"] == "fact"]
    assert sorted((f["host"], f["name"]) for f in facts) == [("a", "clusterctl_service_demo"), ("b", "clusterctl_service_demo")]
    assert facts[0]["value"] == {"v": 1, "healthy": True, "message": "{{ 1 + 1 }}\n\u2028\x00end"}


def test_an_unreachable_delegate_is_named(run, tmp_path):
    inventory = json.loads((tmp_path / "inventory.json").read_text())
    inventory["all"]["hosts"]["c"] = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "inventory.json").write_text(json.dumps(inventory))
    (tmp_path / "d.yml").write_text("- {hosts: a, gather_facts: false, tasks: [{name: There, ansible.builtin.command: 'true', delegate_to: c}]}\n")
    child = run("d.yml")
    output, _ = child.communicate(timeout=120)
    found, = [e for e in events(tmp_path) if e["event"] == "result"]
    assert (found["host"], found["status"], found["delegate"]) == ("a", "unreachable", "c"), output


def test_without_a_run_directory_nothing_happens(run, tmp_path):
    child = run(directory=None)
    child.communicate(timeout=120)
    assert child.returncode == 2 and not (tmp_path / "events.jsonl").exists()


def test_a_run_directory_that_cannot_be_written_changes_no_result(run, tmp_path):
    child = run(directory=tmp_path / "missing")
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 2 and "clusterctl_events:" in output


def test_cancel_ends_at_the_next_task(run, tmp_path):
    (tmp_path / "slow.yml").write_text(
        "- name: Slow\n  hosts: all\n  gather_facts: false\n  tasks:\n"
        + "".join("    - name: Step %d\n      ansible.builtin.command: {argv: [sh, -c, 'sleep 1; touch %s/done-%d']}\n" % (n, tmp_path, n) for n in (1, 2, 3)))
    child = run("slow.yml")
    deadline = time.time() + 60
    while time.time() < deadline and not ((tmp_path / "events.jsonl").exists() and '"Step 1"' in (tmp_path / "events.jsonl").read_text()):
        time.sleep(0.1)
    (tmp_path / "cancel").touch()
    child.communicate(timeout=60)
    assert child.returncode == 250
    found = events(tmp_path)
    assert found[-1]["event"] == "cancelled"
    assert (tmp_path / "done-1").exists() and not (tmp_path / "done-2").exists()
    assert len([e for e in found if e["event"] == "result"]) == 2
