"""Where the other etcd members may be found."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


def etcd_address_of(hostvars, name):
    """The address at which the others reach the member on host `name`."""
    variables = hostvars[name]
    return str(variables.get("etcd_address") or variables.get("ansible_host") or name)


def etcd_peers(hostvars, host, names, port):
    """[{name, address, port}] of all `names` that the inventory knows, without `host`."""
    found = []
    for name in dict.fromkeys(names):
        if name and name != host and name in hostvars:
            found.append({"name": name, "address": etcd_address_of(hostvars, name), "port": int(hostvars[name].get("etcd_client_port") or port)})
    return found


def etcd_pending(hostvars, host, hosts):
    """Managers among `hosts` whose turn in this run is still to come."""
    managers = hostvars[host].get("clusterctl_managers") or []
    return [name for name in hosts if name != host and name in managers and not hostvars[name].get("clusterctl_joined")]


def etcd_lost(lost):
    """`clusterctl_lost` in the form that the module takes."""
    return [{"name": m.get("name") or "", "address": m.get("addr") or "", "id": (m.get("ids") or {}).get("etcd") or ""} for m in lost]


class FilterModule(object):
    def filters(self):
        return {"etcd_address_of": etcd_address_of, "etcd_peers": etcd_peers, "etcd_pending": etcd_pending, "etcd_lost": etcd_lost}
