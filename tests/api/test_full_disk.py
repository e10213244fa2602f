"""The disk of the state directory is full in the middle of a job: nothing is half done, it is said once and where people look, and the job
goes on to its true end when there is room again, with this daemon or the next."""

import os
import subprocess

import pytest

from harness import wait_for


@pytest.fixture(name="daemon")
def on_a_small_disk(stopped):
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    state = stopped.state_dir
    state.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "none", str(state)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here: " + mounted.stderr.strip())
    yield stopped.start()
    stopped.end()
    subprocess.run(["umount", "-l", str(state)], check=False)


def fill(daemon):
    ballast = os.open(daemon.state_dir / "ballast", os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(ballast, b"x" * 4096)
    except OSError:
        os.close(ballast)


def in_the_middle(daemon):
    """A commission whose run ends on a full disk; its id."""
    daemon.add("m1", "service-master")
    daemon.double.orders(site=["gate:go"])
    job = daemon.submit("commission", nodes=["m1"])["id"]
    daemon.double.wait_gate("go")
    fill(daemon)
    daemon.send("POST", "/v1/nodes", {"name": "n2", "spec": {"addr": "192.0.2.77"}}).problem(503, "no_space")
    daemon.double.open_gate("go")
    run = next(stage["run"] for stage in daemon.job(job)["stages"] if stage["name"] == "site")
    wait_for((daemon.state_dir / "runs" / run / "exit.json").exists, "the run to end")
    return job


def test_a_full_disk_is_shown_and_the_job_ends_when_there_is_room(daemon):
    job = in_the_middle(daemon)
    assert daemon.get("/readyz").problem(503, "no_space")["hint"]
    assert daemon.get("/healthz").status == 200
    assert [p["code"] for p in daemon.get("/v1/status").ok()["problems"]] == ["no_space"]
    assert "the disk is full" in daemon.cli("status").stdout
    assert daemon.job(job)["state"] == "running"
    assert daemon.get("/v1/nodes/n2").status == 404
    (daemon.state_dir / "ballast").unlink()
    daemon.wait(job, "succeeded")
    assert daemon.lifecycle("m1") == "Allocated"
    assert daemon.double.playbooks() == ["check", "site", "verify"]
    assert daemon.get("/readyz").status == 200 and daemon.get("/v1/status").ok()["problems"] == []
    told = [line for line in daemon.log().splitlines() if "the disk is full" in line]
    assert len(told) < 5, told


def test_the_next_daemon_says_that_the_disk_is_full_and_goes_on_when_there_is_room(daemon):
    job = in_the_middle(daemon)
    daemon.kill()
    code, told = daemon.fails_to_start()
    assert code == 69 and "the disk is full" in told and "hint: free space" in told
    (daemon.state_dir / "ballast").unlink()
    daemon.start()
    daemon.wait(job, "succeeded")
    assert daemon.double.playbooks() == ["check", "site", "verify"]


def test_events_wait_for_room(daemon):
    """A run that ends well on a disk that was full for a while ended well."""
    daemon.add("m1", "service-master")
    daemon.double.orders(site=["gate:go:base", "events:200"])
    job = daemon.submit("commission", nodes=["m1"])["id"]
    daemon.double.wait_gate("go")
    run = next(stage["run"] for stage in daemon.job(job)["stages"] if stage["name"] == "site")
    fill(daemon)
    daemon.double.open_gate("go")
    wait_for(lambda: not daemon.double.calls("site")[0]["pid"] in daemon.processes(), "the playbook to end")
    assert not (daemon.state_dir / "runs" / run / "exit.json").exists(), "its events are not yet written"
    (daemon.state_dir / "ballast").unlink()
    daemon.wait(job, "succeeded")
    assert daemon.lifecycle("m1") == "Allocated"


def test_old_logs_make_room(daemon):
    daemon.add("m1", "service-master")
    daemon.double.orders(check="longline:%d" % (2 << 20))
    old = daemon.wait(daemon.submit("check", nodes=["m1"])["id"], "succeeded")["id"]
    daemon.double.orders()
    new = daemon.wait(daemon.submit("check", nodes=["m1"])["id"], "succeeded")["id"]
    fill(daemon)
    daemon.send("POST", "/v1/nodes", {"name": "n2", "spec": {"addr": "192.0.2.77"}}).problem(503, "no_space")
    wait_for(lambda: daemon.get("/readyz").status == 200, "room")
    assert daemon.get("/v1/jobs/%s/log" % old).problem(410, "log_expired")
    assert daemon.get("/v1/jobs/%s/log" % new).status == 200
    daemon.send("POST", "/v1/nodes", {"name": "n2", "spec": {"addr": "192.0.2.77"}}).ok(201)
    assert "the disk is full: the log of job %s was dropped" % old in daemon.log()
