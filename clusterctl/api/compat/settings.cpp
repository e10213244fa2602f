// Variables for all nodes, and the daemon's own settings.
#include <fmt/format.h>

#include "api/compat/request.h"
#include "api/compat/routes.h"
#include "base/log.h"
#include "base/strings.h"
#include "fleet/patterns.h"

namespace clusterctl::api::compat {
namespace {

using controller::Controller;

// All that is given is all there is; nothing given: no variable is left. So it was there.
Result<Response> set_globals(Controller& c, const Request& r) {
  const auto body = read_body(r);
  if (!body) return fail(body.error());
  const auto warnings =
      c.set_globals(body->extra_vars, false, std::nullopt, {r.identity.name, "POST /globals"});
  if (!warnings) return fail(warnings.error());
  return done();
}

Json config_view(const Settings& s) {
  return {{"ansible",
           {{"configure_playbook", "site.yml"},
            {"cleanup_playbook", "cleanup.yml"},
            {"upgrade_playbook", "site.yml"},
            {"playbook_location", s.playbooks.string()},
            {"extra_variables", "{}"},
            {"user", s.user()},
            {"priv_key_file", s.private_key}}},
          {"manager", {{"addr", s.address}}}};
}

// Every value that is named has to be the present one: paths, keys and addresses are the file's.
Status check_fixed(const Json& given, const Json& present, const std::string& place) {
  for (const auto& [key, value] : given.items()) {
    const std::string name = place.empty() ? key : place + "." + key;
    if (name == "ansible.user" || says_nothing(value)) continue;
    const auto it = present.find(key);
    if (it != present.end() && it->is_object() && value.is_object()) {
      if (auto ok = check_fixed(value, *it, name); !ok) return ok;
      continue;
    }
    if (it != present.end() && *it == value) continue;
    if (name == "ansible.extra_variables")
      return fail(Code::kInvalid, "not_here", "ansible.extra_variables cannot be set here",
                  "they are the globals: POST /globals");
    return fail(Code::kForbidden, "fixed",
                fmt::format("{} cannot be changed here", truncate_utf8(one_line(name), 80)),
                "paths, keys and addresses stand in the daemon's file; change it and restart");
  }
  return {};
}

// A key that is nearly one of ours is a mistake of spelling, not another daemon's setting.
Status check_spelling(const Json& config, const Json& present) {
  if (auto ok = check_keys(config, {"serf", "inventory", "ansible", "manager"}, "config"); !ok)
    return ok;
  const auto ansible = get_object(config, "ansible");
  if (!ansible) return fail(ansible.error());
  std::vector<std::string> known;
  for (const auto& [key, value] : present["ansible"].items()) known.push_back(key);
  return check_keys(*ansible, known, "config.ansible");
}

Result<Response> set_config(Controller& c, OneAtATime& one, const Settings& s, const Request& r) {
  if (!s.set_user)
    return fail(Code::kForbidden, "not_allowed", "the configuration cannot be changed here",
                "change the daemon's file and restart it; compat.set_config allows the user");
  const auto body = read_body(r);
  if (!body) return fail(body.error());
  if (body->config.is_null())
    return fail(Code::kInvalid, "no_config", "the request has no config",
                R"({"config": {"ansible": {"user": "NAME"}}})");
  const Json present = config_view(s);
  if (auto ok = check_spelling(body->config, present); !ok) return fail(ok.error());
  if (auto ok = check_fixed(body->config, present, ""); !ok) return fail(ok.error());
  const auto ansible = get_object(body->config, "ansible");
  if (!ansible) return fail(ansible.error());
  const auto user = get_string(*ansible, "user");
  if (!user) return fail(user.error());
  MutexLock lock(one.mutex);
  if (auto ok = check_no_active_job(c); !ok) return fail(ok.error());
  if (!user->empty()) {
    if (auto ok = s.set_user(*user); !ok) return fail(ok.error());
    log::info("ssh.user is {} until the daemon is restarted, by {}", *user, r.identity.name);
  }
  return done();
}

}  // namespace

void add_setting_routes(Router& router, Controller& c, const std::shared_ptr<OneAtATime>& one,
                        Settings settings) {
  router.post("/globals", [&c](const Request& r) { return set_globals(c, r); });
  const auto s = std::make_shared<const Settings>(std::move(settings));
  router.get("/config",
             [s](const Request&) -> Result<Response> { return Response::json(config_view(*s)); });
  router.post("/config", [&c, one, s](const Request& r) { return set_config(c, *one, *s, r); });
}

}  // namespace clusterctl::api::compat
