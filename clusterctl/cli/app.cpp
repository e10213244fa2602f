#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/process_list.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/version_check.h"
#include "client/server_trust.h"

namespace clusterctl::cli {
namespace {

constexpr int kHelpColumn = 34;

struct Globals {
  Connection given;
  std::string context, output = "table";
  std::optional<int64_t> request_timeout;
  bool json = false, quiet = false, no_color = false;
};

void global_options(Options& o, Globals& g) {
  o.list("--server", "ADDRESS", g.given.servers,
         "daemon: unix:PATH or https://HOST:PORT; several, also separated by commas, are tried in "
         "this order (CLUSTERCTL_SERVER)",
         true);
  o.value("--context", "NAME", g.context,
          "daemon by its name in clusterctl context ls (CLUSTERCTL_CONTEXT)");
  o.value("--token-file", "FILE", g.given.token_file,
          "file with the token for a TCP server (CLUSTERCTL_TOKEN_FILE)");
  o.value("--ca-fingerprint", "SHA256", g.given.ca_fingerprint,
          "authority that an https server must have: cluster info on the controller shows it "
          "(CLUSTERCTL_CA_FINGERPRINT)");
  o.value("--ca-file", "FILE", g.given.ca_file,
          "authorities for https servers instead of the system's (CLUSTERCTL_CA_FILE)");
  o.number("--request-timeout", "SECONDS", g.request_timeout,
           "how long to wait for an answer; default 60 (CLUSTERCTL_REQUEST_TIMEOUT)");
  o.value("-o,--output", "FORMAT", g.output, "table, wide, json, yaml or name").choices = {
      "table", "wide", "json", "yaml", "name"};
  o.flag("-j,--json", g.json, "the same as -o json");
  o.flag("-q,--quiet", g.quiet, "names or ids only; no hints");
  o.flag("--no-color", g.no_color, "no colours (also NO_COLOR)");
}

// Builds CLI11's tree from ours and remembers which command was chosen.
class Parser {
 public:
  Parser(Tree& tree, Globals& globals)
      : app_("Commissions bare-metal machines with Ansible: nodes, jobs, and what they run.",
             "clusterctl") {
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(kHelpColumn);
    Options o;
    global_options(o, globals);
    add_options(app_, o, "Everywhere");
    app_.footer(
        "The daemon is started with: clusterctl serve\n"
        "Exit codes: 0 done, 1 job failed, 2 and 3 only of plan, 64 usage, 65 refused, 69 daemon "
        "not reached, 70 "
        "internal error,\n"
        "74 the output could not be written, 77 not authorised, 130 detached (the job goes on).");
    for (Noun& noun : tree.nouns) add_noun(noun);
    for (const CommandPtr& c : tree.commands) add_command(app_, *c);
  }

  // kExitOk with `help` set: print it. An Error: wrong usage.
  Status parse(std::vector<std::string> args, std::string& help) {
    if (auto empty = refuse_empty_values(args); !empty) return empty;
    std::reverse(args.begin(), args.end());
    try {
      app_.parse(args);
    } catch (const CLI::CallForHelp& e) {
      // The help of what? A command that does not exist has none.
      if (!app_.remaining(true).empty()) return fail(explain(e));
      help = app_.help();
      return {};
    } catch (const CLI::ParseError& e) {
      if (!error_.message.empty()) return fail(std::move(error_));
      return fail(explain(e));
    } catch (const std::exception& e) {
      return fail(Code::kInternal, "parser", one_line(e.what()));
    }
    if (!error_.message.empty()) return fail(std::move(error_));
    return {};
  }

  Command* chosen() const { return chosen_; }

 private:
  void add_noun(Noun& noun) {
    CLI::App* sub = app_.add_subcommand(noun.name, noun.summary);
    for (const std::string& alias : noun.aliases) sub->alias(alias);
    sub->fallthrough();
    if (noun.alone) {
      fill(*sub, *noun.alone);
    } else {
      sub->require_subcommand(1);
    }
    for (const CommandPtr& c : noun.commands) add_command(*sub, *c);
  }

  void add_command(CLI::App& parent, Command& command) {
    CLI::App* sub = parent.add_subcommand(command.name, command.summary);
    for (const std::string& alias : command.aliases) sub->alias(alias);
    sub->fallthrough();
    fill(*sub, command);
  }

  void fill(CLI::App& sub, Command& command) {
    Options o;
    command.options(o);
    add_options(sub, o, "Options");
    if (!command.details.empty()) sub.footer(command.details);
    // A noun that runs alone completes after its subcommand: the first one is the deepest.
    sub.parse_complete_callback([this, &command] {
      if (!chosen_) chosen_ = &command;
    });
  }

  void add_options(CLI::App& app, const Options& options, const std::string& group) {
    for (const OptionSpec& spec : options.all()) {
      if (spec.value.empty()) {
        app.add_flag_callback(
               spec.names, [this, spec] { remember(spec.set({})); }, spec.help)
            ->group(group);
        continue;
      }
      const auto take = [this, spec](const CLI::results_t& given) {
        remember(check(spec, given));
        return true;
      };
      CLI::Option* o = app.add_option(spec.names, take, spec.help);
      o->type_size(1)
          ->type_name(spec.positional() ? "" : spec.value)
          ->allow_extra_args(spec.positional() && spec.many);
      if (spec.many) {
        o->expected(spec.positional() ? (spec.required ? 1 : 0) : 1,
                    spec.positional() ? CLI::detail::expected_max_vector_size : 1);
        o->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      }
      o->required(spec.required);
      if (!spec.positional()) o->group(group);
    }
  }

  static Status check(const OptionSpec& spec, const std::vector<std::string>& given) {
    for (const std::string& g : given) {
      if (spec.choices.empty() ||
          std::find(spec.choices.begin(), spec.choices.end(), g) != spec.choices.end())
        continue;
      const std::string near = nearest(g, spec.choices);
      return fail(Code::kInvalid, "usage",
                  fmt::format("{}: \"{}\" is none of {}", long_name(spec), one_line(g),
                              join(spec.choices, ", ")),
                  near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    return given.empty() ? Status() : spec.set(given);
  }

  static std::string long_name(const OptionSpec& spec) {
    const size_t comma = spec.names.find(',');
    return comma == std::string::npos ? spec.names : spec.names.substr(comma + 1);
  }

  void remember(const Status& status) {
    if (!status && error_.message.empty()) error_ = status.error();
  }

  // CLI11 would take the following word as the value of "--name=".
  static Status refuse_empty_values(const std::vector<std::string>& args) {
    for (const std::string& arg : args) {
      if (arg == "--") break;
      if (arg.size() > 3 && arg.starts_with("--") && arg.find('=') == arg.size() - 1) {
        return fail(Code::kInvalid, "usage",
                    fmt::format("{} needs a value", one_line(arg.substr(0, arg.size() - 1))));
      }
    }
    return {};
  }

  const CLI::App* deepest() const {
    const CLI::App* app = &app_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
    return app;
  }

  // The parser's own words, made into ours: what is wrong, and what was probably meant.
  Error explain(const CLI::ParseError& e) const {
    const CLI::App* app = deepest();
    const std::string where = app == &app_ ? "clusterctl" : path_of(app);
    Error error{Code::kInvalid, "usage", one_line(e.what()), fmt::format("{} --help", where), {}};
    std::vector<std::string> known;
    // A word that is no command leaves the parser missing one: the word is the better news.
    std::string word;
    for (const std::string& extra : app_.remaining(true)) {
      if (word.empty()) word = extra;
    }
    const bool missing = dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
    const bool no_command = missing && app->get_require_subcommand_min() > 0 && !needs_option(*app);
    if (no_command && word.empty()) {
      collect(*app, false, known);
      error.message = fmt::format("{} needs a command: {}", where, join(known, ", "));
      return error;
    }
    if (missing && !no_command) return error;
    if (!word.empty()) {
      const bool option = word.starts_with("-");
      for (const CLI::App* a = app; a; a = option ? a->get_parent() : nullptr)
        collect(*a, option, known);
      error.message = fmt::format("{} does not know \"{}\"", where, one_line(word));
    }
    if (word.size() > 1 && word[0] == '-') word = word.substr(0, word.find('='));
    const std::string near = word.empty() ? "" : nearest(word, known);
    if (!near.empty()) error.hint = fmt::format("did you mean {}? See {} --help", near, where);
    return error;
  }

  static bool needs_option(const CLI::App& app) {
    const auto options = app.get_options();
    return std::any_of(options.begin(), options.end(),
                       [](const CLI::Option* o) { return o->get_required() && o->count() == 0; });
  }

  static void collect(const CLI::App& app, bool options, std::vector<std::string>& out) {
    if (options) {
      for (const CLI::Option* o : app.get_options()) {
        for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
      }
      return;
    }
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      out.push_back(sub->get_name());
    }
  }

  static std::string path_of(const CLI::App* app) {
    std::string out = app->get_name();
    for (const CLI::App* a = app->get_parent(); a; a = a->get_parent())
      out.insert(0, a->get_name() + " ");
    return out;
  }

  CLI::App app_;
  Command* chosen_ = nullptr;
  Error error_;
};

Result<std::chrono::milliseconds> request_timeout(const Dependencies& d, const Globals& g) {
  const auto it = d.env.find("CLUSTERCTL_REQUEST_TIMEOUT");
  int64_t seconds = 60;
  if (g.request_timeout) {
    seconds = *g.request_timeout;
  } else if (it != d.env.end() && !it->second.empty()) {
    const std::string& text = it->second;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (ec != std::errc() || end != text.data() + text.size()) seconds = 0;
  }
  if (seconds >= 1 && seconds <= 3600) return std::chrono::seconds(seconds);
  return fail(Code::kInvalid, "usage", "the request timeout must be 1 to 3600 seconds",
              "--request-timeout, CLUSTERCTL_REQUEST_TIMEOUT");
}

// The caller's flags, environment and context.
Result<client::Settings> settings_of(const Dependencies& d, const Globals& g) {
  client::Settings settings;
  settings.user_agent = "clusterctl/" + d.version;
  auto limit = request_timeout(d, g);
  if (!limit) return fail(limit.error());
  settings.request_timeout = *limit;
  const auto to = choose(d.env, g.given, g.context);
  if (!to) return fail(to.error());
  auto endpoints = client::parse_endpoints(join(to->servers, ","));
  if (!endpoints) return fail(endpoints.error());
  settings.endpoints = std::move(*endpoints);
  if (!to->token_file.empty()) {
    auto token = client::read_token(to->token_file);
    if (!token) return fail(token.error());
    settings.token = std::move(*token);
  }
  if (!to->ca_fingerprint.empty()) {
    auto pin = client::parse_fingerprint(to->ca_fingerprint);
    if (!pin) return fail(pin.error());
    settings.ca_pin = std::move(*pin);
  }
  settings.ca_file = to->ca_file;
  if (!settings.ca_file.empty()) {
    if (auto ok = client::check_ca_file(settings.ca_file); !ok) return fail(ok.error());
  }
  return settings;
}

Format format_of(const Globals& g) {
  if (g.json || g.output == "json") return Format::kJson;
  if (g.output == "yaml") return Format::kYaml;
  if (g.output == "wide") return Format::kWide;
  return g.output == "name" ? Format::kName : Format::kTable;
}

// A daemon that has too much to do says when to ask again: that is honoured, for so long in all.
constexpr std::chrono::seconds kWaitForTurns{60};
constexpr std::chrono::milliseconds kLook{100};

class Turns {
 public:
  Turns(const Dependencies& d, bool quiet) : d_(d), quiet_(quiet) {}

  bool wait(std::chrono::seconds wanted, const client::KeepGoing& keep_going) {
    if (wanted > left_) return false;
    left_ -= wanted;
    if (!quiet_)
      d_.terminal.err(fmt::format("the daemon has too many requests; waiting {} s, as it says\n",
                                  wanted.count()));
    const auto end = d_.timer.now() + wanted;
    while (d_.timer.now() < end) {
      if (keep_going && !keep_going()) break;  // the next try notices it
      d_.timer.sleep(kLook);
    }
    return true;
  }

 private:
  const Dependencies& d_;
  bool quiet_;
  std::chrono::seconds left_ = kWaitForTurns;
};

Result<int> run_command(Command& command, const Dependencies& d, const Globals& g, const Tree& tree,
                        bool color, size_t& requested) {
  auto settings =
      command.needs_server ? settings_of(d, g) : Result<client::Settings>(client::Settings{});
  if (!settings) return fail(settings.error());
  Turns turns(d, g.quiet);
  const auto connect = [&](client::Settings to) {
    to.wait_for_turn = [&turns](std::chrono::seconds wanted, const client::KeepGoing& keep_going) {
      return turns.wait(wanted, keep_going);
    };
    return d.connect(std::move(to));
  };
  const auto rest = connect(*settings);
  Session session{d.terminal, *rest, d.timer, tree, d.version, format_of(g), g.quiet, color};
  session.connect = connect;
  session.given = g.given;
  session.contexts_path = contexts_path(d.env);
  session.another = [&] { return connect(*settings); };
  auto code = command.run(session);
  requested = session.requested_nodes;
  if (!code) {
    Error error = code.error();
    if (session.asked) explain_version(*rest, d.version, error);
    return fail(std::move(error));
  }
  return code;
}

}  // namespace

int run(const std::vector<std::string>& args, const Dependencies& d) {
  Tree tree = make_tree();
  Globals globals;
  if (!args.empty() && args[0] == kCompleteCommand) {
    Options everywhere;
    global_options(everywhere, globals);
    const CompleteWith with{tree, everywhere.all(), [&] { return settings_of(d, globals); },
                            d.connect, contexts_path(d.env)};
    return complete({args.begin() + 1, args.end()}, with, d.terminal);
  }
  Parser parser(tree, globals);
  std::string help;
  const auto parsed = parser.parse(args, help);
  const auto no_color = d.env.find("NO_COLOR");
  const bool color = !globals.no_color && (no_color == d.env.end() || no_color->second.empty()) &&
                     d.terminal.can_redraw();
  if (!parsed) {
    print_error(d.terminal, parsed.error(), 0, color);
    return exit_code(parsed.error().code);
  }
  if (!help.empty()) {
    d.terminal.out(help);
    return kExitOk;
  }
  if (!parser.chosen()) return kExitUsage;
  size_t requested = 0;
  const auto code = run_command(*parser.chosen(), d, globals, tree, color, requested);
  if (code) return *code;
  print_error(d.terminal, code.error(), requested, color);
  return exit_code(code.error().code);
}

int run(int argc, char** argv, char** env, const std::string& version) {
  const auto terminal = make_system_terminal();
  client::SystemTimer timer;
  Dependencies d{*terminal, {}, version, client::make_curl_client, timer};
  for (char** e = env; e && *e; ++e) {
    const std::string_view entry(*e);
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos)
      d.env.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  for (size_t i = 0; i < args.size(); ++i) {
    if (valid_utf8(args[i])) continue;
    const auto refused =
        fail(Code::kInvalid, "usage", fmt::format("argument {} is not UTF-8", i + 1),
             "names and values are text");
    print_error(*terminal, refused.value(), 0, false);
    return kExitUsage;
  }
  hide_secret_arguments(argc, argv);
  const int code = run(args, d);
  const std::string problem = terminal->output_problem();
  if (problem.empty() || code != kExitOk) return code;
  terminal->err(fmt::format("error: the output is not complete: {}\n", problem));
  return kExitOutput;
}

}  // namespace clusterctl::cli
