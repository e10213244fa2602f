#include "fleet/identity.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"

namespace clusterctl::fleet {
namespace {

// What vendors write where a value is missing; lower case, without spaces around it.
constexpr std::array<std::string_view, 30> kPlaceholders{
    "to be filled by o.e.m.",
    "to be filled by o.e.m",
    "default string",
    "system serial number",
    "chassis serial number",
    "base board serial number",
    "serial number",
    "not specified",
    "not applicable",
    "not available",
    "not settable",
    "not present",
    "not set",
    "none",
    "null",
    "n/a",
    "na",
    "oem",
    "o.e.m.",
    "unknown",
    "invalid",
    "empty",
    "undefined",
    "xxxxxxxxxxx",
    "0123456789",
    "123456789",
    "1234567890",
    "01234567890123456789",
    "123456789abcdef",
    "tbd by oem",
};

// Shipped by vendors on many boards.
constexpr std::array<std::string_view, 3> kPlaceholderUuids{
    "03000200-0400-0500-0006-000700080009",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "03020100-0504-0706-0809-0a0b0c0d0e0f",
};

bool one_character(std::string_view text) {
  char seen = 0;
  for (const char c : text) {
    if (c == '-' || c == ':' || c == '.' || c == ' ' || c == '_') continue;
    if (seen != 0 && c != seen) return false;
    seen = c;
  }
  return true;
}

bool all_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The first three fields of a UUID with their bytes the other way round: programs disagree about
// the order.
std::string swapped(const std::string& uuid) {
  std::string out = uuid;
  const auto turn = [&out](size_t begin, size_t length) {
    for (size_t i = 0; i < length / 2; i += 2) {
      std::swap(out[begin + i], out[begin + length - 2 - i]);
      std::swap(out[begin + i + 1], out[begin + length - 1 - i]);
    }
  };
  turn(0, 8);
  turn(9, 4);
  turn(14, 4);
  return out;
}

Match match(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return Match::kUnknown;
  return a == b ? Match::kEqual : Match::kDiffers;
}

Match match_uuids(const std::string& a, const std::string& b) {
  const Match plain = match(a, b);
  return plain == Match::kDiffers && swapped(a) == b ? Match::kEqual : plain;
}

std::set<std::string> usable_macs(const std::vector<std::string>& macs) {
  std::set<std::string> out;
  for (const std::string& mac : macs) {
    if (std::string usable = usable_mac(mac); !usable.empty()) out.insert(std::move(usable));
  }
  return out;
}

// One common card is enough: cards are added and taken out.
Match match_macs(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto first = usable_macs(a), second = usable_macs(b);
  if (first.empty() || second.empty()) return Match::kUnknown;
  return std::any_of(first.begin(), first.end(),
                     [&](const std::string& mac) { return second.count(mac) != 0; })
             ? Match::kEqual
             : Match::kDiffers;
}

bool fits(std::string_view pattern, Match match) {
  switch (match) {
    case Match::kEqual:
      return pattern == "=" || pattern == "*";
    case Match::kDiffers:
      return pattern == "!" || pattern == "*";
    case Match::kUnknown:
      break;
  }
  return pattern == "?" || pattern == "*";
}

Likeness likeness_of(const Match serial, const Identity& a, const Identity& b) {
  const Match uuid = match_uuids(usable_uuid(a.uuid), usable_uuid(b.uuid));
  const Match macs = match_macs(a.macs, b.macs);
  const bool hardware =
      serial != Match::kUnknown || uuid != Match::kUnknown || macs != Match::kUnknown;
  return likeness_row(serial, uuid, macs,
                      hardware ? Match::kUnknown : match(a.host_key, b.host_key))
      .likeness;
}

}  // namespace

std::string_view word(Likeness likeness) {
  switch (likeness) {
    case Likeness::kSame:
      return "same";
    case Likeness::kReinstalled:
      return "reinstalled";
    case Likeness::kReplaced:
      return "replaced";
    case Likeness::kDifferent:
      return "different";
    case Likeness::kUnknown:
      break;
  }
  return "unknown";
}

const std::vector<LikenessRow>& likeness_table() {
  using L = Likeness;
  static const std::vector<LikenessRow> kRows{
      {"=", "=", "*", "!", L::kReinstalled, "the same hardware with a new host key"},
      {"=", "=", "*", "*", L::kSame, "serial and UUID are enough; network cards may have changed"},
      {"!", "=", "=", "*", L::kReplaced, "a service profile moved to another blade"},
      {"!", "=", "?", "*", L::kReplaced, "a service profile moved to another blade"},
      {"!", "=", "!", "=", L::kReplaced, "board and network cards exchanged, the disk has stayed"},
      {"!", "=", "!", "*", L::kDifferent, "a UUID that several boards carry"},
      {"!", "!", "=", "=", L::kReplaced, "a board exchanged below the same network cards and disk"},
      {"!", "?", "=", "*", L::kReplaced, "a service profile moved to another blade"},
      {"!", "*", "*", "*", L::kDifferent, "another machine, even with a copied host key"},
      {"=", "!", "=", "*", L::kReplaced, "a new board with the old serial and network cards"},
      {"=", "!", "*", "*", L::kDifferent, "the serial of an enclosure, or of nothing"},
      {"=", "?", "!", "=", L::kSame, "network cards exchanged"},
      {"=", "?", "!", "*", L::kDifferent, "the serial of an enclosure, or of nothing"},
      {"=", "?", "*", "!", L::kReinstalled, "the same hardware with a new host key"},
      {"=", "?", "*", "*", L::kSame, "the serial, and nothing against it"},
      {"?", "=", "!", "=", L::kSame, "network cards exchanged"},
      {"?", "=", "!", "*", L::kDifferent, "a UUID that several boards carry"},
      {"?", "=", "*", "!", L::kReinstalled, "the same hardware with a new host key"},
      {"?", "=", "*", "*", L::kSame, "the UUID, and nothing against it"},
      {"?", "!", "=", "=", L::kReplaced, "a board exchanged below the same network cards and disk"},
      {"?", "!", "*", "*", L::kDifferent, "another machine, even with a copied host key"},
      {"?", "?", "=", "!", L::kReinstalled, "the same network cards with a new host key"},
      {"?", "?", "=", "*", L::kSame, "the same network cards"},
      {"?", "?", "!", "=", L::kReplaced, "the same disk behind other network cards"},
      {"?", "?", "!", "*", L::kDifferent, "other network cards, another system"},
      {"?", "?", "?", "=", L::kSame, "the host key is all there is"},
      {"?", "?", "?", "*", L::kUnknown, "nothing to go by: name and address decide"},
  };
  return kRows;
}

const LikenessRow& likeness_row(Match serial, Match uuid, Match macs, Match host_key) {
  const auto& rows = likeness_table();
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const LikenessRow& r) {
    return fits(r.serial, serial) && fits(r.uuid, uuid) && fits(r.macs, macs) &&
           fits(r.host_key, host_key);
  });
  return it == rows.end() ? rows.back() : *it;  // the table is complete; a test says so
}

bool is_placeholder(std::string_view text) {
  const std::string out = lower(trim(text));
  return std::find(kPlaceholders.begin(), kPlaceholders.end(), out) != kPlaceholders.end();
}

std::string usable_serial(std::string_view serial) {
  std::string out = lower(trim(serial));
  if (one_character(out)) return "";
  return is_placeholder(out) ? "" : out;
}

std::string normal_uuid(std::string_view text) {
  std::string digits = lower(trim(text));
  if (digits.starts_with("urn:uuid:")) digits.erase(0, 9);
  if (digits.starts_with("{") && digits.ends_with("}"))
    digits = digits.substr(1, digits.size() - 2);
  std::erase(digits, '-');
  if (digits.size() != 32 || !all_hex(digits)) return "";
  for (const size_t dash : {8, 13, 18, 23}) digits.insert(dash, "-");
  return digits;
}

std::string normal_mac(std::string_view text) {
  std::string digits = lower(trim(text));
  std::erase_if(digits, [](char c) { return c == ':' || c == '-' || c == '.'; });
  const bool length = digits.size() == 12 || digits.size() == 16 || digits.size() == 40;
  if (!length || !all_hex(digits)) return "";
  for (size_t i = 2; i < digits.size(); i += 3) digits.insert(i, ":");
  return digits;
}

std::string usable_uuid(std::string_view uuid) {
  std::string out = normal_uuid(uuid);
  if (out.empty() || one_character(out)) return "";
  for (const std::string_view known : kPlaceholderUuids) {
    if (out == known || swapped(out) == known) return "";
  }
  return out;
}

std::string usable_mac(std::string_view mac) {
  std::string out = normal_mac(mac);
  return out.size() != 17 || one_character(out) ? "" : out;
}

const LikenessRow& compare(const Identity& a, const Identity& b, bool ignore_serial) {
  const Match serial =
      ignore_serial ? Match::kUnknown : match(usable_serial(a.serial), usable_serial(b.serial));
  return likeness_row(serial, match_uuids(usable_uuid(a.uuid), usable_uuid(b.uuid)),
                      match_macs(a.macs, b.macs), match(a.host_key, b.host_key));
}

Likeness compare_nodes(const Identity& a, const Identity& b, bool ignore_serial) {
  return likeness_of(
      ignore_serial ? Match::kUnknown : match(usable_serial(a.serial), usable_serial(b.serial)), a,
      b);
}

bool confirms(const Identity& accepted, const Identity& seen) {
  const std::string serial = usable_serial(accepted.serial), uuid = usable_uuid(accepted.uuid);
  if (!serial.empty() && usable_serial(seen.serial) != serial) return false;
  if (!uuid.empty() && match_uuids(uuid, usable_uuid(seen.uuid)) != Match::kEqual) return false;
  if (!serial.empty() && !uuid.empty()) return true;
  return usable_macs(accepted.macs).empty() ||
         match_macs(accepted.macs, seen.macs) == Match::kEqual;
}

bool shared_serial(const Snapshot& snapshot, std::string_view serial) {
  const std::string wanted = usable_serial(serial);
  if (wanted.empty()) return false;
  std::vector<Identity> having;
  for (const auto& [id, node] : snapshot.nodes) {
    Identity known = known_identity(node);
    if (usable_serial(known.serial) == wanted) having.push_back(std::move(known));
  }
  if (having.size() > 2) return true;
  return having.size() == 2 && compare_nodes(having[0], having[1]) == Likeness::kDifferent;
}

bool has_evidence(const Identity& i) {
  return !usable_serial(i.serial).empty() || !usable_uuid(i.uuid).empty() ||
         !usable_macs(i.macs).empty() || !i.host_key.empty();
}

Identity identity_of(const Hardware& hardware, const std::string& host_key) {
  return {hardware.serial, hardware.uuid, host_key, hardware.macs};
}

Identity known_identity(const Node& node) {
  if (node.status.identity) return *node.status.identity;
  if (node.status.hardware) return identity_of(*node.status.hardware, node.spec.ssh.host_key);
  return {};
}

std::vector<const Node*> alike(const Snapshot& snapshot, const Identity& identity,
                               std::string_view except) {
  std::vector<const Node*> out;
  if (!has_evidence(identity)) return out;
  // Looked for only when a serial is equal, which it hardly ever is.
  std::optional<bool> shared;
  const std::string serial = usable_serial(identity.serial);
  for (const auto& [id, node] : snapshot.nodes) {
    if (id == except) continue;
    const Identity known = known_identity(node);
    bool ignore = false;
    if (!serial.empty() && usable_serial(known.serial) == serial) {
      if (!shared) shared = shared_serial(snapshot, serial);
      ignore = *shared;
    }
    const Likeness likeness = compare_nodes(identity, known, ignore);
    if (likeness != Likeness::kDifferent && likeness != Likeness::kUnknown) out.push_back(&node);
  }
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->name < b->name; });
  return out;
}

}  // namespace clusterctl::fleet
