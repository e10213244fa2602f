"""Reboot of a node: the order, then the wait until it answers in a new boot and its system has started."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import time

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

PAUSE = 2  # seconds between two looks
STARTING = ("", "initializing", "starting", "stopping")


def spoken(seconds):
    return "%d s" % seconds if seconds < 120 else "%d minutes" % (seconds // 60)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("order", "wait", "delay"))

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        del tmp
        arguments = dict(self._task.args)
        wait = int(arguments.pop("wait", 900))
        ordered = self._execute_module("clusterctl_reboot", module_args=arguments, task_vars=task_vars)
        if ordered.get("failed") or not ordered.get("boot_id"):
            result.update(ordered, failed=True)
            return result
        result["changed"] = bool(ordered.get("ordered"))
        result["boot_id"] = ordered["boot_id"]
        if not ordered.get("ordered"):
            result["msg"] = "was rebooted for this order already"
        return self.wait_for_boot(result, ordered, wait, task_vars)

    def wait_for_boot(self, result, ordered, wait, task_vars):
        """The new boot, with all units started or given up: what is wrong with them is for the verify doors to say."""
        end = time.monotonic() + wait
        said = "it did not go down"
        while True:
            seen = self.look(task_vars)
            new = seen.get("boot_id") and (seen["boot_id"] != ordered["boot_id"] or not ordered.get("ordered"))
            if new and seen.get("state", "").strip() not in STARTING:
                result["boot_id"] = seen["boot_id"]
                return result
            if new:
                said = "its system is still %s" % (seen["state"] or "starting")
            elif seen.get("error"):
                said = seen["error"]
            if time.monotonic() >= end:
                break
            time.sleep(PAUSE)
        result["msg"] = "did not come back within %s of its reboot: %s" % (spoken(wait), said)
        result["unreachable" if seen.get("error") else "failed"] = True
        return result

    def look(self, task_vars):
        try:
            self._connection.reset()
            seen = self._execute_module("clusterctl_reboot", module_args={"look": True}, task_vars=task_vars)
        except AnsibleError as error:
            return {"error": str(error).strip().splitlines()[-1] if str(error).strip() else "no connection"}
        if seen.get("failed") or not seen.get("boot_id"):
            return {"error": str(seen.get("msg") or "it does not answer properly").strip().splitlines()[0]}
        return seen
