// What can stand at the cursor of a command line: `clusterctl __complete WORDS… LAST`, for the
// scripts of completion.cpp. Answers within a second whatever the daemon does, and never with an
// error: a shell is waiting. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "client/curl_client.h"
#include "client/rest_client.h"

namespace clusterctl::cli {

inline constexpr std::string_view kCompleteCommand = "__complete";

// How to reach a daemon, once the flags among the words are known.
struct CompleteWith {
  const Tree& tree;
  const std::vector<OptionSpec>& everywhere;  // options of every command
  std::function<Result<client::Settings>()> settings;
  std::function<std::unique_ptr<client::RestClient>(client::Settings)> connect;
  fs::path contexts;
};

// The last of `words` is what stands before the cursor, "" behind a blank. Each answer is a line
// "WORD" or "WORD<tab>what it is"; ":files" alone: names of files. With the one word "--tree": the
// path of every command, "node ls".
int complete(const std::vector<std::string>& words, const CompleteWith& with, Terminal& terminal);

}  // namespace clusterctl::cli
