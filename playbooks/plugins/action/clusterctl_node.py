"""Begin of a playbook on a host: the variables that only a controller writes, then one module run on the node.

The result holds `facts`, for a set_fact: what a module returns as ansible_facts would let a node set any variable.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import importlib.util
import os
import time

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase


def load_filters():
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "filter", "clusterctl.py")
    spec = importlib.util.spec_from_file_location("clusterctl_filters", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


filters = load_filters()


def missing_variables(variables, catalog):
    """What an inventory that no controller wrote leaves open: only names that are not set."""
    host, groups = variables["inventory_hostname"], variables["groups"]
    hostvars = variables["hostvars"]
    mine = dict(hostvars[host])
    mine.update(inventory_hostname=host, group_names=variables["group_names"])

    def capabilities(name):
        given = hostvars[name].get("clusterctl_capabilities")
        group = next((g for g in catalog["host_groups"] if name in groups.get(g, [])), "")
        return group, given if given is not None else catalog["host_groups"].get(group, {}).get("capabilities", [])

    found = {}

    def value(key, make):
        if key not in mine or mine[key] is None:
            found[key] = mine[key] = make()
        return mine[key]

    value("clusterctl_run_id", lambda: "")
    value("clusterctl_cluster_name", lambda: "default")
    value("clusterctl_availability", lambda: "active")
    value("clusterctl_recorded", dict)
    value("clusterctl_lost", list)
    value("clusterctl_leaving", list)
    value("clusterctl_cleanup_level", lambda: "state")
    value("clusterctl_pki_dir", lambda: os.path.join(os.path.expanduser("~"), ".clusterctl", "pki"))
    value("clusterctl_role", lambda: filters.role_of(catalog, *capabilities(host)))
    value("clusterctl_services", lambda: filters.clusterctl_services(mine, catalog))
    plain = "clusterctl_managers" not in mine
    members = [n for n in groups.get("clusterctl_targets", []) + groups.get("clusterctl_peers", [])
               if plain and n not in mine["clusterctl_leaving"] and filters.role_of(catalog, *capabilities(n)) == "manager"]
    value("clusterctl_managers", lambda: list(dict.fromkeys(members)))
    if plain and not mine.get("clusterctl_peer") and mine["clusterctl_managers"]:
        value("clusterctl_initiator", lambda: mine["clusterctl_managers"][0])
    managers = mine["clusterctl_managers"]
    if managers and (mine.get("service_vip") or len(managers) == 1):
        value("clusterctl_endpoint", lambda: mine.get("service_vip") or hostvars[managers[0]].get("ansible_host", managers[0]))
    return found


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("fence", "fence_wait", "problems", "leaving"))

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        del tmp
        arguments = dict(self._task.args)
        problems = arguments.pop("problems", False)
        leaving = arguments.pop("leaving", False)
        try:
            found = {}
            if leaving and "clusterctl_leaving" not in task_vars:
                found["clusterctl_leaving"] = list(task_vars["ansible_play_hosts_all"])
                task_vars = dict(task_vars)
            found.update(missing_variables(self._with(task_vars, found), filters.read_catalog()))
        except AnsibleError as error:
            raise AnsibleActionFail(str(error))
        if problems:
            found["clusterctl_problems"] = []
        result["changed"] = False
        before = time.time()
        result.update(self._execute_module("clusterctl_node", module_args=arguments, task_vars=task_vars))
        after = time.time()
        # Only what is expected: a node says what it is, it does not set variables.
        result.pop("ansible_facts", None)
        node, hardware = result.pop("node", None), result.pop("hardware", None)
        if node and hardware:
            # The node's clock was read at some moment between these two.
            node["clock_skew"] = round(max(before - node["time"], node["time"] - after, 0), 3)
            node.update(filters.control_address(node, task_vars.get("control_interface"), task_vars.get("ansible_host")))
            found.update(clusterctl_node=node, clusterctl_hardware=hardware)
        result["facts"] = found
        return result

    @staticmethod
    def _with(task_vars, found):
        if not found:
            return task_vars
        host = task_vars["inventory_hostname"]
        hostvars = {name: task_vars["hostvars"][name] for name in task_vars["hostvars"]}
        hostvars[host] = dict(hostvars[host], **found)
        return dict(task_vars, hostvars=hostvars)
