"""Who may ask."""

import os
import stat

import pytest
import yaml

from harness import TOP


def test_the_socket_is_for_its_group_only(daemon):
    assert stat.S_IMODE(os.stat(daemon.socket).st_mode) == 0o660


def test_the_token_file_is_made_at_first_start_and_kept(daemon):
    path = daemon.directory / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = daemon.token()
    assert len(token) >= 32 and token not in daemon.log()
    daemon.restart()
    assert daemon.token() == token


def test_tcp_needs_the_token(daemon):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic " + daemon.token()}, {"Authorization": daemon.token()},
                    {"Authorization": "Bearer "}, {"Authorization": "Bearer " + daemon.token()[:-1]}):
        daemon.get("/v1/nodes", headers=headers, via="tcp").problem(401)
    good = {"Authorization": "Bearer " + daemon.token()}
    assert daemon.get("/v1/nodes", headers=good, via="tcp").ok() == {"nodes": []}


def test_a_name_that_is_not_the_daemons_is_refused(daemon):
    headers = {"Authorization": "Bearer " + daemon.token(), "Host": "evil.example"}
    daemon.get("/v1/nodes", headers=headers, via="tcp").problem(403)


def test_a_page_of_another_site_is_refused(daemon):
    headers = {"Authorization": "Bearer " + daemon.token(), "Origin": "http://evil.example"}
    daemon.get("/v1/nodes", headers=headers, via="tcp").problem(403)


@pytest.mark.parametrize("raw", [
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b\r\nContent-Type: application/json\r\n\r\n",
    b"GET  /healthz\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: localhost\nX: y\n\n"])
def test_ambiguous_requests_are_refused_and_the_daemon_lives(daemon, raw):
    connection = daemon.connection()
    connection.connect()
    connection.sock.sendall(raw)
    first = connection.sock.recv(4096)
    assert not first or first.startswith(b"HTTP/1.1 4"), first
    connection.close()
    assert daemon.get("/healthz").status == 200


def test_the_example_configuration_has_no_unknown_key(stopped):
    example = yaml.safe_load((TOP / "packaging/clusterctl.yml").read_text())
    example["listen"] = stopped.config["listen"]
    example["state_dir"] = str(stopped.state_dir)
    example["ansible"] = dict(example["ansible"], **stopped.config["ansible"])
    example["ssh"] = dict(example["ssh"], **stopped.config["ssh"])
    example["auth"] = dict(example["auth"], **stopped.config["auth"])
    stopped.config = example
    stopped.start()
