// The one body that all of contiv's requests have. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "api/http.h"

namespace clusterctl::api::compat {

struct Body {
  std::vector<std::string> nodes, addrs;
  std::string host_group;
  Json extra_vars = Json::object();  // of the JSON text that it is sent as
  Json monitor_event, config;        // null when nothing of it was said
};

// Its clients send every field with every request, empty where it means nothing: that is the same
// as leaving it out. No body at all is an empty one.
Result<Body> read_body(const Request& request);

// null, "", [], {}, false, 0, and what holds only that.
bool says_nothing(const Json& value);

}  // namespace clusterctl::api::compat
