// The noun `context`: daemons by name. It reads and writes a file of the caller and asks no daemon.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"
#include "client/server_trust.h"

namespace clusterctl::cli {
namespace {

class ContextCommand : public Command {
 public:
  ContextCommand(std::string name, std::string summary)
      : Command(std::move(name), std::move(summary)) {
    needs_server = false;
  }
};

Json to_json(const std::string& name, const Connection& c, bool current) {
  Json out{{"name", name}, {"current", current}, {"servers", c.servers}};
  if (!c.token_file.empty()) out["token_file"] = c.token_file;
  if (!c.ca_file.empty()) out["ca_file"] = c.ca_file;
  if (!c.ca_fingerprint.empty()) out["ca_fingerprint"] = c.ca_fingerprint;
  return out;
}

class ContextLs final : public ContextCommand {
 public:
  ContextLs() : ContextCommand("ls", "List the contexts; * is the one in use without --context") {
    aliases = {"list"};
    details =
        "A server is taken from, in this order: --server or --context, CLUSTERCTL_SERVER, "
        "CLUSTERCTL_CONTEXT,\n"
        "the current context, the socket of this machine. The context's token goes to the "
        "context's servers only.";
  }
  Result<int> run(Session& session) override {
    auto file = read_contexts(session.contexts_path);
    if (!file) return fail(file.error());
    Json list = Json::array();
    Table table({"CURRENT", "NAME", "SERVERS", "TOKEN-FILE", "CA"});
    for (const auto& [name, c] : file->contexts) {
      list.push_back(to_json(name, c, name == file->current));
      if (session.names_only()) session.line(name);
      table.add({name == file->current ? "*" : "", name, join(c.servers, ","), c.token_file,
                 c.ca_fingerprint.empty() ? c.ca_file : c.ca_fingerprint.substr(0, 12)});
    }
    if (session.structured()) {
      session.data(list);
    } else if (!session.names_only()) {
      session.terminal.out(session.rendered(table));
      if (table.empty()) session.next("clusterctl context set NAME --server ADDRESS");
    }
    return kExitOk;
  }
};

class ContextUse final : public ContextCommand {
 public:
  ContextUse() : ContextCommand("use", "Make a context the current one") {}
  void options(Options& o) override { o.argument("NAME", name_, "name of a context"); }
  Result<int> run(Session& session) override {
    auto file = read_contexts(session.contexts_path);
    if (!file) return fail(file.error());
    if (auto found = find_context(*file, name_); !found) return fail(found.error());
    file->current = name_;
    if (auto written = write_contexts(session.contexts_path, *file); !written)
      return fail(written.error());
    if (session.structured()) {
      session.data(to_json(name_, file->contexts[name_], true));
    } else {
      session.line(session.names_only() ? name_ : fmt::format("context {} is in use", name_));
      session.next("clusterctl status");
    }
    return kExitOk;
  }

 private:
  std::string name_;
};

class ContextSet final : public ContextCommand {
 public:
  ContextSet() : ContextCommand("set", "Make a context, or change what is given of one") {
    details =
        "What it consists of are the options for every command: --server (several, tried in this "
        "order),\n"
        "--token-file, --ca-fingerprint, --ca-file. Paths become absolute; the daemon is not "
        "asked.\n"
        "Example: clusterctl context set prod --server https://c1:9007 --server https://c2:9007 "
        "--token-file prod.token --use";
  }
  void options(Options& o) override {
    o.argument("NAME", name_, "name of a context");
    o.list("--unset", "KEY", unset_, "take out token_file, ca_file or ca_fingerprint").choices = {
        "token_file", "ca_file", "ca_fingerprint"};
    o.flag("--use", use_, "make it the current one");
  }
  Result<int> run(Session& session) override {
    auto file = read_contexts(session.contexts_path);
    if (!file) return fail(file.error());
    Connection& c = file->contexts[name_];
    const Connection before = c;
    if (contains(unset_, "token_file")) c.token_file.clear();
    if (contains(unset_, "ca_file")) c.ca_file.clear();
    if (contains(unset_, "ca_fingerprint")) c.ca_fingerprint.clear();
    const Connection& given = session.given;
    if (!given.servers.empty()) c.servers = given.servers;
    if (!given.token_file.empty()) c.token_file = absolute(given.token_file);
    if (!given.ca_file.empty()) c.ca_file = absolute(given.ca_file);
    if (!given.ca_fingerprint.empty()) {
      auto pin = client::parse_fingerprint(given.ca_fingerprint);
      if (!pin) return fail(pin.error());
      c.ca_fingerprint = std::move(*pin);
    }
    if (auto ok = check_context(name_, c); !ok) return fail(ok.error());
    if (c == before && !use_ && unset_.empty())
      return fail(Code::kInvalid, "usage", "give what to change: nothing was changed",
                  "clusterctl context set --help");
    if (use_) file->current = name_;
    if (auto written = write_contexts(session.contexts_path, *file); !written)
      return fail(written.error());
    if (session.structured()) {
      session.data(to_json(name_, c, file->current == name_));
    } else {
      session.line(session.names_only() ? name_ : fmt::format("context {} is set", name_));
      if (file->current != name_) session.next("clusterctl context use " + name_);
    }
    return kExitOk;
  }

 private:
  static std::string absolute(const std::string& path) {
    std::error_code failed;
    const fs::path full = fs::absolute(path, failed);
    return failed ? path : full.lexically_normal().string();
  }

  std::string name_;
  std::vector<std::string> unset_;
  bool use_ = false;
};

class ContextRm final : public ContextCommand {
 public:
  ContextRm() : ContextCommand("rm", "Forget contexts") {}
  void options(Options& o) override { o.arguments("NAMES", names_, "names of contexts", true); }
  Result<int> run(Session& session) override {
    auto file = read_contexts(session.contexts_path);
    if (!file) return fail(file.error());
    for (const std::string& name : names_) {
      if (auto found = find_context(*file, name); !found) return fail(found.error());
    }
    for (const std::string& name : names_) {
      file->contexts.erase(name);
      if (file->current != name) continue;
      file->current.clear();
      session.note("it was the current one: the socket of this machine is used now");
    }
    if (auto written = write_contexts(session.contexts_path, *file); !written)
      return fail(written.error());
    for (const std::string& name : names_) {
      if (!session.structured())
        session.line(session.names_only() ? name : fmt::format("context {} removed", name));
    }
    return kExitOk;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

Noun context_noun() {
  Noun noun{"context", "Daemons by name, for --context", {"contexts"}, {}, nullptr};
  noun.commands.push_back(std::make_unique<ContextLs>());
  noun.commands.push_back(std::make_unique<ContextUse>());
  noun.commands.push_back(std::make_unique<ContextSet>());
  noun.commands.push_back(std::make_unique<ContextRm>());
  return noun;
}

}  // namespace clusterctl::cli
