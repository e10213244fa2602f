// Contexts: daemons by name, in a file of the caller, and what follows from flags, environment and
// context together. Reads and writes one file; any thread.
//
// The file is ~/.config/clusterctl/config.yml ($XDG_CONFIG_HOME/clusterctl/config.yml), mode 0600:
// whoever could write it would say to whom a token is sent. Unknown keys are errors.
//
//   current: lab
//   contexts:
//     lab: {servers: [unix:/run/clusterctl/clusterctl.sock]}
//     prod: {servers: ["https://c1:9007"], token_file: /home/ann/prod.token, ca_fingerprint: 3f…}
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::cli {

// Where daemons are and what identifies both sides. Empty: nothing is said.
struct Connection {
  std::vector<std::string> servers;
  std::string token_file;
  std::string ca_file;
  std::string ca_fingerprint;  // 64 hexadecimal digits

  bool operator==(const Connection&) const = default;
};

struct ContextFile {
  std::string current;  // empty: none
  std::map<std::string, Connection> contexts;
};

using Environment = std::map<std::string, std::string>;

// Empty when the environment names no home.
fs::path contexts_path(const Environment& env);
// No file is no contexts.
Result<ContextFile> read_contexts(const fs::path& path);
Status write_contexts(const fs::path& path, const ContextFile& file);
// "prod", or kNotFound with what is there.
Result<Connection> find_context(const ContextFile& file, const std::string& name);
// The same checks for what is read and what is to be written.
Status check_context(const std::string& name, const Connection& connection);

// Flag over environment over context over nothing. The context is not looked at when a server is
// named otherwise: its token is for its own servers. One that the flag --context names goes before
// the environment.
Result<Connection> choose(const Environment& env, const Connection& flags,
                          const std::string& context_flag);

}  // namespace clusterctl::cli
