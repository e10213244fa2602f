"""The record of what clusterctl installed on a node: which packages were not there before.

{"v": 1, "packages": {name: {version, time}}, "before"?: [names]}. `before` stands there while a transaction goes on, and stays when it was
broken off: whatever is not in it has come by that transaction.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

RECORD = "/var/lib/clusterctl-node/installed.json"


def read_record(path=RECORD):
    try:
        with open(path) as handle:
            record = json.load(handle)
        return record if isinstance(record.get("packages"), dict) else {"v": 1, "packages": {}}
    except (IOError, ValueError, AttributeError):
        return {"v": 1, "packages": {}}


def write_record(path, record):
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), 0o755)
    with open(path + ".new", "w") as handle:
        json.dump(record, handle, indent=1, sort_keys=True)
        handle.write("\n")
    os.rename(path + ".new", path)


def installed_by_us(record, name):
    return name in record["packages"] or ("before" in record and name not in record["before"])
