import json
import pathlib

import pytest
from ansible.errors import AnsibleFilterError

TOP = pathlib.Path(__file__).resolve().parents[2]
VECTORS = json.loads((TOP / "tests" / "catalog_vectors.json").read_text())["cases"]


@pytest.fixture(scope="module")
def filters(plugin):
    return plugin("filter", "clusterctl")


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
def test_catalog_vectors(filters, case):
    catalog = case.get("catalog") or filters.read_catalog()
    filters.check_catalog(catalog)
    assert filters.services_of(catalog, case["node"], case["vars"]) == case["services"]
    if "role" in case:
        assert filters.role_of(catalog, case["node"]["host_group"], case["node"]["capabilities"]) == case["role"]


def test_every_service_of_the_catalog_has_a_role_with_all_doors(filters):
    for name in filters.read_catalog()["services"]:
        for door in ("check", "main", "upgrade", "verify", "cleanup", "forget"):
            assert (TOP / "roles" / name / "tasks" / (door + ".yml")).exists(), (name, door)


@pytest.mark.parametrize("service, text", [
    ({"on": "all", "color": 1}, "unknown key color"),
    ({"on": "all", "needs": ["later"]}, "needs later"),
    ({"on": "some"}, "`on` must be"),
    ({}, "`on` must be"),
])
def test_a_catalog_that_cannot_be_meant(filters, service, text):
    with pytest.raises(AnsibleFilterError, match=text):
        filters.check_catalog({"services": {"x": service}})


def hosts(**more):
    common = {"clusterctl_managers": ["m1", "m2", "m3"], "groups": {"clusterctl_targets": ["m1", "m2", "m3", "w1"]}}
    found = {name: dict(common, clusterctl_role="manager") for name in ("m1", "m2", "m3")}
    found["w1"] = dict(common, clusterctl_role="worker")
    for name, values in more.items():
        found.setdefault(name, dict(common)).update(values)
    return found


def test_peer_is_the_given_one(filters):
    known = hosts(w1={"clusterctl_peer": "p1"}, p1={})
    assert filters.clusterctl_peer_for(known, "w1") == "p1"


def test_peer_is_who_joined_and_first_of_all_the_initiator(filters):
    known = hosts(m1={"clusterctl_joined": True}, m3={"clusterctl_joined": True}, w1={"clusterctl_initiator": "m3"})
    assert filters.clusterctl_peer_for(known, "w1") == "m3"
    assert filters.clusterctl_peer_for(hosts(), "w1") == ""
    assert filters.clusterctl_peer_for(hosts(m1={"clusterctl_joined": True}), "m1") == ""


def test_peer_is_not_a_target_that_failed(filters):
    known = hosts(m1={"clusterctl_joined": True}, m2={"clusterctl_joined": True})
    assert filters.clusterctl_peer_for(known, "w1", alive=["m2", "w1"]) == "m2"


def test_peer_while_leaving_is_one_that_stays_then_one_that_has_not_left_yet(filters):
    everyone = {"clusterctl_leaving": ["m2", "m3"], "clusterctl_managers": ["m1"]}
    known = hosts(m2=everyone, m3=everyone)
    assert filters.clusterctl_peer_for(known, "m3", anyone=True) == "m1"
    all_leave = {"clusterctl_leaving": ["m1", "m2", "m3", "w1"], "clusterctl_managers": []}
    known = hosts(m1=all_leave, m2=all_leave, m3=dict(all_leave, clusterctl_left=True), w1=all_leave)
    assert filters.clusterctl_peer_for(known, "m2", anyone=True) == "m1"
    known["m2"]["clusterctl_left"] = True
    assert filters.clusterctl_peer_for(known, "m1", anyone=True) == ""


def test_turns_are_for_services_with_members_and_what_they_need(filters):
    catalog = {"services": {"base": {}, "etcd": {"quorum": "members", "needs": ["base"]}, "address": {"needs": ["base"]},
                            "store": {}, "registry": {"quorum": "members", "needs": ["store"]}}}
    assert filters.clusterctl_in_turn(["etcd", "address", "store", "registry"], catalog) == ["etcd", "store", "registry"]
    assert filters.clusterctl_in_turn(["address"], catalog) == []


def test_standing_back_when_the_first_manager_failed(filters):
    known = hosts(m2={"clusterctl_initiator": "m1"}, m1={"clusterctl_initiator": "m1"})
    assert filters.clusterctl_first_failed(known, "m2")
    assert not filters.clusterctl_first_failed(known, "m1")
    assert not filters.clusterctl_first_failed(known, "m2", limited=True)
    known["m1"]["clusterctl_node"] = {}
    assert filters.clusterctl_first_failed(known, "m2", limited=True)
    known["m1"]["clusterctl_joined"] = True
    assert not filters.clusterctl_first_failed(known, "m2")
    assert not filters.clusterctl_first_failed(hosts(), "m2")


def test_turns(filters):
    assert filters.clusterctl_turns(["a", "b", "c"], "c") == ["c", "a", "b"]
    assert filters.clusterctl_turns(["b", "a"]) == ["b", "a"]


def test_packages(filters, tmp_path):
    (tmp_path / "docker" / "vars").mkdir(parents=True)
    (tmp_path / "docker" / "vars" / "Debian.yml").write_text("docker_packages: [docker.io, x]\ndocker_version_package: docker.io\n")
    ask = lambda **v: filters.clusterctl_packages(["base", "docker"], "Debian", v, str(tmp_path))
    assert ask() == ["docker.io", "x"]
    assert ask(docker_version="20.10.24") == ["docker.io=20.10.24", "x"]
    assert ask(docker_version="") == ["docker.io", "x"]
    assert ask(docker_packages=["mine"]) == ["mine"]


def test_no_proxy(filters):
    given = filters.clusterctl_no_proxy("intranet, .corp", ["10.0.0.5", "192.0.2.1", "name", ""], "10.0.0.0/24", ["n1", "n1"])
    assert given.split(",") == ["intranet", ".corp", "localhost", "127.0.0.1", "::1", "10.0.0.0/24", "192.0.2.1", "name", "n1"]


def test_unhealthy(filters):
    facts = {"clusterctl_service_a": {"healthy": True}, "clusterctl_service_b": {"healthy": False, "message": "down"}}
    assert filters.clusterctl_unhealthy(facts, ["a", "b", "c"]) == ["b: down", "c: nothing was reported"]


@pytest.mark.parametrize("wanted, ansible_host, expected", [
    ("eth1", "10.0.0.5", {"interface": "eth1", "address": "192.0.2.7", "subnet": "192.0.2.0/25"}),
    ("", "10.0.0.5", {"interface": "eth0", "address": "10.0.0.5", "subnet": "10.0.0.0/24"}),
    ("", "elsewhere", {"interface": "eth1", "address": "192.0.2.7", "subnet": "192.0.2.0/25"}),
    ("nope", "10.0.0.5", {"interface": "nope", "address": "", "subnet": ""}),
])
def test_control_address(filters, wanted, ansible_host, expected):
    node = {"default_interface": "eth1", "interfaces": {
        "eth0": [{"address": "10.0.0.5", "prefix": 24}], "eth1": [{"address": "2001:db8::1", "prefix": 64}, {"address": "192.0.2.7", "prefix": 25}]}}
    assert filters.control_address(node, wanted, ansible_host) == expected


# ---- base -------------------------------------------------------------------------------------

GOOD = {
    "clusterctl_services": ["base", "docker"],
    "clusterctl_node": {"family": "Debian", "pretty_name": "Debian 12", "uid": 0, "systemd": True, "free_mb": 9000, "clock_skew": 1,
                        "interfaces": {"eth0": []}, "address": "10.0.0.5", "interface": "eth0"},
    "clusterctl_hardware": {"memory_mb": 4096, "host_name": "n1", "os": "debian", "os_version": "12"},
}


@pytest.mark.parametrize("change, code", [
    ({}, None),
    ({"family": ""}, "os_unsupported"),
    ({"uid": 1000}, "not_root"),
    ({"systemd": False}, "no_systemd"),
    ({"free_mb": 10}, "disk_full"),
    ({"clock_skew": 400}, "clock_skew"),
    ({"address": ""}, "no_control_address"),
    ({"memory_mb": 300}, "memory_too_small"),
    ({"control_interface": "nope0"}, "no_control_interface"),
])
def test_base_problems(plugin, change, code):
    change = dict(change)
    interface = change.pop("control_interface", "")
    hardware = dict(GOOD["clusterctl_hardware"], memory_mb=change.pop("memory_mb", 4096))
    variables = dict(GOOD, clusterctl_node=dict(GOOD["clusterctl_node"], **change), clusterctl_hardware=hardware)
    found = plugin("filter", "clusterctl_base").base_problems(variables, 2048, 30, interface)
    assert [problem["code"] for problem in found] == ([code] if code else [])
    assert all(problem["hint"] and problem["message"] and problem["service"] == "base" for problem in found)


def test_base_hosts(plugin):
    known = hosts(m1={"ansible_host": "10.0.0.1"}, m2={"ansible_host": "10.0.0.2"}, m3={"ansible_host": "a name\n10.0.0.9 evil"},
                  w1={"ansible_host": "10.0.0.4", "clusterctl_endpoint": "10.0.0.100"})
    assert plugin("filter", "clusterctl_base").base_hosts(known, "w1", "api") == ["10.0.0.4 w1", "10.0.0.1 m1", "10.0.0.2 m2", "10.0.0.100 api"]


def test_only_the_node_itself_and_the_endpoint_have_to_be_in_its_hosts_file(plugin):
    own_lines = plugin("filter", "clusterctl_base").base_own_lines
    assert own_lines(["10.0.0.4 w1", "10.0.0.1 m1", "10.0.0.2 m2", "10.0.0.100 api"], "w1", "api") == ["10.0.0.4 w1", "10.0.0.100 api"]
    assert own_lines([], "w1", "api") == []


# ---- docker -----------------------------------------------------------------------------------

def test_docker_proxy_has_both_spellings_and_lets_no_line_through(plugin):
    docker = plugin("filter", "clusterctl_docker")
    known = hosts(w1={"ansible_host": "10.0.0.4", "clusterctl_node": {"address": "10.0.0.4", "subnet": "10.0.0.0/24"}, "clusterctl_endpoint": "10.0.0.100"})
    assert docker.docker_proxy(known, "w1", {}) == []
    assert docker.docker_proxy(known, "w1", {"no_proxy": "x"}) == []
    lines = docker.docker_proxy(known, "w1", {"HTTP_PROXY": "http://u:p%40@p:80\nExecStartPre=/bin/evil", "no_proxy": "intranet"})
    assert 'Environment="http_proxy=http://u:p%%40@p:80ExecStartPre=/bin/evil"' in lines
    assert 'Environment="HTTP_PROXY=http://u:p%%40@p:80ExecStartPre=/bin/evil"' in lines
    excluded = [line for line in lines if "no_proxy=" in line][0]
    assert excluded == 'Environment="no_proxy=intranet,localhost,127.0.0.1,::1,10.0.0.0/24,w1,m1,m2,m3,clusterctl-endpoint"'


@pytest.mark.parametrize("answer, changes, version, healthy, text", [
    ({"answers": True, "info": {"version": "20.10.24+dfsg1", "driver": "overlay2", "root": "/d"}}, [], "20.10.24", True, ""),
    ({"answers": True, "info": {"version": "20.10.24+dfsg1", "driver": "overlay2", "root": "/d"}}, [], "23.0", False, "23.0 is wanted"),
    ({"answers": True, "info": {"version": "20.10.24", "driver": "", "root": "/d"}}, [], "", False, "no storage driver"),
    ({"answers": True, "info": {"version": "20.10.24", "driver": "x", "root": "/e"}}, [], "", False, "keeps its data in /e"),
    ({"answers": False, "message": "refused"}, [], "", False, "refused"),
    ({"answers": True, "info": {"version": "1", "driver": "x", "root": "/d"}}, ["enabled docker.service"], "", False, "to be repaired: enabled"),
])
def test_docker_verdict(plugin, answer, changes, version, healthy, text):
    fact = plugin("filter", "clusterctl_docker").docker_verdict(answer, changes, version, "/d")
    assert fact["healthy"] is healthy and text in fact["message"] and fact["v"] == 1


# ---- swarm ------------------------------------------------------------------------------------

def member(name, role="manager", **more):
    return dict({"id": "id-" + name, "name": name, "addr": "10.0.0.1", "role": role, "reachable": True, "leader": role == "leader",
                 "state": "ready", "availability": "active", "voter": role != "worker"}, **more)


SEEN = {"answers": True, "state": "active", "node_id": "id-a", "version": "20.10", "message": "", "members": []}


@pytest.mark.parametrize("seen, members, text", [
    ({}, [member("a", "leader")], ""),
    ({"answers": False, "message": "refused"}, None, "refused"),
    ({"state": "inactive"}, None, "not in a swarm"),
    ({"state": "pending", "message": "no route"}, None, "pending: no route"),
    ({}, None, "no manager could be asked"),
    ({}, [member("b", "leader")], "does not list"),
    ({}, [member("a", "worker"), member("b", "leader")], "the node is a worker, a manager is wanted"),
    ({}, [member("a", state="down", reachable=False), member("b", "leader")], "sees the node as down"),
    ({}, [member("a", reachable=False), member("b", "leader")], "unreachable"),
    ({}, [member("a", availability="drain"), member("b", "leader")], "availability is drain"),
    ({}, [member("a")], "no leader"),
])
def test_swarm_verdict(plugin, seen, members, text):
    fact = plugin("filter", "clusterctl_swarm").verdict(dict(SEEN, **seen), members, "manager", "active")
    assert fact["healthy"] is (text == "") and text in fact["message"]


@pytest.mark.parametrize("here, interfaces, moved", [
    ({"state": "active", "addr": "10.0.0.1"}, {"eth0": [{"address": "10.0.0.1", "prefix": 24}]}, False),
    ({"state": "active", "addr": "10.0.0.1"}, {"eth0": [{"address": "10.0.0.9", "prefix": 24}], "eth1": [{"address": "10.0.0.1", "prefix": 24}]}, False),
    ({"state": "active", "addr": "10.0.0.1"}, {"eth0": [{"address": "10.0.0.9", "prefix": 24}], "eth1": []}, True),
    ({"state": "inactive", "addr": "10.0.0.1"}, {"eth0": [{"address": "10.0.0.9", "prefix": 24}]}, False),
    ({"state": "active", "addr": ""}, {"eth0": [{"address": "10.0.0.9", "prefix": 24}]}, False),
    ({"state": "active", "addr": "10.0.0.1"}, {}, False),
])
def test_an_address_that_the_swarm_knows_and_the_node_has_no_more(plugin, here, interfaces, moved):
    assert plugin("filter", "clusterctl_swarm").swarm_moved(here, {"interfaces": interfaces}) is moved


@pytest.mark.parametrize("role, text", [("worker", "an update lets it join anew"), ("manager", "decommission it and commission it again")])
def test_a_node_that_moved_is_not_healthy_although_the_swarm_sees_it(plugin, role, text):
    known = hosts(m1={"swarm_seen": dict(SEEN, members=[member("a", role), member("b", "leader")], addr="10.0.0.1"), "clusterctl_role": role,
                      "clusterctl_node": {"interfaces": {"eth0": [{"address": "10.0.0.9", "prefix": 24}]}}})
    fact = plugin("filter", "clusterctl_swarm").swarm_verdict(known, "m1")
    assert not fact["healthy"] and "joined the swarm as 10.0.0.1" in fact["message"] and text in fact["message"]
    known["m1"]["clusterctl_node"]["interfaces"]["eth0"][0]["address"] = "10.0.0.1"
    assert plugin("filter", "clusterctl_swarm").swarm_verdict(known, "m1")["healthy"]


def test_a_manager_is_judged_by_another_one(plugin):
    """A node in a swarm of its own finds itself in good order."""
    known = hosts(m1={"swarm_seen": dict(SEEN, node_id="id-m1", members=[member("m1", "leader")])},
                  m2={"swarm_seen": dict(SEEN, node_id="id-m2", members=[member("m2", "leader")])})
    assert "does not list" in plugin("filter", "clusterctl_swarm").swarm_verdict(known, "m1")["message"]
