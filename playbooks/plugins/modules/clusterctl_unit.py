#!/usr/bin/python
"""Lay down everything a service needs on a node, and run its units, in one module run."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_unit
short_description: Files, directories, text blocks and systemd units of one service in one step
description:
  - In this order it stops units, removes what must be absent, makes directories, writes files and blocks, and enables and starts units.
  - A unit is restarted when what it was started with differs from what is on disk now. That is decided from recorded state
    (C(/var/lib/clusterctl-node/units/<unit>.json)), not from notifications, so a run that dies between writing and
    restarting is finished by the next one.
options:
  directories:
    description: Directories that must exist. Owner and group default to root, mode to 0755. They never cause a restart.
    type: list
    elements: dict
    default: []
    suboptions: {path: {type: path, required: true}, mode: {type: str, default: "0755"}, owner: {type: str, default: root}, group: {type: str, default: root}}
  files:
    description:
      - Whole files. They are replaced by a rename, or written in place where O(files[].in_place) is set.
      - O(files[].restart) says that started units depend on the file.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true}
      content: {type: str, required: true}
      mode: {type: str, default: "0644"}
      owner: {type: str, default: root}
      group: {type: str, default: root}
      in_place: {type: bool, default: false}
      restart: {type: bool, default: true}
  blocks:
    description:
      - One marked block of text in somebody else's file, rewritten in place (a bind-mounted file works). Empty content removes it.
      - A block that has all lines of C(enough) is taken as it is.
    type: list
    elements: dict
    default: []
    suboptions: {path: {type: path, required: true}, name: {type: str, required: true}, content: {type: str, default: ""}, enough: {type: list, elements: str}}
  absent:
    description:
      - Files or trees that must not exist. A mount point is emptied and kept. Mounts below it are unmounted first, never entered.
    type: list
    elements: path
    default: []
  units:
    description:
      - Units and their states. With state C(started) the unit is started, and restarted when its inputs changed.
      - Without O(units[].enabled) and O(units[].state) only a running unit is restarted when its inputs changed.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {type: str, required: true}
      state: {type: str, choices: [started, stopped]}
      enabled: {type: bool}
      restart: {type: bool, default: true}
  inputs:
    description: Further values a restart depends on, for example a version.
    type: dict
    default: {}
  settle:
    description: Seconds a unit that does not report its own readiness must stay active after it was started.
    type: float
    default: 1.0
author: [clusterctl]
"""

EXAMPLES = r"""
- name: Configure and run the service
  clusterctl_unit:
    directories:
      - {path: /etc/demo, mode: "0700"}
    files:
      - {path: /etc/demo/demo.conf, content: "{{ demo_config | to_nice_json }}", mode: "0600"}
      - {path: /etc/systemd/system/demo.service.d/clusterctl.conf, content: "{{ lookup('template', 'dropin.j2') }}"}
    units:
      - {name: demo.service, state: started, enabled: true}

- name: Take it away again
  clusterctl_unit:
    units:
      - {name: demo.service, state: stopped, enabled: false}
    absent: [/etc/demo, /etc/systemd/system/demo.service.d/clusterctl.conf, /var/lib/demo]
"""

RETURN = r"""
changes: {description: what was done, type: list, elements: str, returned: always}
restarted: {description: units restarted, type: list, elements: str, returned: always}
started: {description: units started, type: list, elements: str, returned: always}
units: {description: state of each unit at the end, type: dict, returned: always}
"""

import errno
import grp
import hashlib
import json
import os
import pwd
import shutil
import stat
import tempfile
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_bytes, to_native

RECORDS = "/var/lib/clusterctl-node/units"
UNIT_DIRS = ("/etc/systemd/", "/run/systemd/", "/lib/systemd/", "/usr/lib/systemd/", "/etc/init.d/")
PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,InvocationID,ActiveEnterTimestampMonotonic,NeedDaemonReload,NRestarts,Type"


class Problem(Exception):
    pass


class Files(object):
    """Everything on disk. `before_change` is called ahead of the first write that a restart depends on."""

    def __init__(self, check, before_change):
        self.check = check
        self.before_change = before_change
        self.changes = []
        self.reload = False

    def note(self, what, path):
        self.changes.append("%s %s" % (what, path))
        if path.startswith(UNIT_DIRS):
            self.reload = True

    @staticmethod
    def ids(owner, group):
        try:
            uid = int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
        except KeyError:
            raise Problem("there is no user %s" % owner)
        try:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        except KeyError:
            raise Problem("there is no group %s" % group)
        return uid, gid

    def attributes(self, path, mode, owner, group):
        """Mode and owner of an existing path; true when something had to change."""
        if self.check and not os.path.exists(path):
            return True
        uid, gid = self.ids(owner, group)
        info = os.stat(path)
        changed = False
        if stat.S_IMODE(info.st_mode) != mode:
            changed = True
            if not self.check:
                os.chmod(path, mode)
        if (info.st_uid, info.st_gid) != (uid, gid):
            changed = True
            if not self.check:
                os.chown(path, uid, gid)
        return changed

    def directory(self, item):
        path, mode = item["path"], int(item["mode"], 8)
        if os.path.islink(path) and not os.path.exists(path):
            raise Problem("%s is a dangling link" % path)
        if not os.path.isdir(path):
            if os.path.exists(path):
                raise Problem("%s exists and is not a directory" % path)
            self.note("made", path)
            if self.check:
                return
            os.makedirs(path, 0o755)
            self.attributes(path, mode, item["owner"], item["group"])
        elif self.attributes(path, mode, item["owner"], item["group"]):
            self.note("set mode or owner of", path)

    @staticmethod
    def read(path):
        try:
            with open(path, "rb") as handle:
                return handle.read()
        except IOError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    def file(self, item):
        path, mode, data = item["path"], int(item["mode"], 8), to_bytes(item["content"])
        if os.path.isdir(path):
            raise Problem("%s is a directory, a file was wanted" % path)
        if self.read(path) != data:
            if item["restart"]:
                self.before_change()
            self.note("wrote", path)
            if self.check:
                return
            if item["in_place"] and os.path.exists(path):
                self.write_in_place(path, data)
            else:
                self.replace(path, data, mode, item["owner"], item["group"])
            self.attributes(path, mode, item["owner"], item["group"])
        elif self.attributes(path, mode, item["owner"], item["group"]):
            self.note("set mode or owner of", path)

    def replace(self, path, data, mode, owner, group):
        uid, gid = self.ids(owner, group)
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, 0o755)
        descriptor, temporary = tempfile.mkstemp(prefix=".clusterctl-", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(data)
                handle.flush()
                os.fchmod(handle.fileno(), mode)
                os.fchown(handle.fileno(), uid, gid)
                os.fsync(handle.fileno())
            os.rename(temporary, path)
        except Exception:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    @staticmethod
    def write_in_place(path, data):
        with open(path, "r+b") as handle:
            handle.write(data)
            handle.truncate()
            handle.flush()
            os.fsync(handle.fileno())

    def block(self, item):
        path, name = item["path"], item["name"]
        old = self.read(path)
        if old is None and not item["content"]:
            return
        text = to_native(old or b"", errors="surrogateescape")
        if item.get("enough") and set(item["enough"]) <= set(lines_of_block(text, name)):
            return
        new = with_block(text, name, item["content"])
        new = to_bytes(new, errors="surrogateescape")
        if new == old:
            return
        self.note("wrote block %s in" % name, path)
        if self.check:
            return
        if old is None:
            self.replace(path, new, 0o644, "root", "root")
        else:
            self.write_in_place(path, new)

    def absent(self, path):
        path = os.path.normpath(path)
        if path.count("/") < 2:
            raise Problem("refusing to remove %s" % path)
        if not os.path.lexists(path):
            return
        mount = os.path.ismount(path) and not os.path.islink(path)
        if mount and not os.listdir(path):
            return
        self.note("emptied" if mount else "removed", path)
        if self.check:
            return
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
            folder = os.path.dirname(path)
            if folder.startswith("/etc/systemd/system/") and folder.endswith(".d") and not os.listdir(folder):
                os.rmdir(folder)
            return
        self.unmount_below(path)
        if mount:
            for name in os.listdir(path):
                self.remove(os.path.join(path, name))
        else:
            self.remove(path)

    @staticmethod
    def remove(path):
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            shutil.rmtree(path)

    def unmount_below(self, path):
        for point in sorted(mounts_below(path), reverse=True):
            code, _out, error = self.run(["umount", point])
            if code != 0:
                code, _out, error = self.run(["umount", "-l", point])
            if code != 0:
                raise Problem("cannot unmount %s: %s" % (point, error.strip()))

    run = None  # set by main


def mounts_below(path):
    real = os.path.realpath(path)
    found = []
    with open("/proc/self/mountinfo", "rb") as handle:
        for line in handle:
            point = line.split(b" ")[4].decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")
            if point.startswith(real + "/"):
                found.append(point)
    return found


def lines_of_block(text, name):
    begin, end = "# BEGIN clusterctl %s" % name, "# END clusterctl %s" % name
    lines = [line.strip() for line in text.split("\n")]
    return lines[lines.index(begin) + 1:lines.index(end)] if begin in lines and end in lines else []


def with_block(text, name, content):
    """`text` with exactly one block `name` that holds `content`, at the place of the first old one, else at the end."""
    begin, end = "# BEGIN clusterctl %s" % name, "# END clusterctl %s" % name
    lines, place, inside = [], None, False
    for line in text.split("\n"):
        if line.strip() == begin:
            inside = True
            place = len(lines) if place is None else place
        elif inside and line.strip() == end:
            inside = False
        elif not inside:
            lines.append(line)
    if inside:
        raise Problem("the block %s has a beginning and no end" % name)
    if not content:
        return "\n".join(lines)
    if place is None:
        if lines[-1] != "":
            lines.append("")
        place = len(lines) - 1
    block = [begin] + content.rstrip("\n").split("\n") + [end]
    return "\n".join(lines[:place] + block + lines[place:])


class Units(object):
    def __init__(self, module, settle):
        self.module = module
        self.check = module.check_mode
        self.settle = settle
        self.changes = []
        self.started = []
        self.restarted = []
        self.settling = []  # (name, digest, what systemd showed, when it began): started now, to be looked at once more

    def systemctl(self, *arguments):
        return self.module.run_command(["systemctl"] + list(arguments))

    def must(self, *arguments):
        code, _out, error = self.systemctl(*arguments)
        if code != 0:
            raise Problem("systemctl %s: %s" % (" ".join(arguments), error.strip() or "exit code %d" % code))

    def show(self, name):
        code, out, error = self.systemctl("show", "-p", PROPERTIES, "--", name)
        if code != 0:
            raise Problem("systemctl show %s: %s" % (name, error.strip()))
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    @staticmethod
    def record_path(name):
        return os.path.join(RECORDS, name + ".json")

    def record(self, name):
        try:
            with open(self.record_path(name)) as handle:
                return json.load(handle)
        except (IOError, ValueError):
            return {}

    def forget(self, name):
        if not self.check and os.path.exists(self.record_path(name)):
            os.unlink(self.record_path(name))

    def remember(self, name, digest):
        if self.check:
            return
        if not os.path.isdir(RECORDS):
            os.makedirs(RECORDS, 0o755)
        value = {"digest": digest, "invocation": self.show(name).get("InvocationID", "")}
        if self.record(name) == value:
            return
        temporary = self.record_path(name) + ".new"
        with open(temporary, "w") as handle:
            json.dump(value, handle)
        os.rename(temporary, self.record_path(name))

    def stop(self, unit):
        name, now = unit["name"], self.show(unit["name"])
        if unit["state"] == "stopped":
            if now.get("ActiveState") not in ("inactive", "failed"):
                self.changes.append("stopped %s" % name)
                if not self.check:
                    self.must("stop", "--", name)
            if not self.check and self.show(name).get("ActiveState") == "failed":
                self.systemctl("reset-failed", "--", name)
            self.forget(name)
        if unit["enabled"] is False and now.get("UnitFileState") in ("enabled", "enabled-runtime"):
            self.changes.append("disabled %s" % name)
            if not self.check:
                self.must("disable", "--quiet", "--", name)

    def start(self, unit, digest, newest):
        name = unit["name"]
        now = self.show(name)
        if now.get("LoadState") == "not-found":
            if self.check:
                self.changes.append("started %s" % name)
                return
            raise Problem("there is no unit %s" % name)
        if now.get("LoadState") == "masked":
            self.changes.append("unmasked %s" % name)
            if not self.check:
                self.must("unmask", "--quiet", "--", name)
        if unit["enabled"] and now.get("UnitFileState") in ("disabled", "enabled-runtime", "masked", "linked"):
            self.changes.append("enabled %s" % name)
            if not self.check:
                self.must("enable", "--quiet", "--", name)
        active = now.get("ActiveState") in ("active", "reloading")
        if unit["state"] is None and not active:
            return
        if active and not (unit["restart"] and self.outdated(name, now, digest, newest)):
            if unit["restart"]:
                self.remember(name, digest)
            return
        verb = "restart" if active else "start"
        self.changes.append("%sed %s" % (verb, name))
        (self.restarted if active else self.started).append(name)
        if self.check:
            return
        self.systemctl("reset-failed", "--", name)
        began = time.time()
        # A unit that systemd is about to start again by itself ("activating (auto-restart)") needs a restart, too.
        verb = "restart" if now.get("ActiveState") == "activating" else verb
        code, _out, error = self.systemctl(verb, "--", name)
        after = self.show(name)
        if code != 0 or after.get("ActiveState") not in ("active", "reloading"):
            raise Problem("%s did not start: %s" % (name, self.reason(name, began) or error.strip()))
        if after.get("Type") == "notify":  # it said itself that it is ready
            self.remember(name, digest)
        else:
            self.settling.append((name, digest, after, began))

    def settle_all(self):
        """A program that ends soon after its start is seen: all that were started are watched at the same time."""
        until = time.time() + self.settle
        while self.settling:
            for name, _digest, first, began in self.settling:
                now = self.show(name)
                if now.get("ActiveState") not in ("active", "reloading") or now.get("NRestarts") != first.get("NRestarts"):
                    raise Problem("%s did not start: %s" % (name, self.reason(name, began)))
            if time.time() >= until:
                break
            time.sleep(0.2)
        for name, digest, _first, _began in self.settling:
            self.remember(name, digest)

    def outdated(self, name, now, digest, newest):
        record = self.record(name)
        if record.get("digest") != digest:
            return True
        if record.get("invocation") == now.get("InvocationID"):
            return False
        # Started by somebody else: up to date if that was after the last change on disk.
        began = time.time() - (time.monotonic() - int(now.get("ActiveEnterTimestampMonotonic") or 0) / 1e6)
        return newest > began

    def reason(self, name, began):
        """The last words of the program itself; without any, those of systemd about it."""
        since = ["--since", "@%d" % began, "--no-pager", "-o", "cat"]
        for match in (["_SYSTEMD_UNIT=" + name, "-n", "4"], ["-u", name, "-n", "8"]):
            _code, out, _error = self.module.run_command(["journalctl"] + match + since)
            lines = [line.strip() for line in out.splitlines() if line.strip() and not line.startswith("-- ")]
            if lines:
                return " | ".join(lines)[-1500:]
        return ""


def digest_of(files, blocks, inputs):
    parts = [[f["path"], f["content"], f["mode"], f["owner"], f["group"]] for f in files if f["restart"]]
    text = json.dumps([sorted(parts), inputs], sort_keys=True)
    return hashlib.sha256(to_bytes(text)).hexdigest()


def converge(module, files, units):
    params = module.params
    digest = digest_of(params["files"], params["blocks"], params["inputs"])
    for unit in params["units"]:
        if unit["state"] == "stopped" or unit["enabled"] is False:
            units.stop(unit)
    for path in params["absent"]:
        files.absent(path)
    for item in params["directories"]:
        files.directory(item)
    for item in params["files"]:
        files.file(item)
    for item in params["blocks"]:
        files.block(item)
    wanted = [unit for unit in params["units"] if unit["state"] != "stopped"]
    stale = any(units.show(unit["name"]).get("NeedDaemonReload") == "yes" for unit in wanted)
    if (files.reload or stale) and not module.check_mode:
        units.must("daemon-reload")
    for unit in params["units"]:
        if unit["state"] == "stopped" and files.reload and not module.check_mode:
            units.systemctl("reset-failed", "--", unit["name"])
    newest = max([os.stat(f["path"]).st_mtime for f in params["files"] if f["restart"] and os.path.exists(f["path"])] or [0])
    for unit in wanted:
        units.start(unit, digest, newest)
    units.settle_all()


def main():
    attributes = dict(owner=dict(type="str", default="root"), group=dict(type="str", default="root"))
    module = AnsibleModule(
        argument_spec=dict(
            directories=dict(
                type="list", elements="dict", default=[],
                options=dict(attributes, path=dict(type="path", required=True), mode=dict(type="str", default="0755")),
            ),
            files=dict(
                type="list", elements="dict", default=[],
                options=dict(
                    attributes, path=dict(type="path", required=True), content=dict(type="str", required=True),
                    mode=dict(type="str", default="0644"), in_place=dict(type="bool", default=False),
                    restart=dict(type="bool", default=True),
                ),
            ),
            blocks=dict(
                type="list", elements="dict", default=[],
                options=dict(path=dict(type="path", required=True), name=dict(type="str", required=True), content=dict(type="str", default=""),
                             enough=dict(type="list", elements="str")),
            ),
            absent=dict(type="list", elements="path", default=[]),
            units=dict(
                type="list", elements="dict", default=[],
                options=dict(
                    name=dict(type="str", required=True), state=dict(type="str", choices=["started", "stopped"]),
                    enabled=dict(type="bool"), restart=dict(type="bool", default=True),
                ),
            ),
            inputs=dict(type="dict", default={}),
            settle=dict(type="float", default=1.0),
        ),
        supports_check_mode=True,
    )
    units = Units(module, module.params["settle"])

    def before_change():
        # Forgotten first: if this run dies before the restart, the next one knows that it is due.
        for unit in module.params["units"]:
            if unit["state"] != "stopped" and unit["restart"]:
                units.forget(unit["name"])

    files = Files(module.check_mode, before_change)
    files.run = module.run_command
    try:
        converge(module, files, units)
        state = {}
        for unit in module.params["units"]:
            now = units.show(unit["name"])
            state[unit["name"]] = {"active": now.get("ActiveState"), "enabled": now.get("UnitFileState"), "sub": now.get("SubState")}
    except Problem as problem:
        module.fail_json(msg=to_native(problem), changes=files.changes + units.changes)
    except (OSError, IOError) as error:
        module.fail_json(msg="%s: %s" % (error.filename or "file", error.strerror or error), changes=files.changes + units.changes)
    changes = files.changes + units.changes
    module.exit_json(changed=bool(changes), changes=changes, restarted=units.restarted, started=units.started, units=state)


if __name__ == "__main__":
    main()
