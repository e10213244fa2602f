"""What the playbooks reckon on the control host: which services a host carries, and through whom it reaches the cluster.

The functions are plain Python on plain data; tests/catalog_vectors.json is run against this file and against the controller.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ipaddress
import os

import yaml

from ansible.errors import AnsibleFilterError

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CATALOG = os.path.join(TOP, "playbooks", "catalog.yml")
SERVICE_KEYS = {
    "on", "when", "needs", "needs_when", "version", "upgrade", "quorum", "disrupts", "memory", "ports", "forbids", "observed",
    "schedules", "hands_over",
}
_cache = {}


def read_catalog(path=CATALOG):
    stamp = os.stat(path).st_mtime_ns
    if _cache.get(path, (None,))[0] != stamp:
        with open(path) as handle:
            catalog = yaml.safe_load(handle)
        for service in catalog["services"].values():
            if True in service:  # YAML 1.1 reads a bare `on` as true
                service["on"] = service.pop(True)
        check_catalog(catalog)
        _cache[path] = (stamp, catalog)
    return _cache[path][1]


def check_catalog(catalog):
    """Raises on the first thing that cannot be meant."""
    seen = []
    for name, service in catalog["services"].items():
        unknown = set(service) - SERVICE_KEYS
        if unknown:
            raise AnsibleFilterError("catalog: service %s: unknown key %s" % (name, ", ".join(sorted(unknown))))
        for other in service.get("needs", []):
            if other not in seen:
                raise AnsibleFilterError("catalog: service %s needs %s, which does not stand before it" % (name, other))
        selector = service.get("on")
        if selector != "all" and not (isinstance(selector, dict) and len(selector) == 1):
            raise AnsibleFilterError("catalog: service %s: `on` must be all or {role|host_group|capability: …}" % name)
        seen.append(name)


def is_empty(value):
    return value is None or value is False or (isinstance(value, (str, list, dict)) and len(value) == 0)


def as_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def role_of(catalog, host_group, capabilities):
    """manager: the group says so and no dtr-* capability is carried."""
    group = catalog["host_groups"].get(host_group, {})
    carries_dtr = any(name.startswith("dtr-") for name in capabilities)
    return "manager" if group.get("manager") and not carries_dtr else "worker"


def selected(selector, node):
    if selector == "all":
        return True
    (kind, wanted), = selector.items()
    names = wanted if isinstance(wanted, list) else [wanted]
    if kind == "role":
        return node["role"] in names
    if kind == "host_group":
        return node["host_group"] in names
    if kind == "capability":
        return any(name in names for name in node["capabilities"])
    raise AnsibleFilterError("catalog: `on: {%s: …}` is not known" % kind)


def condition_holds(condition, variables, defaults):
    if condition is None:
        return True
    if isinstance(condition, dict):
        for name, wanted in condition.items():
            value = variables.get(name)
            if is_empty(value):
                value = defaults.get(name)
            if is_empty(value) or (wanted is not None and as_text(value) != as_text(wanted)):
                return False
        return True
    value = variables.get(condition)
    return not is_empty(defaults.get(condition) if value is None else value)


def services_of(catalog, node, variables):
    """The services of a node {host_group, capabilities, role?} in provisioning order."""
    node = dict(node, capabilities=list(node.get("capabilities") or []))
    node.setdefault("host_group", "")
    if not node.get("role"):
        node["role"] = role_of(catalog, node["host_group"], node["capabilities"])
    defaults = catalog.get("defaults", {})
    return [
        name for name, service in catalog["services"].items()
        if selected(service["on"], node) and condition_holds(service.get("when"), variables, defaults)
    ]


def clusterctl_services(variables, catalog=None):
    """{{ hostvars[inventory_hostname] | clusterctl_services }}: for inventories that no controller wrote."""
    catalog = catalog or read_catalog()
    group = next((g for g in variables.get("group_names", []) if g in catalog["host_groups"]), "")
    if not group:
        raise AnsibleFilterError(
            "host %s is in none of the host groups %s" % (variables.get("inventory_hostname"), ", ".join(catalog["host_groups"]))
        )
    capabilities = variables.get("clusterctl_capabilities")
    if capabilities is None:
        capabilities = catalog["host_groups"][group].get("capabilities", [])
    node = {"host_group": group, "capabilities": capabilities, "role": variables.get("clusterctl_role")}
    return services_of(catalog, node, variables)


def clusterctl_observed(services, catalog=None):
    """The services of which the last observation matters: those with members, and those that move by themselves."""
    entries = (catalog or read_catalog())["services"]
    return [name for name in services if entries.get(name, {}).get("quorum") == "members" or entries.get(name, {}).get("observed")]


def clusterctl_in_turn(services, catalog=None):
    """Of a manager's services those for which managers go one after another: the ones with members, and what these need."""
    entries = (catalog or read_catalog())["services"]
    wanted = set()
    for name in reversed(list(entries)):  # what a service needs stands before it
        if entries[name].get("quorum") == "members" or name in wanted:
            wanted.update([name], entries[name].get("needs", []))
    return [name for name in services if name in wanted]


def clusterctl_schedulers(services, catalog=None):
    """The services that keep the availability of nodes."""
    entries = (catalog or read_catalog())["services"]
    return [name for name in services if entries.get(name, {}).get("schedules")]


def clusterctl_handing_over(services, catalog=None):
    """The services that move to another node on request."""
    entries = (catalog or read_catalog())["services"]
    return [name for name in services if entries.get(name, {}).get("hands_over")]


def clusterctl_select(services, only=None):
    """The services of a host, narrowed to `clusterctl_only_services` when that is set."""
    return [name for name in services if is_empty(only) or name in only]


def clusterctl_peer_for(hostvars, host, alive=None, fact="clusterctl_joined", anyone=False):
    """Through whom `host` reaches the cluster: the peer given by the controller, else a manager that joined in this run.

    `alive`: ansible_play_hosts; targets that are not in it have failed. `anyone`: a manager may also be one that was a member
    before this run (verify and cleanup of an inventory without peers). Empty when there is nobody.
    """
    mine = hostvars[host]
    managers = list(mine.get("clusterctl_managers") or [])
    first = mine.get("clusterctl_initiator")
    if first:
        managers = [first] + [name for name in managers if name != first]
    candidates = [mine["clusterctl_peer"]] if mine.get("clusterctl_peer") else []
    candidates += [name for name in managers if name in hostvars and hostvars[name].get(fact)]
    if anyone:
        leaving = list(mine.get("clusterctl_leaving") or [])
        gone = [name for name in leaving if name in hostvars and hostvars[name].get("clusterctl_left")]
        others = [n for n in leaving if n in hostvars and n not in gone and hostvars[n].get("clusterctl_role") == "manager"]
        candidates += managers + others
        candidates = [name for name in candidates if name not in gone]
    targets = mine.get("groups", {}).get("clusterctl_targets", [])
    for name in candidates:
        if name != host and name in hostvars and (alive is None or name in alive or name not in targets):
            return name
    return ""


def control_address(node, wanted="", ansible_host=""):
    """{interface, address, subnet}: where the cluster talks on this node.

    The control_interface that is set; else the interface that holds ansible_host; else the one of the default route.
    """
    known = node["interfaces"]
    holders = [name for name, found in known.items() if any(a["address"] == ansible_host for a in found)]
    name = wanted or (holders + [node.get("default_interface") or ""])[0]
    found = known.get(name) or []
    own = [a for a in found if a["address"] == ansible_host] or [a for a in found if ":" not in a["address"]] or found
    if not own:
        return {"interface": name, "address": "", "subnet": ""}
    network = ipaddress.ip_network("%s/%d" % (own[0]["address"], own[0]["prefix"]), strict=False)
    return {"interface": name, "address": own[0]["address"], "subnet": str(network)}


def clusterctl_turns(hosts, first=""):
    """The order in which managers take their turns: the initiator, then the inventory's order."""
    return [name for name in hosts if name == first] + [name for name in hosts if name != first]


def clusterctl_first_failed(hostvars, host, limited=False):
    """True when `host` has to stand back because the first manager did not get through.

    `limited`: the run was narrowed with --limit. Then a first manager that did not take part has not failed.
    """
    first = hostvars[host].get("clusterctl_initiator")
    if not first or first == host or first not in hostvars or hostvars[first].get("clusterctl_joined"):
        return False
    return not (limited and hostvars[first].get("clusterctl_node") is None)


def clusterctl_unhealthy(variables, services):
    """One line per service that is not healthy, or of which nothing is known."""
    lines = []
    for name in services:
        fact = variables.get("clusterctl_service_" + name)
        if not isinstance(fact, dict):
            lines.append("%s: nothing was reported" % name)
        elif fact.get("healthy") is not True:
            lines.append("%s: %s" % (name, fact.get("message") or "not healthy"))
    return lines


def clusterctl_packages(services, family, variables, roles=None):
    """The packages of all `services` for apt or dnf, versions pinned where the operator did.

    roles/<service>/vars/<family>.yml says <service>_packages and, if a version can be chosen, <service>_version_package.
    A host variable <service>_packages replaces the list.
    """
    roles = roles or os.path.join(TOP, "roles")
    catalog = read_catalog()
    wanted = []
    for service in services:
        path = os.path.join(roles, service, "vars", family + ".yml")
        if not os.path.exists(path):
            continue
        with open(path) as handle:
            known = yaml.safe_load(handle) or {}
        names = variables.get(service + "_packages")
        names = known.get(service + "_packages", []) if names is None else names
        version_variable = catalog["services"].get(service, {}).get("version")
        version = variables.get(version_variable) if version_variable else None
        pinned = known.get(service + "_version_package")
        pinned = pinned if isinstance(pinned, list) else [pinned]
        for name in names:
            spec = "%s=%s" % (name, version) if name in pinned and not is_empty(version) else name
            if spec not in wanted:
                wanted.append(spec)
    return wanted


def clusterctl_no_proxy(given, addresses, subnet="", names=()):
    """The operator's exclusions, loopback, the control subnet, then what lies outside it: one text, nothing twice."""
    entries = [part.strip() for part in (given.split(",") if isinstance(given, str) else list(given or []))]
    entries += ["localhost", "127.0.0.1", "::1", subnet or ""]
    network = ipaddress.ip_network(subnet, strict=False) if subnet else None
    for address in addresses:
        try:
            inside = network is not None and ipaddress.ip_address(address) in network
        except ValueError:
            inside = False
        if not inside:
            entries.append(address)
    entries += list(names)
    return ",".join(dict.fromkeys(entry for entry in entries if entry))


class FilterModule(object):
    def filters(self):
        return {
            "clusterctl_services": clusterctl_services,
            "clusterctl_observed": clusterctl_observed,
            "clusterctl_in_turn": clusterctl_in_turn,
            "clusterctl_schedulers": clusterctl_schedulers,
            "clusterctl_handing_over": clusterctl_handing_over,
            "clusterctl_select": clusterctl_select,
            "clusterctl_peer_for": clusterctl_peer_for,
            "clusterctl_turns": clusterctl_turns,
            "clusterctl_first_failed": clusterctl_first_failed,
            "clusterctl_unhealthy": clusterctl_unhealthy,
            "clusterctl_packages": clusterctl_packages,
            "clusterctl_no_proxy": clusterctl_no_proxy,
        }
