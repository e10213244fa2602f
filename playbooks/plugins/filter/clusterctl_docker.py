"""Filters of the role docker: proxy settings of the unit, verdicts."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
from importlib import util


def _filters():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clusterctl.py")
    spec = util.spec_from_file_location("clusterctl_filters", path)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quoted(text):
    """One value of a unit's Environment=: no specifier, no line break, no quote gets through."""
    text = "".join(character for character in text if character >= " " and character != "\x7f")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def docker_proxy(hostvars, host, env):
    """Lines of a drop-in with the proxies of `env` in both spellings, and a completed exclusion list. Empty without a proxy."""
    given = {str(key).lower(): str(value) for key, value in (env or {}).items() if value not in (None, "")}
    proxies = [(name, given[name]) for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy") if name in given]
    if not proxies:
        return []
    mine = hostvars[host]
    node = mine.get("clusterctl_node") or {}
    managers = [n for n in mine.get("clusterctl_managers") or [] if n in hostvars]
    addresses = [node.get("address") or mine.get("ansible_host", "")]
    addresses += [mine.get("clusterctl_endpoint") or ""]
    addresses += [hostvars[name].get("ansible_host", "") for name in managers]
    names = [host] + [name for name in managers if name != host] + [mine.get("base_endpoint_alias") or "clusterctl-endpoint"]
    excluded = _filters().clusterctl_no_proxy(given.get("no_proxy", ""), addresses, node.get("subnet", ""), names)
    lines = ["# Written by clusterctl.", "[Service]"]
    for name, value in proxies + [("no_proxy", excluded)]:
        lines += ['Environment="%s=%s"' % (spelling, quoted(value)) for spelling in (name, name.upper())]
    return lines


def docker_problems(answer, data_root):
    if not answer.get("answers"):
        return []
    info, found = answer["info"], []
    if info["containers"] and not answer.get("ours"):
        found.append({
            "service": "docker", "code": "engine_in_use", "message": "the engine holds %d containers that clusterctl did not make" % info["containers"],
            "hint": "remove them, or take another machine: decommissioning removes every container",
        })
    if info["root"] and info["root"] != data_root:
        found.append({
            "service": "docker", "code": "data_root_differs", "message": "the engine keeps its data in %s" % info["root"],
            "hint": "set docker_data_root to it, or move the data to %s" % data_root,
        })
    return found


def docker_verdict(answer, changes, version="", data_root=""):
    wrong = ["to be repaired: " + ", ".join(changes)] if changes else []
    info = answer.get("info") or {}
    if not answer.get("answers"):
        wrong.append(answer.get("message") or "the engine does not answer")
    else:
        if not info.get("driver"):
            wrong.append("the engine has no storage driver")
        if data_root and info.get("root") != data_root:
            wrong.append("the engine keeps its data in %s" % info.get("root"))
        if version and not info.get("version", "").startswith(str(version).split("+")[0].split(":")[-1].split("~")[0]):
            wrong.append("version %s runs, %s is wanted" % (info.get("version"), version))
    return {"v": 1, "version": info.get("version", ""), "healthy": not wrong, "message": "; ".join(wrong), "driver": info.get("driver", "")}


class FilterModule(object):
    def filters(self):
        return {"docker_proxy": docker_proxy, "docker_problems": docker_problems, "docker_verdict": docker_verdict}
