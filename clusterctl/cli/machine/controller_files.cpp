#include "cli/machine/controller_files.h"

#include <fmt/format.h>
#include <grp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/process.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/machine/program.h"

namespace clusterctl::cli {

extern const std::string_view kUnitText;  // packaging/clusterctl.service

namespace {

constexpr std::chrono::seconds kToolWait{60};
constexpr std::string_view kDefaultState = "/var/lib/clusterctl";
constexpr std::string_view kDefaultSocket = "/run/clusterctl/clusterctl.sock";
constexpr std::string_view kUnitProgram = "/usr/bin/clusterctl";
constexpr std::string_view kUnitName = "clusterctl.service";

std::string own_program() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).string();
}

std::string text_at(const Json& document, std::string_view section, std::string_view key,
                    const std::string& fallback) {
  const auto part = document.find(std::string(section));
  if (part == document.end() || !part->is_object()) return fallback;
  return get_string(*part, key, fallback).value_or(fallback);
}

std::string config_text(const ControllerPlace& place, const ControllerWish& wish,
                        const fs::path& key) {
  std::string out =
      "# Written by clusterctl cluster init. Every key and its default: docs/operations.md.\n"
      "listen:\n"
      "  # Who may use the socket is root on every node: root, and members of the group "
      "clusterctl.\n";
  out += fmt::format("  unix: \"{}\"\n", place.socket.string());
  if (!place.listen.empty())
    out += fmt::format("  # Beyond loopback always with TLS.\n  tcp: \"{}\"\n", place.listen);
  out += fmt::format("state_dir: \"{}\"\n", place.state_dir.string());
  if (!wish.cluster_name.empty()) out += fmt::format("cluster_name: \"{}\"\n", wish.cluster_name);
  out += "ssh:\n  user: root\n";
  if (!key.empty()) out += fmt::format("  private_key: \"{}\"\n", key.string());
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

// An option that an existing configuration contradicts would have no effect: said, not ignored.
Status check_same(const ControllerWish& wish, std::string_view option, std::string_view key,
                  const std::string& wanted, const std::string& there) {
  if (wanted.empty() || wanted == there) return {};
  return fail(
      Code::kConflict, "configured",
      fmt::format("{} says {}: {}", wish.config.string(), key, there.empty() ? "nothing" : there),
      fmt::format("change it there and restart the daemon, or leave {} out", option));
}

Result<ControllerPlace> read_place(const ControllerWish& wish) {
  const auto document = read_yaml(wish.config);
  if (!document) return fail(document.error());
  const Json config = document->is_object() ? *document : Json::object();
  ControllerPlace place;
  place.config = wish.config;
  const std::string state = get_string(config, "state_dir").value_or("");
  place.state_dir = !state.empty()            ? fs::path(state)
                    : !wish.state_dir.empty() ? wish.state_dir
                                              : fs::path(kDefaultState);
  place.socket = text_at(config, "listen", "unix", std::string(kDefaultSocket));
  place.listen = text_at(config, "listen", "tcp", "");
  place.key = text_at(config, "ssh", "private_key", "");
  const auto listen = config.find("listen");
  const bool said = listen != config.end() && listen->is_object() && listen->contains("tls");
  place.tls =
      said ? (*listen)["tls"] == true : !place.listen.empty() && !is_loopback_listen(place.listen);
  const std::string name = get_string(config, "cluster_name", "default").value_or("default");
  const std::vector<Status> same{
      check_same(wish, "--listen", "listen.tcp", wish.listen, place.listen),
      check_same(wish, "--socket", "listen.unix", wish.socket.string(), place.socket.string()),
      check_same(wish, "--cluster-name", "cluster_name", wish.cluster_name, name),
      // A daemon that is told its folder on its command line has none in its configuration.
      check_same(wish, "--state-dir", "state_dir", state.empty() ? "" : wish.state_dir.string(),
                 state)};
  for (const Status& ok : same) {
    if (!ok) return fail(ok.error());
  }
  return place;
}

Status check_absolute(std::string_view what, const fs::path& path) {
  if (path.empty() || path.is_absolute()) return {};
  return fail(Code::kInvalid, "usage",
              fmt::format("{} must be an absolute path, not \"{}\"", what, path.string()),
              "begin it with /");
}

// Values come from the command line and become lines of a file.
Status check_wish(const ControllerWish& wish) {
  std::vector<std::pair<std::string_view, std::string>> given{
      {"--listen", wish.listen},
      {"--cluster-name", wish.cluster_name},
      {"--config", wish.config.string()},
      {"--state-dir", wish.state_dir.string()},
      {"--socket", wish.socket.string()}};
  for (const std::string& name : wish.names) given.emplace_back("--addr", name);
  for (const auto& [what, value] : given) {
    if (auto ok = check_plain(what, value); !ok) return ok;
  }
  if (auto ok = check_absolute("--config", wish.config); !ok) return ok;
  if (auto ok = check_absolute("--state-dir", wish.state_dir); !ok) return ok;
  return check_absolute("--socket", wish.socket);
}

tl::unexpected<Error> bad_listen(const std::string& listen, const std::string& why) {
  return fail(Code::kInvalid, "usage", fmt::format("--listen {}: {}", listen, why),
              "ADDRESS:PORT with an address of this machine; 0.0.0.0:PORT: all of them");
}

// The daemon would only say so in its log.
Status check_listen(const std::string& listen) {
  if (listen.empty()) return {};
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad_listen(listen, "is no ADDRESS:PORT");
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const std::string port = listen.substr(colon + 1);
  int number = -1;
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (ec != std::errc() || end != port.data() + port.size() || number < 0 || number > 65535)
    return bad_listen(listen, "a port is a number from 0 to 65535");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | (host == "localhost" ? 0 : AI_NUMERICHOST);
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  if (code != 0) return bad_listen(listen, fmt::format("{} is no address", host));
  const Fd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return bad_listen(listen, std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (list->ai_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), list->ai_addr, list->ai_addrlen) == 0) return {};
  if (errno == EADDRINUSE)
    return fail(Code::kConflict, "in_use",
                fmt::format("--listen {}: port {} is in use", listen, number),
                "stop the other program or choose another port");
  return bad_listen(listen, std::strerror(errno));
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

// The daemon's own check of a configuration: that of the place, or a draft of it.
Status check_by_daemon(const ControllerPlace& place, const fs::path& config) {
  const auto answer = run_process({{own_program(), "serve", "--config", config.string(),
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
  if (message.empty()) message = one_line(trim(answer->text));
  // Nobody shall look for the draft.
  const std::string prefix = config.string() + ": ";
  if (config != place.config && message.starts_with(prefix)) message.erase(0, prefix.size());
  return fail(place.text.empty() ? Code::kConflict : Code::kInvalid, "bad_config", message, hint);
}

}  // namespace

bool is_loopback_listen(const std::string& listen) {
  return listen.starts_with("127.") || listen.starts_with("localhost:") ||
         listen.starts_with("[::1]") || listen.starts_with("::1:");
}

Result<ControllerPlace> plan_controller(const ControllerWish& wish) {
  if (auto ok = check_wish(wish); !ok) return fail(ok.error());
  std::error_code ec;
  if (fs::exists(wish.config, ec)) return read_place(wish);
  ControllerPlace place;
  place.config = wish.config;
  place.state_dir = wish.state_dir.empty() ? fs::path(kDefaultState) : wish.state_dir;
  place.socket = wish.socket.empty() ? fs::path(kDefaultSocket) : wish.socket;
  place.listen = wish.listen;
  place.tls = !place.listen.empty() && !is_loopback_listen(place.listen);
  place.key = wish.config.parent_path() / "id_ed25519";
  place.text = config_text(place, wish, place.key);
  // The same without a key that is still to be made, for the daemon's check.
  place.draft = config_text(place, wish, fs::exists(place.key, ec) ? place.key : fs::path());
  return place;
}

Status check_controller(const ControllerPlace& place) {
  std::error_code ec;
  if (place.text.empty()) {
    // A key that is missing is made; the check comes again when it is there.
    if (!place.key.empty() && !fs::exists(place.key, ec)) return {};
    return check_by_daemon(place, place.config);
  }
  if (auto ok = check_listen(place.listen); !ok) return ok;
  std::string folder = (fs::temp_directory_path(ec) / "clusterctl-init.XXXXXX").string();
  if (!::mkdtemp(folder.data())) return fail(errno_error("create", folder));
  const fs::path draft = fs::path(folder) / "clusterctl.yml";
  auto done = create_file(draft, place.draft, 0600);
  if (done) done = check_by_daemon(place, draft);
  fs::remove_all(folder, ec);
  return done;
}

Status write_controller(const ControllerPlace& place, const std::string& policy,
                        std::vector<std::string>& done) {
  if (!place.text.empty()) {
    if (auto made = make_dirs(place.config.parent_path(), 0755); !made) return made;
    if (auto made = create_file(place.config, place.text, 0640); !made) return made;
    done.push_back("wrote " + place.config.string());
  }
  if (auto made = make_key(place, done); !made) return made;
  if (auto made = make_dirs(place.state_dir, 0700); !made) return made;
  if (policy.empty()) return {};
  // Read by the daemon (serve.cpp), which knows whether it begins a cluster.
  return write_file_atomic(place.state_dir / "new-cluster.json",
                           dump_json(Json{{"accept_policy", policy}}) + "\n", 0600);
}

bool has_state(const ControllerPlace& place) {
  std::error_code ec;
  return fs::exists(place.state_dir / "clusterctl.db", ec);
}

bool has_systemd() {
  std::error_code ec;
  return fs::is_directory("/run/systemd/system", ec);
}

std::string start_command(const ControllerPlace& place) {
  return fmt::format("{} serve --config {} --state-dir {}", own_program(), place.config.string(),
                     place.state_dir.string());
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
