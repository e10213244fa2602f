#include "cli/machine/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/process.h"
#include "base/strings.h"

namespace clusterctl::cli {
namespace {

constexpr std::chrono::seconds kProgramWait{60};

// Who became root by `su` has no sbin in his path.
std::string search_path() {
  const char* path = std::getenv("PATH");
  return (path ? path + std::string(":") : "") + "/usr/sbin:/usr/bin:/sbin:/bin";
}

}  // namespace

bool has_program(const std::string& name) {
  for (const std::string& folder : split(search_path(), ':', true)) {
    if (::access((fs::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Result<std::string> run_program(std::vector<std::string> argv, std::string_view hint) {
  const std::string name = argv[0];
  const auto answer = run_process(
      {std::move(argv), {{"PATH", search_path()}, {"LANG", "C.UTF-8"}}, "/", false, -1, {}},
      kProgramWait);
  if (!answer)
    return fail(Code::kConflict, "no_program",
                fmt::format("{} cannot be run: {}", name, answer.error().message),
                std::string(hint));
  if (answer->status.ok()) return answer->text;
  return fail(Code::kConflict, "program_failed",
              fmt::format("{} failed: {}", name, one_line(trim(answer->text))), std::string(hint));
}

}  // namespace clusterctl::cli
