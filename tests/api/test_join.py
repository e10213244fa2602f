"""Machines that join: tokens, what may be claimed, what an operator grants, and who may ask to leave."""

import json
import re
import subprocess

import pytest

from harness import wait_for
from joining import UUID, announcement, host_key, join, new_token, nodes


# -- tokens --

def test_a_token_is_shown_once_and_only_its_digest_is_stored(daemon):
    made = daemon.cli("cluster", "token", "create", "--join", "--expires", "2h", "--uses", "3", "-q")
    text = made.stdout.strip()
    assert made.returncode == 0 and re.fullmatch(r"CCTJ-1-[0-9a-f]{64}-[a-z2-7]{8}-[a-z2-7]{26}", text)
    name, secret = text.split("-")[3:]
    listed = daemon.cli("cluster", "token", "ls", "--join")
    assert name in listed.stdout and "0/3" in listed.stdout and "active" in listed.stdout and secret not in listed.stdout
    assert secret not in daemon.log() and secret not in daemon.get("/v1/events").body
    assert secret.encode() not in b"".join(p.read_bytes() for p in daemon.state_dir.rglob("*") if p.is_file())
    daemon.restart()
    assert daemon.get("/v1/join-tokens").ok()["tokens"][0]["id"] == name


@pytest.mark.parametrize("wish", [{"uses": 0}, {"uses": -1}, {"uses": 10**9}, {"uses": "many"}, {"expires": "0s"}, {"expires": "31d"}, {"expires": "soon"},
                                  {"expires": []}, {"colour": "red"}])
def test_a_token_that_cannot_be_is_refused(daemon, wish):
    daemon.send("POST", "/v1/join-tokens", wish).problem(400)
    assert daemon.get("/v1/join-tokens").ok() == {"tokens": []}


def test_tokens_are_made_and_listed_only_by_who_may(daemon):
    for method, path in (("POST", "/v1/join-tokens"), ("GET", "/v1/join-tokens"), ("DELETE", "/v1/join-tokens/abcdefgh")):
        daemon.ask(method, path, via="tcp").problem(401)
    daemon.ask("DELETE", "/v1/join-tokens/abcdefgh").problem(404)


# -- refusals: one line, nothing changed --

def bad_tokens(daemon):
    """(what is wrong, its text, code)"""
    good = new_token(daemon)["token"]
    head, secret = good.rsplit("-", 1)
    used, revoked, expired = new_token(daemon)["token"], new_token(daemon)["token"], new_token(daemon, expires="1s")["token"]
    join(daemon, announcement(used, 9)).ok()
    assert daemon.cli("cluster", "token", "revoke", "--join", revoked.split("-")[3]).returncode == 0
    return [("none", "", "bad_join_token"), ("garbage", "CCTJ-1-x-y-z", "bad_join_token"), ("cut", good[:-1], "bad_join_token"),
            ("another format", good.replace("CCTJ-1", "CCTJ-2"), "bad_join_token"), ("template", "{{ 7*7 }}", "bad_join_token"),
            ("another authority", good.replace(good.split("-")[2], "ab" * 32), "other_authority"),
            ("wrong secret", head + "-" + secret[::-1], "wrong_join_token"), ("unknown id", good.replace(good.split("-")[3], "aaaaaaaa"), "wrong_join_token"),
            ("used", used, "join_token_used"), ("revoked", revoked, "join_token_revoked"), ("expired", expired, "join_token_expired")]


def test_wrong_tokens_are_refused_with_one_line_and_nothing_changes(daemon):
    cases = bad_tokens(daemon)
    wait_for(lambda: any(t["state"] == "expired" for t in daemon.get("/v1/join-tokens").ok()["tokens"]), "a token to expire")
    before, tokens = nodes(daemon), daemon.get("/v1/join-tokens").body
    for what, token, code in cases:
        problem = join(daemon, announcement(token, 1)).problem(401, code)
        assert token not in problem["detail"] or not token, what
        # Nothing is told about the rest before the token is right.
        join(daemon, {"token": token, "name": "{{ x }}"}).problem(401, code)
    assert nodes(daemon) == before and daemon.get("/v1/join-tokens").body == tokens


HOSTILE = [
    ({"name": "{{ lookup('pipe','id') }}"}, "bad_name"), ({"name": ""}, "bad_name"), ({"name": "a b"}, "bad_name"), ({"name": "-oProxyCommand=x"}, "bad_name"),
    ({"name": "service-master"}, "reserved_name"), ({"addr": "$(touch /tmp/x)"}, "bad_addr"), ({"addr": "127.0.0.1"}, "bad_addr"), ({"addr": ""}, "bad_addr"),
    ({"addr": "::1"}, "bad_addr"), ({"user": "root; id"}, None), ({"ssh_port": 70000}, None), ({"ssh_port": "22"}, None),
    ({"serial": "{{ 7*7 }}"}, "bad_evidence"), ({"serial": "S" * 500}, "bad_evidence"), ({"macs": ["00:00"] * 100}, "bad_evidence"),
    ({"host_keys": []}, "bad_host_key"), ({"host_keys": ["ssh-ed25519 x\ncommand"]}, "bad_host_key"), ({"host_keys": [host_key(1)] * 17}, "bad_host_key"),
    ({"os": "{% x %}"}, "bad_evidence"), ({"requested": {"host_group": "{{ x }}"}}, None), ({"requested": {"host_group": "none-such"}}, "unknown_host_group"),
    ({"requested": {"labels": {"{{x}}": "y"}}}, None), ({"requested": {"labels": {"rack": "{{ y }}\n"}}}, None), ({"requested": {"labels": {"rack": 3}}}, None),
    ({"requested": {"labels": {"l%d" % i: "x" for i in range(65)}}}, None), ({"requested": {"role": "manager"}}, "unknown_key"),
    ({"spec": {"host_group": "service-master"}}, "unknown_key"), ({"acceptance": "accepted"}, "unknown_key"), ({"host_group": "service-master"}, "unknown_key")]


@pytest.mark.parametrize("bad, code", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_announcements_are_refused_and_use_nothing_up(manual, bad, code):
    token = new_token(manual)
    before = nodes(manual)
    problem = join(manual, announcement(token["token"], 1, **bad)).problem(400)
    assert code is None or code in [problem["code"]] + [p["code"] for p in problem.get("problems", [])], problem
    assert nodes(manual) == before
    assert manual.get("/v1/join-tokens").ok()["tokens"][0]["used"] == 0
    join(manual, announcement(token["token"], 1)).ok()


def test_an_announcement_is_bounded_and_strict(manual):
    token = new_token(manual)["token"]
    join(manual, announcement(token, 1, os="x" * 40000)).problem(413)
    manual.ask("POST", "/v1/join", "token=x", {"Content-Type": "text/plain"}, via="tcp").problem(415)
    manual.ask("POST", "/v1/join", "[]", {"Content-Type": "application/json"}, via="tcp").problem(400)
    join(manual, announcement(token, 1), headers={"Host": "evil.example"}).problem(403)
    join(manual, announcement(token, 1), headers={"Origin": "http://evil.example"}).problem(403)
    assert manual.get("/v1/nodes").ok()["nodes"] == []


def test_guessing_is_slow_for_one_address_and_not_for_another(manual):
    token = new_token(manual)["token"]
    wrong = announcement(token[:-1] + ("a" if token[-1] != "a" else "b"), 1)
    answers = [join(manual, wrong).status for _ in range(60)]
    assert answers[:20] == [401] * 20 and 429 in answers
    connection = manual.connection("tcp")
    connection.source_address = ("127.0.0.2", 0)
    connection.request("POST", "/v1/join", json.dumps(announcement(token, 1)), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()


# -- who it is --

def test_what_a_machine_claims_is_only_a_wish(manual):
    token = new_token(manual)["token"]
    told = join(manual, announcement(token, 1, requested={"host_group": "service-master", "capabilities": ["storage"], "labels": {"rack": "r1"}})).ok()
    assert told["finding"] == "new" and told["acceptance"] == "pending" and told["user"] == "clusterctl" and told["public_key"].startswith("ssh-ed25519 ")
    node = manual.node("n1")
    assert node["spec"]["acceptance"] == "pending" and node["spec"]["host_group"] == "" and node["spec"]["labels"] == {} and node["spec"]["capabilities"] == []
    assert node["spec"]["ssh"]["host_key"] == host_key(1) and node["spec"]["ssh"]["user"] == "clusterctl" and node["role"] == ""
    assert node["status"]["requested"]["host_group"] == "service-master" and node["status"]["requested"]["labels"] == {"rack": "r1"}
    assert node["status"]["identity"]["serial"] == "FCH1" and told["leave_secret"] not in json.dumps(node)
    assert "digest" not in json.dumps(node)
    problem = manual.send("POST", "/v1/jobs", {"kind": "commission", "nodes": ["n1"], "host_group": "service-master"}).problem(422)
    assert "pending" in problem["detail"]
    shown = manual.cli("node", "inspect", "n1").stdout
    assert "service-master" in shown and "rack=r1" in shown and "SHA256:" in shown
    assert "waits for acceptance" in manual.cli("node", "ls").stdout
    manual.restart()
    assert manual.node("n1") == node


def test_the_policy_always_accepts_but_grants_nothing(daemon):
    told = join(daemon, announcement(new_token(daemon)["token"], 1, requested={"host_group": "service-master"})).ok()
    assert told["acceptance"] == "accepted"
    assert daemon.node("n1")["spec"]["host_group"] == ""


def test_a_token_is_good_for_so_many_machines(manual):
    token = new_token(manual, uses=2)["token"]
    for number in (1, 2):
        join(manual, announcement(token, number)).ok()
    assert "2 of 2" in join(manual, announcement(token, 3)).problem(401, "join_token_used")["detail"]
    assert [n["name"] for n in manual.get("/v1/nodes").ok()["nodes"]] == ["n1", "n2"]


def test_a_dry_run_tells_and_changes_nothing(manual):
    token = new_token(manual)["token"]
    before = nodes(manual)
    told = join(manual, announcement(token, 1, dry_run=True)).ok()
    assert told["node"] == "n1" and "leave_secret" not in told
    assert nodes(manual) == before and manual.get("/v1/join-tokens").ok()["tokens"][0]["state"] == "active"
    join(manual, announcement(token, 1)).ok()


def test_the_same_machine_that_joins_again_is_the_same_node(manual):
    token = new_token(manual, uses=5)["token"]
    first = join(manual, announcement(token, 1)).ok()
    again = join(manual, announcement(token, 1, name="other", requested={"labels": {"rack": "r9"}})).ok()
    assert again["id"] == first["id"] and again["finding"] == "known" and "node rename n1 other" in again["message"]
    assert len(manual.get("/v1/nodes").ok()["nodes"]) == 1
    assert manual.node("n1")["status"]["requested"]["labels"] == {"rack": "r9"}


TAKEOVERS = [
    ("name", dict(name="n1"), "name_taken"), ("short name", dict(name="n1.example.com"), "name_taken"), ("address", dict(addr="192.0.2.11"), "addr_taken"),
    ("identity elsewhere", dict(serial="FCH1", uuid=UUID % 1, macs=["00:25:b5:00:00:01"], host_keys=[host_key(1)]), "identity_conflict"),
    ("identity with another key", dict(serial="FCH1", uuid=UUID % 1, macs=["00:25:b5:00:00:01"], addr="192.0.2.11"), "host_key_changed"),
    ("other hardware", dict(uuid=UUID % 1, macs=["00:25:b5:00:00:01"], addr="192.0.2.11", host_keys=[host_key(1)]), "hardware_replaced")]


@pytest.mark.parametrize("what, claims, code", TAKEOVERS, ids=[t[0] for t in TAKEOVERS])
def test_nothing_of_a_living_node_can_be_taken_over(manual, what, claims, code):
    token = new_token(manual, uses=5)["token"]
    join(manual, announcement(token, 1)).ok()
    manual.cli("node", "accept", "n1", "-g", "service-worker")
    before = nodes(manual)
    problem = join(manual, announcement(token, 2, **claims)).problem(409, code)
    assert "n1" in problem["detail"]
    assert nodes(manual) == before
    assert manual.get("/v1/join-tokens").ok()["tokens"][0]["used"] == 1


def test_a_commissioned_node_cannot_be_taken_over(cluster):
    token = new_token(cluster, uses=5)["token"]
    key = announcement(token, 8)["host_keys"][0]
    cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"ssh": {"host_key": key}}}).ok()
    cluster.send("PATCH", "/v1/nodes/w1", {"spec": {"ssh": {"host_key": host_key(8)}}}).ok()  # the stand-in shows none
    worker = cluster.node("w1")
    identity, before = worker["status"]["identity"], nodes(cluster)
    for claims, code in ((dict(name="w1"), "name_taken"), (dict(addr=worker["spec"]["addr"]), "addr_taken"),
                         (dict(serial=identity["serial"], uuid=identity["uuid"], macs=identity["macs"]), "host_key_changed"),
                         (dict(serial=identity["serial"], uuid=identity["uuid"], macs=identity["macs"], host_keys=[key]),
                          "identity_conflict")):
        join(cluster, announcement(token, 7, **claims)).problem(409, code)
    assert nodes(cluster) == before
    # Who claims to be it in everything is taken for it, and changes nothing that counts.
    join(cluster, announcement(token, 7, serial=identity["serial"], uuid=identity["uuid"], addr=worker["spec"]["addr"], host_keys=[host_key(8)],
                               user="evil", ssh_port=2222)).ok()
    now = cluster.node("w1")
    assert now["spec"] == worker["spec"] and now["status"]["identity"] == identity


def test_the_address_of_the_controllers_own_machine_is_refused(manual):
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
    if not own:
        own = ["localhost.localdomain"]
    problem = join(manual, announcement(new_token(manual)["token"], 1, addr=own[0])).json
    assert problem["code"] in ("own_host", "bad_addr"), problem
    assert manual.get("/v1/nodes").ok()["nodes"] == []


def test_a_rejected_machine_stays_out(manual):
    token = new_token(manual, uses=5)["token"]
    join(manual, announcement(token, 1)).ok()
    assert manual.cli("node", "reject", "n1", "--reason", "not ours").returncode == 0
    before = nodes(manual)
    join(manual, announcement(token, 1)).problem(409, "rejected")
    assert nodes(manual) == before and "rejected" in manual.cli("node", "ls").stdout


def test_a_node_that_was_entered_by_hand_is_joined_by_its_machine(manual):
    manual.add("n1", "service-worker", addr="192.0.2.11", acceptance="accepted")
    told = join(manual, announcement(new_token(manual)["token"], 1)).ok()
    node = manual.node("n1")
    assert told["finding"] == "known" and told["acceptance"] == "accepted" and node["spec"]["host_group"] == "service-worker"
    assert node["spec"]["ssh"]["host_key"] == host_key(1) and node["spec"]["ssh"]["user"] == "clusterctl"


# -- acceptance --

def test_acceptance_by_fingerprints_lets_in_exactly_those_of_the_file(manual, tmp_path):
    token = new_token(manual, uses=5)["token"]
    for number in (1, 2, 3):
        join(manual, announcement(token, number)).ok()
    file = tmp_path / "rack"
    key = tmp_path / "key.pub"
    key.write_text(host_key(1) + "\n")
    listed = subprocess.run(["ssh-keygen", "-lf", str(key)], capture_output=True, text=True, check=True).stdout
    file.write_text("# rack 3\n%s\n%s\n" % (listed.strip(), host_key(3)))
    planned = manual.cli("node", "accept", "--fingerprints", str(file), "-g", "service-worker", "--plan")
    assert manual.node("n1")["spec"]["acceptance"] == "pending" and "n1" in planned.stdout + planned.stderr
    done = manual.cli("node", "accept", "--fingerprints", str(file), "-g", "service-worker", "--label", "rack=r3")
    assert done.returncode == 0 and "node n1 accepted" in done.stdout and "node n3 accepted" in done.stdout
    assert "n2 waits" in done.stderr and "n2" not in done.stdout
    assert [manual.node("n%d" % n)["spec"]["acceptance"] for n in (1, 2, 3)] == ["accepted", "pending", "accepted"]
    assert manual.node("n1")["spec"]["labels"] == {"rack": "r3"} and manual.node("n1")["spec"]["host_group"] == "service-worker"
    before = nodes(manual)
    none = manual.cli("node", "accept", "--fingerprints", str(file))
    assert none.returncode == 65 and none.stderr.count("error:") == 1 and nodes(manual) == before


@pytest.mark.parametrize("content", ["", "# nothing\n", "n1\n", "SHA256:short\n", "MD5:00:11\n"])
def test_a_file_without_fingerprints_lets_nobody_in(manual, tmp_path, content):
    join(manual, announcement(new_token(manual)["token"], 1)).ok()
    (tmp_path / "f").write_text(content)
    before = nodes(manual)
    assert manual.cli("node", "accept", "--fingerprints", str(tmp_path / "f")).returncode == 64
    assert nodes(manual) == before


def test_an_operator_may_grant_what_was_asked_for(manual):
    join(manual, announcement(new_token(manual)["token"], 1, requested={"host_group": "service-worker", "labels": {"rack": "r1", "zone": "a"}})).ok()
    assert manual.cli("node", "accept", "n1", "--as-requested", "--label", "zone=b").returncode == 0
    spec = manual.node("n1")["spec"]
    assert spec["acceptance"] == "accepted" and spec["host_group"] == "service-worker" and spec["labels"] == {"rack": "r1", "zone": "b"}


def test_a_machine_that_joined_is_commissioned_like_any_other(manual):
    join(manual, announcement(new_token(manual)["token"], 1)).ok()
    manual.double.orders(hardware={"n1": {"serial": "FCH1", "uuid": UUID % 1, "macs": ["00:25:b5:00:00:01"]}})
    assert manual.cli("node", "accept", "n1", "--host-group", "service-master").returncode == 0
    manual.commission("n1")
    inventory = manual.double.calls("site")[0]["dir"].joinpath("inventory.json").read_text()
    assert '"clusterctl"' in inventory and manual.lifecycle("n1") == "Allocated"


# -- leaving --

def test_only_the_machine_itself_may_ask_to_leave(manual):
    told = join(manual, announcement(new_token(manual)["token"], 1)).ok()
    before = nodes(manual)
    for body in ({"node": told["id"]}, {"node": told["id"], "secret": ""}, {"node": told["id"], "secret": "a" * 26}):
        manual.send("POST", "/v1/join/leave", body, via="tcp").problem(403, "wrong_secret")
    manual.send("POST", "/v1/join/leave", {"node": told["id"], "secret": told["leave_secret"], "force": True}, via="tcp").problem(400)
    manual.add("hand")
    manual.send("POST", "/v1/join/leave", {"node": manual.node("hand")["id"], "secret": ""}, via="tcp").problem(403)
    assert json.loads(nodes(manual))[1:] == json.loads(before)


def test_leaving_tells_a_stranger_nothing(manual):
    told = join(manual, announcement(new_token(manual)["token"], 1)).ok()
    manual.add("hand")
    nonsense = [{}, {"node": None}, {"node": "hand"}, {"node": told["node"]}, {"node": told["id"][:6], "secret": told["leave_secret"]},
                {"node": "nobody", "secret": told["leave_secret"]}, {"node": told["id"], "secret": "a" * 26}]
    answers = {manual.send("POST", "/v1/join/leave", body, via="tcp").body for body in nonsense}
    assert len(answers) == 1 and '"wrong_secret"' in answers.pop()
    genuine = {"node": told["id"], "secret": told["leave_secret"]}
    for _ in range(2):
        assert manual.send("POST", "/v1/join/leave", genuine, via="tcp").ok() == {"left": True}
    manual.restart()
    assert manual.send("POST", "/v1/join/leave", genuine, via="tcp").ok() == {"left": True}
    manual.send("POST", "/v1/join/leave", {**genuine, "secret": "a" * 26}, via="tcp").problem(403, "wrong_secret")
