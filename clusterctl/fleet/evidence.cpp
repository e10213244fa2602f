#include "fleet/evidence.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "fleet/identity.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

void refuse(Problems& problems, std::string message, std::string hint) {
  problems.add(Code::kInvalid, Problem{"bad_evidence", std::move(message), std::move(hint), ""});
}

std::string read_serial(const std::string& given, const std::string& place, Problems& problems) {
  if (!is_plain_evidence(given)) {
    refuse(problems,
           fmt::format("{}.serial {} is no plain text of at most {} characters", place,
                       shown(given), kMaxEvidence),
           "letters, digits, spaces and - _ . , : ; / + # ( ) [ ]");
  }
  return given;
}

// In one spelling. What vendors write where there is none is kept as it is: silence.
std::string read_uuid(const std::string& given, const std::string& place, Problems& problems) {
  if (std::string uuid = normal_uuid(given); !uuid.empty()) return uuid;
  if (given.empty() || is_placeholder(given)) return lower(given);
  refuse(problems, fmt::format("{}.uuid {} is not a UUID", place, shown(given)),
         "32 hexadecimal digits, e.g. 4c4c4544-0031-3010-8052-b4c04f4e3132; leave it out when the "
         "machine has none");
  return "";
}

std::vector<std::string> read_cards(const std::vector<std::string>& given, const std::string& place,
                                    Problems& problems) {
  std::vector<std::string> out;
  if (given.size() > kMaxCards) {
    refuse(problems, fmt::format("{}.macs has {} addresses", place, given.size()),
           fmt::format("at most {}", kMaxCards));
    return out;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (trim(given[i]).empty()) continue;
    std::string mac = normal_mac(given[i]);
    if (mac.empty()) {
      refuse(problems,
             fmt::format("{}.macs[{}] {} is not a MAC address", place, i, shown(given[i])),
             "12 hexadecimal digits, e.g. 00:25:b5:00:00:1a");
    } else {
      out.push_back(std::move(mac));
    }
  }
  return out;
}

}  // namespace

bool is_plain_evidence(std::string_view text) {
  return text.size() <= kMaxEvidence &&
         text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             " -_.,:;/+#()[]") == std::string_view::npos;
}

Identity parse_evidence(const Json& machine, const std::string& place, Problems& problems) {
  Identity out;
  out.serial = read_serial(trim(problems.take(get_string(machine, "serial"))), place, problems);
  out.uuid = read_uuid(trim(problems.take(get_string(machine, "uuid"))), place, problems);
  out.macs = read_cards(problems.take(get_strings(machine, "macs")), place, problems);
  return out;
}

}  // namespace clusterctl::fleet
