#!/usr/bin/python
"""Packages of all services of a node in one step, with a record of what was not there before."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_packages
short_description: Install packages, or remove what was installed earlier
description:
  - Does nothing but one query when everything is there. Services of new packages are not started by their package.
  - What was installed, dependencies included, is recorded in O(record); O(state=absent) removes exactly that.
options:
  names:
    description: Package names, C(name) or C(name=version). A version is also met by a longer one that begins with it.
    type: list
    elements: str
    default: []
  state:
    description: Whether the packages must be there, or all recorded ones must be gone.
    type: str
    choices: [present, absent]
    default: present
  family:
    description: Family of the operating system.
    type: str
    choices: [Debian, RedHat]
    required: true
  record:
    description: Where it is recorded what was installed.
    type: path
    default: /var/lib/clusterctl-node/installed.json
  max_age:
    description: Seconds after which the package lists are read anew before something is installed.
    type: int
    default: 3600
  lock_wait:
    description: Seconds to wait for another package manager.
    type: int
    default: 300
  retries:
    description: How often a failed download is tried again.
    type: int
    default: 3
author: [clusterctl]
"""

EXAMPLES = r"""
- name: Install packages
  clusterctl_packages:
    names: [docker.io, etcd-server=3.4.23]
    family: Debian
"""

RETURN = r"""
installed: {description: packages that were installed, type: list, elements: str, returned: always}
removed: {description: packages that were removed, type: list, elements: str, returned: always}
versions: {description: versions of the named packages, type: dict, returned: always}
"""

import json
import os
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.clusterctl_installed import read_record, write_record

POLICY = "/usr/sbin/policy-rc.d"
POLICY_TEXT = "#!/bin/sh\n# clusterctl: packages being installed do not start their services\nexit 101\n"


class Problem(Exception):
    pass


def version_matches(version, wanted):
    """1.2 is met by 1.2, 1:1.2-3 and 1.2.5, not by 1.20."""
    for candidate in (version, version.split(":", 1)[-1]):
        if candidate == wanted or (candidate.startswith(wanted) and not candidate[len(wanted)].isalnum()):
            return True
    return False


class Apt(object):
    def __init__(self, module):
        self.module = module
        self.environment = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "NEEDRESTART_SUSPEND": "1"}

    def installed(self):
        code, out, error = self.module.run_command(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${db:Status-Abbrev}\n"])
        if code != 0:
            raise Problem("dpkg-query: %s" % error.strip())
        rows = (line.split("\t") for line in out.splitlines())
        return dict((row[0], row[1]) for row in rows if len(row) == 3 and row[2][1:2] == "i")

    def apt(self, *arguments):
        common = ["-o", "DPkg::Lock::Timeout=%d" % self.module.params["lock_wait"], "-o", "Acquire::Retries=%d" % self.module.params["retries"]]
        code, out, error = self.module.run_command(["apt-get", "-q", "-y"] + common + list(arguments), environ_update=self.environment)
        if code != 0:
            lines = [line for line in (out + error).splitlines() if re.match(r"(E:|W:|dpkg: error|.*unmet dep| \S+ : )", line)]
            raise Problem("apt-get %s: %s" % (arguments[0], " | ".join(lines[-6:]) or (error or out).strip()[-500:]))

    def refresh(self, force=False):
        stamp = "/var/lib/apt/periodic/clusterctl-update"
        lists = "/var/lib/apt/lists"
        names = [n for n in os.listdir(lists) if n.endswith(("Packages", "Packages.lz4", "Packages.xz"))] if os.path.isdir(lists) else []
        age = time.time() - os.stat(stamp).st_mtime if os.path.exists(stamp) else 1e9
        if names and age < self.module.params["max_age"] and not force:
            return
        self.apt("update")
        if not os.path.isdir(os.path.dirname(stamp)):
            os.makedirs(os.path.dirname(stamp))
        with open(stamp, "w"):
            pass

    def resolve(self, name, version):
        if not version:
            return name
        _code, out, _error = self.module.run_command(["apt-cache", "madison", name])
        offered = [line.split("|")[1].strip() for line in out.splitlines() if line.count("|") >= 2]
        for candidate in offered:
            if version_matches(candidate, version):
                return "%s=%s" % (name, candidate)
        raise Problem("there is no version %s of %s; offered: %s" % (version, name, ", ".join(offered) or "none"))

    def install(self, wanted):
        self.refresh()
        policy = not os.path.exists(POLICY) or self.is_ours()
        if policy:
            with open(POLICY, "w") as handle:
                handle.write(POLICY_TEXT)
            os.chmod(POLICY, 0o755)
        try:
            options = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", "--allow-downgrades"]
            self.apt("install", *(options + [self.resolve(*pair) for pair in wanted]))
        finally:
            if policy:
                os.unlink(POLICY)

    @staticmethod
    def is_ours():
        with open(POLICY) as handle:
            return handle.read() == POLICY_TEXT

    def remove(self, names):
        # --auto-remove would also take what was unused before us.
        self.apt("purge", *names)


class Dnf(object):
    def __init__(self, module):
        self.module = module

    def installed(self):
        code, out, error = self.module.run_command(["rpm", "-qa", "--qf", "%{NAME}\t%{VERSION}-%{RELEASE}\n"])
        if code != 0:
            raise Problem("rpm: %s" % error.strip())
        return dict(line.split("\t") for line in out.splitlines() if "\t" in line)

    def dnf(self, *arguments):
        code, out, error = self.module.run_command(["dnf", "-q", "-y"] + list(arguments))
        if code != 0:
            raise Problem("dnf %s: %s" % (arguments[0], (error or out).strip()[-500:]))

    def install(self, wanted):
        self.dnf("install", *["%s-%s*" % pair if pair[1] else pair[0] for pair in wanted])

    def remove(self, names):
        self.dnf("remove", "--noautoremove", *names)


def settle(module, record, now):
    """What an earlier transaction that was broken off has brought is ours, too."""
    if "before" not in record:
        return
    for name in sorted(set(now) - set(record.pop("before"))):
        record["packages"].setdefault(name, {"version": now[name], "time": int(time.time())})
    if not module.check_mode:
        write_record(module.params["record"], record)


def present(module, manager):
    pairs = [tuple(name.split("=", 1)) if "=" in name else (name, "") for name in module.params["names"]]
    before = manager.installed()
    record = read_record(module.params["record"])
    settle(module, record, before)
    wanted = [p for p in pairs if p[0] not in before or (p[1] and not version_matches(before[p[0]], p[1]))]
    if not wanted:
        return [], before
    if module.check_mode:
        return [p[0] for p in wanted], before
    # Written down first: also who is killed in the middle leaves behind what is ours to take away.
    write_record(module.params["record"], dict(record, before=sorted(before)))
    try:
        manager.install(wanted)
    finally:
        after = manager.installed()
        record["before"] = sorted(before)
        settle(module, record, after)
    new = set(after) - set(before)
    return sorted(set(new) | set(p[0] for p in wanted)), after


def absent(module, manager):
    record = read_record(module.params["record"])
    now = manager.installed()
    settle(module, record, now)
    names = sorted(set(record["packages"]) & set(now))
    if module.check_mode:
        return names
    if names:
        manager.remove(names)
    left = sorted(set(names) & set(manager.installed()))
    if left:
        raise Problem("still installed: %s" % ", ".join(left))
    if record["packages"]:
        record["packages"] = {}
        write_record(module.params["record"], record)
    return names


def main():
    module = AnsibleModule(
        argument_spec=dict(
            names=dict(type="list", elements="str", default=[]),
            state=dict(type="str", choices=["present", "absent"], default="present"),
            family=dict(type="str", choices=["Debian", "RedHat"], required=True),
            record=dict(type="path", default="/var/lib/clusterctl-node/installed.json"),
            max_age=dict(type="int", default=3600),
            lock_wait=dict(type="int", default=300),
            retries=dict(type="int", default=3),
        ),
        supports_check_mode=True,
    )
    manager = Apt(module) if module.params["family"] == "Debian" else Dnf(module)
    try:
        if module.params["state"] == "present":
            installed, now = present(module, manager)
            versions = dict((n.split("=")[0], now.get(n.split("=")[0], "")) for n in module.params["names"])
            module.exit_json(changed=bool(installed), installed=installed, removed=[], versions=versions)
        removed = absent(module, manager)
        module.exit_json(changed=bool(removed), installed=[], removed=removed, versions={})
    except Problem as problem:
        module.fail_json(msg=str(problem))


if __name__ == "__main__":
    main()
