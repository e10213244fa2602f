"""contiv's routes: the same daemon with another face (docs/compat.md)."""

import base64
import json
import re
import shutil
import threading

import pytest

from harness import TOP, wait_for

ROUTES = re.findall(r"^\| `(GET|POST) (/\S+)` \|", (TOP / "docs/compat.md").read_text(), re.M)
# What contiv's clients send with every request: all fields, empty.
EMPTY = {"nodes": None, "addrs": [], "host_group": "", "extra_vars": "", "job": "", "monitor_event": {"name": "", "nodes": None},
         "config": {"serf": {"Addr": ""}, "inventory": {}, "ansible": {"user": ""}, "manager": {"addr": ""}}}


def enable(stopped, **settings):
    stopped.config["compat"] = dict(settings, enabled=True)
    return stopped


@pytest.fixture(name="contiv")
def daemon_with_contivs_routes(stopped):
    return enable(stopped).start()


def post(daemon, path, **fields):
    return daemon.send("POST", path, {**EMPTY, **fields})


def done(answer):
    assert (answer.status, answer.body) == (200, ""), (answer.status, answer.body)
    return answer


def refused(answer, status, *words):
    """One line of text, with these words."""
    assert answer.status == status, (answer.status, answer.body)
    assert answer.headers.get_content_type() == "text/plain" and answer.body.endswith("\n") and answer.body.count("\n") == 1, answer.body
    for word in words:
        assert word in answer.body, (word, answer.body)
    return answer.body


def up(daemon, label, serial, addr):
    done(post(daemon, "/monitor/event", monitor_event={"name": "discovered", "nodes": [{"label": label, "serial": serial, "addr": addr}]}))


def down(daemon, label, serial, addr):
    done(post(daemon, "/monitor/event", monitor_event={"name": "disappeared", "nodes": [{"label": label, "serial": serial, "addr": addr}]}))


def nodes(daemon):
    return daemon.get("/info/nodes").ok()


def status(daemon, name):
    return daemon.get("/info/node/" + name).ok()["inventory_state"]["status"]


def idle(daemon):
    return wait_for(lambda: daemon.get("/info/job/active").status == 404, "no job to be active")


def finish(daemon, answer, state="Complete"):
    """Waits for the job that this request has started."""
    done(answer)
    job = daemon.wait(answer.headers["Location"].rsplit("/", 1)[1])
    last = daemon.get("/info/job/last").ok()
    assert last["status"] == state, last
    return dict(last, id=job["id"])


@pytest.fixture(name="pair")
def two_machines(contiv):
    """m-1 and w-2, reported and idle."""
    up(contiv, "m", "1", "192.0.2.31")
    up(contiv, "w", "2", "192.0.2.32")
    return contiv


@pytest.fixture(name="allocated")
def master_and_worker(pair):
    finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    finish(pair, post(pair, "/commission/nodes", nodes=["w-2"], host_group="service-worker"))
    return pair


def everything(daemon):
    """What a refused request must not change."""
    return [daemon.get(path).body for path in ("/v1/nodes", "/v1/globals", "/v1/jobs")]


# -- access --

def test_off_unless_configured(daemon):
    assert len(ROUTES) >= 16
    for method, path in ROUTES:
        daemon.send(method, path.replace("{name}", "x").replace("{label}", "last"), {}).problem(404, "no_route")


def test_every_route_of_the_page_exists(contiv):
    for method, path in ROUTES:
        answer = contiv.send(method, path.replace("{name}", "x").replace("{label}", "last"), EMPTY if method == "POST" else {})
        assert "no such route" not in answer.body and answer.status != 405, (method, path, answer.body)
        assert answer.status in (200, 400, 403, 404), (method, path, answer.status)


def test_the_token_is_the_password_of_an_address(contiv):
    def basic(text):
        return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

    good = basic("token:" + contiv.token())
    assert contiv.get("/info/nodes", headers=good, via="tcp").ok() == {}
    assert contiv.get("/info/nodes", headers={"Authorization": "Bearer " + contiv.token()}, via="tcp").ok() == {}
    for headers in ({}, basic("token:wrong"), basic(contiv.token()), basic(""), {"Authorization": "Basic !"}, {"Authorization": "Basic"}):
        refused(contiv.get("/info/nodes", headers=headers, via="tcp"), 401, "token")
        refused(contiv.send("POST", "/globals", {}, headers=headers, via="tcp"), 401, "token")
    contiv.get("/v1/nodes", headers=good, via="tcp").problem(401)
    refused(contiv.get("/info/nodes", headers=dict(good, Host="evil.example"), via="tcp"), 403, "evil.example")
    refused(contiv.get("/info/nodes", headers=dict(good, Origin="http://evil.example"), via="tcp"), 403)


def test_what_http_refuses_is_one_line_too(contiv):
    refused(contiv.get("/commission/nodes"), 405)
    refused(contiv.get("/info/nothing"), 404)
    refused(contiv.get("/info/nodes?x=1"), 400)
    refused(contiv.ask("POST", "/globals", "{}"), 415, "Content-Type")
    refused(contiv.ask("POST", "/globals", "{", {"Content-Type": "application/json"}), 400)
    refused(contiv.ask("POST", "/globals", "[]", {"Content-Type": "application/json"}), 400, "object")


# -- what monitors tell --

def test_machines_that_are_reported_become_nodes(contiv):
    up(contiv, "n1", "FCH1", "10.0.0.1")
    assert nodes(contiv) == {"n1-fch1": {
        "monitoring_state": {"label": "n1", "serial_number": "FCH1", "management_address": "10.0.0.1"},
        "inventory_state": {"name": "n1-fch1", "status": "Unallocated", "prev_status": "Incomplete", "state": "Discovered", "prev_state": "Unknown"},
        "configuration_state": {"inventory_name": "n1-fch1", "host_group": "", "ssh_address": "10.0.0.1",
                                "inventory_vars": {"node_name": "n1-fch1", "node_addr": "10.0.0.1"}}}}
    assert contiv.get("/info/node/n1-fch1").ok() == nodes(contiv)["n1-fch1"]
    down(contiv, "n1", "FCH1", "10.0.0.1")
    assert nodes(contiv)["n1-fch1"]["inventory_state"]["state"] == "Disappeared"
    assert nodes(contiv)["n1-fch1"]["inventory_state"]["prev_state"] == "Discovered"
    done(post(contiv, "/monitor/event", monitor_event={"name": "Discovered", "nodes": [{"label": "N1", "serial": "FCH1", "addr": "10.0.0.1"}]}))
    assert list(nodes(contiv)) == ["n1-fch1"] and nodes(contiv)["n1-fch1"]["inventory_state"]["state"] == "Discovered"
    up(contiv, "n2", "VMware-56 4d/9a", "10.0.0.2")
    up(contiv, "n3", "", "10.0.0.3")
    assert list(nodes(contiv)) == ["n1-fch1", "n2-vmware-56-4d-9a", "n3"]


def test_a_node_that_is_known_keeps_its_name(contiv):
    contiv.add("known", addr="10.0.0.1", vars={"mtu": 9000, "rack": "r3"})
    up(contiv, "n1", "FCH1", "10.0.0.1")
    node = nodes(contiv)["known"]
    assert list(nodes(contiv)) == ["known"] and node["monitoring_state"] == {"label": "known", "serial_number": "FCH1", "management_address": "10.0.0.1"}
    assert node["configuration_state"]["inventory_vars"] == {"node_name": "known", "node_addr": "10.0.0.1", "mtu": "9000", "rack": "r3"}


@pytest.mark.parametrize("event", [
    None, {"name": ""}, {"name": "gone", "nodes": [{"label": "a", "serial": "b", "addr": "10.0.0.1"}]}, {"name": "discovered", "nodes": []},
    {"name": "discovered", "nodes": "a"}, {"name": "discovered", "nodes": ["a"]}, {"name": "discovered", "nodes": [{"label": "a", "serial": "b"}]},
    {"name": "discovered", "nodes": [{"label": "{{ 7*7 }}", "serial": "b", "addr": "10.0.0.1"}]},
    {"name": "discovered", "nodes": [{"label": "a", "serial": "{{ 7*7 }}", "addr": "10.0.0.1"}]},
    {"name": "discovered", "nodes": [{"label": "a", "serial": "b", "addr": "-oProxyCommand=x"}]},
    {"name": "discovered", "nodes": [{"label": "a", "serial": "b" * 200, "addr": "10.0.0.1"}]},
    {"name": "discovered", "nodes": [{"label": "a", "serial": 7, "addr": "10.0.0.1"}]},
    {"name": "discovered", "nodes": [{"label": "good", "serial": "b", "addr": "10.0.0.1"}, {"label": "", "serial": "b", "addr": "10.0.0.2"}]},
    {"name": "discovered", "nodes": [{"label": "a", "serial": "b", "addr": "10.0.0.1", "role": "master"}]}])
def test_malformed_events_record_nothing(contiv, event):
    refused(post(contiv, "/monitor/event", monitor_event=event), 400)
    assert nodes(contiv) == {}


def test_unknown_nodes_and_jobs(contiv):
    refused(contiv.get("/info/node/nobody"), 404, "nobody", "doesn't exist")
    for label in ("active", "last"):
        refused(contiv.get("/info/job/" + label), 404, label, "doesn't exist")
        refused(contiv.get("/info/logs/" + label), 404, label, "doesn't exist")
    refused(contiv.get("/info/job/foo"), 400, "foo", "Invalid or empty job label")
    refused(contiv.get("/info/logs/foo"), 400, "foo")


# -- commission --

def test_commission_and_what_is_seen_of_it(pair):
    pair.double.orders(site="gate:go")
    answer = done(post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    assert status(pair, "m-1") == "Provisioning", "the status of before would be read as the result"
    pair.double.wait_gate("go")
    active = pair.get("/info/job/active").ok()
    assert set(active) == {"desc", "task", "status", "error", "logs"} and active["status"] == "Running" and active["error"] == ""
    assert "m-1" in active["desc"] or "1 node" in active["desc"]
    assert active["task"].startswith("site") and isinstance(active["logs"], list) and active["logs"]
    assert status(pair, "m-1") == "Provisioning"
    pair.double.open_gate("go")
    last = finish(pair, answer)
    assert last["logs"] == pair.get("/v1/jobs/%s/log" % last["id"]).body.splitlines()
    node = nodes(pair)["m-1"]
    assert node["inventory_state"]["status"] == "Allocated" and node["inventory_state"]["prev_status"] == "Provisioning"
    assert node["configuration_state"]["host_group"] == "service-master"
    finish(pair, post(pair, "/commission/node/w-2", host_group="service-worker"))
    assert status(pair, "w-2") == "Allocated"


def test_a_failed_commission_is_unallocated_and_can_be_repeated(pair):
    pair.double.orders(site="fail-host:m-1:docker:no space left on device")
    last = finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"), "Errored")
    assert "no space left on device" in last["error"] and "m-1" in last["error"]
    assert status(pair, "m-1") == "Unallocated" and pair.double.playbooks()[-1] == "cleanup"
    pair.double.orders()
    finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    assert status(pair, "m-1") == "Allocated"


@pytest.mark.parametrize("group", ["", "service-mister", "Service-Master", " service-master", "service-master\n", "etcd"])
def test_the_host_group_is_said_exactly(pair, group):
    before = everything(pair)
    refused(post(pair, "/commission/nodes", nodes=["m-1"], host_group=group), 400, "invalid or empty host-group", "service-master, service-worker")
    assert everything(pair) == before


@pytest.mark.parametrize("fields, status_code, words", [
    ({}, 400, ["node"]), ({"nodes": ["nobody"]}, 404, ["nobody", "doesn't exist"]), ({"nodes": ["m-1", "nobody"]}, 404, ["nobody"]),
    ({"nodes": "m-1"}, 400, ["nodes"]), ({"nodes": [1]}, 400, ["nodes"]), ({"nodes": [""]}, 404, []), ({"nodes": ["m-1", "m-1"]}, 400, ["m-1"]),
    ({"nodes": ["w-2"], "host_group": "service-worker"}, 422, ["manager"]),
    ({"nodes": ["m-1"], "hostgroup": "service-master"}, 400, ["hostgroup", "host_group"]),
    ({"nodes": ["m-1"], "extravars": "{}"}, 400, ["extravars", "extra_vars"])])
def test_bad_commissions_change_nothing(pair, fields, status_code, words):
    before = everything(pair)
    refused(post(pair, "/commission/nodes", **{"host_group": "service-master", **fields}), status_code, *words)
    assert everything(pair) == before


BAD_VARS = ["[]", '"a=b"', "1", "true", "null", '{"a":1}x', '{"a":1,"a":2}', "{'a':1}", '{"a":', '{"ansible_host": "10.0.0.9"}', {"a": 1}, ["a"], 7]


@pytest.mark.parametrize("text", BAD_VARS)
def test_variables_are_the_text_of_one_object(pair, text):
    done(post(pair, "/globals", extra_vars='{"kept": 1}'))
    before = everything(pair)
    refused(post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master", extra_vars=text), 400)
    refused(post(pair, "/globals", extra_vars=text), 400)
    assert everything(pair) == before


def test_variables_arrive_as_they_are(pair):
    values = {"a": "$(touch /tmp/x) `id` {{ 7*7 }} \"'\né", "b": False, "n": 1234567890123456789, "e": {"x": [1, {}]}, "contiv_role": "service-worker"}
    finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master", extra_vars=json.dumps(values)))
    given = json.loads((pair.double.calls("site")[-1]["dir"] / "vars.json").read_text(), object_hook=lambda o: o.get("__ansible_unsafe", o))
    assert {k: v for k, v in given.items() if k in values} == values
    assert nodes(pair)["m-1"]["configuration_state"]["host_group"] == "service-master", "variables are never taken for a role"
    finish(pair, post(pair, "/commission/nodes", nodes=["w-2"], host_group="service-worker", extra_vars="  \n"))


def test_an_allocated_node_is_not_commissioned_again(allocated):
    up(allocated, "n", "3", "192.0.2.33")
    before = everything(allocated)
    refused(post(allocated, "/commission/nodes", nodes=["n-3", "w-2"], host_group="service-worker"), 409,
            "w-2", 'transition from "Allocated" to "Provisioning" is not allowed')
    assert everything(allocated) == before
    assert status(allocated, "n-3") == "Unallocated" and status(allocated, "w-2") == "Allocated"


# -- the compatibility caution --

def test_a_node_that_disappeared_is_refused(allocated):
    up(allocated, "n", "3", "192.0.2.33")
    down(allocated, "n", "3", "192.0.2.33")
    down(allocated, "w", "2", "192.0.2.32")
    before = everything(allocated)
    refused(post(allocated, "/commission/nodes", nodes=["n-3"], host_group="service-worker"), 409, "not in discovered state", "n-3")
    refused(post(allocated, "/decommission/nodes", nodes=["m-1", "w-2"]), 409, "not in discovered state", "w-2")
    refused(post(allocated, "/update/node/w-2"), 409, "not in discovered state", "w-2")
    assert everything(allocated) == before


def test_all_nodes_are_decommissioned_in_one_call(allocated):
    before = everything(allocated)
    refused(post(allocated, "/decommission/nodes", nodes=["m-1"]), 409, "w-2")
    assert everything(allocated) == before
    finish(allocated, post(allocated, "/decommission/nodes", nodes=["m-1", "w-2"]))
    assert {n["inventory_state"]["status"] for n in nodes(allocated).values()} == {"Decommissioned"} and allocated.double.members() == {}
    refused(post(allocated, "/decommission/node/m-1"), 409, "m-1", 'transition from "Decommissioned" to "Cancelled" is not allowed')
    finish(allocated, post(allocated, "/commission/nodes", nodes=["m-1"], host_group="service-master"))


def test_a_second_request_during_a_job_is_refused_at_once(pair):
    pair.double.orders(site="gate:go")
    answer = done(post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    jobs = len(pair.get("/v1/jobs").ok()["jobs"])
    for path in ("/commission/nodes", "/decommission/nodes", "/update/nodes"):
        refused(post(pair, path, nodes=["w-2"], host_group="service-master"), 409, "already an active job")
    assert len(pair.get("/v1/jobs").ok()["jobs"]) == jobs == 1
    pair.double.wait_gate("go")
    pair.double.open_gate("go")
    finish(pair, answer)
    pair.double.orders(verify="gate:on")
    other = pair.submit("verify", nodes=["m-1"])
    refused(post(pair, "/update/nodes", nodes=["m-1"]), 409, "already an active job", other["id"])
    pair.double.wait_gate("on")
    pair.double.open_gate("on")
    pair.wait(other["id"], "succeeded")


def test_of_many_requests_at_once_one_is_taken(pair):
    pair.double.orders(site="gate:go")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master")))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.status for a in answers) == [200] + [409] * 7
    pair.double.wait_gate("go")
    pair.double.open_gate("go")
    idle(pair)


def own_playbooks(stopped):
    """A copy whose files may be taken away."""
    place = stopped.directory / "own"
    shutil.copytree(TOP / "playbooks", place / "playbooks", symlinks=True)
    (place / "roles").symlink_to(TOP / "roles")
    stopped.config["ansible"]["playbooks"] = str(place / "playbooks")
    return place / "playbooks"


def test_a_missing_playbook_fails_the_job_not_the_request(stopped):
    playbooks = own_playbooks(enable(stopped))
    contiv = stopped.start()
    up(contiv, "m", "1", "192.0.2.31")
    finish(contiv, post(contiv, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    (playbooks / "site.yml").rename(playbooks / "away.yml")
    answer = done(post(contiv, "/update/nodes", nodes=["m-1"]))
    assert answer.headers["Location"].startswith("/v1/jobs/")
    last = finish(contiv, answer, "Errored")
    assert str(playbooks / "site.yml") in "\n".join([last["error"], *last["logs"]])
    state = nodes(contiv)["m-1"]["inventory_state"]
    assert (state["status"], state["prev_status"]) == ("Unallocated", "Maintenance")
    contiv.restart()
    assert status(contiv, "m-1") == "Unallocated"
    (playbooks / "away.yml").rename(playbooks / "site.yml")
    finish(contiv, post(contiv, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    assert status(contiv, "m-1") == "Allocated" and contiv.lifecycle("m-1") == "Allocated"


def test_maintenance_that_failed_shows_as_unallocated(allocated):
    allocated.double.orders(site="fail-host:w-2:docker:no space left on device")
    answer = done(post(allocated, "/update/nodes", nodes=["w-2"]))
    assert status(allocated, "w-2") in ("Maintenance", "Unallocated")
    last = finish(allocated, answer, "Errored")
    assert "no space left on device" in last["error"]
    assert allocated.lifecycle("w-2") == "Maintenance"
    assert status(allocated, "w-2") == "Unallocated" and nodes(allocated)["w-2"]["inventory_state"]["prev_status"] == "Maintenance"
    up(allocated, "n", "3", "192.0.2.33")
    refused(post(allocated, "/commission/nodes", nodes=["n-3", "w-2"], host_group="service-worker"), 409, "requests of their own"[:7])
    allocated.double.orders()
    finish(allocated, post(allocated, "/commission/node/w-2", host_group="service-worker"))
    assert status(allocated, "w-2") == "Allocated"


def test_a_stay_out_of_service_is_no_failure(allocated):
    allocated.wait(allocated.submit("maintenance-enter", nodes=["w-2"], reason="disks")["id"], "succeeded")
    assert status(allocated, "w-2") == "Maintenance"


def test_an_update_of_what_was_never_commissioned_is_refused(pair):
    before = everything(pair)
    refused(post(pair, "/update/nodes", nodes=["m-1"], host_group="service-master"), 409,
            "failed to update m-1", 'transition from "Unallocated" to "Maintenance" is not allowed')
    refused(post(pair, "/update/node/m-1", host_group="nonsense"), 400, "host-group")
    assert everything(pair) == before


def test_an_update_shows_as_maintenance_from_the_first_moment(allocated):
    allocated.double.orders(check="gate:go")
    answer = done(post(allocated, "/update/nodes", nodes=["m-1", "w-2"], host_group=""))
    assert {status(allocated, name) for name in ("m-1", "w-2")} == {"Maintenance"}
    allocated.double.wait_gate("go")
    assert {status(allocated, name) for name in ("m-1", "w-2")} == {"Maintenance"}
    allocated.double.open_gate("go")
    finish(allocated, answer)
    assert {status(allocated, name) for name in ("m-1", "w-2")} == {"Allocated"}


def test_update_to_the_same_and_to_another_group(allocated):
    finish(allocated, post(allocated, "/update/nodes", nodes=["m-1"], host_group="service-master", extra_vars='{"mtu": 1400}'))
    before = everything(allocated)
    refused(post(allocated, "/update/nodes", nodes=["m-1", "w-2"], host_group="service-worker"), 400, "service-worker already")
    refused(post(allocated, "/update/nodes", nodes=["m-1"], host_group="service-worker"), 409, "no manager would be left")
    assert everything(allocated) == before
    done(post(allocated, "/globals", extra_vars='{"service_vip": "192.0.2.100"}'))
    finish(allocated, post(allocated, "/update/nodes", nodes=["w-2"], host_group="service-master"))
    assert nodes(allocated)["w-2"]["configuration_state"]["host_group"] == "service-master"


def test_allocated_and_decommissioned_survive_a_restart(allocated):
    finish(allocated, post(allocated, "/decommission/node/w-2"))
    before, job = nodes(allocated), allocated.get("/info/job/last").ok()
    assert (before["m-1"]["inventory_state"]["status"], before["w-2"]["inventory_state"]["status"]) == ("Allocated", "Decommissioned")
    allocated.restart()
    assert nodes(allocated) == before and allocated.get("/info/job/last").ok() == job


def test_discovery(pair):
    down(pair, "w", "2", "192.0.2.32")
    before = everything(pair)
    refused(post(pair, "/discover/nodes", addrs=["192.0.2.50", "192.0.2.31"]), 409, "already exist", "m-1:192.0.2.31")
    refused(post(pair, "/discover/nodes", addrs=["192.0.2.50"]), 501, "node add")
    refused(post(pair, "/discover/nodes", addrs=["192.0.2.32"]), 501)  # its owner is not there
    refused(post(pair, "/discover/nodes"), 400, "address")
    refused(post(pair, "/discover/nodes", addrs=["m-1"]), 400, "m-1", "ip address")
    assert everything(pair) == before


# -- variables and settings --

def test_globals_are_replaced(contiv):
    done(post(contiv, "/globals", extra_vars='{"a": 1, "b": {"c": [2]}, "db_password": "s3cret"}'))
    shown = contiv.get("/info/globals").ok()["extra_vars"]
    assert (shown["a"], shown["b"]) == (1, {"c": [2]}) and "s3cret" not in contiv.get("/info/globals").body
    done(post(contiv, "/globals", extra_vars='{"b": 3}'))
    assert contiv.get("/info/globals").ok() == {"extra_vars": {"b": 3}}
    contiv.restart()
    assert contiv.get("/info/globals").ok() == {"extra_vars": {"b": 3}}
    done(post(contiv, "/globals"))
    assert contiv.get("/info/globals").ok() == {"extra_vars": {}}


def test_the_configuration_is_shown_and_not_changed(contiv):
    shown = contiv.get("/config").ok()
    assert shown["ansible"]["user"] == "root" and shown["ansible"]["playbook_location"] == str(TOP / "playbooks")
    assert shown["ansible"]["priv_key_file"] == contiv.config["ssh"]["private_key"] and shown["manager"]["addr"].startswith("127.0.0.1:")
    for config in ({"ansible": {"user": "ops"}}, shown, None):
        refused(post(contiv, "/config", config=config), 403, "cannot be changed here")
    assert contiv.get("/config").ok() == shown


# -- logs --

def test_logs_are_streamed_from_the_start_to_the_end(pair):
    pair.double.orders(site="gate:go")
    answer = done(post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    pair.double.wait_gate("go")
    seen = []

    def follow():
        seen.append(pair.get("/info/logs/active"))

    followers = [threading.Thread(target=follow) for _ in range(3)]
    for follower in followers:
        follower.start()
    pair.double.open_gate("go")
    for follower in followers:
        follower.join()
    job = answer.headers["Location"].rsplit("/", 1)[1]
    whole = pair.get("/v1/jobs/%s/log" % job).body + "job %s: Complete\n" % job
    seen.append(pair.get("/info/logs/last"))
    assert [s.body for s in seen] == [whole] * 4 and {s.headers.get_content_type() for s in seen} == {"text/plain"}


def test_logs_of_a_failure_end_with_the_reason(pair):
    pair.double.orders(site="fail-host:m-1:docker:no space left on device")
    last = finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"), "Errored")
    assert pair.get("/info/logs/last").body.splitlines()[-1] == "job %s: Errored: %s" % (last["id"], last["error"])


def test_a_long_log_is_cut_in_the_job_and_whole_in_the_logs(pair):
    pair.double.orders(site="flood:200000")
    last = finish(pair, post(pair, "/commission/nodes", nodes=["m-1"], host_group="service-master"))
    assert 1000 < len(last["logs"]) and sum(map(len, last["logs"])) < 1 << 20
    assert pair.get("/info/logs/last").body.count("\n") > 200000


# -- the command line's old spellings --

def test_old_spellings_that_work(allocated):
    for spelling in (["nodes", "get"], ["node", "get", "m-1"], ["nodes", "get", "--json"], ["node", "get", "m-1", "-j"], ["job", "get", "last"],
                     ["job", "get", "last", "--json"], ["global", "get"], ["global", "get", "--json"]):
        shown = allocated.cli(*spelling)
        assert shown.returncode == 0 and shown.stdout, (spelling, shown.stderr)
        if spelling[-1] in ("--json", "-j"):
            json.loads(shown.stdout)
    assert allocated.cli("job", "get", "active").returncode == 65
    assert allocated.cli("global", "set", "--extra-vars", '{"a": 1}').returncode == 0
    assert allocated.cli("global", "set", "-e", '{"b": 2}').returncode == 0
    assert allocated.get("/info/globals").ok() == {"extra_vars": {"a": 1, "b": 2}}
    assert allocated.cli("global", "set").returncode == 64
    assert allocated.cli("nodes", "update", "w-2", "-e", '{"mtu": 1400}').returncode == 0
    assert allocated.cli("node", "decommission", "w-2").returncode == 64, "without a terminal it has to be said"
    assert allocated.cli("nodes", "decommission", "w-2", "--yes").returncode == 0
    assert allocated.cli("nodes", "commission", "w-2", "--host-group", "service-worker", "--extra-vars", "{}").returncode == 0
    assert allocated.lifecycle("w-2") == "Allocated"
    assert allocated.cli("node", "decommission", "w-2", "-y").returncode == 0
    assert allocated.cli("node", "commission", "w-2", "-g", "service-worker").returncode == 0


@pytest.mark.parametrize("spelling, instead", [
    (["discover", "10.0.0.9"], "clusterctl node add"), (["discover", "10.0.0.9", "10.0.0.10", "-e", "{}"], "clusterctl node add"),
    (["config", "get"], "clusterctl cluster info"), (["config", "get", "--json"], "clusterctl cluster info"),
    (["config", "set", "-"], "clusterctl cluster update"), (["config", "set", "file.json"], "clusterctl cluster update")])
def test_old_spellings_that_name_the_new_one(stopped, spelling, instead):
    told = stopped.cli(*spelling)
    assert told.returncode == 64 and instead in told.stderr and told.stdout == "" and len(told.stderr.strip().splitlines()) == 2, told.stderr


def test_a_node_of_the_address_is_the_only_one(stopped):
    stopped.config["compat"] = {"enabled": True}
    daemon = stopped.start()
    for name in ("m1", "h2"):
        daemon.add(name)
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.200"}}).ok()
    daemon.send("POST", "/commission/node/m1", {"nodes": ["h2"], "host_group": "service-master"}).ok()
    assert [n["name"] for n in daemon.get("/v1/jobs").ok()["jobs"][0]["nodes"]] == ["m1"]


def test_an_expired_token_says_so(stopped):
    stopped.config["compat"] = {"enabled": True}
    daemon = stopped.start()
    made = daemon.send("POST", "/v1/tokens", {"name": "old", "expires": "1s"}).ok(201)
    bearer = {"Authorization": "Bearer " + made["token"]}
    answer = wait_for(lambda: (lambda a: a if a.status == 401 else None)(daemon.get("/info/nodes", headers=bearer, via="tcp")), "the token to expire")
    assert "has expired" in answer.body
    stranger = {"Authorization": "Bearer " + made["token"][:-4] + "0000"}
    assert "expired" not in daemon.get("/info/nodes", headers=stranger, via="tcp").body
