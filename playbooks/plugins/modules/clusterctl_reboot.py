#!/usr/bin/python
"""A reboot that happens once for an order. The waiting is done by the action plugin of the same name, on the control host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_reboot
short_description: Reboot a node once for an order, and wait until it runs in a new boot
description:
  - The order and the boot in which it was given are written down on the node before anything happens. Given again in another boot, it is
    done already; given again in the same boot, it is carried out.
options:
  order: {type: str, default: "", description: Name of the order. Empty is a new one each time.}
  look: {type: bool, default: false, description: Only say which boot this is.}
  delay: {type: int, default: 2, description: Seconds between the order and the reboot, for the answer to get through.}
  wait: {type: int, default: 900, description: Seconds that the node may take until it runs in a new boot.}
author: [clusterctl]
"""

RETURN = r"""
boot_id: {description: id of the present boot, type: str, returned: always}
ordered: {description: a reboot was ordered, type: bool, returned: always}
state: {description: what systemd says of the system as a whole, type: str, returned: with look}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule

NOTE = "/var/lib/clusterctl-node/reboot.json"


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as handle:
        return handle.read().strip()


def noted():
    try:
        with open(NOTE) as handle:
            found = json.load(handle)
        return found if isinstance(found, dict) else {}
    except (IOError, OSError, ValueError):
        return {}


def note(order, boot):
    folder = os.path.dirname(NOTE)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    with open(NOTE + ".new", "w") as handle:
        json.dump({"order": order, "boot_id": boot}, handle)
        handle.flush()
        os.fsync(handle.fileno())
    os.rename(NOTE + ".new", NOTE)
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def order_reboot(module, delay):
    """By a timer of systemd: it is no child of ours, and the answer to this call gets through first."""
    code, out, error = module.run_command(["systemd-run", "--collect", "--quiet", "--on-active=%d" % delay, "--timer-property=AccuracySec=100ms",
                                           "systemctl", "reboot"])
    if code != 0:
        code, out, error = module.run_command(["systemctl", "--no-block", "reboot"])
    if code != 0:
        module.fail_json(msg="the reboot cannot be ordered: %s" % (error.strip() or out.strip() or "exit code %d" % code))


def main():
    module = AnsibleModule(argument_spec=dict(
        order=dict(type="str", default=""),
        look=dict(type="bool", default=False),
        delay=dict(type="int", default=2),
        wait=dict(type="int", default=900),
    ))
    now = boot_id()
    if module.params["look"]:
        _code, out, _error = module.run_command(["systemctl", "is-system-running"])
        module.exit_json(changed=False, boot_id=now, ordered=False, state=out.strip())
    order, before = module.params["order"], noted()
    if order and before.get("order") == order and before.get("boot_id") != now:
        module.exit_json(changed=False, boot_id=now, ordered=False)
    try:
        note(order, now)
    except (IOError, OSError) as error:
        module.fail_json(msg="the order to reboot cannot be written down: %s" % error)
    order_reboot(module, module.params["delay"])
    module.exit_json(changed=True, boot_id=now, ordered=True)


if __name__ == "__main__":
    main()
