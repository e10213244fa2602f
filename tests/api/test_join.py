"""Machines that join by themselves: tokens, what they may claim, what an operator grants, and how they leave."""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness import BINARY, wait_for

UUID = "4c4c4544-0031-3010-8052-b4c04f4e313%d"


def host_key(number):
    """A public key that is one in form."""
    kind = b"ssh-ed25519"
    body = len(kind).to_bytes(4, "big") + kind + (32).to_bytes(4, "big") + bytes([number]) * 32
    return "ssh-ed25519 " + base64.b64encode(body).decode()


def announcement(token, number, **more):
    return {**dict(token=token, name="n%d" % number, addr="192.0.2.%d" % (10 + number), serial="FCH%d" % number, uuid=UUID % number,
                   macs=["00:25:b5:00:00:0%d" % number], host_keys=[host_key(number)], os="debian 12"), **more}


def new_token(daemon, **wish):
    return daemon.send("POST", "/v1/join-tokens", wish).ok(201)


def join(daemon, body, via="tcp", **options):
    return daemon.send("POST", "/v1/join", body, via=via, **options)


def nodes(daemon):
    return daemon.cli("node", "ls", "-o", "json").stdout


@pytest.fixture
def manual(daemon):
    """Machines that join wait."""
    daemon.send("PATCH", "/v1/cluster", {"accept_policy": "manual"}).ok()
    return daemon


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


# -- the machine's side --

@pytest.fixture
def machine():
    """A folder that stands for "/" of a new machine, and a visudo that is content."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="m"))
    for folder in ("etc/ssh", "etc/sudoers.d", "home", "root", "sys/class/dmi/id", "sys/class/net/eth0", "bin"):
        (root / folder).mkdir(parents=True)
    files = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\nusers:x:100:\n", "etc/shadow": "root:*:19000::::::\n",
             "etc/gshadow": "root:*::\n", "etc/hostname": "N1\n", "etc/os-release": 'ID=debian\nVERSION_ID="12"\n', "etc/ssh/ssh_host_ed25519_key.pub": host_key(1) + " x\n",
             "sys/class/dmi/id/product_serial": "FCH1\n", "sys/class/dmi/id/product_uuid": (UUID % 1).upper() + "\n",
             "sys/class/net/eth0/address": "00:25:b5:00:00:01\n", "sys/class/net/eth0/type": "1\n"}
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "bin/visudo").write_text("#!/bin/sh\nexit 0\n")
    (root / "bin/visudo").chmod(0o755)
    yield root
    shutil.rmtree(root)


def on(machine, daemon, *arguments, **env):
    return daemon.cli(*arguments, "--root", str(machine), env=dict({"PATH": "%s/bin:%s" % (machine, os.environ["PATH"])}, **env))


def join_machine(machine, daemon, token, *more):
    return on(machine, daemon, "cluster", "join", "http://127.0.0.1:%d" % daemon.port, "--token", token, "--addr", "192.0.2.11", *more)


def tree(root):
    """Everything below a folder: mode, owner and content."""
    return {str(p.relative_to(root)): (stat.S_IMODE(p.lstat().st_mode), p.lstat().st_uid, p.read_bytes() if p.is_file() else None)
            for p in sorted(root.rglob("*")) if not p.name.endswith(("-", ".lock"))}


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


def test_only_the_machine_itself_may_ask_to_leave(manual):
    told = join(manual, announcement(new_token(manual)["token"], 1)).ok()
    before = nodes(manual)
    for body in ({"node": told["id"]}, {"node": told["id"], "secret": ""}, {"node": told["id"], "secret": "a" * 26}):
        manual.send("POST", "/v1/join/leave", body, via="tcp").problem(403, "wrong_secret")
    manual.send("POST", "/v1/join/leave", {"node": told["id"], "secret": told["leave_secret"], "force": True}, via="tcp").problem(400)
    manual.add("hand")
    manual.send("POST", "/v1/join/leave", {"node": manual.node("hand")["id"], "secret": ""}, via="tcp").problem(403)
    assert json.loads(nodes(manual))[1:] == json.loads(before)


def test_leaving_a_controller_that_is_gone(manual, machine):
    assert join_machine(machine, manual, new_token(manual)["token"]).returncode == 0
    manual.stop()
    lost = on(machine, manual, "cluster", "leave")
    assert lost.returncode == 69 and "--local" in lost.stderr and (machine / "home/clusterctl").exists()
    assert on(machine, manual, "cluster", "leave", "--local").returncode == 0
    assert not (machine / "home/clusterctl").exists()


# -- the controller's side --

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
    """origins.md: init, join, pending, accept, commission, decommission, rm, leave."""
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
