#!/usr/bin/python
"""One etcd member on one node: everything the doors of the role need, each door in one module run."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: etcd_node
short_description: Prepare, run, verify and remove one member of an etcd cluster
description:
  - C(check) looks for what would be in the way and changes nothing.
  - C(prepare) makes the member's key and certificate request, and says what its data directory holds.
  - C(probe) says whether the node holds data of a cluster, and changes nothing.
  - C(converge) makes the node a healthy voting member. Whether it is new is decided by its data directory and by the member
    list of a usable other member, never by a marker. It joins as a learner and is promoted when it is in sync; a join that
    fails takes its own entry away again. The unit is restarted when what it was started with differs from what is on disk.
  - C(verify) reports one member as seen from the node, and changes nothing.
  - C(remove) takes members off the list, through the member that runs on this node.
  - C(wipe) stops the member and removes what the level promises.
options:
  operation: {type: str, required: true, choices: [check, prepare, probe, converge, verify, remove, wipe]}
  settings: {type: dict, required: true, description: Where things are and how long to wait. See the role's vars/main.yml.}
  peers: {type: list, elements: dict, default: [], description: The other managers, each with name and address.}
  certificate: {type: str, default: "", description: The member's certificate (PEM).}
  authority: {type: str, default: "", description: The authority's certificate (PEM).}
  pending: {type: list, elements: str, default: [], description: Other managers that are converged after this one in the same run.}
  holders: {type: list, elements: str, default: [], description: Other managers whose data directory belongs to a cluster.}
  bootstrap: {type: bool, default: false, description: The node may start a new cluster when it finds none.}
  members: {type: list, elements: dict, default: [], description: "Members to remove, each with name, address and id (hexadecimal); with by_name the name alone is enough."}
  level: {type: str, default: state, choices: [membership, state, packages, images]}
author: [clusterctl]
"""

import glob
import grp
import hashlib
import ipaddress
import json
import os
import pwd
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.clusterctl_installed import installed_by_us, read_record
from ansible.module_utils.common.text.converters import to_bytes, to_native, to_text

NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
RECORDS = "/var/lib/clusterctl-node/units"
UNMANAGED = "http://127.0.0.1:2379"  # where a distribution's etcd listens with its own defaults


class Problem(Exception):
    """Something an operator must know, in one line."""


class NotYet(Problem):
    """A member that runs and has found no majority."""


def in_parallel(function, items):
    """[function(item), …] with one thread for each item."""
    results = [None] * len(items)

    def work(index):
        results[index] = function(items[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def is_address(text):
    try:
        ipaddress.ip_address(to_text(text))
        return True
    except ValueError:
        return False


def url(address, port):
    return "https://%s:%d" % ("[%s]" % address if ":" in address else address, port)


def host_of(link):
    rest = link.split("://", 1)[-1]
    return rest[1:].split("]")[0] if rest.startswith("[") else rest.rsplit(":", 1)[0]


def port_of(link):
    return int(link.rsplit(":", 1)[1])


def hexadecimal(number):
    return "%x" % number


# ---- the data directory -----------------------------------------------------------------------

def protobuf(data):
    """Fields of a flat protobuf message: {number: int or bytes}."""
    fields, at = {}, 0

    def varint(at):
        value, shift = 0, 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at += 1
            if not byte & 0x80:
                return value, at
            shift += 7

    while at < len(data):
        key, at = varint(at)
        if key & 7 == 0:
            fields[key >> 3], at = varint(at)
        elif key & 7 == 2:
            size, at = varint(at)
            fields[key >> 3] = data[at:at + size]
            at += size
        else:
            raise ValueError("wire type %d" % (key & 7))
    return fields


def data_of(directory):
    """Whose data the directory holds, from the write-ahead log: None, or {"member": int, "cluster": int}."""
    logs = sorted(glob.glob(os.path.join(directory, "member", "wal", "*.wal")))
    if not logs:
        return None
    for path in reversed(logs):
        try:
            with open(path, "rb") as handle:
                for _record in range(8):
                    head = handle.read(8)
                    if len(head) < 8:
                        break
                    length = struct.unpack("<Q", head)[0]
                    padding = (length >> 56) & 7 if length >> 63 else 0
                    size = length & ((1 << 56) - 1)
                    if not 0 < size < 1 << 20:
                        break
                    record = protobuf(bytearray(handle.read(size)))
                    handle.read(padding)
                    if record.get(1) == 1:
                        meta = protobuf(record.get(3, b""))
                        return {"member": meta.get(1, 0), "cluster": meta.get(2, 0)}
        except (IndexError, ValueError, IOError):
            continue
    raise Problem("the write-ahead log in %s is damaged: clean this node and let it join again" % directory)


def emptied(directory):
    """Removes everything in a directory that may be a mount point; true when there was something."""
    if not os.path.isdir(directory):
        return False
    names = os.listdir(directory)
    for name in names:
        path = os.path.join(directory, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    return bool(names)


# ---- etcdctl ----------------------------------------------------------------------------------

class Client(object):
    """etcdctl over TLS with this node's certificate. Values travel as arguments and environment, never through a shell."""

    def __init__(self, settings):
        self.s = settings

    def call(self, endpoint, arguments, timeout=None, plain=False):
        """(parsed answer, "") or (None, reason)"""
        seconds = timeout or self.s["command_timeout"]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "ETCDCTL_API": "3"}
        if not plain:
            environment.update(ETCDCTL_CACERT=self.s["ca"], ETCDCTL_CERT=self.s["crt"], ETCDCTL_KEY=self.s["key"])
        command = ["etcdctl", "--endpoints=" + endpoint, "--write-out=json",
                   "--dial-timeout=%ds" % seconds, "--command-timeout=%ds" % seconds] + arguments
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        except OSError as error:
            return None, "etcdctl: %s" % error.strerror
        try:
            out, err = process.communicate(timeout=seconds + 5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, "etcdctl did not answer within %d s" % (seconds + 5)
        out, err = to_text(out).strip(), to_text(err).strip()
        try:
            answer = json.loads(out) if out else None
        except ValueError:
            answer = None
        if process.returncode == 0 and answer is not None:
            return answer, ""
        return None, self.reason(answer, err or out)

    @staticmethod
    def reason(answer, err):
        if isinstance(answer, list) and answer and answer[0].get("error"):
            return answer[0]["error"]
        lines = [line for line in err.splitlines() if line.startswith("Error: ") or line.startswith("{") is False]
        text = lines[-1] if lines else err
        for line in err.splitlines():
            found = re.search(r'"error":"((?:[^"\\]|\\.)*)"', line)
            if found and "context deadline exceeded" in text:
                text = found.group(1).replace('\\"', '"')
        return text.replace("Error: ", "").strip()[-300:] or "no answer"

    def listening(self, endpoint):
        try:
            socket.create_connection((host_of(endpoint), port_of(endpoint)), timeout=self.s["dial_timeout"]).close()
            return ""
        except (OSError, ValueError) as error:
            return "%s: %s" % (endpoint, getattr(error, "strerror", None) or error)

    def status(self, endpoint):
        """{"endpoint", "member", "cluster", "leader", "learner", "version"} or {"endpoint", "error"}"""
        closed = self.listening(endpoint)
        if closed:
            return {"endpoint": endpoint, "error": closed}
        answer, reason = self.call(endpoint, ["endpoint", "status"])
        if not answer:
            return {"endpoint": endpoint, "error": reason}
        value = answer[0]["Status"]
        return {"endpoint": endpoint, "member": value["header"]["member_id"], "cluster": value["header"]["cluster_id"],
                "leader": value.get("leader", 0), "learner": value.get("isLearner", False), "version": value.get("version", ""),
                "revision": value["header"].get("revision", 0)}

    def healthy(self, endpoint):
        """"" when a read through a majority works, else the reason"""
        answer, reason = self.call(endpoint, ["endpoint", "health"])
        return "" if answer and answer[0].get("health") else reason or "not healthy"

    def members(self, endpoint):
        answer, reason = self.call(endpoint, ["member", "list"])
        if answer is None:
            raise Problem("member list through %s: %s" % (endpoint, reason))
        found = []
        for item in answer.get("members", []):
            found.append({"id": item["ID"], "name": item.get("name", ""), "peer_urls": item.get("peerURLs", []),
                          "client_urls": item.get("clientURLs", []), "learner": item.get("isLearner", False)})
        return found


class View(object):
    """The cluster as one usable member sees it."""

    def __init__(self, endpoint, cluster, members):
        self.endpoint = endpoint
        self.cluster = cluster
        self.members = members

    def by_id(self, number):
        return next((m for m in self.members if m["id"] == number), None)


# ---- the node ---------------------------------------------------------------------------------

class Node(object):
    def __init__(self, module):
        self.module = module
        self.s = module.params["settings"]
        self.peers = module.params["peers"]
        self.changes = []
        self.client = Client(self.s)
        if not NAME.match(self.s["name"]):
            raise Problem("%r cannot be the name of a member" % self.s["name"])
        self.crash_count = 0

    # -- small tools --

    def run(self, *command, **options):
        code, out, error = self.module.run_command(list(command), data=options.get("data"))
        return code, out, error

    def must(self, *command, **options):
        code, out, error = self.run(*command, **options)
        if code != 0:
            raise Problem("%s: %s" % (" ".join(command[:3]), (error or out).strip() or "exit code %d" % code))
        return out

    def unit(self):
        fields = "LoadState,ActiveState,SubState,UnitFileState,InvocationID,NRestarts,DropInPaths,NeedDaemonReload,Result"
        _code, out, _error = self.run("systemctl", "show", "-p", fields, "--", self.s["unit"])
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def journal(self):
        # The last start only, and of that what etcd calls an error.
        _code, out, _error = self.run("journalctl", "-u", self.s["unit"], "-n", "40", "--no-pager", "-o", "cat")
        lines = [line.strip() for line in out.splitlines() if line.strip()]
        chosen = [line for line in lines if re.search(r'"level":"(error|fatal|panic)"|cannot|failed|refused|removed', line)] or lines
        found = []
        for line in chosen[-4:]:
            try:
                value = json.loads(line)
                line = ": ".join(str(value[key]) for key in ("msg", "error") if value.get(key))
            except ValueError:
                pass
            if line not in found:
                found.append(line)
        return " | ".join(found)[-600:]

    @property
    def endpoint(self):
        return url(self.address, self.s["client_port"])

    @property
    def peer_url(self):
        return url(self.address, self.s["peer_port"])

    def local_addresses(self):
        code, out, error = self.run("ip", "-j", "address", "show")
        if code != 0:
            raise Problem("ip address show: %s" % error.strip())
        return [(link["ifname"], item["local"]) for link in json.loads(out) for item in link.get("addr_info", [])]

    def find_address(self):
        """The address of this member: the one asked for, else the one of the interface asked for."""
        wanted, interface = self.s["address"], self.s["interface"]
        have = self.local_addresses()
        candidates = []
        if is_address(wanted):
            candidates = [str(ipaddress.ip_address(to_text(wanted)))]
        elif wanted:
            try:
                candidates = [info[4][0] for info in socket.getaddrinfo(wanted, None, 0, socket.SOCK_STREAM)]
            except (socket.gaierror, UnicodeError):
                candidates = []
        mine = [c for c in candidates if any(c == address for _name, address in have) and not ipaddress.ip_address(c).is_loopback]
        if interface and not self.s["explicit"]:
            on = [a for name, a in have if name == interface and not ipaddress.ip_address(a).is_link_local and a != self.s["vip"]]
            if not on:
                raise Problem("interface %s (control_interface) does not exist or has no address" % interface)
            return next((c for c in mine if c in on), on[0])
        if not mine:
            raise Problem("%s is no address of this machine: set etcd_address or control_interface" % (wanted or "nothing"))
        return mine[0]

    def data(self):
        return data_of(self.s["data_dir"])

    def replace(self, path, text, mode, owner="root", group="root"):
        """Writes a file by rename; true when it had to."""
        uid, gid = pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid
        try:
            with open(path, "rb") as handle:
                same = handle.read() == to_bytes(text)
            info = os.stat(path)
        except (IOError, OSError):
            same, info = False, None
        if same:
            if info.st_mode & 0o7777 == mode and (info.st_uid, info.st_gid) == (uid, gid):
                return False
            os.chown(path, uid, gid)
            os.chmod(path, mode)
            self.changes.append("set mode or owner of %s" % path)
            return True
        if path != self.s["environment"]:
            self.forget_record()  # first: a run that dies before the restart is finished by the next one
        descriptor, temporary = tempfile.mkstemp(prefix=".clusterctl-", dir=os.path.dirname(path))
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(to_bytes(text))
            handle.flush()
            os.fchmod(handle.fileno(), mode)
            os.fchown(handle.fileno(), uid, gid)
            os.fsync(handle.fileno())
        os.rename(temporary, path)
        self.changes.append("wrote %s" % path)
        return True

    def directory(self, path, mode, owner="root", group="root"):
        uid, gid = pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid
        if not os.path.isdir(path):
            os.makedirs(path, 0o755)
            self.changes.append("made %s" % path)
        info = os.stat(path)
        if info.st_mode & 0o7777 != mode or (info.st_uid, info.st_gid) != (uid, gid):
            os.chown(path, uid, gid)
            os.chmod(path, mode)
            if not self.changes or self.changes[-1] != "made %s" % path:
                self.changes.append("set mode or owner of %s" % path)

    @staticmethod
    def text(path):
        try:
            with open(path) as handle:
                return handle.read()
        except IOError:
            return ""

    def managed(self):
        """Is the etcd on this node ours? Any of its parts says so: the others may be lost."""
        return any(os.path.exists(self.s[name]) for name in ("dropin", "config", "crt")) or bool(glob.glob(os.path.join(self.s["data_dir"], "member")))

    # -- check --

    def check(self):
        problems = []

        def add(code, message, hint):
            problems.append({"service": "etcd", "code": code, "message": message, "hint": hint})

        try:
            self.address = self.find_address()
        except Problem as problem:
            self.address = ""
            add("etcd_address", to_native(problem), "set etcd_address of this node to an address of its own that the other managers reach")
        try:
            data = self.data()
        except Problem as problem:
            data = {}
            add("etcd_data_damaged", to_native(problem), "decommission the node, which removes %s, and commission it again" % self.s["data_dir"])
        state = self.unit()
        active = state.get("ActiveState") in ("active", "activating", "reloading")
        if active and not self.managed() and self.holds_foreign_keys():
            add("etcd_unmanaged", "an etcd that clusterctl does not manage runs here and holds data",
                "move its data elsewhere and remove it, or give the cluster another machine")
        if not active:
            for port in (self.s["client_port"], self.s["peer_port"]):
                if self.taken(port):
                    add("etcd_port_taken", "port %d is in use by another program" % port,
                        "stop that program or set etcd_client_port and etcd_peer_port")
        folder = self.s["data_dir"]
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        volume = os.statvfs(folder)
        free = volume.f_bavail * volume.f_frsize // (1 << 20)
        if data is None and free < self.s["min_free_mb"]:
            add("etcd_disk_space", "%d MiB are free in %s, etcd wants %d" % (free, folder, self.s["min_free_mb"]),
                "free some space or set etcd_data_dir to a bigger file system")
        return {"problems": problems, "changed": False}

    @staticmethod
    def taken(port):
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            try:
                with open(table) as handle:
                    for line in list(handle)[1:]:
                        part = line.split()
                        if part[3] == "0A" and int(part[1].rsplit(":", 1)[1], 16) == port:
                            return True
            except IOError:
                pass
        return False

    def holds_foreign_keys(self):
        """An unmanaged etcd with the distribution's defaults that was never written to is nobody's."""
        answer, _reason = self.client.call(UNMANAGED, ["endpoint", "status"], timeout=3, plain=True)
        if not answer:
            return True
        return answer[0]["Status"]["header"].get("revision", 0) > 1

    # -- prepare --

    def prepare(self):
        for program in ("etcd", "etcdctl", "openssl"):
            if not self.module.get_bin_path(program):
                raise Problem("%s is not installed" % program)
        try:
            pwd.getpwnam(self.s["user"])
        except KeyError:
            raise Problem("there is no user %s" % self.s["user"])
        self.address = self.find_address()
        self.adopt()
        user = self.s["user"]
        self.directory(self.s["config_dir"], 0o750, "root", user)
        key = self.s["key"]
        if self.run("openssl", "pkey", "-in", key, "-noout")[0] != 0:
            descriptor, temporary = tempfile.mkstemp(prefix=".clusterctl-", dir=self.s["config_dir"])
            os.close(descriptor)
            self.must("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", temporary)
            os.rename(temporary, key)
            self.changes.append("made %s" % key)
        uid, gid = pwd.getpwnam(user).pw_uid, grp.getgrnam(user).gr_gid
        info = os.stat(key)
        if info.st_mode & 0o7777 != 0o600 or (info.st_uid, info.st_gid) != (uid, gid):
            os.chown(key, uid, gid)
            os.chmod(key, 0o600)
            if "made %s" % key not in self.changes:
                self.changes.append("set mode or owner of %s" % key)
        csr = self.must("openssl", "req", "-new", "-key", key, "-subj", "/CN=" + self.s["name"])
        return {"address": self.address, "csr": csr, "certificate": self.text(self.s["crt"]), "authority": self.text(self.s["ca"]),
                "has_data": self.data() is not None}

    def adopt(self):
        """A distribution's etcd that was started by its package with its own defaults must not stay."""
        if self.managed() or self.unit().get("ActiveState") not in ("active", "activating", "reloading"):
            return
        if self.holds_foreign_keys():
            raise Problem("an etcd that clusterctl does not manage runs on this machine and holds data: move it away first")
        self.must("systemctl", "stop", "--", self.s["unit"])
        self.changes.append("stopped the unmanaged %s" % self.s["unit"])
        if emptied("/var/lib/etcd/default"):
            self.changes.append("emptied /var/lib/etcd/default")

    # -- configuration --

    def configuration(self, cluster=None, state="existing", token=None):
        """The configuration as text. Without `cluster` it is the lasting one: with it, a member that has lost its data
        directory can neither start a new cluster nor join one, it stops."""
        s = self.s
        tls = {"cert-file": s["crt"], "key-file": s["key"], "client-cert-auth": True, "trusted-ca-file": s["ca"]}
        entries = [
            ("name", s["name"]),
            ("data-dir", s["data_dir"]),
            ("listen-peer-urls", self.peer_url),
            ("listen-client-urls", "%s,%s" % (self.endpoint, url("127.0.0.1", s["client_port"]))),
            ("initial-advertise-peer-urls", self.peer_url),
            ("advertise-client-urls", self.endpoint),
            ("initial-cluster", cluster or "%s=%s" % (s["name"], self.peer_url)),
            ("initial-cluster-state", state),
            ("client-transport-security", tls),
            ("peer-transport-security", tls),
            ("enable-v2", False),
            ("heartbeat-interval", s["heartbeat_ms"]),
            ("election-timeout", s["election_ms"]),
            ("quota-backend-bytes", s["quota_bytes"]),
            ("auto-compaction-mode", "periodic"),
            ("auto-compaction-retention", s["compaction"]),
            ("strict-reconfig-check", True),
            ("logger", "zap"),
            ("log-outputs", ["stderr"]),
            ("log-level", s["log_level"]),
        ]
        if token:
            entries.insert(8, ("initial-cluster-token", token))
        lines = ["# Written by clusterctl, role etcd: changes are undone."]
        for key, value in entries:
            if isinstance(value, dict):
                lines.append("%s:" % key)
                lines += ["  %s: %s" % (name, json.dumps(value[name])) for name in sorted(value)]
            else:
                lines.append("%s: %s" % (key, json.dumps(value)))
        return "\n".join(lines) + "\n"

    def unit_text(self):
        # Not Type=notify: a member that waits for its majority must not keep the boot of its machine waiting.
        binary = self.module.get_bin_path("etcd", required=True)
        return ("# Written by clusterctl, role etcd: changes are undone.\n"
                "[Unit]\nWants=network-online.target\nAfter=network-online.target\nStartLimitIntervalSec=0\n\n"
                "[Service]\nType=simple\nEnvironment=\nEnvironmentFile=\nExecStart=\nExecStart=%s --config-file %s\n"
                "User=%s\nRestart=always\nRestartSec=2\nLimitNOFILE=65536\nUMask=0077\n"
                % (binary, self.s["config"], self.s["user"]))

    def environment_text(self):
        return ("# etcdctl on this node: set -a; . %s; set +a\nETCDCTL_API=3\nETCDCTL_ENDPOINTS=%s\nETCDCTL_CACERT=%s\nETCDCTL_CERT=%s\nETCDCTL_KEY=%s\n"
                % (self.s["environment"], self.endpoint, self.s["ca"], self.s["crt"], self.s["key"]))

    def write_files(self):
        group = self.s["user"]
        for name in ("certificate", "authority"):
            if "BEGIN CERTIFICATE" not in self.module.params[name]:
                raise Problem("the %s for %s is empty or damaged" % (name, self.s["name"]))
        self.replace(self.s["ca"], self.module.params["authority"], 0o644)
        self.replace(self.s["crt"], self.module.params["certificate"], 0o644)
        self.replace(self.s["environment"], self.environment_text(), 0o644)
        if not os.path.isdir(os.path.dirname(self.s["dropin"])):
            os.makedirs(os.path.dirname(self.s["dropin"]), 0o755)
        self.replace(self.s["dropin"], self.unit_text(), 0o644)
        self.directory(self.s["data_dir"], 0o700, group, group)
        # An ordinary run ends with the lasting configuration; what an interrupted join left is replaced here, too.
        self.replace(self.s["config"], self.configuration(), 0o640, "root", group)
        if self.unit().get("NeedDaemonReload") == "yes" or any("etcd.service" in c or self.s["dropin"] in c for c in self.changes):
            self.must("systemctl", "daemon-reload")

    # -- restarts follow what the unit was started with --

    def digest(self):
        value = hashlib.sha256()
        for path in (self.s["ca"], self.s["crt"], self.s["key"], self.s["dropin"]):
            value.update(to_bytes(self.text(path)) + b"\0")
        value.update(to_bytes(self.configuration()))
        binary = os.stat(self.module.get_bin_path("etcd", required=True))
        value.update(to_bytes("%d %d" % (binary.st_size, int(binary.st_mtime))))
        return value.hexdigest()

    @property
    def record(self):
        return os.path.join(RECORDS, self.s["unit"] + ".json")

    def outdated(self, state):
        try:
            record = json.loads(self.text(self.record))
        except ValueError:
            return True
        return record.get("digest") != self.digest() or (
            record.get("invocation") != state.get("InvocationID") and self.changes_after_start())

    def changes_after_start(self):
        """The unit was started by somebody else (a reboot, an operator): did a file change after that?"""
        _code, out, _error = self.run("systemctl", "show", "-p", "ActiveEnterTimestampMonotonic", "--value", "--", self.s["unit"])
        try:
            began = time.time() - (time.monotonic() - int(out.strip() or 0) / 1e6)
        except ValueError:
            return True
        paths = (self.s["ca"], self.s["crt"], self.s["key"], self.s["dropin"], self.s["config"])
        return max(os.stat(path).st_ctime for path in paths) > began

    def remember(self):
        if not os.path.isdir(RECORDS):
            os.makedirs(RECORDS, 0o755)
        value = json.dumps({"digest": self.digest(), "invocation": self.unit().get("InvocationID", "")})
        if self.text(self.record) != value:
            with open(self.record + ".new", "w") as handle:
                handle.write(value)
            os.rename(self.record + ".new", self.record)

    def forget_record(self):
        if os.path.exists(self.record):
            os.unlink(self.record)

    def stop(self):
        if self.unit().get("ActiveState") not in ("inactive", "failed"):
            self.must("systemctl", "stop", "--", self.s["unit"])
            self.changes.append("stopped %s" % self.s["unit"])
        self.run("systemctl", "reset-failed", "--", self.s["unit"])

    def start(self, verb="start"):
        self.forget_record()
        self.run("systemctl", "reset-failed", "--", self.s["unit"])
        self.must("systemctl", verb, "--no-block", "--", self.s["unit"])
        self.changes.append("%sed %s" % (verb, self.s["unit"]))
        self.crash_count = None

    def ensure_enabled(self):
        state = self.unit()
        if state.get("LoadState") == "masked":
            self.must("systemctl", "unmask", "--quiet", "--", self.s["unit"])
            self.changes.append("unmasked %s" % self.s["unit"])
        if self.unit().get("UnitFileState") != "enabled":
            self.must("systemctl", "enable", "--quiet", "--", self.s["unit"])
            self.changes.append("enabled %s" % self.s["unit"])

    # -- the cluster --

    def look(self, endpoints):
        """(usable views, other answers, errors) of these endpoints, all asked at once."""
        answers = in_parallel(self.client.status, endpoints)
        alive = [a for a in answers if "error" not in a]
        reasons = in_parallel(lambda a: "learner" if a["learner"] else self.client.healthy(a["endpoint"]), alive)
        views, others = [], []
        for answer, reason in zip(alive, reasons):
            if reason:
                others.append(dict(answer, reason=reason))
            else:
                views.append(View(answer["endpoint"], answer["cluster"], self.client.members(answer["endpoint"])))
        return views, others, [a["error"] for a in answers if "error" in a]

    def peer_endpoints(self):
        found = []
        for peer in self.peers:
            link = url(peer["address"], int(peer.get("port") or self.s["client_port"]))
            if peer["address"] and peer["name"] != self.s["name"] and link not in found and link != self.endpoint:
                found.append(link)
        return found

    def look_at_peers(self):
        views, others, errors = self.look(self.peer_endpoints())
        clusters = set(view.cluster for view in views)
        if len(clusters) > 1:
            # Two clusters answer: the one that lists more of the managers is the cluster, a lone member is not.
            views.sort(key=lambda view: -len(view.members))
            if len(views[0].members) == len(views[-1].members):
                raise Problem("the other managers belong to different etcd clusters: %s" % ", ".join(
                    "%s in %x" % (host_of(view.endpoint), view.cluster) for view in views))
            views = [view for view in views if view.cluster == views[0].cluster]
        return views, others, errors

    def converge(self):
        self.address = self.find_address()
        self.write_files()
        self.ensure_enabled()
        deadline = time.time() + self.s["join_wait"]
        while True:
            data = self.data()
            views, others, errors = self.look_at_peers()
            view = views[0] if views else None
            if data:
                if view and view.cluster != data["cluster"]:
                    raise Problem("%s holds data of etcd cluster %x, the managers are in %x: clean this node and commission it again"
                                  % (self.s["data_dir"], data["cluster"], view.cluster))
                if view and not view.by_id(data["member"]):
                    self.discard("removed the data of the former member %x" % data["member"])
                    continue
                return self.keep(data, view)
            if view:
                return self.join(view, deadline)
            if not others and self.module.params["bootstrap"] and not self.module.params["holders"]:
                return self.bootstrap()
            if time.time() >= deadline or not self.peers:
                if others:
                    raise Problem("the etcd cluster has no majority: %s" % "; ".join("%s %s" % (host_of(o["endpoint"]), o["reason"]) for o in others))
                if self.module.params["holders"]:
                    errors.insert(0, "there is a cluster, its data is on %s" % ", ".join(self.module.params["holders"]))
                raise Problem("no usable etcd member to join: %s" % ("; ".join(errors) or "no other manager is known"))
            time.sleep(self.s["retry_delay"])

    def discard(self, why):
        self.stop()
        self.forget_record()
        emptied(self.s["data_dir"])
        self.changes.append(why)

    def keep(self, data, view):
        """The data directory belongs to a member: run it."""
        if view:
            entry = view.by_id(data["member"])
            if entry["peer_urls"] != [self.peer_url]:
                answer, reason = self.client.call(view.endpoint, ["member", "update", hexadecimal(data["member"]), "--peer-urls=" + self.peer_url])
                if answer is None:
                    raise Problem("changing the peer address in the member list: %s" % reason)
                self.changes.append("changed the peer address in the member list")
        state = self.unit()
        active = state.get("ActiveState") in ("active", "activating", "reloading")
        if not active:
            self.start()
        elif self.outdated(state):
            self.before_restart()
            self.start("restart")
        try:
            status = self.wait_healthy(self.s["pending_wait"] if self.module.params["pending"] and not view else None)
        except NotYet as problem:
            if view or not self.module.params["pending"]:
                raise
            # The others that make up the majority have their turn later in this run. Whether it has come, verify says.
            self.remember()
            return dict(self.result(data["member"], data["cluster"]), msg="%s; waiting for %s" % (problem, ", ".join(self.module.params["pending"])))
        if status["learner"]:
            self.promote(data["member"], time.time() + self.s["join_wait"])
        self.remember()
        return self.result(data["member"], data["cluster"])

    def before_restart(self):
        """A restart must not cost the majority, and the leader hands over first."""
        mine = self.client.status(self.endpoint)
        if "error" in mine or mine["learner"] or self.client.healthy(self.endpoint):
            return  # it serves nothing now
        voters = [m for m in self.client.members(self.endpoint) if not m["learner"]]
        if len(voters) < 3:
            return
        others = [m for m in voters if m["id"] != mine["member"]]
        answers = in_parallel(lambda m: self.client.status((m["client_urls"] or [self.endpoint + "0"])[0]) if m["client_urls"] else {"error": "not started"}, others)
        alive = [m for m, a in zip(others, answers) if "error" not in a]
        if len(alive) < len(voters) // 2 + 1:
            raise Problem("restarting etcd here would lose the majority: only %d of the %d other members answer (%s do not)" % (
                len(alive), len(others), ", ".join(m["name"] or hexadecimal(m["id"]) for m in others if m not in alive)))
        if mine["leader"] == mine["member"] and alive:
            self.client.call(self.endpoint, ["move-leader", hexadecimal(alive[0]["id"])])

    def crashing(self, state):
        """True when the unit keeps ending by itself since it was started by us."""
        count = int(state.get("NRestarts") or 0)
        if self.crash_count is None or count < self.crash_count:
            self.crash_count = count
        return state.get("ActiveState") == "failed" or count - self.crash_count >= 3

    def wait_healthy(self, seconds=None):
        """Waits until this member serves (a learner: until it follows a leader)."""
        seconds = seconds or self.s["wait"]
        deadline, reason = time.time() + seconds, "not started"
        while True:
            status = self.client.status(self.endpoint)
            if "error" in status:
                reason = status["error"]
            elif status["learner"]:
                if status["leader"]:
                    return status
                reason = "the learner has found no leader"
            else:
                reason = self.client.healthy(self.endpoint)
                if not reason and self.unit().get("ActiveState") == "active":
                    return status
            state = self.unit()
            if self.crashing(state):
                raise Problem("%s keeps ending: %s" % (self.s["unit"], self.journal() or reason))
            if time.time() >= deadline:
                break
            time.sleep(0.3)
        log = self.journal() if "error" in status else ""
        raise NotYet("etcd is not healthy after %d s: %s%s" % (seconds, reason, " (%s)" % log if log else ""))

    def bootstrap(self):
        self.stop()
        token = "%s-%s" % (re.sub(r"[^A-Za-z0-9.-]", "-", self.s["cluster_name"]), os.urandom(8).hex())
        self.replace(self.s["config"], self.configuration(state="new", token=token), 0o640, "root", self.s["user"])
        try:
            self.start()
            status = self.wait_healthy()
        except Problem:
            self.discard("removed the data of the failed start")
            self.replace(self.s["config"], self.configuration(), 0o640, "root", self.s["user"])
            raise
        self.replace(self.s["config"], self.configuration(), 0o640, "root", self.s["user"])
        self.remember()
        self.changes.append("started a new cluster")
        return self.result(status["member"], status["cluster"])

    def join(self, view, deadline):
        self.stop()
        emptied(self.s["data_dir"])
        for entry in view.members:
            # Entries of this node without its data can never come back to life.
            if entry["name"] == self.s["name"] or self.peer_url in entry["peer_urls"]:
                self.remove_through(view.endpoint, entry["id"])
                self.changes.append("removed the stale member %x" % entry["id"])
        added = self.add_learner(view.endpoint, deadline)
        try:
            names = ["%s=%s" % (self.s["name"] if m["ID"] == added["member"]["ID"] else m.get("name") or "member-%x" % m["ID"], link)
                     for m in added["members"] for link in m["peerURLs"]]
            self.replace(self.s["config"], self.configuration(cluster=",".join(names)), 0o640, "root", self.s["user"])
            self.start()
            status = self.wait_healthy()
            self.promote(status["member"], time.time() + self.s["join_wait"])
        except Exception as error:
            reason = to_native(error)
            try:
                self.remove_through(view.endpoint, added["member"]["ID"])
            except Problem as problem:
                reason += " (and its entry %x could not be removed: %s)" % (added["member"]["ID"], problem)
            self.discard("removed the data of the failed join")
            self.replace(self.s["config"], self.configuration(), 0o640, "root", self.s["user"])
            raise Problem("joining the cluster failed: %s" % reason)
        self.replace(self.s["config"], self.configuration(), 0o640, "root", self.s["user"])
        self.remember()
        self.changes.append("joined the cluster")
        return self.result(status["member"], status["cluster"])

    def add_learner(self, endpoint, deadline):
        while True:
            answer, reason = self.client.call(endpoint, ["member", "add", self.s["name"], "--learner", "--peer-urls=" + self.peer_url])
            if answer:
                return answer
            if time.time() >= deadline:
                raise Problem("adding a learner through %s: %s" % (host_of(endpoint), reason))
            time.sleep(min(0.3, self.s["retry_delay"]))  # refused for a moment after another member has come

    def promote(self, member, deadline):
        while True:
            views, _others, errors = self.look_at_peers()
            reason = "; ".join(errors) or "no usable member"
            if views:
                entry = views[0].by_id(member)
                if not entry:
                    raise Problem("the member list has lost the entry %x" % member)
                if not entry["learner"]:
                    break
                answer, reason = self.client.call(views[0].endpoint, ["member", "promote", hexadecimal(member)])
                if answer:
                    self.changes.append("promoted to a voting member")
                    break
            if time.time() >= deadline:
                raise Problem("the learner was not promoted within %d s: %s" % (self.s["join_wait"], reason))
            time.sleep(min(0.3, self.s["retry_delay"]))
        until = time.time() + self.s["wait"]
        reason = self.client.healthy(self.endpoint)
        while reason and time.time() < until:
            time.sleep(0.3)
            reason = self.client.healthy(self.endpoint)
        if reason:
            raise Problem("promoted, but not healthy after %d s: %s" % (self.s["wait"], reason))

    def result(self, member, cluster):
        return {"member_id": hexadecimal(member), "cluster_id": hexadecimal(cluster), "address": self.address}

    # -- remove --

    def hand_over(self, endpoint, entry):
        """A leader that leaves gives the lead to the member behind `endpoint` first: nobody has to wait for an election."""
        here = self.client.status(endpoint)
        if "error" in here or here["leader"] != entry["id"] or here["member"] == entry["id"]:
            return
        for link in entry["client_urls"]:
            answer, _reason = self.client.call(link, ["move-leader", hexadecimal(here["member"])])
            if answer:
                self.changes.append("%s took over the lead" % self.s["name"])
                return

    def remove_through(self, endpoint, member):
        reason = ""
        for _attempt in range(self.s["remove_retries"]):
            answer, reason = self.client.call(endpoint, ["member", "remove", hexadecimal(member)])
            if answer or "not found" in reason:
                return
            time.sleep(self.s["retry_delay"])
        raise Problem("member remove %x through %s: %s" % (member, host_of(endpoint), reason))

    @staticmethod
    def matches(entry, wanted, recorded):
        """By recorded id when the list has it, else by name and address (an entry that never started has no name)."""
        if recorded:
            return hexadecimal(entry["id"]) == wanted["id"].lower()
        hosts = [host_of(link) for link in entry["peer_urls"]]
        if entry["name"]:
            return entry["name"] == wanted["name"] and (wanted["by_name"] or not is_address(wanted["address"]) or wanted["address"] in hosts)
        return wanted["address"] in hosts

    def remove(self):
        endpoint = url("127.0.0.1", self.s["client_port"])
        if not self.managed() and not self.data():
            return {"removed": []}  # this node is in no cluster, so nobody is listed here
        deadline = time.time() + self.s["remove_wait"]
        while True:
            views, others, errors = self.look([endpoint])
            if views:
                break
            if time.time() >= deadline:
                raise Problem("no member can be removed through %s: %s" % (
                    self.s["name"], "the cluster has no majority (%s)" % others[0]["reason"] if others else errors[0]))
            time.sleep(self.s["retry_delay"])
        removed = []
        for wanted in self.module.params["members"]:
            wanted = {"id": to_native(wanted.get("id") or ""), "name": to_native(wanted.get("name") or ""),
                      "address": to_native(wanted.get("address") or ""), "by_name": bool(wanted.get("by_name"))}
            members = self.client.members(endpoint)
            recorded = any(hexadecimal(m["id"]) == wanted["id"].lower() for m in members)
            for entry in [m for m in members if self.matches(m, wanted, recorded)]:
                self.hand_over(endpoint, entry)
                self.remove_through(endpoint, entry["id"])
                removed.append({"id": hexadecimal(entry["id"]), "name": entry["name"]})
                self.changes.append("removed the member %s (%x)" % (entry["name"] or wanted["name"], entry["id"]))
            left = [m for m in self.client.members(endpoint) if self.matches(m, wanted, recorded)]
            if left:
                raise Problem("the member %s is still listed" % (wanted["name"] or wanted["id"]))
        return {"removed": removed}

    # -- wipe --

    def ours(self):
        """Did clusterctl configure etcd here, or install it?"""
        record = read_record()
        return self.managed() or any(installed_by_us(record, name) for name in ("etcd-server", "etcd"))

    def wipe(self):
        level = self.module.params["level"]
        state = self.unit()
        if self.ours():
            self.leave()
            if state.get("LoadState") not in ("not-found", "masked"):
                self.stop()
            if self.unit().get("UnitFileState") in ("enabled", "enabled-runtime"):
                self.must("systemctl", "disable", "--quiet", "--", self.s["unit"])
                self.changes.append("disabled %s" % self.s["unit"])
        self.forget_record()
        if level == "membership":
            return {}
        if emptied(self.s["data_dir"]):
            self.changes.append("removed the data")
        if os.path.isdir(self.s["data_dir"]) and not os.path.ismount(self.s["data_dir"]):
            os.rmdir(self.s["data_dir"])
        mine = [self.s[name] for name in ("key", "crt", "ca", "config", "environment", "dropin")]
        for path in mine + glob.glob(os.path.join(self.s["config_dir"], ".clusterctl-*")):
            if os.path.exists(path):
                os.unlink(path)
                self.changes.append("removed %s" % path)
        for path in (self.s["config_dir"], os.path.dirname(self.s["dropin"])):
            if os.path.isdir(path) and not os.listdir(path):
                os.rmdir(path)
        if self.changes:
            self.must("systemctl", "daemon-reload")
            self.run("systemctl", "reset-failed", "--", self.s["unit"])
        left = [path for path in mine + [os.path.join(self.s["data_dir"], "member")] if os.path.exists(path)]
        if self.running():
            left.append("a running etcd")
        if left:
            raise Problem("still there after the cleanup: %s" % ", ".join(left))
        return {}

    def leave(self):
        """Nobody has taken this member off the list (there was no peer): it does so itself, through another one."""
        self.address = None
        try:
            self.address = self.find_address()
            members = self.client.members(url("127.0.0.1", self.s["client_port"]))
            mine = self.client.status(url("127.0.0.1", self.s["client_port"]))
        except Problem:
            return
        others = [m["client_urls"][0] for m in members if m["id"] != mine.get("member") and m["client_urls"] and not m["learner"]]
        if "error" in mine or not others:
            return
        views, _others, _errors = self.look(others)
        views = [v for v in views if v.cluster == mine["cluster"] and v.by_id(mine["member"])]
        if views:
            self.remove_through(views[0].endpoint, mine["member"])
            self.changes.append("left the cluster")

    def running(self):
        """An etcd process with our configuration, whoever started it."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as handle:
                    words = handle.read().split(b"\0")
            except (IOError, OSError):
                continue
            if os.path.basename(words[0]) == b"etcd" and to_bytes(self.s["config"]) in words:
                return True
        return False

    # -- verify --

    def verify(self):
        fact = {"v": 1, "version": "", "healthy": False, "message": ""}
        deadline = time.time() + self.s["verify_wait"]
        while True:
            try:
                wrong = self.examine(fact)
            except Problem as problem:
                wrong = to_native(problem)
            if not wrong or time.time() >= deadline:
                break
            time.sleep(min(1, self.s["retry_delay"]))
        fact["healthy"], fact["message"] = not wrong, wrong
        return {"fact": fact, "changed": False}

    def examine(self, fact):
        """Fills the fact; what is wrong in one line, or "". The most telling reason comes first."""
        self.address = self.find_address()
        fact["endpoint"] = self.endpoint
        fact.pop("members", None)
        state = self.unit()
        if not os.path.exists(self.s["dropin"]) or not os.path.exists(self.s["config"]):
            return "etcd is not installed by clusterctl on this node"
        wrong = []
        wrong += self.certificate_problem()
        if state.get("UnitFileState") != "enabled":
            wrong.append("%s is not enabled for boot" % self.s["unit"])
        data = self.data()
        if data:
            fact["member_id"] = hexadecimal(data["member"])
        # All at once: this member, and the others as the controller knows them.
        statuses = in_parallel(self.client.status, [self.endpoint] + self.peer_endpoints())
        mine, peers = statuses[0], [s for s in statuses[1:] if "error" not in s]
        if "error" not in mine:
            fact["version"], fact["member_id"] = mine["version"], hexadecimal(mine["member"])
            if not mine["learner"]:
                self.fill_members(fact, mine)
        stranger = self.membership_problem(mine, data, peers, fact)
        if stranger:
            return "; ".join([stranger] + wrong)
        if state.get("ActiveState") != "active":
            return "; ".join(["%s is %s" % (self.s["unit"], state.get("ActiveState", "unknown"))] + wrong)
        if "error" in mine:
            return "; ".join(wrong + ["the endpoint does not answer: %s" % mine["error"]])
        if mine["learner"]:
            fact["role"] = "learner"
            return "; ".join(["the member is a learner and was not promoted"] + wrong)
        reason = self.client.healthy(self.endpoint)
        if reason:
            return "; ".join([self.majority_problem(fact) or "not healthy: %s" % reason] + wrong)
        wrong += self.alarm_problem(fact)
        return "; ".join(wrong)

    def fill_members(self, fact, mine):
        members = self.client.members(self.endpoint)
        known = {mine["member"]: mine}
        rest = [m for m in members if m["id"] != mine["member"]]
        for entry, answer in zip(rest, in_parallel(lambda m: self.client.status(m["client_urls"][0]) if m["client_urls"] else {"error": "not started"}, rest)):
            known[entry["id"]] = answer
        leader = mine["leader"]
        fact["members"] = []
        for entry in sorted(members, key=lambda m: (m["name"], m["id"])):
            answer = known.get(entry["id"], {"error": "unknown"})
            fact["members"].append({
                "id": hexadecimal(entry["id"]), "name": entry["name"],
                "addr": host_of(entry["peer_urls"][0]) if entry["peer_urls"] else "",
                "role": "learner" if entry["learner"] else "leader" if entry["id"] == leader else "member",
                "reachable": "error" not in answer and answer.get("cluster") == mine["cluster"] and answer.get("member") == entry["id"],
                "leader": entry["id"] == leader})
        fact["role"] = "leader" if leader == mine["member"] else "member"

    def membership_problem(self, mine, data, peers, fact):
        """Does this node belong to the cluster that the other managers are in?"""
        if "error" not in mine:
            number, cluster = mine["member"], mine["cluster"]
        elif data:
            number, cluster = data["member"], data["cluster"]
        else:
            return "the node holds no etcd data and is not a member" if self.s["unit"] else ""
        stranger = self.other_cluster(cluster, len(fact.get("members", [])), peers)
        if stranger:
            return "this member is in another etcd cluster (%x) than %s (%x)" % (cluster, host_of(stranger["endpoint"]), stranger["cluster"])
        for peer in peers:
            if peer["cluster"] == cluster and not peer["learner"] and not self.client.healthy(peer["endpoint"]):
                if not any(m["id"] == number for m in self.client.members(peer["endpoint"])):
                    return "%x is not a member of the cluster any more (member list of %s)" % (number, host_of(peer["endpoint"]))
                break
        if fact.get("members") and not any(m["id"] == hexadecimal(number) for m in fact["members"]):
            return "%x is not in its own member list" % number
        return ""

    def other_cluster(self, mine, listed, peers):
        """A manager in another cluster, if that one is the cluster and ours is not: more managers are in it, or it lists more."""
        ranks = {mine: [1, listed]}
        for peer in peers:
            ranks.setdefault(peer["cluster"], [0, 0])[0] += 1
        if len(ranks) == 1:
            return None
        for peer in peers:
            if peer["cluster"] != mine and not peer["learner"]:
                ranks[peer["cluster"]][1] = max(ranks[peer["cluster"]][1], len(self.client.members(peer["endpoint"])))
        best = max(rank for cluster, rank in ranks.items() if cluster != mine)
        return next(p for p in peers if p["cluster"] != mine and ranks[p["cluster"]] == best) if best >= ranks[mine] else None

    @staticmethod
    def majority_problem(fact):
        voters = [m for m in fact.get("members", []) if m["role"] != "learner"]
        alive = [m for m in voters if m["reachable"]]
        if voters and len(alive) < len(voters) // 2 + 1:
            return "no majority: %d of %d members answer (%s do not)" % (
                len(alive), len(voters), ", ".join(m["name"] or m["id"] for m in voters if not m["reachable"]))
        return ""

    def certificate_problem(self):
        wrong = []
        for path in (self.s["ca"], self.s["crt"]):
            if self.run("openssl", "x509", "-in", path, "-noout")[0] != 0:
                wrong.append("%s is missing, empty or damaged" % path)
                continue
            for days, text in ((0, "has expired"), (self.s["cert_min_days"], "expires in less than %d days" % self.s["cert_min_days"])):
                if self.run("openssl", "x509", "-in", path, "-noout", "-checkend", str(days * 86400))[0] != 0:
                    wrong.append("the certificate %s %s" % (path, text))
                    break
        if not wrong and self.run("openssl", "verify", "-CAfile", self.s["ca"], self.s["crt"])[0] != 0:
            wrong.append("the certificate %s is not from the authority %s" % (self.s["crt"], self.s["ca"]))
        return wrong

    def alarm_problem(self, fact):
        answer, reason = self.client.call(self.endpoint, ["alarm", "list"])
        if answer is None:
            return ["alarms cannot be read: %s" % reason]
        names = {m["id"]: m["name"] for m in fact.get("members", [])}
        kinds = {1: "NOSPACE", 2: "CORRUPT"}
        return ["alarm %s raised by %s" % (kinds.get(a.get("alarm"), a.get("alarm")), names.get(hexadecimal(a["memberID"])) or hexadecimal(a["memberID"]))
                for a in answer.get("alarms") or []]


def main():
    module = AnsibleModule(argument_spec=dict(
        operation=dict(type="str", required=True, choices=["check", "prepare", "probe", "converge", "verify", "remove", "wipe"]),
        settings=dict(type="dict", required=True, options=dict(
            name=dict(type="str", required=True), address=dict(type="str", required=True), explicit=dict(type="bool", default=False),
            interface=dict(type="str", default=""), vip=dict(type="str", default=""), cluster_name=dict(type="str", default="default"),
            client_port=dict(type="int", default=2379), peer_port=dict(type="int", default=2380),
            unit=dict(type="str", default="etcd.service"), user=dict(type="str", default="etcd"),
            config_dir=dict(type="path", default="/etc/etcd"), data_dir=dict(type="path", default="/var/lib/etcd/clusterctl"),
            heartbeat_ms=dict(type="int", default=250), election_ms=dict(type="int", default=2500),
            quota_bytes=dict(type="int", default=2147483648), compaction=dict(type="str", default="8h"), log_level=dict(type="str", default="info"),
            wait=dict(type="int", default=60), pending_wait=dict(type="int", default=5), join_wait=dict(type="int", default=60),
            verify_wait=dict(type="int", default=10), retry_delay=dict(type="int", default=2), command_timeout=dict(type="int", default=5),
            dial_timeout=dict(type="int", default=2), remove_retries=dict(type="int", default=5), remove_wait=dict(type="int", default=20),
            cert_min_days=dict(type="int", default=30), min_free_mb=dict(type="int", default=1024))),
        peers=dict(type="list", elements="dict", default=[]),
        certificate=dict(type="str", default=""),
        authority=dict(type="str", default=""),
        bootstrap=dict(type="bool", default=False),
        pending=dict(type="list", elements="str", default=[]),
        holders=dict(type="list", elements="str", default=[]),
        members=dict(type="list", elements="dict", default=[]),
        level=dict(type="str", default="state", choices=["membership", "state", "packages", "images"]),
    ))
    s = module.params["settings"]
    for key, name in (("key", "member.key"), ("crt", "member.crt"), ("ca", "ca.crt"), ("config", "etcd.yml"), ("environment", "etcdctl.env")):
        s[key] = os.path.join(s["config_dir"], name)
    s["dropin"] = "/etc/systemd/system/%s.d/clusterctl.conf" % s["unit"]
    changes = []
    try:
        node = Node(module)
        changes = node.changes
        operation = module.params["operation"]
        if operation == "probe":
            result = {"has_data": node.data() is not None, "changed": False}
        else:
            result = getattr(node, operation)()
    except Problem as problem:
        module.fail_json(msg=to_native(problem), changes=changes)
    except (OSError, IOError) as error:
        module.fail_json(msg="%s: %s" % (error.filename or "file", error.strerror or error), changes=changes)
    result.setdefault("changed", bool(changes))
    module.exit_json(changes=changes, **result)


if __name__ == "__main__":
    main()
