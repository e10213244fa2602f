import json
import os
import socket
import sys
import threading
import types

import pytest


# ---- clusterctl_unit --------------------------------------------------------------------------

@pytest.fixture(scope="module")
def unit(plugin):
    return plugin("modules", "clusterctl_unit")


@pytest.mark.parametrize("text", ["", "a\n", "a\nb\n", "\n", "127.0.1.1 me\n\n"])
def test_block_goes_in_once_and_out_again(unit, text):
    once = unit.with_block(text, "hosts", "1.2.3.4 n1")
    assert once == text + "# BEGIN clusterctl hosts\n1.2.3.4 n1\n# END clusterctl hosts\n"
    assert unit.with_block(once, "hosts", "1.2.3.4 n1") == once
    assert unit.with_block(once, "hosts", "") == text
    twice = once + "tail\n" + once
    assert unit.with_block(twice, "hosts", "x").count("BEGIN") == 1


def test_block_stays_in_its_place(unit):
    text = "a\n# BEGIN clusterctl hosts\nold\n# END clusterctl hosts\nb\n"
    assert unit.with_block(text, "hosts", "new") == "a\n# BEGIN clusterctl hosts\nnew\n# END clusterctl hosts\nb\n"
    with pytest.raises(unit.Problem):
        unit.with_block("# BEGIN clusterctl hosts\nrest of the file\n", "hosts", "x")


def test_a_block_with_enough_lines_is_left_alone(unit, tmp_path):
    path = tmp_path / "hosts"
    path.write_text("10.9.9.9 m9\n# BEGIN clusterctl hosts\n10.0.0.4 w1\n10.0.0.1 m1\n# END clusterctl hosts\n")
    block = {"path": str(path), "name": "hosts", "content": "10.0.0.4 w1\n10.0.0.2 m2"}

    def changes(**more):
        made = files(unit, check=True)
        made.block(dict(block, **more))
        return made.changes
    assert changes() and changes(enough=[]) and changes(enough=["10.0.0.4 w1", "10.0.0.100 api"]) and changes(enough=["10.9.9.9 m9"])
    assert changes(enough=["10.0.0.4 w1"]) == []


def files(unit, calls=None, check=False):
    made = unit.Files(check, lambda: (calls if calls is not None else []).append("forgotten"))
    made.run = lambda argv: (0, "", "")
    return made


def item(path, content, **more):
    return dict({"path": str(path), "content": content, "mode": "0640", "owner": str(os.getuid()), "group": str(os.getgid()),
                 "in_place": False, "restart": True}, **more)


def test_files_are_written_once_and_the_record_goes_first(unit, tmp_path):
    calls = []
    there = tmp_path / "sub" / "file"
    first = files(unit, calls)
    first.file(item(there, "x"))
    assert there.read_text() == "x" and oct(there.stat().st_mode)[-3:] == "640" and calls == ["forgotten"]
    again = files(unit, calls)
    again.file(item(there, "x"))
    assert again.changes == [] and calls == ["forgotten"]
    there.chmod(0o777)
    third = files(unit, calls)
    third.file(item(there, "x"))
    assert len(third.changes) == 1 and oct(there.stat().st_mode)[-3:] == "640"


def test_in_place_keeps_the_inode(unit, tmp_path):
    there = tmp_path / "file"
    there.write_text("longer than before")
    before = there.stat().st_ino
    files(unit).file(item(there, "x", in_place=True))
    assert there.read_text() == "x" and there.stat().st_ino == before
    files(unit).file(item(there, "y"))
    assert there.stat().st_ino != before


def test_check_mode_touches_nothing(unit, tmp_path):
    looked = files(unit, check=True)
    looked.file(item(tmp_path / "a", "x"))
    looked.directory({"path": str(tmp_path / "d"), "mode": "0755", "owner": "root", "group": "root"})
    (tmp_path / "b").write_text("b")
    looked.absent(str(tmp_path / "b"))
    assert len(looked.changes) == 3 and sorted(os.listdir(tmp_path)) == ["b"]


def test_absent_does_not_follow_links_and_refuses_the_top(unit, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    made = files(unit)
    made.absent(str(tree))
    made.absent(str(tmp_path / "link"))
    made.absent(str(tmp_path / "never"))
    assert (outside / "precious").exists() and not tree.exists() and len(made.changes) == 2
    for path in ("/", "/etc", "/etc/.."):
        with pytest.raises(unit.Problem):
            made.absent(path)


def test_digest_depends_on_what_a_restart_depends_on(unit):
    base = unit.digest_of([item("/a", "x")], [], {})
    assert base == unit.digest_of([item("/a", "x"), item("/b", "y", restart=False)], [], {})
    assert base != unit.digest_of([item("/a", "y")], [], {})
    assert base != unit.digest_of([item("/a", "x")], [], {"version": "2"})


# ---- clusterctl_packages ----------------------------------------------------------------------

@pytest.mark.parametrize("version, wanted, met", [
    ("20.10.24+dfsg1-1", "20.10.24", True), ("5:20.10.24~3-0~debian", "20.10.24", True), ("20.10.24", "20.10.2", False),
    ("20.10.24", "20.10", True), ("20.10.24", "20.10.24", True), ("20.10.24", "23.0", False),
])
def test_version_matches(plugin, version, wanted, met):
    assert plugin("modules", "clusterctl_packages").version_matches(version, wanted) is met


class Manager(object):
    """What is installed; `install` breaks off after some of it, or dies."""

    def __init__(self, *names):
        self.now = dict((name, "1") for name in names)

    def installed(self):
        return dict(self.now)

    def install(self, wanted):
        for name, _version in wanted:
            if name == "death":
                raise KeyboardInterrupt
            self.now[name] = "1"

    def remove(self, names):
        for name in names:
            del self.now[name]


def packages_module(tmp_path, *names):
    return types.SimpleNamespace(params={"names": list(names), "record": str(tmp_path / "installed.json")}, check_mode=False)


def test_what_a_killed_transaction_has_brought_is_ours(plugin, tmp_path, monkeypatch):
    packages = plugin("modules", "clusterctl_packages")
    installed = sys.modules["ansible.module_utils.clusterctl_installed"]
    manager = Manager("theirs")
    written = []
    monkeypatch.setattr(packages, "settle", lambda module, record, now: written.append(1) or None)
    with pytest.raises(KeyboardInterrupt):  # as good as killed: nothing is written down afterwards
        packages.present(packages_module(tmp_path, "docker.io", "death"), manager)
    monkeypatch.undo()
    record = installed.read_record(str(tmp_path / "installed.json"))
    assert installed.installed_by_us(record, "docker.io") and not installed.installed_by_us(record, "theirs")
    assert packages.present(packages_module(tmp_path, "docker.io", "etcd"), manager)[0] == ["etcd"]
    record = installed.read_record(str(tmp_path / "installed.json"))
    assert sorted(record["packages"]) == ["docker.io", "etcd"] and "before" not in record
    assert packages.absent(packages_module(tmp_path), manager) == ["docker.io", "etcd"] and manager.now == {"theirs": "1"}


def test_an_engine_is_ours_by_its_marker_or_its_package_until_we_left_it(plugin, tmp_path):
    engine = plugin("modules", "clusterctl_engine")
    installed = sys.modules["ansible.module_utils.clusterctl_installed"]
    marker, left, record = (str(tmp_path / name) for name in ("marker", "left", "installed.json"))
    params = {"markers": [marker], "packages": ["docker.io"], "left": left}
    assert not engine.is_ours(params, record)
    installed.write_record(record, {"v": 1, "packages": {"docker.io": {}}})
    assert engine.is_ours(params, record)
    open(left, "w").close()
    assert not engine.is_ours(params, record), "its packages stayed, and somebody else uses them"
    open(marker, "w").close()
    assert engine.is_ours(params, record)


# ---- clusterctl_node --------------------------------------------------------------------------

def test_the_fence_finds_processes_of_a_run_and_not_itself(plugin):
    import subprocess
    import time

    node = plugin("modules", "clusterctl_node")
    child = subprocess.Popen(["sleep", "60"], env={"CLUSTERCTL_RUN_ID": "run-under-test"})
    other = subprocess.Popen(["sleep", "60"], env={"CLUSTERCTL_RUN_ID": "run-under-test-2"})
    try:
        time.sleep(0.2)
        assert list(node.marked(["run-under-test"])) == [child.pid]
        assert node.marked([""]) == {}
        threading.Thread(target=child.wait).start()
        assert len(node.fence(["run-under-test"], 0)) == 1
        assert child.wait(5) != 0 and other.poll() is None
    finally:
        other.kill()
        other.wait()


# ---- clusterctl_swarm against a stand-in for the engine ---------------------------------------

class Engine(object):
    """Speaks just enough HTTP on a Unix socket; `answers` maps (method, path) to values or functions of the body."""

    def __init__(self, path, answers):
        self.answers, self.calls = answers, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as reader:
                method, path, _ = reader.readline().decode().split()
                length = 0
                for line in iter(reader.readline, b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = json.loads(reader.read(length)) if length else None
                path = path.split("?")[0]
                self.calls.append((method, path, body))
                value = self.answers.get((method, path), (404, {"message": "no such thing: " + path}))
                value = value(body) if callable(value) else value
                status, value = value if isinstance(value, tuple) else (200, value)
                data = json.dumps(value).encode()
                connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data)


def node(name, role="worker", state="ready", availability="active", addr="10.0.0.9", manager=None):
    return {"ID": "id-" + name, "Version": {"Index": 7}, "Spec": {"Role": role, "Availability": availability, "Labels": {"keep": "me"}},
            "Description": {"Hostname": name.rstrip("0123456789-old") or name}, "Status": {"State": state, "Addr": addr}, "ManagerStatus": manager}


LEADER = {"Leader": True, "Reachability": "reachable", "Addr": "10.0.0.1:2377"}


@pytest.fixture
def swarm(plugin, tmp_path):
    module = plugin("modules", "clusterctl_swarm")

    def make(answers, **params):
        path = str(tmp_path / "engine.sock")
        engine = Engine(path, answers)
        full = dict(wait=2, address="10.0.0.9", data_address="", node_id="", recorded="", name="", port=2377, data_port=4789, pools=[],
                    availability="active", role="worker", token=None, managers=[], members=[])
        return module.Swarm(module.Engine(path), dict(full, **params)), engine, module

    return make


def test_status_without_an_engine_is_an_answer(plugin, tmp_path):
    module = plugin("modules", "clusterctl_swarm")
    found = module.Swarm(module.Engine(str(tmp_path / "none")), {"wait": 0}).status()
    assert found["answers"] is False and "does not answer" in found["message"]


def test_ask_gives_a_token_only_to_strangers(swarm):
    answers = {("GET", "/nodes"): [node("m", "manager", manager=LEADER), node("w")],
               ("GET", "/swarm"): {"ID": "c1", "JoinTokens": {"Worker": "secret", "Manager": "top"}}}
    known = swarm(answers, node_id="id-w", name="w")[0].ask()
    assert known["known"] and known["settled"] and "token" not in known and known["managers"] == ["10.0.0.1:2377"]


def test_ask_stranger(swarm):
    answers = {("GET", "/nodes"): [node("m", "manager", manager=LEADER)],
               ("GET", "/swarm"): {"ID": "c1", "JoinTokens": {"Worker": "secret", "Manager": "top"}}}
    asked = swarm(answers, node_id="id-w", name="w")[0].ask()
    assert not asked["known"] and not asked["settled"] and asked["token"] == "secret"


def test_join_refuses_a_member_of_another_swarm(swarm):
    answers = {("GET", "/info"): {"Swarm": {"LocalNodeState": "active", "NodeID": "x", "RemoteManagers": [{"Addr": "192.0.2.1:2377", "NodeID": "y"}]}}}
    made, engine, module = swarm(answers, managers=["10.0.0.1:2377"], token="t")
    with pytest.raises(module.Refused, match="another swarm"):
        made.join()
    assert [call[1] for call in engine.calls] == ["/info"]


def test_a_failed_join_leaves_and_tells_why(swarm):
    state = {"now": "inactive"}

    def left(_body):
        state["now"] = "inactive"
        return {}

    answers = {("GET", "/info"): lambda _b: {"Swarm": {"LocalNodeState": state["now"], "Error": "invalid join token" if state["now"] == "error" else ""}},
               ("POST", "/swarm/join"): lambda _b: (state.update(now="error"), (503, {"message": "refused"}))[1],
               ("POST", "/swarm/leave"): left}
    made, engine, module = swarm(answers, managers=["10.0.0.1:2377"], token="t")
    with pytest.raises(module.Refused, match="invalid join token"):
        made.join()
    assert ("POST", "/swarm/leave", None) in engine.calls and state["now"] == "inactive"


def test_admit_removes_older_entries_and_keeps_the_rest_of_the_spec(swarm):
    members = [node("m", "manager", manager=LEADER), node("w"), dict(node("w", state="down"), ID="id-old"), dict(node("w", state="down", addr="10.9.9.9"), ID="other-machine")]

    def update(body):
        members[1]["Spec"] = body
        return {}

    def remove(_body):
        members[:] = [m for m in members if m["ID"] != "id-old"]
        return {}

    answers = {("GET", "/nodes"): lambda _b: members, ("GET", "/nodes/id-w"): lambda _b: members[1],
               ("POST", "/nodes/id-w/update"): update, ("DELETE", "/nodes/id-old"): remove}
    made, _engine, _module = swarm(answers, node_id="id-w", name="w", availability="drain")
    made.admit()
    assert members[1]["Spec"] == {"Role": "worker", "Availability": "drain", "Labels": {"keep": "me"}}
    assert [m["ID"] for m in members] == ["id-m", "id-w", "other-machine"]


def test_the_entry_with_the_old_address_goes_and_the_new_one_of_that_name_stays(swarm):
    members = [node("m", "manager", manager=LEADER), node("w", addr="10.0.0.9"), dict(node("w", addr="10.0.0.5"), ID="id-old")]

    def remove(_body):
        members[:] = [m for m in members if m["ID"] != "id-old"]
        return {}

    answers = {("GET", "/nodes"): lambda _b: members, ("DELETE", "/nodes/id-old"): remove}
    made, _engine, _module = swarm(answers, members=[{"name": "w", "addr": "10.0.0.5", "ids": ["id-old"]}])
    made.remove()
    assert [m["ID"] for m in members] == ["id-m", "id-w"]
    made.remove()


def test_remove_by_id_beats_name_and_needs_the_address_for_a_name(swarm):
    members = [node("m", "manager", manager=LEADER), node("w", state="down", addr="10.0.0.5")]
    gone = []
    answers = {("GET", "/nodes"): lambda _b: [m for m in members if m["ID"] not in gone],
               ("DELETE", "/nodes/id-w"): lambda _b: gone.append("id-w") or {}}
    made, _engine, _module = swarm(answers, members=[{"name": "w", "addr": "10.0.0.6", "ids": []}])
    made.remove()
    assert gone == []
    made.params["members"] = [{"name": "anything", "addr": "", "ids": ["id-w"]}]
    made.remove()
    assert gone == ["id-w"]


def test_firewall_chains_of_an_outer_engine_are_not_ours(plugin):
    module = plugin("modules", "clusterctl_engine")
    ours = ["DOCKER", "DOCKER-USER", "DOCKER-ISOLATION-STAGE-1", "DOCKER-INGRESS"]
    assert all(module.CHAIN.match(name) for name in ours)
    assert not any(module.CHAIN.match(name) for name in ("DOCKER_OUTPUT", "DOCKERX", "MYDOCKER"))
    assert module.is_docker_rule("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE")
    assert not module.is_docker_rule("-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT")


# ---- clusterctl_node: what a machine says of itself ---------------------------------------------

@pytest.fixture(scope="module")
def what(plugin):
    return plugin("modules", "clusterctl_node")


def card(root, name, address, device="", **more):
    folder = root / name
    folder.mkdir()
    for key, value in dict({"address": address, "type": "1"}, **more).items():
        (folder / key).write_text(value + "\n")
    if device:
        (root.parent / device).mkdir(parents=True, exist_ok=True)
        (folder / "device").symlink_to(root.parent / device)
    return folder


def test_macs_are_those_of_the_cards(what, tmp_path):
    root = tmp_path / "net"
    root.mkdir()
    card(root, "lo", "00:00:00:00:00:00", type="772")
    card(root, "eno1", "00:25:B5:00:00:01", "pci0/card1")
    bonded = card(root, "eno2", "00:25:b5:00:00:01", "pci0/card2")
    (bonded / "bonding_slave").mkdir()
    (bonded / "bonding_slave/perm_hwaddr").write_text("00:25:b5:00:00:02\n")
    card(root, "usb0", "be:3a:f2:b6:05:9f", "pci0/usb1/1-1")
    card(root, "docker0", "02:42:00:00:00:01")
    card(root, "bond0", "00:25:b5:00:00:01")
    assert what.macs(str(root)) == ["00:25:b5:00:00:01", "00:25:b5:00:00:02"]


def test_macs_without_hardware(what, tmp_path):
    root = tmp_path / "net"
    root.mkdir()
    card(root, "eth0", "02:42:0a:00:00:0b")
    card(root, "eth0.7", "02:42:0a:00:00:0b")
    card(root, "veth12", "02:42:0a:00:00:0c")
    assert what.macs(str(root)) == ["02:42:0a:00:00:0b"]
    assert what.macs(str(tmp_path / "none")) == []


def test_slot_is_a_text_of_the_board(what):
    record = bytes([2, 15, 2, 0, 1, 2, 0, 0, 0, 0, 3, 0, 0, 10, 0]) + b"Cisco\0UCSB\0slot 5\0\0"
    assert what.slot(record) == "slot 5"
    for broken in (b"", b"\x02", record[:10], bytes([2, 15, 2, 0, 1, 2, 0, 0, 0, 0, 9, 0, 0, 10, 0]) + b"a\0\0", b"\x01" + record[1:]):
        assert what.slot(broken) == ""
