#include "api/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

using Names = std::set<std::string>;

struct Operation {
  Names path, query;  // names of parameters
};
using Operations = std::map<std::string, Operation>;  // by "GET /v1/nodes"

// Follows "#/a/b" references; a missing target is a null.
const Json& resolve(const Json& document, const Json& value) {
  static const Json kNull;
  const Json* now = &value;
  for (int depth = 0; depth < 8 && now->is_object() && now->contains("$ref"); ++depth) {
    const Json& ref = (*now)["$ref"];
    const std::string text = ref.is_string() ? ref.get<std::string>() : "";
    if (!text.starts_with("#/")) return kNull;
    try {
      now = &document.at(Json::json_pointer(text.substr(1)));
    } catch (const Json::exception&) {
      return kNull;
    }
  }
  return *now;
}

void add_parameters(const Json& document, const Json& owner, Operation& operation) {
  for (const Json& item : owner.value("parameters", Json::array())) {
    const Json& parameter = resolve(document, item);
    if (!parameter.is_object()) continue;
    const std::string where = parameter.value("in", "");
    const std::string name = parameter.value("name", "");
    if (where == "path") operation.path.insert(name);
    if (where == "query") operation.query.insert(name);
  }
}

Operations of_document(const Json& document) {
  static const Names kMethods = {"get", "put", "post", "patch", "delete"};
  Operations out;
  const Json paths = document.value("paths", Json::object());  // outlives the loop
  for (const auto& [path, item] : paths.items()) {
    for (const auto& [method, operation] : item.items()) {
      if (!kMethods.contains(method)) continue;
      std::string name = method;
      std::transform(name.begin(), name.end(), name.begin(), ::toupper);
      Operation& entry = out[name + " " + path];
      add_parameters(document, item, entry);
      add_parameters(document, operation, entry);
    }
  }
  return out;
}

Operations of_routes(const std::vector<Route>& routes) {
  Operations out;
  for (const Route& route : routes) {
    Operation& entry = out[route.method + " " + route.pattern];
    entry.query = Names(route.query.begin(), route.query.end());
    for (const std::string& segment : split(route.pattern, '/')) {
      if (segment.size() > 2 && segment.front() == '{') {
        entry.path.insert(segment.substr(1, segment.size() - 2));
      }
    }
  }
  return out;
}

void compare_names(const std::string& route, const char* kind, const Names& code,
                   const Names& document, std::vector<std::string>& out) {
  for (const auto& name : code) {
    if (!document.contains(name)) {
      out.push_back(fmt::format("{}: the {} parameter {} is not described", route, kind, name));
    }
  }
  for (const auto& name : document) {
    if (!code.contains(name)) {
      out.push_back(fmt::format("{}: the {} parameter {} does not exist", route, kind, name));
    }
  }
}

void find_bad_references(const Json& document, const Json& value, std::vector<std::string>& out) {
  if (value.is_object() && value.contains("$ref") && resolve(document, value).is_null()) {
    out.push_back("bad reference " + value["$ref"].dump());
  }
  if (!value.is_structured()) return;
  for (const Json& item : value) find_bad_references(document, item, out);
}

}  // namespace

void add_openapi_route(Router& router) {
  router.get("/openapi.json", [](const Request&) -> Result<Response> {
    Response response;
    response.content_type = "application/json";
    response.body = kOpenapiText;
    return response;
  });
}

std::vector<std::string> compare_with_document(const std::vector<Route>& routes,
                                               const Json& document) {
  const Operations code = of_routes(routes);
  const Operations described = of_document(document);
  std::vector<std::string> out;
  for (const auto& [route, operation] : code) {
    const auto it = described.find(route);
    if (it == described.end()) {
      out.push_back(route + " is not described");
      continue;
    }
    compare_names(route, "path", operation.path, it->second.path, out);
    compare_names(route, "query", operation.query, it->second.query, out);
  }
  for (const auto& [route, operation] : described) {
    if (!code.contains(route)) out.push_back(route + " is described but does not exist");
  }
  return out;
}

std::vector<std::string> document_faults(const Json& document) {
  std::vector<std::string> out;
  find_bad_references(document, document, out);
  Names ids;
  const Json paths = document.value("paths", Json::object());  // outlives the loop
  for (const auto& [path, item] : paths.items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method == "parameters" || !operation.is_object()) continue;
      const std::string id = operation.value("operationId", "");
      if (id.empty() || !ids.insert(id).second) {
        out.push_back(fmt::format("{} {} has no operationId of its own", method, path));
      }
      if (!operation.contains("responses")) {
        out.push_back(fmt::format("{} {} has no responses", method, path));
      }
    }
  }
  return out;
}

}  // namespace clusterctl::api
