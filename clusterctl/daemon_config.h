// The daemon's file, read strictly: an unknown or doubled key, a wrong type, a path that is not
// there is one clear line and no start. Keys: listen, state_dir, log_level, cluster_name, ansible,
// ssh, jobs, logs, monitor, compat, auth, tls, notifications (docs/operations.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "notify/receiver.h"

namespace clusterctl {

struct DaemonConfig {
  fs::path unix_socket = "/run/clusterctl/clusterctl.sock";
  std::string unix_group;  // empty: "clusterctl" if there is such a group, else nobody but root
  std::string tcp_host;    // empty: no TCP
  int tcp_port = 0;
  bool tcp_tls = false;
  fs::path state_dir = "/var/lib/clusterctl";
  std::string log_level = "info";
  std::string cluster_name = "default";
  fs::path playbooks;  // empty: beside the program, or /usr/share/clusterctl/playbooks
  fs::path ansible_config;
  std::string ansible_playbook = "ansible-playbook";
  std::map<std::string, std::string> ansible_env;
  std::string ssh_user = "root";
  std::string ssh_private_key;
  int max_parallel_runs = 2;
  int keep_jobs = 500;
  int log_keep_jobs = 500, log_keep_days = 90;
  int64_t log_max_bytes = 4LL << 30;
  bool monitor_enabled = true;
  int monitor_interval = 15, monitor_timeout = 5;  // seconds
  int monitor_misses = 3, monitor_parallel = 128;
  bool compat = false;  // contiv's routes
  fs::path token_file;  // empty: <state_dir>/token
  std::vector<std::string> hosts;
  fs::path tls_certificate, tls_key;  // empty: made by the daemon's own authority
  fs::path tls_ca;
  std::vector<notify::Receiver> receivers;  // notifications; secrets not read yet
};

// A missing file is an Error only when it was named (`required`).
Result<DaemonConfig> read_daemon_config(const fs::path& file, bool required);

}  // namespace clusterctl
