// Which machine is this? Decided from evidence, never from a name: serial number, system UUID, MAC
// addresses and SSH host key. The rules are one table (likeness_table), shown in docs/identity.md.
// Values that many machines share (placeholders of vendors, the serial of an enclosure) are no
// evidence. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/snapshot.h"

namespace clusterctl::fleet {

// How one piece of evidence of two sides compares; kUnknown: one side has none.
enum class Match { kEqual, kDiffers, kUnknown };

// What two sets of evidence say about the machines behind them.
enum class Likeness {
  kSame,         // one machine
  kReinstalled,  // one machine with a new operating system: another host key
  kReplaced,     // one node on other hardware: a service profile on another blade, a new board
  kDifferent,    // two machines
  kUnknown       // nothing that could be compared
};
std::string_view word(Likeness likeness);

// One row: '=' equal, '!' differs, '?' unknown, '*' whatever. The first row that fits decides.
struct LikenessRow {
  std::string_view serial, uuid, macs, host_key;
  Likeness likeness;
  std::string_view meaning;
};
const std::vector<LikenessRow>& likeness_table();
// The row for these four.
const LikenessRow& likeness_row(Match serial, Match uuid, Match macs, Match host_key);

// What vendors write where a value is missing, in any case.
bool is_placeholder(std::string_view text);
// One spelling: "4c4c4544-0031-…" of a UUID in braces, as URN or without dashes; "00:25:b5:…" of an
// address with other separators or none, of 6, 8 or 20 octets. "" when it is not one.
std::string normal_uuid(std::string_view text);
std::string normal_mac(std::string_view text);
// "" for what is no evidence: empty, placeholders of vendors, all the same character. Else the
// spelling to compare.
std::string usable_serial(std::string_view serial);
std::string usable_uuid(std::string_view uuid);
std::string usable_mac(std::string_view mac);

// What was accepted of a node with what is seen now at its address, where its pinned host key has
// answered. `ignore_serial`: it is known to be shared (shared_serial).
const LikenessRow& compare(const Identity& a, const Identity& b, bool ignore_serial = false);
// Two nodes, or a node with a machine that reports itself. Host keys count only where no evidence
// of hardware can be compared: machines made from one image have the same.
Likeness compare_nodes(const Identity& a, const Identity& b, bool ignore_serial = false);
// Everything that was accepted of a machine is seen again. Silence about a piece confirms nothing:
// only the serial and the UUID together make the MAC addresses unnecessary.
bool confirms(const Identity& accepted, const Identity& seen);
// The serial of an enclosure, or of nothing: nodes that carry it are told apart by UUID or MAC
// addresses, or more than two carry it.
bool shared_serial(const Snapshot& snapshot, std::string_view serial);

// There is something in it by which a machine can be known again.
bool has_evidence(const Identity& identity);
// What was seen of a node, with the host key that is pinned now.
Identity identity_of(const Hardware& hardware, const std::string& host_key);
// As accepted; what was seen if nothing was accepted yet; empty.
Identity known_identity(const Node& node);

// The nodes that are, by what is known of them, the machine with this identity (compare_nodes:
// kSame, kReinstalled or kReplaced), without the node `except` (id). By name.
std::vector<const Node*> alike(const Snapshot& snapshot, const Identity& identity,
                               std::string_view except);

}  // namespace clusterctl::fleet
