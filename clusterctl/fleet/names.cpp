#include "fleet/names.h"

namespace clusterctl::fleet {

bool is_short_for(std::string_view name, std::string_view full) {
  return !name.empty() && name.find('.') == std::string_view::npos && full.size() > name.size() &&
         full.starts_with(name) && full[name.size()] == '.';
}

bool same_name(std::string_view a, std::string_view b) {
  return a == b || is_short_for(a, b) || is_short_for(b, a);
}

}  // namespace clusterctl::fleet
