// Programs of two versions that do not understand each other: what to say then. One thread.
#pragma once

#include <string>

#include "client/rest_client.h"

namespace clusterctl::cli {

inline constexpr int64_t kApi = 1;  // that this program speaks

// When `error` may come from a daemon of another version, or from a server that is none, asks which
// it is and adds that to the hint.
void explain_version(client::RestClient& rest, const std::string& version, Error& error);

}  // namespace clusterctl::cli
