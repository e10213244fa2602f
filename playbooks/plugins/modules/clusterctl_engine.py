#!/usr/bin/python
"""What the Docker engine of a node says of itself, and its emptying."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_engine
short_description: Ask or empty the Docker engine of a node
description:
  - With O(op=info) the engine's own account; an engine that does not answer is an answer, not a failure.
  - With O(op=empty) every container, volume, network of its own and build cache is removed. Images stay.
  - With O(op=sweep) what a stopped engine leaves in the kernel is removed (bridges, firewall chains).
options:
  op:
    description: What to do.
    type: str
    choices: [info, empty, sweep]
    default: info
  wait:
    description: Seconds to wait for an answer.
    type: int
    default: 0
  socket:
    description: The engine's socket.
    type: path
    default: /var/run/docker.sock
  markers:
    description: Files any of which shows that the engine is ours. If it is not, O(op=empty) does nothing.
    type: list
    elements: path
    default: []
  packages:
    description: Packages any of which shows the same when it was installed by clusterctl, unless O(left) is there.
    type: list
    elements: str
    default: []
  left:
    description: File that says that clusterctl has left the engine; who uses it now is somebody else.
    type: path
author: [clusterctl]
"""

EXAMPLES = r"""
- name: Ask the engine
  clusterctl_engine:
    wait: 30
  register: docker_answer
"""

RETURN = r"""
ours: {description: whether the engine is ours, type: bool, returned: always}
answers: {description: whether there is an engine, type: bool, returned: always}
message: {description: why not, type: str, returned: always}
info: {description: version, driver, root, containers, swarm state, proxy settings, type: dict, returned: when it answers}
"""

import os
import re
import shlex

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.clusterctl_engine import Engine, EngineError, segment
from ansible.module_utils.clusterctl_installed import RECORD, installed_by_us, read_record

# With an underscore (DOCKER_OUTPUT) they belong to an engine outside, if the node is itself a container.
CHAIN = re.compile(r"^DOCKER(-[A-Z0-9-]+)?$")
BUILT_IN = ("bridge", "host", "none", "docker_gwbridge", "ingress")


def empty(engine):
    changes = []
    for item in engine.get("/containers/json", {"all": "true"}):
        attempt(lambda: engine.delete("/containers/" + item["Id"], {"force": "true", "v": "true"}))
        changes.append("container " + (item.get("Names") or [item["Id"]])[0].lstrip("/"))
    for item in (engine.get("/volumes") or {}).get("Volumes") or []:
        attempt(lambda: engine.delete("/volumes/" + segment(item["Name"]), {"force": "true"}))
        changes.append("volume " + item["Name"])
    for item in engine.get("/networks"):
        if item["Name"] not in BUILT_IN and item.get("Scope") == "local":
            attempt(lambda: engine.delete("/networks/" + item["Id"]))
            changes.append("network " + item["Name"])
    cache = engine.post("/build/prune", query={"all": "true"}) or {}
    changes += ["build cache " + name for name in cache.get("CachesDeleted") or []]
    return changes


def sweep(module):
    """Bridges, and in every table the chains of the engine with the rules that lead there or name its bridges."""
    changes = []
    bridges = [name for name in ("docker0", "docker_gwbridge") if os.path.exists("/sys/class/net/" + name)]
    for name in bridges:
        changes.append("bridge " + name)
        if not module.check_mode:
            module.run_command(["ip", "link", "delete", name], check_rc=True)
    for command in ("iptables", "ip6tables"):
        if not module.get_bin_path(command):
            continue
        for table in ("nat", "filter"):
            code, out, _error = module.run_command([command, "-w", "-t", table, "-S"])
            if code != 0:
                continue
            lines = out.splitlines()
            chains = [line.split()[1] for line in lines if line.startswith("-N ") and CHAIN.match(line.split()[1])]
            rules = [line for line in lines if line.startswith("-A ") and line.split()[1] not in chains and is_docker_rule(line)]
            if chains or rules:
                changes.append("%s rules in %s" % (command, table))
            if module.check_mode:
                continue
            for rule in rules:
                module.run_command([command, "-w", "-t", table, "-D"] + shlex.split(rule)[1:])
            for verb in ("-F", "-X"):
                for chain in chains:
                    module.run_command([command, "-w", "-t", table, verb, chain])
    return changes


def is_docker_rule(line):
    return any(word in ("docker0", "docker_gwbridge") or CHAIN.match(word) for word in shlex.split(line))


def attempt(action):
    try:
        action()
    except EngineError as error:
        if error.status not in (404, 409):  # gone or going already
            raise


def is_ours(params, record=RECORD):
    if any(os.path.exists(path) for path in params["markers"]):
        return True
    if params["left"] and os.path.exists(params["left"]):
        return False
    installed = read_record(record)
    return any(installed_by_us(installed, name) for name in params["packages"])


def main():
    module = AnsibleModule(
        argument_spec=dict(
            op=dict(type="str", choices=["info", "empty", "sweep"], default="info"),
            wait=dict(type="int", default=0),
            socket=dict(type="path", default="/var/run/docker.sock"),
            markers=dict(type="list", elements="path", default=[]),
            packages=dict(type="list", elements="str", default=[]),
            left=dict(type="path"),
        ),
        supports_check_mode=True,
    )
    engine = Engine(module.params["socket"])
    changes = []
    if module.params["op"] == "sweep":
        changes = sweep(module)
        module.exit_json(changed=bool(changes), changes=changes, answers=False, ours=True, message="")
    ours = is_ours(module.params)
    try:
        if module.params["op"] == "empty" and not ours:
            module.exit_json(changed=False, answers=False, ours=False, message="not ours", changes=[])
        if module.params["op"] == "empty" and not module.check_mode:
            changes = empty(engine)
        info = engine.info(module.params["wait"])
    except EngineError as error:
        if error.status:
            module.fail_json(msg=str(error), changes=changes)
        module.exit_json(changed=False, answers=False, ours=ours, message=str(error), changes=changes)
    module.exit_json(
        changed=bool(changes), changes=changes, answers=True, ours=ours, message="",
        info={
            "version": info.get("ServerVersion", ""),
            "driver": info.get("Driver", ""),
            "root": info.get("DockerRootDir", ""),
            "containers": info.get("Containers", 0),
            "swarm": (info.get("Swarm") or {}).get("LocalNodeState", ""),
            "http_proxy": info.get("HttpProxy", ""),
            "https_proxy": info.get("HttpsProxy", ""),
            "no_proxy": info.get("NoProxy", ""),
            "name": info.get("Name", ""),
            "warnings": info.get("Warnings") or [],
        },
    )


if __name__ == "__main__":
    main()
