"""--watch: lists that show themselves again; and what a narrow, a plain and no terminal change."""

import json
import re
import signal
import subprocess
import threading
import time

import pytest

from harness import BINARY, wait_for
from terminal import InTerminal


@pytest.fixture
def shown(daemon):
    """shown("node", "ls", columns=80): that command in a terminal."""
    made = []

    def start(*arguments, env=None, **options):
        made.append(InTerminal([str(BINARY), *arguments], {**daemon.environment(), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket, **(env or {})}, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


class Piped:
    """That command with its output in a pipe, line by line."""

    def __init__(self, daemon, *arguments):
        self.process = subprocess.Popen([str(BINARY), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**daemon.environment(), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket}, start_new_session=True)
        self.lines, self.notes = [], []
        self.readers = [threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")), daemon=True),
                        threading.Thread(target=lambda: self.notes.extend(iter(self.process.stderr.readline, "")), daemon=True)]
        for reader in self.readers:
            reader.start()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=30)
        for reader in self.readers:
            reader.join(30)
        return code, "".join(self.notes)


@pytest.fixture
def piped(daemon):
    made = []

    def start(*arguments):
        made.append(Piped(daemon, *arguments))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


def screen(said):
    """The last picture: what follows the last jump to the corner."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.split("\x1b[H")[-1]).replace("\r", "")


def test_a_list_is_redrawn_when_something_happens_until_ctrl_c(daemon, shown):
    daemon.add("n1")
    watching = shown("node", "ls", "--watch")
    watching.wait_for(lambda said: "watching; Ctrl-C ends it" in said, "the first picture")
    daemon.add("n2")
    watching.wait_for(lambda said: "n2" in screen(said) and "watching" in screen(said), "the second picture")
    assert len(screen(watching.said).strip().splitlines()) == 4  # header, two nodes, footer
    pictures = watching.said.count("\x1b[H")
    watching.read(2.5)
    assert watching.said.count("\x1b[H") == pictures, "it was redrawn although nothing had happened"
    watching.press("\x03")
    assert watching.end() == 130


@pytest.mark.parametrize("command", (["job", "ls"], ["status"]), ids=["jobs", "status"])
def test_jobs_and_status_are_watched_too(fleet, shown, command):
    fleet.double.orders(check="gate:go")
    watching = shown(*command, "-w", columns=150)
    watching.wait_for(lambda said: "watching" in said, "the first picture")
    job = fleet.submit("check", nodes=["w1"])["id"]
    fleet.double.wait_gate("go")
    watching.wait_for(lambda said: "running" in screen(said) and job in screen(said), "the running job")
    fleet.double.open_gate("go")
    fleet.wait(job, "succeeded")
    watching.wait_for(lambda said: "running" not in screen(said) and "watching" in screen(said), "its end")
    watching.press("\x03")
    assert watching.end() == 130


def test_without_a_terminal_it_is_printed_again(daemon, piped):
    daemon.add("n1")
    watching = piped("node", "ls", "--watch", "-q")
    wait_for(lambda: watching.lines == ["n1\n"], "the first list")
    daemon.add("n2")
    wait_for(lambda: watching.lines == ["n1\n", "\n", "n1\n", "n2\n"], "the second list")
    daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"a": "b"}}}).ok()  # an event that this list does not show
    daemon.add("n3")
    wait_for(lambda: watching.lines[4:] == ["\n", "n1\n", "n2\n", "n3\n"], "the third list")
    assert watching.end() == (130, "")


def test_documents_come_one_a_line_and_not_more_often_than_once_a_second(daemon, piped):
    """A storm of events is no storm of questions."""
    daemon.add("n1")
    watching = piped("node", "ls", "--watch", "-o", "json")
    wait_for(lambda: watching.lines, "the first document")
    begin = time.monotonic()
    for i in range(300):
        daemon.send("PATCH", "/v1/nodes/n1", {"spec": {"labels": {"a": str(i)}}}).ok()
    wait_for(lambda: json.loads(watching.lines[-1])[0]["spec"]["labels"].get("a") == "299", "the last change")
    assert len(watching.lines) <= 2 + (time.monotonic() - begin), "it was asked more than once a second"
    assert watching.end()[0] == 130


def test_a_restart_of_the_daemon_is_a_pause(daemon, piped):
    daemon.add("n1")
    watching = piped("node", "ls", "--watch", "-o", "name")
    wait_for(lambda: watching.lines, "the first list")
    daemon.stop()
    wait_for(lambda: watching.notes, "the loss to be noticed")
    assert watching.process.poll() is None
    daemon.start()
    daemon.add("n2")
    wait_for(lambda: watching.lines[-2:] == ["n1\n", "n2\n"], "the list after the restart")
    code, said = watching.end()
    assert code == 130 and said == "connection lost, reconnecting\n"


def test_what_is_wrong_ends_it_before_it_begins(daemon):
    for arguments, code in ((["node", "ls", "--watch", "--filter", "x"], 64), (["job", "ls", "--watch", "--node", "nobody"], 65)):
        assert daemon.cli(*arguments).returncode == code
    assert daemon.cli("status", "--watch", env={"CLUSTERCTL_SERVER": "unix:/nonexistent.sock"}).returncode == 69


def test_more_nodes_than_lines(daemon, shown):
    for i in range(20):
        daemon.add("node%02d" % i)
    watching = shown("node", "ls", "--watch", columns=40, lines=10)
    watching.wait_for(lambda said: "watching" in said, "the picture")
    lines = screen(watching.said).rstrip("\n").split("\n")
    assert len(lines) == 9 and "… 14 more lines" in lines[-2] and all(len(line) <= 39 for line in lines), lines


# ---- terminals ----

def rows_are_whole(text, width, rows):
    lines = text.splitlines()
    assert len(lines) == rows, text
    assert all(len(line) <= width for line in lines), [line for line in lines if len(line) > width]


def test_a_narrow_terminal_cuts_and_never_breaks_a_table(daemon, shown):
    for i in range(3):
        daemon.add("a-node-with-quite-a-long-name-%d" % i, "service-worker", labels={"rack": "r%d" % i})
    for columns in (200, 120, 80, 60, 40, 20, 10, 1):
        narrow = shown("node", "ls", columns=columns)
        assert narrow.end() == 0
        rows_are_whole(narrow.said.replace("\r", ""), columns, 4)
    # Somebody who says how wide it shall be is believed without a terminal too.
    rows_are_whole(daemon.cli("node", "ls", env={"COLUMNS": "50"}).stdout, 50, 4)
    whole = daemon.cli("node", "ls").stdout
    assert "…" not in whole and whole == daemon.cli("node", "ls", env={"COLUMNS": "nonsense"}).stdout
    assert "…" not in daemon.cli("node", "ls", "-o", "wide", env={"COLUMNS": "50"}).stdout


def test_colours_only_where_they_are_wanted(daemon, shown):
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
        refused = shown("node", "inspect", "nobody", env=env)
        assert refused.end() == 65
        assert ("\x1b[" in refused.said) == coloured, (env, refused.said)
    off = shown("--no-color", "node", "inspect", "nobody")
    assert off.end() == 65 and "\x1b[" not in off.said
    assert "\x1b" not in daemon.cli("node", "inspect", "nobody").stderr


def test_no_terminal_never_asks(fleet):
    for command in (["node", "commission", "-g", "service-master"], ["job", "retry", "last"], ["apply", "--to-revision", "1"]):
        refused = fleet.cli(*command)
        assert refused.returncode in (64, 65), command
    assert fleet.get("/v1/jobs").ok()["jobs"] == []


@pytest.mark.parametrize("arguments", [["node", "ls", "-w"], ["events", "-f"], ["job", "logs", "-f"], ["status", "-w"]])
def test_who_cannot_write_ends(daemon, arguments):
    """Neither a full disk nor a reader that has gone away lets it run on."""
    daemon.add("n1")
    job = daemon.submit("check", nodes=["n1"])
    daemon.wait(job["id"], "succeeded")
    if arguments[0] == "job":
        daemon.double.orders(check="gate:go")
        arguments = [*arguments, daemon.submit("check", nodes=["n1"])["id"]]
        daemon.double.wait_gate("go")
    environment = {**daemon.environment(), "CLUSTERCTL_SERVER": "unix:%s" % daemon.socket}
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(BINARY), *arguments], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=30)
    assert done.returncode == 74 and "No space left" in done.stderr, done
    process = subprocess.Popen([str(BINARY), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdout.read(1)
    process.stdout.close()
    assert process.wait(timeout=30) in (0, -signal.SIGPIPE)
