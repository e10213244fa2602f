#include <fmt/format.h>

#include <algorithm>

#include "base/host_name.h"
#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/names.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

bool lives(const Node& node) {
  return node.status.presence == Presence::kDiscovered;
}

// A report that says nothing by which machines are told apart fits whoever has the name.
bool apart(const Identity& seen, const Node& node) {
  return compare_nodes(seen, known_identity(node)) == Likeness::kDifferent;
}

bool name_is_taken(const Snapshot& fleet, const std::string& name) {
  return fleet.nodes.count(name) != 0 ||
         std::any_of(fleet.nodes.begin(), fleet.nodes.end(),
                     [&](const auto& n) { return same_name(n.second.name, name); });
}

// "web.example.com" and "SB2" → "web-sb2.example.com", cut so that it is a name.
std::string distinguished(const std::string& name, std::string suffix) {
  constexpr size_t kMaxName = 63;
  for (char& c : suffix) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '-';
  }
  suffix = "-" + suffix.substr(0, 32);
  const size_t dot = is_ip(name) ? std::string::npos : name.find('.');
  const std::string domain = dot == std::string::npos ? "" : name.substr(dot);
  if (suffix.size() + domain.size() >= kMaxName) return "";
  return name.substr(0, std::min(dot, kMaxName - suffix.size() - domain.size())) + suffix + domain;
}

const Node* by_addr(const Snapshot& fleet, const std::string& addr, std::string_view except = "") {
  if (addr.empty()) return nullptr;
  const std::string wanted = canonical_addr(addr);
  for (const auto& [id, node] : fleet.nodes) {
    // Plain IPv4 has one spelling, and most addresses are that.
    const std::string& its = node.spec.addr;
    const bool plain = its.find_first_not_of("0123456789.") == std::string::npos;
    if (id != except && (plain ? its == wanted : canonical_addr(its) == wanted)) return &node;
  }
  return nullptr;
}

const Node* by_label(const Snapshot& fleet, const std::string& name) {
  if (const Node* exact = fleet.by_name(name)) return exact;
  const Node* found = nullptr;
  for (const auto& [id, node] : fleet.nodes) {
    if (!same_name(node.name, name)) continue;
    if (found) return nullptr;  // ambiguous
    found = &node;
  }
  return found;
}

void move_to(Node& node, const std::string& addr, Time now) {
  const std::string from = node.spec.addr;
  NodeSpec spec = node.spec;
  spec.addr = addr;
  set_spec(node, std::move(spec));
  note_move(node, from, now);
  set_presence(node, Presence::kDiscovered, now);
}

// One report, worked off.
class Discovery {
 public:
  Discovery(Snapshot& fleet, const Sighting& s, const std::function<std::string()>& new_id,
            Time now, std::set<std::string>& changed)
      : fleet_(fleet), s_(s), new_id_(new_id), now_(now), changed_(changed) {}

  Recognized run() {
    const auto found = alike(fleet_, s_.identity, "");
    if (found.size() > 1) return several(found);
    if (found.size() == 1) return known(found[0]->id);
    if (const Node* there = by_addr(fleet_, s_.addr)) return at_address(*there);
    if (const Node* named = by_label(fleet_, s_.name)) {
      if (!apart(s_.identity, *named)) return known(named->id);
    }
    return make();
  }

 private:
  Node& node(const std::string& id) { return fleet_.nodes.at(id); }
  Recognized answer(Finding finding, const std::string& id, std::string message) {
    return {finding, id, std::move(message)};
  }

  // They are in conflict already. The one at this address is alive.
  Recognized several(const std::vector<const Node*>& found) {
    std::vector<std::string> names;
    for (const Node* n : found) {
      names.push_back(n->name);
      if (same_addr(n->spec.addr, s_.addr)) seen(node(n->id));
    }
    return answer(Finding::kConflict, found[0]->id,
                  fmt::format("{} have this identity", join(names, " and ")));
  }

  void seen(Node& n) {
    changed_.insert(n.id);
    set_presence(n, Presence::kDiscovered, now_);
  }

  Recognized known(const std::string& id) {
    Node& n = node(id);
    if (n.spec.acceptance == Acceptance::kRejected)
      return answer(Finding::kIgnored, id, fmt::format("{} was rejected", n.name));
    if (!same_addr(n.spec.addr, s_.addr)) return elsewhere(n);
    return here(n);
  }

  Recognized here(Node& n) {
    seen(n);
    return judged(n, Finding::kKnown, name_note(n));
  }

  Recognized judged(Node& n, Finding finding, std::string message) {
    const Identity before = known_identity(n);
    const bool shared = serial_is_shared(fleet_, before, s_.identity);
    const LikenessRow& row = compare(before, s_.identity, shared);
    back_at_its_address(n, row.likeness);
    judge(n, row, s_.identity, "", now_);
    if (const Condition* c = find_condition(n.status, condition::kHardwareReplaced))
      return answer(Finding::kReplaced, n.id, c->reason);
    return answer(finding, n.id, std::move(message));
  }

  std::string name_note(const Node& n) const {
    if (s_.name.empty() || name_is_taken(fleet_, s_.name)) return "known as " + n.name;
    return fmt::format("known as {}; `clusterctl node rename {} {}` takes its new name over",
                       n.name, n.name, s_.name);
  }

  // The machine of a node, at another address.
  Recognized elsewhere(Node& n) {
    const Node* owner = by_addr(fleet_, s_.addr, n.id);
    if (lives(n) || owner) {
      changed_.insert(n.id);
      n.status.elsewhere = Elsewhere{s_.addr, s_.name, now_};
      if (owner && changed_places(n)) {
        return judged(n, Finding::kMoved,
                      fmt::format("{} is at {} now: nodes have changed places", n.name, s_.addr));
      }
      return answer(Finding::kConflict, n.id,
                    owner ? fmt::format("this is {} by its identity, at the address of {}", n.name,
                                        owner->name)
                          : fmt::format("this is {} by its identity, which answers at {} as well",
                                        n.name, n.spec.addr));
    }
    const std::string from = n.spec.addr;
    changed_.insert(n.id);
    move_to(n, s_.addr, now_);
    return judged(n, Finding::kMoved, fmt::format("{} has moved from {}", n.name, from));
  }

  // Machines of which each is where the next one was: they have moved, all at once. Each report has
  // to be newer than the last sight of its node at the old address.
  bool changed_places(const Node& first) {
    std::map<std::string, std::string> to;  // node -> its new address
    for (const Node* n = &first; to.count(n->id) == 0;) {
      const auto& other = n->status.elsewhere;
      if (!other || other->since <= n->status.last_seen.value_or(Time{})) return false;
      to[n->id] = other->addr;
      n = by_addr(fleet_, other->addr, n->id);
      if (!n) return false;
      if (n == &first) break;
      if (to.count(n->id) != 0) return false;  // a ring of others
    }
    for (const auto& [id, addr] : to) {
      changed_.insert(id);
      move_to(node(id), addr, now_);
    }
    return true;
  }

  // The address of a node, and nothing that says it is this node.
  Recognized at_address(const Node& there) {
    Node& n = node(there.id);
    // Name and address have stayed: all that a report can show of a blade that was exchanged.
    if (!apart(s_.identity, n) || same_name(n.name, s_.name)) return known(n.id);
    changed_.insert(n.id);
    n.status.elsewhere = Elsewhere{s_.addr, s_.name, now_};
    return answer(
        Finding::kConflict, n.id,
        fmt::format("{} is the address of {}, which is another machine", s_.addr, n.name));
  }

  // A machine that is told from the owner of its name gets a name of its own: nobody is overlooked.
  std::string free_name(const std::string& new_id) const {
    if (!name_is_taken(fleet_, s_.name)) return s_.name;
    if (!has_evidence(s_.identity)) return "";
    std::vector<std::string> suffixes{usable_serial(s_.identity.serial),
                                      usable_uuid(s_.identity.uuid)};
    for (const std::string& mac : s_.identity.macs) suffixes.push_back(usable_mac(mac));
    suffixes.push_back(new_id);
    for (const std::string& suffix : suffixes) {
      if (suffix.empty()) continue;
      const std::string name = distinguished(s_.name, suffix);
      if (check_name(name) && !name_is_taken(fleet_, name)) return name;
    }
    return "node-" + new_id;
  }

  Recognized make() {
    NewNode wanted;
    const std::string new_id = new_id_();
    wanted.name = free_name(new_id);
    if (wanted.name.empty()) {
      return answer(Finding::kIgnored, "",
                    fmt::format("the name {} fits several nodes and the report says nothing else: "
                                "report the full name, or the serial number",
                                s_.name));
    }
    wanted.spec.addr = s_.addr;
    auto made = add_node(fleet_, wanted, new_id, now_);
    if (!made) return answer(Finding::kIgnored, "", made.error().message);
    learn(*made, s_.identity);
    set_presence(*made, Presence::kDiscovered, now_);
    changed_.insert(made->id);
    const std::string id = made->id;
    Node& n = fleet_.nodes[id] = std::move(*made);
    return answer(Finding::kNew, id,
                  fmt::format("new node {}, {}", n.name, word(n.spec.acceptance)));
  }

  Snapshot& fleet_;
  const Sighting& s_;
  const std::function<std::string()>& new_id_;
  Time now_;
  std::set<std::string>& changed_;
};

// A machine that only has the name or the address of the node. One with both is the node on other
// hardware.
bool is_stranger(const Sighting& s, const Node& node) {
  const bool there = same_addr(node.spec.addr, s.addr), named = same_name(node.name, s.name);
  if (there && named) return false;
  const auto& other = node.status.elsewhere;
  return apart(s.identity, node) ||
         (there && other && same_addr(other->addr, s.addr) && same_name(other->name, s.name));
}

// What it did to the node, if anything, is over; the node itself is where it was.
Recognized stranger_gone(const Sighting& s, Node& node, std::set<std::string>& changed) {
  const auto& other = node.status.elsewhere;
  if (!other || !same_addr(other->addr, s.addr))
    return {Finding::kIgnored, node.id, fmt::format("it is another machine than {}", node.name)};
  node.status.elsewhere.reset();
  changed.insert(node.id);
  return {Finding::kKnown, node.id,
          fmt::format("the other machine at the address of {} is gone", node.name)};
}

}  // namespace

std::string_view word(Finding finding) {
  switch (finding) {
    case Finding::kKnown:
      return "known";
    case Finding::kMoved:
      return "moved";
    case Finding::kReplaced:
      return "replaced";
    case Finding::kNew:
      return "new";
    case Finding::kConflict:
      return "conflict";
    case Finding::kIgnored:
      break;
  }
  return "ignored";
}

std::string normal_label(std::string_view label) {
  return normal_host_name(trim(label));
}

Recognized discovered(Snapshot& fleet, const Sighting& sighting,
                      const std::function<std::string()>& new_id, Time now,
                      std::set<std::string>& changed) {
  return Discovery(fleet, sighting, new_id, now, changed).run();
}

Recognized disappeared(Snapshot& fleet, const Sighting& s, Time now,
                       std::set<std::string>& changed) {
  const auto found = alike(fleet, s.identity, "");
  const auto there = std::find_if(found.begin(), found.end(), [&](const Node* n) {
    return !s.addr.empty() && same_addr(n->spec.addr, s.addr);
  });
  const Node* node = there != found.end() ? *there : found.empty() ? nullptr : found[0];
  if (!node) node = by_addr(fleet, s.addr);
  if (!node) node = by_label(fleet, s.name);
  if (!node) return {Finding::kIgnored, "", "no node is known by this"};
  Node& n = fleet.nodes.at(node->id);
  if (found.empty() && is_stranger(s, n)) return stranger_gone(s, n, changed);
  if (!s.addr.empty() && !same_addr(n.spec.addr, s.addr)) {
    if (!n.status.elsewhere || !same_addr(n.status.elsewhere->addr, s.addr))
      return {Finding::kIgnored, n.id, fmt::format("{} is at {}", n.name, n.spec.addr)};
    n.status.elsewhere.reset();
    changed.insert(n.id);
    return {Finding::kKnown, n.id, fmt::format("the other machine like {} is gone", n.name)};
  }
  record_presence(fleet, n.id, Presence::kDisappeared, now, changed);
  return {Finding::kKnown, n.id, "known as " + n.name};
}

void record_presence(Snapshot& fleet, const std::string& id, Presence presence, Time now,
                     std::set<std::string>& changed, std::optional<Time> answered) {
  const auto it = fleet.nodes.find(id);
  if (it == fleet.nodes.end()) return;
  Node& node = it->second;
  const auto& other = node.status.elsewhere;
  const bool moved = presence == Presence::kDisappeared && other &&
                     !same_addr(other->addr, node.spec.addr) && !by_addr(fleet, other->addr, id);
  if (set_presence(node, presence, now)) changed.insert(id);
  if (presence == Presence::kDisappeared && answered &&
      *answered > node.status.last_seen.value_or(Time{})) {
    node.status.last_seen = answered;
  }
  if (moved) move_to(node, std::string(other->addr), now);
}

}  // namespace clusterctl::fleet
