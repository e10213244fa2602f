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
constexpr size_t kMaxUserName = 32;

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
  return step;
}

Status remove_user(const ManagementWay& way) {
  std::vector<std::string> argv{"userdel"};
  for (std::string& word : root_option(way.root)) argv.push_back(std::move(word));
  argv.push_back(way.user);
  const fs::path home = home_of(way);
  if (auto done = run_tool(std::move(argv), ""); !done) return done;
  std::error_code ec;
  if (home.filename() == way.user) fs::remove_all(home, ec);
  return {};
}

// sudo skips names with a dot.
fs::path sudo_draft(const ManagementWay& way) {
  const fs::path file = sudo_file(way);
  return file.parent_path() / (file.filename().string() + ".new");
}

// Checked before it is in force: a sudoers file that cannot be read would stop sudo for everybody.
Status write_sudo_file(const ManagementWay& way) {
  const fs::path file = sudo_file(way);
  if (auto made = make_dirs(file.parent_path(), 0750); !made) return made;
  const fs::path draft = sudo_draft(way);
  if (auto done = write_file_atomic(draft, sudo_text(way.user), 0440); !done) return done;
  auto done = run_tool({"visudo", "-c", "-q", "-f", draft.string()},
                       "install sudo, or let the controller come as root: --user root");
  if (done && ::rename(draft.c_str(), file.c_str()) != 0) done = fail(errno_error("write", file));
  if (!done) ::unlink(draft.c_str());
  return done;
}

MachineStep allow_sudo(const ManagementWay& way) {
  return {fmt::format("let {} use sudo without a password ({})", way.user, sudo_file(way).string()),
          [way] { return write_sudo_file(way); }};
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

Status remove_key(const ManagementWay& way, bool& removed) {
  const auto keys = read_file(home_of(way) / ".ssh/authorized_keys", 1 << 20);
  removed = keys && keys->find(key_body(way.public_key)) != std::string::npos;
  if (!removed) return {};
  std::string kept;
  for (const std::string& line : split(*keys, '\n', true)) {
    if (line.find(key_body(way.public_key)) == std::string::npos) kept += line + "\n";
  }
  return write_keys(way, kept);
}

MachineStep add_key(const ManagementWay& way, const std::string& before) {
  return {fmt::format("let the controller's key in as {}", way.user), [way, before] {
            std::string text = before;
            if (!text.empty() && text.back() != '\n') text += '\n';
            text += fmt::format("{} {} {}\n", kKeyOptions, way.public_key, way.comment);
            return write_keys(way, text);
          }};
}

// What useradd would say only after the controller was asked: a name that Linux has no room for, a
// program that is missing.
Status check_tools(const ManagementWay& way, const Preparation& p) {
  if (p.makes_user && way.user.size() > kMaxUserName)
    return fail(Code::kInvalid, "usage",
                fmt::format("--user {} has {} characters, a user has at most {}", way.user,
                            way.user.size(), kMaxUserName),
                "choose a shorter name, or a user that exists");
  if (p.makes_user && !has_program("useradd"))
    return fail(Code::kConflict, "no_program", "there is no useradd to make the user with",
                "install useradd (passwd), or name a user that exists");
  if (p.writes_sudo && !has_program("visudo"))
    return fail(Code::kConflict, "no_program", "there is no visudo: sudo is not installed",
                "install sudo, or let the controller come as root: --user root");
  return {};
}

Status undo_key(const Preparation& p) {
  const fs::path path = home_of(p.way) / ".ssh/authorized_keys";
  bool removed = false;
  if (auto done = remove_key(p.way, removed); !done) return done;
  std::error_code ec;
  if (!p.had_keys && fs::is_regular_file(path, ec) && fs::file_size(path, ec) == 0)
    ::unlink(path.c_str());
  if (!p.had_folder) ::rmdir(path.parent_path().c_str());  // only when it is empty
  return {};
}

Status undo_sudo(const Preparation& p) {
  ::unlink(sudo_draft(p.way).c_str());
  if (p.sudo_before) return write_file_atomic(sudo_file(p.way), *p.sudo_before, 0440);
  ::unlink(sudo_file(p.way).c_str());
  return {};
}

}  // namespace

Status check_root_user() {
  if (::geteuid() == 0) return {};
  return fail(Code::kForbidden, "not_root", "this changes the machine: it needs root",
              "run it with sudo");
}

Result<Preparation> prepare_management(const ManagementWay& way) {
  // It comes from the network and becomes a line of a file that lets people in.
  if (plain_ssh_key(way.public_key) != way.public_key)
    return fail(Code::kInternal, "bad_answer", "the controller answered no public key",
                "is it a clusterctl daemon?");
  Preparation out;
  out.way = way;
  const auto account = find_account(way.root, way.user);
  out.makes_user = !account;
  if (out.makes_user) out.steps.push_back(create_user(way));
  const auto sudo = read_file(sudo_file(way), 1 << 16);
  const bool is_root = account && account->uid == 0;
  out.writes_sudo = !is_root && sudo.value_or("") != sudo_text(way.user);
  if (out.writes_sudo) out.steps.push_back(allow_sudo(way));
  if (sudo) out.sudo_before = *sudo;
  const fs::path folder = home_of(way) / ".ssh";
  const auto keys = read_file(folder / "authorized_keys", 1 << 20);
  if (!keys && keys.error().code != Code::kNotFound) return fail(keys.error());
  std::error_code ec;
  out.had_keys = keys.has_value();
  out.had_folder = fs::exists(folder, ec);
  if (account) {
    if (auto ok = check_own_folder(folder, account->uid); !ok) return fail(ok.error());
  }
  const std::string text = keys.value_or("");
  out.adds_key = text.find(key_body(way.public_key)) == std::string::npos;
  if (out.adds_key) out.steps.push_back(add_key(way, text));
  if (auto ok = check_tools(way, out); !ok) return fail(ok.error());
  return out;
}

Status take_steps(const Preparation& preparation) {
  for (const MachineStep& step : preparation.steps) {
    const auto taken = step.take();
    if (taken) continue;
    Error error = taken.error();
    error.message = fmt::format("cannot {}: {}", step.what, error.message);
    return fail(std::move(error));
  }
  return {};
}

Status undo_steps(const Preparation& p) {
  Status first;
  const auto keep = [&first](const Status& done) {
    if (first && !done) first = done;
  };
  // A user that was made takes his files along.
  if (p.adds_key && find_account(p.way.root, p.way.user)) keep(undo_key(p));
  if (p.writes_sudo) keep(undo_sudo(p));
  if (p.makes_user && find_account(p.way.root, p.way.user)) keep(remove_user(p.way));
  return first;
}

Result<std::vector<std::string>> remove_management(const ManagementWay& way, bool made_user) {
  std::vector<std::string> done;
  bool removed = false;
  if (auto ok = remove_key(way, removed); !ok) return fail(ok.error());
  if (removed) done.push_back("the controller's key of " + way.user);
  if (::unlink(sudo_file(way).c_str()) == 0) done.push_back(sudo_file(way).string());
  if (made_user && find_account(way.root, way.user)) {
    if (auto gone = remove_user(way); !gone) return fail(gone.error());
    done.push_back("user " + way.user);
  }
  return done;
}

}  // namespace clusterctl::cli
