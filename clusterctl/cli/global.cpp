#include <fmt/format.h>

#include "base/strings.h"
#include "cli/changes_plan.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/vars.h"

namespace clusterctl::cli {
namespace {

std::string table_of(const Json& vars) {
  Table table({"NAME", "VALUE"});
  if (vars.is_object()) {
    for (const auto& [name, value] : vars.items()) table.add({name, dump_json(value)});
  }
  return table.render();
}

class GlobalGet final : public Command {
 public:
  GlobalGet() : Command("get", "Show the variables that all nodes get") {
    details =
        "Values are JSON. Secrets are shown as {\"secret\": \"NAME\"}.\n"
        "Which value wins, from low to high: role default, global, host group, node, job (-e).";
  }
  void options(Options& o) override { o.arguments("NAMES", names_, "only these variables"); }
  Result<int> run(Session& session) override {
    auto answer = session.get("/v1/globals");
    if (!answer) return fail(answer.error());
    Json vars = field(*answer, "vars");
    if (!names_.empty()) {
      Json some = Json::object();
      for (const std::string& name : names_) {
        if (!vars.is_object() || !vars.contains(name)) {
          return fail(Code::kNotFound, "no_variable",
                      fmt::format("no global variable \"{}\" is set", one_line(name)));
        }
        some[name] = vars[name];
      }
      vars = std::move(some);
    }
    if (session.structured()) {
      session.data(vars);
    } else if (session.names_only()) {
      for (const auto& [name, value] : vars.items()) session.line(clean(name));
    } else {
      session.terminal.out(table_of(vars));
    }
    return kExitOk;
  }

 private:
  std::vector<std::string> names_;
};

class GlobalSet final : public Command {
 public:
  GlobalSet() : Command("set", "Change the variables that all nodes get") {
    details =
        "Jobs that run keep the values they started with.\n"
        "Examples: clusterctl global set service_vip=10.0.0.100 old_name-\n"
        "          clusterctl global set -e @globals.yml --replace";
  }
  void options(Options& o) override {
    o.arguments("VARIABLES", assignments_, "k=v sets (v is JSON or text), k- removes");
    o.list("-e,--extra-vars", "JSON", extra_vars_,
           "a JSON object, or @FILE (JSON, or YAML when it ends in .yml)");
    o.flag("--merge", merge_, "change only the variables given (default)");
    o.flag("--replace", replace_, "the variables given are all there are");
    o.flag("--clear", clear_, "remove all variables");
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    if (merge_ + replace_ + clear_ > 1)
      return usage("--merge, --replace and --clear exclude each other");
    const bool given = !assignments_.empty() || !extra_vars_.empty();
    if (clear_ && given) return usage("--clear takes no variables");
    if (!clear_ && !given)
      return usage("give variables: nothing was changed",
                   "k=v, -e JSON, -e @FILE; --clear removes all");
    auto vars = parse_extra_vars(extra_vars_);
    if (!vars) return fail(vars.error());
    auto more = parse_assignments(assignments_, !replace_);
    if (!more) return fail(more.error());
    for (const auto& [key, value] : more->items()) (*vars)[key] = value;
    if (vars->empty() && !clear_)
      return usage("give variables: nothing was changed",
                   "k=v, -e JSON, -e @FILE; --clear removes all");
    if (plan_) return show_plan(session, std::move(*vars));
    // The daemon merges by name: a variable that is given is the whole new value.
    const char* method = replace_ || clear_ ? "PUT" : "PATCH";
    auto answer = session.call(method, "/v1/globals", {{"vars", *vars}});
    if (!answer) return fail(answer.error());
    session.warnings(*answer);
    if (session.structured()) {
      session.data(field(*answer, "vars"));
    } else if (!session.quiet) {
      session.line(clear_ ? "all global variables removed"
                          : fmt::format("{} {}", count(vars->size(), "global variable"),
                                        replace_ ? "set, all others removed" : "set"));
      const auto drifted = static_cast<size_t>(number(field(*answer, "drifted")));
      session.next(drifted == 0
                       ? "clusterctl global get shows all; nodes get them with their next job"
                       : fmt::format("{} in service {} now from what was applied: clusterctl node "
                                     "update --plan shows what an update does",
                                     count(drifted, "node"), drifted == 1 ? "differs" : "differ"));
    }
    return kExitOk;
  }

 private:
  Result<int> show_plan(Session& session, Json vars) const {
    if (replace_ || clear_) {  // what is not given goes
      auto now = session.get("/v1/globals");
      if (!now) return fail(now.error());
      for (const auto& [name, value] : field(*now, "vars").items())
        if (!vars.contains(name)) vars[name] = nullptr;
    }
    return show_changes(session, {{"globals", std::move(vars)}});
  }

  static tl::unexpected<Error> usage(std::string message, std::string hint = "") {
    return fail(Code::kInvalid, "usage", std::move(message), std::move(hint));
  }

  std::vector<std::string> assignments_, extra_vars_;
  bool merge_ = false, replace_ = false, clear_ = false, plan_ = false;
};

}  // namespace

Noun global_noun() {
  Noun noun{"global", "Ansible variables for all nodes", {"globals"}, {}, nullptr};
  noun.commands.push_back(std::make_unique<GlobalGet>());
  noun.commands.push_back(std::make_unique<GlobalSet>());
  return noun;
}

}  // namespace clusterctl::cli
