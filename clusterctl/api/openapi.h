// The description of the interface, openapi.json, which is part of the binary. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/router.h"

namespace clusterctl::api {

extern const std::string_view kOpenapiText;

// GET /openapi.json
void add_openapi_route(Router& router);

// Every difference between the routes and the document, one sentence each: routes, their
// {parameters} and query parameters that stand in only one of them.
std::vector<std::string> compare_with_document(const std::vector<Route>& routes,
                                               const Json& document);
// References in the document that lead nowhere, operations without or with a common operationId.
std::vector<std::string> document_faults(const Json& document);

}  // namespace clusterctl::api
