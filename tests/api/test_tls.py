"""The TLS listener: its certificate, whom the command line trusts, and what clients that mean no good get."""

import contextlib
import hashlib
import json
import socket
import ssl
import stat
import subprocess
import threading

import pytest

from harness import wait_for


@pytest.fixture
def secure(stopped):
    stopped.config["listen"]["tls"] = True
    return stopped.start()


def fingerprint(daemon):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(daemon.ca_file.read_text())).hexdigest()


def bearer(daemon):
    return {"Authorization": "Bearer " + daemon.token()}


def remote(daemon, *arguments, server=None, pin=None, env=None):
    """The command line as it is used on another machine."""
    given = {"CLUSTERCTL_SERVER": server or "https://127.0.0.1:%d" % daemon.port, "CLUSTERCTL_TOKEN_FILE": str(daemon.directory / "token")}
    if pin is not False:
        given["CLUSTERCTL_CA_FINGERPRINT"] = pin or fingerprint(daemon)
    return daemon.cli(*arguments, env={**given, **(env or {})})


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def certificate_of(daemon):
    return ssl.get_server_certificate(("127.0.0.1", daemon.port))


def test_authority_and_certificate_are_made_at_first_start_and_kept(secure):
    folder = secure.state_dir / "api-pki"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {"ca.pem": 0o600, "server.pem": 0o600, "ca.crt": 0o644}
    before, shown = fingerprint(secure), certificate_of(secure)
    assert "CA SHA-256 " + before in secure.log() and "https://127.0.0.1:%d" % secure.port in secure.log()
    assert "PRIVATE" not in secure.log()
    assert secure.get("/v1/version").ok()["ca_fingerprint"] == before
    assert before in secure.cli("cluster", "info").stdout
    assert json.loads(secure.cli("cluster", "info", "--json").stdout)["ca_fingerprint"] == before
    secure.restart()
    assert (fingerprint(secure), certificate_of(secure)) == (before, shown)


def test_the_certificate_is_for_all_names_and_follows_them(stopped):
    stopped.config["listen"]["tls"] = True
    stopped.config["auth"]["hosts"] = ["controller.example", "10.9.8.7"]
    daemon = stopped.start()
    before = fingerprint(daemon)
    context = ssl.create_default_context(cafile=str(daemon.ca_file))

    def names(server_name):
        with socket.create_connection(("127.0.0.1", daemon.port)) as plain, context.wrap_socket(plain, server_hostname=server_name) as tls:
            return {value for _, value in tls.getpeercert()["subjectAltName"]}

    expected = {"localhost", "127.0.0.1", "0:0:0:0:0:0:0:1", "controller.example", "10.9.8.7", socket.gethostname().lower()}
    for name in ("localhost", "127.0.0.1", "::1", "controller.example", "10.9.8.7", socket.gethostname().lower()):
        assert names(name) >= expected
    with pytest.raises(ssl.SSLCertVerificationError):
        names("other.example")
    daemon.config["auth"]["hosts"] = ["other.example"]
    daemon.restart()
    assert "other.example" in names("other.example") and "controller.example" not in names("localhost")
    assert fingerprint(daemon) == before


def test_every_address_means_tls_and_every_own_name(stopped):
    stopped.config["listen"]["tcp"] = "0.0.0.0:0"
    daemon = stopped.start()
    assert "listening on https://0.0.0.0:" in daemon.log()
    own = [a for a in subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split() if ":" not in a]
    for host in ["127.0.0.1", *own[:1]]:
        done = remote(daemon, "node", "ls", server="https://%s:%d" % (host, daemon.port))
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("change, words", [
    (lambda c: c["listen"].update({"tcp": "0.0.0.0:0", "tls": False}), ["listen.tls", "loopback"]),
    (lambda c: c["listen"].update({"tls": "yes please"}), ["tls"]),
    (lambda c: c.update({"listen": {"unix": c["listen"]["unix"], "tls": True}}), ["listen.tcp"]),
    (lambda c: c.update({"tls": {"certificate": "/nonexistent/crt"}}), ["tls.key"]),
    (lambda c: c.update({"tls": {"certificate": "/nonexistent/crt", "key": "/nonexistent/key"}}), ["/nonexistent/crt"]),
    (lambda c: c.update({"tls": {"certificate": "crt", "key": "/k"}}), ["absolute"]),
    (lambda c: c.update({"tls": {"ca": "/nonexistent/ca"}}), ["tls.certificate"]),
    (lambda c: c.update({"tls": {"cert": "/x"}}), ["cert", "certificate"])])
def test_mistakes_in_the_configuration(stopped, change, words):
    change(stopped.config)
    _, told = stopped.fails_to_start()
    for word in words:
        assert word in told
    checked = stopped.cli("serve", "--check-config", "--config", str(stopped.config_file))
    assert checked.returncode != 0 and all(word in checked.stderr for word in words), "found without starting, too"


@pytest.mark.parametrize("harm, words", [
    (lambda d: (d / "ca.pem").write_text("x"), ["ca.pem", "backup"]),
    (lambda d: (d / "ca.pem").unlink(), ["ca.pem", "backup"]),
    (lambda d: (d / "ca.pem").chmod(0o640), ["ca.pem", "chmod 600"]),
    (lambda d: (d / "server.pem").write_text("x"), ["server.pem", "remove"]),
    (lambda d: (d / "server.pem").chmod(0o644), ["server.pem", "chmod 600"]),
    (lambda d: d.chmod(0o777), ["api-pki", "chmod 700"])])
def test_damaged_and_readable_files_are_refused(secure, harm, words):
    secure.stop()
    folder = secure.state_dir / "api-pki"
    harm(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, told = secure.fails_to_start()
    assert code in (64, 65)
    for word in words:
        assert word in told
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.fixture(scope="module")
def supplied(tmp_path_factory):
    """An operator's own authority, certificate and key."""
    folder = tmp_path_factory.mktemp("pki")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30, "-subj", "/CN=Example CA",
            "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=controller", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key",
            "-out", folder / "csr")
    openssl("x509", "-req", "-in", folder / "csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-days", 10, "-copy_extensions", "copy",
            "-out", folder / "crt")
    return folder


def test_the_operators_own_certificate(stopped, supplied):
    stopped.config["listen"]["tls"] = True
    stopped.config["tls"] = {"certificate": str(supplied / "crt"), "key": str(supplied / "key"), "ca": str(supplied / "ca.crt")}
    daemon = stopped.start()
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert((supplied / "ca.crt").read_text())).hexdigest()
    assert daemon.get("/v1/version").ok()["ca_fingerprint"] == pin
    for options in ({"pin": pin}, {"pin": ":".join(pin[i:i + 2] for i in range(0, 64, 2)).upper()},
                    {"pin": False, "env": {"CLUSTERCTL_CA_FILE": str(supplied / "ca.crt")}}):
        done = remote(daemon, "node", "ls", **options)
        assert done.returncode == 0, done.stderr
    refused = remote(daemon, "node", "ls", pin=fingerprint(daemon))
    assert refused.returncode == 69 and pin in refused.stderr


def test_the_operators_key_must_be_that_of_the_certificate(stopped, supplied):
    stopped.config["listen"]["tls"] = True
    stopped.config["tls"] = {"certificate": str(supplied / "crt"), "key": str(supplied / "ca.key")}
    _, told = stopped.fails_to_start()
    assert str(supplied / "ca.key") in told and "not that of the certificate" in told


def test_the_command_line_over_tls(secure):
    secure.add("w1", "service-worker")
    done = remote(secure, "node", "ls", "-q")
    assert done.returncode == 0 and done.stdout == "w1\n"
    by_file = remote(secure, "node", "ls", "-q", pin=False, env={"CLUSTERCTL_CA_FILE": str(secure.ca_file)})
    assert by_file.returncode == 0 and by_file.stdout == "w1\n"
    by_option = remote(secure, "--ca-fingerprint", fingerprint(secure), "node", "ls", "-q", pin=False)
    assert by_option.returncode == 0, by_option.stderr


def test_what_the_command_line_says_when_it_does_not_trust(secure):
    def refused(words, code=69, **options):
        done = remote(secure, "node", "ls", **options)
        assert done.returncode == code, done.stderr
        told = [line for line in done.stderr.splitlines() if line.startswith(("error:", "hint:"))]
        assert 1 <= len(told) <= 2 and len(told) == len(done.stderr.splitlines())
        for word in words:
            assert word in done.stderr, done.stderr
        assert secure.token() not in done.stderr

    refused(["not known here", fingerprint(secure), "--ca-fingerprint"], pin=False)
    refused(["not what is pinned", fingerprint(secure)], pin="0" * 64)
    refused(["fingerprint"], code=64, pin="xyz")
    refused(["CA file"], code=64, pin=False, env={"CLUSTERCTL_CA_FILE": "/nonexistent/ca.crt"})
    refused(["this port speaks TLS", "https://"], code=64, server="http://127.0.0.1:%d" % secure.port)
    refused(["token", "https://"], code=64, server="http://192.0.2.9:%d" % secure.port)
    assert secure.get("/v1/nodes").ok() == {"nodes": []}


def test_a_server_without_tls_is_named(daemon):
    done = remote(daemon, "node", "ls")
    assert done.returncode == 69 and "does not speak TLS" in done.stderr


def followers(daemon):
    """Connections to the listener that stand."""
    lines = open("/proc/net/tcp").read().splitlines()[1:]
    return sum(1 for line in lines if line.split()[1].endswith(":%04X" % daemon.port) and line.split()[3] == "01")


def test_eight_followers_over_tls_see_a_job_to_its_end(secure):
    secure.add("m1", "service-master")
    secure.double.orders(site="gate:go")
    job = secure.submit("commission", nodes=["m1"])
    found = [None] * 8

    def follow(i):
        found[i] = remote(secure, "job", "logs", "-f", job["id"])

    threads = [threading.Thread(target=follow, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    secure.double.wait_gate("go")
    wait_for(lambda: followers(secure) >= 8, "eight followers")
    secure.double.open_gate("go")
    for thread in threads:
        thread.join()
    assert secure.wait(job["id"])["state"] == "succeeded"
    assert {done.returncode for done in found} == {0}, [done.stderr for done in found]
    assert len({done.stdout for done in found}) == 1 and found[0].stdout


def raw(daemon, data):
    """What comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        got = b""
        with contextlib.suppress(OSError):
            while piece := client.recv(65536):
                got += piece
        return got


def test_hostile_clients(secure):
    answer = raw(secure, b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secure.token().encode() + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and b"tls_required" in answer and b"https://" in answer
    for garbage in (b"\x00", b"\x16", b"\x16\x03\x01\x00\x05hello", b"\x80\x80\x01\x03\x01", b"\xff" * 70000, b"\x16\x03\x01\x40\x00" + b"\x01" * 16384):
        raw(secure, garbage)
    half = [socket.create_connection(("127.0.0.1", secure.port)) for _ in range(100)]
    for client in half:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert secure.get("/v1/nodes", headers=bearer(secure), via="tls").ok() == {"nodes": []}
    for client in half:
        client.close()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", secure.port)) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain)
    assert secure.get("/v1/nodes", headers=bearer(secure), via="tls").ok() == {"nodes": []}
    assert "PRIVATE" not in secure.log() and secure.token() not in secure.log()
