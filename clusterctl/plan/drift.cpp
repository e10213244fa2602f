#include "plan/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/strings.h"
#include "plan/plan.h"

namespace clusterctl::plan {
namespace {

constexpr size_t kDigestLength =
    16;  // enough to tell values apart; the record of a node is read often
constexpr size_t kShownItems = 8;

std::string short_digest(const Json& value) {
  return sha256_hex(dump_json(value)).substr(0, kDigestLength);
}

// Secrets by the digest of their value: the name of a secret stays when its value changes.
Json with_secret_digests(const fleet::Snapshot& snapshot, const Json& value) {
  if (value.is_object() && value.size() == 1 && value.contains("secret") &&
      value["secret"].is_string()) {
    const auto digest = snapshot.secret_digests.find(value["secret"].get<std::string>());
    if (digest != snapshot.secret_digests.end()) return Json{{"secret", digest->second}};
    return value;
  }
  Json out = value;
  if (value.is_structured()) {
    for (auto it = out.begin(); it != out.end(); ++it) *it = with_secret_digests(snapshot, *it);
  }
  return out;
}

bool in_service(const fleet::Node& node) {
  return node.status.applied && (node.status.lifecycle == fleet::Lifecycle::kAllocated ||
                                 node.status.lifecycle == fleet::Lifecycle::kMaintenance);
}

class Comparison {
 public:
  Comparison(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
             const fleet::Node& node)
      : snapshot_(snapshot), catalog_(catalog), node_(node), applied_(*node.status.applied) {}

  std::vector<std::string> items() {
    services();
    variables();
    return std::move(items_);
  }

 private:
  void services() {
    const Json vars = effective_vars(snapshot_, catalog_, node_, applied_.host_group);
    const auto wanted = catalog_.services_for(
        applied_.host_group, catalog_.capabilities_for(applied_.host_group, applied_.capabilities),
        vars);
    wanted_.insert(wanted.begin(), wanted.end());
    const std::set<std::string> have(applied_.services.begin(), applied_.services.end());
    for (const std::string& name : wanted_) {
      if (!have.count(name)) items_.push_back(fmt::format("service {} is not there yet", name));
    }
    for (const std::string& name : have) {
      if (!wanted_.count(name))
        items_.push_back(fmt::format("service {} is not wanted any more", name));
    }
    for (const auto& [name, digest] : applied_.catalog) {
      const catalog::Service* service = catalog_.service(name);
      if (service && wanted_.count(name) && entry_digest(*service) != digest)
        items_.push_back(fmt::format("service {} has another entry in the catalog", name));
    }
  }

  void variables() {
    const auto now = variable_digests(snapshot_, catalog_, node_, applied_.host_group);
    const std::string& known = applied_.vars_fingerprint;
    if (applied_.catalog.empty()) {  // an older record, without digests
      if (!known.empty() &&
          known != vars_fingerprint(snapshot_, catalog_, node_, applied_.host_group))
        items_.emplace_back("variables");
      return;
    }
    if (known.empty()) {
      items_.emplace_back("variables were changed while it was converged");
      return;
    }
    std::set<std::string> names;
    for (const auto& [name, digest] : now) names.insert(name);
    for (const auto& [name, digest] : applied_.vars) names.insert(name);
    for (const std::string& name : names) {
      const auto was = applied_.vars.find(name);
      const auto is = now.find(name);
      if (was == applied_.vars.end() || is == now.end() || was->second != is->second) add(name);
    }
  }

  void add(const std::string& name) {
    const std::string owner = owner_of(catalog_, name);
    const auto carries = [&](const std::string& service) {
      return wanted_.count(service) != 0 ||
             std::find(applied_.services.begin(), applied_.services.end(), service) !=
                 applied_.services.end();
    };
    if (!owner.empty() && !carries(owner)) return;
    for (const catalog::Service& service : catalog_.services()) {
      if (service.version_variable != name) continue;
      items_.push_back(fmt::format("version of service {}", service.name));
      return;
    }
    items_.push_back(fmt::format("variable {}", name));
  }

  const fleet::Snapshot& snapshot_;
  const catalog::Catalog& catalog_;
  const fleet::Node& node_;
  const fleet::Applied& applied_;
  std::set<std::string> wanted_;
  std::vector<std::string> items_;
};

}  // namespace

std::string owner_of(const catalog::Catalog& catalog, const std::string& variable) {
  std::string owner;
  for (const catalog::Service& service : catalog.services()) {
    if (variable.starts_with(service.name + "_") && service.name.size() > owner.size())
      owner = service.name;
  }
  return owner;
}

std::map<std::string, std::string> variable_digests(const fleet::Snapshot& snapshot,
                                                    const catalog::Catalog& catalog,
                                                    const fleet::Node& node,
                                                    std::string_view host_group) {
  std::map<std::string, std::string> out;
  const Json vars = operator_vars(snapshot, catalog, node, host_group);
  for (const auto& [name, value] : vars.items())
    out[name] = short_digest(with_secret_digests(snapshot, value));
  return out;
}

std::string entry_digest(const catalog::Service& s) {
  const Json on{{"all", s.on.all},
                {"role", s.on.role ? Json(static_cast<int>(*s.on.role)) : Json()},
                {"groups", s.on.host_groups},
                {"capabilities", s.on.capabilities}};
  Json when = Json::object();
  for (const auto& [name, value] : s.when) when[name] = value ? Json(*value) : Json();
  return short_digest({{"on", on},
                       {"when", when},
                       {"needs", s.needs},
                       {"needs_when", s.needs_when},
                       {"version", s.version_variable},
                       {"ports", s.ports}});
}

std::string config_fingerprint(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                               const fleet::Node& node, std::string_view host_group) {
  const Json digests(variable_digests(snapshot, catalog, node, host_group));
  return sha256_hex(dump_json(digests) + "\n" + catalog.version()).substr(0, 2 * kDigestLength);
}

std::vector<std::string> drift_of(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                                  const fleet::Node& node) {
  if (!in_service(node)) return {};
  return Comparison(snapshot, catalog, node).items();
}

std::string drift_reason(const std::vector<std::string>& items) {
  std::vector<std::string> shown(
      items.begin(), items.begin() + static_cast<ptrdiff_t>(std::min(items.size(), kShownItems)));
  std::string out = join(shown, ", ");
  if (items.size() > shown.size()) out += fmt::format(" and {} more", items.size() - shown.size());
  return "differs from what was applied: " + out;
}

}  // namespace clusterctl::plan
