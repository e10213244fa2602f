// `cluster init`: this machine becomes the controller and, if asked, its own first node.
#include <fmt/format.h>

#include <algorithm>

#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/cluster_commands.h"
#include "cli/join_token.h"
#include "cli/machine/controller_files.h"
#include "cli/machine/facts.h"
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
    std::vector<std::string> done;
    auto place = prepare(done);
    for (const std::string& what : done) tell(session, what);
    if (!place) return fail(place.error());
    std::error_code ec;
    const bool fresh = !fs::exists(place->state_dir / "clusterctl.db", ec);
    auto rest = start(session, *place);
    if (!rest) return fail(rest.error());
    if (auto ok = set_policy(**rest, fresh); !ok) return fail(ok.error());
    if (auto ok = add_own_node(session, **rest); !ok) return fail(ok.error());
    return show(session, *place, **rest);
  }

 private:
  static void tell(Session& session, const std::string& what) {
    if (!session.structured() && !session.names_only()) session.line(what);
  }

  Result<ControllerPlace> prepare(std::vector<std::string>& done) const {
    std::error_code ec;
    const bool exists = fs::exists(config_, ec);
    ControllerWish wish{config_, state_dir_, socket_, listen_, cluster_, {}};
    if (listen_ == "none") wish.listen.clear();
    if (listen_.empty() && !exists) wish.listen = kDefaultListen;
    if (!addr_.empty()) wish.names.push_back(addr_);
    if (auto facts = read_machine_facts("/"); facts && !facts->name.empty())
      wish.names.push_back(facts->name);
    return prepare_controller(wish, done);
  }

  static Result<client::Response> send(client::RestClient& rest, const std::string& method,
                                       const std::string& path, Json body = nullptr) {
    client::Request request{method, path, {}, std::nullopt, {}};
    if (!body.is_null()) request.body = std::move(body);
    return rest.send(request);
  }

  Result<std::unique_ptr<client::RestClient>> start(Session& session,
                                                    const ControllerPlace& place) const {
    client::Settings settings;
    settings.user_agent = "clusterctl/" + session.version;
    auto endpoint = client::parse_endpoint("unix:" + place.socket.string());
    if (!endpoint) return fail(endpoint.error());
    settings.endpoints = {std::move(*endpoint)};
    auto rest = session.connect(std::move(settings));
    if (send(*rest, "GET", "/readyz")) return rest;
    if (auto ok = check_by_daemon(place); !ok) return fail(ok.error());
    if (no_start_ || !has_systemd()) {
      return fail(Code::kUnavailable, "not_started",
                  no_start_ ? "the daemon does not run yet" : "there is no systemd to start it",
                  fmt::format("start it: {}; then the same command again", start_command(place)));
    }
    std::vector<std::string> done;
    const auto started = start_by_systemd(place, done);
    for (const std::string& what : done) tell(session, what);
    if (!started) return fail(started.error());
    const auto end = session.timer.now() + kReadyWait;
    for (;;) {
      auto ready = send(*rest, "GET", "/readyz");
      if (ready) return rest;
      if (session.timer.now() > end)
        return fail(Code::kUnavailable, "not_ready",
                    "the daemon is not ready: " + ready.error().message,
                    "journalctl -u clusterctl tells why");
      session.timer.sleep(kReadyAgain);
    }
  }

  // Machines that come by themselves are looked at first, unless somebody says otherwise.
  Status set_policy(client::RestClient& rest, bool fresh) const {
    const std::string policy = !policy_.empty() ? policy_ : fresh ? "manual" : "";
    if (policy.empty()) return {};
    const auto done = send(rest, "PATCH", "/v1/cluster", {{"accept_policy", policy}});
    if (!done) return fail(done.error());
    return {};
  }

  // Known already with this name: nothing to do.
  Status add_own_node(Session& session, client::RestClient& rest) const {
    if (node_.empty()) return {};
    if (addr_.empty())
      return fail(Code::kInvalid, "usage", "no address of this machine is known",
                  "give the one by which nodes reach it: --addr ADDRESS");
    auto facts = read_machine_facts(root_);
    if (!facts) return fail(facts.error());
    const auto known = send(rest, "GET", "/v1/nodes/" + client::escape(node_));
    if (known) {
      if (text(field(known->json, "spec"), "addr") != addr_)
        return fail(Code::kConflict, "name_taken",
                    fmt::format("{} is a node already, at {}", node_,
                                text(field(known->json, "spec"), "addr")),
                    "choose another name");
      return {};
    }
    if (known.error().code != Code::kNotFound) return fail(known.error());
    auto key = public_key(rest);
    if (!key) return fail(key.error());
    const auto steps =
        management_steps({root_, kManagementUserName, *key, "clusterctl-controller"});
    if (!steps) return fail(steps.error());
    if (auto taken = take_steps(*steps); !taken) return taken;
    Json spec{{"addr", addr_},
              {"acceptance", "accepted"},
              {"ssh", {{"user", kManagementUserName}, {"host_key", preferred(facts->host_keys)}}}};
    if (!group_.empty()) spec["host_group"] = group_;
    if (!availability_.empty()) spec["availability"] = availability_;
    const auto added =
        send(rest, "POST", "/v1/nodes", {{"name", node_}, {"spec", std::move(spec)}});
    if (!added) {
      undo_steps(*steps);
      return fail(added.error());
    }
    for (const MachineStep& s : *steps) tell(session, "done: " + s.what);
    tell(session, fmt::format("this machine is node {}", text(added->json, "name")));
    return {};
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

  Result<int> show(Session& session, const ControllerPlace& place, client::RestClient& rest) const {
    const std::string address = url(place);
    Json out{{"socket", place.socket.string()}, {"config", place.config.string()}};
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
    }
    if (!node_.empty()) {
      session.next(fmt::format("clusterctl node commission {} --host-group={} --controller-host",
                               node_, group_.empty() ? "service-master" : group_));
    }
    return kExitOk;
  }

  std::string listen_, policy_, cluster_, node_, addr_, group_, availability_,
      config_ = kDefaultConfig, state_dir_, socket_, root_ = "/";
  bool no_start_ = false;
};

}  // namespace

CommandPtr make_cluster_init() {
  return std::make_unique<ClusterInit>();
}

}  // namespace clusterctl::cli
