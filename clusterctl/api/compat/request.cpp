#include "api/compat/request.h"

#include <algorithm>

#include "api/body.h"

namespace clusterctl::api::compat {
namespace {

const std::vector<std::string> kKeys{"nodes", "addrs",         "host_group", "extra_vars",
                                     "job",   "monitor_event", "config"};

Result<Json> section(const Json& body, std::string_view key) {
  auto object = get_object(body, key);
  if (object && says_nothing(*object)) *object = nullptr;
  return object;
}

}  // namespace

bool says_nothing(const Json& value) {
  if (value.is_null() || value == Json("") || value == Json(false)) return true;
  if (value.is_number()) return value == Json(0);
  return value.is_structured() && std::all_of(value.begin(), value.end(), says_nothing);
}

Result<Body> read_body(const Request& request) {
  const auto json = json_body(request, true);
  if (!json) return fail(json.error());
  if (auto ok = check_keys(*json, kKeys, "the request"); !ok) return fail(ok.error());
  Body out;
  auto nodes = get_strings(*json, "nodes"), addrs = get_strings(*json, "addrs");
  if (!nodes) return fail(nodes.error());
  if (!addrs) return fail(addrs.error());
  auto group = get_string(*json, "host_group"), vars = get_string(*json, "extra_vars");
  if (!group) return fail(group.error());
  if (!vars) return fail(vars.error());
  auto parsed = parse_json_object(*vars, "extra_vars", true);
  if (!parsed) return fail(parsed.error());
  auto event = section(*json, "monitor_event"), config = section(*json, "config");
  if (!event) return fail(event.error());
  if (!config) return fail(config.error());
  out.nodes = std::move(*nodes);
  out.addrs = std::move(*addrs);
  out.host_group = std::move(*group);
  out.extra_vars = std::move(*parsed);
  out.monitor_event = std::move(*event);
  out.config = std::move(*config);
  return out;
}

}  // namespace clusterctl::api::compat
