"""Who may hold the virtual address, and who must not have it as its own."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


def ucarp_nodes(hostvars, groups):
    """{name: address} of every node in the inventory of this run."""
    names = groups.get("clusterctl_targets", []) + groups.get("clusterctl_peers", [])
    return dict((name, str(hostvars[name].get("ansible_host") or name)) for name in names)


class FilterModule(object):
    def filters(self):
        return {"ucarp_nodes": ucarp_nodes}
