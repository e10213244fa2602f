#include "cli/machine/joining.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/ids.h"
#include "base/json.h"
#include "cli/machine/membership.h"

namespace clusterctl::cli {
namespace {

fs::path joining_file(const fs::path& root) {
  return root / "etc/clusterctl/joining.json";
}

Status write_joining(const Joining& joining) {
  const Preparation& p = joining.preparation;
  const fs::path file = joining_file(p.way.root);
  if (auto made = make_dirs(file.parent_path(), 0755); !made) return made;
  Json j{{"v", 1},
         {"attempt", joining.attempt},
         {"server", joining.server},
         {"user", p.way.user},
         {"public_key", p.way.public_key},
         {"makes_user", p.makes_user},
         {"writes_sudo", p.writes_sudo},
         {"adds_key", p.adds_key},
         {"had_folder", p.had_folder},
         {"had_keys", p.had_keys}};
  if (p.sudo_before) j["sudo_before"] = *p.sudo_before;
  return write_file_atomic(file, dump_json(j, 2) + "\n", 0600);
}

Result<std::optional<Joining>> read_joining(const fs::path& root) {
  const fs::path file = joining_file(root);
  const auto text = read_file(file, 256 << 10);
  if (!text && text.error().code == Code::kNotFound) return std::nullopt;
  if (!text) return fail(text.error());
  const auto j = parse_json_object(*text, file.string());
  if (!j) return fail(j.error());
  Joining out;
  const auto word = [&](const char* key) { return get_string(*j, key).value_or(""); };
  const auto flag = [&](const char* key) { return get_bool(*j, key).value_or(false); };
  out.attempt = word("attempt");
  out.server = word("server");
  Preparation& p = out.preparation;
  p.way = {root, word("user"), word("public_key"), ""};
  p.makes_user = flag("makes_user");
  p.writes_sudo = flag("writes_sudo");
  p.adds_key = flag("adds_key");
  p.had_folder = flag("had_folder");
  p.had_keys = flag("had_keys");
  if (j->contains("sudo_before")) p.sudo_before = word("sudo_before");
  if (!out.attempt.empty() && !p.way.user.empty() && !p.way.public_key.empty()) return out;
  return fail(
      Code::kInternal, "damaged", fmt::format("{} is damaged", file.string()),
      "look for a key of clusterctl in authorized_keys and for /etc/sudoers.d/clusterctl-*, "
      "then remove it");
}

}  // namespace

Result<MachineLock> MachineLock::acquire(const fs::path& root) {
  const fs::path folder = root / "etc";
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return MachineLock(Fd());  // nothing there to be changed
  if (!fd.valid()) return fail(errno_error("open", folder));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return MachineLock(std::move(fd));
  if (errno != EWOULDBLOCK) return fail(errno_error("lock", folder));
  return fail(Code::kConflict, "locked", "another clusterctl joins or leaves on this machine now",
              "wait for it, then again");
}

Result<std::string> begin_joining(const std::string& server, const Preparation& preparation) {
  const Joining joining{random_hex(16), server, preparation};
  if (preparation.steps.empty()) return joining.attempt;
  if (auto written = write_joining(joining); !written) return fail(written.error());
  const auto taken = take_steps(preparation);
  if (taken) return joining.attempt;
  Error error = taken.error();
  if (auto undone = abandon_joining(preparation); !undone) {
    error.message += "; " + undone.error().message;
    error.hint = undone.error().hint;
  }
  return fail(std::move(error));
}

Status finish_joining(const fs::path& root) {
  const fs::path file = joining_file(root);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) return fail(errno_error("remove", file));
  std::error_code ec;
  fs::remove(file.parent_path(), ec);  // only when nothing else is in it
  return {};
}

Status abandon_joining(const Preparation& preparation) {
  if (preparation.steps.empty()) return {};
  auto undone = undo_steps(preparation);
  if (undone) return finish_joining(preparation.way.root);
  Error error = undone.error();
  error.message = "what was begun could not be undone: " + error.message;
  error.hint = "put that right; clusterctl cluster leave then removes the rest";
  return fail(std::move(error));
}

Result<std::optional<Joining>> find_leftover(const fs::path& root) {
  auto found = read_joining(root);
  if (!found || !*found) return found;
  const auto membership = read_membership(root);
  if (!membership) return fail(membership.error());
  if (!*membership || (*membership)->attempt != (*found)->attempt) return found;
  if (auto done = finish_joining(root); !done) return fail(done.error());
  return std::nullopt;
}

Result<std::string> undo_leftover(const fs::path& root) {
  const auto found = find_leftover(root);
  if (!found) return fail(found.error());
  if (!*found) return std::string();
  Preparation left = (*found)->preparation;
  if (auto undone = undo_steps(left); !undone) {
    Error error = undone.error();
    error.message = "what a join that broke off has left cannot be undone: " + error.message;
    error.hint = "put that right, then again";
    return fail(std::move(error));
  }
  if (auto done = finish_joining(root); !done) return fail(done.error());
  return fmt::format("undone: what a join at {} that broke off had changed (user {})",
                     (*found)->server, left.way.user);
}

}  // namespace clusterctl::cli
