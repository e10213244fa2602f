"""The command line against a real daemon: exit codes and what scripts rely on."""

import json
import os
import subprocess

from harness import BINARY, wait_for


def test_exit_codes(daemon):
    assert daemon.cli("node", "ls").returncode == 0
    assert daemon.cli("node", "inspect", "nobody").returncode == 65
    assert daemon.cli("nonsense").returncode == 64
    assert daemon.cli("node", "ls", "--nonsense").returncode == 64
    assert daemon.cli("node", "ls", env={"CLUSTERCTL_SERVER": "unix:/nonexistent.sock"}).returncode == 69
    server = {"CLUSTERCTL_SERVER": "http://127.0.0.1:%d" % daemon.port}
    assert daemon.cli("node", "ls", env=server).returncode == 77
    assert daemon.cli("node", "ls", env=dict(server, CLUSTERCTL_TOKEN_FILE=str(daemon.directory / "token"))).returncode == 0


def test_an_unknown_command_has_no_help(stopped):
    asked = stopped.cli("nonsense", "--help")
    assert asked.returncode == 64 and "nonsense" in asked.stderr


def test_output_that_cannot_be_written_is_no_success(daemon):
    with open("/dev/full", "w") as full:
        lost = subprocess.run([str(BINARY), "node", "ls"], env=daemon.environment() | {"CLUSTERCTL_SERVER": "unix:%s" % daemon.socket},
                              stdout=full, stderr=subprocess.PIPE, text=True)
    assert lost.returncode == 74 and "No space left" in lost.stderr


def test_a_single_problem_is_told_once(fleet):
    refused = fleet.cli("node", "commission", "w1", "--yes")
    assert refused.returncode == 65
    lines = [line for line in refused.stderr.splitlines() if line.strip()]
    assert len(set(lines)) == len(lines) and refused.stderr.count("hint:") == 1, refused.stderr


def test_errors_are_one_line_and_a_hint(daemon):
    failed = daemon.cli("node", "inspect", "nobody")
    assert failed.stdout == "" and "nobody" in failed.stderr and len(failed.stderr.strip().splitlines()) <= 2


def test_lists_are_stable(fleet):
    first, second = (fleet.cli("node", "ls", "-o", "json").stdout for _ in range(2))
    assert first == second
    assert [name for name in ("m1", "m2", "m3", "w1") if '"%s"' % name in first] == ["m1", "m2", "m3", "w1"]
    json.loads(first)
    assert fleet.cli("node", "ls", "-q").stdout.split() == ["m1", "m2", "m3", "w1"]
    assert len(fleet.cli("node", "ls").stdout.splitlines()) == 5


def test_without_a_terminal_changes_need_yes(fleet):
    fleet.commission("m1")
    jobs = fleet.get("/v1/jobs").ok()["jobs"]
    for work in (["node", "commission", "--host-group=service-master"], ["node", "decommission", "m1"]):
        refused = fleet.cli(*work)
        assert refused.returncode in (64, 65) and "--yes" in refused.stderr, work
    assert fleet.get("/v1/jobs").ok()["jobs"] == jobs


def test_commission_from_end_to_end(fleet):
    done = fleet.cli("node", "commission", "m1", "m2", "m3", "w1", "--yes")
    assert done.returncode == 0, done.stderr
    assert all(line.count("Allocated") == 1 for line in fleet.cli("node", "ls").stdout.splitlines()[1:])
    status = fleet.cli("status")
    assert status.returncode == 0 and "etcd" in status.stdout


def test_a_failed_job_is_exit_code_one_and_says_why(fleet):
    fleet.double.orders(site="fail-host:m1:docker:no space left on device")
    failed = fleet.cli("node", "commission", "m1", "--yes")
    assert failed.returncode == 1
    assert "no space left on device" in failed.stdout + failed.stderr
    assert "no space left on device" in fleet.cli("job", "inspect", "last").stdout


def test_detached_and_attached_again(fleet):
    fleet.double.orders(site="gate:go")
    started = fleet.cli("node", "commission", "m1", "--yes", "--detach", "-q")
    assert started.returncode == 0
    job = started.stdout.split()[-1]
    fleet.double.wait_gate("go")
    fleet.double.open_gate("go")
    assert fleet.cli("job", "wait", job).returncode == 0
    assert fleet.cli("job", "logs", job).stdout == fleet.get("/v1/jobs/%s/log" % job).body


def test_a_proxy_in_the_environment_is_not_used_for_the_daemon(daemon):
    server = {"CLUSTERCTL_SERVER": "http://127.0.0.1:%d" % daemon.port, "CLUSTERCTL_TOKEN_FILE": str(daemon.directory / "token"),
              "http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    assert daemon.cli("node", "ls", env=server).returncode == 0


def test_help_needs_no_daemon(stopped):
    shown = stopped.cli("node", "--help")
    assert shown.returncode == 0 and "commission" in shown.stdout


def shell(daemon, text):
    return subprocess.run(["bash", "-c", text, "bash", str(BINARY)], capture_output=True, text=True, timeout=30,
                          env={**daemon.environment(), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket})


def test_a_closed_standard_output_is_refused_before_anything_is_done(daemon):
    """The number would go to the first file that is opened, and the only copy of a token into it."""
    for command in ("version", "node ls", "node add n1 --addr 192.0.2.9", "cluster token create --join -q"):
        done = shell(daemon, '"$1" %s >&-' % command)
        assert done.returncode == 74 and "standard output is closed" in done.stderr, done
    assert daemon.get("/v1/nodes").ok()["nodes"] == [] and daemon.get("/v1/join-tokens").ok()["tokens"] == []
    assert shell(daemon, '"$1" node ls <&-').returncode == 0
    assert shell(daemon, '"$1" node ls 2>&-').returncode == 0


def test_a_daemon_without_streams_keeps_its_files(stopped):
    """What is said for people does not end up in the store or its lock."""
    stopped.write_config()
    process = subprocess.Popen(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", str(BINARY), "serve", "--config", str(stopped.config_file), "--state-dir",
                                str(stopped.state_dir)], env=stopped.environment(), cwd="/")
    try:
        wait_for(stopped.socket.exists, "the socket")
        links = {fd: os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in (0, 1, 2)}
        assert set(links.values()) == {"/dev/null"}, links
        assert all(b"listening" not in path.read_bytes() for path in stopped.state_dir.iterdir() if path.is_file())
    finally:
        process.terminate()
        process.wait(30)


def test_what_is_not_utf8_or_given_twice_is_refused(daemon):
    daemon.add("n1")
    before = daemon.get("/v1/nodes").body
    for command, words in ((r"""node label n1 $'b=\xff\xfe'""", "is not UTF-8"), (r"""global set $'a=\xff'""", "is not UTF-8"), ("node label n1 a=1 a=2", "a is given twice"),
                           ("global set x=1 x=2", "x is given twice"), ("node check n1 --var x=1 --var x=2", "x is given twice"),
                           ("node accept n1 --label a=1 --label a=2", "a is given twice")):
        done = shell(daemon, '"$1" ' + command)
        assert done.returncode == 64 and words in done.stderr, (command, done)
    assert daemon.get("/v1/nodes").body == before and daemon.get("/v1/globals").ok()["vars"] == {}
