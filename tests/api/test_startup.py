"""A daemon that cannot work says why in one line, at once, and changes nothing."""

import socket
import sqlite3

import pytest


def test_two_listeners_are_named(daemon):
    lines = [line for line in daemon.log().splitlines() if "listening on " in line]
    assert len(lines) == 2
    assert any(str(daemon.socket) in line for line in lines)
    assert any("127.0.0.1:%d" % daemon.port in line for line in lines)


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_state_directory_that_others_can_write_is_refused(stopped, mode):
    stopped.state_dir.mkdir()
    stopped.state_dir.chmod(mode)
    code, told = stopped.fails_to_start()
    assert code == 64 and str(stopped.state_dir) in told and "chmod 700" in told
    assert list(stopped.state_dir.iterdir()) == []


def test_it_stops_when_told(daemon):
    assert daemon.stop() == 0


@pytest.mark.parametrize("change, words", [
    (lambda c: c.update({"listne": {}}), ["listne", "listen"]),
    (lambda c: c["ansible"].update({"playbook_dir": "x"}), ["playbook_dir"]),
    (lambda c: c["listen"].update({"tpc": "x"}), ["tpc", "tcp"]),
    (lambda c: c["listen"].update({"tcp": "nowhere"}), ["tcp"]),
    (lambda c: c["listen"].update({"tcp": 5}), ["tcp"]),
    (lambda c: c.update({"ansible": []}), ["ansible"]),
    (lambda c: c["ansible"].update({"playbooks": "/nonexistent/playbooks"}), ["/nonexistent/playbooks"]),
    (lambda c: c["ansible"].update({"playbook_program": "/nonexistent/ansible"}), ["/nonexistent/ansible"]),
    (lambda c: c["ssh"].update({"user": "-oProxyCommand=id"}), ["user"]),
    (lambda c: c.update({"cluster_name": "{{ x }}"}), ["cluster_name"]),
    (lambda c: c["ansible"]["env"].update({"ANSIBLE_CONFIG": "/etc/ansible/ansible.cfg"}), ["ANSIBLE_CONFIG", "ansible.config"]),
    (lambda c: c["ansible"]["env"].update({"TMPDIR": "/var/tmp"}), ["TMPDIR"]),
    (lambda c: c["ansible"]["env"].update({"A=B": "x"}), ["A=B"]),
    (lambda c: c["ssh"].update({"private_key": "/nonexistent/key"}), ["/nonexistent/key"])])
def test_mistakes_in_the_configuration(stopped, change, words):
    change(stopped.config)
    _, told = stopped.fails_to_start()
    for word in words:
        assert word in told
    checked = stopped.cli("serve", "--check-config", "--config", str(stopped.config_file))
    assert checked.returncode != 0 and all(word in checked.stderr for word in words), "found without starting, too"


def test_a_configuration_that_is_no_yaml_names_the_place(stopped):
    stopped.write_config = lambda: stopped.config_file.write_text("listen:\n  unix: [\n")
    _, told = stopped.fails_to_start()
    assert "%s:" % stopped.config_file in told


def test_a_missing_configuration_is_named(stopped):
    stopped.write_config = lambda: None
    _, told = stopped.fails_to_start()
    assert str(stopped.config_file) in told


def test_a_second_daemon_on_the_same_state(daemon):
    second = type(daemon).__new__(type(daemon))
    second.__dict__.update(daemon.__dict__)
    second.config = dict(daemon.config, listen={"unix": str(daemon.directory / "d.sock"), "tcp": "127.0.0.1:0"})
    second.config_file, second.log_file = daemon.directory / "second.yml", daemon.directory / "second.log"
    _, told = second.fails_to_start()
    assert "another clusterctl daemon" in told
    assert daemon.get("/healthz").status == 200


def test_a_killed_daemon_leaves_no_lock(daemon):
    daemon.kill()
    daemon.start()
    assert daemon.get("/healthz").status == 200


def test_an_occupied_port_is_named(stopped):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        stopped.config["listen"]["tcp"] = "127.0.0.1:%d" % port
        _, told = stopped.fails_to_start()
    assert str(port) in told


def stores(daemon):
    found = []
    for path in daemon.state_dir.rglob("*"):
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
            found.append(path)
    assert len(found) == 1, found
    return found[0]


def test_a_damaged_store_is_named_and_left_alone(daemon):
    daemon.stop()
    path = stores(daemon)
    path.write_bytes(b"x" * 8192)
    _, told = daemon.fails_to_start()
    assert "damaged" in told and str(path) in told
    assert path.read_bytes() == b"x" * 8192


def test_a_newer_store_is_named(daemon):
    daemon.stop()
    db = sqlite3.connect(stores(daemon))
    db.execute("PRAGMA user_version = 99")
    db.close()
    _, told = daemon.fails_to_start()
    assert "newer" in told and "99" in told
