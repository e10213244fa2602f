"""The independent model of tests/crash/model.py against a real daemon that is killed in every operation."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))

import model  # noqa: E402


def held(operations, seed):
    found, report = model.run(operations, seed)
    print("seed %d\n%s" % (seed, report))
    assert found == [], "seed %d\n%s\n%s" % (seed, report, "\n".join(found))


def test_operations_end_as_the_model_says_whenever_the_daemon_dies():
    held(int(os.environ.get("CLUSTERCTL_MODEL_KILLS", "14")), int(os.environ.get("CLUSTERCTL_MODEL_SEED", "5")))


@pytest.mark.full
@pytest.mark.parametrize("seed", [11, 12])
def test_two_hundred_operations_and_kills(seed):
    held(100, seed)


def test_the_model_refuses_what_it_is_there_to_refuse():
    m = model.Model()
    m.inside = {"m1", "m2", "m3", "w1", "w2"}
    ask = lambda kind, *nodes, **more: m.judge(dict(more, kind=kind, nodes=list(nodes)))  # noqa: E731
    assert ask("decommission", "m1") is None and ask("update", "m1") is None and ask("commission", "m4") is None
    assert ask("drain", "w1") is None and ask("drain", "w1", "w2") == "budget"
    m.down = {"m3"}
    assert ask("decommission", "m1") == "quorum" and ask("update", "m1") == "quorum" and ask("commission", "m4") == "quorum"
    assert ask("decommission", "m3") == "unreachable" and ask("commission", "m4", force=True) is None
    assert ask("decommission", "m3", force=True, powered_off=True) is None
    assert ask("decommission", "m1", "m2", "m3", force=True, powered_off=True) is None
