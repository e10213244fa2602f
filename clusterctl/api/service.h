// From a request to its answer: the URL is taken apart, the caller is checked, the route runs. Any
// thread.
#pragma once

#include "api/auth.h"
#include "api/http.h"
#include "api/meters.h"
#include "api/router.h"

namespace clusterctl::api {

class Service {
 public:
  // `times`: where the time of each request is counted, if anywhere.
  Service(const Router& router, const Auth& auth, RequestTimes* times = nullptr)
      : router_(router), auth_(auth), times_(times) {}

  Response handle(Request& request) const;

 private:
  Response route(Request& request) const;

  const Router& router_;
  const Auth& auth_;
  RequestTimes* const times_;
};

}  // namespace clusterctl::api
