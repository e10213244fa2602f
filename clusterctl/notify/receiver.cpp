#include "notify/receiver.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::notify {
namespace {

constexpr size_t kMinSecret = 16, kMaxSecret = 4096, kMaxUrl = 2048, kMaxReceivers = 20;

std::string authority_of(std::string_view url) {
  const size_t begin = url.find("://");
  if (begin == std::string_view::npos) return "";
  const std::string_view rest = url.substr(begin + 3);
  return std::string(rest.substr(0, rest.find_first_of("/?#")));
}

Status check_url(const std::string& url, const std::string& what) {
  const auto bad = [&](std::string_view why, std::string hint = "") {
    return fail(Code::kInvalid, "bad_url", fmt::format("{}: url {}", what, why), std::move(hint));
  };
  if (url.empty()) return bad("is missing");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return bad("must begin with http:// or https://");
  const bool plain = std::all_of(url.begin(), url.end(),
                                 [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '\\'; });
  if (!plain || url.size() > kMaxUrl) return bad("has characters that must be percent-encoded");
  const std::string authority = authority_of(url);
  if (authority.find('@') != std::string::npos)
    return bad("must not hold a user or a password", "what is sent is signed with secret_file");
  if (authority.empty() || authority[0] == ':') return bad("names no host");
  return {};
}

Status check_path(const std::string& path, std::string_view key, const std::string& what) {
  if (path.empty() || path[0] == '/') return {};
  return fail(Code::kInvalid, "not_absolute",
              fmt::format("{}: {} must be an absolute path, not \"{}\"", what, key, path));
}

bool is_receiver_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) ||
                  std::string_view("._-:[]").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

Result<std::set<std::string>> read_events(const Json& item, const std::string& what) {
  if (!item.contains("events")) return std::set<std::string>{"job.ended", "node.presence"};
  const auto given = get_strings(item, "events");
  if (!given) return fail(given.error());
  const auto& known = event_types();
  for (const std::string& type : *given) {
    if (std::find(known.begin(), known.end(), type) != known.end()) continue;
    const std::string near = nearest(type, known);
    return fail(
        Code::kInvalid, "unknown_event",
        fmt::format("{}: there is no event \"{}\"", what, one_line(type)),
        near.empty() ? "known: " + join(known, ", ") : fmt::format("did you mean \"{}\"?", near));
  }
  if (given->empty()) return fail(Code::kInvalid, "no_events", what + ": events is empty");
  return std::set<std::string>(given->begin(), given->end());
}

Result<Receiver> parse_one(const Json& item, const std::string& what) {
  if (!item.is_object())
    return fail(Code::kInvalid, "wrong_type", what + " must hold keys and values");
  if (auto ok =
          check_keys(item, {"name", "url", "secret_file", "events", "ca_file", "proxy"}, what);
      !ok) {
    return fail(ok.error());
  }
  Receiver out;
  std::string secret_file, ca_file;
  const std::pair<std::string_view, std::string*> texts[] = {{"url", &out.url},
                                                             {"name", &out.name},
                                                             {"secret_file", &secret_file},
                                                             {"ca_file", &ca_file},
                                                             {"proxy", &out.proxy}};
  for (const auto& [key, value] : texts) {
    auto text = get_string(item, key);
    if (!text) return fail(text.error());
    *value = *text;
  }
  if (auto ok = check_url(out.url, what); !ok) return fail(ok.error());
  if (secret_file.empty())
    return fail(Code::kInvalid, "no_secret", what + ": secret_file is missing",
                "a file with at least 16 random characters; receivers check the signature with it");
  for (const auto& [key, path] : {std::pair("secret_file", &secret_file), {"ca_file", &ca_file}}) {
    if (auto ok = check_path(*path, key, what); !ok) return fail(ok.error());
  }
  if (out.name.empty()) out.name = lower(authority_of(out.url));
  if (!is_receiver_name(out.name))
    return fail(Code::kInvalid, "bad_name",
                what + ": name must be letters, digits, dots and hyphens, at most 100");
  auto events = read_events(item, what);
  if (!events) return fail(events.error());
  out.events = std::move(*events);
  out.secret_file = secret_file;
  out.ca_file = ca_file;
  return out;
}

Result<std::string> read_secret(const Receiver& r) {
  const std::string what =
      fmt::format("notifications: secret_file {} of {}", r.secret_file.string(), r.name);
  struct stat info {};
  if (::stat(r.secret_file.c_str(), &info) != 0)
    return fail(Code::kInvalid, "no_secret", what + " cannot be read",
                "make it, at least 16 random characters, mode 0600");
  const bool owned = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0 || !owned)
    return fail(Code::kInvalid, "unsafe_secret", what + " can be read or changed by others",
                "chmod 600 and chown it to the daemon's user");
  auto content = read_file(r.secret_file, kMaxSecret);
  if (!content) return fail(content.error());
  std::string secret = trim(*content);
  if (secret.size() < kMinSecret)
    return fail(Code::kInvalid, "short_secret",
                fmt::format("{} has fewer than {} characters", what, kMinSecret));
  return secret;
}

}  // namespace

const std::vector<std::string>& event_types() {
  static const std::vector<std::string> kTypes = {
      "job.queued",     "job.started",    "job.ended",     "node.added",   "node.removed",
      "node.lifecycle", "node.condition", "node.presence", "node.returned",
      "node.maintenance_overdue"};
  return kTypes;
}

Result<std::vector<Receiver>> parse_receivers(const Json& list) {
  std::vector<Receiver> out;
  if (list.is_null()) return out;
  if (!list.is_array())
    return fail(Code::kInvalid, "wrong_type", "notifications must be a list of receivers");
  if (list.size() > kMaxReceivers)
    return fail(Code::kInvalid, "too_many_receivers",
                fmt::format("notifications may name {} receivers at most", kMaxReceivers));
  for (const Json& item : list) {
    auto one = parse_one(item, fmt::format("notifications[{}]", out.size()));
    if (!one) return fail(one.error());
    for (const Receiver& other : out) {
      if (other.name == one->name)
        return fail(Code::kInvalid, "duplicate_name",
                    fmt::format("notifications: two receivers are named \"{}\"", one->name),
                    "give each a name of its own");
    }
    out.push_back(std::move(*one));
  }
  return out;
}

Status read_secrets(std::vector<Receiver>& receivers) {
  for (Receiver& r : receivers) {
    auto secret = read_secret(r);
    if (!secret) return fail(secret.error());
    r.secret = std::move(*secret);
  }
  return {};
}

std::string origin_of(std::string_view url) {
  return std::string(url.substr(0, url.find("://"))) + "://" + authority_of(url);
}

}  // namespace clusterctl::notify
