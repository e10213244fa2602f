#include "cli/machine/membership.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/json.h"

namespace clusterctl::cli {
namespace {

fs::path membership_file(const fs::path& root) {
  return root / "etc/clusterctl/joined.json";
}

}  // namespace

Result<std::optional<Membership>> read_membership(const fs::path& root) {
  const fs::path file = membership_file(root);
  const auto text = read_file(file, 64 << 10);
  if (!text && text.error().code == Code::kNotFound) return std::nullopt;
  if (!text) return fail(text.error());
  const auto j = parse_json_object(*text, file.string());
  if (!j) return fail(j.error());
  Membership m;
  const auto take = [&](const char* key) { return get_string(*j, key).value_or(""); };
  m.server = take("server");
  m.ca = take("ca");
  m.cluster = take("cluster");
  m.cluster_name = take("cluster_name");
  m.node = take("node");
  m.id = take("id");
  m.secret = take("secret");
  m.user = take("user");
  m.public_key = take("public_key");
  m.attempt = take("attempt");
  m.made_user = get_bool(*j, "made_user").value_or(false);
  if (m.server.empty() || m.id.empty() || m.user.empty())
    return fail(Code::kInternal, "damaged", fmt::format("{} is damaged", file.string()),
                "remove it; the machine may join again");
  return m;
}

Status write_membership(const fs::path& root, const Membership& m) {
  const fs::path file = membership_file(root);
  if (auto made = make_dirs(file.parent_path(), 0755); !made) return made;
  const Json j{{"v", 1},
               {"server", m.server},
               {"ca", m.ca},
               {"cluster", m.cluster},
               {"cluster_name", m.cluster_name},
               {"node", m.node},
               {"id", m.id},
               {"secret", m.secret},
               {"user", m.user},
               {"public_key", m.public_key},
               {"made_user", m.made_user},
               {"attempt", m.attempt}};
  return write_file_atomic(file, dump_json(j, 2) + "\n", 0600);
}

Status forget_membership(const fs::path& root) {
  const fs::path file = membership_file(root);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) return fail(errno_error("remove", file));
  std::error_code ec;
  fs::remove(file.parent_path(), ec);  // only when nothing else is in it
  return {};
}

}  // namespace clusterctl::cli
