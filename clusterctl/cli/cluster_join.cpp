// `cluster join` and `cluster leave`: on the machine that becomes a node, or is one no more.
#include <fmt/format.h>

#include <cstdlib>

#include "access/join_token.h"
#include "base/host_name.h"
#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/cluster_commands.h"
#include "cli/machine/facts.h"
#include "cli/machine/joining.h"
#include "cli/machine/management.h"
#include "cli/machine/membership.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/vars.h"
#include "client/curl_client.h"

namespace clusterctl::cli {
namespace {

// "10.0.0.1" and 9007 of "https://10.0.0.1:9007".
std::pair<std::string, int> host_and_port(const std::string& url) {
  std::string rest = url.substr(url.find("://") + 3);
  int port = url.starts_with("https") ? 443 : 80;
  const size_t colon = rest.rfind(':');
  if (colon != std::string::npos && rest.back() != ']') {
    port = std::atoi(rest.c_str() + colon + 1);
    rest.resize(colon);
  }
  return {rest, port};
}

// A client that talks to nobody but the controller whose authority the token names.
Result<std::unique_ptr<client::RestClient>> connect_pinned(Session& session,
                                                           const client::Endpoint& endpoint,
                                                           const std::string& ca) {
  const bool tls = endpoint.url.starts_with("https://");
  if (!tls && !endpoint.local) {
    return fail(Code::kInvalid, "usage",
                fmt::format("{} would carry the token in the clear", endpoint.name),
                "give the https:// address that `clusterctl cluster init` has shown");
  }
  client::Settings settings;
  settings.user_agent = "clusterctl/" + session.version;
  settings.endpoints = {endpoint};
  if (tls) settings.ca_pin = ca;
  return session.connect(std::move(settings));
}

Result<Json> post(client::RestClient& rest, const std::string& path, Json body,
                  client::KeepGoing keep_going = nullptr) {
  auto answer = rest.send({"POST", path, {}, std::move(body), {}, std::move(keep_going)});
  if (!answer) return fail(answer.error());
  if (answer->json.is_object()) return std::move(answer->json);
  return fail(Code::kInternal, "bad_answer",
              fmt::format("{} answered something unexpected", rest.server()),
              "is it a clusterctl daemon?");
}

class ClusterJoin final : public Command {
 public:
  ClusterJoin() : Command("join", "Make this machine a node of a controller") {
    needs_server = false;
    details =
        "Run it as root on the new machine; the controller shows the whole line: clusterctl "
        "cluster init, or clusterctl\n"
        "cluster token create --join. The machine announces its name, address, serial, network "
        "cards and SSH host keys,\n"
        "and lets the controller's key in as a user of its own with sudo. It is refused, or done "
        "as a whole: what is\n"
        "stopped or dies in between is undone, at once or by the next cluster join or leave.\n"
        "Group and labels are a request: the operator grants them with clusterctl node accept.\n"
        "Example: clusterctl cluster join https://10.0.0.1:9007 --token CCTJ-1-…";
  }

  void options(Options& o) override {
    o.argument("URL", url_, "address of the controller: https://HOST:PORT");
    o.value("--token", "TOKEN", token_,
            "join token; @FILE reads it from a file, - from standard input")
        .required = true;
    o.value("--name", "NAME", name_, "name of the node; default: the host name");
    o.value("--addr", "ADDRESS", addr_,
            "address by which the controller reaches it; default: the one it reaches the "
            "controller from");
    o.number("--ssh-port", "PORT", port_, "port of its SSH server; default 22");
    o.value("--user", "NAME", user_,
            "user by which the controller comes, made if it is missing; default clusterctl");
    o.value("-g,--host-group", "GROUP", group_, "host group it would like");
    o.list("--capability,--capabilities", "NAME", capabilities_, "what it would carry", true);
    o.list("--label", "K=V", labels_, "label it would like");
    o.flag("--dry-run", dry_run_, "ask the controller and show what would be done; do nothing");
    o.value("--root", "DIR", root_, "work on the system below this folder: an image");
  }

  Result<int> run(Session& session) override {
    if (auto ok = check_root_user(); !ok) return fail(ok.error());
    if (auto ok = read_arguments(); !ok) return fail(ok.error());
    auto lock = MachineLock::acquire(root_);
    if (!lock) return fail(lock.error());
    auto before = read_membership(root_);
    if (!before) return fail(before.error());
    if (auto ok = take_up(session, *before); !ok) return fail(ok.error());
    auto rest = connect_pinned(session, endpoint_, parsed_.ca);
    if (!rest) return fail(rest.error());
    auto body = announcement();
    if (!body) return fail(body.error());
    (*body)["dry_run"] = true;
    const auto offer = post(**rest, "/v1/join", *body);
    if (!offer) return fail(offer.error());
    const std::string cluster = text(field(*offer, "cluster"), "id");
    if (*before && (*before)->cluster != cluster) return fail(member(**before));
    const ManagementWay way{root_, user_, text(*offer, "public_key"),
                            "clusterctl-" + (cluster.empty() ? "controller" : cluster)};
    const auto prepared = prepare_management(way);
    if (!prepared) return fail(prepared.error());
    if (dry_run_) return show_offer(session, *body, *offer, prepared->steps);
    body->erase("dry_run");
    session.terminal.watch_ends(true);
    auto joined = join_as_a_whole(session, **rest, *body, *prepared, *before);
    session.terminal.watch_ends(false);
    if (!joined) return fail(joined.error());
    return show_joined(session, *joined, prepared->steps);
  }

 private:
  // What an earlier join has left: one that broke off is undone, one that came to its end says by
  // which user the controller comes.
  Status take_up(Session& session, const std::optional<Membership>& before) {
    if (dry_run_) {
      const auto left = find_leftover(root_);
      if (!left) return fail(left.error());
      if (*left) session.note("a join that broke off has left something: it would be undone first");
    } else {
      const auto undone = undo_leftover(root_);
      if (!undone) return fail(undone.error());
      if (!undone->empty()) session.note(*undone);
    }
    if (before && !user_.empty() && user_ != before->user)
      return fail(Code::kConflict, "member",
                  fmt::format("the controller comes to this machine as {}", before->user),
                  "leave --user out, or clusterctl cluster leave first");
    if (user_.empty()) user_ = before ? before->user : "clusterctl";
    return {};
  }

  static Error member(const Membership& m) {
    return {Code::kConflict,
            "member",
            fmt::format("this machine is node {} of cluster {} at {}", m.node, m.cluster_name,
                        m.server),
            "clusterctl cluster leave ends that first",
            {}};
  }

  // The machine is prepared, the controller knows it, and that is written down; or nothing of it.
  Result<Json> join_as_a_whole(Session& session, client::RestClient& rest, const Json& body,
                               const Preparation& prepared,
                               const std::optional<Membership>& before) const {
    const auto attempt = begin_joining(endpoint_.url, prepared);
    if (!attempt) return fail(attempt.error());
    const auto go_on = [&session] { return !session.terminal.interrupted(); };
    auto joined = go_on() ? post(rest, "/v1/join", body, go_on)
                          : Result<Json>(fail(Code::kConflict, "interrupted", "interrupted"));
    if (!joined) return fail(undone(prepared, explained(joined.error())));
    const Membership now{endpoint_.url,
                         parsed_.ca,
                         text(field(*joined, "cluster"), "id"),
                         text(field(*joined, "cluster"), "name"),
                         text(*joined, "node"),
                         text(*joined, "id"),
                         text(*joined, "leave_secret"),
                         user_,
                         prepared.way.public_key,
                         prepared.makes_user || (before && before->made_user),
                         *attempt};
    if (auto written = write_membership(root_, now); !written) {
      // Known there, and nobody here would know it: an announcement that is taken back.
      (void)post(rest, "/v1/join/leave", {{"node", now.id}, {"secret", now.secret}});
      return fail(undone(prepared, written.error()));
    }
    if (auto done = finish_joining(root_); !done) return fail(done.error());
    return joined;
  }

  static Error undone(const Preparation& prepared, Error error) {
    const auto done = abandon_joining(prepared);
    if (done) return error;
    error.message += "; " + done.error().message;
    error.hint = done.error().hint;
    return error;
  }

  Status read_arguments() {
    std::string given = token_;
    if (given == "-" || given.starts_with('@')) {
      const auto content = read_file(given == "-" ? "/dev/stdin" : given.substr(1), 4096);
      if (!content) return fail(content.error());
      given = trim(*content);
    }
    token_ = given;
    auto parsed = access::parse_join_token(given);
    if (!parsed) return fail(parsed.error());
    parsed_ = std::move(*parsed);
    auto endpoint = client::parse_endpoint(url_);
    if (!endpoint) return fail(endpoint.error());
    endpoint_ = std::move(*endpoint);
    if (!endpoint_.socket.empty())
      return fail(Code::kInvalid, "usage", "a machine joins by the network",
                  "the controller's own machine becomes a node by clusterctl cluster init --node "
                  "NAME");
    return {};
  }

  Result<Json> announcement() const {
    auto facts = read_machine_facts(root_);
    if (!facts) return fail(facts.error());
    auto labels = parse_labels(labels_, false);
    if (!labels) return fail(labels.error());
    std::string addr = addr_;
    if (addr.empty()) {
      const auto [host, port] = host_and_port(endpoint_.url);
      auto own = address_towards(host, port);
      if (!own) return fail(own.error());
      addr = std::move(*own);
      if (addr.starts_with("127.") || addr == "::1")
        return fail(Code::kInvalid, "usage",
                    fmt::format("this machine reaches {} by {}, by which nobody else reaches it",
                                endpoint_.name, addr),
                    "give its address with --addr");
    }
    Json wish = Json::object();
    if (!group_.empty()) wish["host_group"] = group_;
    if (!capabilities_.empty()) wish["capabilities"] = capabilities_;
    if (!labels->empty()) wish["labels"] = *labels;
    return Json{{"token", token_},
                {"name", name_.empty() ? facts->name : name_},
                {"addr", addr},
                {"user", user_},
                {"ssh_port", port_.value_or(22)},
                {"serial", facts->serial},
                {"uuid", facts->uuid},
                {"macs", facts->macs},
                {"host_keys", facts->host_keys},
                {"os", facts->os},
                {"requested", std::move(wish)}};
  }

  // When nobody knows whether the controller has heard it.
  static Error explained(Error error) {
    constexpr const char* kMayKnow =
        "the controller may know the machine now: clusterctl node ls there; joining again with a "
        "new token is safe";
    if (error.reason == "connection_lost") error.hint = kMayKnow;
    if (error.reason == "interrupted") {
      error.code = Code::kConflict;
      error.message = "stopped by a signal: what was begun on this machine is undone";
      error.hint = kMayKnow;
    }
    return error;
  }

  static std::string fingerprints(const Json& body) {
    std::vector<std::string> out;
    for (const std::string& key : texts(field(body, "host_keys")))
      out.push_back(ssh_fingerprint(key));
    return join(out, " ");
  }

  Result<int> show_offer(Session& session, const Json& body, const Json& offer,
                         const std::vector<MachineStep>& steps) const {
    Json todo = Json::array();
    for (const MachineStep& s : steps) todo.push_back(s.what);
    if (session.structured()) {
      Json announced = body;
      announced.erase("token");
      announced.erase("dry_run");
      session.data({{"announcement", announced}, {"answer", offer}, {"steps", todo}});
      return kExitOk;
    }
    session.line(fmt::format("the controller would say: {}", text(offer, "message")));
    for (const auto& [what, key] : {std::pair{"name", "name"},
                                    {"address", "addr"},
                                    {"serial", "serial"},
                                    {"uuid", "uuid"},
                                    {"os", "os"}}) {
      if (const std::string value = text(body, key); !value.empty())
        session.line(fmt::format("  {:<9} {}", what, value));
    }
    session.line(fmt::format("  {:<9} {}", "host keys", fingerprints(body)));
    for (const Json& s : todo) session.line(fmt::format("would {}", text(s)));
    session.line("nothing was done");
    return kExitOk;
  }

  Result<int> show_joined(Session& session, const Json& joined,
                          const std::vector<MachineStep>& steps) const {
    if (session.structured()) {
      Json shown = joined;
      shown.erase("leave_secret");
      session.data(shown);
      return kExitOk;
    }
    if (session.names_only()) {
      session.line(text(joined, "node"));
      return kExitOk;
    }
    for (const MachineStep& s : steps) session.line(fmt::format("done: {}", s.what));
    session.line(fmt::format("{} ({}), {}", text(joined, "message"), text(joined, "id"),
                             text(joined, "acceptance")));
    std::vector<std::string> shown;
    if (auto facts = read_machine_facts(root_)) {
      for (const std::string& key : facts->host_keys) shown.push_back(ssh_fingerprint(key));
    }
    session.line(fmt::format("host keys: {}", join(shown, " ")));
    session.next(fmt::format("on the controller: {}", text(joined, "next")));
    return kExitOk;
  }

  std::string url_, token_, name_, addr_, user_, group_, root_ = "/";
  std::vector<std::string> labels_, capabilities_;
  std::optional<int64_t> port_;
  bool dry_run_ = false;
  access::JoinTokenText parsed_;
  client::Endpoint endpoint_;
};

class ClusterLeave final : public Command {
 public:
  ClusterLeave() : Command("leave", "Take this machine out of the controller it has joined") {
    needs_server = false;
    details =
        "Run it as root on the node. A machine that no operator has accepted yet, or that was "
        "removed, leaves at once:\n"
        "the controller's key, the sudo file and the user that the join made are removed. Of one "
        "that was accepted the\n"
        "controller only learns that it asks (condition LeaveRequested); the operator takes it "
        "out: clusterctl node\n"
        "decommission NAME, clusterctl node rm NAME. Then run leave again.\n"
        "--local: the controller will never answer again; nobody is asked.\n"
        "What a join that broke off has left is removed as well.";
  }
  void options(Options& o) override {
    o.flag("--local", local_, "do not ask the controller, only remove its way to this machine");
    o.value("--root", "DIR", root_, "work on the system below this folder: an image");
  }
  Result<int> run(Session& session) override {
    if (auto ok = check_root_user(); !ok) return fail(ok.error());
    auto lock = MachineLock::acquire(root_);
    if (!lock) return fail(lock.error());
    const auto undone = undo_leftover(root_);
    if (!undone) return fail(undone.error());
    if (!undone->empty()) session.line(*undone);
    const auto found = read_membership(root_);
    if (!found) return fail(found.error());
    if (!*found) {
      session.line(undone->empty()
                       ? "this machine has joined no controller: nothing to do"
                       : "the controller may know the machine: clusterctl node ls there");
      return kExitOk;
    }
    const Membership& m = **found;
    if (!local_) {
      auto left = ask(session, m);
      if (!left) return fail(left.error());
      if (!*left) {
        return fail(Code::kConflict, "member",
                    fmt::format("{} was accepted by an operator, who was told that it wants to "
                                "leave",
                                m.node),
                    fmt::format("on the controller: clusterctl node decommission {0} (if it is "
                                "commissioned), clusterctl node rm {0}; then here again",
                                m.node));
      }
    }
    const auto removed =
        remove_management({root_, m.user, m.public_key, ""}, m.made_user && m.user != "root");
    if (!removed) return fail(removed.error());
    if (auto forgotten = forget_membership(root_); !forgotten) return fail(forgotten.error());
    for (const std::string& what : *removed) session.line("removed: " + what);
    session.line(fmt::format("{} has left {}", m.node, m.cluster_name));
    return kExitOk;
  }

 private:
  Result<bool> ask(Session& session, const Membership& m) const {
    auto endpoint = client::parse_endpoint(m.server);
    if (!endpoint) return fail(endpoint.error());
    auto rest = connect_pinned(session, *endpoint, m.ca);
    if (!rest) return fail(rest.error());
    const auto answer = post(**rest, "/v1/join/leave", {{"node", m.id}, {"secret", m.secret}});
    if (answer) return field(*answer, "left") == true;
    Error error = answer.error();
    if (error.code == Code::kUnavailable)
      error.hint =
          "try again later; if the controller is gone for good: clusterctl cluster leave "
          "--local";
    return fail(std::move(error));
  }

  bool local_ = false;
  std::string root_ = "/";
};

}  // namespace

CommandPtr make_cluster_join() {
  return std::make_unique<ClusterJoin>();
}
CommandPtr make_cluster_leave() {
  return std::make_unique<ClusterLeave>();
}

}  // namespace clusterctl::cli
