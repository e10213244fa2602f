"""One JSON object a line about what Ansible does, for the controller; and the end of a run that was cancelled.

Writes to $CLUSTERCTL_RUN_DIR/events.jsonl, does nothing without that variable, and never raises: a run is not to fail because
nobody could be told. docs/run-contract.md, section 4, describes the lines.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
name: clusterctl_events
type: aggregate
short_description: Event stream for the controller
description:
  - Writes one JSON object a line to C($CLUSTERCTL_RUN_DIR/events.jsonl).
requirements:
  - enable with C(callbacks_enabled = clusterctl_events)
"""

import functools
import json
import os
import sys
import time
from datetime import datetime, timezone

from ansible import __version__ as ansible_version
from ansible.module_utils.common.text.converters import to_text
from ansible.plugins.callback import CallbackBase

LIMIT = 4000
STDERR_LIMIT = 2000
CANCELLED = 250
FACT_LIMIT = 256 * 1024
# Actions that run on the control host only; everything else has put a module on a node.
CONTROL = {
    "add_host", "assert", "debug", "fail", "group_by", "import_playbook", "import_role", "import_tasks", "include_role",
    "include_tasks", "include_vars", "meta", "pause", "set_fact", "set_stats", "validate_argument_spec",
}


def quiet(method):
    @functools.wraps(method)
    def wrapped(self, *arguments, **named):
        if not self.directory:
            return None
        try:
            return method(self, *arguments, **named)
        except Exception as error:  # pylint: disable=broad-except
            self.note_failure(method.__name__, error)
            return None
    return wrapped


def cut(value, limit=LIMIT, tail=False):
    text = value if isinstance(value, str) else to_text(value, nonstring="simplerepr")
    if len(text) > limit:
        text = "…" + text[-(limit - 1):] if tail else text[:limit - 1] + "…"
    return text


def clean(value):
    """Only what JSON and UTF-8 can hold."""
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [clean(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return clean(cut(value))


def short_action(name):
    for prefix in ("ansible.builtin.", "ansible.legacy."):
        if name.startswith(prefix):
            return name[len(prefix):]
    return name


def role_and_door(task):
    """The role a task belongs to, and the door through which it was entered."""
    role = task._role.get_name() if getattr(task, "_role", None) else ""
    door, parent = "", getattr(task, "_parent", None)
    while role and parent is not None:
        files = getattr(parent, "_from_files", None)
        if files is not None:
            door = files.get("tasks", "main")
            break
        parent = getattr(parent, "_parent", None)
    return role.rsplit(".", 1)[-1], door or ("main" if role else "")


def is_wanted_fact(name):
    return name.startswith("clusterctl_service_") or name in ("clusterctl_hardware", "clusterctl_problems", "clusterctl_scheduling")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "clusterctl_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *arguments, **named):
        super(CallbackModule, self).__init__(*arguments, **named)
        self.directory = os.environ.get("CLUSTERCTL_RUN_DIR", "")
        self.descriptor = None
        self.number = 0
        self.task = {}
        self.task_began = 0.0
        self.began = {}
        self.failures = 0

    def note_failure(self, where, error):
        self.failures += 1
        if self.failures <= 3:
            try:
                sys.stderr.write("clusterctl_events: %s: %r\n" % (where, error))
            except Exception:  # pylint: disable=broad-except
                pass

    # ---- writing ------------------------------------------------------------------------------

    def write(self, event, **fields):
        if self.descriptor is None:
            path = os.path.join(self.directory, "events.jsonl")
            self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        now = datetime.now(timezone.utc)
        line = {"v": 1, "n": self.number + 1, "t": now.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (now.microsecond // 1000), "event": event}
        line.update(clean(fields))
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        # json.dumps escapes newlines; the two Unicode line separators are left to readers that split at "\n" only.
        written = os.write(self.descriptor, data)
        if written != len(data):
            os.ftruncate(self.descriptor, os.fstat(self.descriptor).st_size - written)
            raise OSError("the disk is full")
        self.number += 1

    # ---- play and task ------------------------------------------------------------------------

    @quiet
    def v2_playbook_on_start(self, playbook):
        self.write("start", playbook=os.path.basename(playbook._file_name or ""), ansible=ansible_version, pid=os.getpid())

    @quiet
    def v2_playbook_on_play_start(self, play):
        manager = play.get_variable_manager()
        hosts = []
        if manager is not None and manager._inventory is not None:
            hosts = [host.name for host in manager._inventory.get_hosts(play.hosts, order=play.order)]
        self.write("play", play=play.get_name(), hosts=hosts)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.begin_task(task)

    def v2_playbook_on_handler_task_start(self, task):
        self.begin_task(task)

    def begin_task(self, task):
        self.cancel_if_asked()
        self.note_task(task)

    def cancel_if_asked(self):
        if not self.directory or not os.path.exists(os.path.join(self.directory, "cancel")):
            return
        try:
            self.write("cancelled")
        except Exception as error:  # pylint: disable=broad-except
            self.note_failure("cancel", error)
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # Workers have ended: a task starts when the one before it is complete on every host.
            os._exit(CANCELLED)

    @quiet
    def note_task(self, task):
        service, door = role_and_door(task)
        self.task = {"task": cut(to_text(task.name or task.get_name()).strip()), "service": service, "door": door, "action": short_action(task.action)}
        self.task_began = time.time()
        self.began = {}
        self.write("task", **self.task)

    @quiet
    def v2_runner_on_start(self, host, task):
        self.began[(host.get_name(), task._uuid)] = time.time()

    # ---- results ------------------------------------------------------------------------------

    @quiet
    def v2_runner_on_ok(self, result):
        self.result(result, "ok")
        self.facts(result)

    @quiet
    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.result(result, "failed", ignored=bool(ignore_errors))

    @quiet
    def v2_runner_on_unreachable(self, result):
        self.result(result, "unreachable", ignored=bool(result._task_fields.get("ignore_unreachable")))

    @quiet
    def v2_runner_item_on_ok(self, result):
        if result._result.get("changed"):
            self.result(result, "ok", item=True)
        self.facts(result)

    @quiet
    def v2_runner_item_on_failed(self, result):
        self.result(result, "failed", item=True, ignored=bool(result._task_fields.get("ignore_errors")))

    def result(self, result, status, ignored=False, item=False):
        values, task, host = result._result, result._task, result._host.get_name()
        action = short_action(task.action)
        if action in ("include_tasks", "include_role") and status == "ok":
            return
        hidden = values.get("_ansible_no_log") or result._task_fields.get("no_log")
        service, door = role_and_door(task)
        began = self.began.get((host, task._uuid), self.task_began)
        line = {
            "host": host, "task": cut(to_text(task.name or task.get_name()).strip()), "service": service, "door": door, "action": action,
            "status": status, "changed": bool(values.get("changed")), "ignored": ignored,
            "ms": int((time.time() - began) * 1000), "module": self.ran_module(action, values, status),
        }
        # An unreachable delegate comes without its variables: then the field of the task names it.
        delegate = (values.get("_ansible_delegated_vars") or {}).get("ansible_delegated_host") or result._task_fields.get("delegate_to")
        if delegate:
            line["delegate"] = cut(delegate)
        if item and not hidden:
            line["item"] = cut(values.get("_ansible_item_label", values.get("item", "")))
        self.texts(line, values, status, hidden)
        self.write("result", **line)

    @staticmethod
    def ran_module(action, values, status):
        if action in CONTROL or status == "unreachable":
            return False
        if action == "clusterctl_node":
            return "fenced" in values or status == "failed"
        # A loop whose every item was skipped comes as skipped, so this one ran.
        return not values.get("skipped")

    @staticmethod
    def texts(line, values, status, hidden):
        if hidden:
            line["msg"] = "censored"
            return
        message = values.get("msg")
        if not message and values.get("results") and status != "ok":
            bad = [r for r in values["results"] if isinstance(r, dict) and (r.get("failed") or r.get("unreachable"))]
            message = bad[0].get("msg") if bad else None
        if not message and status != "ok":
            message = values.get("stderr") or values.get("module_stderr") or values.get("stdout") or values.get("reason")
        if not message and values.get("changes"):
            message = "; ".join(str(change) for change in values["changes"])
        if message:
            line["msg"] = cut(message)
        if isinstance(values.get("rc"), int):
            line["rc"] = values["rc"]
        if status == "ok":
            return
        stderr = values.get("stderr") or values.get("module_stderr")
        stdout = values.get("stdout") or values.get("module_stdout")
        if stderr:
            line["stderr"] = cut(stderr, STDERR_LIMIT, tail=True)
        elif stdout:
            line["stdout"] = cut(stdout, STDERR_LIMIT, tail=True)

    def facts(self, result):
        if result._result.get("_ansible_no_log") or result._task_fields.get("no_log"):
            return
        facts = result._result.get("ansible_facts")
        if not isinstance(facts, dict):
            return
        for name in sorted(facts):
            if is_wanted_fact(name) and len(str(facts[name])) <= FACT_LIMIT:
                self.write("fact", host=result._host.get_name(), name=name, value=facts[name])

    @quiet
    def v2_playbook_on_stats(self, stats):
        hosts = {}
        for name in sorted(stats.processed):
            summary = stats.summarize(name)
            hosts[name] = {
                key: summary[key]
                for key in ("ok", "changed", "failures", "unreachable", "skipped", "rescued", "ignored")
            }
        self.write("stats", hosts=hosts)
