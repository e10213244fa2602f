#include "fleet/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/host_name.h"
#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/evidence.h"
#include "fleet/names.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"
#include "fleet/tombstone.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

constexpr size_t kMaxHostKeys = 16;

void read_host_keys(const Json& body, Announcement& out, Problems& problems) {
  const auto keys = problems.take(get_strings(body, "host_keys"));
  if (keys.empty() || keys.size() > kMaxHostKeys) {
    problems.add(Code::kInvalid, Problem{"bad_host_key",
                                         fmt::format("host_keys must hold 1 to {} public keys of "
                                                     "the machine's SSH server",
                                                     kMaxHostKeys),
                                         "", ""});
  }
  for (size_t i = 0; i < std::min(keys.size(), kMaxHostKeys); ++i) {
    if (keys[i].empty()) continue;
    if (std::string key = problems.take(check_host_key(keys[i])); !key.empty())
      out.host_keys.push_back(std::move(key));
  }
  // The one that SSH servers prefer.
  for (const std::string_view type : {"ssh-ed25519 ", "ecdsa-", "ssh-rsa ", ""}) {
    const auto it = std::find_if(out.host_keys.begin(), out.host_keys.end(),
                                 [&](const std::string& key) { return key.starts_with(type); });
    if (it == out.host_keys.end()) continue;
    out.identity.host_key = *it;
    return;
  }
}

void read_labels(const Json& wish, Requested& out, Problems& problems) {
  const Json labels = problems.take(get_object(wish, "labels"));
  if (!labels.is_object()) return;
  if (labels.size() > kMaxListItems)
    problems.add(Code::kInvalid, Problem{"too_many_labels", "too many labels",
                                         fmt::format("at most {}", kMaxListItems), ""});
  for (const auto& [key, value] : labels.items()) {
    if (!value.is_string()) {
      problems.add(Code::kInvalid,
                   Problem{"wrong_type", fmt::format("label {} must be a string", shown(key)),
                           "quote it", ""});
      continue;
    }
    const std::string text = value.get<std::string>();
    problems.take(check_label(key, text));
    out.labels[key] = text;
  }
}

Requested read_wish(const Json& body, Problems& problems) {
  Requested out;
  out.os = trim(problems.take(get_string(body, "os")));
  if (!is_plain_evidence(out.os))
    problems.add(
        Code::kInvalid,
        Problem{"bad_evidence", fmt::format("os: {} is not plain text", shown(out.os)), "", ""});
  const Json wish = problems.take(get_object(body, "requested"));
  if (!wish.is_object()) return out;
  problems.take(check_keys(wish, {"host_group", "capabilities", "labels"}, "requested"));
  out.host_group = problems.take(get_string(wish, "host_group"));
  if (!out.host_group.empty()) problems.take(check_word(out.host_group, "host group"));
  out.capabilities = problems.take(get_strings(wish, "capabilities"));
  if (out.capabilities.size() > kMaxListItems) {
    problems.add(Code::kInvalid, Problem{"too_many_capabilities", "too many capabilities",
                                         fmt::format("at most {}", kMaxListItems), ""});
    out.capabilities.resize(kMaxListItems);
  }
  for (const std::string& c : out.capabilities) problems.take(check_word(c, "capability"));
  read_labels(wish, out, problems);
  return out;
}

// One announcement, worked off.
class Joining {
 public:
  Joining(Snapshot& fleet, const Announcement& a, const std::function<std::string()>& new_id,
          Time now, std::set<std::string>& changed)
      : fleet_(fleet), a_(a), new_id_(new_id), now_(now), changed_(changed) {}

  Result<Admission> run() {
    if (fleet_.own_host.addresses.count(canonical_addr(a_.addr)) != 0) {
      return refuse(
          "own_host",
          fmt::format("{} is an address of the machine that the controller runs on", a_.addr),
          "give this machine's own with --addr; the controller's machine becomes a node "
          "by `clusterctl cluster init --node NAME`");
    }
    const auto found = alike(fleet_, a_.identity, "");
    if (found.size() > 1) {
      std::vector<std::string> names;
      for (const Node* n : found) names.push_back(n->name);
      return refuse("identity_conflict",
                    fmt::format("this machine has the identity of {}", join(names, " and ")),
                    "an operator has to tell them apart first: clusterctl node ls");
    }
    if (found.size() == 1) return again(fleet_.nodes.at(found[0]->id));
    if (Node* named = of_this_name_and_addr()) return again(*named);
    return make();
  }

 private:
  static tl::unexpected<Error> refuse(std::string reason, std::string message, std::string hint) {
    return fail(Code::kConflict, std::move(reason), std::move(message), std::move(hint));
  }

  const Node* at(const std::string& addr, const std::string& except) const {
    const std::string wanted = canonical_addr(addr);
    for (const auto& [id, node] : fleet_.nodes) {
      if (id != except && canonical_addr(node.spec.addr) == wanted) return &node;
    }
    return nullptr;
  }

  // Somebody put it into the inventory before; nothing is known of its machine yet.
  Node* of_this_name_and_addr() {
    for (auto& [id, node] : fleet_.nodes) {
      if (fleet::same_name(node.name, a_.name) &&
          canonical_addr(node.spec.addr) == canonical_addr(a_.addr) && !is_commissioned(node) &&
          compare_nodes(a_.identity, known_identity(node)) == Likeness::kUnknown)
        return &node;
    }
    return nullptr;
  }

  // The machine of a node, by its identity. It may come back, not change what was pinned.
  Result<Admission> again(Node& n) {
    if (n.spec.acceptance == Acceptance::kRejected)
      return refuse("rejected", fmt::format("{} was rejected", n.name),
                    fmt::format("an operator may decide anew: clusterctl node accept {}", n.name));
    const std::string& pinned = n.spec.ssh.host_key;
    if (!pinned.empty() &&
        std::find(a_.host_keys.begin(), a_.host_keys.end(), pinned) == a_.host_keys.end()) {
      return refuse(
          "host_key_changed",
          fmt::format("this is node {} by its identity, but it has another SSH host key", n.name),
          fmt::format("if it was installed anew, an operator says so: clusterctl node "
                      "forget-hostkey {}",
                      n.name));
    }
    const Identity known = known_identity(n);
    const Likeness likeness =
        compare(known, a_.identity, serial_is_shared(fleet_, known, a_.identity)).likeness;
    if (likeness == Likeness::kReplaced || likeness == Likeness::kDifferent) {
      return refuse("hardware_replaced",
                    fmt::format("this is node {} on other hardware (serial {} → {})", n.name,
                                shown(known.serial), shown(a_.identity.serial)),
                    fmt::format("an operator looks and confirms it: clusterctl node check {0}, "
                                "then clusterctl node confirm-hardware {0}",
                                n.name));
    }
    const bool moves = canonical_addr(n.spec.addr) != canonical_addr(a_.addr);
    if (moves) {
      if (auto ok = may_move(n); !ok) return fail(ok.error());
    }
    take_over(n, moves);
    return Admission{moves ? Finding::kMoved : Finding::kKnown, n.id, told(n, moves)};
  }

  Status may_move(const Node& n) const {
    if (const Node* owner = at(a_.addr, n.id)) {
      return refuse("addr_taken",
                    fmt::format("{} is the address of node {}, and this is node {} by its identity",
                                a_.addr, owner->name, n.name),
                    "give this machine's own address with --addr");
    }
    const bool gone = n.status.presence == Presence::kDisappeared ||
                      (n.status.presence == Presence::kUnknown && !is_commissioned(n));
    if (gone) return {};
    return refuse(
        "identity_conflict",
        fmt::format("this is node {} by its identity, which is known at {}", n.name, n.spec.addr),
        fmt::format("if it has moved, an operator says so: clusterctl node move {} {}", n.name,
                    a_.addr));
  }

  void take_over(Node& n, bool moves) {
    changed_.insert(n.id);
    const std::string from = n.spec.addr;
    NodeSpec spec = n.spec;
    spec.addr = a_.addr;
    if (!is_commissioned(n)) {
      if (spec.ssh.host_key.empty()) spec.ssh.host_key = a_.identity.host_key;
      if (spec.acceptance == Acceptance::kPending || spec.ssh.user.empty()) spec.ssh.user = a_.user;
      if (spec.acceptance == Acceptance::kPending) spec.ssh.port = a_.ssh_port;
    }
    set_spec(n, std::move(spec));
    if (moves) note_move(n, from, now_);
    clear_condition(n, condition::kLeaveRequested);
    record(n);
  }

  // What a run has seen of the machine is worth more than what it says: an announcement changes
  // the identity only as long as there is nothing else to go by.
  void record(Node& n) {
    if (!n.status.hardware && !is_commissioned(n)) {
      Identity seen = a_.identity;
      if (!n.spec.ssh.host_key.empty()) seen.host_key = n.spec.ssh.host_key;
      learn(n, seen);
    }
    set_presence(n, Presence::kDiscovered, now_);
    n.status.requested = a_.requested;
    ++n.resource_version;
  }

  std::string told(const Node& n, bool moves) const {
    std::string out = moves ? fmt::format("this is node {}, at {} now", n.name, a_.addr)
                            : fmt::format("this is node {} already", n.name);
    if (!fleet::same_name(n.name, a_.name))
      out +=
          fmt::format("; `clusterctl node rename {} {}` takes its new name over", n.name, a_.name);
    return out;
  }

  Result<Admission> make() {
    NewNode wanted;
    wanted.name = a_.name;
    wanted.spec.addr = a_.addr;
    wanted.spec.ssh.user = a_.user;
    wanted.spec.ssh.port = a_.ssh_port;
    wanted.spec.ssh.host_key = a_.identity.host_key;
    auto made = add_node(fleet_, wanted, new_id_(), now_);
    if (!made) return fail(made.error());
    record(*made);
    mark_returned(fleet_, *made, now_);
    const std::string id = made->id;
    changed_.insert(id);
    const Node& n = fleet_.nodes[id] = std::move(*made);
    return Admission{Finding::kNew, id,
                     n.spec.acceptance == Acceptance::kPending
                         ? fmt::format("new node {}; it waits for an operator", n.name)
                         : fmt::format("new node {}", n.name)};
  }

  Snapshot& fleet_;
  const Announcement& a_;
  const std::function<std::string()>& new_id_;
  Time now_;
  std::set<std::string>& changed_;
};

}  // namespace

Result<Announcement> parse_announcement(const Json& body) {
  Problems problems;
  problems.take(check_keys(body,
                           {"token", "dry_run", "name", "addr", "user", "ssh_port", "serial",
                            "uuid", "macs", "host_keys", "os", "requested"},
                           "the announcement"));
  Announcement out;
  out.name = normal_host_name(trim(problems.take(get_string(body, "name"))));
  problems.take(check_name(out.name));
  out.addr = trim(problems.take(get_string(body, "addr")));
  problems.take(check_addr(out.addr));
  if (is_loopback(out.addr))
    problems.add(Code::kInvalid,
                 Problem{"bad_addr", fmt::format("{} is every machine itself", out.addr),
                         "give the address by which the controller reaches it", ""});
  out.user = problems.take(get_string(body, "user", kManagementUser));
  if (out.user.empty()) out.user = kManagementUser;
  problems.take(check_ssh_user(out.user));
  const int64_t port = problems.take(get_int(body, "ssh_port", 22));
  if (auto ok = check_ssh_port(port); !ok) {
    problems.add(ok.error());
  } else {
    out.ssh_port = static_cast<int>(port);
  }
  out.identity = parse_evidence(body, "the announcement", problems);
  read_host_keys(body, out, problems);
  out.requested = read_wish(body, problems);
  if (!problems.empty()) return problems.refuse("nothing is recorded");
  return out;
}

Result<Admission> join_machine(Snapshot& fleet, const Announcement& machine,
                               const std::function<std::string()>& new_id, Time now,
                               std::set<std::string>& changed) {
  return Joining(fleet, machine, new_id, now, changed).run();
}

}  // namespace clusterctl::fleet
