#!/usr/bin/python
"""Membership of a node in a swarm, through the engine's API."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: clusterctl_swarm
short_description: One step of joining, leaving or looking at a swarm
description:
  - On the node itself C(status), C(init), C(join) and C(leave). On a manager C(ask), C(admit), C(demote), C(remove), C(schedule) and
    C(vacate).
  - The result of C(ask) may hold a join token, so that task needs C(no_log).
options:
  op:
    description: The step.
    type: str
    choices: [status, init, join, leave, ask, admit, demote, remove, schedule, vacate]
    default: status
  wait:
    description: Seconds to wait for the state the step is about.
    type: int
    default: 0
  address:
    description: Address of this node that the others use (init, join).
    type: str
    default: ""
  data_address:
    description: Address for the traffic between containers, if it is another one.
    type: str
    default: ""
  port:
    description: Port of the managers.
    type: int
    default: 2377
  data_port:
    description: UDP port for the traffic between containers (init).
    type: int
    default: 4789
  pools:
    description: Address pools of overlay networks (init). Empty means the engine's own.
    type: list
    elements: str
    default: []
  availability:
    description: Wanted availability.
    type: str
    choices: [active, pause, drain]
    default: active
  role:
    description: Wanted role (ask, admit).
    type: str
    choices: [manager, worker]
    default: worker
  token:
    description: Join token.
    type: str
  managers:
    description: Addresses of managers to join through.
    type: list
    elements: str
    default: []
  node_id:
    description: The member this is about (ask, admit).
    type: str
    default: ""
  recorded:
    description: Its recorded id, which may be an older one.
    type: str
    default: ""
  name:
    description: Its host name.
    type: str
    default: ""
  members:
    description: Members to demote, remove, schedule or vacate, as C({name, addr, ids}); C(ids) is a list.
    type: list
    elements: dict
    default: []
  slots:
    description: Places of services that the member held before it was drained, as C(schedule) reported them (vacate).
    type: list
    elements: str
    default: []
  optional:
    description: If this is no manager, there is nothing to demote or remove; otherwise that is an error.
    type: bool
    default: false
  socket:
    description: The engine's socket.
    type: path
    default: /var/run/docker.sock
author: [clusterctl]
"""

EXAMPLES = r"""
- name: Look at this node
  clusterctl_swarm:
  register: swarm_here
"""

RETURN = r"""
answers: {description: whether an engine answers, type: bool, returned: always}
state: {description: inactive pending active error locked, type: str, returned: by status}
addr: {description: the address that the node told the swarm when it joined, type: str, returned: by status}
members: {description: the members as this manager sees them, type: list, elements: dict, returned: by status on a manager}
known: {description: whether the cluster knows the node, type: bool, returned: by ask}
slots: {description: places of services that the member holds, type: list, elements: str, returned: by schedule}
settled: {description: whether nothing is left to do for it, type: bool, returned: by ask}
"""

import json
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.clusterctl_engine import Engine, EngineError, segment
from ansible.module_utils.clusterctl_tasks import blockers, held_slots, in_one_line


class Refused(Exception):
    pass


def host_of(address):
    """10.0.0.1:2377 -> 10.0.0.1"""
    return address.rsplit(":", 1)[0].strip("[]") if address else ""


def member(node):
    manager = node.get("ManagerStatus") or {}
    status = node.get("Status") or {}
    ready = status.get("State") == "ready"
    is_manager = (node.get("Spec") or {}).get("Role") == "manager"
    return {
        "id": node["ID"],
        "name": (node.get("Description") or {}).get("Hostname", ""),
        "addr": host_of(manager.get("Addr", "")) if manager.get("Addr") and not manager["Addr"].startswith("0.0.0.0") else status.get("Addr", ""),
        "role": "leader" if manager.get("Leader") else "manager" if is_manager else "worker",
        "reachable": ready and (not is_manager or manager.get("Reachability") == "reachable"),
        "leader": bool(manager.get("Leader")),
        "state": status.get("State", "unknown"),
        "availability": (node.get("Spec") or {}).get("Availability", ""),
        "voter": bool(manager),
    }


class Swarm(object):
    def __init__(self, engine, params, check=False):
        self.engine = engine
        self.params = params
        self.check = check
        self.changes = []

    # ---- looking ------------------------------------------------------------------------------

    def nodes(self):
        return self.engine.get("/nodes", timeout=20)

    def members(self):
        return sorted((member(node) for node in self.nodes()), key=lambda m: (m["name"], m["id"]))

    def status(self):
        until = time.time() + self.params["wait"]
        while True:
            found = self.status_now()
            own = next((m for m in found["members"] if m["id"] == found["node_id"]), None)
            fine = found["state"] == "active" and (own["reachable"] if own else not found["control"])
            # A node that is in no swarm does not come into one by being waited for.
            gone = found["answers"] and found["state"] == "inactive"
            if fine or gone or time.time() >= until:
                return found
            time.sleep(1)

    def status_now(self):
        try:
            info = self.engine.info()
        except EngineError as error:
            return {"answers": False, "message": str(error), "state": "inactive", "node_id": "", "addr": "", "control": False,
                    "cluster_id": "", "managers": [], "members": [], "name": "", "version": ""}
        swarm = info.get("Swarm") or {}
        found = {
            "answers": True,
            "message": swarm.get("Error") or "",
            "state": swarm.get("LocalNodeState", "inactive"),
            "node_id": swarm.get("NodeID", ""),
            "addr": swarm.get("NodeAddr", ""),
            "control": bool(swarm.get("ControlAvailable")),
            "cluster_id": (swarm.get("Cluster") or {}).get("ID", ""),
            "managers": [m["Addr"] for m in swarm.get("RemoteManagers") or []],
            "members": [],
            "name": info.get("Name", ""),
            "version": info.get("ServerVersion", ""),
        }
        if found["control"]:
            try:
                found["members"] = self.members()
            except EngineError as error:
                found["message"] = str(error)
        return found

    def wait_for(self, what, look):
        """Calls `look` until it gives something true, and returns that."""
        until = time.time() + self.params["wait"]
        last = ""
        while True:
            try:
                value = look()
                if value:
                    return value
            except EngineError as error:
                last = ": %s" % error
            if time.time() >= until:
                raise Refused("after %d s still waiting for %s%s" % (self.params["wait"], what, last))
            time.sleep(0.5)

    # ---- on the node --------------------------------------------------------------------------

    def init(self):
        if self.status_now()["state"] == "active":
            return {}
        body = {
            "ListenAddr": "0.0.0.0:%d" % self.params["port"],
            "AdvertiseAddr": "%s:%d" % (self.params["address"], self.params["port"]),
            "DataPathPort": self.params["data_port"],
            "Availability": self.params["availability"],
            "DefaultAddrPool": self.params["pools"],
            "Spec": {},
        }
        if self.params["data_address"]:
            body["DataPathAddr"] = self.params["data_address"]
        self.changes.append("made a swarm")
        if not self.check:
            self.engine.post("/swarm/init", body, timeout=120)
        return self.status_now()

    def join(self):
        now = self.status_now()
        if not now["answers"]:
            raise Refused(now["message"])
        self.refuse_foreign(now)
        if now["state"] != "inactive":
            self.leave()
        body = {
            "ListenAddr": "0.0.0.0:%d" % self.params["port"],
            "AdvertiseAddr": "%s:%d" % (self.params["address"], self.params["port"]),
            "RemoteAddrs": self.params["managers"],
            "JoinToken": self.params["token"],
            "Availability": self.params["availability"],
        }
        if self.params["data_address"]:
            body["DataPathAddr"] = self.params["data_address"]
        self.changes.append("joined")
        if self.check:
            return {}
        try:
            try:
                self.engine.post("/swarm/join", body, timeout=120)
            except EngineError as error:
                # The engine goes on by itself after its own limit; everything else is an answer.
                if "will continue in the background" not in str(error):
                    raise
            self.wait_for("this node to become active", lambda: self.status_now()["state"] == "active")
        except (EngineError, Refused) as error:
            reason = self.status_now()["message"] or str(error)
            self.leave()
            raise Refused("cannot join through %s: %s" % (", ".join(self.params["managers"]), reason))
        return self.status_now()

    def refuse_foreign(self, now):
        ours = set(host_of(a) for a in self.params["managers"])
        theirs = set(host_of(a) for a in now["managers"])
        if now["state"] == "active" and theirs and not theirs & ours:
            raise Refused("this node is a member of another swarm (managers %s); remove it there first" % ", ".join(sorted(theirs)))

    def leave(self):
        now = self.status_now()
        if not now["answers"]:
            return {"answers": False}
        if now["state"] != "inactive":
            self.changes.append("left")
            if not self.check:
                self.engine.post("/swarm/leave", query={"force": "true"}, timeout=120)
                self.wait_for("this node to leave", lambda: self.status_now()["state"] == "inactive")
        try:
            bridge = self.engine.get("/networks/docker_gwbridge")
        except EngineError:
            return {"answers": True}
        self.changes.append("removed docker_gwbridge")
        if not self.check:
            for endpoint, container in (bridge.get("Containers") or {}).items():
                name = container.get("Name") if endpoint.startswith("gateway") or "gateway" in container.get("Name", "") else endpoint
                try:
                    self.engine.post("/networks/docker_gwbridge/disconnect", {"Container": name or endpoint, "Force": True})
                except EngineError:
                    pass
            self.engine.delete("/networks/docker_gwbridge")
        return {"answers": True}

    # ---- on a manager -------------------------------------------------------------------------

    def own_entries(self, members):
        """The entry of the node, and older ones of the same machine that are down."""
        p = self.params
        own = next((m for m in members if p["node_id"] and m["id"] == p["node_id"]), None)
        stale = [
            m for m in members
            if m is not own and m["state"] != "ready"
            and ((p["recorded"] and m["id"] == p["recorded"]) or (p["name"] and m["name"] == p["name"] and m["addr"] in (p["address"], "", "0.0.0.0")))
        ]
        return own, stale

    def as_wanted(self, own):
        return own["reachable"] and own["availability"] == self.params["availability"] and (own["role"] != "worker") == (self.params["role"] == "manager")

    def ask(self):
        members = self.members()
        own, stale = self.own_entries(members)
        swarm = self.engine.get("/swarm")
        port = self.params["port"]
        answer = {
            "known": own is not None,
            "settled": own is not None and not stale and self.as_wanted(own),
            "cluster_id": swarm["ID"],
            "managers": ["%s:%d" % (m["addr"], port) for m in members if m["role"] != "worker" and m["reachable"] and m["addr"]],
        }
        if own is None:
            answer["token"] = swarm["JoinTokens"]["Worker"]
        return answer

    def admit(self):
        p = self.params

        def ready():
            own = self.own_entries(self.members())[0]
            return own if own and own["state"] == "ready" else None

        own = self.wait_for("%s (%s) to be ready" % (p["name"], p["node_id"]), ready)
        for old in self.own_entries(self.members())[1]:
            self.drop(old)
        if own["availability"] != p["availability"] or (own["role"] != "worker") != (p["role"] == "manager"):
            self.set_spec(own["id"], Role=p["role"], Availability=p["availability"])
        if self.check:
            return {}

        def settled():
            now = self.own_entries(self.members())[0]
            return now if now and self.as_wanted(now) and now["voter"] == (p["role"] == "manager") else None

        return {"member": self.wait_for("%s to be a reachable %s" % (p["name"], p["role"]), settled)}

    def set_spec(self, node_id, **values):
        self.changes.append("set %s of %s" % (", ".join("%s=%s" % item for item in sorted(values.items())), node_id))
        if self.check:
            return
        for turn in range(10):
            node = self.engine.get("/nodes/" + segment(node_id))
            spec = dict(node["Spec"], **values)
            try:
                self.engine.post("/nodes/%s/update" % segment(node_id), spec, {"version": node["Version"]["Index"]})
                return
            except EngineError as error:
                if "out of sequence" not in str(error) or turn == 9:
                    raise
            time.sleep(0.3)

    def find(self, wanted):
        """Entries of a member: by any of its ids; by name and address when no id is listed."""
        members = self.members()
        ids = [i for i in wanted.get("ids") or [] if i]
        found = [m for m in members if m["id"] in ids]
        if found:
            return found
        return [m for m in members if wanted.get("name") and m["name"] == wanted["name"] and wanted.get("addr") in (m["addr"], "", None)]

    def demote_entry(self, entry):
        if entry["role"] == "worker" and not entry["voter"]:
            return
        if entry["role"] != "worker":
            self.set_spec(entry["id"], Role="worker")
        if not self.check:
            self.wait_for(
                "%s to be no manager any more" % entry["name"],
                lambda: not any(m["voter"] for m in self.members() if m["id"] == entry["id"]),
            )

    def demote(self):
        for wanted in self.params["members"]:
            for entry in self.find(wanted):
                self.demote_entry(entry)
        return {}

    def drop(self, entry):
        self.demote_entry(entry)
        self.changes.append("removed member %s (%s)" % (entry["name"], entry["id"]))
        if not self.check:
            try:
                self.engine.delete("/nodes/" + segment(entry["id"]), {"force": "true"})
            except EngineError as error:
                if error.status != 404:
                    raise

    def remove(self):
        for wanted in self.params["members"]:
            # By force: it has left, or will never answer. The cluster would take a quarter of a minute to see that by itself.
            for entry in self.find(wanted):
                self.drop(entry)
            if not self.check:
                self.wait_for("%s to disappear from the members" % wanted.get("name"), lambda: not self.find(wanted))
        return {}

    # ---- availability -------------------------------------------------------------------------

    def listed(self):
        """The entry of the one member this is about; of several the one that is there."""
        wanted = self.params["members"][0]
        found = self.find(wanted)
        if not found:
            raise Refused("the cluster does not list %s (%s)" % (wanted.get("name"), ", ".join(wanted.get("ids") or []) or wanted.get("addr")))
        return sorted(found, key=lambda m: m["state"] != "ready")[0]

    def tasks(self, **filters):
        return self.engine.get("/tasks", {"filters": json.dumps(filters)}, timeout=60)

    def schedule(self):
        entry = self.wait_for("the list of members", self.listed)
        slots = held_slots(self.tasks(node=[entry["id"]]), entry["id"])
        if entry["availability"] != self.params["availability"]:
            self.set_spec(entry["id"], Availability=self.params["availability"])
        now = entry if self.check else self.listed()
        return {"before": entry["availability"], "availability": now["availability"], "slots": slots}

    def blocking(self, entry):
        here = self.tasks(node=[entry["id"]])
        concerned = sorted(set(t["ServiceID"] for t in here if t.get("ServiceID")) | set(s.rsplit(".", 1)[0] for s in self.params["slots"]))
        if not concerned:
            return []
        services = dict((s["ID"], s) for s in self.engine.get("/services", {"filters": json.dumps({"id": concerned})}, timeout=60))
        tasks = self.tasks(service=sorted(services)) if services else []
        known = set(t["ID"] for t in tasks)
        # What runs on of a service that was removed meanwhile.
        tasks += [t for t in here if t["ID"] not in known]
        return blockers(entry, tasks, services, self.params["slots"])

    def vacate(self):
        until = time.time() + self.params["wait"]
        while not self.check:
            try:
                lines = self.blocking(self.listed())
            except EngineError as error:  # the leader may change meanwhile
                lines = [str(error)]
            if not lines:
                break
            if time.time() >= until:
                raise Refused("not drained after %d s: %s" % (self.params["wait"], in_one_line(lines)))
            time.sleep(1)
        return {}


def main():
    text = dict(type="str", default="")
    module = AnsibleModule(
        argument_spec=dict(
            op=dict(type="str", default="status", choices=[
                "status", "init", "join", "leave", "ask", "admit", "demote", "remove", "schedule", "vacate"]),
            wait=dict(type="int", default=0),
            address=text, data_address=text, node_id=text, recorded=text, name=text,
            port=dict(type="int", default=2377),
            data_port=dict(type="int", default=4789),
            pools=dict(type="list", elements="str", default=[]),
            availability=dict(type="str", choices=["active", "pause", "drain"], default="active"),
            role=dict(type="str", choices=["manager", "worker"], default="worker"),
            token=dict(type="str", no_log=True),
            managers=dict(type="list", elements="str", default=[]),
            members=dict(type="list", elements="dict", default=[]),
            slots=dict(type="list", elements="str", default=[]),
            optional=dict(type="bool", default=False),
            socket=dict(type="path", default="/var/run/docker.sock"),
        ),
        supports_check_mode=True,
    )
    swarm = Swarm(Engine(module.params["socket"]), module.params, module.check_mode)
    try:
        if module.params["optional"] and not swarm.status_now()["control"]:
            module.exit_json(changed=False, changes=[])
        answer = getattr(swarm, module.params["op"])()
    except (Refused, EngineError) as error:
        module.fail_json(msg=str(error), changes=swarm.changes)
    module.exit_json(changed=bool(swarm.changes), changes=swarm.changes, **answer)


if __name__ == "__main__":
    main()
