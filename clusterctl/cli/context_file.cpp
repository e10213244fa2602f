#include "cli/context_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"
#include "base/yaml.h"
#include "client/endpoint.h"
#include "inventory/inventory.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxContexts = 1000;

std::string value_of(const Environment& env, const std::string& name) {
  const auto it = env.find(name);
  return it == env.end() ? "" : it->second;
}

tl::unexpected<Error> broken(const fs::path& path, const std::string& why) {
  return fail(Code::kInvalid, "bad_contexts", fmt::format("{}: {}", path.string(), why),
              "correct it, or name the daemon with --server");
}

struct Key {
  std::string_view name;
  std::string Connection::*target;
};
constexpr Key kKeys[] = {{"token_file", &Connection::token_file},
                         {"ca_file", &Connection::ca_file},
                         {"ca_fingerprint", &Connection::ca_fingerprint}};

std::string unknown(const std::string& key, const std::vector<std::string>& known) {
  const std::string near = nearest(key, known);
  return fmt::format(
      "unknown key \"{}\"{}", one_line(key),
      near.empty() ? "; known: " + join(known, ", ") : fmt::format("; did you mean {}?", near));
}

Result<Connection> parse_context(const fs::path& path, const std::string& name, const Json& value) {
  const std::string where = fmt::format("context {}: ", one_line(name));
  if (!value.is_object()) return broken(path, where + "expected keys and values");
  Connection out;
  for (const auto& [key, member] : value.items()) {
    if (key == "servers") {
      if (!member.is_array()) return broken(path, where + "servers must be a list");
      for (const Json& server : member) {
        if (!server.is_string()) return broken(path, where + "servers must be a list of texts");
        out.servers.push_back(server.get<std::string>());
      }
      continue;
    }
    const auto known = std::find_if(std::begin(kKeys), std::end(kKeys),
                                    [&key = key](const Key& k) { return k.name == key; });
    if (known == std::end(kKeys)) {
      return broken(path,
                    where + unknown(key, {"servers", "token_file", "ca_file", "ca_fingerprint"}));
    }
    if (!member.is_string()) return broken(path, fmt::format("{}{} must be a text", where, key));
    out.*(known->target) = member.get<std::string>();
  }
  if (auto ok = check_context(name, out); !ok) return broken(path, where + ok.error().message);
  return out;
}

// Only its owner may read and write it.
Status check_mode(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return fail(errno_error("cannot read", path));
  if ((info.st_mode & 077) == 0 && (info.st_uid == geteuid() || info.st_uid == 0)) return {};
  return fail(Code::kInvalid, "bad_contexts",
              fmt::format("{} is not yours alone: it says to whom tokens are sent", path.string()),
              fmt::format("chown it to you and chmod 600 {}", path.string()));
}

}  // namespace

fs::path contexts_path(const Environment& env) {
  const std::string given = value_of(env, "XDG_CONFIG_HOME"), home = value_of(env, "HOME");
  const fs::path base = given.starts_with('/')  ? fs::path(given)
                        : home.starts_with('/') ? fs::path(home) / ".config"
                                                : fs::path();
  return base.empty() ? base : base / "clusterctl" / "config.yml";
}

Status check_context(const std::string& name, const Connection& connection) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const auto usage = [](std::string message) {
    return fail(Code::kInvalid, "usage", std::move(message));
  };
  if (name.empty() || name.size() > 64 || name[0] == '-' ||
      !std::all_of(name.begin(), name.end(), plain)) {
    return usage(fmt::format(
        "\"{}\" is no name of a context: 1 to 64 letters, digits, dots, dashes, underscores",
        one_line(truncate_utf8(name, 80))));
  }
  if (connection.servers.empty()) return usage("a context needs a server: --server ADDRESS");
  for (const std::string& server : connection.servers) {
    if (auto endpoint = client::parse_endpoint(server); !endpoint) return fail(endpoint.error());
  }
  for (const std::string& path : {connection.token_file, connection.ca_file}) {
    if (!path.empty() && path[0] != '/')
      return usage(fmt::format("{} must be an absolute path", one_line(path)));
  }
  const std::string& pin = connection.ca_fingerprint;
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!pin.empty() && (pin.size() != 64 || !std::all_of(pin.begin(), pin.end(), hex)))
    return usage("ca_fingerprint must be 64 hexadecimal digits in lower case");
  return {};
}

Result<ContextFile> read_contexts(const fs::path& path) {
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return ContextFile{};
  if (auto ok = check_mode(path); !ok) return fail(ok.error());
  auto document = read_yaml(path);
  if (!document) return fail(document.error());
  ContextFile out;
  if (document->is_null()) return out;
  if (!document->is_object()) return broken(path, "expected the keys current and contexts");
  for (const auto& [key, value] : document->items()) {
    if (key == "current") {
      if (!value.is_string()) return broken(path, "current must be the name of a context");
      out.current = value.get<std::string>();
    } else if (key == "contexts") {
      if (!value.is_object() || value.size() > kMaxContexts)
        return broken(path, "contexts must have names and values");
      for (const auto& [name, context] : value.items()) {
        auto parsed = parse_context(path, name, context);
        if (!parsed) return fail(parsed.error());
        out.contexts[name] = std::move(*parsed);
      }
    } else {
      return broken(path, unknown(key, {"current", "contexts"}));
    }
  }
  if (!out.current.empty() && out.contexts.count(out.current) == 0)
    return broken(path, fmt::format("current is \"{}\", which is no context of this file",
                                    one_line(out.current)));
  return out;
}

Status write_contexts(const fs::path& path, const ContextFile& file) {
  if (path.empty())
    return fail(Code::kInvalid, "no_home", "there is no home folder to keep contexts in",
                "set HOME or XDG_CONFIG_HOME");
  Json contexts = Json::object();
  for (const auto& [name, c] : file.contexts) {
    Json& out = contexts[name] = {{"servers", c.servers}};
    for (const Key& key : kKeys) {
      if (!(c.*(key.target)).empty()) out[std::string(key.name)] = c.*(key.target);
    }
  }
  Json document{{"contexts", std::move(contexts)}};
  if (!file.current.empty()) document["current"] = file.current;
  if (auto made = make_dirs(path.parent_path(), 0700); !made) return made;
  return write_file_atomic(path, inventory::to_yaml(document), 0600);
}

Result<Connection> find_context(const ContextFile& file, const std::string& name) {
  if (const auto it = file.contexts.find(name); it != file.contexts.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, c] : file.contexts) names.push_back(known);
  const std::string near = nearest(name, names);
  return fail(
      Code::kNotFound, "no_such_context",
      fmt::format("there is no context \"{}\"", one_line(truncate_utf8(name, 80))),
      near.empty() ? "clusterctl context ls lists them" : fmt::format("did you mean {}?", near));
}

Result<Connection> choose(const Environment& env, const Connection& flags,
                          const std::string& context_flag) {
  if (!context_flag.empty() && !flags.servers.empty())
    return fail(Code::kInvalid, "usage", "--server and --context exclude each other");
  const auto first = [](const std::string& a, const std::string& b, const std::string& c) {
    return !a.empty() ? a : !b.empty() ? b : c;
  };
  Connection out, context;
  const std::string server_env = value_of(env, "CLUSTERCTL_SERVER");
  const bool by_flag = !context_flag.empty();
  if (flags.servers.empty() && (by_flag || trim(server_env).empty())) {
    auto file = read_contexts(contexts_path(env));
    if (!file) return fail(file.error());
    const std::string name =
        first(context_flag, value_of(env, "CLUSTERCTL_CONTEXT"), file->current);
    if (!name.empty()) {
      auto found = find_context(*file, name);
      if (!found) return fail(found.error());
      context = std::move(*found);
    }
  }
  if (!flags.servers.empty()) {
    out.servers = flags.servers;
  } else if (!context.servers.empty()) {
    out.servers = context.servers;
  } else if (!trim(server_env).empty()) {
    out.servers = {server_env};
  }
  const auto pick = [&](std::string Connection::*key, const char* variable) {
    const std::string from_env = value_of(env, variable);
    out.*key = by_flag ? first(flags.*key, context.*key, from_env)
                       : first(flags.*key, from_env, context.*key);
  };
  pick(&Connection::token_file, "CLUSTERCTL_TOKEN_FILE");
  pick(&Connection::ca_file, "CLUSTERCTL_CA_FILE");
  pick(&Connection::ca_fingerprint, "CLUSTERCTL_CA_FINGERPRINT");
  return out;
}

}  // namespace clusterctl::cli
