#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "cli/cluster_commands.h"
#include "cli/contiv_commands.h"

namespace clusterctl::cli {
namespace {

// A variable of a script that is not set must not mean everything, nor another daemon.
tl::unexpected<Error> no_value(const std::string& option) {
  return fail(Code::kInvalid, "usage", fmt::format("the value of {} is empty", option),
              "give one, or leave the option out");
}

}  // namespace

OptionSpec& Options::add(OptionSpec spec) {
  return specs_.emplace_back(std::move(spec));
}

void Options::flag(std::string names, bool& target, std::string help) {
  add({std::move(names), "", std::move(help), {}, false, false, [&target](const auto&) -> Status {
         target = true;
         return {};
       }});
}

OptionSpec& Options::value(std::string names, std::string placeholder, std::string& target,
                           std::string help) {
  const std::string shown = names;
  return add({std::move(names),
              std::move(placeholder),
              std::move(help),
              {},
              false,
              false,
              [&target, shown](const std::vector<std::string>& given) -> Status {
                if (given.back().empty()) return no_value(shown);
                target = given.back();
                return {};
              }});
}

void Options::number(std::string names, std::string placeholder, std::optional<int64_t>& target,
                     std::string help) {
  const std::string shown = names;
  add({std::move(names),
       std::move(placeholder),
       std::move(help),
       {},
       false,
       false,
       [&target, shown](const std::vector<std::string>& given) -> Status {
         const std::string& t = given.back();
         int64_t value = 0;
         const auto [end, ec] = std::from_chars(t.data(), t.data() + t.size(), value);
         if (ec != std::errc() || end != t.data() + t.size() || value < 0) {
           return fail(Code::kInvalid, "usage",
                       fmt::format("{} needs a whole number, not \"{}\"", shown, one_line(t)));
         }
         target = value;
         return {};
       }});
}

OptionSpec& Options::list(std::string names, std::string placeholder,
                          std::vector<std::string>& target, std::string help, bool commas) {
  const std::string shown = names;
  return add({std::move(names),
              std::move(placeholder),
              std::move(help),
              {},
              false,
              true,
              [&target, commas, shown](const std::vector<std::string>& given) -> Status {
                for (const std::string& g : given) {
                  if (commas && trim(join(split(g, ','), "")).empty()) return no_value(shown);
                  if (!commas) {
                    target.push_back(g);
                    continue;
                  }
                  for (const std::string& part : split(g, ',', true)) {
                    if (!trim(part).empty()) target.push_back(trim(part));
                  }
                }
                return {};
              }});
}

OptionSpec& Options::argument(std::string name, std::string& target, std::string help,
                              bool required) {
  OptionSpec& spec = value(name, name, target, std::move(help));
  spec.required = required;
  return spec;
}

OptionSpec& Options::arguments(std::string name, std::vector<std::string>& target, std::string help,
                               bool required) {
  OptionSpec& spec = list(name, name, target, std::move(help));
  spec.required = required;
  return spec;
}

Tree make_tree() {
  Tree tree;
  tree.nouns.push_back(node_noun());
  tree.nouns.push_back(job_noun());
  tree.nouns.push_back(cluster_noun());
  tree.nouns.push_back(global_noun());
  tree.nouns.push_back(inventory_noun());
  tree.nouns.push_back(revision_noun());
  tree.commands.push_back(make_plan());
  tree.commands.push_back(make_apply());
  tree.nouns.push_back(manager_noun());
  tree.nouns.push_back(context_noun());
  tree.commands.push_back(make_status());
  tree.commands.push_back(make_events());
  tree.commands.push_back(make_version());
  tree.commands.push_back(make_completion());
  tree.commands.push_back(make_discover());
  tree.nouns.push_back(config_noun());
  return tree;
}

}  // namespace clusterctl::cli
