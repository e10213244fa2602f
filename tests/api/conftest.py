import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import Daemon  # noqa: E402
from joining import make_machine  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write tests/api/golden anew instead of comparing with it")


@pytest.fixture
def stopped():
    """A daemon that is configured but does not run yet; whatever it leaves is ended afterwards. The folder's name is short, because
    the path of a Unix socket is limited."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="d"))
    made = Daemon(directory)
    yield made
    made.end()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def daemon(stopped):
    """A running daemon with nothing in it."""
    return stopped.start()


@pytest.fixture
def fleet(daemon):
    """Three nodes for masters and one for a worker, none commissioned."""
    for name in ("m1", "m2", "m3"):
        daemon.add(name, "service-master")
    daemon.add("w1", "service-worker")
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
    return daemon


@pytest.fixture
def cluster(fleet):
    """The same nodes, commissioned."""
    fleet.commission("m1", "m2", "m3", "w1")
    return fleet


@pytest.fixture
def workers(cluster):
    """The same with four workers."""
    for name in ("w2", "w3", "w4"):
        cluster.add(name, "service-worker")
    cluster.commission("w2", "w3", "w4")
    return cluster


@pytest.fixture
def manual(daemon):
    """Machines that join wait."""
    daemon.send("PATCH", "/v1/cluster", {"accept_policy": "manual"}).ok()
    return daemon


@pytest.fixture
def machine():
    """A folder that stands for "/" of a new machine."""
    root = make_machine()
    yield root
    shutil.rmtree(root)


def pytest_make_parametrize_id(config, val, argname):
    """Hostile values make names that no report can show: those that are not short and plain are numbered instead."""
    if isinstance(val, str) and len(val) <= 30 and val.isascii() and val.replace("-", "").replace("/", "").replace("=", "").isalnum():
        return val
    if isinstance(val, (str, bytes)):
        return argname
    return None
