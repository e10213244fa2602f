// From a request to its answer: the URL is taken apart, the caller is checked, the route runs. Any
// thread.
#pragma once

#include "api/auth.h"
#include "api/http.h"
#include "api/router.h"

namespace clusterctl::api {

class Service {
 public:
  Service(const Router& router, const Auth& auth) : router_(router), auth_(auth) {}

  Response handle(Request& request) const;

 private:
  Response route(Request& request) const;

  const Router& router_;
  const Auth& auth_;
};

}  // namespace clusterctl::api
