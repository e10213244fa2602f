// What the machine this program runs on is known by. Any thread.
#pragma once

#include <string>
#include <vector>

namespace clusterctl {

// Addresses of its interfaces as text, without zones, and its host names: "localhost", the name it
// has and that without domain. As they are at this moment; never an error, at worst incomplete.
std::vector<std::string> this_host_names();
// /etc/machine-id; empty where there is none.
std::string this_machine_id();

}  // namespace clusterctl
