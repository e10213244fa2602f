"""What the benches on the double share: a daemon in a folder of its own, thousands of nodes put into its store at once, and what the
machine was doing meanwhile."""

import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "api"))
from harness import Daemon  # noqa: E402

BIN = pathlib.Path(os.environ.get("CLUSTERCTL_BENCH_BIN", ROOT / "build/bin"))


def build():
    """The programs of the benches."""
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "clusterctl", "bench_server", "bench_load"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def daemon(**jobs):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="b"))
    made = Daemon(directory)
    made.config["jobs"] = jobs
    try:
        yield made.start()
    finally:
        made.end()
        shutil.rmtree(directory, ignore_errors=True)


def fill(one, number):
    """n0, n1, …: copies of one node in the store, because adding them one after another is not what is measured."""
    first = one.add("n0", "service-worker", addr="10.0.0.1", labels={"rack": "r0", "row": "a"}, vars={"note": "x" * 40})
    one.stop()
    with sqlite3.connect(one.state_dir / "clusterctl.db") as db:
        text, revision = db.execute("SELECT value, revision FROM record WHERE key = ?", ("nodes/" + first["id"],)).fetchone()
        for i in range(1, number):
            node = json.loads(text)
            node["id"] = "%012d" % i
            node["name"] = "n%d" % i
            node["spec"]["addr"] = "10.%d.%d.%d" % (1 + i // 62500, i // 250 % 250, 1 + i % 250)
            node["spec"]["labels"]["rack"] = "r%d" % (i // 40)
            db.execute("INSERT INTO record (key, value, revision) VALUES (?, ?, ?)", ("nodes/" + node["id"], json.dumps(node), revision))
    db.close()
    one.start()
    assert len(one.get("/v1/nodes").ok()["nodes"]) == number


def status_of(one):
    text = pathlib.Path("/proc/%d/status" % one.process.pid).read_text()
    value = {name: int(text.split(name + ":")[1].split()[0]) for name in ("VmRSS", "VmHWM", "Threads")}
    return value["VmRSS"] / 1024, value["VmHWM"] / 1024, value["Threads"]


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load():
    return "load of the machine (1 min): %.2f on %d processors" % (os.getloadavg()[0], os.cpu_count())
