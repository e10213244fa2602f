#include "cli/machine/management.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/machine/program.h"

namespace clusterctl::cli {
namespace {

// The key opens a shell and nothing else: no tunnels, no agent.
constexpr std::string_view kKeyOptions = "restrict,pty";

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  fs::path home;  // below the root
};

Status run_tool(std::vector<std::string> argv, std::string_view hint) {
  const auto done = run_program(std::move(argv), hint);
  if (!done) return fail(done.error());
  return {};
}

fs::path below(const fs::path& root, const fs::path& absolute) {
  return root / absolute.relative_path();
}

std::optional<Account> find_account(const fs::path& root, const std::string& user) {
  const auto passwd = read_file(root / "etc/passwd", 16 << 20);
  for (const std::string& line : split(passwd ? *passwd : "", '\n', true)) {
    const auto parts = split(line, ':');
    if (parts.size() < 7 || parts[0] != user) continue;
    return Account{static_cast<uid_t>(std::strtoul(parts[2].c_str(), nullptr, 10)),
                   static_cast<gid_t>(std::strtoul(parts[3].c_str(), nullptr, 10)),
                   below(root, parts[5])};
  }
  return std::nullopt;
}

std::vector<std::string> root_option(const fs::path& root) {
  return root == "/" ? std::vector<std::string>{}
                     : std::vector<std::string>{"--prefix", root.string()};
}

// Where the user's files will be when the steps before have been taken.
fs::path home_of(const ManagementWay& way) {
  const auto account = find_account(way.root, way.user);
  return account ? account->home : below(way.root, fs::path("/home") / way.user);
}

fs::path sudo_file(const ManagementWay& way) {
  std::string name = "clusterctl-" + way.user;  // sudo skips names with a dot
  std::replace(name.begin(), name.end(), '.', '_');
  return way.root / "etc/sudoers.d" / name;
}

std::string sudo_text(const std::string& user) {
  return fmt::format("# Written by clusterctl cluster join.\n{} ALL=(ALL:ALL) NOPASSWD: ALL\n",
                     user);
}

MachineStep create_user(const ManagementWay& way) {
  MachineStep step;
  step.what = "create user " + way.user;
  step.take = [way] {
    std::vector<std::string> argv{"useradd",    "--system",          "--create-home",
                                  "--home-dir", "/home/" + way.user, "--no-user-group",
                                  "--shell",    "/bin/sh",           "--password",
                                  "*",          "--comment",         "clusterctl"};
    for (std::string& word : root_option(way.root)) argv.push_back(std::move(word));
    argv.push_back(way.user);
    return run_tool(std::move(argv), "install useradd (passwd), or name a user that exists");
  };
  step.undo = [way] {
    std::vector<std::string> argv{"userdel"};
    for (std::string& word : root_option(way.root)) argv.push_back(std::move(word));
    argv.push_back(way.user);
    const fs::path home = home_of(way);
    if (auto done = run_tool(std::move(argv), ""); !done) return done;
    std::error_code ec;
    if (home.filename() == way.user) fs::remove_all(home, ec);
    return Status();
  };
  return step;
}

// Checked before it is in force: a sudoers file that cannot be read would stop sudo for everybody.
Status write_sudo_file(const ManagementWay& way) {
  const fs::path file = sudo_file(way);
  if (auto made = make_dirs(file.parent_path(), 0750); !made) return made;
  // sudo skips names with a dot.
  const fs::path draft = file.parent_path() / (file.filename().string() + ".new");
  if (auto done = write_file_atomic(draft, sudo_text(way.user), 0440); !done) return done;
  auto done = run_tool({"visudo", "-c", "-q", "-f", draft.string()},
                       "install sudo, or let the controller come as root: --user root");
  if (done && ::rename(draft.c_str(), file.c_str()) != 0) done = fail(errno_error("write", file));
  if (!done) ::unlink(draft.c_str());
  return done;
}

MachineStep allow_sudo(const ManagementWay& way) {
  const fs::path file = sudo_file(way);
  const auto before = read_file(file, 1 << 16);
  MachineStep step;
  step.what = fmt::format("let {} use sudo without a password ({})", way.user, file.string());
  step.take = [way] { return write_sudo_file(way); };
  step.undo = [file, before] {
    if (before) return write_file_atomic(file, *before, 0440);
    ::unlink(file.c_str());
    return Status();
  };
  return step;
}

std::string key_body(const std::string& key) {
  return key.substr(key.find(' ') + 1);
}

// A folder of the user's that root is about to write into: what he may have put there in its place
// must not lead elsewhere.
Status check_own_folder(const fs::path& path, uid_t owner) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode) && (info.st_uid == owner || info.st_uid == 0)) return {};
  return fail(Code::kConflict, "unsafe_folder",
              fmt::format("{} is not a folder of its user", path.string()),
              "put it right, or name another user with --user");
}

Status own(const fs::path& path, const Account& account) {
  if (::lchown(path.c_str(), account.uid, account.gid) != 0) return fail(errno_error("own", path));
  return {};
}

Status write_keys(const ManagementWay& way, const std::string& text) {
  const auto account = find_account(way.root, way.user);
  if (!account)
    return fail(Code::kConflict, "no_user", fmt::format("there is no user {}", way.user));
  const fs::path folder = account->home / ".ssh";
  std::error_code ec;
  if (!fs::is_directory(account->home, ec))
    return fail(Code::kConflict, "no_home",
                fmt::format("the home {} of {} is not there", account->home.string(), way.user),
                "make it, or name another user with --user");
  if (auto ok = check_own_folder(folder, account->uid); !ok) return ok;
  if (!fs::exists(folder, ec)) {
    if (auto made = make_dirs(folder, 0700); !made) return made;
    if (auto owned = own(folder, *account); !owned) return owned;
  }
  if (auto done = write_file_atomic(folder / "authorized_keys", text, 0600); !done) return done;
  return own(folder / "authorized_keys", *account);
}

MachineStep add_key(const ManagementWay& way, const std::string& before) {
  const fs::path folder = home_of(way) / ".ssh";
  std::error_code ec;
  const bool had_folder = fs::exists(folder, ec),
             had_file = fs::exists(folder / "authorized_keys", ec);
  MachineStep step;
  step.what = fmt::format("let the controller's key in as {}", way.user);
  step.take = [way, before] {
    std::string text = before;
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += fmt::format("{} {} {}\n", kKeyOptions, way.public_key, way.comment);
    return write_keys(way, text);
  };
  step.undo = [way, before, had_folder, had_file] {
    const fs::path path = home_of(way) / ".ssh/authorized_keys";
    if (had_file) return write_keys(way, before);
    ::unlink(path.c_str());
    if (!had_folder) ::rmdir(path.parent_path().c_str());
    return Status();
  };
  return step;
}

}  // namespace

Status check_root_user() {
  if (::geteuid() == 0) return {};
  return fail(Code::kForbidden, "not_root", "this changes the machine: it needs root",
              "run it with sudo");
}

Result<std::vector<MachineStep>> management_steps(const ManagementWay& way) {
  // It comes from the network and becomes a line of a file that lets people in.
  if (plain_ssh_key(way.public_key) != way.public_key)
    return fail(Code::kInternal, "bad_answer", "the controller answered no public key",
                "is it a clusterctl daemon?");
  std::vector<MachineStep> out;
  const auto account = find_account(way.root, way.user);
  if (!account) out.push_back(create_user(way));
  const bool is_root = account && account->uid == 0;
  if (!is_root && read_file(sudo_file(way), 1 << 16).value_or("") != sudo_text(way.user))
    out.push_back(allow_sudo(way));
  const auto keys = read_file(home_of(way) / ".ssh/authorized_keys", 1 << 20);
  if (!keys && keys.error().code != Code::kNotFound) return fail(keys.error());
  const std::string text = keys.value_or("");
  if (account) {
    if (auto ok = check_own_folder(home_of(way) / ".ssh", account->uid); !ok)
      return fail(ok.error());
  }
  if (text.find(key_body(way.public_key)) == std::string::npos) out.push_back(add_key(way, text));
  return out;
}

Status take_steps(const std::vector<MachineStep>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto taken = steps[i].take();
    if (taken) continue;
    // The one that failed may have done a part.
    undo_steps({steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(i) + 1});
    Error error = taken.error();
    error.message = fmt::format("cannot {}: {}", steps[i].what, error.message);
    return fail(std::move(error));
  }
  return {};
}

void undo_steps(const std::vector<MachineStep>& steps) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) (void)step->undo();
}

Result<std::vector<std::string>> remove_management(const ManagementWay& way, bool made_user) {
  std::vector<std::string> done;
  const auto keys = read_file(home_of(way) / ".ssh/authorized_keys", 1 << 20);
  if (keys && keys->find(key_body(way.public_key)) != std::string::npos) {
    std::string kept;
    for (const std::string& line : split(*keys, '\n', true)) {
      if (line.find(key_body(way.public_key)) == std::string::npos) kept += line + "\n";
    }
    if (auto written = write_keys(way, kept); !written) return fail(written.error());
    done.push_back("the controller's key of " + way.user);
  }
  if (::unlink(sudo_file(way).c_str()) == 0) done.push_back(sudo_file(way).string());
  if (made_user && find_account(way.root, way.user)) {
    if (auto removed = create_user(way).undo(); !removed) return fail(removed.error());
    done.push_back("user " + way.user);
  }
  return done;
}

}  // namespace clusterctl::cli
