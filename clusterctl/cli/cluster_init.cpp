// `cluster init`: this machine becomes the controller and, if asked, its own first node.
#include <fmt/format.h>

#include <algorithm>

#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/cluster_commands.h"
#include "cli/join_token.h"
#include "cli/machine/controller_files.h"
#include "cli/machine/facts.h"
#include "cli/machine/joining.h"
#include "cli/machine/management.h"
#include "cli/session.h"
#include "cli/text.h"
#include "client/curl_client.h"

namespace clusterctl::cli {
namespace {

constexpr std::chrono::milliseconds kReadyWait{60000}, kReadyAgain{200};
constexpr std::string_view kDefaultListen = "0.0.0.0:9007";
constexpr const char* kManagementUserName = "clusterctl";

// The address by which other machines most likely reach this one; empty: none is known.
std::string primary_address() {
  // Nothing is sent: only the way there is looked up.
  for (const char* far : {"192.0.2.1", "2001:db8::1"}) {
    const auto own = address_towards(far, 9);
    if (own && !own->starts_with("127.") && *own != "::1") return *own;
  }
  return "";
}

std::string in_url(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

class ClusterInit final : public Command {
 public:
  ClusterInit() : Command("init", "Make this machine the controller of a new cluster") {
    needs_server = false;
    details =
        "Run it as root. Writes what is missing: configuration, SSH key, state directory, systemd "
        "unit; starts the\n"
        "daemon, waits until it is ready, and shows the line that a new machine runs to join. What "
        "is there stays as\n"
        "it is, so it may be run again. New machines of a new cluster wait for clusterctl node "
        "accept, unless\n"
        "--accept-policy always.\n"
        "--node: this machine becomes a node, too; it is commissioned with --controller-host, "
        "because the controller\n"
        "would be working on itself.\n"
        "Example: clusterctl cluster init --node m1 --host-group service-master --availability "
        "active";
  }

  void options(Options& o) override {
    o.value("--listen", "HOST:PORT", listen_,
            fmt::format("address for joins and clients, with TLS beyond loopback; default {}; "
                        "none: the socket only",
                        kDefaultListen));
    o.value("--accept-policy", "WORD", policy_,
            "always: machines that join are accepted; manual: they wait; default of a new cluster: "
            "manual")
        .choices = {"always", "manual"};
    o.value("--cluster-name", "NAME", cluster_, "name of a new cluster; default: default");
    o.value("--node", "NAME", node_, "make this machine a node of that name");
    o.value("--addr", "ADDRESS", addr_,
            "address of this machine for nodes and clients; default: of its default route");
    o.value("-g,--host-group", "GROUP", group_, "with --node: its host group");
    o.value("--availability", "WORD", availability_, "with --node: active, pause or drain")
        .choices = {"active", "pause", "drain"};
    o.value("--config", "FILE", config_, fmt::format("default {}", kDefaultConfig));
    o.value("--state-dir", "DIR", state_dir_, "default /var/lib/clusterctl");
    o.value("--socket", "PATH", socket_, "for a new configuration; default /run/clusterctl/…");
    o.flag("--no-start", no_start_, "do not start the daemon, say how");
    o.value("--root", "DIR", root_, "with --node: the system below this folder is the node");
  }

  Result<int> run(Session& session) override {
    if (auto ok = check_root_user(); !ok) return fail(ok.error());
    if (node_.empty() && (!group_.empty() || !availability_.empty()))
      return fail(Code::kInvalid, "usage", "--host-group and --availability belong to --node",
                  "clusterctl cluster init --help");
    if (addr_.empty()) addr_ = primary_address();
    // Everything is looked at before anything is written.
    auto place = plan_controller(wish());
    if (!place) return fail(place.error());
    if (auto ok = check_own_machine(); !ok) return fail(ok.error());
    auto rest = connect(session, *place);
    if (!rest) return fail(rest.error());
    const bool runs = send(**rest, "GET", "/readyz").has_value();
    if (auto ok = runs ? check_running(*place) : check_controller(*place); !ok)
      return fail(ok.error());
    std::vector<std::string> done;
    const auto written = write_controller(*place, runs ? "" : first_policy(), done);
    for (const std::string& what : done) tell(session, what);
    if (!written) return fail(written.error());
    if (!runs) {
      if (auto ok = start(session, *place, **rest); !ok) return fail(ok.error());
    }
    if (auto ok = add_own_node(session, **rest); !ok) return fail(ok.error());
    if (auto ok = set_policy(**rest); !ok) return fail(ok.error());
    return show(session, *place, **rest);
  }

 private:
  static void tell(Session& session, const std::string& what) {
    if (!session.structured() && !session.names_only()) session.line(what);
  }

  ControllerWish wish() const {
    std::error_code ec;
    ControllerWish wish{config_, state_dir_, socket_, listen_, cluster_, {}};
    if (listen_ == "none") wish.listen.clear();
    if (listen_.empty() && !fs::exists(config_, ec)) wish.listen = kDefaultListen;
    if (!addr_.empty()) wish.names.push_back(addr_);
    if (auto facts = read_machine_facts("/"); facts && !facts->name.empty())
      wish.names.push_back(facts->name);
    return wish;
  }

  // Machines that come by themselves are looked at first, unless somebody says otherwise.
  std::string first_policy() const { return policy_.empty() ? "manual" : policy_; }

  Status check_own_machine() const {
    if (node_.empty()) return {};
    if (addr_.empty())
      return fail(Code::kInvalid, "usage", "no address of this machine is known",
                  "give the one by which nodes reach it: --addr ADDRESS");
    if (auto facts = read_machine_facts(root_); !facts) return fail(facts.error());
    return {};
  }

  // What answers at that socket has its state somewhere else: nothing of this would be its own.
  static Status check_running(const ControllerPlace& place) {
    if (has_state(place)) return {};
    return fail(Code::kConflict, "other_state",
                fmt::format("a daemon runs at unix:{}, and its state is not in {}",
                            place.socket.string(), place.state_dir.string()),
                "give the --config and --state-dir that it was started with, or another --socket");
  }

  static Result<client::Response> send(client::RestClient& rest, const std::string& method,
                                       const std::string& path, Json body = nullptr,
                                       client::KeepGoing keep_going = nullptr) {
    client::Request request{method, path, {}, std::nullopt, {}, std::move(keep_going)};
    if (!body.is_null()) request.body = std::move(body);
    return rest.send(request);
  }

  static Result<std::unique_ptr<client::RestClient>> connect(Session& session,
                                                             const ControllerPlace& place) {
    client::Settings settings;
    settings.user_agent = "clusterctl/" + session.version;
    auto endpoint = client::parse_endpoint("unix:" + place.socket.string());
    if (!endpoint) return fail(endpoint.error());
    settings.endpoints = {std::move(*endpoint)};
    return session.connect(std::move(settings));
  }

  Status start(Session& session, const ControllerPlace& place, client::RestClient& rest) const {
    // Once more: now with the key.
    ControllerPlace written = place;
    written.text.clear();
    if (auto ok = check_controller(written); !ok) return ok;
    if (no_start_ || !has_systemd()) {
      return fail(Code::kUnavailable, "not_started",
                  no_start_ ? "the daemon does not run yet" : "there is no systemd to start it",
                  fmt::format("start it: {}; then the same command again", start_command(place)));
    }
    std::vector<std::string> done;
    const auto started = start_by_systemd(place, done);
    for (const std::string& what : done) tell(session, what);
    if (!started) return started;
    const auto end = session.timer.now() + kReadyWait;
    for (;;) {
      auto ready = send(rest, "GET", "/readyz");
      if (ready) return {};
      if (session.timer.now() > end)
        return fail(Code::kUnavailable, "not_ready",
                    "the daemon is not ready: " + ready.error().message,
                    "journalctl -u clusterctl tells why; then the same command again");
      session.timer.sleep(kReadyAgain);
    }
  }

  // Of a cluster that is there only what was said in so many words.
  Status set_policy(client::RestClient& rest) const {
    if (policy_.empty()) return {};
    const auto done = send(rest, "PATCH", "/v1/cluster", {{"accept_policy", policy_}});
    if (!done) return fail(done.error());
    return {};
  }

  // Options of a node that is there would have no effect: said, not ignored.
  Status check_known(const Json& spec) const {
    if (text(spec, "addr") != addr_)
      return fail(Code::kConflict, "name_taken",
                  fmt::format("{} is a node already, at {}", node_, text(spec, "addr")),
                  "choose another name");
    const std::string group = text(spec, "host_group"), availability = text(spec, "availability");
    if ((group_.empty() || group_ == group) &&
        (availability_.empty() || availability_ == availability))
      return {};
    return fail(Code::kConflict, "name_taken",
                fmt::format("{} is a node already, with host group {} and availability {}", node_,
                            group.empty() ? "(none)" : group, availability),
                "leave --host-group and --availability out; clusterctl node update, node activate, "
                "node pause and node drain change them");
  }

  Status add_own_node(Session& session, client::RestClient& rest) {
    if (node_.empty()) return {};
    auto lock = MachineLock::acquire(root_);
    if (!lock) return fail(lock.error());
    const auto undone = undo_leftover(root_);
    if (!undone) return fail(undone.error());
    if (!undone->empty()) session.note(*undone);
    auto known = send(rest, "GET", "/v1/nodes/" + client::escape(node_));
    if (!known && known.error().code != Code::kNotFound) return fail(known.error());
    if (known) {
      record_ = std::move(known->json);
      if (auto ok = check_known(field(record_, "spec")); !ok) return ok;
      // Somebody else's way in is his business.
      if (text(field(field(record_, "spec"), "ssh"), "user") != kManagementUserName) return {};
    }
    auto key = public_key(rest);
    if (!key) return fail(key.error());
    const auto prepared =
        prepare_management({root_, kManagementUserName, *key, "clusterctl-controller"});
    if (!prepared) return fail(prepared.error());
    session.terminal.watch_ends(true);
    auto entered = enter(session, rest, *prepared);
    session.terminal.watch_ends(false);
    if (!entered) return entered;
    for (const MachineStep& s : prepared->steps) tell(session, "done: " + s.what);
    if (!known) tell(session, fmt::format("this machine is node {}", text(record_, "name")));
    return {};
  }

  // The daemon is let in, and has this machine as a node; or nothing of it.
  Status enter(Session& session, client::RestClient& rest, const Preparation& prepared) {
    auto facts = read_machine_facts(root_);
    if (!facts) return fail(facts.error());
    if (auto begun = begin_joining(rest.server(), prepared); !begun) return fail(begun.error());
    if (!record_.is_null()) return finish_joining(root_);
    Json spec{{"addr", addr_},
              {"acceptance", "accepted"},
              {"ssh", {{"user", kManagementUserName}, {"host_key", preferred(facts->host_keys)}}}};
    if (!group_.empty()) spec["host_group"] = group_;
    if (!availability_.empty()) spec["availability"] = availability_;
    auto added = send(rest, "POST", "/v1/nodes", {{"name", node_}, {"spec", std::move(spec)}},
                      [&session] { return !session.terminal.interrupted(); });
    if (added) {
      record_ = std::move(added->json);
      return finish_joining(root_);
    }
    Error error = added.error();
    if (error.reason == "interrupted") {
      error.code = Code::kConflict;
      error.message = "stopped by a signal: what was begun on this machine is undone";
      error.hint = "the same command again goes on";
    }
    if (auto undone = abandon_joining(prepared); !undone) {
      error.message += "; " + undone.error().message;
      error.hint = undone.error().hint;
    }
    return fail(std::move(error));
  }

  static std::string preferred(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      if (key.starts_with("ssh-ed25519 ")) return key;
    }
    return keys.front();
  }

  static Result<std::string> public_key(client::RestClient& rest) {
    const auto cluster = send(rest, "GET", "/v1/cluster");
    if (!cluster) return fail(cluster.error());
    std::string key = text(cluster->json, "ssh_public_key");
    if (key.empty())
      return fail(Code::kConflict, "no_ssh_key", "the daemon has no SSH key",
                  "set ssh.private_key in its configuration and restart it");
    return key;
  }

  // Where a new machine finds it; empty: nowhere.
  std::string url(const ControllerPlace& place) const {
    if (place.listen.empty()) return "";
    const size_t colon = place.listen.rfind(':');
    std::string host = place.listen.substr(0, colon);
    if (host == "0.0.0.0" || host == "[::]" || host == "::")
      host = addr_.empty() ? "HOST" : in_url(addr_);
    return fmt::format("{}://{}{}", place.tls ? "https" : "http", host, place.listen.substr(colon));
  }

  // What a person has to know before the join line is of use to other machines.
  static std::string loopback_warning(const ControllerPlace& place) {
    if (place.listen.empty() || !is_loopback_listen(place.listen)) return "";
    return fmt::format(
        "no other machine reaches {}: set listen.tcp to {} in {} (with TLS by itself), restart the "
        "daemon, then the same command again",
        place.listen, kDefaultListen, place.config.string());
  }

  static std::string acceptance(const std::string& policy) {
    return policy == "manual"
               ? "machines that join wait for clusterctl node accept"
               : "machines that join are accepted at once (--accept-policy manual: they wait)";
  }

  Result<int> show(Session& session, const ControllerPlace& place, client::RestClient& rest) const {
    const std::string address = url(place), warning = loopback_warning(place);
    const auto cluster = send(rest, "GET", "/v1/cluster");
    if (!cluster) return fail(cluster.error());
    Json out{{"accept_policy", text(cluster->json, "accept_policy")},
             {"socket", place.socket.string()},
             {"config", place.config.string()}};
    if (!address.empty()) {
      const auto token = send(rest, "POST", "/v1/join-tokens", Json::object());
      if (!token) return fail(token.error());
      const std::string given = text(token->json, "token");
      out["url"] = address;
      out["token"] = given;
      out["ca_fingerprint"] = given.substr(std::min<size_t>(7, given.size()), 64);
      out["expires"] = text(token->json, "expires");
      out["join"] = join_line(address, given);
    }
    if (!warning.empty()) session.note("warning: " + warning);
    if (session.structured()) {
      session.data(out);
      return kExitOk;
    }
    if (session.names_only()) {
      session.line(text(out, "join"));
      return kExitOk;
    }
    session.line(fmt::format("the controller is ready: unix:{}", place.socket.string()));
    if (address.empty()) {
      session.line("it listens on its socket only: no machine can join (listen.tcp)");
    } else {
      session.line(fmt::format("authority: {}", text(out, "ca_fingerprint")));
      session.line(fmt::format("on a new machine, as root, once until {}:",
                               short_time(field(out, "expires"))));
      session.line("  " + text(out, "join"));
      session.line(acceptance(text(out, "accept_policy")));
    }
    if (!node_.empty()) session.next(next());
    return kExitOk;
  }

  // Of this machine as the node that it is now.
  std::string next() const {
    if (text(field(record_, "status"), "lifecycle") == "Allocated") return "clusterctl status";
    const std::string group = text(field(record_, "spec"), "host_group");
    return fmt::format("clusterctl node commission {} --host-group={} --controller-host", node_,
                       group.empty() ? "service-master" : group);
  }

  std::string listen_, policy_, cluster_, node_, addr_, group_, availability_,
      config_ = kDefaultConfig, state_dir_, socket_, root_ = "/";
  bool no_start_ = false;
  Json record_;  // of this machine as a node, when there is one
};

}  // namespace

CommandPtr make_cluster_init() {
  return std::make_unique<ClusterInit>();
}

}  // namespace clusterctl::cli
