#!/usr/bin/python
"""What a node is: fence of earlier runs, hardware, and everything that later tasks want to know, in one module run."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_node
short_description: Fence earlier runs on a node and gather what clusterctl needs to know of it
description:
  - Ends the processes that carry one of O(fence) in their environment as C(CLUSTERCTL_RUN_ID), then reads the facts.
  - The facts C(clusterctl_hardware) and C(clusterctl_node) are set from the result. The action plugin of the same name adds, on the control host,
    the variables that an inventory without a controller does not have.
options:
  fence:
    description: Ids of runs whose processes are waited for and then ended.
    type: list
    elements: str
    default: []
  fence_wait:
    description: Seconds such processes may take to end by themselves before they are killed.
    type: int
    default: 20
author: [clusterctl]
"""

EXAMPLES = r"""
- name: Begin
  clusterctl_node:
    fence: "{{ clusterctl_fence_runs | default([]) }}"
"""

RETURN = r"""
fenced: {description: what was ended, type: list, elements: str, returned: always}
hardware: {description: becomes clusterctl_hardware, type: dict, returned: always}
node: {description: becomes clusterctl_node, type: dict, returned: always}
"""

import json
import os
import platform
import re
import signal
import socket
import time

from ansible.module_utils.basic import AnsibleModule

FAMILIES = {
    "debian": "Debian", "ubuntu": "Debian", "rhel": "RedHat", "centos": "RedHat", "fedora": "RedHat", "rocky": "RedHat",
    "almalinux": "RedHat", "ol": "RedHat",
}


def read(path, default=""):
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "replace").strip("\0\n ")
    except (IOError, OSError):
        return default


def marked(runs):
    """Processes that carry one of the run ids, without ourselves and our ancestors."""
    own, pid = set(), os.getpid()
    while pid > 1:
        own.add(pid)
        match = re.search(r"^PPid:\s+(\d+)", read("/proc/%d/status" % pid), re.M)
        pid = int(match.group(1)) if match else 0
    marks = set("CLUSTERCTL_RUN_ID=" + run for run in runs if run)
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in own:
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as handle:
                environment = handle.read().decode("utf-8", "replace").split("\0")
        except (IOError, OSError):
            continue
        # A service that a run has started is not a task of the run: systemd gives it a clean environment, so none is found.
        if marks.intersection(environment):
            found[int(name)] = read("/proc/%s/cmdline" % name).replace("\0", " ")[:120]
    return found


def fence(runs, patience):
    if not runs:
        return []
    ended = {}
    until = time.time() + patience
    while True:
        found = marked(runs)
        ended.update(found)
        if not found or time.time() > until:
            break
        time.sleep(0.5)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _turn in range(20):
            found = marked(runs)
            if not found:
                break
            for pid in found:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
            time.sleep(0.25)
    left = marked(runs)
    if left:
        raise RuntimeError("processes of an earlier run cannot be ended: %s" % ", ".join("%d %s" % item for item in left.items()))
    return ["%d %s" % item for item in sorted(ended.items())]


def os_release():
    values = {}
    for line in read("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        values[name] = value.strip("\"'")
    return values


def family_of(release):
    for name in [release.get("ID", "")] + release.get("ID_LIKE", "").split():
        if name in FAMILIES:
            return FAMILIES[name]
    return ""


def hardware(release):
    dmi = "/sys/class/dmi/id/"
    vendor, model = read(dmi + "sys_vendor"), read(dmi + "product_name")
    series = "other"
    if "cisco" in vendor.lower():
        match = re.match(r"UCS(B|C|-?B|-?C)", model.upper().replace(" ", ""))
        if match:
            series = match.group(1).strip("-").lower() + "-series"
    memory = re.search(r"^MemTotal:\s+(\d+)", read("/proc/meminfo"), re.M)
    return {
        "v": 1,
        "vendor": vendor,
        "model": model,
        "serial": read(dmi + "product_serial"),
        "uuid": read(dmi + "product_uuid").lower(),
        "chassis": read(dmi + "chassis_serial"),
        "slot": slot(read_bytes("/sys/firmware/dmi/entries/2-0/raw")),
        "macs": macs(),
        "machine_id": read("/etc/machine-id"),
        "series": series,
        "cpus": os.cpu_count() or 0,
        "memory_mb": int(memory.group(1)) // 1024 if memory else 0,
        "os": release.get("ID", ""),
        "os_version": release.get("VERSION_ID", ""),
        "arch": platform.machine(),
        "kernel": platform.release(),
        "host_name": socket.gethostname(),
    }


def read_bytes(path):
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except (IOError, OSError):
        return b""


def slot(board):
    """The place in the enclosure: a text of the board's SMBIOS record (type 2, byte 10 is its number among the texts behind the record)."""
    if len(board) < 11 or board[0:1] != b"\x02":
        return ""
    number, texts = bytearray(board)[10], board[bytearray(board)[1]:].split(b"\0")
    return texts[number - 1].decode("ascii", "replace").strip() if 0 < number <= len(texts) else ""


# Made by software for others to use: their addresses say nothing about the machine.
NOT_CARDS = re.compile(r"^(lo|docker|veth|br-|virbr|vnet|tap|tun|bond|team|vxlan|flannel|cali|dummy|ifb|sit|ip6tnl|gre)")


def macs(root="/sys/class/net"):
    """Permanent addresses of the network cards; where there is no hardware (containers) of the interfaces that look like one."""
    cards, others = set(), set()
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        path = os.path.join(root, name)
        address = read(os.path.join(path, "bonding_slave/perm_hwaddr")) or read(os.path.join(path, "address"))
        address = address.lower()
        if read(os.path.join(path, "type")) != "1" or not address.strip("0:") or "." in name:
            continue
        device = os.path.join(path, "device")
        if os.path.exists(device):
            # Management controllers show a card of their own by USB, with the same address in every machine.
            if "/usb" not in os.path.realpath(device):
                cards.add(address)
        elif not NOT_CARDS.match(name):
            others.add(address)
    return sorted(cards or others)


def interfaces(module):
    """{name: [{address, prefix}]}: every interface, those without an address with an empty list."""
    found = {}
    code, out, _error = module.run_command(["ip", "-j", "address", "show"])
    if code == 0:
        try:
            for link in json.loads(out):
                found[link["ifname"]] = [
                    {"address": a["local"], "prefix": a["prefixlen"]}
                    for a in link.get("addr_info", []) if a.get("scope") == "global" and "local" in a
                ]
        except (ValueError, KeyError):
            pass
    return found


def default_interface(module):
    code, out, _error = module.run_command(["ip", "-o", "-4", "route", "show", "default"])
    match = re.search(r"\bdev (\S+)", out) if code == 0 else None
    return match.group(1) if match else ""


def free_mb(path):
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    info = os.statvfs(path)
    return info.f_bavail * info.f_frsize // (1024 * 1024)


def main():
    module = AnsibleModule(
        argument_spec=dict(
            fence=dict(type="list", elements="str", default=[]),
            fence_wait=dict(type="int", default=20),
        ),
        supports_check_mode=True,
    )
    try:
        fenced = [] if module.check_mode else fence(module.params["fence"], module.params["fence_wait"])
    except RuntimeError as error:
        module.fail_json(msg=str(error))
    release = os_release()
    node = {
        "family": family_of(release),
        "pretty_name": release.get("PRETTY_NAME", ""),
        "time": time.time(),
        "uid": os.geteuid(),
        "python": platform.python_version(),
        "systemd": os.path.isdir("/run/systemd/system"),
        "interfaces": interfaces(module),
        "default_interface": default_interface(module),
        "free_mb": free_mb("/var/lib"),
        "host_names": sorted(set([socket.gethostname(), socket.getfqdn()])),
        "etc_hostname": read("/etc/hostname"),
        "listening": listening(),
    }
    module.exit_json(changed=bool(fenced), fenced=fenced, hardware=hardware(release), node=node)


def listening():
    """TCP ports in state LISTEN."""
    ports = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(path).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == "0A":
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return sorted(ports)


if __name__ == "__main__":
    main()
