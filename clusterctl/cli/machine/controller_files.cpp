#include "cli/machine/controller_files.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/process.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/machine/program.h"

namespace clusterctl::cli {

extern const std::string_view kUnitText;  // packaging/clusterctl.service

namespace {

constexpr std::chrono::seconds kToolWait{60};
constexpr std::string_view kUnitProgram = "/usr/bin/clusterctl";
constexpr std::string_view kUnitName = "clusterctl.service";

std::string own_program() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).string();
}

bool is_loopback_listen(const std::string& listen) {
  return listen.starts_with("127.") || listen.starts_with("localhost:") ||
         listen.starts_with("[::1]") || listen.starts_with("::1:");
}

std::string text_at(const Json& document, std::string_view section, std::string_view key,
                    const std::string& fallback) {
  const auto part = document.find(std::string(section));
  if (part == document.end() || !part->is_object()) return fallback;
  return get_string(*part, key, fallback).value_or(fallback);
}

std::string config_text(const ControllerPlace& place, const ControllerWish& wish) {
  std::string out =
      "# Written by clusterctl cluster init. Every key and its default: docs/operations.md.\n"
      "listen:\n"
      "  # Who may use the socket is root on every node: root, and members of the group "
      "clusterctl.\n";
  out += fmt::format("  unix: {}\n", place.socket.string());
  if (!place.listen.empty())
    out += fmt::format("  # Beyond loopback always with TLS.\n  tcp: \"{}\"\n", place.listen);
  out += fmt::format("state_dir: {}\n", place.state_dir.string());
  if (!wish.cluster_name.empty()) out += fmt::format("cluster_name: \"{}\"\n", wish.cluster_name);
  out += fmt::format("ssh:\n  user: root\n  private_key: {}\n", place.key.string());
  if (!wish.names.empty()) {
    out += "auth:\n  # Names by which clients may call the TCP listener.\n  hosts:\n";
    for (const std::string& name : wish.names) out += fmt::format("  - \"{}\"\n", name);
  }
  return out;
}

// Values come from the command line and become lines of a file.
Status check_plain(std::string_view what, std::string_view value) {
  const bool plain = value.find_first_of("\"\\\n\r#{}") == std::string_view::npos;
  if (plain) return {};
  return fail(Code::kInvalid, "usage", fmt::format("{} holds characters that it must not", what),
              "");
}

Result<ControllerPlace> read_place(const ControllerWish& wish) {
  const auto document = read_yaml(wish.config);
  if (!document) return fail(document.error());
  const Json config = document->is_object() ? *document : Json::object();
  ControllerPlace place;
  place.config = wish.config;
  place.state_dir = !wish.state_dir.empty()
                        ? wish.state_dir
                        : fs::path(get_string(config, "state_dir", "/var/lib/clusterctl")
                                       .value_or("/var/lib/clusterctl"));
  place.socket = text_at(config, "listen", "unix", "/run/clusterctl/clusterctl.sock");
  place.listen = text_at(config, "listen", "tcp", "");
  place.key = text_at(config, "ssh", "private_key", "");
  const auto listen = config.find("listen");
  const bool said = listen != config.end() && listen->is_object() && listen->contains("tls");
  place.tls =
      said ? (*listen)["tls"] == true : !place.listen.empty() && !is_loopback_listen(place.listen);
  if (!wish.listen.empty() && wish.listen != place.listen) {
    return fail(Code::kConflict, "configured",
                fmt::format("{} says listen.tcp: {}", wish.config.string(),
                            place.listen.empty() ? "nothing" : place.listen),
                "change it there and restart the daemon, or leave --listen out");
  }
  return place;
}

Status make_key(const ControllerPlace& place, std::vector<std::string>& done) {
  std::error_code ec;
  if (place.key.empty() || fs::exists(place.key, ec)) return {};
  if (auto made = make_dirs(place.key.parent_path(), 0755); !made) return made;
  if (auto made = run_program({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "clusterctl",
                               "-f", place.key.string()});
      !made) {
    Error error = made.error();
    error.hint = "install openssh-client";
    return fail(std::move(error));
  }
  done.push_back("made the SSH key " + place.key.string());
  return {};
}

bool has_unit() {
  std::error_code ec;
  for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system"}) {
    if (fs::exists(fs::path(folder) / kUnitName, ec)) return true;
  }
  return false;
}

std::string unit_text(const ControllerPlace& place) {
  std::string out(kUnitText);
  const auto put = [&out](std::string_view from, const std::string& to) {
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  };
  put(kUnitProgram, own_program());
  put(kDefaultConfig, place.config.string());
  if (place.state_dir != "/var/lib/clusterctl") {
    put("--state-dir /var/lib/clusterctl", "--state-dir " + place.state_dir.string());
    put("ReadWritePaths=/tmp", "ReadWritePaths=" + place.state_dir.string() + " /tmp");
  }
  return out;
}

}  // namespace

Result<ControllerPlace> prepare_controller(const ControllerWish& wish,
                                           std::vector<std::string>& done) {
  const std::vector<std::pair<std::string_view, std::string>> given{
      {"--listen", wish.listen},
      {"--cluster-name", wish.cluster_name},
      {"--config", wish.config.string()},
      {"--state-dir", wish.state_dir.string()},
      {"--socket", wish.socket.string()}};
  for (const auto& [what, value] : given) {
    if (auto ok = check_plain(what, value); !ok) return fail(ok.error());
  }
  std::error_code ec;
  ControllerPlace place;
  if (fs::exists(wish.config, ec)) {
    auto read = read_place(wish);
    if (!read) return read;
    place = std::move(*read);
  } else {
    place.config = wish.config;
    place.state_dir = wish.state_dir.empty() ? fs::path("/var/lib/clusterctl") : wish.state_dir;
    place.socket = wish.socket.empty() ? fs::path("/run/clusterctl/clusterctl.sock") : wish.socket;
    place.listen = wish.listen;
    place.tls = !place.listen.empty() && !is_loopback_listen(place.listen);
    place.key = wish.config.parent_path() / "id_ed25519";
    if (auto made = make_dirs(wish.config.parent_path(), 0755); !made) return fail(made.error());
    if (auto made = create_file(wish.config, config_text(place, wish), 0640); !made)
      return fail(made.error());
    done.push_back("wrote " + wish.config.string());
  }
  if (auto made = make_key(place, done); !made) return fail(made.error());
  if (auto made = make_dirs(place.state_dir, 0700); !made) return fail(made.error());
  return place;
}

bool has_systemd() {
  std::error_code ec;
  return fs::is_directory("/run/systemd/system", ec);
}

std::string start_command(const ControllerPlace& place) {
  return fmt::format("{} serve --config {} --state-dir {}", own_program(), place.config.string(),
                     place.state_dir.string());
}

Status check_by_daemon(const ControllerPlace& place) {
  const auto answer = run_process({{own_program(), "serve", "--config", place.config.string(),
                                    "--state-dir", place.state_dir.string(), "--check-config"},
                                   {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"LANG", "C.UTF-8"}},
                                   "/",
                                   false,
                                   -1,
                                   {}},
                                  kToolWait);
  if (!answer) return fail(answer.error());
  if (answer->status.ok()) return {};
  std::string message, hint;
  for (const std::string& line : split(answer->text, '\n', true)) {
    if (line.starts_with("error: ")) message = line.substr(7);
    if (line.starts_with("hint: ")) hint = line.substr(6);
  }
  return fail(Code::kConflict, "bad_config",
              message.empty() ? one_line(trim(answer->text)) : message, hint);
}

Status start_by_systemd(const ControllerPlace& place, std::vector<std::string>& done) {
  if (!getgrnam("clusterctl")) {
    if (auto made = run_program({"groupadd", "--system", "clusterctl"}); !made)
      return fail(made.error());
    done.push_back("made the group clusterctl");
  }
  if (!has_unit()) {
    const fs::path file = fs::path("/etc/systemd/system") / kUnitName;
    if (auto written = write_file_atomic(file, unit_text(place), 0644); !written) return written;
    done.push_back("wrote " + file.string());
    if (auto reloaded = run_program({"systemctl", "daemon-reload"}); !reloaded)
      return fail(reloaded.error());
  }
  if (auto started = run_program({"systemctl", "enable", "--now", "clusterctl"}); !started) {
    Error error = started.error();
    error.hint = "journalctl -u clusterctl tells why";
    return fail(std::move(error));
  }
  done.push_back("enabled and started clusterctl.service");
  return {};
}

}  // namespace clusterctl::cli
