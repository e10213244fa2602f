#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/session.h"

namespace clusterctl::cli {
namespace {

struct Entry {
  std::string path;  // "node commission"
  std::vector<std::string> words;
};

std::vector<std::string> option_words(Command& command) {
  Options o;
  command.options(o);
  std::vector<std::string> out;
  for (const OptionSpec& spec : o.all()) {
    if (spec.positional()) continue;
    for (const std::string& name : split(spec.names, ',')) {
      if (name.starts_with("--")) out.push_back(name);
    }
  }
  out.emplace_back("--help");
  return out;
}

std::vector<Entry> entries(const Tree& tree) {
  std::vector<Entry> out;
  Entry top{"", {"serve"}};
  for (const Noun& noun : tree.nouns) top.words.push_back(noun.name);
  for (const CommandPtr& c : tree.commands) top.words.push_back(c->name);
  for (const char* o :
       {"--server", "--token-file", "--output", "--json", "--quiet", "--no-color", "--help"})
    top.words.emplace_back(o);
  out.push_back(top);
  for (const Noun& noun : tree.nouns) {
    Entry entry{noun.name, {}};
    for (const CommandPtr& c : noun.commands) entry.words.push_back(c->name);
    if (noun.alone) {
      for (std::string& w : option_words(*noun.alone)) entry.words.push_back(std::move(w));
    }
    out.push_back(entry);
    for (const CommandPtr& c : noun.commands)
      out.push_back({noun.name + " " + c->name, option_words(*c)});
  }
  for (const CommandPtr& c : tree.commands) out.push_back({c->name, option_words(*c)});
  return out;
}

// Commands of the noun node take node names, those of job job ids; asked from the daemon only when
// Tab is pressed.
std::string bash(const Tree& tree) {
  std::string out =
      "# clusterctl completion for bash: source <(clusterctl completion bash)\n"
      "_clusterctl() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" path=\"\" w words=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    w=\"${COMP_WORDS[i]}\"\n"
      "    case \"$w\" in -*) ;; *) [[ $path != *\" \"* ]] && path=\"${path:+$path }$w\" ;; esac\n"
      "  done\n"
      "  case \"$path\" in\n";
  for (const Entry& e : entries(tree))
    out += fmt::format("    \"{}\") words=\"{}\" ;;\n", e.path, join(e.words, " "));
  out +=
      "  esac\n"
      "  if [[ $word != -* ]]; then\n"
      "    case \"$path\" in\n"
      "      \"node add\" | \"node ls\" | node) ;;\n"
      "      \"node \"*) words+=\" $(clusterctl node ls -q 2>/dev/null)\" ;;\n"
      "      \"job inspect\" | \"job logs\" | \"job wait\" | \"job cancel\" | \\\n"
      "      \"job pause\" | \"job resume\" | \"job retry\")\n"
      "        words+=\" last active $(clusterctl job ls -q --limit 20 2>/dev/null)\" ;;\n"
      "      \"inventory import\" | plan | apply) COMPREPLY=($(compgen -f -- \"$word\")); return "
      ";;\n"
      "    esac\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}\n"
      "complete -F _clusterctl clusterctl\n";
  return out;
}

std::string zsh(const Tree& tree) {
  return "# clusterctl completion for zsh: source <(clusterctl completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash(tree);
}

std::string fish_word(const std::string& word) {
  return word.starts_with("--") ? "-l " + word.substr(2) : "-a " + word;
}

std::string fish(const Tree& tree) {
  std::string out =
      "# clusterctl completion for fish: clusterctl completion fish | source\n"
      "complete -c clusterctl -f\n"
      "function __clusterctl_path\n"
      "  set -l words (string match -v -- '-*' (commandline -opc)[2..-1])\n"
      "  test \"$words[1..2]\" = \"$argv\"\n"
      "end\n";
  for (const Entry& e : entries(tree)) {
    for (const std::string& word : e.words) {
      out += fmt::format("complete -c clusterctl -n '__clusterctl_path {}' {}\n", e.path,
                         fish_word(word));
    }
  }
  for (const char* command : {"inspect", "check",   "commission",       "verify",   "decommission",
                              "label",   "rm",      "confirm-hardware", "move",     "rename",
                              "accept",  "reject",  "forget-hostkey",   "allocate", "history",
                              "drain",   "pause",   "activate",         "update",   "promote",
                              "demote",  "replace", "maintenance",      "reboot"}) {
    out += fmt::format(
        "complete -c clusterctl -n '__clusterctl_path node {}' -a '(clusterctl node ls -q "
        "2>/dev/null)'\n",
        command);
  }
  return out;
}

class Completion final : public Command {
 public:
  Completion() : Command("completion", "Completion of commands, options and names for a shell") {
    details = "Example: source <(clusterctl completion bash)";
    needs_server = false;
  }
  void options(Options& o) override {
    o.argument("SHELL", shell_, "bash, zsh or fish").choices = {"bash", "zsh", "fish"};
  }
  Result<int> run(Session& session) override {
    const Tree& tree = session.tree;
    session.terminal.out(shell_ == "bash" ? bash(tree) : shell_ == "zsh" ? zsh(tree) : fish(tree));
    return kExitOk;
  }

 private:
  std::string shell_;
};

}  // namespace

CommandPtr make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace clusterctl::cli
