#include "cli/complete.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/strings.h"
#include "cli/live_names.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{700};

// Ends the program, quietly, should anything below the daemon's answer (a name server) take longer
// than a person waits.
class LastResort {
 public:
  LastResort() {
    before_ = std::signal(SIGALRM, [](int) { _exit(0); });
    set(900);
  }
  ~LastResort() {
    set(0);
    std::signal(SIGALRM, before_);
  }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

 private:
  static void set(int ms) {
    const itimerval timer{{0, 0}, {0, ms * 1000}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  void (*before_)(int) = SIG_DFL;
};

bool called(const std::string& word, const std::string& name,
            const std::vector<std::string>& aliases) {
  return word == name || contains(aliases, word);
}

// What the words before the cursor have said.
class Line {
 public:
  explicit Line(const CompleteWith& with) : with_(with) {}

  // False: no command begins like this.
  bool read(const std::vector<std::string>& words) {
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string& word = words[i];
      if (pending_) {
        (void)pending_->set({word});
        pending_ = nullptr;
      } else if (!only_arguments_ && word == "--") {
        only_arguments_ = true;
      } else if (!only_arguments_ && word.size() > 1 && word[0] == '-') {
        option(word);
      } else if (!take(word)) {
        return false;
      }
    }
    return true;
  }

  const OptionSpec* pending() const { return pending_; }
  bool only_arguments() const { return only_arguments_; }
  bool used(const std::string& word) const {
    return contains(given_, word) || contains(used_, word);
  }

  // All options that may stand here.
  std::vector<const OptionSpec*> options() const {
    std::vector<const OptionSpec*> out;
    for (const OptionSpec& spec : own_.all()) {
      if (!spec.positional()) out.push_back(&spec);
    }
    for (const OptionSpec& spec : with_.everywhere) out.push_back(&spec);
    return out;
  }

  const OptionSpec* find(const std::string& name) const {
    for (const OptionSpec* spec : options()) {
      if (contains(split(spec->names, ','), name)) return spec;
    }
    return nullptr;
  }

  const OptionSpec* argument() const {
    size_t n = given_.size();
    for (const OptionSpec& spec : own_.all()) {
      if (!spec.positional()) continue;
      if (spec.many || n == 0) return &spec;
      --n;
    }
    return nullptr;
  }

  std::vector<Candidate> commands() const {
    std::vector<Candidate> out;
    if (noun_ && !command_) {
      for (const CommandPtr& c : noun_->commands) out.push_back({c->name, c->summary});
    } else if (!noun_ && !command_) {
      for (const Noun& n : with_.tree.nouns) out.push_back({n.name, n.summary});
      for (const CommandPtr& c : with_.tree.commands) out.push_back({c->name, c->summary});
      out.push_back({"serve", "The daemon"});
    }
    return out;
  }

  Live live(const OptionSpec& spec) const {
    const std::string noun = noun_ ? noun_->name : "", command = command_ ? command_->name : "";
    for (const std::string& name : split(spec.names, ',')) {
      const Live found = live_of(noun, command, name, spec.value);
      if (found == Live::kTokens && used("--join")) return Live::kJoinTokens;
      if (found != Live::kNone) return found;
    }
    return Live::kNone;
  }

 private:
  bool take(const std::string& word) {
    if (!noun_ && !command_) {
      for (const Noun& n : with_.tree.nouns) {
        if (!called(word, n.name, n.aliases)) continue;
        noun_ = &n;
        if (n.alone) n.alone->options(own_);
        return true;
      }
      return begin(word, with_.tree.commands);
    }
    if (noun_ && !command_ && given_.empty() && begin(word, noun_->commands)) return true;
    if (!command_ && !noun_->alone) return false;
    given_.push_back(word);
    return true;
  }

  bool begin(const std::string& word, const std::vector<CommandPtr>& commands) {
    for (const CommandPtr& c : commands) {
      if (!called(word, c->name, c->aliases)) continue;
      command_ = c.get();
      own_ = Options();
      c->options(own_);
      return true;
    }
    return false;
  }

  void option(const std::string& word) {
    const size_t equals = word.find('=');
    const OptionSpec* spec = find(word.substr(0, equals));
    if (!spec) return;
    for (const std::string& name : split(spec->names, ',')) {
      if (!spec->many) used_.push_back(name);
    }
    if (spec->value.empty()) return;
    if (equals == std::string::npos) {
      pending_ = spec;
    } else {
      (void)spec->set({word.substr(equals + 1)});
    }
  }

  const CompleteWith& with_;
  const Noun* noun_ = nullptr;
  Command* command_ = nullptr;
  Options own_;
  const OptionSpec* pending_ = nullptr;
  bool only_arguments_ = false;
  std::vector<std::string> given_, used_;
};

class Answers {
 public:
  Answers(Terminal& terminal, std::string word) : terminal_(terminal), word_(std::move(word)) {}

  void add(const Candidate& c, const std::string& before = "") {
    const std::string word = before + c.word;
    if (c.word.empty() || !word.starts_with(word_)) return;
    if (word.find_first_of(" \t\n'\"\\`$") != std::string::npos)
      return;  // shells would take it apart
    terminal_.out(c.about.empty() ? word + "\n" : word + "\t" + fit(c.about, 60) + "\n");
  }
  void files() { terminal_.out(":files\n"); }

 private:
  Terminal& terminal_;
  std::string word_;
};

// The value of an option or an argument; `before` is what stands there and is no part of it.
void value(const CompleteWith& with, const Line& line, const OptionSpec& spec,
           const std::string& before, const std::string& begun, Answers& answers) {
  for (const auto* list : {&spec.choices, &spec.suggestions}) {
    for (const std::string& word : *list) {
      if (!spec.positional() || !line.used(word)) answers.add({word, ""}, before);
    }
  }
  const Live live = line.live(spec);
  if (live == Live::kFiles) return answers.files();
  if (live == Live::kNone) return;
  const LastResort bounded;
  std::vector<Candidate> found;
  if (live == Live::kContexts) {
    found = context_names(with.contexts);
  } else {
    auto settings = with.settings();
    if (!settings) return;
    const auto servers = static_cast<int>(std::max<size_t>(1, settings->endpoints.size()));
    settings->request_timeout = kPatience / servers;
    settings->connect_timeout = kPatience / servers;
    const auto rest = with.connect(std::move(*settings));
    found = live_names(live, begun, *rest);
  }
  for (const Candidate& c : found) {
    if (!spec.positional() || !line.used(c.word)) answers.add(c, before);
  }
}

void print_tree(const Tree& tree, Terminal& terminal) {
  for (const Noun& noun : tree.nouns) {
    terminal.out(noun.name + "\n");
    for (const CommandPtr& c : noun.commands) terminal.out(noun.name + " " + c->name + "\n");
  }
  for (const CommandPtr& c : tree.commands) terminal.out(c->name + "\n");
}

}  // namespace

int complete(const std::vector<std::string>& words, const CompleteWith& with, Terminal& terminal) {
  if (words.empty()) return kExitOk;
  if (words.size() == 1 && words[0] == "--tree") {
    print_tree(with.tree, terminal);
    return kExitOk;
  }
  Line line(with);
  if (!line.read(words)) return kExitOk;
  const std::string& word = words.back();
  Answers answers(terminal, word);
  // Of "a,b,c" only the last is completed.
  const auto last_of = [&word](size_t from) {
    const size_t comma = word.rfind(',');
    return comma == std::string::npos || comma < from ? from : comma + 1;
  };
  const size_t equals = word.find('=');
  const bool option = !line.only_arguments() && word.starts_with('-');
  if (line.pending()) {
    const size_t at = last_of(0);
    value(with, line, *line.pending(), word.substr(0, at), word.substr(at), answers);
  } else if (option && equals != std::string::npos) {
    const OptionSpec* spec = line.find(word.substr(0, equals));
    const size_t at = last_of(equals + 1);
    if (spec && !spec->value.empty())
      value(with, line, *spec, word.substr(0, at), word.substr(at), answers);
  } else if (option) {
    for (const OptionSpec* spec : line.options()) {
      for (const std::string& name : split(spec->names, ',')) {
        if (name.starts_with("--") && !line.used(name)) answers.add({name, spec->help});
      }
    }
    answers.add({"--help", "what there is, and what it does"});
  } else {
    for (const Candidate& c : line.commands()) answers.add(c);
    if (const OptionSpec* spec = line.argument()) value(with, line, *spec, "", word, answers);
  }
  return kExitOk;
}

}  // namespace clusterctl::cli
