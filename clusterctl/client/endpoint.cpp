#include "client/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace clusterctl::client {
namespace {

constexpr size_t kMaxSocketPath = 107;  // of sockaddr_un
constexpr std::string_view kForms =
    "give unix:PATH, https://HOST:PORT, http://HOST:PORT, or several of them separated by commas";

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Code::kInvalid, "bad_server",
              fmt::format("\"{}\" is no server address: {}", one_line(text), why),
              std::string(kForms));
}

bool host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
}

Result<Endpoint> parse_socket(std::string_view text, std::string_view path) {
  if (path.empty() || path[0] != '/') return bad(text, "the path of a socket must begin with /");
  if (path.size() > kMaxSocketPath || path.find('\0') != std::string_view::npos) {
    return bad(text, fmt::format("a socket's path has at most {} bytes", kMaxSocketPath));
  }
  return Endpoint{std::string(path), "http://localhost", true, "unix:" + std::string(path)};
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  if (text.starts_with("unix://")) return parse_socket(text, text.substr(7));
  if (text.starts_with("unix:")) return parse_socket(text, text.substr(5));
  if (text.starts_with("/")) return parse_socket(text, text);
  std::string_view scheme = "http://";
  std::string_view rest = text;
  if (text.starts_with("https://")) scheme = "https://";
  if (text.starts_with(scheme)) {
    rest.remove_prefix(scheme.size());
  } else if (text.find("://") != std::string_view::npos) {
    return bad(text, "only http, https and unix are known");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty() || !std::all_of(rest.begin(), rest.end(), host_character)) {
    return bad(text, "expected a host and a port");
  }
  std::string_view host = rest;
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && rest.back() != ']') {
    host = rest.substr(0, colon);
    const std::string_view port = rest.substr(colon + 1);
    int number = 0;
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (ec != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
      return bad(text, "the port must be a number from 1 to 65535");
    }
  }
  if (host.empty() || (host.find(':') != std::string_view::npos && host[0] != '[')) {
    return bad(text, "expected a host; IPv6 addresses stand in brackets");
  }
  const bool local = host == "localhost" || host == "[::1]" || host.starts_with("127.");
  const std::string url = std::string(scheme) + std::string(rest);
  return Endpoint{"", url, local, url};
}

Result<std::vector<Endpoint>> parse_endpoints(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), ',', ' ');
  std::vector<std::string> parts = split(trim(blanks), ' ', true);
  if (parts.empty() && !trim(text).empty()) return bad(text, "it names none");
  if (parts.empty()) parts.emplace_back(kDefaultServer);
  std::vector<Endpoint> out;
  for (const std::string& part : parts) {
    auto endpoint = parse_endpoint(part);
    if (!endpoint) return fail(endpoint.error());
    out.push_back(std::move(*endpoint));
  }
  return out;
}

Result<std::string> read_token(const fs::path& path) {
  auto text = read_file(path, 4096);
  if (!text) {
    Error error = text.error();
    error.code = Code::kUnauthenticated;
    error.message = "the token file cannot be used: " + error.message;
    error.hint = "the daemon makes it at its first start, readable by root only";
    return fail(std::move(error));
  }
  std::string token = trim(*text);
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (token.empty() || !printable) {
    return fail(Code::kUnauthenticated, "bad_token",
                fmt::format("{} does not hold a token: expected one word", path.string()));
  }
  return token;
}

}  // namespace clusterctl::client
