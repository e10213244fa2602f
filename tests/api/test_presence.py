"""Who is there: the built-in prober against listeners that say what an SSH server says first."""

import pathlib
import sys

import pytest

from harness import TOP, wait_for

sys.path.insert(0, str(pathlib.Path(TOP) / "tests/doubles"))
from ssh_banners import Banners  # noqa: E402


@pytest.fixture(name="probing")
def daemon_that_probes(daemon):
    daemon.stop()
    daemon.config["monitor"] = {"interval": 1, "timeout": 5, "misses": 2}
    return daemon.start()


def presence(daemon):
    return {n["name"]: n["status"]["presence"] for n in daemon.get("/v1/nodes").ok()["nodes"]}


@pytest.mark.parametrize("text, code", [
    ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @", "host_key_changed"),
    ("root@10.0.0.1: Permission denied (publickey).", "ssh_auth_refused"),
    ("Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa", "ssh_no_common_algorithm")])
def test_who_answers_and_refuses_has_not_disappeared(fleet, text, code):
    fleet.commission("m1")
    fleet.double.orders(check="unreachable:m1:" + text)
    job = fleet.wait(fleet.submit("check", nodes=["m1"])["id"], "failed")
    assert job["nodes"][0]["code"] == code
    assert fleet.node("m1")["status"]["presence"] == "Discovered" and len(fleet.node("m1")["status"]["fence_runs"]) == 1
    fleet.double.orders()
    fleet.wait(fleet.submit("check", nodes=["m1"])["id"], "succeeded")
    assert fleet.node("m1")["status"]["conditions"] == [] == fleet.node("m1")["status"]["fence_runs"], "it was not away"


def test_nodes_come_and_go(probing):
    addresses = ["127.9.0.%d" % i for i in range(1, 5)]
    machines = Banners(addresses)
    for i, address in enumerate(addresses):
        probing.add("n%d" % i, addr=address, ssh={"port": machines.port})
    probing.add("jump", addr="127.9.0.9", ssh={"jump": "ops@127.0.0.1"})
    there = {"n%d" % i: "Discovered" for i in range(4)}
    wait_for(lambda: presence(probing) == dict(there, jump="Unknown"), "all to be discovered")
    version = probing.node("n0")["resource_version"]
    machines.down = {addresses[0]}
    wait_for(lambda: presence(probing)["n0"] == "Disappeared", "n0 to disappear")
    assert probing.node("n0")["status"]["last_seen"]
    machines.down = set()
    wait_for(lambda: presence(probing)["n0"] == "Discovered", "n0 to come back")
    told = [e["message"] for e in probing.get("/v1/events").ok()["events"] if e["type"] == "node.presence" and e["node"] == "n0"]
    assert told == ["Unknown → Discovered", "Discovered → Disappeared", "Disappeared → Discovered"]
    assert probing.node("n0")["resource_version"] == version, "being there is no change of the record"
    assert probing.get("/v1/status").ok()["monitor"]["presence"] == {"Discovered": 4, "Disappeared": 0, "Unknown": 1}
    machines.stop()


def test_a_controller_that_is_cut_off_says_so_and_does_nothing(probing):
    addresses = ["127.9.1.%d" % i for i in range(1, 8)]
    machines = Banners(addresses)
    for i, address in enumerate(addresses):
        probing.add("n%d" % i, "service-master", addr=address, ssh={"port": machines.port})
    wait_for(lambda: set(presence(probing).values()) == {"Discovered"}, "all to be discovered")
    machines.down = set(addresses)
    wait_for(lambda: probing.get("/v1/status").ok()["monitor"]["isolated_since"], "the isolation to be noticed")
    assert set(presence(probing).values()) == {"Discovered"}, "what was known stays"
    status = probing.get("/v1/status").ok()
    assert [p["code"] for p in status["problems"]] == ["CONTROLLER_ISOLATED"]
    assert probing.get("/readyz").status == 200
    assert "network" in probing.cli("status").stdout
    plan = probing.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["n0"], "dry_run": True}).ok()["plan"]
    assert "CONTROLLER_ISOLATED" in [w["code"] for w in plan["warnings"]]
    assert probing.get("/v1/jobs").ok()["jobs"] == []
    machines.down = set(addresses[:3])
    wait_for(lambda: probing.get("/v1/status").ok()["monitor"]["isolated_since"] is None, "the majority to be back")
    wait_for(lambda: sorted(presence(probing).values()) == ["Disappeared"] * 3 + ["Discovered"] * 4, "the others to be gone")
    types = [e["type"] for e in probing.get("/v1/events").ok()["events"] if e["type"].startswith("monitor.")]
    assert types == ["monitor.isolated", "monitor.connected"]
    machines.stop()


def test_a_machine_reported_elsewhere_is_followed_when_its_old_place_falls_silent(probing):
    machines = Banners(["127.9.2.1", "127.9.2.2", "127.9.2.3"])
    def discovered(addr):
        return probing.send("POST", "/v1/monitor/event", {"name": "discovered", "nodes": [{"name": "n1", "addr": addr, "serial": "FCH1"}]}).ok()["nodes"][0]
    for name, addr in (("n2", "127.9.2.2"), ("n3", "127.9.2.3")):
        probing.add(name, addr=addr, ssh={"port": machines.port})
    probing.add("n1", addr="127.9.2.1", ssh={"port": machines.port})
    wait_for(lambda: set(presence(probing).values()) == {"Discovered"}, "all to be discovered")
    assert discovered("127.9.2.1")["finding"] == "known"
    machines.listen("127.9.2.8")
    assert discovered("127.9.2.8")["finding"] == "conflict", "both live"
    machines.down = {"127.9.2.1"}
    wait_for(lambda: probing.node("n1")["spec"]["addr"] == "127.9.2.8", "the node to follow its machine")
    assert probing.node("n1")["status"]["conditions"] == [] and presence(probing)["n1"] == "Discovered"
    machines.stop()


@pytest.mark.parametrize("monitor, named", [({"interval": 0}, "monitor.interval"), ({"interval": "15s"}, "interval"), ({"misses": 0}, "monitor.misses"),
                                            ({"enabled": "yes"}, "enabled"), ({"intervall": 5}, "interval"), ({"timeout": 100}, "monitor.timeout"), (5, "monitor")])
def test_mistakes_in_the_settings(daemon, monitor, named):
    daemon.stop()
    daemon.config["monitor"] = monitor
    _, told = daemon.fails_to_start(10)
    assert named in told
