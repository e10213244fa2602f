// A machine joins, and asks to leave. The rules are in fleet/join.h.
#include "fleet/join.h"

#include <fmt/format.h>

#include "access/join_token.h"
#include "base/ids.h"
#include "base/strings.h"
#include "controller/controller.h"
#include "fleet/conditions.h"
#include "fleet/operation.h"

namespace clusterctl::controller {
namespace {

// A group that does not exist cannot be granted; nobody can be called like a group.
Status check_words(const fleet::Announcement& machine, const catalog::Catalog& catalog) {
  const std::string& group = machine.requested.host_group;
  if (!group.empty() && !catalog.host_group(group)) {
    return fail(Code::kInvalid, "unknown_host_group",
                fmt::format("there is no host group \"{}\"", group),
                "known: " + join(catalog.host_group_names(), ", "));
  }
  if (catalog.host_group(machine.name)) {
    return fail(Code::kInvalid, "reserved_name",
                fmt::format("\"{}\" is the name of a host group", machine.name),
                "choose another name with --name");
  }
  return {};
}

// Of the secret by which the machine of that node may leave, also when its record is gone; "" when
// there was none.
std::string leave_digest(const State& now, const std::string& id) {
  if (const auto node = now.fleet->nodes.find(id); node != now.fleet->nodes.end())
    return node->second.status.requested ? node->second.status.requested->leave_digest : "";
  const auto departed = now.departed.find(id);
  return departed == now.departed.end() ? "" : departed->second.leave_digest;
}

}  // namespace

Result<Joined> Controller::join_machine(const Json& body) {
  // First of all, so that nothing is told to who has no token.
  if (auto token = good_join_token(body); !token) return fail(token.error());
  auto machine = fleet::parse_announcement(body);
  if (!machine) return fail(machine.error());
  if (auto ok = check_words(*machine, deps_.catalog); !ok) return fail(ok.error());
  const auto dry_run = get_bool(body, "dry_run");
  if (!dry_run) return fail(dry_run.error());
  if (deps_.settings.ssh_public_key.empty()) {
    return fail(Code::kConflict, "no_ssh_key",
                "the controller has no SSH key of its own that a machine could let in",
                "set ssh.private_key in the daemon's configuration and restart it");
  }
  MutexLock lock(mutex_);
  auto token = good_join_token(body);  // as it is now: two machines may have brought the last use
  if (!token) return fail(token.error());
  const Time now = deps_.clock.now();
  machine->requested.token = token->id;
  machine->requested.since = now;
  Joined out;
  if (!*dry_run) {
    out.leave_secret = random_base32(access::kJoinTokenSecretSize);
    machine->requested.leave_digest = access::digest(out.leave_secret);
  }
  fleet::Snapshot fleet = *state()->fleet;
  std::set<std::string> changed;
  auto admission = fleet::join_machine(
      fleet, *machine, [this] { return deps_.ids.node_id(); }, now, changed);
  if (!admission) return fail(admission.error());
  out.admission = std::move(*admission);
  out.node = fleet.nodes.at(out.admission.node);
  if (*dry_run) return out;
  Change change;
  change.by = "join:" + token->id;
  change.what = "join " + out.node.name;
  take_changed(fleet, std::move(changed), change);
  out.node = fleet.nodes.at(out.admission.node);
  change.events.push_back({0,
                           {},
                           "node.joined",
                           out.node.name,
                           "",
                           fmt::format("by token {}: {}", token->id, out.admission.message)});
  ++token->used;
  change.join_tokens[token->id] = *token;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  out.node = this->fleet()->nodes.at(out.admission.node);
  return out;
}

Result<bool> Controller::leave_machine(const Json& body) {
  if (auto ok = check_keys(body, {"node", "secret"}, "a request to leave"); !ok)
    return fail(ok.error());
  const auto id = get_string(body, "node"), secret = get_string(body, "secret");
  if (!id) return fail(id.error());
  if (!secret) return fail(secret.error());
  MutexLock lock(mutex_);
  const auto now = state();
  const auto it = now->fleet->nodes.find(*id);
  // One answer to all who have not the secret: whether there is such a node is not theirs to know.
  if (!access::same_digest(leave_digest(*now, *id), access::digest(*secret))) {
    return fail(Code::kForbidden, "wrong_secret", "this is not the machine that joined as the node",
                "it may have joined again since: run it there; if the controller knows it no more: "
                "clusterctl cluster leave --local");
  }
  if (it == now->fleet->nodes.end()) return true;
  const fleet::Node& before = it->second;
  Change change;
  change.by = "node:" + before.name;
  change.reason = "it asks to leave";
  const bool nobodys = !fleet::is_commissioned(before) &&
                       before.spec.acceptance != fleet::Acceptance::kAccepted &&
                       check_not_worked_on(before, true);
  if (nobodys) {
    change.what = "leave " + before.name;
    remove_record(*now, before, "", change);
    if (auto done = commit(std::move(change)); !done) return fail(done.error());
    return true;
  }
  if (fleet::has_condition(before.status, fleet::condition::kLeaveRequested)) return false;
  fleet::Snapshot fleet = *now->fleet;
  fleet::Node& node = fleet.nodes.at(*id);
  fleet::set_condition(
      node, fleet::condition::kLeaveRequested,
      fmt::format("the machine asks to be taken out: {}clusterctl node rm {}",
                  fleet::is_commissioned(node)
                      ? fmt::format("clusterctl node decommission {}, then ", node.name)
                      : "",
                  node.name),
      "", deps_.clock.now());
  take_changed(fleet, {*id}, change);
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return false;
}

}  // namespace clusterctl::controller
