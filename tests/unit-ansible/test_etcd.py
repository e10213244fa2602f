"""What the modules of the role etcd reckon without a cluster."""

import concurrent.futures
import importlib.util
import json
import os
import stat
import struct
import subprocess

import pytest


def load(top, role, kind, name):
    spec = importlib.util.spec_from_file_location(name, top / "roles" / role / kind / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def node(top):
    return load(top, "etcd", "library", "etcd_node")


# ---- write-ahead log --------------------------------------------------------------------------

def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytearray([value]))


def frame(record):
    padding = -len(record) % 8
    length = len(record) | ((0x80 | padding) << 56 if padding else 0)
    return struct.pack("<Q", length) + record + b"\0" * padding


def log(member, cluster):
    meta = b"\x08" + varint(member) + b"\x10" + varint(cluster)
    return frame(b"\x08\x04\x10" + varint(7)) + frame(b"\x08\x01\x10" + varint(123456) + b"\x1a" + varint(len(meta)) + meta) + b"\0" * 64


def test_ids_are_read_from_the_log(node, tmp_path):
    folder = tmp_path / "member" / "wal"
    assert node.data_of(str(tmp_path)) is None
    folder.mkdir(parents=True)
    assert node.data_of(str(tmp_path)) is None
    (folder / "0000000000000000-0000000000000000.wal").write_bytes(log(0xFE4FA6748CE5E87B, 1))
    (folder / "0.tmp").write_bytes(b"")
    assert node.data_of(str(tmp_path)) == {"member": 0xFE4FA6748CE5E87B, "cluster": 1}


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"\xff" * 64, log(5, 6)[:20], os.urandom(256)])
def test_a_damaged_log_is_no_empty_directory(node, tmp_path, data):
    folder = tmp_path / "member" / "wal"
    folder.mkdir(parents=True)
    (folder / "0000000000000000-0000000000000000.wal").write_bytes(data)
    with pytest.raises(node.Problem, match="damaged"):
        node.data_of(str(tmp_path))


# ---- member list ------------------------------------------------------------------------------

def entry(number, name, *addresses):
    return {"id": number, "name": name, "peer_urls": ["https://%s:2380" % a for a in addresses]}


@pytest.mark.parametrize("wanted,recorded,found", [
    ({"id": "ab", "name": "other", "address": ""}, True, True),
    ({"id": "AB", "name": "other", "address": ""}, True, True),
    ({"id": "ac", "name": "n1", "address": "10.0.0.1"}, True, False),
    ({"id": "", "name": "n1", "address": "10.0.0.1"}, False, True),
    ({"id": "", "name": "n1", "address": "10.0.0.2"}, False, False),
    ({"id": "", "name": "n2", "address": "10.0.0.1"}, False, False),
    ({"id": "", "name": "n1", "address": "n1.example"}, False, True),
    ({"id": "", "name": "n1", "address": "10.0.0.2", "by_name": True}, False, True),
])
def test_who_is_removed(node, wanted, recorded, found):
    wanted.setdefault("by_name", False)
    assert node.Node.matches(entry(0xAB, "n1", "10.0.0.1"), wanted, recorded) is found


def test_an_entry_that_never_started_is_known_by_its_address(node):
    wanted = {"id": "", "name": "n1", "address": "10.0.0.1", "by_name": True}
    assert node.Node.matches(entry(1, "", "10.0.0.1"), wanted, False)
    assert not node.Node.matches(entry(1, "", "10.0.0.11"), wanted, False)


@pytest.mark.parametrize("alive,text", [((True, True, False), ""), ((True, False, False), "no majority: 1 of 3 members answer (b, c do not)")])
def test_majority(node, alive, text):
    members = [{"id": n, "name": n, "role": "member", "reachable": r} for n, r in zip("abc", alive)] + [{"id": "d", "name": "d", "role": "learner", "reachable": True}]
    assert node.Node.majority_problem({"members": members}) == text


def test_links(node):
    assert node.url("fd00::1", 2379) == "https://[fd00::1]:2379" and node.host_of("https://[fd00::1]:2379") == "fd00::1"
    assert node.host_of("https://10.0.0.1:2379") == "10.0.0.1" and node.port_of("https://10.0.0.1:2380") == 2380


@pytest.mark.parametrize("answer,err,reason", [
    (None, "Error: etcdserver: Member not found\n", "etcdserver: Member not found"),
    ([{"endpoint": "x", "health": False, "error": "context deadline exceeded"}], "Error: unhealthy cluster", "context deadline exceeded"),
    (None, '{"level":"warn","error":"rpc error: desc = \\"transport\\""}\nError: context deadline exceeded', 'rpc error: desc = "transport"'),
    (None, "", "no answer"),
])
def test_reason_in_one_line(node, answer, err, reason):
    assert node.Client.reason(answer, err) == reason


# ---- authority --------------------------------------------------------------------------------

def run_module(path, **arguments):
    done = subprocess.run(["/usr/bin/python3", str(path)], input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


@pytest.fixture
def sign(top, tmp_path):
    def request(name):
        key = tmp_path / (name + ".key")
        if not key.exists():
            subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key], check=True, stderr=subprocess.DEVNULL)
        return subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=" + name], check=True, stdout=subprocess.PIPE, text=True).stdout

    def call(name="n1", **more):
        arguments = dict(directory=str(tmp_path / "pki"), common_name="test", name=name, alternatives=[name, "10.0.0.1", "::1"], csr=request(name))
        arguments.update(more)
        return run_module(top / "roles" / "etcd" / "library" / "etcd_ca.py", **arguments)

    call.pki = tmp_path / "pki"
    return call


def test_authority_is_made_once_and_signs(sign, tmp_path):
    first = sign()
    assert first["changed"] and stat.S_IMODE((sign.pki / "ca.key").stat().st_mode) == 0o600 and stat.S_IMODE(sign.pki.stat().st_mode) == 0o700
    for name in ("certificate", "authority"):
        (tmp_path / name).write_text(first[name])
    subprocess.run(["openssl", "verify", "-x509_strict", "-CAfile", tmp_path / "authority", tmp_path / "certificate"], check=True, stdout=subprocess.DEVNULL)
    again = sign(certificate=first["certificate"], authority=first["authority"])
    assert not again["changed"] and again["certificate"] == first["certificate"]
    assert sorted(os.listdir(sign.pki)) == [".lock", "ca.crt", "ca.key"]


@pytest.mark.parametrize("more", [{"alternatives": ["n1", "10.0.0.2"]}, {"renew_days": 5000}, {"name": "n2"}, {"certificate": "damaged"}, {"certificate": ""}])
def test_a_certificate_that_does_not_fit_is_signed_anew(sign, more):
    first = sign()
    again = sign(**dict(dict(certificate=first["certificate"]), **more))
    assert again["changed"] and again["certificate"] != first["certificate"]


@pytest.mark.parametrize("more,text", [
    ({"alternatives": ["n1\nbasicConstraints=CA:true"]}, "neither an address nor a host name"), ({"alternatives": ["$(id)"]}, "neither an address"),
    ({"name": "n1", "csr": ""}, "empty or damaged"), ({"has_data": True, "authority": "another"}, "another certificate authority"),
])
def test_refusals(sign, more, text):
    sign()
    answer = sign(**more)
    assert answer.get("failed") and text in answer["msg"]


def test_a_request_for_another_name_is_refused(sign):
    csr = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=n9"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    assert "is for" in sign(csr=csr)["msg"]


def test_half_made_authorities(sign):
    sign()
    (sign.pki / "ca.crt").write_text("")
    assert sign()["changed"], "a key alone has signed nothing"
    (sign.pki / "ca.key").write_text("")
    assert "restore it" in sign()["msg"]


def test_many_at_once_make_one_authority(sign):
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(sign, ["n%d" % n for n in range(6)]))
    assert len({a["authority"] for a in answers}) == 1 and len({a["certificate"] for a in answers}) == 6
