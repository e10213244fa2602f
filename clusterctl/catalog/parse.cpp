// Reads the catalog. Every problem names the file and the entry.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/digest.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "catalog/catalog.h"
#include "fleet/patterns.h"
#include "fleet/words.h"

namespace clusterctl::catalog {
namespace {

const std::vector<std::string> kTopKeys{"host_groups", "defaults", "services"};
const std::vector<std::string> kGroupKeys{"manager", "capabilities", "vars"};
const std::vector<std::string> kServiceKeys{
    "on",       "when",   "needs", "needs_when", "version",  "upgrade",   "quorum",
    "disrupts", "memory", "ports", "forbids",    "observed", "schedules", "hands_over"};

// A text, or a list of texts.
Result<std::vector<std::string>> one_or_many(const Json& value, std::string_view key) {
  if (value.is_string()) return std::vector{value.get<std::string>()};
  return get_strings(Json{{std::string(key), value}}, key);
}

tl::unexpected<Error> bad(std::string message, std::string hint = "") {
  return fail(Code::kInvalid, "bad_catalog", std::move(message), std::move(hint));
}

Result<int64_t> read_memory(const Json& value) {
  int64_t number = 0;
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const char* end = text.data() + text.size();
    const auto [p, ec] = std::from_chars(text.data(), end, number);
    const bool unit = p != end && p + 1 == end && (*p == 'M' || *p == 'G');
    if (ec == std::errc() && unit && number > 0 && number < (1 << 24))
      return *p == 'G' ? number * 1024 : number;
  }
  return bad(fmt::format("memory {} is not an amount of memory", dump_json(value)),
             "e.g. 256M or 8G");
}

Result<Placement> read_on(const Json& value) {
  Placement out;
  if (value == "all") {
    out.all = true;
    return out;
  }
  if (!value.is_object() || value.size() != 1) {
    return bad("`on` must be all or one of {role: …}, {host_group: […]}, {capability: […]}");
  }
  const std::string kind = value.begin().key();
  auto names = one_or_many(value.begin().value(), kind);
  if (!names) return fail(names.error());
  if (names->empty()) return bad(fmt::format("`on: {{{}: …}}` names nothing", kind));
  if (kind == "role") {
    const auto role =
        names->size() == 1 ? fleet::from_word<fleet::Role>((*names)[0]) : std::nullopt;
    if (!role) return bad("`on: {role: …}` must be manager or worker");
    out.role = role;
  } else if (kind == "host_group") {
    out.host_groups = std::move(*names);
  } else if (kind == "capability") {
    out.capabilities = std::move(*names);
  } else {
    return bad(fmt::format("`on: {{{}: …}}` is not known", kind), "role, host_group or capability");
  }
  return out;
}

Result<std::map<std::string, std::optional<std::string>>> read_when(const Json& value) {
  std::map<std::string, std::optional<std::string>> out;
  if (value.is_string()) {
    out[value.get<std::string>()] = std::nullopt;
    return out;
  }
  if (!value.is_object() || value.empty())
    return bad("`when` must be a variable or {variable: value}");
  for (const auto& [name, wanted] : value.items()) {
    if (wanted.is_structured())
      return bad(fmt::format("`when: {{{}: …}}` needs a plain value", name));
    out[name] = wanted.is_null() ? std::nullopt : std::optional(plain_text(wanted));
  }
  return out;
}

Status read_ports(const Json& value, Service& out) {
  if (!value.is_object()) return bad("`ports` must be {variable: port}");
  for (const auto& [name, entry] : value.items()) {
    Json port = entry;
    if (entry.is_object()) {  // {port: 443, role: manager}
      const auto role = fleet::from_word<fleet::Role>(get_string(entry, "role").value_or(""));
      if (!role || entry.size() != 2)
        return bad(
            fmt::format("port \"{}\" must be a number, or {{port: …, role: manager}}", name));
      out.port_roles[name] = *role;
      port = entry.value("port", Json());
    }
    if (!port.is_number_integer() || port.get<int64_t>() < 1 || port.get<int64_t>() > 65535) {
      return bad(fmt::format("port {} of \"{}\" is not a port", dump_json(port), name),
                 "1 to 65535");
    }
    out.ports[name] = static_cast<int>(port.get<int64_t>());
  }
  return {};
}

Status read_forbids(const Json& value, Service& out) {
  if (!value.is_object() || value.size() != 1 || !value.contains("service"))
    return bad("`forbids` must be {service: name}");
  auto names = one_or_many(value["service"], "service");
  if (!names) return fail(names.error());
  out.forbids = std::move(*names);
  return {};
}

Status read_needs_when(const Json& value, Service& out) {
  if (!value.is_object()) return bad("`needs_when` must be {variable: {value: service}}");
  for (const auto& [variable, cases] : value.items()) {
    if (!cases.is_object()) return bad("`needs_when` must be {variable: {value: service}}");
    for (const auto& [wanted, service] : cases.items()) {
      if (!service.is_string()) return bad("`needs_when` must be {variable: {value: service}}");
      out.needs_when[variable][wanted] = service.get<std::string>();
    }
  }
  return {};
}

// A word out of a few.
Status read_choice(const Json& o, std::string_view key, const std::vector<std::string>& choices,
                   std::string& out) {
  auto text = get_string(o, key, out);
  if (!text) return fail(text.error());
  if (std::find(choices.begin(), choices.end(), *text) == choices.end()) {
    return bad(fmt::format("{} {} is not known", key, fleet::shown(*text)),
               "one of: " + join(choices, ", "));
  }
  out = std::move(*text);
  return {};
}

Result<Service> read_service(const std::string& name, const Json& o) {
  Service s;
  s.name = name;
  if (auto fine = fleet::check_word(name, "service"); !fine) return fail(fine.error());
  if (!o.is_object()) return bad("it must be a mapping");
  if (auto known = check_keys(o, kServiceKeys, "a service"); !known) return fail(known.error());
  if (!o.contains("on")) return bad("it has no `on`");
  auto on = read_on(o["on"]);
  if (!on) return fail(on.error());
  s.on = std::move(*on);
  if (o.contains("when")) {
    auto when = read_when(o["when"]);
    if (!when) return fail(when.error());
    s.when = std::move(*when);
  }
  if (o.contains("needs")) {
    auto needs = one_or_many(o["needs"], "needs");
    if (!needs) return fail(needs.error());
    s.needs = std::move(*needs);
  }
  auto version = get_string(o, "version");
  if (!version) return fail(version.error());
  s.version_variable = std::move(*version);
  std::string quorum = "none";
  if (auto fine = read_choice(o, "quorum", {"none", "members"}, quorum); !fine)
    return fail(fine.error());
  s.quorum_members = quorum == "members";
  auto schedules = get_bool(o, "schedules");
  if (!schedules) return fail(schedules.error());
  s.schedules = *schedules;
  auto hands_over = get_bool(o, "hands_over");
  if (!hands_over) return fail(hands_over.error());
  s.hands_over = *hands_over;
  if (auto fine = read_choice(o, "upgrade", {"node", "cluster", "cluster-then-workers"}, s.upgrade);
      !fine)
    return fail(fine.error());
  if (auto fine = read_choice(o, "disrupts", {"nothing", "service", "node"}, s.disrupts); !fine)
    return fail(fine.error());
  if (o.contains("memory")) {
    auto memory = read_memory(o["memory"]);
    if (!memory) return fail(memory.error());
    s.memory_mb = *memory;
  }
  if (o.contains("needs_when")) {
    if (auto fine = read_needs_when(o["needs_when"], s); !fine) return fail(fine.error());
  }
  if (o.contains("ports")) {
    if (auto fine = read_ports(o["ports"], s); !fine) return fail(fine.error());
  }
  if (o.contains("forbids")) {
    if (auto fine = read_forbids(o["forbids"], s); !fine) return fail(fine.error());
  }
  return s;
}

Result<HostGroup> read_group(const std::string& name, const Json& o) {
  HostGroup g;
  g.name = name;
  if (auto fine = fleet::check_word(name, "host group"); !fine) return fail(fine.error());
  if (!o.is_object()) return bad("it must be a mapping");
  if (auto known = check_keys(o, kGroupKeys, "a host group"); !known) return fail(known.error());
  auto manager = get_bool(o, "manager");
  if (!manager) return fail(manager.error());
  g.manager = *manager;
  auto capabilities = get_strings(o, "capabilities");
  if (!capabilities) return fail(capabilities.error());
  g.capabilities = std::move(*capabilities);
  for (const std::string& c : g.capabilities) {
    if (auto fine = fleet::check_word(c, "capability"); !fine) return fail(fine.error());
  }
  std::sort(g.capabilities.begin(), g.capabilities.end());
  auto vars = get_object(o, "vars");
  if (!vars) return fail(vars.error());
  if (auto fine = fleet::check_vars(*vars, "vars", fleet::kMaxNodeVarsBytes); !fine)
    return fail(fine.error());
  g.vars = std::move(*vars);
  return g;
}

// What is needed first, else by name: for documents that have lost their order.
std::vector<std::string> derive_order(const std::map<std::string, Service>& services) {
  std::vector<std::string> out;
  std::set<std::string> done;
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& [name, s] : services) {
      if (done.count(name)) continue;
      const bool ready = std::all_of(s.needs.begin(), s.needs.end(), [&](const std::string& n) {
        return done.count(n) || !services.count(n);
      });
      if (!ready) continue;
      out.push_back(name);
      done.insert(name);
      progress = true;
      break;
    }
  }
  for (const auto& [name, s] : services) {
    if (!done.count(name)) out.push_back(name);  // a cycle; check_references names it
  }
  return out;
}

tl::unexpected<Error> in(std::string_view what, std::string_view where, const Error& error) {
  return fail(Code::kInvalid, "bad_catalog", fmt::format("{}: {}: {}", what, where, error.message),
              error.hint);
}

// What is needed must be a service and stand before. A group that `on` names may be missing:
// catalogs are cut down by removing groups.
Status check_references(const std::map<std::string, Service>& services,
                        const std::vector<std::string>& order) {
  std::set<std::string> before;
  for (const std::string& name : order) {
    const Service& s = services.at(name);
    for (const std::string& need : s.needs) {
      if (before.count(need)) continue;
      return bad(
          services.count(need)
              ? fmt::format("service {} needs {}, which does not stand before it", name, need)
              : fmt::format("service {} needs {}, which is no service", name, fleet::shown(need)));
    }
    for (const auto& [variable, cases] : s.needs_when) {
      for (const auto& [value, need] : cases) {
        if (!before.count(need))
          return bad(fmt::format("service {} may need {}, which does not stand before it", name,
                                 fleet::shown(need)));
      }
    }
    before.insert(name);
  }
  return {};
}

}  // namespace

class Reader {
 public:
  explicit Reader(std::string_view what) : what_(what) {}

  Result<Catalog> read(const Json& document, std::vector<std::string> order) {
    if (!document.is_object()) return bad(fmt::format("{} must be a mapping", what_));
    if (auto known = check_keys(document, kTopKeys, what_); !known) return fail(known.error());
    for (const char* key : {"host_groups", "services"}) {
      if (!document.contains(key) || !document[key].is_object() || document[key].empty()) {
        return bad(fmt::format("{} has no {}", what_, key));
      }
    }
    Catalog out;
    for (const auto& [name, value] : document["host_groups"].items()) {
      auto group = read_group(name, value);
      if (!group) return in(what_, "host group " + fleet::shown(name), group.error());
      out.groups_[name] = std::move(*group);
    }
    std::map<std::string, Service> services;
    for (const auto& [name, value] : document["services"].items()) {
      auto service = read_service(name, value);
      if (!service) return in(what_, "service " + fleet::shown(name), service.error());
      services[name] = std::move(*service);
    }
    auto defaults = get_object(document, "defaults");
    if (!defaults) return in(what_, "defaults", defaults.error());
    if (auto fine = fleet::check_vars(*defaults, "defaults", fleet::kMaxNodeVarsBytes); !fine)
      return in(what_, "defaults", fine.error());
    out.defaults_ = std::move(*defaults);
    if (order.size() != services.size() ||
        !std::all_of(order.begin(), order.end(),
                     [&](const std::string& n) { return services.count(n); })) {
      order = derive_order(services);
    }
    if (auto fine = check_references(services, order); !fine)
      return in(what_, "services", fine.error());
    for (const std::string& name : order) out.services_.push_back(services[name]);
    out.version_ = sha256_hex(dump_json(document) + "\n" + join(order, ",")).substr(0, 16);
    return out;
  }

 private:
  std::string what_;
};

Result<Catalog> Catalog::parse(const Json& document, std::string_view what,
                               std::vector<std::string> order) {
  return Reader(what).read(document, std::move(order));
}

Result<Catalog> Catalog::parse_text(std::string_view yaml, std::string_view what) {
  auto document = parse_yaml(yaml, what);
  if (!document) return fail(document.error());
  return parse(*document, what, yaml_key_order(yaml, {"services"}));
}

Result<Catalog> Catalog::read(const fs::path& file) {
  auto text = read_file(file, 1 << 20);
  if (!text) return fail(text.error());
  return parse_text(*text, file.string());
}

}  // namespace clusterctl::catalog
