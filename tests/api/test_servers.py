"""A server that is down, slow, of another version, or no daemon at all: one clear line, the right exit code. Several servers, contexts."""

import json
import socket
import stat
import threading
import time

import pytest
import yaml


class Fake:
    """A server on a free port that does `behave(connection, request head)` with each connection."""

    def __init__(self, behave):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(50)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked = []
        self.behave = behave
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.asked.append(head.decode(errors="replace").split("\r\n")[0])
            self.behave(connection, head.decode(errors="replace"))
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for connection in self.open:
            connection.close()


@pytest.fixture
def fake():
    made = []

    def make(behave):
        made.append(Fake(behave))
        return made[-1]

    yield make
    for one in made:
        one.close()


def answer(connection, body, status="200 OK", kind="application/json"):
    body = body.encode()
    connection.sendall(b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        status.encode(), kind.encode(), len(body), body))
    connection.close()


def stall_at_once(connection, head):
    pass


def stall_in_the_head(connection, head):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")


def stall_in_the_body(connection, head):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"nodes\": [")


def drip(connection, head):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b" ")
        time.sleep(0.1)


def close_at_once(connection, head):
    connection.close()


def close_in_the_body(connection, head):
    stall_in_the_body(connection, head)
    connection.close()


def no_http(connection, head):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    connection.close()


def web_page(connection, head):
    answer(connection, "<html><body>It works!</body></html>", kind="text/html")


def web_page_not_found(connection, head):
    answer(connection, "<html><body>404</body></html>", status="404 Not Found", kind="text/html")


def broken_json(connection, head):
    answer(connection, '{"nodes": [')


def a_list(connection, head):
    answer(connection, "[]")


def gateway(connection, head):
    answer(connection, "<html>502</html>", status="502 Bad Gateway", kind="text/html")


TROUBLE = [  # behaviour, exit code, what the one line says
    (stall_at_once, 69, "does not answer"),
    (stall_in_the_head, 69, "stopped in the middle of its answer"),
    (stall_in_the_body, 69, "stopped in the middle of its answer"),
    (drip, 69, "stopped in the middle of its answer"),
    (close_at_once, 69, "closed the connection"),
    (close_in_the_body, 69, "closed the connection in the middle of its answer"),
    (no_http, 69, "no HTTP"),
    (web_page, 70, "is not what clusterctl serve says"),
    (web_page_not_found, 65, "not found"),
    (broken_json, 70, "not valid JSON"),
    (a_list, 70, "is not what clusterctl serve says"),
    (gateway, 69, "not ready"),
]


@pytest.mark.parametrize("behave,code,words", TROUBLE, ids=[t[0].__name__ for t in TROUBLE])
def test_a_server_in_trouble_is_one_clear_line(stopped, fake, behave, code, words):
    server = fake(behave)
    for command in (["node", "ls"], ["status"]):
        done = stopped.cli("--server", server.url, "--request-timeout", "1", *command)
        lines = done.stderr.splitlines()
        assert done.returncode == code and done.stdout == "", done
        assert lines[0].startswith("error: ") and words in lines[0] and len(lines) <= 2, done.stderr
        assert server.url in done.stderr or behave is gateway, done.stderr


def test_a_server_that_is_down(stopped):
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    address = "http://127.0.0.1:%d" % free.getsockname()[1]
    begin = time.monotonic()
    done = stopped.cli("--server", address, "node", "ls")
    assert done.returncode == 69 and time.monotonic() - begin < 5
    assert done.stderr.splitlines()[0] == "error: no daemon answers at %s: Connection refused" % address
    assert len(done.stderr.splitlines()) == 2
    free.close()


def test_a_request_that_changes_something_is_not_sent_to_the_next_server(stopped, fake, daemon):
    silent = fake(stall_at_once)
    done = stopped.cli("--server", "%s,unix:%s" % (silent.url, daemon.socket), "--request-timeout", "1", "node", "add", "n1", "--addr", "192.0.2.9")
    assert done.returncode == 69 and "does not answer" in done.stderr
    assert daemon.get("/v1/nodes").ok()["nodes"] == []


def test_the_first_server_that_answers_is_asked(daemon, fake):
    silent = fake(stall_at_once)
    daemon.add("n1")
    for servers in (["--server", "unix:/nonexistent.sock", "--server", "unix:%s" % daemon.socket],
                    ["--server", "unix:/nonexistent.sock,unix:%s" % daemon.socket],
                    ["--server", silent.url, "--server", "unix:%s" % daemon.socket, "--request-timeout", "1"]):
        done = daemon.cli(*servers, "node", "ls", "-q")
        assert (done.returncode, done.stdout) == (0, "n1\n"), done


def test_when_no_server_answers_each_is_named(stopped, fake):
    server = fake(close_at_once)
    done = stopped.cli("--server", "unix:/nonexistent.sock", "--server", server.url, "node", "ls")
    assert done.returncode == 69
    first = done.stderr.splitlines()[0]
    assert "unix:/nonexistent.sock: No such file" in first and server.url + " closed the connection" in first, done.stderr


def other_version(version, api, routes=None):
    def behave(connection, head):
        path = head.split(" ")[1].split("?")[0]
        if path == "/v1/version":
            return answer(connection, json.dumps({"version": version, "api": api, "ansible": "9", "playbooks": "x", "colour": "blue"}))
        if routes and path in routes:
            return answer(connection, json.dumps(routes[path]))
        answer(connection, json.dumps({"status": 404, "title": "Not Found", "detail": "there is no such route", "code": "no_route",
                                       "hint": "GET /openapi.json lists all routes"}), status="404 Not Found", kind="application/problem+json")
    return behave


def test_a_daemon_of_another_version_that_has_no_such_route(stopped, fake):
    server = fake(other_version("9.9.9", 2))
    done = stopped.cli("--server", server.url, "manager", "ls")
    lines = done.stderr.splitlines()
    assert done.returncode == 65 and len(lines) == 2 and "no such route" in lines[0]
    assert "this program is" in lines[1] and "the daemon 9.9.9 (API 2)" in lines[1], done.stderr


def test_version_warns_of_another_version_and_still_works(stopped, fake):
    server = fake(other_version("9.9.9", 2))
    done = stopped.cli("--server", server.url, "version")
    assert done.returncode == 0 and "9.9.9" in done.stdout and "warning: this program speaks API 1, the daemon 2" in done.stderr


def test_fields_of_a_newer_daemon_are_not_minded(stopped, fake):
    node = {"id": "abcdefghijkl", "name": "n1", "role": "worker", "mood": "fine", "spec": {"addr": "192.0.2.1", "colour": "blue"},
            "status": {"lifecycle": "Hibernating", "presence": "Elsewhere", "services": {"new": {"healthy": "maybe"}}, "conditions": [{"kind": 1}, 5]}}
    server = fake(other_version("9.9.9", 1, {"/v1/nodes": {"nodes": [node], "sum": 1}}))
    done = stopped.cli("--server", server.url, "node", "ls")
    assert done.returncode == 0 and "Hibernating" in done.stdout and done.stderr == ""


# ---- contexts ----

def contexts_file(daemon):
    return daemon.directory / ".config/clusterctl/config.yml"


def alone(daemon, *arguments, **env):
    """Without CLUSTERCTL_SERVER, so that the context counts."""
    return daemon.cli(*arguments, env={"CLUSTERCTL_SERVER": "", **env})


def test_a_context_names_server_and_token(daemon):
    daemon.add("n1")
    made = alone(daemon, "context", "set", "tcp", "--server", "http://127.0.0.1:%d" % daemon.port, "--token-file", str(daemon.directory / "token"))
    assert made.returncode == 0, made
    assert stat.S_IMODE(contexts_file(daemon).stat().st_mode) == 0o600
    assert stat.S_IMODE(contexts_file(daemon).parent.stat().st_mode) == 0o700
    assert alone(daemon, "--context", "tcp", "node", "ls", "-q").stdout == "n1\n"
    assert alone(daemon, "node", "ls", CLUSTERCTL_CONTEXT="tcp").returncode == 0
    assert alone(daemon, "node", "ls").returncode == 69  # none is in use
    assert alone(daemon, "context", "use", "tcp").returncode == 0
    assert alone(daemon, "node", "ls", "-q").stdout == "n1\n"
    assert [c["name"] for c in json.loads(alone(daemon, "context", "ls", "-o", "json").stdout) if c["current"]] == ["tcp"]
    assert alone(daemon, "context", "rm", "tcp").returncode == 0
    assert alone(daemon, "node", "ls").returncode == 69


def test_flag_goes_before_environment_before_context(daemon):
    """One that answers and two that do not: which was asked shows in what happens."""
    here, nowhere = "unix:%s" % daemon.socket, "unix:/nonexistent.sock"
    assert alone(daemon, "context", "set", "good", "--server", here).returncode == 0
    assert alone(daemon, "context", "set", "bad", "--server", nowhere, "--use").returncode == 0
    asked = [
        ([], {}, 69),                                                       # the current context
        ([], {"CLUSTERCTL_CONTEXT": "good"}, 0),                            # environment over the current one
        ([], {"CLUSTERCTL_SERVER": here}, 0),                               # a server of the environment over any context
        ([], {"CLUSTERCTL_SERVER": nowhere, "CLUSTERCTL_CONTEXT": "good"}, 69),
        (["--context", "good"], {"CLUSTERCTL_SERVER": nowhere}, 0),         # the flag over both
        (["--server", here], {"CLUSTERCTL_SERVER": nowhere, "CLUSTERCTL_CONTEXT": "bad"}, 0),
        (["--server", here, "--context", "good"], {}, 64),                  # not both
        (["--context", "nobody"], {}, 65),
    ]
    for flags, env, code in asked:
        done = daemon.cli(*flags, "node", "ls", env={"CLUSTERCTL_SERVER": "", **env})
        assert done.returncode == code, (flags, env, done)


def test_the_token_of_a_context_goes_to_its_own_servers_only(daemon, fake):
    seen = []

    def look(connection, head):
        seen.append(head)
        answer(connection, '{"nodes": []}')

    server = fake(look)
    token = str(daemon.directory / "token")
    assert alone(daemon, "context", "set", "mine", "--server", server.url, "--token-file", token, "--use").returncode == 0
    assert alone(daemon, "node", "ls").returncode == 0 and "Authorization: Bearer " + daemon.token() in seen[-1]
    assert alone(daemon, "node", "ls", "--server", server.url).returncode == 0 and "Authorization" not in seen[-1]
    assert daemon.cli("node", "ls", env={"CLUSTERCTL_SERVER": server.url}).returncode == 0 and "Authorization" not in seen[-1]


BROKEN = {
    "contexts: {a: {servers: [unix:/x], tokenfile: /t}}": "token_file",
    "context: {}": "did you mean contexts?",
    "contexts: {a: {servers: unix:/x}}": "must be a list",
    "contexts: {a: {servers: []}}": "needs a server",
    "contexts: {a: {servers: [ftp://x]}}": "no server address",
    "contexts: {a: {servers: [unix:/x], ca_fingerprint: XYZ}}": "64 hexadecimal digits",
    "contexts: {a: {servers: [unix:/x], token_file: t}}": "absolute path",
    "contexts: {a: {servers: [unix:/x]}, a: {servers: [unix:/y]}}": "twice",
    "current: b\ncontexts: {a: {servers: [unix:/x]}}": "no context of this file",
    "contexts: {'a b': {servers: [unix:/x]}}": "no name of a context",
    "- a": "expected the keys",
    "contexts: [": "config.yml",
}


@pytest.mark.parametrize("text", BROKEN, ids=[str(i) for i in range(len(BROKEN))])
def test_a_contexts_file_is_read_strictly(stopped, text):
    file = contexts_file(stopped)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    for command in (["node", "ls"], ["context", "ls"], ["context", "use", "a"]):
        done = alone(stopped, *command)
        assert done.returncode in (64, 65) and BROKEN[text] in done.stderr and len(done.stderr.splitlines()) <= 2, done
    assert file.read_text() == text
    # Who names the server does not need it.
    assert stopped.cli("node", "ls", env={"CLUSTERCTL_SERVER": "unix:/nonexistent.sock"}).returncode == 69


def test_a_contexts_file_that_others_may_read_or_write_is_refused(stopped):
    file = contexts_file(stopped)
    file.parent.mkdir(parents=True)
    file.write_text("contexts: {a: {servers: [unix:/x]}}")
    for mode in (0o644, 0o660, 0o602):
        file.chmod(mode)
        done = alone(stopped, "node", "ls")
        assert done.returncode == 64 and "not yours alone" in done.stderr and "chmod 600" in done.stderr


def test_xdg_config_home_and_no_home_at_all(stopped):
    elsewhere = stopped.directory / "xdg"
    assert stopped.cli("context", "set", "a", "--server", "unix:/x", env={"XDG_CONFIG_HOME": str(elsewhere)}).returncode == 0
    assert yaml.safe_load((elsewhere / "clusterctl/config.yml").read_text()) == {"contexts": {"a": {"servers": ["unix:/x"]}}}
    done = stopped.cli("context", "set", "a", "--server", "unix:/x", env={"HOME": ""})
    assert done.returncode == 64 and "HOME" in done.stderr


def test_a_bad_request_timeout_is_refused(stopped):
    for flags, env in ((["--request-timeout", "0"], {}), (["--request-timeout", "x"], {}), (["--request-timeout", "99999"], {}),
                       ([], {"CLUSTERCTL_REQUEST_TIMEOUT": "soon"})):
        done = stopped.cli(*flags, "node", "ls", env=env)
        assert done.returncode == 64 and len(done.stderr.splitlines()) <= 2, done


@pytest.mark.parametrize("arguments", [["--server", ""], ["--server", ","], ["--server", " , "], ["--context", ""], ["--token-file", ""]])
def test_an_empty_option_leads_to_no_other_daemon(daemon, arguments):
    daemon.add("n1")
    done = daemon.cli(*arguments, "node", "ls")
    assert done.returncode == 64 and "is empty" in done.stderr and done.stdout == "", done


def test_an_empty_variable_is_as_if_unset(daemon):
    assert daemon.cli("--server", "unix:%s" % daemon.socket, "node", "ls", env={"CLUSTERCTL_SERVER": "", "CLUSTERCTL_TOKEN_FILE": ""}).returncode == 0
    assert daemon.cli("node", "ls", env={"CLUSTERCTL_SERVER": ","}).returncode == 64


JUNK = [b"Content-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>", b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
        b'Content-Type: application/json\r\nContent-Length: 78\r\n\r\n{"nodes":null,"jobs":null,"tokens":null,"events":null,"managers":null,"x":null}', b"Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{]}",
        b"Content-Type: application/json\r\nContent-Length: 78000000\r\n\r\n", b"redirect"]


@pytest.mark.parametrize("number", range(len(JUNK)))
@pytest.mark.parametrize("command", [["node", "ls"], ["job", "ls"], ["job", "logs", "last"], ["cluster", "token", "ls"], ["cluster", "token", "ls", "--join"], ["cluster", "token", "create", "--join"]])
def test_what_no_daemon_says_is_not_believed(daemon, number, command):
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(65536)
                junk = JUNK[number]
                head = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n" if junk == b"redirect" else b"HTTP/1.1 200 OK\r\n"
                try:
                    client.sendall(head + b"Connection: close\r\n" + (b"\r\n" if junk == b"redirect" else junk))
                    if b"78000000" in junk:
                        for _ in range(78):
                            client.sendall(b" " * 1000000)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        done = daemon.cli("--server", "http://127.0.0.1:%d" % listener.getsockname()[1], *command)
    finally:
        ended.set()
        listener.close()
    assert done.returncode == 70 and done.stdout == "", done
    assert "is not what clusterctl serve says" in done.stderr and done.stderr.count("a clusterctl daemon?") == 1 and len(done.stderr.splitlines()) == 2, done.stderr
