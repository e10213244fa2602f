#include "fleet/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {

bool is_plain_evidence(std::string_view text) {
  return text.size() <= kMaxEvidence &&
         text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             " -_.,:;/+#()[]") == std::string_view::npos;
}

Identity parse_evidence(const Json& machine, const std::string& place, Problems& problems) {
  Identity out;
  out.serial = trim(problems.take(get_string(machine, "serial")));
  out.uuid = lower(trim(problems.take(get_string(machine, "uuid"))));
  out.macs = problems.take(get_strings(machine, "macs"));
  for (std::string& mac : out.macs) mac = lower(trim(mac));
  const bool good = is_plain_evidence(out.serial) && is_plain_evidence(out.uuid) &&
                    out.macs.size() <= kMaxCards &&
                    std::all_of(out.macs.begin(), out.macs.end(),
                                [](const std::string& mac) { return is_plain_evidence(mac); });
  if (!good) {
    problems.add(
        Code::kInvalid,
        Problem{"bad_evidence",
                fmt::format("{}: what a machine says of itself is plain text of at most {} "
                            "characters, not {}",
                            place, kMaxEvidence, shown(out.serial)),
                "", ""});
  }
  return out;
}

}  // namespace clusterctl::fleet
