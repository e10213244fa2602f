// The table of known causes: one row per cause with the words that real programs print (Ansible
// 2.14, OpenSSH 9, apt, dnf, Docker 20 to 24, etcd 3.4, systemd 252).
#include "ansible/hints.h"

#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

constexpr int64_t kNone = INT64_MIN;  // no return code

enum class Kind { kTask, kUnreachable, kRun };

struct Row {
  const char* code;
  Kind kind;
  std::string message, output;
  int64_t rc;
  const char* line;  // what the one line must hold
};

std::string ssh(const std::string& words) {
  return "Failed to connect to the host via ssh: " + words;
}

const std::string kFailure = "MODULE FAILURE\nSee stdout/stderr for the exact error";
const std::string kRc = "non-zero return code";

std::vector<Row> reaching() {
  const auto u = Kind::kUnreachable;
  return {
      {"host_key_changed", u,
       ssh("@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n@    WARNING: REMOTE "
           "HOST "
           "IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@@@@@@@@@@@@@\r\nIT IS POSSIBLE THAT "
           "SOMEONE "
           "IS DOING SOMETHING NASTY!\r\nHost key verification failed."),
       "", kNone, "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"},
      {"host_key_unknown", u,
       ssh("No ED25519 host key is known for node-1 and you have requested strict "
           "checking.\r\nHost "
           "key verification failed."),
       "", kNone, "No ED25519 host key is known"},
      {"ssh_key_unusable", u,
       ssh("@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @\r\nPermissions 0644 for "
           "'/etc/k' are too open.\r\nops@10.0.0.1: Permission denied (publickey)."),
       "", kNone, "WARNING: UNPROTECTED PRIVATE KEY FILE!"},
      {"ssh_key_unusable", u,
       ssh("Load key \"/etc/k\": error in libcrypto\r\nops@10.0.0.1: Permission denied "
           "(publickey)."),
       "", kNone, "error in libcrypto"},
      {"ssh_auth_refused", u,
       ssh("Warning: Permanently added 'n1' (ED25519) to the list of known hosts.\r\nops@10.0.0.1: "
           "Permission denied (publickey,password)."),
       "", kNone, "ops@10.0.0.1: Permission denied"},
      {"ssh_too_many_keys", u,
       ssh("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures"), "",
       kNone, "Too many authentication failures"},
      {"ssh_no_common_algorithm", u,
       ssh("Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their "
           "offer: "
           "ssh-rsa"),
       "", kNone, "no matching host key type"},
      {"name_unknown", u,
       ssh("ssh: Could not resolve hostname node1.example: Name or service not known"), "", kNone,
       "Could not resolve hostname node1.example"},
      {"name_lookup_failed", u,
       ssh("ssh: Could not resolve hostname node1: Temporary failure in name resolution"), "",
       kNone, "Temporary failure in name resolution"},
      {"no_return", u,
       "did not come back within 15 minutes of its reboot: ssh: connect to host 10.0.0.1 port 22: "
       "Connection refused",
       "", kNone, "did not come back within 15 minutes of its reboot"},
      {"drain_blocked", Kind::kTask, "not drained after 5 s: web has 1 of 2 tasks there", "", kNone,
       "not drained after 5 s"},
      {"no_handover", Kind::kTask,
       "the address 10.0.0.100 was not handed over within 30 s: nobody answers for it", "", kNone,
       "was not handed over within 30 s"},
      {"ssh_refused", u, ssh("ssh: connect to host 10.0.0.1 port 22: Connection refused"), "",
       kNone, "port 22: Connection refused"},
      {"ssh_timeout", u, ssh("ssh: connect to host 10.0.0.1 port 22: Connection timed out"), "",
       kNone, "Connection timed out"},
      {"ssh_timeout", u, ssh("Connection timed out during banner exchange"), "", kNone, "banner"},
      {"no_route", u, ssh("ssh: connect to host 10.0.0.1 port 22: No route to host"), "", kNone,
       "No route to host"},
      {"no_route", u, ssh("ssh: connect to host 10.0.0.1 port 22: Network is unreachable"), "",
       kNone, "Network is unreachable"},
      {"connection_lost", u, ssh("Shared connection to 10.0.0.1 closed."), "", kNone,
       "Shared connection to 10.0.0.1 closed"},
      {"connection_lost", u,
       ssh("kex_exchange_identification: Connection closed by remote host\r\nConnection closed by "
           "10.0.0.1 port 22"),
       "", kNone, "Connection closed by remote host"},
      {"unreachable", u, "Data could not be sent to remote host \"10.0.0.1\".", "", kNone,
       "Data could not be sent"},
  };
}

std::vector<Row> machine() {
  const auto t = Kind::kTask;
  return {
      {"sudo_password", t, "Missing sudo password", "", kNone, "Missing sudo password"},
      {"sudo_password", t, kFailure, "sudo: a password is required", 1,
       "sudo: a password is required"},
      {"sudo_refused", t, kFailure,
       "ops is not in the sudoers file.  This incident will be reported.", 1,
       "ops is not in the sudoers file"},
      {"sudo_missing", t, kFailure, "/bin/sh: 1: sudo: not found", 127, "sudo: not found"},
      {"python_missing", t,
       "The module failed to execute correctly, you probably need to set the interpreter.\nSee "
       "stdout/stderr for the exact error",
       "/bin/sh: 1: /usr/bin/python3: not found", 127, "python3: not found"},
      {"python_too_old", t, kFailure,
       "Traceback (most recent call last):\nSyntaxError: future feature annotations is not defined",
       1, "future feature annotations"},
      {"python_library", t, kFailure,
       "Traceback (most recent call last):\nModuleNotFoundError: No module named 'apt'", 1,
       "No module named 'apt'"},
      {"no_temporary_dir", t,
       "Failed to create temporary directory. In some cases, you may have been able to "
       "authenticate",
       "", kNone, "Failed to create temporary directory"},
      {"fence_stuck", t, "processes of an earlier run cannot be ended: 812 dpkg", "", kNone,
       "812 dpkg"},
      {"no_space", t, kRc, "dd: writing to '/dev/full': No space left on device", 1,
       "No space left on device"},
      {"no_space", t,
       "apt-get install: E: You don't have enough free space in /var/cache/apt/archives/.", "",
       kNone, "enough free space"},
      {"disk_quota", t, kRc, "cp: error writing '/srv/a': Disk quota exceeded", 1,
       "Disk quota exceeded"},
      {"read_only", t, "[Errno 30] Read-only file system: '/etc/x'", "", kNone,
       "Read-only file system"},
      {"io_error", t, kRc, "cat: /var/lib/x: Input/output error", 1, "Input/output error"},
      {"out_of_memory", t, kRc, "bash: fork: Cannot allocate memory", 254,
       "Cannot allocate memory"},
      {"too_many_files", t, kFailure, "OSError: [Errno 24] Too many open files: '/etc/passwd'", 1,
       "Too many open files"},
      {"permission_selinux", t,
       "Aborting, target uses selinux but python bindings (libselinux-python) aren't installed!",
       "", kNone, "libselinux-python"},
      {"killed_by_system", t, kRc, "", -9, "ended by signal 9"},
      {"command_not_found", t, kRc, "/bin/sh: 1: etcdctl: not found", 127, "etcdctl: not found"},
      {"timer_expired", t, "Timer expired after 10 seconds", "", kNone, "Timer expired"},
  };
}

std::vector<Row> packages() {
  const auto t = Kind::kTask;
  return {
      {"package_lock", t,
       "'/usr/bin/apt-get -y install \"docker.io\"' failed: E: Could not get lock "
       "/var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)\nE: Unable to "
       "acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
       "", 100, "It is held by process 812"},
      {"package_lock", t, "yum lockfile is held by another process", "", kNone, "yum lockfile"},
      {"dpkg_interrupted", t,
       "apt-get install: E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to "
       "correct the problem.",
       "", kNone, "dpkg was interrupted"},
      {"repository_signature", t,
       "Failed to update apt cache: W:GPG error: http://mirror bookworm InRelease: The following "
       "signatures couldn't be verified because the public key is not available: NO_PUBKEY "
       "7EA0A9C3F273FCD8",
       "", kNone, "NO_PUBKEY"},
      {"repository_not_yet_valid", t,
       "apt-get update: E: Release file for http://deb.debian.org/debian/dists/bookworm/InRelease "
       "is "
       "not valid yet (invalid for another 1h 9min 3s). Updates for this repository will not be "
       "applied.",
       "", kNone, "is not valid yet"},
      {"repository_expired", t,
       "apt-get update: E: Release file for http://deb.debian.org/x is expired (invalid since 3d "
       "2h)",
       "", kNone, "is expired"},
      {"package_not_found", t, "apt-get install: E: Unable to locate package dockr", "", kNone,
       "Unable to locate package dockr"},
      {"package_not_found", t, "No package matching 'dockr' is available", "", kNone,
       "No package matching"},
      {"package_not_found", t, "dnf install: Error: Unable to find a match: dockr", "", kNone,
       "Unable to find a match"},
      {"package_conflict", t,
       "apt-get install: E: Unable to correct problems, you have held broken packages.", "", kNone,
       "held broken packages"},
      {"mirror_unreachable", t,
       "apt-get update: E: Failed to fetch http://mirror/dists/x  Could not connect to mirror:80 "
       "(10.0.0.9). - connect (111: Connection refused)",
       "", kNone, "Could not connect to mirror:80"},
      {"mirror_not_found", t,
       "apt-get update: E: The repository 'http://mirror/debian bookwrm Release' does not have a "
       "Release file.",
       "", kNone, "does not have a Release file"},
  };
}

std::vector<Row> network() {
  const auto t = Kind::kTask;
  const std::string daemon = "Error response from daemon: ";
  return {
      {"certificate_not_yet_valid", t,
       "Failed to validate the SSL certificate: certificate verify failed: certificate is not yet "
       "valid (_ssl.c:992)",
       "", kNone, "not yet valid"},
      {"certificate_not_yet_valid", t,
       daemon + "Get \"https://r/v2/\": x509: certificate has expired or is not yet valid: current "
                "time 2019-01-01T00:00:00Z is before 2024-01-01T00:00:00Z",
       "", kNone, "is before"},
      {"certificate_expired", t,
       "Status code was -1 and not [200]: Request failed: <urlopen error [SSL: "
       "CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired "
       "(_ssl.c:992)>",
       "", kNone, "certificate has expired"},
      {"certificate_untrusted", t,
       daemon + "Get \"https://r/v2/\": x509: certificate signed by unknown authority", "", kNone,
       "unknown authority"},
      {"certificate_name", t,
       daemon + "Get \"https://r/v2/\": x509: certificate is valid for a, not r", "", kNone,
       "is valid for a, not r"},
      {"proxy_refused", t,
       "Status code was -1 and not [200]: Request failed: <urlopen error Tunnel connection failed: "
       "407 Proxy Authentication Required>",
       "", kNone, "407 Proxy Authentication Required"},
      {"registry_rate_limit", t, daemon + "toomanyrequests: You have reached your pull rate limit.",
       "", kNone, "toomanyrequests"},
      {"image_not_found", t, daemon + "manifest for r/img:9 not found: manifest unknown", "", kNone,
       "manifest unknown"},
      {"registry_refused", t,
       daemon + "Get \"https://r/v2/\": unauthorized: incorrect username or password", "", kNone,
       "incorrect username or password"},
      {"registry_refused", t, "Status code was 403 and not [200]: HTTP Error 403: Forbidden", "",
       kNone, "HTTP Error 403"},
      {"registry_unreachable", t,
       daemon + "Get \"https://r/v2/\": dial tcp 10.0.0.9:443: connect: connection refused", "",
       kNone, "connection refused"},
      {"registry_unreachable", t,
       daemon + "Get \"https://r/v2/\": net/http: request canceled while waiting for connection "
                "(Client.Timeout exceeded while awaiting headers)",
       "", kNone, "Client.Timeout exceeded"},
      {"name_unknown", t,
       daemon + "Get \"https://r/v2/\": dial tcp: lookup r on 10.0.0.2:53: no such host", "", kNone,
       "no such host"},
      {"name_lookup_failed", t,
       "apt-get update: E: Failed to fetch http://deb.debian.org/x  Temporary failure resolving "
       "'deb.debian.org'",
       "", kNone, "Temporary failure resolving"},
  };
}

std::vector<Row> services() {
  const auto t = Kind::kTask;
  return {
      {"engine_too_old", t,
       "Error response from daemon: client version 1.45 is too new. Maximum supported API version "
       "is 1.41",
       "", kNone, "client version 1.45 is too new"},
      {"engine_not_running", t, kRc,
       "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
       "running?",
       1, "Cannot connect to the Docker daemon"},
      {"engine_not_running", t,
       "the engine does not answer at /run/docker.sock: [Errno 2] No such file or directory", "",
       kNone, "does not answer"},
      {"vxlan_left_over", t,
       "network sandbox join failed: subnet sandbox join failed for \"10.0.1.0/24\": error "
       "creating "
       "vxlan interface: file exists",
       "", kNone, "vxlan interface: file exists"},
      {"vxlan_left_over", t, "listen udp 0.0.0.0:4789: bind: address already in use", "", kNone,
       "4789"},
      {"swarm_already_member", t,
       "This node is already part of a swarm. Use \"docker swarm leave\" to leave this swarm and "
       "join another one.",
       "", kNone, "already part of a swarm"},
      {"swarm_no_leader", t,
       "rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too "
       "few managers are online.",
       "", kNone, "does not have a leader"},
      {"join_timeout", t,
       "Timeout was reached before node joined. The attempt to join the swarm will continue in the "
       "background.",
       "", kNone, "Timeout was reached"},
      {"swarm_port_blocked", t,
       "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while "
       "dialing dial tcp 10.0.0.1:2377: connect: connection refused\"",
       "", kNone, "10.0.0.1:2377"},
      {"swarm_token", t,
       "rpc error: code = InvalidArgument desc = A valid join token is necessary: "
       "invalid join token",
       "", kNone, "invalid join token"},
      {"etcd_cluster_id", t,
       "etcd keeps ending: request sent was ignored (cluster ID mismatch: "
       "peer[1]=2, local=3)",
       "", kNone, "cluster ID mismatch"},
      {"etcd_unhealthy", t, "adding a learner through 10.0.0.1: etcdserver: unhealthy cluster", "",
       kNone, "unhealthy cluster"},
      {"vip_taken", t, "service_vip 10.0.0.100 is taken: 52:54:00:aa:bb:cc answers for it", "",
       kNone, "10.0.0.100 is taken"},
      {"interface_missing", t,
       "interface eth9 (control_interface) does not exist or has no address", "", kNone, "eth9"},
      {"port_in_use", t, "listen tcp 0.0.0.0:2379: bind: address already in use", "", kNone,
       "2379"},
      {"port_in_use", t, kFailure, "OSError: [Errno 98] Address already in use", 1,
       "Address already in use"},
      {"unit_failed", t,
       "Unable to start service etcd: Job for etcd.service failed because the control process "
       "exited with error code.\nSee \"systemctl status etcd.service\" and \"journalctl -xeu "
       "etcd.service\" for details.",
       "", kNone, "Job for etcd.service failed because"},
      {"not_attempted", t, "not attempted: first manager m1 failed", "", kNone, "first manager m1"},
  };
}

std::vector<Row> ansible() {
  const auto t = Kind::kTask, r = Kind::kRun;
  return {
      {"variable_undefined", t,
       "The task includes an option with an undefined variable. The error was: 'service_vip' is "
       "undefined. 'service_vip' is undefined\n\nThe error appears to be in '/p/site.yml': line 9",
       "", kNone, "'service_vip' is undefined"},
      {"argument_invalid", t,
       "Validation of arguments failed:\nvalue of level must be one of: state, packages, got: all",
       "", kNone, "Validation of arguments failed: value of level"},
      {"argument_invalid", t, "missing required arguments: name", "", kNone, "name"},
      {"template_error", t,
       "template error while templating string: expected token 'end of print statement', got 'b'. "
       "String: {{ a b }}",
       "", kNone, "expected token"},
      {"playbook_missing", t, "Could not find or access 'missing.j2'\nSearched in: /p", "", kNone,
       "missing.j2"},
      {"playbook_missing", r, "", "ERROR! the playbook: /p/site.yml could not be found", 1,
       "/p/site.yml could not be found"},
      {"module_missing", r, "",
       "ERROR! couldn't resolve module/action 'docker_swarmm'. This often indicates a misspelling, "
       "missing collection, or incorrect module path.\n\nThe error appears to be in '/p/site.yml': "
       "line 9, column 7, but may\nbe elsewhere in the file depending on the exact syntax problem.",
       4,
       "'docker_swarmm'. This often indicates a misspelling, missing collection, or incorrect "
       "module path. (in '/p/site.yml': line 9)"},
      {"yaml_error", r, "",
       "ERROR! We were unable to read either as JSON nor YAML, these are the errors we got from "
       "each:\nJSON: Expecting value: line 1 column 1 (char 0)\n\nSyntax Error while loading "
       "YAML.\n  mapping values are not allowed in this context\n\nThe error appears to be in "
       "'/p/site.yml': line 3, column 7, but may",
       4, "mapping values are not allowed in this context (in '/p/site.yml': line 3)"},
      {"inventory_error", r, "", "ERROR! Unable to parse /r/inventory.json as an inventory source",
       1, "Unable to parse /r/inventory.json"},
      {"ansible_version", r, "",
       "ERROR! Ansible requires the locale encoding to be UTF-8; Detected ISO8859-1.", 1,
       "Ansible requires the locale"},
      {"vault_password", r, "", "ERROR! Attempting to decrypt but no vault secrets found", 4,
       "no vault secrets found"},
      {"ansible_missing", r, "", "cannot start ansible-playbook: No such file or directory", 127,
       "No such file"},
      {"run_interrupted", r, "", "ERROR! User interrupted execution", 99, "User interrupted"},
      {"run_killed", r, "", "TASK [base : Begin] ****", -9, "TASK [base : Begin]"},
  };
}

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const auto& part : {reaching(), machine(), packages(), network(), services(), ansible()})
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

Explanation explain(const Hints& hints, const Row& row) {
  Evidence e;
  if (row.kind == Kind::kRun) {
    const bool signal = row.rc < 0;
    e = output_evidence(row.output, signal ? 0 : static_cast<int>(row.rc),
                        signal ? static_cast<int>(-row.rc) : 0);
  } else {
    e.message = evidence_lines(row.message);
    e.output = evidence_lines(row.output);
    if (row.rc != kNone) e.rc = row.rc;
    e.unreachable = row.kind == Kind::kUnreachable;
  }
  return hints.explain(e, "node-1", "etcd");
}

TEST(Hints, EveryCauseIsKnownByItsRealWords) {
  const Hints hints = Hints::built_in().value();
  for (const Row& row : rows()) {
    const auto why = explain(hints, row);
    EXPECT_EQ(why.code, row.code) << row.message << " / " << row.output;
    EXPECT_NE(why.line.find(row.line), std::string::npos) << row.code << ": " << why.line;
    EXPECT_EQ(why.line, one_line(why.line));
    EXPECT_NE(why.hint, "") << row.code;
    EXPECT_EQ(why.hint.find('{'), std::string::npos) << why.hint;
  }
}

TEST(Hints, EveryEntryHasARow) {
  std::set<std::string> shown;
  for (const Row& row : rows()) shown.insert(row.code);
  const Hints hints = Hints::built_in().value();
  std::set<std::string> codes;
  for (const std::string& code : hints.codes()) {
    EXPECT_TRUE(shown.count(code)) << code << " has no row above";
    EXPECT_TRUE(codes.insert(code).second) << code << " stands twice";
  }
}

TEST(Hints, WhatIsUnknownKeepsItsOwnWords) {
  const Hints hints = Hints::built_in().value();
  Evidence e;
  e.message = {"the frobnicator is blue"};
  e.output = {"nothing of interest"};
  const auto why = hints.explain(e, "n1", "");
  EXPECT_EQ(why.line, "the frobnicator is blue");
  EXPECT_EQ(why.code, "");
  EXPECT_EQ(why.hint, "");
  EXPECT_EQ(hints.explain({}, "n1", "").line, "");
}

// A task's words that look like those of ssh are no trouble of the connection, and the other way
// round.
TEST(Hints, ConditionsMustHoldAsWell) {
  const Hints hints = Hints::built_in().value();
  Evidence e;
  e.message = {"cat: /root/x: Permission denied (something)"};
  EXPECT_NE(hints.explain(e, "n1", "").code, "ssh_auth_refused");
  e.unreachable = true;
  EXPECT_EQ(hints.explain(e, "n1", "").code, "ssh_auth_refused");
}

TEST(Hints, ThePatternLanguage) {
  const auto hints = Hints::parse(R"(
causes:
  - {code: both, text: ["one * two"], rc: [3, 4], hint: "look at {node} and {service}, {node}"}
  - {code: lone, text: one, hint: h}
)",
                                  "h.yml");
  ASSERT_TRUE(hints) << hints.error().line();
  Evidence e;
  e.message = {"x ONE and Two y"};
  e.rc = 4;
  const auto why = hints->explain(e, "n{node}", "");
  EXPECT_EQ(why.code, "both");
  EXPECT_EQ(why.hint, "look at n{node} and the service, n{node}");
  e.rc = 5;
  EXPECT_EQ(hints->explain(e, "n1", "").code, "lone");
  e.message = {"two", "and one"};
  e.rc = 4;
  EXPECT_EQ(hints->explain(e, "n1", "").code, "lone") << "not over lines, and in this order";
}

TEST(Hints, MistakesInTheFileSayWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"causes: [{code: a, txt: b, hint: h}]", "txt"},
      {"causes: [{code: a, text: b}]", "hint"},
      {"causes: [{code: A b, text: b, hint: h}]", "code"},
      {"causes: [{code: a, hint: h}]", "text"},
      {"causes: [{code: a, text: '**', hint: h}]", "everything"},
      {"causes: [{code: a, text: b, rc: [x], hint: h}]", "rc"},
      {"causes: [{code: a, text: b, hint: h}, 3]", "cause 2"},
      {"causes: {}", "list"},
      {"[]", "causes"},
      {"other: []", "other"},
  };
  for (const auto& [text, word] : cases) {
    const auto hints = Hints::parse(text, "h.yml");
    ASSERT_FALSE(hints) << text;
    const std::string line = hints.error().line();
    EXPECT_NE(line.find(word), std::string::npos) << line;
    EXPECT_NE(line.find("h.yml"), std::string::npos) << line;
  }
}

// Hostile texts cost time in proportion to their length and cannot break the line.
TEST(Hints, HostileTexts) {
  const Hints hints = Hints::built_in().value();
  Evidence e;
  e.message =
      evidence_lines(std::string(100000, '@') + "\n\x1b[31mred\r\n\n\n" + std::string(5000, '*'));
  EXPECT_LE(e.message.size(), 100u);
  const auto why = hints.explain(e, "n1", "");
  EXPECT_EQ(why.line, one_line(why.line));
}

}  // namespace
}  // namespace clusterctl::ansible
