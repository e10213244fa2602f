"""`cluster join` and `cluster leave` on the machine itself: done as a whole, or undone."""

import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness import BINARY
from joining import UUID, announcement, host_key, join, join_machine, new_token, nodes, on, tree


# -- the machine's side --

def test_a_machine_joins_and_lets_the_controller_in(manual, machine):
    done = join_machine(machine, manual, new_token(manual)["token"], "--host-group", "service-worker", "--label", "rack=r1")
    assert done.returncode == 0, done.stderr
    assert "clusterctl node accept n1" in done.stdout and "SHA256:" in done.stdout
    node = manual.node("n1")
    assert node["spec"]["addr"] == "192.0.2.11" and node["status"]["identity"] == {
        "serial": "FCH1", "uuid": UUID % 1, "macs": ["00:25:b5:00:00:01"], "host_key": host_key(1)}
    assert node["status"]["requested"]["host_group"] == "service-worker" and node["status"]["requested"]["os"] == "debian 12"
    keys = machine / "home/clusterctl/.ssh/authorized_keys"
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(manual.directory / "id_ed25519")], capture_output=True, text=True).stdout.split()[1]
    line = keys.read_text()
    assert line.startswith("restrict,pty ssh-ed25519 %s " % public) and line.count("\n") == 1
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600 and stat.S_IMODE(keys.parent.stat().st_mode) == 0o700
    user = [entry.split(":") for entry in (machine / "etc/passwd").read_text().splitlines() if entry.startswith("clusterctl:")][0]
    assert keys.stat().st_uid == keys.parent.stat().st_uid == int(user[2]) != 0
    sudo = machine / "etc/sudoers.d/clusterctl-clusterctl"
    assert "clusterctl ALL=(ALL:ALL) NOPASSWD: ALL" in sudo.read_text() and stat.S_IMODE(sudo.stat().st_mode) == 0o440
    assert stat.S_IMODE((machine / "etc/clusterctl/joined.json").stat().st_mode) == 0o600


def test_joining_again_changes_nothing_more(manual, machine):
    token = new_token(manual, uses=5)["token"]
    assert join_machine(machine, manual, token).returncode == 0
    before = {k: v for k, v in tree(machine).items() if "joined.json" not in k}
    again = join_machine(machine, manual, token)
    assert again.returncode == 0 and "done:" not in again.stdout
    assert {k: v for k, v in tree(machine).items() if "joined.json" not in k} == before
    assert len(manual.get("/v1/nodes").ok()["nodes"]) == 1


def test_a_dry_run_on_the_machine_touches_nothing(manual, machine):
    token = new_token(manual)["token"]
    before, listed = tree(machine), nodes(manual)
    shown = join_machine(machine, manual, token, "--dry-run")
    assert shown.returncode == 0 and "create user clusterctl" in shown.stdout and "FCH1" in shown.stdout
    assert tree(machine) == before and nodes(manual) == listed


def test_a_refused_machine_is_as_it_was(manual, machine):
    token = new_token(manual, uses=5)["token"]
    join(manual, announcement(token, 2, name="n1")).ok()
    before, listed = tree(machine), nodes(manual)
    for arguments, code in (((token,), 65), ((token[:-1] + ("a" if token[-1] != "a" else "b"),), 77), (("nonsense",), 64),
                            ((token, "--name", "{{ x }}"), 64), ((token, "--label", "a b=c"), 64), ((token, "--host-group", "none-such"), 64),
                            ((token, "--user", "a b"), 64)):
        refused = join_machine(machine, manual, *arguments)
        assert refused.returncode == code, (arguments, refused.stderr)
        assert refused.stderr.startswith("error: ") and refused.stderr.count("error: ") == 1
        assert token.rsplit("-", 1)[1] not in refused.stderr + refused.stdout
    assert tree(machine) == before and nodes(manual) == listed


def test_what_fails_on_the_machine_is_undone_before_the_controller_knows_it(manual, machine):
    (machine / "bin/visudo").write_text("#!/bin/sh\necho bad syntax\nexit 1\n")
    token = new_token(manual)["token"]
    before, listed = tree(machine), nodes(manual)
    failed = join_machine(machine, manual, token)
    assert failed.returncode == 65 and "bad syntax" in failed.stderr
    assert tree(machine) == before and nodes(manual) == listed
    assert manual.get("/v1/join-tokens").ok()["tokens"][0]["used"] == 0


def test_keys_that_were_there_stay(manual, machine):
    subprocess.run(["useradd", "--prefix", str(machine), "--create-home", "--home-dir", "/home/ops", "--no-user-group", "ops"], check=True)
    folder = machine / "home/ops/.ssh"
    folder.mkdir(mode=0o700)
    uid = (machine / "home/ops").stat().st_uid
    (folder / "authorized_keys").write_text("ssh-ed25519 AAAAother somebody")
    os.chown(folder, uid, -1)
    assert join_machine(machine, manual, new_token(manual)["token"], "--user", "ops").returncode == 0
    lines = (folder / "authorized_keys").read_text().splitlines()
    assert lines[0] == "ssh-ed25519 AAAAother somebody" and len(lines) == 2
    assert on(machine, manual, "cluster", "leave").returncode == 0
    assert (folder / "authorized_keys").read_text().splitlines() == lines[:1] and "ops:" in (machine / "etc/passwd").read_text()


def test_a_folder_that_leads_elsewhere_is_not_written_into(manual, machine, tmp_path):
    subprocess.run(["useradd", "--prefix", str(machine), "--create-home", "--home-dir", "/home/ops", "--no-user-group", "ops"], check=True)
    (machine / "home/ops/.ssh").symlink_to(tmp_path)
    refused = join_machine(machine, manual, new_token(manual)["token"], "--user", "ops")
    assert refused.returncode == 65 and list(tmp_path.iterdir()) == []
    assert manual.get("/v1/nodes").ok()["nodes"] == []


def test_a_machine_without_ssh_server_is_refused_at_once(manual, machine):
    (machine / "etc/ssh/ssh_host_ed25519_key.pub").unlink()
    refused = join_machine(machine, manual, new_token(manual)["token"])
    assert refused.returncode == 65 and "SSH" in refused.stderr


def test_a_token_never_travels_in_the_clear(manual, machine):
    refused = on(machine, manual, "cluster", "join", "http://192.0.2.1:9007", "--token", new_token(manual)["token"])
    assert refused.returncode == 64 and "https" in refused.stderr


def test_the_machine_talks_only_to_the_controller_that_its_token_names(stopped, machine):
    stopped.config["listen"]["tls"] = True
    stopped.start()
    token = new_token(stopped)["token"]
    authority = token.split("-")[2]
    assert authority == stopped.get("/v1/version").ok()["ca_fingerprint"]
    before, listed = tree(machine), nodes(stopped)
    line = ("cluster", "join", "https://127.0.0.1:%d" % stopped.port, "--addr", "192.0.2.11", "--token")
    refused = on(machine, stopped, *line, token.replace(authority, "ab" * 32))
    assert refused.returncode not in (0, 64, 70) and refused.stderr.count("error: ") == 1 and authority in refused.stderr, refused.stderr
    assert tree(machine) == before and nodes(stopped) == listed and "/v1/join " not in stopped.log()
    joined = on(machine, stopped, *line, token)
    assert joined.returncode == 0, joined.stderr
    assert on(machine, stopped, "cluster", "leave").returncode in (0, 65)


def test_a_machine_that_is_member_elsewhere_is_refused(manual, machine):
    token = new_token(manual, uses=5)["token"]
    assert join_machine(machine, manual, token).returncode == 0
    record = machine / "etc/clusterctl/joined.json"
    record.write_text(json.dumps(dict(json.loads(record.read_text()), cluster="another")))
    before, listed = tree(machine), nodes(manual)
    refused = join_machine(machine, manual, token)
    assert refused.returncode == 65 and "cluster leave" in refused.stderr
    assert tree(machine) == before and nodes(manual) == listed


# -- stopped in between --

class Between:
    """Stands between a machine and its daemon, and may keep an answer back or give one of its own."""

    def __init__(self, daemon, instead):
        self.seen, self.asked, self.go_on = [], threading.Event(), threading.Event()
        between = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                between.seen.append(json.loads(body))
                own = instead(between, len(between.seen))
                answer = None if own else daemon.ask("POST", self.path, body.decode(), {"Content-Type": "application/json"}, via="tcp")
                status, headers, text = own or (answer.status, {"Content-Type": answer.headers["Content-Type"]}, answer.body)
                try:
                    self.send_response(status)
                    for name, value in dict(headers, **{"Content-Length": str(len(text.encode()))}).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


def silent(between, number):
    """The first request is answered, the second one is not."""
    if number == 1:
        return None
    between.asked.set()
    between.go_on.wait(60)
    return 503, {"Content-Type": "text/plain"}, "late"


def begin(machine, daemon, *arguments):
    environment = {**daemon.environment(), "PATH": "%s/bin:%s" % (machine, os.environ["PATH"]), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket}
    return subprocess.Popen([str(BINARY), *arguments, "--root", str(machine)], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def stopped_join(machine, daemon, token, how):
    """A join that gets a signal while its controller is slow; what it said at the end."""
    with Between(daemon, silent) as between:
        process = begin(machine, daemon, "cluster", "join", between.url, "--token", token, "--addr", "192.0.2.11")
        assert between.asked.wait(30)
        assert (machine / "etc/sudoers.d/clusterctl-clusterctl").exists() and (machine / "home/clusterctl/.ssh/authorized_keys").exists()
        process.send_signal(how)
        out, err = process.communicate(timeout=30)
        return process.returncode, out + err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_join_that_is_stopped_is_undone_at_once(manual, machine, how):
    token = new_token(manual)["token"]
    before, listed = tree(machine), nodes(manual)
    code, said = stopped_join(machine, manual, token, how)
    assert code == 65 and "stopped by a signal" in said and said.count("error: ") == 1
    assert tree(machine) == before and nodes(manual) == listed
    assert "nothing to do" in on(machine, manual, "cluster", "leave").stdout


@pytest.mark.parametrize("way", [("cluster", "leave"), ("cluster", "leave", "--local")])
def test_what_a_killed_join_left_is_found_by_leave(manual, machine, way):
    before = tree(machine)
    code, _ = stopped_join(machine, manual, new_token(manual)["token"], signal.SIGKILL)
    assert code == -signal.SIGKILL and (machine / "home/clusterctl").exists()
    assert stat.S_IMODE((machine / "etc/clusterctl/joining.json").stat().st_mode) == 0o600
    left = on(machine, manual, *way)
    assert left.returncode == 0 and "undone: " in left.stdout, left.stderr
    assert tree(machine) == before
    assert "nothing to do" in on(machine, manual, *way).stdout


def test_what_a_killed_join_left_is_undone_by_the_next_one(manual, machine):
    token = new_token(manual, uses=5)["token"]
    before = tree(machine)
    stopped_join(machine, manual, token, signal.SIGKILL)
    killed = tree(machine)
    shown = join_machine(machine, manual, token, "--dry-run")
    assert shown.returncode == 0 and "broke off" in shown.stderr and tree(machine) == killed
    # Undone also when the next one is refused.
    assert join_machine(machine, manual, token, "--host-group", "none-such").returncode == 64 and tree(machine) == before
    stopped_join(machine, manual, token, signal.SIGKILL)
    assert join_machine(machine, manual, token).returncode == 0
    assert not (machine / "etc/clusterctl/joining.json").exists()
    assert on(machine, manual, "cluster", "leave").returncode == 0 and tree(machine) == before


def test_a_join_that_was_killed_at_its_very_end_has_joined(manual, machine):
    assert join_machine(machine, manual, new_token(manual)["token"]).returncode == 0
    joined = tree(machine)
    attempt = json.loads((machine / "etc/clusterctl/joined.json").read_text())["attempt"]
    (machine / "etc/clusterctl/joining.json").write_text(json.dumps(dict(
        v=1, attempt=attempt, server="http://127.0.0.1:1", user="clusterctl", public_key="ssh-ed25519 AAAA", makes_user=True, writes_sudo=True, adds_key=True)))
    shown = join_machine(machine, manual, new_token(manual)["token"], "--dry-run")
    assert shown.returncode == 0 and tree(machine) == joined


def test_two_joins_at_once_do_not_undo_each_other(manual, machine):
    token = new_token(manual, uses=5)["token"]
    with Between(manual, silent) as between:
        first = begin(machine, manual, "cluster", "join", between.url, "--token", token, "--addr", "192.0.2.11")
        assert between.asked.wait(30)
        during = tree(machine)
        for command in (("cluster", "leave"), ("cluster", "join", between.url, "--token", token, "--addr", "192.0.2.11")):
            refused = on(machine, manual, *command)
            assert refused.returncode == 65 and "another clusterctl" in refused.stderr and tree(machine) == during
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)


def test_a_join_that_cannot_be_written_down_is_taken_back_on_both_sides(manual, machine):
    before, listed = tree(machine), nodes(manual)
    in_the_way = machine / "etc/clusterctl/joined.json"
    with Between(manual, lambda between, number: in_the_way.mkdir() if number == 2 else None) as between:
        failed = on(machine, manual, "cluster", "join", between.url, "--token", new_token(manual)["token"], "--addr", "192.0.2.11")
        assert failed.returncode != 0 and failed.stderr.count("error: ") == 1 and len(between.seen) == 3
    in_the_way.rmdir()
    in_the_way.parent.rmdir()
    assert tree(machine) == before and nodes(manual) == listed


def test_another_user_does_not_come_besides_the_first(manual, machine):
    token = new_token(manual, uses=5)["token"]
    assert join_machine(machine, manual, token, "--user", "ops").returncode == 0
    joined = tree(machine)
    refused = join_machine(machine, manual, token, "--user", "other")
    assert refused.returncode == 65 and "ops" in refused.stderr and tree(machine) == joined
    assert join_machine(machine, manual, token).returncode == 0 and not (machine / "home/clusterctl").exists()


def test_a_user_that_cannot_be_made_is_refused_before_anything(manual, machine):
    token = new_token(manual)["token"]
    before = tree(machine)
    for more in ((), ("--dry-run",)):
        refused = join_machine(machine, manual, token, "--user", "a" * 40, *more)
        assert refused.returncode == 64 and "32" in refused.stderr and tree(machine) == before
    assert manual.get("/v1/join-tokens").ok()["tokens"][0]["used"] == 0


def command_line(process):
    return pathlib.Path("/proc/%d/cmdline" % process.pid).read_bytes().decode()


def test_no_token_stays_in_the_process_list(manual, machine, tmp_path):
    token = new_token(manual, uses=5)["token"]
    secret = token.rsplit("-", 1)[1]
    (tmp_path / "token").write_text(token + "\n")
    for given in (["--token", token], ["--token=" + token], ["--token", "@%s" % (tmp_path / "token")]):
        with Between(manual, silent) as between:
            process = begin(machine, manual, "cluster", "join", between.url, *given, "--addr", "192.0.2.11")
            assert between.asked.wait(30)
            shown = command_line(process)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            assert secret not in shown and "CCTJ" not in shown and "192.0.2.11" in shown
            assert between.seen[0]["token"] == token
    piped = subprocess.run([str(BINARY), "cluster", "join", "http://127.0.0.1:%d" % manual.port, "--token", "-", "--addr", "192.0.2.11", "--root", str(machine)],
                           input=token + "\n", env={"PATH": "%s/bin:%s" % (machine, os.environ["PATH"])}, capture_output=True, text=True, timeout=60)
    assert piped.returncode == 0, piped.stderr


def test_no_secret_variable_stays_in_the_process_list(daemon, tmp_path):
    """The commands wait for a server that never answers."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(daemon.directory / "mute"))
    listener.listen()
    for given in (["global", "set", "registry_password=hunter2"], ["global", "set", "-e", '{"registry_password": "hunter2"}'],
                  ["global", "set", '--extra-vars={"api_token": "hunter2"}']):
        process = subprocess.Popen([str(BINARY), "--server", "unix:%s" % (daemon.directory / "mute"), *given], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection, _ = listener.accept()
        shown = command_line(process)
        process.kill()
        process.wait()
        connection.close()
        assert "hunter2" not in shown and "global\0set" in shown
    listener.close()


def test_a_join_waits_for_its_turn(manual, machine):
    """Behind one address the sixteenth machine is told to come again."""
    def busy(between, number):
        if number in (1, 3):
            return 429, {"Content-Type": "application/problem+json", "Retry-After": "1"}, '{"code": "too_many", "detail": "too many requests"}'
        return None
    with Between(manual, busy) as between:
        joined = on(machine, manual, "cluster", "join", between.url, "--token", new_token(manual)["token"], "--addr", "192.0.2.11")
        assert joined.returncode == 0 and joined.stderr.count("waiting 1 s") == 2 and len(between.seen) == 4


def test_it_does_not_wait_for_ever(manual, machine):
    before = tree(machine)
    with Between(manual, lambda between, number: (429, {"Content-Type": "application/problem+json", "Retry-After": "3600"},
                                                  '{"code": "too_many", "detail": "too many requests"}')) as between:
        refused = on(machine, manual, "cluster", "join", between.url, "--token", new_token(manual)["token"], "--addr", "192.0.2.11")
        assert refused.returncode not in (0, 70) and "too many" in refused.stderr and len(between.seen) == 1
    assert tree(machine) == before


# -- leaving --

def test_a_machine_that_nobody_accepted_leaves_without_a_trace(manual, machine):
    before = tree(machine)
    assert join_machine(machine, manual, new_token(manual)["token"]).returncode == 0
    left = on(machine, manual, "cluster", "leave")
    assert left.returncode == 0, left.stderr
    assert tree(machine) == before and manual.get("/v1/nodes").ok()["nodes"] == []
    assert on(machine, manual, "cluster", "leave").returncode == 0


def test_an_accepted_machine_asks_and_the_operator_decides(manual, machine):
    assert join_machine(machine, manual, new_token(manual)["token"]).returncode == 0
    manual.cli("node", "accept", "n1", "-g", "service-worker")
    joined = tree(machine)
    for _ in range(2):
        asked = on(machine, manual, "cluster", "leave")
        assert asked.returncode == 65 and "node rm n1" in asked.stderr and tree(machine) == joined
    assert "LeaveRequested" in manual.cli("node", "ls").stdout
    assert manual.cli("node", "rm", "n1").returncode == 0
    assert on(machine, manual, "cluster", "leave").returncode == 0
    assert not (machine / "home/clusterctl").exists() and not (machine / "etc/clusterctl").exists()


def test_leaving_a_controller_that_is_gone(manual, machine):
    assert join_machine(machine, manual, new_token(manual)["token"]).returncode == 0
    manual.stop()
    lost = on(machine, manual, "cluster", "leave")
    assert lost.returncode == 69 and "--local" in lost.stderr and (machine / "home/clusterctl").exists()
    assert on(machine, manual, "cluster", "leave", "--local").returncode == 0
    assert not (machine / "home/clusterctl").exists()
