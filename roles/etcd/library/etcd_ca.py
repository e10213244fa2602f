#!/usr/bin/python
"""Signs the certificate of one etcd member with the cluster's certificate authority, on the control host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: etcd_ca
short_description: Certificate authority of an etcd cluster
description:
  - Runs on the control host. Makes the authority once (C(ca.key), mode 0600, and C(ca.crt)) and signs certificate requests of members.
  - A certificate is kept as long as it fits the request, the names and the authority and does not expire within O(renew_days).
  - Several runs at once are safe (a lock on the directory). The private key of a member never comes here.
options:
  directory: {description: Directory of the authority., type: path, required: true}
  common_name: {description: Common name of the authority., type: str, required: true}
  name: {description: Name of the member, type: str, required: true}
  alternatives: {description: Addresses and host names for the certificate., type: list, elements: str, required: true}
  csr: {description: Certificate request of the member (PEM)., type: str, required: true}
  certificate: {description: The certificate that the member has now., type: str, default: ""}
  authority: {description: The authority's certificate that the member has now., type: str, default: ""}
  has_data: {description: The member holds data of a cluster, so its authority must be this one., type: bool, default: false}
  days: {description: Validity of a new certificate., type: int, default: 1095}
  authority_days: {description: Validity of a new authority., type: int, default: 3650}
  renew_days: {description: Renew when fewer days than this are left., type: int, default: 90}
author: [clusterctl]
"""

RETURN = r"""
certificate: {description: certificate of the member, type: str, returned: always}
authority: {description: certificate of the authority, type: str, returned: always}
"""

import fcntl
import ipaddress
import os
import re
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_native

NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")


class Problem(Exception):
    pass


def as_address(text):
    try:
        return ipaddress.ip_address(to_native(text).encode().decode("ascii"))
    except ValueError:
        return None


class Authority(object):
    def __init__(self, module):
        self.module = module
        self.params = module.params
        self.directory = module.params["directory"]
        self.key = os.path.join(self.directory, "ca.key")
        self.certificate = os.path.join(self.directory, "ca.crt")
        self.changed = False

    def openssl(self, *arguments, **options):
        code, out, error = self.module.run_command(["openssl"] + list(arguments), data=options.get("data"))
        if code != 0 and not options.get("may_fail"):
            raise Problem("openssl %s: %s" % (arguments[0], (error or out).strip()))
        return out if code == 0 else None

    def lock(self):
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory, 0o700)
        self.held = open(os.path.join(self.directory, ".lock"), "w")
        fcntl.flock(self.held, fcntl.LOCK_EX)

    def ensure(self):
        """Key first, certificate second, both by rename: a key alone has signed nothing yet and is made anew."""
        if self.filled(self.certificate):
            if not self.filled(self.key):
                raise Problem("%s is missing or empty, but %s is there: restore it from a backup" % (self.key, self.certificate))
            if os.stat(self.key).st_mode & 0o077:
                os.chmod(self.key, 0o600)
                self.changed = True
            return
        scratch = tempfile.mkdtemp(prefix=".new-", dir=self.directory)
        try:
            key, certificate = os.path.join(scratch, "ca.key"), os.path.join(scratch, "ca.crt")
            config = os.path.join(scratch, "ca.cnf")
            with open(config, "w") as handle:
                handle.write("[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:true,pathlen:0\n"
                             "keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n")
            old = os.umask(0o077)
            try:
                self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
            finally:
                os.umask(old)
            self.openssl("req", "-new", "-x509", "-key", key, "-sha256", "-days", str(self.params["authority_days"]),
                         "-subj", "/CN=" + self.params["common_name"], "-config", config, "-extensions", "ca", "-out", certificate)
            for path in (key, certificate):
                with open(path) as handle:
                    os.fsync(handle.fileno())
            os.chmod(key, 0o600)
            os.rename(key, self.key)
            os.rename(certificate, self.certificate)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self.changed = True

    @staticmethod
    def filled(path):
        return os.path.isfile(path) and os.path.getsize(path) > 0

    def subject_alternatives(self):
        wanted = set()
        for text in self.params["alternatives"]:
            address = as_address(text)
            if address is not None:
                wanted.add("IP:%s" % address)
            elif NAME.match(text):
                wanted.add("DNS:%s" % text.lower())
            else:
                raise Problem("%r is neither an address nor a host name" % text)
        return sorted(wanted)

    def current_is_good(self, scratch):
        if "BEGIN CERTIFICATE" not in self.params["certificate"]:
            return False
        path = os.path.join(scratch, "now.crt")
        with open(path, "w") as handle:
            handle.write(self.params["certificate"])
        if self.openssl("verify", "-CAfile", self.certificate, path, may_fail=True) is None:
            return False
        if self.openssl("x509", "-in", path, "-noout", "-checkend", str(self.params["renew_days"] * 86400), may_fail=True) is None:
            return False
        public = self.openssl("x509", "-in", path, "-noout", "-pubkey")
        if public.strip() != self.openssl("req", "-noout", "-pubkey", data=self.params["csr"]).strip():
            return False
        text = self.openssl("x509", "-in", path, "-noout", "-ext", "subjectAltName")
        names = [part.strip() for part in text.replace("\n", ",").split(",")]
        has = set()
        for part in names:
            if part.startswith("IP Address:"):
                has.add("IP:%s" % as_address(part[len("IP Address:"):]))
            elif part.startswith("DNS:"):
                has.add(part)
        return sorted(has) == self.subject_alternatives()

    def sign(self):
        name = self.params["name"]
        if not NAME.match(name):
            raise Problem("%r cannot be the name of a member" % name)
        if "BEGIN CERTIFICATE REQUEST" not in self.params["csr"]:
            raise Problem("the certificate request of %s is empty or damaged" % name)
        scratch = tempfile.mkdtemp(prefix=".sign-", dir=self.directory)
        try:
            if self.current_is_good(scratch):
                return self.params["certificate"]
            subject = self.openssl("req", "-noout", "-verify", "-subject", "-nameopt", "RFC2253", data=self.params["csr"])
            if "subject=CN=%s" % name not in subject.splitlines():
                raise Problem("the certificate request of %s is for %s" % (name, subject.strip()))
            extensions = os.path.join(scratch, "ext.cnf")
            with open(extensions, "w") as handle:
                handle.write("basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n"
                             "extendedKeyUsage=serverAuth,clientAuth\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
                             "subjectAltName=%s\n" % ",".join(self.subject_alternatives()))
            request = os.path.join(scratch, "csr.pem")
            with open(request, "w") as handle:
                handle.write(self.params["csr"])
            self.changed = True
            return self.openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-sha256",
                                "-set_serial", "0x%s" % os.urandom(16).hex(), "-days", str(self.params["days"]), "-extfile", extensions)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def run(self):
        self.lock()
        self.ensure()
        with open(self.certificate) as handle:
            authority = handle.read()
        if self.openssl("x509", "-noout", "-checkend", "0", data=authority, may_fail=True) is None:
            raise Problem("%s is not a valid certificate, or has expired" % self.certificate)
        if self.params["has_data"] and self.params["authority"].strip() not in ("", authority.strip()):
            raise Problem("%s holds data of an etcd cluster with another certificate authority than %s: give back that cluster's directory"
                          " (clusterctl_pki_dir), or clean the node first" % (self.params["name"], self.certificate))
        return {"certificate": self.sign(), "authority": authority, "changed": self.changed}


def main():
    module = AnsibleModule(argument_spec=dict(
        directory=dict(type="path", required=True),
        common_name=dict(type="str", required=True),
        name=dict(type="str", required=True),
        alternatives=dict(type="list", elements="str", required=True),
        csr=dict(type="str", required=True),
        certificate=dict(type="str", default=""),
        authority=dict(type="str", default=""),
        has_data=dict(type="bool", default=False),
        days=dict(type="int", default=1095),
        authority_days=dict(type="int", default=3650),
        renew_days=dict(type="int", default=90),
    ))
    try:
        module.exit_json(**Authority(module).run())
    except Problem as problem:
        module.fail_json(msg=to_native(problem))
    except (OSError, IOError) as error:
        module.fail_json(msg="%s: %s" % (error.filename or module.params["directory"], error.strerror or error))


if __name__ == "__main__":
    main()
