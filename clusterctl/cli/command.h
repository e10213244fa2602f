// The shape of every command: a name, options, and a body that gets a Session. Options are data, so
// that the parser, the help and the shell completion come from one place, and CLI11 is known to
// app.cpp only. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace clusterctl::cli {

struct Session;

struct OptionSpec {
  std::string names;  // "-g,--host-group", or the capital name of a positional: "NAMES"
  std::string value;  // placeholder of its value; empty: a flag
  std::string help;
  std::vector<std::string> choices;
  bool required = false;
  bool many = false;
  std::function<Status(const std::vector<std::string>&)> set;  // gets what was given, never empty
  std::vector<std::string> suggestions{};  // what completion offers besides; others may be given
  bool positional() const { return names.find('-') == std::string::npos; }
};

// Collects a command's options; the targets are members of the command.
class Options {
 public:
  void flag(std::string names, bool& target, std::string help);
  OptionSpec& value(std::string names, std::string placeholder, std::string& target,
                    std::string help);
  void number(std::string names, std::string placeholder, std::optional<int64_t>& target,
              std::string help);
  // Given several times; with `commas` also "a,b".
  OptionSpec& list(std::string names, std::string placeholder, std::vector<std::string>& target,
                   std::string help, bool commas = false);
  OptionSpec& argument(std::string name, std::string& target, std::string help,
                       bool required = true);
  OptionSpec& arguments(std::string name, std::vector<std::string>& target, std::string help,
                        bool required = false);

  const std::vector<OptionSpec>& all() const { return specs_; }

 private:
  OptionSpec& add(OptionSpec spec);
  std::vector<OptionSpec> specs_;
};

class Command {
 public:
  Command(std::string name, std::string summary)
      : name(std::move(name)), summary(std::move(summary)) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual void options(Options&) {}
  // The exit code; an Error is printed by the caller and decides it by its Code.
  virtual Result<int> run(Session& session) = 0;

  std::string name;
  std::string summary;
  std::string details;  // below the options in --help: fields, examples
  std::vector<std::string> aliases;
  bool needs_server = true;
};
using CommandPtr = std::unique_ptr<Command>;

// "node", "job" …: commands on one kind of thing.
struct Noun {
  std::string name;
  std::string summary;
  std::vector<std::string> aliases;
  std::vector<CommandPtr> commands;
  CommandPtr alone;  // runs when no command follows; may be null
};

struct Tree {
  std::vector<Noun> nouns;
  std::vector<CommandPtr> commands;  // that stand alone
};
Tree make_tree();

Noun node_noun();
Noun job_noun();
Noun global_noun();
Noun inventory_noun();
Noun revision_noun();
CommandPtr make_plan();
CommandPtr make_apply();
Noun manager_noun();
Noun cluster_noun();
CommandPtr make_status();
CommandPtr make_version();
CommandPtr make_events();
CommandPtr make_completion();
Noun context_noun();

}  // namespace clusterctl::cli
