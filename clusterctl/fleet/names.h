// Names of nodes in their different spellings. One spelling is stored: lower case, without a final
// dot (base/host_name.h), with the domain part as it was given. A name without a
// domain and a name with one mean the same machine when their first labels are equal; two names
// with different domains are two machines. Pure, any thread.
#pragma once

#include <string_view>

namespace clusterctl::fleet {

// `name` ("n1") is the first label of `full` ("n1.example.com"). Both in normal spelling.
bool is_short_for(std::string_view name, std::string_view full);
// Two spellings of one node. Both in normal spelling.
bool same_name(std::string_view a, std::string_view b);

}  // namespace clusterctl::fleet
