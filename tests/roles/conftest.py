import os
import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


@pytest.fixture(scope="session")
def lab():
    """Four fresh nodes, three of them managers. Kept afterwards, for whoever wants to look."""
    from harness import Lab

    made = Lab()
    made.up() if os.environ.get("CLUSTERCTL_TEST_KEEP") else made.fresh()
    return made


@pytest.fixture(scope="session")
def cluster(lab):
    """The nodes as one commissioned cluster. Tests that take it apart put it together again."""
    lab.first = lab.commission()
    return lab
