#include "api/auth.h"

#include <fmt/format.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/ids.h"
#include "base/strings.h"
#include "base/time.h"

namespace clusterctl::api {
namespace {

constexpr size_t kMinToken = 16;

// Compares in a time that tells nothing of either text, their lengths included.
bool same_secret(std::string_view a, std::string_view b) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> x, y;
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), x.data());
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), y.data());
  return CRYPTO_memcmp(x.data(), y.data(), x.size()) == 0;
}

// "host" of "host:port" and "[v6]:port".
std::string_view host_of(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const size_t end = authority.find(']');
    return end == std::string_view::npos ? std::string_view() : authority.substr(0, end + 1);
  }
  return authority.substr(0, authority.find(':'));
}

tl::unexpected<Error> wrong_token() {
  return fail(Code::kUnauthenticated, "wrong_token",
              "the token is not the right one, or was revoked",
              "the daemon's token file has one; clusterctl cluster token ls lists the others");
}

}  // namespace

Auth::Auth(AuthOptions options) : options_(std::move(options)) {
  for (std::string& host : options_.hosts) {
    if (host.find(':') != std::string::npos && host.front() != '[') host = "[" + host + "]";
    host = lower(host);
  }
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) options_.hosts.emplace_back(name);
}

Result<Identity> Auth::check(const Request& request) const {
  if (auto browser = check_browser(request); !browser) return fail(browser.error());
  if (request.peer.transport == Transport::kUnix) return check_unix(request.peer);
  if (auto host = check_host(request); !host) return fail(host.error());
  const std::string path = request.target.substr(0, request.target.find('?'));
  const auto& open = options_.open_paths;
  if (std::find(open.begin(), open.end(), path) != open.end()) return Identity{"anonymous"};
  return check_token(request);
}

Result<Identity> Auth::check_unix(const Peer& peer) const {
  const bool member = options_.group && (peer.gid == *options_.group ||
                                         std::find(peer.groups.begin(), peer.groups.end(),
                                                   *options_.group) != peer.groups.end());
  if (peer.uid == static_cast<uid_t>(-1) || (peer.uid != 0 && peer.uid != geteuid() && !member)) {
    return fail(Code::kForbidden, "not_allowed",
                fmt::format("user {} may not use this daemon", static_cast<int64_t>(peer.uid)),
                "root and members of the socket's group may");
  }
  return Identity{fmt::format("uid:{}", peer.uid)};
}

Status Auth::check_host(const Request& request) const {
  const auto host = request.headers.get("Host");
  if (host && known_host(*host, request.peer)) return {};
  return fail(Code::kForbidden, "unknown_host",
              fmt::format("\"{}\" is not a name of this daemon",
                          truncate_utf8(one_line(host.value_or("")), 80)),
              "list the name under auth.hosts in the daemon's configuration");
}

// A browser says where a request comes from; only pages of this daemon may call it.
Status Auth::check_browser(const Request& request) const {
  const auto origin = request.headers.get("Origin");
  const auto site = request.headers.get("Sec-Fetch-Site");
  bool ours = !site || *site == "same-origin" || *site == "none";
  if (origin) {
    const size_t scheme = origin->find("://");
    const auto host = request.headers.get("Host");
    ours = ours && request.headers.count("Origin") == 1 && scheme != std::string_view::npos &&
           host && lower(origin->substr(scheme + 3)) == lower(*host) &&
           known_host(*host, request.peer);
  }
  if (ours) return {};
  return fail(Code::kForbidden, "cross_site", "requests from pages of other sites are refused");
}

Result<Identity> Auth::check_token(const Request& request) const {
  const auto header = request.headers.get("Authorization");
  constexpr std::string_view kScheme = "bearer ";
  const bool bearer = header && request.headers.count("Authorization") == 1 &&
                      lower(header->substr(0, kScheme.size())) == kScheme;
  if (!bearer) {
    return fail(Code::kUnauthenticated, "no_token", "this needs a bearer token",
                "send Authorization: Bearer with the content of the daemon's token file");
  }
  const std::string given = trim(header->substr(kScheme.size()));
  if (const auto id = access::api_token_id(given)) return check_named_token(request, *id, given);
  if (options_.token.empty() || !same_secret(given, options_.token)) return wrong_token();
  return Identity{"token"};
}

Result<Identity> Auth::check_named_token(const Request& request, const std::string& id,
                                         std::string_view text) const {
  const auto token = options_.find_token ? options_.find_token(id) : std::nullopt;
  if (!token || !access::is_text_of(*token, text)) return wrong_token();
  if (token->expires && options_.clock->now() >= *token->expires) {
    return fail(
        Code::kUnauthenticated, "token_expired",
        fmt::format("the token {} has expired on {}", token->name, format_time(*token->expires)),
        "make a new one: clusterctl cluster token create");
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (token->read_only && !reads) {
    return fail(Code::kForbidden, "read_only",
                fmt::format("the token {} is for reading only", token->name));
  }
  return Identity{"token:" + token->name, true};
}

bool Auth::known_host(std::string_view authority, const Peer& peer) const {
  const std::string host = lower(host_of(authority));
  if (!peer.local.empty() && host == peer.local) return true;
  return std::find(options_.hosts.begin(), options_.hosts.end(), host) != options_.hosts.end();
}

Result<std::string> load_or_create_token(const fs::path& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return fail(errno_error("cannot look at the token file", path));
    const std::string token = random_hex(32);
    if (auto made = create_file(path, token + "\n", 0600); !made) return fail(made.error());
    return token;
  }
  const bool owned = info.st_uid == geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0 || !owned) {
    return fail(Code::kInternal, "unsafe_token_file",
                fmt::format("the token file {} can be read or changed by others", path.string()),
                "chmod 600 and chown it to the daemon's user, or remove it to get a new token");
  }
  auto content = read_file(path, 4096);
  if (!content) return fail(content.error());
  std::string token = trim(*content);
  const bool usable =
      token.size() >= kMinToken &&
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!usable) {
    return fail(Code::kInternal, "bad_token_file",
                fmt::format("the token file {} has no token of at least {} printable characters",
                            path.string(), kMinToken),
                "remove it to get a new token");
  }
  return token;
}

std::optional<gid_t> find_group(const std::string& name) {
  std::array<char, 16384> buffer;
  group entry{};
  group* found = nullptr;
  const int error = getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0 || !found) return std::nullopt;
  return found->gr_gid;
}

}  // namespace clusterctl::api
