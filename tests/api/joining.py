"""What tests of joining share: a machine as a folder, and what it announces."""

import base64
import os
import pathlib
import stat
import tempfile


UUID = "4c4c4544-0031-3010-8052-b4c04f4e313%d"


def host_key(number):
    """A public key that is one in form."""
    kind = b"ssh-ed25519"
    body = len(kind).to_bytes(4, "big") + kind + (32).to_bytes(4, "big") + bytes([number]) * 32
    return "ssh-ed25519 " + base64.b64encode(body).decode()


def announcement(token, number, **more):
    return {**dict(token=token, name="n%d" % number, addr="192.0.2.%d" % (10 + number), serial="FCH%d" % number, uuid=UUID % number,
                   macs=["00:25:b5:00:00:0%d" % number], host_keys=[host_key(number)], os="debian 12"), **more}


def new_token(daemon, **wish):
    return daemon.send("POST", "/v1/join-tokens", wish).ok(201)


def join(daemon, body, via="tcp", **options):
    return daemon.send("POST", "/v1/join", body, via=via, **options)


def nodes(daemon):
    return daemon.cli("node", "ls", "-o", "json").stdout


def make_machine():
    """A folder that stands for "/" of a new machine, and a visudo that is content."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="m"))
    for folder in ("etc/ssh", "etc/sudoers.d", "home", "root", "sys/class/dmi/id", "sys/class/net/eth0", "bin"):
        (root / folder).mkdir(parents=True)
    files = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\nusers:x:100:\n", "etc/shadow": "root:*:19000::::::\n",
             "etc/gshadow": "root:*::\n", "etc/hostname": "N1\n", "etc/os-release": 'ID=debian\nVERSION_ID="12"\n', "etc/ssh/ssh_host_ed25519_key.pub": host_key(1) + " x\n",
             "sys/class/dmi/id/product_serial": "FCH1\n", "sys/class/dmi/id/product_uuid": (UUID % 1).upper() + "\n",
             "sys/class/net/eth0/address": "00:25:b5:00:00:01\n", "sys/class/net/eth0/type": "1\n"}
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "bin/visudo").write_text("#!/bin/sh\nexit 0\n")
    (root / "bin/visudo").chmod(0o755)
    return root


def on(machine, daemon, *arguments, **env):
    return daemon.cli(*arguments, "--root", str(machine), env=dict({"PATH": "%s/bin:%s" % (machine, os.environ["PATH"])}, **env))


def join_machine(machine, daemon, token, *more):
    return on(machine, daemon, "cluster", "join", "http://127.0.0.1:%d" % daemon.port, "--token", token, "--addr", "192.0.2.11", *more)


def tree(root):
    """Everything below a folder: mode, owner and content."""
    return {str(p.relative_to(root)): (stat.S_IMODE(p.lstat().st_mode), p.lstat().st_uid, p.read_bytes() if p.is_file() else None)
            for p in sorted(root.rglob("*")) if not p.name.endswith(("-", ".lock"))}
