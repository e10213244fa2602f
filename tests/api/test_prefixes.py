"""Ids by their beginning, everywhere an id is taken; what fits several is refused with the list of them."""

import json


def test_a_node_by_the_beginning_of_its_id(cluster):
    cluster.add("n1")
    ids = {node["name"]: node["id"] for node in cluster.get("/v1/nodes").ok()["nodes"]}
    free, worker = ids["n1"][:6], ids["w1"][:6]
    for command in (["node", "inspect", free], ["node", "get", free], ["node", "history", free], ["node", "label", free, "a=b"], ["node", "accept", free],
                    ["node", "forget-hostkey", free], ["node", "allocate", free, "--as", "spare"], ["node", "allocate", free, "--as", "in-service"],
                    ["node", "move", free, "192.0.2.77"], ["node", "rename", free, "n2"], ["job", "ls", "--node", worker], ["job", "ls", "--filter", "node=" + worker],
                    ["node", "check", free, "--plan"], ["node", "commission", free, "-g", "service-worker", "--plan"], ["node", "verify", worker, "--plan"],
                    ["node", "drain", worker, "--plan"], ["node", "update", worker, "--plan"], ["node", "promote", worker, "--plan"],
                    ["node", "replace", worker, "--with", free, "-g", "service-worker", "--plan"], ["node", "reboot", worker, "--plan"],
                    ["node", "maintenance", "enter", worker, "--plan"], ["node", "decommission", worker, "--plan"], ["node", "rm", free]):
        done = cluster.cli(*command)
        if command[:2] == ["node", "replace"] and done.returncode == 64:
            done = cluster.cli(*[word for word in command if word not in ("-g", "service-worker")])
        assert done.returncode in (0, 65) and "there is no node" not in done.stderr, (command, done)
        assert done.returncode == 0 or "service-worker" in " ".join(command) or command[1] == "replace", (command, done)
    assert [n["name"] for n in cluster.get("/v1/nodes").ok()["nodes"]] == ["m1", "m2", "m3", "w1"]


def test_a_job_by_the_beginning_of_its_id(fleet):
    first = fleet.wait(fleet.submit("check", nodes=["w1"])["id"])["id"]
    assert fleet.cli("job", "inspect", first[:4], "-q").stdout.split() == [first]
    second = fleet.wait(fleet.submit("check", nodes=["w1"])["id"])["id"]
    both = next(n for n in range(26, 0, -1) if first[:n] == second[:n])
    assert both >= 4
    for command in (["job", "inspect"], ["job", "logs"], ["job", "wait"], ["job", "cancel"], ["job", "pause"], ["job", "resume"], ["job", "retry", "--yes"]):
        done = fleet.cli(*command, first[:both])
        assert done.returncode == 64 and "is ambiguous: it fits 2 jobs" in done.stderr and first in done.stderr and second in done.stderr, (command, done)
    assert fleet.cli("job", "inspect", second[:both + 1], "-q").stdout.split() == [second]
    assert fleet.cli("job", "inspect", first[:3]).returncode == 65


def test_a_plan_by_the_beginning_of_its_id(fleet):
    made = [json.loads(fleet.cli("plan", "--to-revision", "1", "-o", "json").stdout)["id"] for _ in range(2)]
    both = next(n for n in range(26, 0, -1) if made[0][:n] == made[1][:n])
    done = fleet.cli("apply", made[0][:both])
    assert done.returncode in (64, 65) and "is ambiguous: it fits 2 plans" in done.stderr and made[0] in done.stderr and made[1] in done.stderr, done
    assert fleet.get("/v1/plans/" + made[0][:both + 1]).ok()["id"] == made[0]
