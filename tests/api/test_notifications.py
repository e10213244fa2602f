"""What a receiver outside is told: every event once, signed, in order, also over kill -9 of the daemon."""

import hashlib
import hmac
import http.server
import json
import threading

import pytest

from harness import wait_for

SECRET = "correct-horse-battery-staple"


class Receiver:
    """A server that keeps what it is sent and answers as told: a list of statuses, then 204 for ever. With `gate` it keeps its
    answers back until the gate is open."""

    def __init__(self, *answers):
        self.answers, self.got, self.lock = list(answers), [], threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    status = outer.answers.pop(0) if outer.answers else 204
                    outer.got.append({"path": self.path, "headers": dict(self.headers), "body": body, "status": status})
                outer.gate.wait(30)
                try:
                    self.send_response(status)
                    if status == 302:
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the daemon was killed meanwhile

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/hook/token-in-path" % self.server.server_port

    def accepted(self):
        with self.lock:
            return [dict(g, json=json.loads(g["body"])) for g in self.got if 200 <= g["status"] < 300]

    def end(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = []

    def make(*answers):
        made.append(Receiver(*answers))
        return made[-1]

    yield make
    for one in made:
        one.end()


def configure(daemon, receiver, **more):
    secret = daemon.directory / "webhook"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    daemon.config["notifications"] = [dict({"name": "ops", "url": receiver.url, "secret_file": str(secret)}, **more)]
    return daemon


def view(daemon):
    return daemon.get("/v1/notifications").ok()["receivers"][0]


def check_signature(got):
    """As docs/operations.md tells receivers to do it."""
    signed = got["headers"]["Clusterctl-Timestamp"].encode() + b"." + got["body"]
    expected = "v1=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(expected, got["headers"]["Clusterctl-Signature"])


def test_the_end_of_a_job_is_told_although_the_receiver_fails_twice(stopped, receiver):
    hook = receiver(503, 302)
    daemon = configure(stopped, hook).start()
    daemon.add("m1", "service-master")
    job = daemon.commission("m1")
    wait_for(lambda: view(daemon)["state"] == "idle" and len(hook.accepted()) == 2, "both events")

    first, *rest = hook.got
    assert [g["status"] for g in hook.got][:3] == [503, 302, 204]
    assert {g["path"] for g in hook.got} == {"/hook/token-in-path"}  # the redirect was not followed
    for got in hook.got:
        check_signature(got)
    assert [g["headers"]["Clusterctl-Attempt"] for g in hook.got[:3]] == ["1", "2", "3"]
    assert len({g["headers"]["Clusterctl-Delivery"] for g in hook.got[:3]}) == 1

    presence, ended = hook.accepted()
    assert presence["json"]["event"]["type"] == "node.presence" and presence["json"]["node"]["name"] == "m1"
    assert presence["json"]["node"]["presence"] == "Discovered"
    assert ended["headers"]["Clusterctl-Event"] == "job.ended"
    assert ended["json"]["job"]["id"] == job["id"] and ended["json"]["job"]["state"] == "succeeded"
    assert ended["json"]["job"]["nodes"] == {"succeeded": 1}
    assert presence["json"]["event"]["seq"] < ended["json"]["event"]["seq"]

    shown = view(daemon)
    assert shown["delivered"] == 2 and shown["failures"] == 2 and shown["dropped"] == 0 and shown["error"] == ""
    told = daemon.log() + daemon.get("/v1/notifications").body + daemon.get("/v1/status").body
    assert SECRET not in told and "token-in-path" not in told


def test_nothing_is_lost_or_doubled_over_kill_nine(stopped, receiver):
    hook = receiver()
    daemon = configure(stopped, hook, events=["node.added"]).start()
    names = []
    for i in range(30):
        names.append("n%02d" % i)
        daemon.add(names[-1])
        if i == 10:
            # Killed while an answer is on its way: that event is sent again, under the same id.
            wait_for(lambda: len(hook.accepted()) == 11, "the first eleven")
            hook.gate.clear()
        if i == 12:
            wait_for(lambda: len(hook.got) == 12, "one that gets no answer")
            daemon.kill()
            hook.gate.set()
            daemon.start()
    wait_for(lambda: view(daemon)["delivered"] and view(daemon)["state"] == "idle", "everything to be delivered")

    by_id = {}
    for got in hook.accepted():
        by_id.setdefault(got["headers"]["Clusterctl-Delivery"], []).append(got["json"]["event"]["node"])
    assert [sent[0] for sent in by_id.values()] == names  # in order, each under one id
    assert all(len(set(sent)) == 1 for sent in by_id.values())
    assert sum(len(sent) for sent in by_id.values()) == 31  # only the one without an answer came twice


def test_a_receiver_that_is_away_holds_up_neither_jobs_nor_the_end(stopped, receiver):
    hook = receiver()
    daemon = configure(stopped, hook).start()
    hook.gate.clear()
    daemon.add("m1", "service-master")
    daemon.commission("m1")
    wait_for(lambda: view(daemon)["state"] == "sending", "a post under way")
    assert daemon.stop() == 0
    hook.gate.set()
    daemon.start()
    wait_for(lambda: view(daemon)["state"] == "idle" and view(daemon)["pending"] == 0, "the rest")
    assert [g["json"]["event"]["type"] for g in hook.accepted()][-1] == "job.ended"


def test_a_failing_receiver_is_a_problem_of_the_cluster(stopped, receiver):
    hook = receiver(*[500] * 1000)
    daemon = configure(stopped, hook, events=["node.added"]).start()
    daemon.add("n1")
    wait_for(lambda: view(daemon)["failures"] >= 1, "a failure")
    problems = daemon.get("/v1/status").ok()["problems"]
    assert [p["code"] for p in problems] == ["notification_failing"] and "answered 500" in problems[0]["message"]
    assert "notifications to ops" in daemon.cli("status").stdout


@pytest.mark.parametrize("change, expected", [
    ({"evnts": []}, '"events"'), ({"events": ["job.endet"]}, 'did you mean "job.ended"'), ({"url": "ftp://x/"}, "url must begin"),
    ({"url": "https://u:p@x/"}, "must not hold a user"), ({"secret_file": "/nonexistent"}, "cannot be read")])
def test_mistakes_in_the_configuration(stopped, receiver, change, expected):
    code, told = configure(stopped, receiver(), **change).fails_to_start()
    assert expected in told and code in (64, 65, 70)


def test_a_secret_that_others_can_read_is_refused(stopped, receiver):
    daemon = configure(stopped, receiver())
    (daemon.directory / "webhook").chmod(0o644)
    code, told = daemon.fails_to_start()
    assert "can be read or changed by others" in told and SECRET not in told


def test_without_receivers_there_is_an_empty_list(daemon):
    assert daemon.get("/v1/notifications").ok() == {"receivers": []}
