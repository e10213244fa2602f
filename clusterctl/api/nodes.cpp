#include <fmt/format.h>

#include <algorithm>

#include "api/body.h"
#include "api/node_actions.h"
#include "api/node_texts.h"
#include "api/paging.h"
#include "api/resources.h"
#include "base/strings.h"
#include "fleet/node_json.h"
#include "fleet/selector.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

std::string role_of(const fleet::Node& node, const catalog::Catalog& catalog) {
  const auto role = plan::role_of(catalog, node);
  return role ? std::string(fleet::word(*role)) : "";
}

Json view(const fleet::Node& node, const catalog::Catalog& catalog) {
  return fleet::to_json(node, role_of(node, catalog));
}

// Empty, or a word of the enum.
template <typename Enum>
Status known_word(const std::string& word, std::string_view what) {
  if (word.empty() || fleet::from_word<Enum>(word)) return {};
  return fail(Code::kInvalid, fmt::format("bad_{}", what),
              fmt::format("there is no {} \"{}\"", what, one_line(word)),
              "known: " + join(fleet::all_words<Enum>(), ", "));
}

// The filters of a list, read once.
struct Filter {
  bool any = false;  // there is one
  std::string lifecycle, host_group, presence, capability;
  fleet::Selector selector;

  static Result<Filter> read(const Request& request) {
    Filter f;
    f.lifecycle = request.query_string("lifecycle");
    f.host_group = request.query_string("host_group");
    f.presence = request.query_string("presence");
    f.capability = request.query_string("capability");
    if (auto ok = known_word<fleet::Lifecycle>(f.lifecycle, "lifecycle"); !ok)
      return fail(ok.error());
    if (auto ok = known_word<fleet::Presence>(f.presence, "presence"); !ok) return fail(ok.error());
    auto selector = fleet::Selector::parse(request.query_string("selector"));
    if (!selector) return fail(selector.error());
    f.selector = std::move(*selector);
    f.any = !f.lifecycle.empty() || !f.host_group.empty() || !f.presence.empty() ||
            !f.capability.empty() || !request.query_string("selector").empty();
    return f;
  }

  bool matches(const fleet::Node& node) const {
    const auto& caps =
        node.status.applied ? node.status.applied->capabilities : node.spec.capabilities;
    return (lifecycle.empty() || fleet::word(node.status.lifecycle) == lifecycle) &&
           (presence.empty() || fleet::word(node.status.presence) == presence) &&
           (host_group.empty() || node.spec.host_group == host_group) &&
           (capability.empty() || std::find(caps.begin(), caps.end(), capability) != caps.end()) &&
           selector.matches(node.spec.labels);
  }
};

Result<Response> list(const Controller& c, NodeTexts& texts, const Request& request) {
  const auto filter = Filter::read(request);
  if (!filter) return fail(filter.error());
  const auto page = read_page(request, 10000, 10000);
  if (!page) return fail(page.error());
  const auto fleet = c.fleet();
  const bool whole = !filter->any && page->after.empty() && fleet->nodes.size() <= page->limit;
  if (whole) return Response::json(texts.all(fleet));
  std::vector<const fleet::Node*> nodes;
  for (const auto& [id, node] : fleet->nodes) {
    if (node.name > page->after && filter->matches(node)) nodes.push_back(&node);
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const fleet::Node* a, const fleet::Node* b) { return a->name < b->name; });
  std::string next;
  if (nodes.size() > page->limit) {
    nodes.resize(page->limit);
    next = nodes.back()->name;
  }
  return Response::json(texts.list(nodes, next));
}

}  // namespace

Response node_answer(const fleet::Node& node, const Controller& c, int status) {
  return Response::json(view(node, c.catalog()), status)
      .with("ETag", etag(static_cast<int64_t>(node.resource_version)));
}

void add_node_routes(Router& router, Controller& c) {
  const auto texts = std::make_shared<NodeTexts>(
      [&c](const fleet::Node& node) { return dump_json(view(node, c.catalog())); });
  router.get(
      "/v1/nodes", [&c, texts](const Request& r) { return list(c, *texts, r); },
      paged({"lifecycle", "host_group", "presence", "capability", "selector"}));
  router.post_once("/v1/nodes", [&c](const Request& r) -> Result<Response> {
    auto body = json_body(r);
    if (!body) return fail(body.error());
    const auto key = idempotency_key(r);
    if (!key) return fail(key.error());
    controller::Once once{key->value_or("")};
    auto node = c.add_node(*body, {r.identity.name}, &once);
    if (!node) return fail(node.error());
    return replayed(once.repeated,
                    node_answer(*node, c, 201).with("Location", "/v1/nodes/" + node->id));
  });
  router.get("/v1/nodes/{n}", [&c](const Request& r) -> Result<Response> {
    const auto fleet = c.fleet();
    const auto node = fleet->find(r.param("n"));
    if (!node) return fail(node.error());
    return node_answer(**node, c);
  });
  router.patch("/v1/nodes/{n}", [&c](const Request& r) -> Result<Response> {
    auto body = json_body(r);
    if (!body) return fail(body.error());
    const auto versions = if_match(r);
    if (!versions) return fail(versions.error());
    auto node = c.patch_node(r.param("n"), *body, *versions, {r.identity.name});
    if (!node) return fail(node.error());
    return node_answer(*node, c);
  });
  router.del("/v1/nodes/{n}", [&c](const Request& r) -> Result<Response> {
    if (auto ok = no_body(r); !ok) return fail(ok.error());
    const auto versions = if_match(r);
    if (!versions) return fail(versions.error());
    if (auto done = c.remove_node(r.param("n"), *versions, {r.identity.name}); !done)
      return fail(done.error());
    return Response::no_content();
  });
  add_node_action_routes(router, c);
}

}  // namespace clusterctl::api
