// What a monitor of contiv's tells: machines with a label and a serial number.
#include <fmt/format.h>

#include "api/compat/request.h"
#include "api/compat/routes.h"
#include "api/compat/views.h"
#include "base/strings.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"

namespace clusterctl::api::compat {
namespace {

using controller::Controller;

// One machine as POST /v1/monitor/event takes it.
Result<Json> machine(const Json& node) {
  if (!node.is_object())
    return fail(Code::kInvalid, "wrong_type", "monitor_event.nodes must be a list of objects");
  if (auto ok = check_keys(node, {"label", "serial", "addr"}, "a node of the event"); !ok)
    return fail(ok.error());
  const auto label = get_string(node, "label"), serial = get_string(node, "serial"),
             addr = get_string(node, "addr");
  if (!label) return fail(label.error());
  if (!serial) return fail(serial.error());
  if (!addr) return fail(addr.error());
  // Of the serial number only the characters of names are taken; the label has to be one.
  if (auto ok = fleet::check_name(fleet::normal_label(*label)); !ok) return fail(ok.error());
  Json out{{"name", node_name(*label, *serial)}, {"serial", *serial}};
  if (!addr->empty()) out["addr"] = *addr;
  return out;
}

Result<Response> take_event(Controller& c, const Request& request) {
  const auto body = read_body(request);
  if (!body) return fail(body.error());
  const Json& event = body->monitor_event;
  if (event.is_null())
    return fail(Code::kInvalid, "no_event", "the request has no monitor_event",
                R"({"monitor_event": {"name": "discovered", "nodes": […]}})");
  if (auto ok = check_keys(event, {"name", "nodes"}, "monitor_event"); !ok) return fail(ok.error());
  const auto name = get_string(event, "name");
  if (!name) return fail(name.error());
  if (lower(*name) != "discovered" && lower(*name) != "disappeared")
    return fail(Code::kInvalid, "unknown_event",
                fmt::format("Invalid or empty event name: {}", fleet::shown(*name)),
                "discovered or disappeared");
  Json nodes = Json::array();
  if (const auto given = event.find("nodes"); given != event.end() && given->is_array()) {
    for (const Json& node : *given) {
      auto one = machine(node);
      if (!one) return fail(one.error());
      nodes.push_back(std::move(*one));
    }
  }
  const auto seen = c.monitor_event({{"name", lower(*name)}, {"nodes", std::move(nodes)}});
  if (!seen) return fail(seen.error());
  return done();
}

}  // namespace

void add_monitor_route(Router& router, Controller& c) {
  router.post("/monitor/event", [&c](const Request& r) { return take_event(c, r); });
}

}  // namespace clusterctl::api::compat
