"""Each kind of refusal: its status and code, not one byte of the list of nodes changed, no job made, no run started."""

import pytest


def commission(*names, group="", capabilities=(), **more):
    body = dict(more, kind="commission", nodes=list(names))
    if group:
        body["host_group"] = group
    if capabilities:
        body["capabilities"] = list(capabilities)
    return body


def registry(name="n1", **variables):
    return commission(name, group="service-worker", capabilities=["dtr-controller"], vars=dict(variables))


@pytest.fixture
def site(cluster):
    """Three masters and three workers in use, and others of which each has something wrong."""
    for name in ("w2", "w3"):
        cluster.add(name, "service-worker")
    cluster.commission("w2", "w3")
    for name in ("n1", "n2"):
        cluster.add(name, "service-worker")
    cluster.add("k1", "service-master")
    cluster.add("g1")
    cluster.add("self", "service-worker", addr="127.0.0.1")
    cluster.add("spare", "service-worker", allocation="spare")
    cluster.add("pending", "service-worker", acceptance="pending")
    return cluster


# (status, code, request)
REQUESTS = [
    (400, "unknown_kind", {"kind": "commision", "nodes": ["n1"]}),
    (400, "unknown_key", {"kind": "commission", "node": ["n1"]}),
    (400, "not_for_kind", {"kind": "verify", "nodes": ["w1"], "level": "images"}),
    (400, "not_for_kind", {"kind": "decommission", "nodes": ["w1"], "controller_host": True}),
    (404, "no_such_node", commission("nobody")),
    (400, "no_group", commission("g1")),
    (400, "unknown_group", commission("g1", group="service-wrker")),
    (422, "not_accepted", commission("pending")),
    (422, "not_in_service", commission("spare")),
    (422, "own_host", commission("self")),
    (422, "vip_required", commission("k1", vars={"service_vip": ""})),
    (422, "bad_vip", commission("k1", vars={"service_vip": "vip"})),
    (422, "vip_taken", commission("k1", vars={"service_vip": "192.0.2.1"})),
    (422, "bad_subnet", commission("k1", vars={"control_subnet": "192.0.2.0/99"})),
    (422, "vip_outside", commission("k1", vars={"control_subnet": "10.0.0.0/8"})),
    (422, "vip_differs", commission("k1", vars={"service_vip": "192.0.2.101"})),
    (422, "misplaced_variable", commission("k1", vars={"env": {"ucp_bootstrap_node_name": "k1"}})),
    (422, "unknown_first_manager", commission("k1", vars={"ucp_bootstrap_node_name": "192.0.2.1"})),
    (422, "ucp_with_dtr", commission("n1", capabilities=["dtr-controller", "ucp-controller"])),
    (422, "dtr_twice", commission("n1", capabilities=["dtr-controller", "dtr-replica"])),
    (422, "second_dtr_controller", commission("n1", "n2", capabilities=["dtr-controller"])),
    (422, "no_registry", commission("n1", capabilities=["dtr-replica"])),
    (422, "unknown_storage", registry(dtr_storage="nsf")),
    (422, "storage_not_shared", commission("n1", "n2", capabilities=["dtr-controller"])),
    (422, "unknown_bootstrap_node", registry(dtr_bootstrap_node_name="n9")),
    (422, "registry_contradiction", registry(dtr_bootstrap_node_name="n2")),
    (400, "wrong_type", commission("n1", vars={"docker_version": 20.1})),
    (400, "wrong_type", commission("k1", vars={"etcd_peer_port": "peer"})),
    (422, "port_conflict", commission("k1", vars={"etcd_peer_port": 2379})),
    (409, "transition", commission("w1")),
    (409, "transition", {"kind": "drain", "nodes": ["n1"]}),
    (409, "transition", {"kind": "decommission", "nodes": ["n1"]}),
    (409, "last_manager", {"kind": "decommission", "nodes": ["m1", "m2", "m3"]}),
    (409, "budget", {"kind": "drain", "nodes": ["w1", "w2"]}),
]
# The same when a master and a worker do not answer.
REQUESTS_DOWN = [
    (409, "unreachable", {"kind": "decommission", "nodes": ["w1"]}),
    (409, "unreachable", {"kind": "update", "nodes": ["w1"]}),
    (409, "budget", {"kind": "drain", "nodes": ["w2"]}),
    (409, "budget", {"kind": "update", "nodes": ["w2"]}),
    (409, "quorum", {"kind": "decommission", "nodes": ["m1"]}),
    (409, "quorum", {"kind": "update", "nodes": ["m1"]}),
    (409, "quorum", commission("k1")),
]


def codes_of(problem):
    return {problem["code"]} | {p["code"] for p in problem.get("problems") or []}


def refuse(site, requests):
    def state():
        listing = site.cli("node", "ls", "-o", "json")
        assert listing.returncode == 0
        return listing.stdout, site.get("/v1/jobs?limit=1000").body, len(site.double.calls())

    before = state()
    for status, code, request in requests:
        answer = site.send("POST", "/v1/jobs", request)
        assert answer.status == status and code in codes_of(answer.problem(status)), (request, answer.body)
        assert all(p["message"] and p["hint"] for p in answer.json.get("problems") or []), answer.body
        plan = site.send("POST", "/v1/jobs", dict(request, dry_run=True))  # looking first says the same
        assert plan.status == status and code in codes_of(plan.problem(status)), (request, plan.body)
        assert state() == before, request


def test_no_refusal_changes_anything(site):
    refuse(site, REQUESTS)
    refuse_other = [("PATCH", "/v1/nodes/w1", {"spec": {"host_group": "service-master"}}, 409, "needs_job"),
                    ("PATCH", "/v1/nodes/n1", {"spec": {"addr": "192.0.2.1"}}, 409, "addr_taken"),
                    ("PATCH", "/v1/nodes/n1", {"spec": {"addr": "-oProxyCommand=x"}}, 400, "bad_addr")]
    before = site.cli("node", "ls", "-o", "json").stdout
    for method, path, body, status, code in refuse_other:
        problem = site.send(method, path, body).problem(status)
        assert code in codes_of(problem), problem
        assert site.cli("node", "ls", "-o", "json").stdout == before
    site.ask("DELETE", "/v1/nodes/w1").problem(409, "commissioned")
    assert site.cli("node", "ls", "-o", "json").stdout == before
    done = site.cli("node", "drain", "w1", "w2")
    assert done.returncode == 65 and "max_unavailable is 1" in done.stderr and "--max-unavailable" in done.stderr


def test_no_refusal_changes_anything_while_nodes_are_down(site):
    site.double.orders(down=["m3", "w1"])
    site.wait(site.submit("check", nodes=["m3", "w1"])["id"])
    site.wait(site.submit("observe")["id"])
    refuse(site, REQUESTS_DOWN)


def test_a_drain_within_the_budget_and_beyond_it(site):
    assert site.cli("node", "drain", "w1").returncode == 0
    assert site.cli("node", "drain", "w2").returncode == 65
    assert site.cli("node", "drain", "w2", "--max-unavailable", "2").returncode == 0
    assert site.cli("node", "activate", "w1", "w2").returncode == 0
    assert site.cli("node", "drain", "w1", "w2", "--max-unavailable", "67%").returncode == 0


def test_the_controllers_own_machine_when_it_is_meant(site):
    done = site.cli("node", "commission", "self")
    assert done.returncode == 65 and "--controller-host" in done.stderr
    assert site.cli("node", "commission", "self", "--controller-host").returncode == 0
    assert site.lifecycle("self") == "Allocated"
