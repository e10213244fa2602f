#include "daemon_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/strings.h"
#include "base/yaml.h"
#include "controller/capacity.h"
#include "fleet/patterns.h"

namespace clusterctl {
namespace {

// Reads one section; the first problem stops all further reading and is kept.
class Section {
 public:
  Section(const Json& document, std::string name, std::vector<std::string> keys, Status& status)
      : name_(std::move(name)), status_(status) {
    auto object = name_.empty() ? Result<Json>(document) : get_object(document, name_);
    if (!object) {
      keep(object.error());
      return;
    }
    values_ = std::move(*object);
    if (auto known =
            check_keys(values_, keys, name_.empty() ? "the configuration" : "section " + name_);
        !known) {
      keep(known.error());
    }
  }

  void text(std::string_view key, std::string& out) {
    auto value = get_string(values_, key, out);
    if (!value) return keep(value.error());
    out = *value;
  }
  void path(std::string_view key, fs::path& out) {
    std::string value = out.string();
    text(key, value);
    if (!value.empty() && value[0] != '/')
      keep({Code::kInvalid,
            "not_absolute",
            fmt::format("{} must be an absolute path, not \"{}\"", full(key), value),
            "",
            {}});
    out = value;
  }
  void number(std::string_view key, int& out, int min, int max) {
    auto value = get_int(values_, key, out);
    if (!value) return keep(value.error());
    if (*value < min || *value > max) {
      return keep({Code::kInvalid,
                   "out_of_range",
                   fmt::format("{} must be {} to {}, not {}", full(key), min, max, *value),
                   "",
                   {}});
    }
    out = static_cast<int>(*value);
  }
  void flag(std::string_view key, bool& out) {
    if (!values_.contains(std::string(key))) return;
    auto value = get_bool(values_, key);
    if (!value) return keep(value.error());
    out = *value;
  }
  void flag(std::string_view key, std::optional<bool>& out) {
    bool value = false;
    if (values_.contains(std::string(key))) {
      flag(key, value);
      out = value;
    }
  }
  void bytes(std::string_view key, int64_t& out, int64_t min) {
    auto value = get_int(values_, key, out);
    if (!value) return keep(value.error());
    if (*value < min) {
      return keep({Code::kInvalid,
                   "out_of_range",
                   fmt::format("{} must be at least {}, not {}", full(key), min, *value),
                   "it is a number of bytes",
                   {}});
    }
    out = *value;
  }
  void texts(std::string_view key, std::vector<std::string>& out) {
    auto value = get_strings(values_, key);
    if (!value) return keep(value.error());
    out = *value;
  }
  void text_map(std::string_view key, std::map<std::string, std::string>& out) {
    auto value = get_object(values_, key);
    if (!value) return keep(value.error());
    for (const auto& [name, item] : value->items()) {
      if (!item.is_string())
        return keep({Code::kInvalid,
                     "wrong_type",
                     fmt::format("{}.{} must be a string", full(key), name),
                     "quote it",
                     {}});
      out[name] = item.get<std::string>();
    }
  }

 private:
  std::string full(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + "." + std::string(key);
  }
  void keep(Error error) {
    if (status_) status_ = fail(std::move(error));
  }

  std::string name_;
  Status& status_;
  Json values_ = Json::object();
};

Status read_tcp(const std::string& text, DaemonConfig& out) {
  if (text.empty()) return {};
  const size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  const char* begin = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [p, ec] = std::from_chars(begin, end, out.tcp_port);
  if (begin == end || ec != std::errc() || p != end || out.tcp_port < 0 || out.tcp_port > 65535) {
    return fail(Code::kInvalid, "bad_listen",
                fmt::format("listen.tcp must be ADDRESS:PORT, not \"{}\"", text));
  }
  out.tcp_host = text.substr(0, colon);
  if (out.tcp_host.size() > 2 && out.tcp_host.front() == '[' && out.tcp_host.back() == ']')
    out.tcp_host = out.tcp_host.substr(1, out.tcp_host.size() - 2);
  if (out.tcp_host.empty()) {
    return fail(Code::kInvalid, "bad_listen",
                fmt::format("listen.tcp must be ADDRESS:PORT, not \"{}\"", text),
                "0.0.0.0:PORT for all addresses of this machine");
  }
  return {};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Who has a token is root on every node: it never travels in the clear.
Status read_tls(const Json& document, std::optional<bool> tls, DaemonConfig& out) {
  Status status;
  Section section(document, "tls", {"certificate", "key", "ca"}, status);
  section.path("certificate", out.tls_certificate);
  section.path("key", out.tls_key);
  section.path("ca", out.tls_ca);
  if (!status) return status;
  const bool remote = !out.tcp_host.empty() && !is_loopback(out.tcp_host);
  if (remote && tls == false) {
    return fail(Code::kInvalid, "not_loopback",
                fmt::format("listen.tls must not be false with the address {}", out.tcp_host),
                "without TLS only a loopback address can be listened on");
  }
  if (tls && out.tcp_host.empty())
    return fail(Code::kInvalid, "bad_listen", "listen.tls needs listen.tcp");
  out.tcp_tls = tls.value_or(remote);
  if (out.tls_certificate.empty() != out.tls_key.empty()) {
    return fail(Code::kInvalid, "bad_tls", "tls.certificate and tls.key belong together",
                "leave both out to have a certificate made");
  }
  if (out.tls_certificate.empty() && !out.tls_ca.empty())
    return fail(Code::kInvalid, "bad_tls", "tls.ca needs tls.certificate");
  return {};
}

// A run could not be found, told or cleaned any more if these were the operator's.
constexpr std::array<std::string_view, 6> kOwnVariables{
    "ANSIBLE_CONFIG",     "ANSIBLE_LOCAL_TEMP", "ANSIBLE_SSH_CONTROL_PATH_DIR",
    "CLUSTERCTL_RUN_DIR", "CLUSTERCTL_RUN_ID",  "TMPDIR"};

Status check_environment(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    const bool valid = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                       std::all_of(name.begin(), name.end(),
                                   [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!valid)
      return fail(
          Code::kInvalid, "bad_variable",
          fmt::format("ansible.env: {} is no name of an environment variable", fleet::shown(name)),
          "letters, digits and _");
    if (value.find('\0') != std::string::npos)
      return fail(Code::kInvalid, "bad_variable",
                  fmt::format("ansible.env.{} holds a NUL character", name));
    if (std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end())
      return fail(Code::kInvalid, "own_variable",
                  fmt::format("ansible.env.{} is set by clusterctl for each run", name),
                  name == "ANSIBLE_CONFIG" ? "name the file as ansible.config" : "leave it out");
  }
  return {};
}

int runs_of_this_machine() {
  std::ostringstream meminfo;
  meminfo << std::ifstream("/proc/meminfo").rdbuf();
  return controller::default_parallel_runs(std::thread::hardware_concurrency(),
                                           controller::available_memory(meminfo.str()));
}

Result<DaemonConfig> decode(const Json& document) {
  DaemonConfig out;
  Status status;
  std::string tcp, unix_socket = out.unix_socket.string();
  Section top(document, "",
              {"listen", "state_dir", "log_level", "cluster_name", "ansible", "ssh", "jobs", "logs",
               "monitor", "compat", "auth", "tls", "notifications"},
              status);
  top.path("state_dir", out.state_dir);
  top.text("log_level", out.log_level);
  top.text("cluster_name", out.cluster_name);
  Section listen(document, "listen", {"unix", "unix_group", "tcp", "tls"}, status);
  listen.path("unix", out.unix_socket);
  listen.text("unix_group", out.unix_group);
  listen.text("tcp", tcp);
  std::optional<bool> tls;
  listen.flag("tls", tls);
  Section ansible(document, "ansible", {"playbooks", "config", "playbook_program", "env"}, status);
  ansible.path("playbooks", out.playbooks);
  ansible.path("config", out.ansible_config);
  ansible.text("playbook_program", out.ansible_playbook);
  ansible.text_map("env", out.ansible_env);
  Section ssh(document, "ssh", {"user", "private_key"}, status);
  ssh.text("user", out.ssh_user);
  ssh.text("private_key", out.ssh_private_key);
  Section jobs(document, "jobs", {"max_parallel_runs", "keep"}, status);
  out.max_parallel_runs = runs_of_this_machine();
  jobs.number("max_parallel_runs", out.max_parallel_runs, 1, 1000);
  jobs.number("keep", out.keep_jobs, 10, 100000);
  Section logs(document, "logs", {"keep_jobs", "keep_days", "max_bytes"}, status);
  logs.number("keep_jobs", out.log_keep_jobs, 1, 100000);
  logs.number("keep_days", out.log_keep_days, 0, 36500);
  logs.bytes("max_bytes", out.log_max_bytes, 1 << 20);
  Section monitor(document, "monitor", {"enabled", "interval", "timeout", "misses", "parallel"},
                  status);
  monitor.flag("enabled", out.monitor_enabled);
  monitor.number("interval", out.monitor_interval, 1, 3600);
  monitor.number("timeout", out.monitor_timeout, 1, 60);
  monitor.number("misses", out.monitor_misses, 1, 100);
  monitor.number("parallel", out.monitor_parallel, 1, 2000);
  Section compat(document, "compat", {"enabled"}, status);
  compat.flag("enabled", out.compat);
  Section auth(document, "auth", {"token_file", "hosts"}, status);
  auth.path("token_file", out.token_file);
  auth.texts("hosts", out.hosts);
  if (!status) return fail(status.error());
  if (out.log_level != "debug" && out.log_level != "info" && out.log_level != "warn" &&
      out.log_level != "error") {
    return fail(
        Code::kInvalid, "bad_log_level",
        fmt::format("log_level must be debug, info, warn or error, not \"{}\"", out.log_level));
  }
  if (auto ok = read_tcp(tcp, out); !ok) return fail(ok.error());
  if (auto ok = read_tls(document, tls, out); !ok) return fail(ok.error());
  if (auto ok = check_environment(out.ansible_env); !ok) return fail(ok.error());
  if (auto ok = fleet::check_word(out.cluster_name, "cluster_name"); !ok) return fail(ok.error());
  if (!out.ssh_user.empty()) {
    if (auto ok = fleet::check_ssh_user(out.ssh_user); !ok) return fail(ok.error());
  }
  auto receivers = notify::parse_receivers(document.value("notifications", Json()));
  if (!receivers) return fail(receivers.error());
  out.receivers = std::move(*receivers);
  return out;
}

}  // namespace

Result<DaemonConfig> read_daemon_config(const fs::path& file, bool required) {
  std::error_code ec;
  if (!required && !fs::exists(file, ec)) return decode(Json::object());
  auto document = read_yaml(file);
  if (!document) return fail(document.error());
  if (document->is_null()) document = Json::object();
  if (!document->is_object())
    return fail(Code::kInvalid, "bad_config", file.string() + " must hold keys and values");
  auto config = decode(*document);
  if (!config) {
    Error error = config.error();
    error.message = file.string() + ": " + error.message;
    return fail(std::move(error));
  }
  return config;
}

}  // namespace clusterctl
