"""`cluster init`: this machine becomes the controller."""

import re
import signal
import stat
import subprocess

import pytest

from harness import BINARY
from joining import UUID, announcement, host_key, join, new_token, nodes, on, tree
from test_join_machine import stopped_join


def init(daemon, *more, **options):
    return daemon.cli("cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), *more, **options)


def test_init_says_how_to_start_and_goes_on_when_it_runs(stopped):
    """The configuration of the test stands there already: init takes it as it is."""
    stopped.write_config()
    waiting = init(stopped, "--no-start")
    assert waiting.returncode == 69 and "serve --config %s" % stopped.config_file in waiting.stderr
    stopped.start()
    ready = init(stopped, "--no-start")
    assert ready.returncode == 0, ready.stderr
    assert re.search(r"clusterctl cluster join http://127\.0\.0\.1:\d+ --token CCTJ-1-\S+", ready.stdout)
    assert "no other machine reaches 127.0.0.1:0" in ready.stderr and "0.0.0.0:9007" in ready.stderr and str(stopped.config_file) in ready.stderr


def test_a_new_cluster_looks_at_its_machines_whoever_starts_its_daemon(stopped):
    stopped.write_config()
    assert init(stopped, "--no-start").returncode == 69
    stopped.start()
    assert stopped.get("/v1/cluster").ok()["accept_policy"] == "manual", "before init was there again"
    assert "wait for clusterctl node accept" in init(stopped, "--no-start").stdout
    assert join(stopped, announcement(new_token(stopped)["token"], 2)).ok()["acceptance"] == "pending"
    stopped.send("PATCH", "/v1/cluster", {"accept_policy": "always"}).ok()
    stopped.restart()
    assert stopped.get("/v1/cluster").ok()["accept_policy"] == "always"


def test_init_does_not_change_a_cluster_that_is_there(daemon):
    assert "accepted at once" in init(daemon, "--no-start").stdout
    daemon.stop()
    assert init(daemon, "--no-start").returncode == 69
    daemon.start()
    assert daemon.get("/v1/cluster").ok()["accept_policy"] == "always"
    assert init(daemon, "--no-start", "--accept-policy", "manual").returncode == 0, "said in so many words"
    assert daemon.get("/v1/cluster").ok()["accept_policy"] == "manual"


def test_init_beside_a_cluster_that_runs_is_refused(daemon, tmp_path):
    wrong = daemon.cli("cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(tmp_path / "wrong"), "--no-start")
    new = daemon.cli("cluster", "init", "--config", str(tmp_path / "c.yml"), "--state-dir", str(tmp_path / "wrong"), "--socket", str(daemon.socket), "--no-start")
    for refused in (wrong, new):
        assert refused.returncode == 65 and "its state is not in" in refused.stderr, refused.stderr
    assert list(tmp_path.iterdir()) == [] and daemon.get("/v1/cluster").ok()["accept_policy"] == "always"


@pytest.mark.parametrize("option, value", [("--listen", "foo"), ("--listen", ":9007"), ("--listen", "127.0.0.1:99999"), ("--listen", "example.com:9007"),
                                           ("--listen", "192.0.2.77:9007"), ("--cluster-name", "a b"), ("--socket", "rel"), ("--state-dir", "rel"),
                                           ("--config", "rel.yml"), ("--addr", 'a" b'), ("--addr", "a#b")])
def test_init_looks_at_everything_before_it_writes(tmp_path, option, value):
    given = {"--config": str(tmp_path / "etc/c.yml"), "--state-dir": str(tmp_path / "state"), "--socket": str(tmp_path / "s"), "--listen": "127.0.0.1:0", option: value}
    command = [str(BINARY), "cluster", "init", "--no-start"] + [word for pair in given.items() for word in pair]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert refused.returncode == 64 and refused.stderr.count("error: ") == 1, refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_says_that_a_port_is_in_use(daemon, tmp_path):
    command = [str(BINARY), "cluster", "init", "--no-start", "--config", str(tmp_path / "c.yml"), "--state-dir", str(tmp_path / "state"), "--socket",
               str(tmp_path / "s"), "--listen", "127.0.0.1:%d" % daemon.port]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 65 and "in use" in refused.stderr and list(tmp_path.iterdir()) == []


def test_init_writes_what_is_missing_and_leaves_what_is_there(tmp_path):
    config, state = tmp_path / "etc/clusterctl.yml", tmp_path / "state"
    command = [str(BINARY), "cluster", "init", "--config", str(config), "--state-dir", str(state), "--socket", str(tmp_path / "s"), "--listen", "127.0.0.1:0",
               "--no-start"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert first.returncode == 69 and "wrote" in first.stdout, first.stderr
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "etc/id_ed25519").stat().st_mode) == 0o600
    checked = subprocess.run([str(BINARY), "serve", "--config", str(config), "--check-config"], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    before = tree(tmp_path)
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).returncode == 69
    assert tree(tmp_path) == before
    for old, new, key in (("127.0.0.1:0", "127.0.0.1:1", "listen.tcp"), (str(state), str(tmp_path / "other"), "state_dir"),
                          (str(tmp_path / "s"), str(tmp_path / "t"), "listen.unix"), ("--no-start", "--cluster-name=other", "cluster_name")):
        refused = subprocess.run([w if w != old else new for w in command], capture_output=True, text=True, timeout=60)
        assert refused.returncode == 65 and key in refused.stderr and tree(tmp_path) == before


def test_init_makes_its_own_machine_a_node_that_waits_for_the_flag(daemon, machine):
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
    addr = own[0] if own else "192.0.2.99"
    done = on(machine, daemon, "cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), "--no-start", "--node", "m1",
              "--addr", addr, "--host-group", "service-master", "--availability", "drain")
    assert done.returncode == 0, done.stderr
    assert "clusterctl node commission m1 --host-group=service-master --controller-host" in done.stdout
    node = daemon.node("m1")
    assert node["spec"]["addr"] == addr and node["spec"]["availability"] == "drain" and node["spec"]["acceptance"] == "accepted"
    assert node["spec"]["ssh"]["host_key"] == host_key(1)
    assert (machine / "home/clusterctl/.ssh/authorized_keys").exists()
    if own:
        daemon.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["m1"]}).problem(422)
    again = on(machine, daemon, "cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), "--no-start", "--node", "m1",
               "--addr", addr)
    assert again.returncode == 0 and len(daemon.get("/v1/nodes").ok()["nodes"]) == 1
    assert "--host-group=service-master" in again.stdout
    for more in (("-g", "service-worker"), ("--availability", "active")):
        before = nodes(daemon)
        refused = on(machine, daemon, "cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), "--no-start", "--node", "m1",
                     "--addr", addr, *more)
        assert refused.returncode == 65 and "service-master" in refused.stderr and "drain" in refused.stderr and "next:" not in refused.stdout
        assert nodes(daemon) == before
    # A way in that is gone is made again.
    (machine / "etc/sudoers.d/clusterctl-clusterctl").unlink()
    assert on(machine, daemon, "cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), "--no-start", "--node", "m1", "--addr",
              addr).returncode == 0
    assert (machine / "etc/sudoers.d/clusterctl-clusterctl").exists() and not (machine / "etc/clusterctl").exists()


def test_init_undoes_what_a_killed_join_left(daemon, machine):
    stopped_join(machine, daemon, new_token(daemon)["token"], signal.SIGKILL)
    done = on(machine, daemon, "cluster", "init", "--config", str(daemon.config_file), "--state-dir", str(daemon.state_dir), "--no-start", "--node", "m1",
              "--addr", "192.0.2.99")
    assert done.returncode == 0 and "undone: " in done.stderr and "done: create user clusterctl" in done.stdout, done.stderr
    assert (machine / "home/clusterctl/.ssh/authorized_keys").exists() and not (machine / "etc/clusterctl").exists()


def test_the_whole_session_on_the_double(stopped, machine):
    """From init to leave: init, join, pending, accept, commission, decommission, rm, leave."""
    stopped.write_config()
    stopped.start()
    shown = init(stopped, "--no-start", "--accept-policy", "manual").stdout
    url, token = re.search(r"cluster join (\S+) --token (\S+)", shown).groups()
    line = url.replace(":0", ":%d" % stopped.port)
    stopped.double.orders(hardware={"n1": {"serial": "FCH1", "uuid": UUID % 1, "macs": ["00:25:b5:00:00:01"]}})
    joined = on(machine, stopped, "cluster", "join", line, "--token", token, "--addr", "192.0.2.11")
    assert joined.returncode == 0, joined.stderr
    assert "waits for acceptance" in stopped.cli("node", "ls").stdout
    for command in (("node", "accept", "n1", "--host-group", "service-master"), ("node", "commission", "n1", "-y"), ("node", "drain", "n1", "-y"),
                    ("node", "activate", "n1", "-y"), ("node", "decommission", "n1", "-y"), ("node", "rm", "n1")):
        done = stopped.cli(*command)
        assert done.returncode == 0, (command, done.stderr)
    assert on(machine, stopped, "cluster", "leave").returncode == 0
    assert stopped.get("/v1/nodes").ok()["nodes"] == []
