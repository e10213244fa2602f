// Takes the target of a request apart, strictly. Pure function, any thread.
#pragma once

#include "api/http.h"

namespace clusterctl::api {

// Fills request.segments and request.query from request.target. Refused as kInvalid: bad percent
// escapes, NUL and other control characters in the path, an encoded slash, bytes that are not
// UTF-8, a query parameter given twice or without a name, more than 64 of them. In the query "+" is
// a space, as in HTML forms.
Status parse_target(Request& request);

}  // namespace clusterctl::api
