"""Many followers and many idle connections: no thread for any of them, and nobody waits for a slow one."""

import contextlib
import json
import os
import pathlib
import resource
import selectors
import socket
import time

import pytest

from harness import wait_for

MANY = 1000
THREADS = 20  # of the whole daemon


@pytest.fixture(autouse=True)
def descriptors():
    """This process holds the other end of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3 * MANY:
        pytest.skip("only %d file descriptors" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def status_of(daemon, name):
    text = pathlib.Path("/proc/%d/status" % daemon.process.pid).read_text()
    return int(text.split(name + ":")[1].split()[0])


def cpu_seconds(daemon):
    fields = pathlib.Path("/proc/%d/stat" % daemon.process.pid).read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    def __init__(self, daemon, request):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wait_for(lambda: self.connect(daemon), "a connection")
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % request).encode())
        self.socket.setblocking(False)
        self.got = bytearray()

    def connect(self, daemon):
        try:
            self.socket.connect(str(daemon.socket))
            return True
        except BlockingIOError:  # the queue of the listener is full for a moment
            return False


class Crowd:
    """Clients that are read together; `until` waits until each has received a text."""

    def __init__(self, daemon, request, number):
        self.selector = selectors.DefaultSelector()
        self.clients = []
        for _ in range(number):
            self.clients.append(Client(daemon, request))
            self.selector.register(self.clients[-1].socket, selectors.EVENT_READ, self.clients[-1])
            self.read(0)

    def read(self, seconds):
        """Those that received something."""
        active = []
        for key, _ in self.selector.select(seconds):
            client = key.data
            piece = client.socket.recv(1 << 18)
            if not piece:
                assert client.got.endswith(b"0\r\n\r\n"), "the daemon closed a connection: %r" % client.got[-300:]
                self.selector.unregister(client.socket)
            client.got += piece
            active.append(client)
        return active

    def until(self, text, seconds=60):
        left = {c for c in self.clients if text not in c.got}
        end = time.monotonic() + seconds
        while left:
            assert time.monotonic() < end, "%d of %d did not get %r" % (len(left), len(self.clients), text)
            left -= {c for c in self.read(1) if text in c.got}

    def forget(self):
        for client in self.clients:
            client.got.clear()

    def close(self):
        for client in self.clients:
            client.socket.close()
        self.selector.close()


def test_a_thousand_idle_connections_and_a_thousand_followers(daemon):
    daemon.add("n0")
    before = status_of(daemon, "VmRSS")
    with contextlib.closing(Crowd(daemon, "/healthz", MANY)) as idle, \
            contextlib.closing(Crowd(daemon, "/v1/events?follow=true", MANY)) as followers:
        idle.until(b"ok\n")
        followers.until(b'"node.added"')
        assert status_of(daemon, "Threads") < THREADS
        grown = status_of(daemon, "VmRSS") - before
        assert grown < 64 << 10, "%d KiB for %d connections" % (grown, 2 * MANY)

        followers.forget()
        daemon.add("n1")
        followers.until(b'"node":"n1"')
        assert all(c.got.count(b"event: event") == 1 for c in followers.clients)
        assert status_of(daemon, "Threads") < THREADS

        # The connections that were idle are still good for a request.
        idle.forget()
        for client in idle.clients:
            client.socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        idle.until(b"ok\n")

        # Nothing happens: nothing is done.
        begin, spent = time.monotonic(), cpu_seconds(daemon)
        followers.read(2)
        assert cpu_seconds(daemon) - spent < 0.25 * (time.monotonic() - begin)


def seqs(client):
    return [int(line[4:]) for line in bytes(client.got).split(b"\n") if line.startswith(b"id: ")]


def text_of(client):
    """The log that a follower was sent."""
    body = bytes(client.got).partition(b"\r\n\r\n")[2]
    return "".join(json.loads(line[6:])["text"] for line in body.split(b"\n") if line.startswith(b'data: {"run"'))


def test_followers_that_never_read_delay_neither_a_job_nor_the_others(daemon):
    lines = 25000  # more than what the sockets of the slow ones hold
    daemon.double.orders(site=["gate:go", "flood:%d" % lines])
    daemon.add("m1", "service-master")
    job = daemon.submit("commission", nodes=["m1"])
    daemon.double.wait_gate("go")
    path = "/v1/jobs/%s/log?follow=true" % job["id"]
    with contextlib.closing(Crowd(daemon, path, 20)) as slow, contextlib.closing(Crowd(daemon, path, MANY - 20)) as followers:
        before = status_of(daemon, "VmRSS")
        daemon.double.open_gate("go")
        followers.until(b"event: end")
        grown = status_of(daemon, "VmRSS") - before
        assert grown < 64 << 10, "%d KiB" % grown
        assert daemon.job(job["id"])["state"] == "succeeded"
        expected = text_of(followers.clients[0])
        assert "line 1\n" in expected and "line %d\n" % lines in expected
        slow.until(b"event: end")  # those that read at last have missed nothing
        assert all(text_of(client) == expected for client in slow.clients + followers.clients[1:50])


def test_event_followers_that_never_read_delay_neither_the_others_nor_a_job(fleet):
    slow = Crowd(fleet, "/v1/events?follow=true", 10)
    with contextlib.closing(slow), contextlib.closing(Crowd(fleet, "/v1/events?follow=true", 90)) as followers:
        followers.until(b'"m1"')
        before = status_of(fleet, "VmRSS")
        # More than the sockets of the slow ones hold: each small message takes about a kilobyte of their 200.
        for i in range(300):
            fleet.send("PATCH", "/v1/nodes/w1", {"spec": {"labels": {"t": str(i)}}}).ok()
            followers.read(0)
        job = fleet.commission("m1", "m2", "m3")
        followers.until(("\"job\":\"%s\"" % job["id"]).encode())
        followers.until(b'"type":"job.ended"')
        grown = status_of(fleet, "VmRSS") - before
        assert grown < 100 << 10, grown
        # Nothing twice and nothing missing, also for those that read at last.
        slow.until(b'"type":"job.ended"')
        for client in followers.clients + slow.clients:
            assert seqs(client) == list(range(1, len(seqs(client)) + 1)) and len(seqs(client)) > 300


@pytest.mark.parametrize("what, mark", [("log", b"line 3000\\n"), ("events", b'"event":"stats"')])
def test_a_thousand_followers_of_one_job(daemon, what, mark):
    daemon.double.orders(site=["flood:3000", "gate:go"])
    daemon.add("m1", "service-master")
    job = daemon.submit("commission", nodes=["m1"])
    daemon.double.wait_gate("go")
    with contextlib.closing(Crowd(daemon, "/v1/jobs/%s/%s?follow=true" % (job["id"], what), MANY)) as followers:
        followers.until(b"HTTP/1.1 200")
        wait_for(lambda: not followers.read(0.3), "everything there is so far")
        assert status_of(daemon, "Threads") < THREADS
        # The job stands still: the files are looked at once for all, and nothing is read.
        begin, spent = time.monotonic(), cpu_seconds(daemon)
        followers.read(2)
        time.sleep(max(0, begin + 2 - time.monotonic()))
        assert cpu_seconds(daemon) - spent < 0.25 * (time.monotonic() - begin)
        daemon.double.open_gate("go")
        followers.until(b"event: end")
        texts = {bytes(c.got).partition(b"\r\n\r\n")[2] for c in followers.clients}
        assert all(mark in text for text in texts)
    daemon.wait(job["id"], "succeeded")


@pytest.mark.full
def test_an_overtaken_follower_is_told_of_the_gap(daemon):
    """Ten thousand events are kept."""
    daemon.add("n0")
    for i in range(10_050):
        daemon.send("PATCH", "/v1/nodes/n0", {"spec": {"labels": {"t": str(i)}}}).ok()
    with contextlib.closing(Crowd(daemon, "/v1/events?follow=true&since=1", 1)) as follower:
        follower.until(b"event: event")
        head = bytes(follower.clients[0].got).split(b"\r\n\r\n", 1)[1].split(b"\n")
        at = head.index(b"event: gap")
        gap = json.loads(head[at + 1][len("data: "):])
        assert gap["from"] == 2 and head[at - 1] == b"id: %d" % gap["to"]
        follower.until(b"id: %d\n" % (gap["to"] + 1))

