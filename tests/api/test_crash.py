"""The controller dies at random instants under concurrent work; an independent checker reads what really ran (tests/crash)."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))

import checker  # noqa: E402
import storm  # noqa: E402


def held(kills, power_cuts, seed):
    found, report = storm.run(kills, power_cuts, seed)
    print("seed %d\n%s" % (seed, report))
    assert found == [], "seed %d\n%s" % (seed, report)


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_doubled_orphaned_or_stuck(seed):
    held(12, 2, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 104))
def test_nothing_is_lost_in_a_long_storm(seed):
    held(80, 8, seed)


def call(run, pid=1):
    return {"env": {"CLUSTERCTL_RUN_ID": run}, "pid": pid}


def done(t, run, host, door="main"):
    return {"t": t, "run": run, "host": host, "service": "base", "door": door}


def test_the_checker_sees_what_it_is_there_to_see():
    assert checker.doubled_runs([call("a", 1), call("a", 2), call("b", 3)]) == ["run a was started 2 times"]
    mixed = [done(1, "a", "n1"), done(3, "a", "n1"), done(2, "b", "n1", "cleanup")]
    assert checker.interleaved(mixed) == ["n1 was changed by run a while run b worked on it"]
    assert checker.interleaved([done(1, "a", "n1"), done(2, "b", "n2"), done(3, "a", "n1"), done(4, "b", "n1", "check")]) == []
    assert checker.lost_jobs({"j1"}, []) == ["job j1 was accepted and is gone"]
    assert checker.stuck_jobs([{"id": "j1", "state": "running"}]) == ["job j1 is still running"]
    succeeded = {"id": "j1", "stages": [{"name": "site", "state": "succeeded", "run": "r1"}]}
    assert checker.untrue_jobs([succeeded], [call("r2")]) == ["job j1: stage site succeeded without having run"]
    assert checker.broken_sequence([1, 2, 4]) == ["event 4 follows event 2"]
    node = {"name": "n1", "spec": {"host_group": "service-master"},
            "status": {"lifecycle": "Allocated", "conditions": [], "maintenance": None,
                       "applied": {"services": ["base", "etcd"], "host_group": "service-master"}}}
    assert checker.untrue_nodes([node], {"n1": {"services": {"base": ""}}}) == ["n1 is Allocated without etcd"]
    node["status"].update(lifecycle="Unallocated", applied=None)
    assert checker.untrue_nodes([node], {"n1": {"services": {"base": ""}}}) == ["n1 is Unallocated and has base"]
    node["status"]["conditions"] = [{"type": "Dirty"}]
    assert checker.untrue_nodes([node], {"n1": {"services": {"base": ""}}}) == []
    node["status"]["lifecycle"] = "Provisioning"
    assert checker.untrue_nodes([node], {}) == ["n1 is Provisioning although nothing works on it"]
