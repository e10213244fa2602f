#include "run/processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/strings.h"

namespace clusterctl::run {
namespace {

// Calls `use` for every process number; /proc is read entry by entry, because processes come and go
// meanwhile.
template <typename Use>
void each_process(Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
  if (!dir) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) use(pid);
  }
}

std::string proc_text(pid_t pid, const char* name) {
  return read_file(fmt::format("/proc/{}/{}", pid, name), 4 << 20).value_or("");
}

// The letter and the number behind the command name, which may itself hold blanks and brackets.
bool state_and_parent(pid_t pid, char& state, pid_t& parent) {
  const std::string stat = proc_text(pid, "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  const auto fields = split(stat.substr(name_end + 1), ' ', true);
  if (fields.size() < 2) return false;
  state = fields[0][0];
  return std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), parent).ec ==
         std::errc();
}

// A whole entry of the environment, not the beginning of a longer one.
bool has_entry(std::string_view environment, std::string_view entry) {
  for (size_t at = environment.find(entry); at != std::string_view::npos;
       at = environment.find(entry, at + 1)) {
    const size_t end = at + entry.size();
    if ((at == 0 || environment[at - 1] == '\0') &&
        (end == environment.size() || environment[end] == '\0'))
      return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  each_process([&](pid_t pid) {
    char state = 0;
    pid_t its_parent = 0;
    if (state_and_parent(pid, state, its_parent) && its_parent == parent && state != 'Z')
      out.push_back(pid);
  });
  return out;
}

std::vector<pid_t> processes_of_run(const fs::path& child_dir, const fs::path& control_dir) {
  const std::string entry = "CLUSTERCTL_RUN_DIR=" + child_dir.string();
  const std::string sockets = control_dir.string() + "/";
  std::vector<pid_t> out;
  each_process([&](pid_t pid) {
    if (pid == ::getpid()) return;
    char state = 0;
    pid_t parent = 0;
    if (!state_and_parent(pid, state, parent) || state == 'Z') return;
    const std::string title = proc_text(pid, "cmdline");
    const bool master = !control_dir.empty() && title.rfind("ssh: ", 0) == 0 &&
                        title.find(sockets) != std::string::npos;
    if (master || has_entry(proc_text(pid, "environ"), entry)) out.push_back(pid);
  });
  return out;
}

size_t end_leftovers(const fs::path& child_dir, const fs::path& control_dir,
                     std::chrono::milliseconds grace) {
  const auto begin = std::chrono::steady_clock::now();
  size_t most = 0;
  // The limit is for processes that cannot die (stuck in the kernel); nothing is gained by waiting
  // for those.
  for (bool first = true;
       std::chrono::steady_clock::now() - begin < grace + std::chrono::seconds(5); first = false) {
    const auto left = processes_of_run(child_dir, control_dir);
    if (left.empty()) break;
    most = std::max(most, left.size());
    const bool kill = std::chrono::steady_clock::now() - begin >= grace;
    if (first || kill) {
      for (const pid_t pid : left) ::kill(pid, kill ? SIGKILL : SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return most;
}

}  // namespace clusterctl::run
