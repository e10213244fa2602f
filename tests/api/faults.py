"""Faults that nodes and controllers meet, for test_causes.py: how each is made, and what clusterctl must say about it.

`real` ones happen: a closed port, a full device, an expired certificate. The others are the words that the real program prints, coming
through the real Ansible: from a task that fails with them, or from a program that stands in for ssh or sudo.
"""

import datetime
import http.server
import ipaddress
import socket
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Fault:
    """`code`: one, or those that fit. `line` and `hint`: words that the job's one line and its hint must hold."""

    def __init__(self, name, code, line, hint, task=None, real=False, ssh=None, addr=None, **variables):
        self.name, self.line, self.hint, self.task, self.real, self.ssh = name, line, hint, task, real, ssh
        self.codes = (code,) if isinstance(code, str) else code
        self.addr, self.variables = addr, variables


def command(*argv, **more):
    return dict({"ansible.builtin.command": {"argv": list(argv)}}, **more)


def says(text):
    return {"ansible.builtin.fail": {"msg": text}}


def get(url, **more):
    return {"ansible.builtin.uri": dict({"url": url, "timeout": 5}, **more)}


def certificate(folder, name, begin=-10, end=10, host="127.0.0.1"):
    """A key and a certificate for `host`, valid from `begin` to `end` days from now, in one file that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.utcnow()
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=begin)).not_valid_after(now + datetime.timedelta(days=end))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256()))
    path = folder / (name + ".pem")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) +
                     made.public_bytes(serialization.Encoding.PEM))
    return path


class Servers:
    """What faults need on the other side, all on loopback."""

    def __init__(self):
        self.open = []

    def listen(self, serve=None):
        """A port that accepts; `serve(connection)` says what happens then, without it nothing ever does."""
        sock = socket.create_server(("127.0.0.1", 0))
        self.open.append(sock)
        if serve:
            def loop():
                while True:
                    try:
                        serve(sock.accept()[0])
                    except OSError:
                        if sock.fileno() < 0:
                            return
            threading.Thread(target=loop, daemon=True).start()
        return sock.getsockname()[1]

    def closed_port(self):
        """A port that nothing else can take and nothing listens on."""
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.open.append(sock)
        return sock.getsockname()[1]

    def http(self, status, pem=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            do_GET = do_CONNECT = answer

            def log_message(self, *arguments):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if pem:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *arguments: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.open.append(server)
        return server.server_address[1]

    def close(self):
        for thing in self.open:
            if hasattr(thing, "shutdown") and not isinstance(thing, socket.socket):
                thing.shutdown()
                thing.server_close()
            else:
                thing.close()


def on_the_machine(servers):
    bind = "import socket; s = socket.socket(); s.bind(('127.0.0.1', %d)); s.listen()" % servers.listen()
    return [
        Fault("no-space", "no_space", "No space left on device", "file system is full",
              command("dd", "if=/dev/zero", "of=/dev/full", "count=1"), real=True),
        Fault("read-only", "read_only", "Read-only file system", "read-only",
              command("unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro none /mnt && touch /mnt/x"), real=True),
        Fault("killed", "killed_by_system", "ended by signal 9", "out of memory", command("sh", "-c", "kill -9 $$"), real=True),
        Fault("no-memory", "out_of_memory", "MemoryError", "too little memory",
              command("sh", "-c", "ulimit -v 100000; exec python3 -c 'x = bytearray(10 ** 9)'"), real=True),
        Fault("open-files", "too_many_files", "Too many open files", "LimitNOFILE",
              command("python3", "-c", "[open('/dev/null') for i in [__import__('resource').setrlimit(7, (20, 20))] * 30 "
                                       "for keep in [globals().setdefault('k', [])] if not keep.append(open('/dev/null'))]"), real=True),
        Fault("port-in-use", "port_in_use", "Address already in use", "ss -ltnp", command("python3", "-c", bind), real=True),
        Fault("no-program", "command_not_found", "no-such-program", "not installed", command("no-such-program"), real=True),
        Fault("never-up", "timer_expired", "Timeout when waiting for 127.0.0.1", "longer than allowed",
              {"ansible.builtin.wait_for": {"host": "127.0.0.1", "port": servers.closed_port(), "timeout": 1, "sleep": 1}}, real=True),
        Fault("no-python", "python_missing", "/nonexistent/python3: not found", "install python3", command("true"), real=True,
              ansible_python_interpreter="/nonexistent/python3"),
        Fault("no-temporary", "no_temporary_dir", "Failed to create temporary directory", "temporary folder",
              says("Failed to create temporary directory. In some cases, you may have been able to authenticate and did not have permissions")),
        Fault("no-sudo", "sudo_missing", "sudo: not found", "not installed", command("true", become=True), real=True,
              ansible_become=True, ansible_become_user="nobody", ansible_become_exe="/nonexistent/sudo"),
        Fault("sudo-password", "sudo_password", "a password is required", "NOPASSWD", command("true", become=True),
              ansible_become=True, ansible_become_user="nobody", ansible_become_exe="sudo: a password is required"),
        Fault("sudo-refused", "sudo_refused", "not in the sudoers file", "add it to sudoers", command("true", become=True),
              ansible_become=True, ansible_become_user="nobody", ansible_become_exe="ops is not in the sudoers file.  This incident will be reported."),
        Fault("quota", "disk_quota", "Disk quota exceeded", "quota", says("cp: error writing '/srv/x': Disk quota exceeded")),
        Fault("bad-disk", "io_error", "Input/output error", "disk", says("cat: /var/lib/x: Input/output error")),
        Fault("selinux", "permission_selinux", "avc:  denied", "SELinux", says("type=AVC msg=audit(1.2:3): avc:  denied  { write }")),
        Fault("fence", "fence_stuck", "812 dpkg", "reboot", says("processes of an earlier run cannot be ended: 812 dpkg")),
    ]


def on_the_network(servers, folder):
    def tls(name, **times):
        pem = certificate(folder, name, **times)
        return "https://127.0.0.1:%d/" % servers.http(200, pem), str(pem)
    expired, expired_ca = tls("expired", begin=-20, end=-10)
    early, early_ca = tls("early", begin=10, end=20)
    unknown, _ = tls("unknown")
    other, other_ca = tls("other", host="192.0.2.9")
    proxy = "http://127.0.0.1:%d" % servers.http(407)

    def page(status):
        return get("http://127.0.0.1:%d/v2/" % servers.http(status))
    return [
        Fault("expired", "certificate_expired", "certificate has expired", "renew", get(expired, ca_path=expired_ca), real=True),
        Fault("clock", "certificate_not_yet_valid", "not yet valid", "clock", get(early, ca_path=early_ca), real=True),
        Fault("untrusted", "certificate_untrusted", "self-signed certificate", "authority", get(unknown), real=True),
        Fault("wrong-name", "certificate_name", "127.0.0.1", "another name", get(other, ca_path=other_ca), real=True),
        Fault("login", "registry_refused", "401", "user and password", page(401), real=True),
        Fault("forbidden", "registry_refused", "403", "user and password", page(403), real=True),
        Fault("rate-limit", "registry_rate_limit", "429", "limits pulls", page(429), real=True),
        Fault("not-found", "mirror_not_found", "404", "does not have this", page(404), real=True),
        Fault("registry-down", "registry_unreachable", "Connection refused", "does not answer",
              get("http://127.0.0.1:%d/v2/" % servers.closed_port()), real=True),
        Fault("proxy", "proxy_refused", "407", "proxy",
              dict(get("https://registry.example/"), environment={"https_proxy": proxy}), real=True),
        Fault("no-name", ("name_unknown", "name_lookup_failed"), "urlopen error", "name", get("http://no-such-machine.invalid/"), real=True),
        Fault("no-image", "image_not_found", "manifest unknown", "image or tag",
              says("Error response from daemon: manifest for r.example/ucp:9 not found: manifest unknown: manifest unknown")),
        Fault("denied-image", "registry_refused", "pull access denied", "user and password",
              says("Error response from daemon: pull access denied for r.example/ucp, repository is private")),
    ]


def reaching(servers):
    hang, drop = servers.listen(), servers.listen(lambda connection: connection.close())
    changed = ("@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
               "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\nHost key verification failed.\r\n")
    unprotected = ("@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @\r\nPermissions 0644 for '/k' are too open.\r\n"
                   "Load key \"/k\": bad permissions\r\nroot@127.0.0.1: Permission denied (publickey).\r\n")
    return [
        Fault("refused", "ssh_refused", "Connection refused", "ssh port", real=True, ansible_port=servers.closed_port()),
        Fault("no-answer", "ssh_timeout", "timed out", "powered on", real=True, ansible_port=hang),
        Fault("dropped", "connection_lost", "kex_exchange_identification", "broke", real=True, ansible_port=drop),
        Fault("no-address", ("name_unknown", "name_lookup_failed"), "Could not resolve hostname", "name", real=True,
              addr="no-such-node.invalid"),
        Fault("no-route", "no_route", "No route to host", "powered on", ssh="ssh: connect to host 10.0.0.1 port 22: No route to host\r\n"),
        Fault("key-changed", "host_key_changed", "REMOTE HOST IDENTIFICATION HAS CHANGED", "pinned", ssh=changed),
        Fault("key-unknown", "host_key_unknown", "host key is known", "ssh.host_key",
              ssh="No ED25519 host key is known for x and you have requested strict checking.\r\nHost key verification failed.\r\n"),
        Fault("not-let-in", "ssh_auth_refused", "Permission denied (publickey)", "authorized_keys",
              ssh="Warning: Permanently added 'x' (ED25519) to the list of known hosts.\r\nroot@10.0.0.1: Permission denied (publickey).\r\n"),
        Fault("bad-key", "ssh_key_unusable", "UNPROTECTED PRIVATE KEY FILE", "0600", ssh=unprotected),
        Fault("old-sshd", "ssh_no_common_algorithm", "no matching host key type", "update",
              ssh="Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa\r\n"),
    ]


def in_playbooks():
    return [
        Fault("no-variable", "variable_undefined", "'no_such_variable' is undefined", "variable is missing",
              command("echo", "{{ no_such_variable }}"), real=True),
        Fault("bad-template", "template_error", "template error", "template", command("echo", "{{ 1 ++ }}"), real=True),
        Fault("no-filter", "template_error", "no_such_filter", "template", command("echo", "{{ 1 | no_such_filter }}"), real=True),
        Fault("no-argument", "argument_invalid", "missing required arguments: name", "docs/variables.md", {"ansible.builtin.group": {"gid": 7}},
              real=True),
        Fault("bad-argument", "argument_invalid", "state must be one of", "docs/variables.md",
              {"ansible.builtin.group": {"name": "x", "state": "perhaps"}}, real=True),
        Fault("no-file", "playbook_missing", "Could not find or access", "missing on the controller",
              {"ansible.builtin.copy": {"src": "/nonexistent/file", "dest": "/nonexistent/there"}}, real=True),
    ]


def of_services():
    rows = [
        ("package-lock", "package_lock", "held by process 812", "another program installs",
         "'/usr/bin/apt-get -y install \"docker.io\"' failed: E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 "
         "(apt)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"),
        ("dpkg", "dpkg_interrupted", "dpkg was interrupted", "dpkg --configure -a",
         "apt-get install: E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."),
        ("no-package", "package_not_found", "Unable to locate package", "no repository", "apt-get install: E: Unable to locate package dockr"),
        ("signature", "repository_signature", "NO_PUBKEY", "signature",
         "Failed to update apt cache: W:GPG error: http://m bookworm InRelease: The following signatures couldn't be verified because the "
         "public key is not available: NO_PUBKEY 7EA0A9C3F273FCD8"),
        ("apt-clock", "repository_not_yet_valid", "is not valid yet", "clock",
         "apt-get update: E: Release file for http://m/InRelease is not valid yet (invalid for another 1h 9min 3s)."),
        ("mirror", "mirror_unreachable", "Could not connect to m:80", "mirror",
         "apt-get update: E: Failed to fetch http://m/x  Could not connect to m:80 (10.0.0.9). - connect (111: Connection refused)"),
        ("old-engine", "engine_too_old", "client version 1.45 is too new", "docker_version",
         "Error response from daemon: client version 1.45 is too new. Maximum supported API version is 1.41"),
        ("no-engine", "engine_not_running", "does not answer", "journalctl -u docker",
         "the engine does not answer at /run/docker.sock: [Errno 2] No such file or directory"),
        ("vxlan", "vxlan_left_over", "vxlan interface: file exists", "ip link delete",
         "network sandbox join failed: subnet sandbox join failed for \"10.0.1.0/24\": error creating vxlan interface: file exists"),
        ("in-swarm", "swarm_already_member", "already part of a swarm", "docker swarm leave", "This node is already part of a swarm. Use "
         "\"docker swarm leave\" to leave this swarm and join another one."),
        ("no-leader", "swarm_no_leader", "does not have a leader", "majority",
         "rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are online."),
        ("join-timeout", "join_timeout", "Timeout was reached before node joined", "2377",
         "Timeout was reached before node joined. The attempt to join the swarm will continue in the background."),
        ("etcd-other", "etcd_cluster_id", "cluster ID mismatch", "another etcd cluster",
         "etcd keeps ending: request sent was ignored (cluster ID mismatch: peer[1]=2, local=3)"),
        ("etcd-sick", "etcd_unhealthy", "unhealthy cluster", "member of etcd", "adding a learner: etcdserver: unhealthy cluster"),
        ("vip", "vip_taken", "is taken", "service_vip", "service_vip 10.0.0.100 is taken: 52:54:00:aa:bb:cc answers for it"),
        ("interface", "interface_missing", "eth9", "control_interface", "interface eth9 (control_interface) does not exist or has no address"),
        ("unit", "unit_failed", "Job for etcd.service failed because", "journalctl",
         "Unable to start service etcd: Job for etcd.service failed because the control process exited with error code.\n"
         "See \"systemctl status etcd.service\" and \"journalctl -xeu etcd.service\" for details."),
    ]
    return [Fault(name, code, line, hint, says(text)) for name, code, line, hint, text in rows]


def of_nodes(servers, folder):
    return on_the_machine(servers) + on_the_network(servers, folder) + reaching(servers) + in_playbooks() + of_services()


def play(tasks):
    return [{"hosts": "clusterctl_targets", "gather_facts": False, "tasks": tasks}]


def of_runs(folder):
    """Faults of a run as a whole: (Fault, what check.yml holds, or None for no such file)."""
    (folder / "vault.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n36\n")
    return [
        (Fault("yaml", "yaml_error", "mapping values are not allowed", "syntax-check", real=True), "- hosts: all\n  tasks:\n    - a: b: c\n"),
        (Fault("no-module", "module_missing", "couldn't resolve module/action 'no_such_module'", "collection", real=True),
         play([{"no_such_module": {}}])),
        (Fault("no-role", "playbook_missing", "the role 'no_such_role' was not found", "missing on the controller", real=True),
         [{"hosts": "all", "roles": ["no_such_role"]}]),
        (Fault("vault", "vault_password", "no vault secrets found", "ANSIBLE_VAULT_PASSWORD_FILE", real=True),
         [{"hosts": "all", "gather_facts": False, "vars_files": [str(folder / "vault.yml")], "tasks": [command("true")]}]),
        (Fault("no-playbook", "playbook_missing", "check.yml could not be found", "missing on the controller", real=True), None),
        (Fault("run-killed", "run_killed", "by signal 9", "killed on the controller", real=True),
         play([command("sh", "-c", "kill -9 $(cat %s)" % (folder / "pid"))])),
    ]
