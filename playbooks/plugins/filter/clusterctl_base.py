"""Filters of the role base: lines for /etc/hosts, and what speaks against a node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ipaddress
import re

from importlib import util
import os


def _catalog():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clusterctl.py")
    spec = util.spec_from_file_location("clusterctl_filters", path)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read_catalog()


def is_address(text):
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        return False


def base_hosts(hostvars, host, alias=""):
    """The node itself, the managers, and the endpoint if it is not one of them. Never other workers: a new one changes nothing."""
    lines, seen = [], set()
    mine = hostvars[host]
    for name in [host] + [n for n in mine.get("clusterctl_managers") or [] if n != host]:
        if name not in hostvars:
            continue
        known = hostvars[name]
        address = (known.get("clusterctl_node") or {}).get("address") or known.get("ansible_host", "")
        if is_address(address):
            lines.append("%s %s" % (address, name))
            seen.add(address)
    lines = lines[:1] + sorted(lines[1:]) if lines and lines[0].endswith(" " + host) else sorted(lines)
    endpoint = mine.get("clusterctl_endpoint") or ""
    if alias and is_address(endpoint):
        lines.append("%s %s" % (endpoint, alias))
    return lines


def base_own_lines(lines, host, alias=""):
    """Those that are about the node itself and the endpoint. Managers come and go; a node is not broken by that."""
    return [line for line in lines if line.split(" ")[1] in (host, alias)]


def megabytes(text):
    match = re.match(r"^(\d+)([MG])$", str(text or "0M"))
    return int(match.group(1)) * (1024 if match.group(2) == "G" else 1) if match else 0


def base_problems(variables, min_free_mb, max_skew, control_interface=""):
    node, hardware = variables["clusterctl_node"], variables["clusterctl_hardware"]
    found = []

    def problem(code, message, hint):
        found.append({"service": "base", "code": code, "message": message, "hint": hint})

    if not node["family"]:
        problem("os_unsupported", "%s is not supported" % (node["pretty_name"] or "the operating system"),
                "install Debian, Ubuntu or a member of the RHEL family")
    if node["uid"] != 0:
        problem("not_root", "the login user does not become root", "log in as root or allow sudo without a password")
    if not node["systemd"]:
        problem("no_systemd", "systemd is not running", "boot the machine with systemd")
    services = _catalog()["services"]
    needed = sum(megabytes(services.get(name, {}).get("memory")) for name in variables.get("clusterctl_services", []))
    if hardware["memory_mb"] and hardware["memory_mb"] < needed:
        problem("memory_too_small", "%d MB of memory, %d MB are needed" % (hardware["memory_mb"], needed),
                "take a bigger machine or fewer services")
    if node["free_mb"] < min_free_mb:
        problem("disk_full", "%d MB are free under /var/lib, %d MB are needed" % (node["free_mb"], min_free_mb), "free some space")
    if node.get("clock_skew", 0) > max_skew:
        problem("clock_skew", "the clock differs by %.0f s from the control host's" % node["clock_skew"], "synchronise both clocks")
    if control_interface and control_interface not in node["interfaces"]:
        problem("no_control_interface", "there is no interface %s; there are %s" % (control_interface, ", ".join(sorted(node["interfaces"]))),
                "set control_interface to one of them")
    elif not node["address"]:
        problem("no_control_address", "the interface %s has no address" % (node["interface"] or "of the default route"),
                "give it an address, or set control_interface")
    return found


def base_verdict(hardware, changes, name=""):
    wrong = ["to be repaired: " + ", ".join(changes)] if changes else []
    if name and hardware["host_name"] != name:
        wrong.append("the host name is %s" % hardware["host_name"])
    version = ("%s %s" % (hardware["os"], hardware["os_version"])).strip()
    return {"v": 1, "version": version, "healthy": not wrong, "message": "; ".join(wrong)}


class FilterModule(object):
    def filters(self):
        return {"base_hosts": base_hosts, "base_own_lines": base_own_lines, "base_problems": base_problems, "base_verdict": base_verdict}
