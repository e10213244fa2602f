// The command line as a whole: arguments in, exit code out. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "client/curl_client.h"
#include "client/rest_client.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {

struct Dependencies {
  Terminal& terminal;
  std::map<std::string, std::string> env;
  std::string version;
  std::function<std::unique_ptr<client::RestClient>(client::Settings)> connect =
      client::make_curl_client;
  client::Timer& timer;
};

// `args` without the program's name.
int run(const std::vector<std::string>& args, const Dependencies& dependencies);
// The real thing, for main(): terminal of the process, libcurl.
int run(int argc, char** argv, char** env, const std::string& version);

}  // namespace clusterctl::cli
