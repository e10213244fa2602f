// A job request: its form, before anything of the fleet is looked at.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/time.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"
#include "fleet/selector.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::plan {
namespace {

const std::vector<std::string> kKeys{"kind",         "nodes",           "host_group",
                                     "capabilities", "availability",    "vars",
                                     "selector",     "level",           "force",
                                     "powered_off",  "allow_outage",    "keep_on_failure",
                                     "if_busy",      "dry_run",         "timeout",
                                     "max_failures", "max_unavailable", "deadline",
                                     "drain",        "silence_timeout", "controller_host",
                                     "with",         "take_vars",       "reason",
                                     "owner",        "until",           "for",
                                     "services"};
const std::vector<std::string> kLevels{"membership", "state", "packages", "images"};
constexpr size_t kMaxNodes = 10000;

void one_of(fleet::Problems& problems, const std::string& value,
            const std::vector<std::string>& known, std::string code, std::string_view what) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  const std::string near = nearest(std::string_view(value).substr(0, 64), known);
  problems.add(Code::kInvalid,
               Problem{std::move(code), fmt::format("{} is not a {}", fleet::shown(value), what),
                       near.empty() ? "one of: " + join(known, ", ")
                                    : fmt::format("did you mean \"{}\"?", near),
                       ""});
}

void not_for(fleet::Problems& problems, const Request& r, bool given, std::string_view field,
             std::string_view hint) {
  if (!given) return;
  problems.add(Code::kInvalid,
               Problem{"not_for_kind", fmt::format("\"{}\" means nothing for {}", field, r.kind),
                       std::string(hint), ""});
}

bool is_stay(const std::string& kind) {
  return kind == "maintenance-enter" || kind == "maintenance-exit" || kind == "reboot";
}

void check_stay(fleet::Problems& problems, const Request& r) {
  const bool enters = r.kind == "maintenance-enter" || r.kind == "reboot";
  not_for(problems, r, !enters && !r.owner.empty(), "owner",
          "it says for whom nodes go into maintenance");
  not_for(problems, r, r.kind != "maintenance-enter" && (r.until || r.lasts),
          r.until ? "until" : "for", "it is when maintenance should be over");
  not_for(problems, r, is_stay(r.kind) && r.keep_on_failure, "keep_on_failure",
          "what failed is put back, or stays in maintenance");
  not_for(problems, r, is_stay(r.kind) && !r.vars.empty() && r.kind != "reboot", "vars",
          "nothing is converged");
  if (r.until && r.lasts) {
    problems.add(Code::kInvalid,
                 Problem{"until_and_for", "\"until\" and \"for\" exclude each other",
                         "give the end, or how long", ""});
  }
}

void check_rolling(fleet::Problems& problems, const Request& r) {
  const bool enters = r.kind == "maintenance-enter" || r.kind == "reboot";
  const bool drains = r.kind == "drain" || r.kind == "update" || enters;
  const bool sets = availability_of(r.kind).has_value();
  not_for(problems, r, !drains && !r.max_unavailable.empty(), "max_unavailable",
          "it belongs to update, drain, maintenance-enter and reboot");
  not_for(problems, r, r.kind != "update" && r.max_failures != 1, "max_failures",
          "it belongs to update");
  not_for(problems, r, r.kind != "update" && r.drain != "auto", "drain", "it belongs to update");
  not_for(problems, r, r.kind != "update" && !r.services.empty(), "services",
          "it narrows an update");
  not_for(problems, r, reassigns(r) && !r.services.empty(), "services",
          "another group or other capabilities concern all services of a node; give one or the "
          "other");
  not_for(problems, r, !drains && r.deadline, "deadline", "it is how long a drain may take");
  not_for(problems, r, (sets || is_stay(r.kind)) && !r.host_group.empty() && !r.nodes.empty(),
          "host_group",
          "nodes are named; `clusterctl node update NAME --host-group=GROUP` changes the group");
  not_for(problems, r, sets && !r.vars.empty(), "vars",
          "it only changes the availability in the scheduler");
}

void check_replace(fleet::Problems& problems, const Request& r) {
  const bool replace = r.kind == "replace";
  not_for(problems, r, !replace && !r.with.empty(), "with", "it belongs to replace");
  not_for(problems, r, !replace && r.take_vars, "take_vars", "it belongs to replace");
  if (!replace || (r.nodes.size() == 1 && !r.with.empty() && r.selector.empty())) return;
  problems.add(Code::kInvalid,
               Problem{"replace_form", "replace takes one node and the one that takes its place",
                       "`clusterctl node replace OLD --with NEW`", ""});
}

// A field that would be ignored is a misunderstanding.
void check_fit(fleet::Problems& problems, const Request& r) {
  const bool commission = r.kind == "commission", replace = r.kind == "replace";
  const bool decommission = r.kind == "decommission" || replace;
  const bool gives = commission || r.kind == "check" || r.kind == "promote" || r.kind == "demote" ||
                     (r.kind == "update" && !r.nodes.empty());
  not_for(problems, r, !gives && !r.capabilities.empty(), "capabilities",
          r.kind == "update" ? "name the nodes that get them"
                             : "commission, update, promote and demote change them");
  check_replace(problems, r);
  not_for(problems, r, !commission && r.availability, "availability", "only commission takes it");
  not_for(problems, r, decommission && !r.host_group.empty(), "host_group",
          replace ? "the node gets the group of the other one"
                  : "name the nodes, or select them by label");
  not_for(problems, r, !decommission && r.level != "state", "level",
          "it is how thoroughly decommission cleans");
  not_for(problems, r, !decommission && r.powered_off, "powered_off",
          "it belongs to decommission and replace with force");
  not_for(problems, r, !commission && r.controller_host, "controller_host",
          "only commission puts a machine into service");
  check_rolling(problems, r);
  check_stay(problems, r);
  if (r.powered_off && !r.force) {
    problems.add(
        Code::kInvalid,
        Problem{"needs_force", "\"powered_off\" needs \"force\" as well",
                "`clusterctl node decommission NAME --force --i-have-powered-it-off`", ""});
  }
  if (!r.nodes.empty() && !r.selector.empty()) {
    problems.add(Code::kInvalid,
                 Problem{"nodes_and_selector", "\"nodes\" and \"selector\" exclude each other",
                         "name the nodes, or select them", ""});
  }
}

void read_nodes(fleet::Problems& problems, const Json& body, Request& r) {
  r.nodes = problems.take(get_strings(body, "nodes"));
  if (r.nodes.size() > kMaxNodes) {
    problems.add(Code::kInvalid, Problem{"too_many_nodes", "too many nodes in one request",
                                         fmt::format("at most {}", kMaxNodes), ""});
    r.nodes.clear();
  }
  const bool blank = std::any_of(r.nodes.begin(), r.nodes.end(),
                                 [](const std::string& n) { return trim(n).empty(); });
  const auto given = body.find("nodes");
  if (blank || (given != body.end() && given->is_array() && given->empty())) {
    problems.add(
        Code::kInvalid,
        Problem{"no_nodes", blank ? "\"nodes\" holds an empty name" : "\"nodes\" is an empty list",
                "name the nodes, or leave the field out", ""});
  }
}

// Seconds as a number, or "90s", "10m", "2h".
std::optional<std::chrono::seconds> read_duration(fleet::Problems& problems, const Json& body,
                                                  const char* key) {
  const auto value = body.find(key);
  if (value == body.end() || value->is_null()) return std::nullopt;
  const auto duration = parse_duration(plain_text(*value));
  if (duration) return *duration;
  problems.add(Code::kInvalid,
               Problem{"bad_duration", fmt::format("\"{}\": {}", key, duration.error().message),
                       duration.error().hint, ""});
  return std::nullopt;
}

void read_rolling(fleet::Problems& problems, const Json& body, Request& r) {
  const auto bad = [&](std::string field, std::string hint) {
    problems.add(Code::kInvalid,
                 Problem{"bad_" + field,
                         fmt::format("\"{}\" is {}", field, fleet::shown(plain_text(body[field]))),
                         std::move(hint), ""});
  };
  if (const auto given = body.find("max_unavailable"); given != body.end()) {
    r.max_unavailable = given->is_string()           ? given->get<std::string>()
                        : given->is_number_integer() ? dump_json(*given)
                                                     : "?";
    if (!budget(r.max_unavailable, 100)) bad("max_unavailable", "a number from 1, or \"10%\"");
  }
  if (const auto given = body.find("max_failures"); given != body.end()) {
    const bool fits = given->is_number_integer() && given->get<int64_t>() >= 1 &&
                      given->get<int64_t>() <= static_cast<int64_t>(kMaxNodes);
    if (fits) r.max_failures = given->get<int>();
    if (!fits) bad("max_failures", "a number from 1");
  }
  r.drain = problems.take(get_string(body, "drain", "auto"));
  one_of(problems, r.drain, {"auto", "always", "never"}, "unknown_word", "value of drain");
  if (const auto given = body.find("deadline"); given != body.end()) {
    constexpr std::chrono::hours kLongest{7 * 24};
    const auto deadline = parse_duration(plain_text(*given));
    if (deadline && *deadline <= kLongest) r.deadline = static_cast<int>(deadline->count());
    if (!r.deadline) bad("deadline", "seconds, or \"90s\", \"10m\", \"2h\"; at most a week");
  }
}

// Names of one kind: words, each once, sorted.
std::vector<std::string> read_words(fleet::Problems& problems, const Json& body, const char* key,
                                    std::string_view one, const Problem& too_many) {
  std::vector<std::string> words = problems.take(get_strings(body, key));
  if (words.size() > fleet::kMaxListItems) {
    problems.add(Code::kInvalid, too_many);
    words.resize(fleet::kMaxListItems);
  }
  for (const std::string& word : words) problems.take(fleet::check_word(word, one));
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// One line for people: why, and for whom.
std::string read_line(fleet::Problems& problems, const Json& body, const char* key,
                      size_t longest) {
  std::string text = problems.take(get_string(body, key));
  const bool plain =
      valid_utf8(text) &&
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (plain && text.size() <= longest) return trim(text);
  problems.add(
      Code::kInvalid,
      Problem{fmt::format("bad_{}", key), fmt::format("\"{}\" is not one line of text", key),
              fmt::format("at most {} bytes, no control characters", longest), ""});
  return "";
}

void read_stay(fleet::Problems& problems, const Json& body, Request& r) {
  r.reason = read_line(problems, body, "reason", 500);
  r.owner = read_line(problems, body, "owner", 100);
  r.lasts = read_duration(problems, body, "for");
  const std::string until = problems.take(get_string(body, "until"));
  if (until.empty()) return;
  const auto time = parse_time(until);
  if (time) {
    r.until = *time;
  } else {
    problems.add(
        Code::kInvalid,
        Problem{"bad_until", fmt::format("\"until\" has to be a time, not {}", fleet::shown(until)),
                "a time like 2026-11-30T22:00:00Z or 2026-11-30T23:00:00+01:00", ""});
  }
}

}  // namespace

Result<Request> parse_request(const Json& body) {
  if (!body.is_object())
    return fail(Code::kInvalid, "not_an_object",
                fmt::format("a job request must be a JSON object, not {}", body.type_name()));
  fleet::Problems problems;
  for (const auto& [key, value] : body.items())
    problems.take(check_keys(Json{{key, value}}, kKeys, "a job request"));
  Request r;
  r.kind = problems.take(get_string(body, "kind"));
  one_of(problems, r.kind, kKinds, "unknown_kind", "kind of job");
  read_nodes(problems, body, r);
  r.host_group = problems.take(get_string(body, "host_group"));
  if (!r.host_group.empty()) problems.take(fleet::check_word(r.host_group, "host group"));
  r.capabilities = read_words(problems, body, "capabilities", "capability",
                              Problem{"too_many_capabilities", "too many capabilities",
                                      fmt::format("at most {}", fleet::kMaxListItems), ""});
  r.services = read_words(problems, body, "services", "service",
                          Problem{"too_many_services", "too many services",
                                  fmt::format("at most {}", fleet::kMaxListItems), ""});
  if (const auto given = body.find("services");
      given != body.end() && given->is_array() && given->empty()) {
    problems.add(Code::kInvalid, Problem{"no_services", "\"services\" is an empty list",
                                         "name the services, or leave the field out", ""});
  }
  const std::string availability = problems.take(get_string(body, "availability"));
  if (!availability.empty()) {
    one_of(problems, availability, fleet::all_words<fleet::Availability>(), "unknown_word",
           "value of availability");
    r.availability = fleet::from_word<fleet::Availability>(availability);
  }
  const auto vars = get_object(body, "vars");
  if (!vars)
    problems.add(vars.error());
  else if (auto fine = fleet::check_vars(*vars, "vars", fleet::kMaxRequestVarsBytes); !fine)
    problems.add(fine.error());
  else
    r.vars = *vars;
  r.selector = problems.take(get_string(body, "selector"));
  if (auto selector = fleet::Selector::parse(r.selector); !selector) problems.add(selector.error());
  r.level = problems.take(get_string(body, "level", "state"));
  one_of(problems, r.level, kLevels, "unknown_word", "level");
  r.if_busy = problems.take(get_string(body, "if_busy", "queue"));
  one_of(problems, r.if_busy, {"queue", "refuse"}, "unknown_word", "value of if_busy");
  r.force = problems.take(get_bool(body, "force"));
  r.powered_off = problems.take(get_bool(body, "powered_off"));
  r.allow_outage = problems.take(get_bool(body, "allow_outage"));
  r.controller_host = problems.take(get_bool(body, "controller_host"));
  r.keep_on_failure = problems.take(get_bool(body, "keep_on_failure"));
  r.dry_run = problems.take(get_bool(body, "dry_run"));
  r.timeout = read_duration(problems, body, "timeout");
  r.silence_timeout = read_duration(problems, body, "silence_timeout");
  read_rolling(problems, body, r);
  r.with = problems.take(get_string(body, "with"));
  r.take_vars = problems.take(get_bool(body, "take_vars"));
  read_stay(problems, body, r);
  if (problems.empty()) check_fit(problems, r);
  if (!problems.empty()) return problems.refuse("the request is refused");
  return r;
}

Json to_json(const Request& r) {
  Json out{{"kind", r.kind}};
  if (!r.nodes.empty()) out["nodes"] = r.nodes;
  if (!r.host_group.empty()) out["host_group"] = r.host_group;
  if (!r.capabilities.empty()) out["capabilities"] = r.capabilities;
  if (r.availability) out["availability"] = fleet::word(*r.availability);
  if (!r.vars.empty()) out["vars"] = r.vars;
  if (!r.selector.empty()) out["selector"] = r.selector;
  if (r.kind == "decommission" || r.kind == "replace") out["level"] = r.level;
  if (r.force) out["force"] = true;
  if (r.powered_off) out["powered_off"] = true;
  if (r.allow_outage) out["allow_outage"] = true;
  if (r.controller_host) out["controller_host"] = true;
  if (r.keep_on_failure) out["keep_on_failure"] = true;
  if (r.if_busy != "queue") out["if_busy"] = r.if_busy;
  if (r.dry_run) out["dry_run"] = true;
  if (r.timeout) out["timeout"] = r.timeout->count();
  if (r.silence_timeout) out["silence_timeout"] = r.silence_timeout->count();
  if (!r.max_unavailable.empty()) out["max_unavailable"] = r.max_unavailable;
  if (r.max_failures != 1) out["max_failures"] = r.max_failures;
  if (r.drain != "auto") out["drain"] = r.drain;
  if (r.deadline) out["deadline"] = *r.deadline;
  if (!r.services.empty()) out["services"] = r.services;
  if (!r.with.empty()) out["with"] = r.with;
  if (r.take_vars) out["take_vars"] = true;
  if (!r.reason.empty()) out["reason"] = r.reason;
  if (!r.owner.empty()) out["owner"] = r.owner;
  if (r.until) out["until"] = format_time(*r.until);
  if (r.lasts) out["for"] = r.lasts->count();
  return out;
}

Request pinned(const Request& request, const Plan& plan, const fleet::Snapshot& snapshot) {
  Request out = request;
  if (out.kind == "observe") return out;  // all managers, whoever they are by then
  if (out.kind == "replace") {            // one and the other, by their names
    for (std::string* ref : {&out.nodes[0], &out.with}) {
      if (const auto node = snapshot.find(*ref)) *ref = (*node)->name;
    }
    return out;
  }
  // With names the group is what the nodes get; else it was how they were found.
  if (!reassigns(out) && (out.kind == "update" || availability_of(out.kind) || is_stay(out.kind)))
    out.host_group.clear();
  out.nodes.clear();
  out.selector.clear();
  for (const std::string& id : plan.targets) {
    const auto it = snapshot.nodes.find(id);
    if (it != snapshot.nodes.end()) out.nodes.push_back(it->second.name);
  }
  return out;
}

}  // namespace clusterctl::plan
