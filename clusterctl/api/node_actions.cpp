#include "api/node_actions.h"

#include <fmt/format.h>

#include "api/body.h"
#include "api/paging.h"
#include "api/resources.h"
#include "base/strings.h"
#include "fleet/problems.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

constexpr size_t kMaxReason = 500;

// Why, in the caller's own words: one line.
Result<std::string> read_reason(const Json& body) {
  const auto reason = get_string(body, "reason");
  if (!reason) return fail(reason.error());
  if (reason->size() <= kMaxReason && one_line(*reason) == *reason) return *reason;
  return fail(Code::kInvalid, "bad_reason", "\"reason\" is not usable",
              fmt::format("at most {} bytes on one line", kMaxReason));
}

// A body with these fields of spec and a reason, made into a patch.
Result<Response> patch(Controller& c, const Request& r, const std::vector<std::string>& fields,
                       std::string_view what, Json spec) {
  auto body = json_body(r, true);
  if (!body) return fail(body.error());
  std::vector<std::string> keys = fields;
  keys.emplace_back("reason");
  if (auto ok = check_keys(*body, keys, what); !ok) return fail(ok.error());
  const auto versions = if_match(r);
  if (!versions) return fail(versions.error());
  auto reason = read_reason(*body);
  if (!reason) return fail(reason.error());
  for (const std::string& field : fields) {
    if (!body->contains(field)) continue;
    if (field == "host_key") {
      spec["ssh"][field] = (*body)[field];
    } else {
      spec[field] = (*body)[field];
    }
  }
  auto node = c.patch_node(r.param("n"), {{"spec", std::move(spec)}}, *versions,
                           {r.identity.name, std::move(*reason)});
  if (!node) return fail(node.error());
  return node_answer(*node, c);
}

Result<Response> history(const Controller& c, const Request& r) {
  const auto page = read_page(r, controller::kHistoryKept, controller::kHistoryKept);
  if (!page) return fail(page.error());
  const auto after = number_cursor(*page);
  if (!after) return fail(after.error());
  const auto now = c.state();
  const auto node = now->fleet->find(r.param("n"));
  if (!node) return fail(node.error());
  Json out{{"node", (*node)->name}, {"history", Json::array()}};
  const auto it = now->history.find((*node)->id);
  if (it == now->history.end()) return Response::json(out);
  uint64_t last = 0;
  for (auto e = it->second->rbegin(); e != it->second->rend(); ++e) {
    if (*after != 0 && e->number >= *after) continue;
    if (out["history"].size() == page->limit) {
      out["next"] = std::to_string(last);
      break;
    }
    out["history"].push_back(controller::to_json(*e));
    last = e->number;
  }
  return Response::json(out);
}

}  // namespace

void add_node_action_routes(Router& router, Controller& c) {
  router.post("/v1/nodes/{n}/accept", [&c](const Request& r) {
    return patch(c, r, {"labels", "host_group", "capabilities", "host_key"}, "an accept request",
                 {{"acceptance", "accepted"}});
  });
  router.post("/v1/nodes/{n}/reject", [&c](const Request& r) {
    return patch(c, r, {}, "a reject request", {{"acceptance", "rejected"}});
  });
  router.post("/v1/nodes/{n}/forget-hostkey", [&c](const Request& r) {
    return patch(c, r, {}, "a forget-hostkey request", {{"ssh", {{"host_key", ""}}}});
  });
  router.get(
      "/v1/nodes/{n}/history", [&c](const Request& r) { return history(c, r); }, paged());
}

}  // namespace clusterctl::api
