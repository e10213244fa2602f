"""Filters of the role swarm: whom to ask, and verdicts."""

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


def swarm_peer(hostvars, host, here, elsewhere):
    """Through whom the node joins, or is looked after: another member first, itself if it is a manager already."""
    found = _filters().clusterctl_peer_for(hostvars, host)
    if found:
        return found
    for result in elsewhere:
        if result.get("control"):
            return result["item"]
    return host if here.get("control") else ""


def swarm_witness(hostvars, host, alive):
    """The manager that a worker's verify door has to ask; empty when a target manager has told already, or nobody is there."""
    for name in alive:
        if name != host and (hostvars[name].get("swarm_seen") or {}).get("members"):
            return ""
    return _filters().clusterctl_peer_for(hostvars, host, alive=alive, anyone=True)


def swarm_entry(hostvars, host):
    """The node as C(members) of the module: everything it can be recognised by."""
    mine = hostvars[host]
    here = mine.get("swarm_here") or {}
    address = (mine.get("clusterctl_node") or {}).get("address", "")
    ids = [here.get("node_id"), (mine.get("clusterctl_recorded") or {}).get("swarm")]
    return [{"name": here.get("name") or mine["clusterctl_hardware"]["host_name"], "addr": address, "ids": [i for i in ids if i]}]


def swarm_scheduled(hostvars, host):
    """The node as C(members) of the module, from what is recorded: it is not asked itself."""
    mine = hostvars[host]
    recorded = (mine.get("clusterctl_recorded") or {}).get("swarm")
    return [{"name": host, "addr": mine.get("ansible_host", host), "ids": [recorded] if recorded else []}]


def swarm_lost(lost):
    return [
        {"name": item.get("name", ""), "addr": item.get("addr", ""), "ids": [i for i in [(item.get("ids") or {}).get("swarm")] if i]}
        for item in lost
    ]


def swarm_problems(here, hostvars, host, ports):
    mine = hostvars[host]
    found = []
    recorded = (mine.get("clusterctl_recorded") or {}).get("swarm")
    managers = [hostvars[n].get("ansible_host", "") for n in mine.get("clusterctl_managers") or [] if n in hostvars]
    managers += [(hostvars[n].get("clusterctl_node") or {}).get("address", "") for n in mine.get("clusterctl_managers") or [] if n in hostvars]
    theirs = [address.rsplit(":", 1)[0] for address in here.get("managers") or []]
    if here.get("state") == "active" and here.get("node_id") != recorded and theirs and not set(theirs) & set(managers):
        found.append({
            "service": "swarm", "code": "foreign_cluster",
            "message": "the node is a member of another swarm (managers %s)" % ", ".join(theirs),
            "hint": "remove it there, then run `docker swarm leave` on it",
        })
    if here.get("state", "inactive") == "inactive":
        taken = [port for port in ports if port in (mine.get("clusterctl_node") or {}).get("listening", [])]
        if taken:
            found.append({
                "service": "swarm", "code": "port_taken", "message": "something else listens on port %s" % ", ".join(map(str, taken)),
                "hint": "stop it; swarm_port moves the managers' port",
            })
    return found


def swarm_moved(here, node):
    """Did the node join with an address that it has no more? The swarm keeps that one, and the overlay networks with it."""
    own = [entry["address"] for entries in (node or {}).get("interfaces", {}).values() for entry in entries]
    return bool(here.get("state") == "active" and here.get("addr") and own and here["addr"] not in own)


def verdict(seen, members, wanted_role, availability, moved=False):
    """The verify fact from what the node says (`seen`) and what a manager says (`members`, None when nobody could be asked)."""
    fact = {"v": 1, "version": seen.get("version", ""), "healthy": False, "message": "", "member_id": seen.get("node_id", "")}
    own = next((m for m in members or [] if m["id"] == seen.get("node_id")), None)
    if own:
        fact["role"] = own["role"]
    if seen.get("members"):
        fact["members"] = [{key: m[key] for key in ("id", "name", "addr", "role", "reachable", "leader")} for m in seen["members"]]
    if not seen.get("answers", True):
        fact["message"] = seen.get("message") or "the engine does not answer"
    elif seen.get("state") != "active":
        fact["message"] = "the node is not in a swarm" if seen.get("state") == "inactive" else "the node's swarm state is %s%s" % (
            seen.get("state"), ": " + seen["message"] if seen.get("message") else "")
    elif members is None:
        fact["message"] = "no manager could be asked%s" % (": " + seen["message"] if seen.get("message") else "")
    elif own is None:
        fact["message"] = "the cluster does not list the node's id %s" % seen.get("node_id")
    elif (own["role"] != "worker") != (wanted_role == "manager"):
        fact["message"] = "the node is a %s, a %s is wanted" % ("manager" if own["role"] != "worker" else "worker", wanted_role)
    elif moved:
        fact["message"] = "the node joined the swarm as %s, an address that it has no more: %s" % (
            seen.get("addr"), "an update lets it join anew" if wanted_role == "worker" else "decommission it and commission it again")
    elif own["state"] != "ready" or not own["reachable"]:
        fact["message"] = "the cluster sees the node as %s" % (own["state"] if own["state"] != "ready" else "unreachable")
    elif own["availability"] != availability:
        fact["message"] = "availability is %s, %s is wanted" % (own["availability"], availability)
    elif not any(m["leader"] for m in members):
        fact["message"] = "the swarm has no leader"
    else:
        fact["healthy"] = True
    return fact


def swarm_verdict(hostvars, host):
    mine = hostvars[host]
    seen = mine.get("swarm_seen") or {}
    # A manager is judged by another one where there is one: a node in a swarm of its own finds itself in good order.
    others = [hostvars[n].get("swarm_seen") or {} for n in mine.get("clusterctl_managers") or [] if n != host and n in hostvars]
    views = [other["members"] for other in others if other.get("members")]
    witness = (mine.get("swarm_witness") or {}).get("members")
    members = witness or (views[0] if views else None) or seen.get("members") or None
    return verdict(seen, members, mine.get("clusterctl_role"), mine.get("clusterctl_availability") or "active",
                   swarm_moved(seen, mine.get("clusterctl_node")))


class FilterModule(object):
    def filters(self):
        return {
            "swarm_peer": swarm_peer, "swarm_witness": swarm_witness, "swarm_entry": swarm_entry, "swarm_lost": swarm_lost,
            "swarm_scheduled": swarm_scheduled, "swarm_moved": swarm_moved,
            "swarm_problems": swarm_problems, "swarm_verdict": swarm_verdict,
        }
