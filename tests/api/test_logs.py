"""Logs: whole, whatever is in them; bounded; and no trouble with them changes what a job came to."""

import json
import os
import pathlib
import subprocess
import threading
import time

import pytest

from harness import FINAL, wait_for


def raw_log(daemon, job):
    connection = daemon.connection(timeout=120)
    connection.request("GET", "/v1/jobs/%s/log" % job)
    answer = connection.getresponse()
    assert answer.status == 200
    try:
        return answer.read()
    finally:
        connection.close()


def messages(stream):
    """(event, data) of a stream of server-sent events."""
    event = None
    for line in stream:
        line = line.rstrip(b"\n")
        if line.startswith(b"event: "):
            event = line[7:].decode()
        elif line.startswith(b"data: "):
            yield event, json.loads(line[6:])


def followed_log(daemon, job):
    """The text that a follower gets until the job ends, and its last word."""
    connection = daemon.connection(timeout=120)
    connection.request("GET", "/v1/jobs/%s/log?follow=true" % job)
    text = []
    try:
        for event, data in messages(connection.getresponse()):
            if event == "end":
                return "".join(text), data
            assert event == "log", event
            text.append(data["text"])
    finally:
        connection.close()
    raise AssertionError("the stream ended without a result")


def status_of(pid):
    """{"VmRSS": bytes, "VmHWM": bytes} of a process."""
    out = {}
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("Vm"):
            name, value = line.split(":")
            out[name] = int(value.split()[0]) * 1024
    return out


def shims(daemon):
    out = []
    for pid in daemon.processes():
        try:
            if b"run-shim" in pathlib.Path("/proc/%d/cmdline" % pid).read_bytes():
                out.append(pid)
        except OSError:
            continue
    return out


def growth_limit(megabytes):
    """Sanitizers need a multiple of the memory; there only the order of magnitude is looked at."""
    return megabytes * (1 << 20) * (10 if os.environ.get("ASAN_OPTIONS") or os.environ.get("CLUSTERCTL_SLOW") else 1)


@pytest.fixture
def two(daemon):
    daemon.add("m1", "service-master")
    return daemon


def test_what_is_in_a_log_stays_as_it_is(two):
    """A line of 8 MiB, every byte, no newline at the end: the same bytes come back, live and afterwards."""
    two.double.orders(check=["longline:%d" % (8 << 20), "binary"])
    job = two.submit("check", nodes=["m1"])["id"]
    live, end = followed_log(two, job)
    assert end == {"state": "succeeded", "error": ""}
    raw = raw_log(two, job)
    every_byte = bytes(range(256)) * 16
    assert b"x" * (8 << 20) + b"\n" + every_byte in raw
    assert "x" * (8 << 20) + "\n" in live
    # In JSON there are only characters: what is none is replaced, and everything else is there.
    assert live.replace("\ufffd", "") == raw.decode(errors="replace").replace("\ufffd", "")
    assert followed_log(two, job)[0] == live


def test_a_missing_newline_at_the_end_is_no_missing_line(two):
    two.double.orders(check=["flood:3", "binary", "kill"])
    job = two.submit("check", nodes=["m1"])["id"]
    live, end = followed_log(two, job)
    assert end["state"] == "failed"
    raw = raw_log(two, job)
    assert not raw.endswith(b"\n") and raw.endswith(bytes(range(256)))
    assert live.endswith(raw[-1:].decode(errors="replace"))


def test_events_stay_json_whatever_is_between_them(two):
    two.double.orders(check=["garbage", "longline:%d" % (1 << 20), "binary", "garbage"])
    job = two.submit("check", nodes=["m1"])["id"]
    assert two.wait(job)["state"] == "succeeded"
    lines = two.get("/v1/jobs/%s/events" % job).body.splitlines()
    events = [json.loads(line) for line in lines]
    assert events[-1]["event"] == "stats" and all(event["run"] and event["stage"] == "check" for event in events)


def test_fifty_followers_at_any_moment_get_the_same_whole_text(two):
    two.double.orders(check=["flood:20000", "longline:300000", "gate:first"], site=["flood:5000", "gate:second"])
    texts, failures = [], []

    def follow(job):
        try:
            texts.append(followed_log(two, job))
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    job = two.submit("commission", nodes=["m1"])["id"]
    threads = []

    def more(count):
        for _ in range(count):
            threads.append(threading.Thread(target=follow, args=(job,)))
            threads[-1].start()
    more(12)
    two.double.wait_gate("first")
    more(12)
    two.double.open_gate("first")
    more(8)
    two.double.wait_gate("second")
    more(10)
    two.double.open_gate("second")
    two.wait(job, "succeeded")
    more(8)
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert not failures, failures[0]
    raw = raw_log(two, job).decode()
    assert len(texts) == 50
    assert all(end == {"state": "succeeded", "error": ""} for _, end in texts)
    assert all(text == raw for text, _ in texts)
    assert raw.count("line 20000\n") == 1 and raw.count("line 5000\n") == 2 and "x" * 300000 in raw


def test_two_hundred_thousand_lines_cost_seconds_and_no_memory(two, capsys):
    """Output and events, 200,000 of each: growth of the daemon and size of the shim, and how long it took."""
    two.double.orders(check=["flood:200000", "events:200000", "gate:end"])
    before = status_of(two.process.pid)["VmRSS"]
    begin = time.monotonic()
    job = two.submit("check", nodes=["m1"])["id"]
    wait_for((two.double.directory / "end.waiting").exists, "200,000 lines", 180)
    took = time.monotonic() - begin
    shim = max(status_of(pid)["VmHWM"] for pid in shims(two))
    two.double.open_gate("end")
    two.wait(job, "succeeded", 120)
    lines = raw_log(two, job).count(b"\n")
    begin, rounds = time.monotonic(), 1
    longest = 0.0
    while True:
        asked = time.monotonic()
        timeline = two.get("/v1/jobs/%s/timeline" % job).ok()
        longest = max(longest, time.monotonic() - asked)
        if timeline["complete"]:
            break
        rounds += 1
        assert rounds < 100
    whole = time.monotonic() - begin
    grown = status_of(two.process.pid)["VmRSS"] - before
    with capsys.disabled():
        print("\n200,000 lines and as many events: %.1f s; the daemon grew by %.1f MiB, the shim is %.1f MiB; timeline of them: %.2f s in "
              "%d answers, the longest %.2f s" % (took, grown / (1 << 20), shim / (1 << 20), whole, rounds, longest))
    assert lines >= 200000
    assert timeline["stages"][0]["events"] >= 200000
    assert grown < growth_limit(100) and shim < growth_limit(100)
    assert took < 120


def test_a_full_log_folder_does_not_change_the_result(stopped):
    """The folder of the runs is a file system of 1 MiB, the playbook prints 10 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    runs = stopped.state_dir / "runs"
    runs.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", str(runs)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here: " + mounted.stderr.strip())
    try:
        stopped.start()
        stopped.add("m1", "service-master")
        stopped.double.orders(site="longline:%d" % (10 << 20))
        job = stopped.wait(stopped.submit("commission", nodes=["m1"])["id"], "succeeded")
        assert stopped.lifecycle("m1") == "Allocated"
        site = [stage for stage in job["stages"] if stage["name"] == "site"][0]
        log = (runs / site["run"] / "output.log").read_bytes()
        assert b"x" * 100000 in log
        assert log.rstrip().splitlines()[-1].startswith(b"[clusterctl: the log was cut here: ")
        assert stopped.get("/healthz").status == 200
        assert stopped.process.poll() is None
        stopped.stop()
    finally:
        stopped.end()
        subprocess.run(["umount", "-l", str(runs)], check=False)


# ---- how long logs are kept ---------------------------------------------------------------------


def is_expired(daemon, job):
    return daemon.get("/v1/jobs/%s/log" % job).status == 410


def bytes_of_runs(daemon):
    return sum(path.stat().st_size for path in (daemon.state_dir / "runs").rglob("*") if path.is_file())


def test_logs_of_old_jobs_go_and_their_records_stay(stopped):
    stopped.config["logs"] = {"keep_jobs": 2}
    stopped.start()
    stopped.add("m1", "service-master")
    stopped.add("w1", "service-worker")
    stopped.double.orders(check=[{"do": "gate:long", "times": 1}])
    running = stopped.submit("check", nodes=["w1"])["id"]  # the oldest of all, and it still runs
    stopped.double.wait_gate("long")
    jobs = [stopped.wait(stopped.submit("check", nodes=["m1"])["id"], "succeeded") for _ in range(5)]
    for job in jobs[:3]:
        wait_for(lambda job=job: is_expired(stopped, job["id"]), "the log of an old job to go")
        for what in ("log", "events", "timeline", "log?follow=true"):
            problem = stopped.get("/v1/jobs/%s/%s" % (job["id"], what)).problem(410, "log_expired")
            assert job["id"] in problem["detail"] and "logs.keep_jobs" in problem["hint"]
        assert stopped.job(job["id"]) == job, "the record is as it was"
    for job in jobs[3:]:
        assert b"PLAY RECAP" in raw_log(stopped, job["id"])
    assert b"PLAY" in raw_log(stopped, running), "never of a job that runs"
    answer = stopped.cli("job", "logs", jobs[0]["id"])
    assert answer.returncode == 65 and "no longer kept" in answer.stderr
    assert stopped.cli("job", "inspect", jobs[0]["id"]).returncode == 0
    stopped.double.open_gate("long")
    stopped.wait(running, "succeeded")
    stopped.restart()
    assert all(is_expired(stopped, job["id"]) for job in jobs[:3])
    assert stopped.job(jobs[0]["id"])["state"] == "succeeded"
    assert b"PLAY RECAP" in raw_log(stopped, running)


def test_logs_of_ended_jobs_are_bounded_in_bytes(stopped):
    stopped.config["logs"] = {"max_bytes": 1 << 20}
    stopped.start()
    stopped.add("m1", "service-master")
    stopped.double.orders(check="longline:400000")
    jobs = [stopped.wait(stopped.submit("check", nodes=["m1"])["id"], "succeeded")["id"] for _ in range(6)]
    wait_for(lambda: bytes_of_runs(stopped) <= 1 << 20, "the space to be given back")
    kept = [not is_expired(stopped, job) for job in jobs]
    assert kept == sorted(kept) and kept[-1] and kept[-2] and not kept[0], "the oldest go first: %s" % kept
    assert not list((stopped.state_dir / "runs").glob(".dropped-*"))
    assert len(stopped.get("/v1/jobs").ok()["jobs"]) == 6
    assert {job["state"] for job in stopped.get("/v1/jobs").ok()["jobs"]} <= set(FINAL)


@pytest.mark.parametrize("key, value, word", [("keep_jobs", 0, "keep_jobs"), ("keep_days", -1, "keep_days"), ("max_bytes", 10, "bytes"),
                                              ("keep_job", 5, "keep_jobs")])
def test_mistakes_in_the_limits_are_named(stopped, key, value, word):
    stopped.config["logs"] = {key: value}
    _, told = stopped.fails_to_start()
    assert word in told
