// What a report about a machine means for the fleet: which node it is, or that it is a new one, or
// that two machines claim one identity. Works on a copy of the fleet that its caller owns; the
// caller commits what has changed. Pure, any thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fleet/identity.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

// A machine as a monitor reports it.
struct Sighting {
  std::string name;  // its label; normalised
  std::string addr;
  Identity identity;
};

enum class Finding {
  kKnown,     // a node of the fleet, where it is expected
  kMoved,     // a node, at a new address that it has now
  kReplaced,  // a node on other hardware: somebody has to confirm it
  kNew,       // a node was made
  kConflict,  // not told apart from a node that answers elsewhere: nothing was made or moved
  kIgnored    // unknown and gone, or rejected
};
std::string_view word(Finding finding);

struct Recognized {
  Finding finding = Finding::kIgnored;
  std::string node;     // id, or empty
  std::string message;  // one line
};

// A label as every comparison uses it: lower case, no spaces around it, no dot at its end.
std::string normal_label(std::string_view label);

// `new_id` is asked when a node has to be made. Changed nodes are noted in `changed` (ids).
Recognized discovered(Snapshot& fleet, const Sighting& sighting,
                      const std::function<std::string()>& new_id, Time now,
                      std::set<std::string>& changed);
Recognized disappeared(Snapshot& fleet, const Sighting& sighting, Time now,
                       std::set<std::string>& changed);

// The prober's word about one node. A node that went away while its machine was reported elsewhere
// has moved there. `answered`: when it was seen last.
void record_presence(Snapshot& fleet, const std::string& id, Presence presence, Time now,
                     std::set<std::string>& changed, std::optional<Time> answered = std::nullopt);

// What `seen` means for the node when `row` says how it compares with what was accepted: sets or
// clears HardwareReplaced, raises NeedsVerification, takes over what is new. True: it has changed.
bool judge(Node& node, const LikenessRow& row, const Identity& seen, const std::string& job,
           Time now);
// What is new fills in; what was accepted stays where the report is silent.
bool learn(Node& node, const Identity& seen);
// The node's machine is seen where it is expected: whoever reported that address is not there any
// more. `likeness`: of the machine that is there. True: it has changed.
bool back_at_its_address(Node& node, Likeness likeness);
bool serial_is_shared(const Snapshot& fleet, const Identity& a, const Identity& b);

// After the facts of `node` (hardware, host key) were recorded: compares with what was accepted.
void recognize_facts(Snapshot& fleet, const std::string& id, const std::string& job, Time now,
                     std::set<std::string>& changed);

// Sets and clears IdentityConflict of `ids`, of those that are alike, and of those that have it.
void settle_conflicts(Snapshot& fleet, const std::set<std::string>& ids, Time now,
                      std::set<std::string>& changed);

// The operator says that the hardware seen now is this node's.
Status confirm_hardware(Snapshot& fleet, const std::string& id, Time now,
                        std::set<std::string>& changed);

// Its address is another one now: what managers have recorded of it is old.
void note_move(Node& node, const std::string& from, Time now);
// Another name of an uncommissioned node. kConflict "commissioned", "name_taken"; kInvalid.
Status rename_node(Snapshot& fleet, const std::string& id, const std::string& name,
                   std::set<std::string>& changed);

// What ends the IdentityConflict of `node`.
std::string conflict_hint(const Node& node);
// None of `managers` can be worked through: they do not answer (`silent` says what for), or they
// are in conflict.
Problem no_manager_to_ask(const std::vector<const Node*>& managers, std::string silent);
// Why work of this kind must not touch the node, as a problem with a way out; nullopt: it may.
// Looking (check, verify, observe) is how such a state ends; `powered_off` work goes to survivors.
std::optional<Problem> identity_block(const Node& node, std::string_view kind, bool powered_off);

}  // namespace clusterctl::fleet
