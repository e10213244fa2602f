#include "base/host_name.h"

#include "base/strings.h"

namespace clusterctl {

std::string normal_host_name(std::string_view text) {
  std::string out = lower(text);
  if (out.size() > 1 && out.back() == '.') out.pop_back();
  return out;
}

}  // namespace clusterctl
