"""Completion in the shells themselves, with names the daemon knows now; without a daemon it is quick and silent."""

import shutil
import socket
import subprocess
import time

import pytest

from harness import BINARY


def offered(daemon, *words, env=None):
    done = daemon.cli("__complete", *words, env=env)
    assert done.returncode == 0 and done.stderr == "", done
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.fixture
def known(daemon):
    daemon.add("n1", "service-worker", labels={"rack": "r1"})
    daemon.add("n2", labels={"rack": "r2", "zone": "east"})
    daemon.add("m1", "service-master")
    return daemon


def test_live_names(known):
    job = known.submit("check", nodes=["n1"])["id"]
    for words, names in (
            (["node", "inspect", ""], ["m1", "n1", "n2"]),
            (["node", "inspect", "n"], ["n1", "n2"]),
            (["node", "inspect", "n1"], ["n1"]),
            (["node", "inspect", "n1", "n"], ["n2"]),  # what is there already is not offered again
            (["nodes", "rm", "n"], ["n1", "n2"]),
            (["node", "add", ""], []),  # a new name is nobody's
            (["node", "ls", "--selector", ""], ["rack=", "zone="]),
            (["node", "ls", "-l", "rack="], ["rack=r1", "rack=r2"]),
            (["node", "label", "n1", "z"], ["zone="]),
            (["node", "commission", "--host-group", ""], ["service-master", "service-worker"]),
            (["node", "commission", "--host-group=service-m"], ["--host-group=service-master"]),
            (["node", "add", "x", "--capabilities", "storage,ucp"], ["storage,ucp-controller"]),
            (["job", "inspect", "l"], ["last"]),
            (["job", "wait", job[:10]], [job]),
            (["-o", "json", "job", "ls", "--node", "m"], ["m1"]),
            (["job", "ls", "--state", "s"], ["succeeded"]),
            (["node", "ls", "--filter", "role="], ["role=manager", "role=worker"]),
            (["node", "inspect", "--", "n"], ["n1", "n2"]),
            (["plan", "-f", ""], [":files"]),
            (["nonsense", ""], []),
            (["node", "nonsense", ""], [])):
        assert offered(known, *words) == names, words
    assert "--no-drain" in offered(known, "node", "update", "--")
    assert "--json" not in offered(known, "--json", "node", "ls", "--")
    assert "--filter" in offered(known, "node", "ls", "--filter", "role=worker", "--f")


def test_many_nodes(daemon):
    """Asked is only for those that can fit."""
    for i in range(250):
        daemon.add("a%03d" % i)
    daemon.add("b1")
    assert offered(daemon, "node", "inspect", "b") == ["b1"]
    assert offered(daemon, "node", "inspect", "a24") == ["a24%d" % i for i in range(10)]


def test_names_of_the_server_that_the_line_names(known, stopped):
    other = {"CLUSTERCTL_SERVER": "unix:/nonexistent.sock"}
    assert offered(known, "node", "inspect", "n", env=other) == []
    assert offered(known, "--server", "unix:%s" % known.socket, "node", "inspect", "n", env=other) == ["n1", "n2"]


def test_a_daemon_that_is_down_or_hangs_is_quick_and_silent(stopped):
    hanging = socket.socket()
    hanging.bind(("127.0.0.1", 0))
    hanging.listen(5)
    address = "http://127.0.0.1:%d" % hanging.getsockname()[1]
    for server in ("unix:/nonexistent.sock", address, ",".join([address] * 4), "http://192.0.2.1:9", "nonsense://x"):
        begin = time.monotonic()
        assert offered(stopped, "node", "inspect", "n", env={"CLUSTERCTL_SERVER": server}) == []
        # A second (unit/cli/lists_test.cpp), and what a busy machine takes to start a program; unbounded it would be a minute.
        assert time.monotonic() - begin < 5, server
    # What needs no daemon is there.
    assert offered(stopped, "node", "li", env={"CLUSTERCTL_SERVER": address}) == []
    assert offered(stopped, "node", "ins", env={"CLUSTERCTL_SERVER": address}) == ["inspect"]
    hanging.close()


# ---- the shells ----

@pytest.fixture
def shell(known):
    """Runs a script in a shell that finds clusterctl and its server."""
    (known.directory / "bin").mkdir()
    (known.directory / "bin/clusterctl").symlink_to(BINARY)

    def run(name, script, *arguments):
        assert shutil.which(name), "%s is not installed: scripts/setup does it" % name
        env = {**known.environment(), "CLUSTERCTL_SERVER": "unix:%s" % known.socket, "PATH": "%s/bin:/usr/bin:/bin" % known.directory}
        done = subprocess.run([name, *arguments, "-c", script], env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=known.directory)
        assert done.stderr == "", done
        return done.stdout.split()

    return run


LINES = {
    "clusterctl node insp": ["inspect"],
    "clusterctl node inspect n": ["n1", "n2"],
    "clusterctl node inspect m1 n2 ": ["n1"],
    "clusterctl node commission --host-group=service-m": ["--host-group=service-master"],
    "clusterctl node ls --filter role=w": ["role=worker"],
    "clusterctl job ls --state su": ["succeeded"],
    "clusterctl nonsense ": [],
}


@pytest.mark.parametrize("line", LINES)
def test_bash(shell, line):
    offered = shell("bash", "source <(clusterctl completion bash); COMP_LINE='%s' COMP_POINT=%d; _clusterctl; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (line, len(line)), "--norc")
    # readline has taken what stands before = and : already.
    assert offered == [word.split("=")[-1] for word in LINES[line]]


@pytest.mark.parametrize("line", LINES)
def test_zsh(shell, line):
    words = line.split(" ")
    offered = shell("zsh", "compdef() { : }; compadd() { local kind=${@[-1]}; print -l -- ${(P)kind} }; source <(clusterctl completion zsh); words=(%s); CURRENT=%d; _clusterctl"
                    % (" ".join("'%s'" % word for word in words), len(words)), "-f")
    assert offered == LINES[line]


@pytest.mark.parametrize("line", LINES)
def test_fish(shell, line):
    offered = shell("fish", "clusterctl completion fish | source; complete -C '%s' | string split -f 1 \\t" % line, "--no-config")
    assert sorted(offered) == LINES[line]


def test_files_where_files_are_meant(shell, known):
    (known.directory / "fleet.yml").touch()
    script = "source <(clusterctl completion bash); COMP_LINE='clusterctl plan -f fle' COMP_POINT=22; _clusterctl; echo \"${COMPREPLY[@]}\""
    assert shell("bash", script, "--norc") == ["fleet.yml"]
    assert shell("fish", "clusterctl completion fish | source; complete -C 'clusterctl plan -f fle'", "--no-config") == ["fleet.yml"]


def test_only_what_a_command_can_use_is_offered(cluster):
    cluster.add("late", acceptance="pending")

    def offered(*words):
        return {line.split("\t")[0] for line in cluster.cli("__complete", *words, "").stdout.splitlines()}

    assert offered("node", "accept") == {"late"}
    assert "late" not in offered("node", "decommission") and "w1" in offered("node", "decommission")
    assert offered("node", "rm") == {"late"}
    cluster.send("POST", "/v1/tokens", {"name": "ci"}).ok(201)
    joined = cluster.send("POST", "/v1/join-tokens", {}).ok(201)["id"]
    assert offered("cluster", "token", "revoke") == {"ci"}
    assert offered("cluster", "token", "revoke", "--join") == {joined}
