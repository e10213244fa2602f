// One spelling of a host's name. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace clusterctl {

// Lower case, without the dot that ends a full name; the domain part stays. Whoever takes a node's
// name from outside, or looks one up, goes through this.
std::string normal_host_name(std::string_view text);

}  // namespace clusterctl
