#!/usr/bin/python
"""The virtual address as seen from one node: what is in its way, who holds it, and whether it is really gone."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: ucarp_node
short_description: Check, verify and release the cluster's virtual address on a node
description:
  - C(check) looks for what would be in the way (address taken, outside the subnet, a node's address, group id in use). Changes nothing.
  - C(verify) says whether this node holds the address or stands by, and whether exactly one machine answers for it. Changes nothing.
  - C(step_aside) lets another node have the address and keeps this one out of the way, over reboots; C(take_part) ends that.
  - C(release) removes the address and everything that was written while the service ran. The units must be stopped already.
options:
  operation: {type: str, required: true, choices: [check, verify, step_aside, take_part, release]}
  vip: {type: str, required: true, description: The virtual address.}
  address: {type: str, default: "", description: The node's own address or host name.}
  interface: {type: str, default: "", description: "The interface. Empty is the one that carries O(address)."}
  vhid: {type: int, default: 0, description: Group id of the cluster.}
  subnet: {type: str, default: "", description: The control subnet. Empty is that of the interface.}
  nodes: {type: dict, default: {}, description: "Address of every known node, by name."}
  managers: {type: list, elements: str, default: [], description: Names of the nodes that may hold the address already.}
  wait: {type: int, default: 15, description: Seconds that C(verify) waits until the state is settled.}
  listen: {type: float, default: 1.5, description: Seconds to wait for answers on the network.}
  alone: {type: bool, default: false, description: There is no other node that could hold the address.}
  ports: {type: list, elements: int, default: [], description: TCP ports that must accept connections at the address after C(step_aside).}
  keep: {type: bool, default: false, description: Keep what was written while the service ran.}
author: [clusterctl]
"""

import glob
import ipaddress
import json
import os
import re
import select
import shutil
import socket
import struct
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_native, to_text

RUN = "/run/clusterctl-ucarp"
ARMED = "/var/lib/clusterctl-node/ucarp-armed.json"
ASIDE = "/var/lib/clusterctl-node/ucarp-aside"
CONFIG = "/etc/clusterctl-ucarp/config.json"
UNITS = ("clusterctl-ucarp.service", "clusterctl-ucarp-watchdog.service")
INTERFACE = re.compile(r"^[A-Za-z0-9_.@:-]{1,15}$")


class Problem(Exception):
    def __init__(self, code, message, hint):
        Exception.__init__(self, message)
        self.code, self.hint = code, hint


def as_address(text):
    try:
        return ipaddress.IPv4Address(to_text(text))
    except ValueError:
        return None


def read(path):
    try:
        with open(path) as handle:
            return handle.read()
    except (IOError, OSError):
        return ""


def ask(interface, addresses, seconds, vhid=0):
    """({address: set of MACs that answer for it}, {source addresses of adverts with this group id})"""
    answers, adverts = dict((a, set()) for a in addresses), set()
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    try:
        raw.bind((interface, 0x0003))
        mac = raw.getsockname()[4]
        until, sent = time.time() + seconds, 0
        while True:
            now = time.time()
            if now >= until:
                break
            if sent < 3 and now >= until - seconds + sent * seconds / 4:
                sent += 1
                for address in addresses:
                    # Sender address 0.0.0.0: asks without telling anybody a place.
                    raw.send(b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + b"\0" * 10 + socket.inet_aton(address))
            if not select.select([raw], [], [], min(0.1, until - now))[0]:
                continue
            frame = raw.recv(2048)
            kind = frame[12:14]
            if kind == b"\x08\x06" and len(frame) >= 42 and frame[20:22] == b"\0\x02":
                source, owner = socket.inet_ntoa(frame[28:32]), frame[22:28]
                if source in answers and owner != mac:
                    answers[source].add(":".join("%02x" % byte for byte in bytearray(owner)))
            elif vhid and kind == b"\x08\0" and len(frame) > 38 and bytearray(frame)[23] == 112 and frame[6:12] != mac:
                head = 14 + (bytearray(frame)[14] & 15) * 4
                if len(frame) > head + 1 and bytearray(frame)[head] == 0x21 and bytearray(frame)[head + 1] == vhid:
                    adverts.add(socket.inet_ntoa(frame[26:30]))
    finally:
        raw.close()
    return answers, adverts


class Node(object):
    def __init__(self, module):
        self.module = module
        self.p = module.params
        self.changes = []

    def links(self):
        code, out, error = self.module.run_command(["ip", "-j", "-4", "address", "show"])
        if code != 0:
            raise Problem("ucarp_ip", "ip address show: %s" % error.strip(), "install iproute2")
        return dict((link["ifname"], [(a["local"], a["prefixlen"]) for a in link.get("addr_info", [])]) for link in json.loads(out) if "ifname" in link)

    def place(self, have):
        """The interface that carries the node's address, or the one asked for."""
        name, wanted = self.p["interface"], self.p["address"]
        if name:
            if not INTERFACE.match(name) or not [a for a in have.get(name, []) if a[0] != self.p["vip"]]:
                raise Problem("ucarp_interface", "interface %s (control_interface) does not exist or has no address" % name,
                              "set control_interface to one of: %s" % ", ".join(n for n in sorted(have) if n != "lo" and have[n]))
            return name
        if not as_address(wanted):
            try:
                wanted = socket.gethostbyname(wanted)
            except (socket.error, UnicodeError):
                pass
        for name in have:
            if any(a[0] == wanted for a in have[name]):
                return name
        raise Problem("ucarp_interface", "no interface carries %s" % (wanted or "the node's address"), "set control_interface")

    def unit(self, name):
        _code, out, _error = self.module.run_command(["systemctl", "show", "-p", "LoadState,ActiveState,UnitFileState,MainPID", "--", name])
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    # -- check --

    def check(self):
        problems = []
        try:
            self.look_for_problems()
        except Problem as problem:
            problems.append({"service": "ucarp", "code": problem.code, "message": to_native(problem), "hint": problem.hint})
        return {"problems": problems}

    def look_for_problems(self):
        vip, hint = self.p["vip"], "set service_vip to a free address of the control subnet"
        address = as_address(vip)
        if address is None or address.is_loopback or address.is_multicast or address.is_unspecified:
            raise Problem("ucarp_vip", "service_vip %s is no IPv4 address that a machine can hold" % json.dumps(vip), hint)
        for name in sorted(self.p["nodes"]):
            if self.p["nodes"][name] == vip:
                raise Problem("ucarp_vip_is_node", "service_vip %s is the address of node %s" % (vip, name), hint)
        have = self.links()
        interface = self.place(have)
        own = [a for a in have[interface] if a[0] != vip]
        if self.p["subnet"]:
            try:
                networks = [ipaddress.ip_network(to_text(self.p["subnet"]), strict=False)]
            except ValueError:
                raise Problem("ucarp_subnet", "control_subnet %s is no network" % json.dumps(self.p["subnet"]), "write it like 10.0.0.0/24")
        else:
            networks = [ipaddress.ip_network(to_text("%s/%d" % a), strict=False) for a in own]
        inside = [n for n in networks if address in n]
        if not inside:
            raise Problem("ucarp_vip_subnet", "service_vip %s is outside the control subnet (%s)" % (vip, ", ".join(str(n) for n in networks)), hint)
        if any(n.prefixlen < 31 and address in (n.network_address, n.broadcast_address) for n in inside):
            raise Problem("ucarp_vip_subnet", "service_vip %s is the network or broadcast address of its subnet" % vip, hint)
        for name in have:
            for local in have[name]:
                # Ours is a host address, and written down.
                if local[0] == vip and not (local[1] == 32 and os.path.exists(CONFIG)):
                    raise Problem("ucarp_vip_is_node", "service_vip %s is an address of this machine (%s)" % (vip, name), hint)
        if any(a[0] == vip for name in have for a in have[name]):
            return
        managers = dict((self.p["nodes"][n], n) for n in self.p["managers"] if as_address(self.p["nodes"].get(n, "")))
        answers, adverts = ask(interface, [vip] + list(managers), self.p["listen"], self.p["vhid"])
        friends = set(mac for a in managers for mac in answers[a])
        strangers = answers[vip] - friends
        if strangers:
            raise Problem("ucarp_vip_taken", "service_vip %s is taken: %s answers for it" % (vip, ", ".join(sorted(strangers))), hint)
        others = sorted(a for a in adverts if a not in managers)
        if others:
            raise Problem("ucarp_vhid_taken", "group id %d is used on this network by %s" % (self.p["vhid"], ", ".join(others)),
                          "set ucarp_vhid to another number from 1 to 255 on all managers")

    # -- verify --

    def verify(self):
        fact = {"v": 1, "version": "", "healthy": False, "message": "", "endpoint": self.p["vip"]}
        code, out, _error = self.module.run_command(["dpkg-query", "-W", "-f", "${Version}", "ucarp"]) if self.module.get_bin_path("dpkg-query") else \
            self.module.run_command(["rpm", "-q", "--qf", "%{VERSION}", "ucarp"])
        if code == 0:
            fact["version"] = re.sub(r"^\d+:|[+-].*$", "", out.strip())
        until = time.time() + self.p["wait"]
        while True:
            try:
                wrong = self.wrong(fact)
            except Problem as problem:
                wrong = to_native(problem)
            if not wrong or time.time() >= until:
                break
            time.sleep(0.5)
        fact["message"], fact["healthy"] = wrong, not wrong
        return {"fact": fact}

    def wrong(self, fact):
        fact.pop("role", None)
        wrong = []
        for name in UNITS:
            state = self.unit(name)
            if state.get("LoadState") == "not-found":
                return "the virtual address is not set up by clusterctl on this node (%s is missing)" % name
            if state.get("ActiveState") != "active":
                wrong.append("%s is %s" % (name, state.get("ActiveState")))
            if state.get("UnitFileState") != "enabled":
                wrong.append("%s is not enabled for boot" % name)
        if wrong:
            return "; ".join(wrong)
        pid = self.unit(UNITS[0]).get("MainPID", "0")
        program = os.path.basename(read("/proc/%s/cmdline" % pid).split("\0")[0])
        if program != "ucarp":
            return "ucarp does not run yet"
        if re.search(r"^State:\s+[Tt]", read("/proc/%s/status" % pid), re.M):
            return "ucarp is stopped and does not take part"
        have = self.links()
        interface = self.place(have)
        held = read(RUN + "/held").split()
        where = [name for name in have if any(a[0] == self.p["vip"] for a in have[name])]
        if held and held[1:] != [self.p["vip"]]:
            return "ucarp holds %s, not %s" % (" ".join(held[1:]), self.p["vip"])
        fact["role"] = "holder" if held else "backup"
        if held and where != [held[0]]:
            return "this node is the holder, but the address is on %s" % (", ".join(where) or "none of its interfaces")
        if not held and where:
            return "this node is not the holder, but the address is on %s" % ", ".join(where)
        if any(a[0] == self.p["vip"] and a[1] != 32 for name in where for a in have[name]):
            return "the address was added with a subnet route"
        macs = sorted(ask(interface, [self.p["vip"]], self.p["listen"])[0][self.p["vip"]])
        if held and macs:
            return "this node is the holder, but %s answers for the address, too" % ", ".join(macs)
        if not held and not macs:
            return "nobody holds the address"
        if len(macs) > 1:
            return "several machines answer for the address: %s" % ", ".join(macs)
        return ""

    # -- step aside, take part --

    def step_aside(self):
        self.stand(True)
        if self.p["alone"]:
            return {}
        wrong = self.settle(self.not_handed_over)
        if not wrong:
            return {}
        self.stand(False)
        raise Problem("", "the address %s was not handed over within %d s: %s" % (self.p["vip"], self.p["wait"], wrong), "")

    def take_part(self):
        self.stand(False)
        wrong = self.settle(lambda: self.wrong({}))
        if wrong:
            raise Problem("", wrong, "")
        return {}

    def settle(self, look):
        until = time.time() + self.p["wait"]
        while True:
            try:
                wrong = look()
            except Problem as problem:
                wrong = to_native(problem)
            if not wrong or time.time() >= until:
                return wrong
            time.sleep(0.5)

    def stand(self, aside):
        """The priority is given to ucarp when it starts; a holder that ends gives the address away at once."""
        if aside != os.path.exists(ASIDE):
            if aside:
                if not os.path.isdir(os.path.dirname(ASIDE)):
                    os.makedirs(os.path.dirname(ASIDE))
                with open(ASIDE, "w") as handle:
                    handle.flush()
                    os.fsync(handle.fileno())
            else:
                os.unlink(ASIDE)
            self.changes.append("stepped aside" if aside else "takes part again")
        if self.skewed() == aside or (aside and self.p["alone"]):
            return
        code, _out, error = self.module.run_command(["systemctl", "restart", UNITS[0]])
        if code != 0:
            raise Problem("", "restarting %s: %s" % (UNITS[0], error.strip()), "")

    def skewed(self):
        """ucarp was started to stand aside."""
        pid = self.unit(UNITS[0]).get("MainPID", "0")
        given = [word for word in read("/proc/%s/cmdline" % pid).split("\0") if word.startswith("--advskew=")]
        try:
            return bool(given) and int(given[0].split("=")[1]) >= int(json.loads(read(CONFIG) or "{}").get("skew_demoted", 240))
        except ValueError:
            return False

    def not_handed_over(self):
        vip, have = self.p["vip"], self.links()
        if read(RUN + "/held") or any(a[0] == vip for name in have for a in have[name]):
            return "this node still holds it"
        macs = ask(self.place(have), [vip], self.p["listen"])[0][vip]
        if len(macs) != 1:
            return "%s for it" % ("several machines answer" if macs else "nobody answers")
        for port in self.p["ports"]:
            try:
                socket.create_connection((vip, port), 3).close()
            except (socket.error, socket.timeout) as error:
                return "its new holder does not accept connections to port %d (%s)" % (port, error)
        return ""

    # -- release --

    def release(self):
        vip = self.p["vip"]
        for pid in self.strays():
            os.kill(pid, 9)
            self.changes.append("ended ucarp, process %d" % pid)
        held = read(RUN + "/held").split()
        for address in set([vip] + held[1:2]):
            if not as_address(address):
                continue
            have = self.links()
            for name in have:
                if (address, 32) in have[name]:
                    code, _out, error = self.module.run_command(["ip", "address", "delete", address + "/32", "dev", name])
                    if code != 0:
                        raise Problem("", "removing %s from %s: %s" % (address, name, error.strip()), "")
                    self.changes.append("removed %s from %s" % (address, name))
        if not self.p["keep"]:
            for path in (RUN, ARMED, ASIDE):
                if os.path.isdir(path):
                    shutil.rmtree(path)
                elif os.path.exists(path):
                    os.unlink(path)
                else:
                    continue
                self.changes.append("removed %s" % path)
        have = self.links()
        left = [name for name in have if (vip, 32) in have[name]]
        if left or self.strays():
            raise Problem("", "still there after the cleanup: %s" % ", ".join(left or ["ucarp"]), "")
        return {}

    @staticmethod
    def strays():
        """ucarp processes that were started by our launcher."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            words = read(path).split("\0")
            if os.path.basename(words[0]) == "ucarp" and any(word.startswith("--passfile=/etc/clusterctl-ucarp/") for word in words):
                found.append(int(path.split("/")[2]))
        return found


def main():
    module = AnsibleModule(argument_spec=dict(
        operation=dict(type="str", required=True, choices=["check", "verify", "step_aside", "take_part", "release"]),
        vip=dict(type="str", required=True),
        address=dict(type="str", default=""),
        interface=dict(type="str", default=""),
        vhid=dict(type="int", default=0),
        subnet=dict(type="str", default=""),
        nodes=dict(type="dict", default={}),
        managers=dict(type="list", elements="str", default=[]),
        wait=dict(type="int", default=15),
        listen=dict(type="float", default=1.5),
        alone=dict(type="bool", default=False),
        ports=dict(type="list", elements="int", default=[]),
        keep=dict(type="bool", default=False),
    ))
    node = Node(module)
    try:
        result = getattr(node, module.params["operation"])()
    except Problem as problem:
        module.fail_json(msg=to_native(problem), changes=node.changes)
    except (OSError, IOError) as error:
        module.fail_json(msg="%s: %s" % (error.filename or "network", error.strerror or error), changes=node.changes)
    module.exit_json(changed=bool(node.changes), changes=node.changes, **result)


if __name__ == "__main__":
    main()
