// The placement rule of the virtual address (service_vip), a file of its own because it has many
// sides. Pure, any thread.
#pragma once

#include <string_view>
#include <vector>

#include "fleet/placement.h"

namespace clusterctl::fleet {

std::vector<std::string_view> vip_codes();
void check_vip(const Placement& placement, Findings& out);

}  // namespace clusterctl::fleet
