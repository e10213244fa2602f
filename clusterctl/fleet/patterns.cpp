#include "fleet/patterns.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ssh_key.h"
#include "base/strings.h"

namespace clusterctl::fleet {
namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alnum(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c);
}

// Begins and ends with a letter or digit, at most `max` long, in between also the characters of
// `inner`.
bool shaped(std::string_view text, size_t max, std::string_view inner, bool upper) {
  if (text.empty() || text.size() > max) return false;
  const auto edge = [&](char c) { return is_lower(c) || is_digit(c) || (upper && is_upper(c)); };
  return edge(text.front()) && edge(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return edge(c) || inner.find(c) != std::string_view::npos; });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

tl::unexpected<Error> bad(std::string reason, std::string message, std::string hint) {
  return fail(Code::kInvalid, std::move(reason), std::move(message), std::move(hint));
}

int depth_of(const Json& value, int limit) {
  if (!value.is_structured() || limit == 0) return 0;
  int deepest = 0;
  for (const Json& item : value) deepest = std::max(deepest, depth_of(item, limit - 1));
  return deepest + 1;
}

bool all_valid_utf8(const Json& value) {
  if (value.is_string()) return valid_utf8(value.get_ref<const std::string&>());
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (!valid_utf8(key) || !all_valid_utf8(item)) return false;
    }
  } else if (value.is_array()) {
    return std::all_of(value.begin(), value.end(), all_valid_utf8);
  }
  return true;
}

// Neither a file nor a command line can hold one.
bool holds_nul(const Json& value) {
  const auto has = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (value.is_string()) return has(value.get_ref<const std::string&>());
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (has(key) || holds_nul(item)) return true;
    }
    return false;
  }
  return value.is_array() && std::any_of(value.begin(), value.end(), holds_nul);
}

// What an IP address is when it is not that of one machine; "" when it is.
std::string_view no_single_machine(std::string_view addr) {
  if (!is_ip(addr)) return "";
  const std::string text = canonical_addr(addr);
  std::array<unsigned char, 4> v4;
  if (inet_pton(AF_INET, text.c_str(), v4.data()) != 1)
    return text == "::"                               ? "no address (any)"
           : text.starts_with("ff") && text[4] == ':' ? "a multicast address"
                                                      : "";
  if (v4[0] == 0) return "no address (any)";
  if (text == "255.255.255.255") return "a broadcast address";
  return v4[0] >= 224 && v4[0] < 240 ? "a multicast address" : "";
}

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= 128 && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '_'; });
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out = one_line(truncate_utf8(text, 60));
  if (!valid_utf8(out)) out = "(not UTF-8)";
  return "\"" + out + (text.size() > 60 ? "…" : "") + "\"";
}

bool is_name(std::string_view text) {
  return shaped(text, 63, ".-", false);
}
bool is_word(std::string_view text) {
  return shaped(text, 63, "._-", false);
}

bool is_ip(std::string_view text) {
  if (text.size() > 45) return false;
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) return false;
  std::array<unsigned char, 16> bytes;
  return inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1;
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto labels = split(text, '.');
  for (const std::string& label : labels) {
    if (!shaped(label, 63, "-", true)) return false;
  }
  // "10.0.0.300", "1234" and "0x7f000001" are mistyped addresses, and resolvers read them as such.
  const std::string& last = labels.back();
  const bool hex = last.size() > 1 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X') &&
                   std::all_of(last.begin() + 2, last.end(),
                               [](unsigned char c) { return std::isxdigit(c) != 0; });
  return !hex && !std::all_of(last.begin(), last.end(), is_digit);
}

bool is_loopback(std::string_view addr) {
  const std::string a = canonical_addr(addr);
  if (is_ip(a)) return a.starts_with("127.") || a == "::1";
  // Names that hosts files come with.
  constexpr std::string_view kNames[] = {"localhost",
                                         "localhost.localdomain",
                                         "localhost4",
                                         "localhost6",
                                         "localhost4.localdomain4",
                                         "localhost6.localdomain6",
                                         "ip6-localhost",
                                         "ip6-loopback"};
  return a.ends_with(".localhost") ||
         std::find(std::begin(kNames), std::end(kNames), a) != std::end(kNames);
}

std::string canonical_addr(std::string_view addr) {
  std::string out = lower(addr);
  std::array<unsigned char, 16> bytes;
  std::array<char, 64> text;
  if (is_ip(out) && inet_pton(AF_INET6, out.c_str(), bytes.data()) == 1) {
    // ::ffff:10.0.0.1 is 10.0.0.1, written for programs that only know IPv6.
    constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const bool v4 = std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
    inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? kMapped.size() : 0), text.data(),
              text.size());
    return text.data();
  }
  return out;
}

bool same_addr(std::string_view a, std::string_view b) {
  return canonical_addr(a) == canonical_addr(b);
}

Status check_name(std::string_view name) {
  // Words that mean something else to Ansible, or to this program's own commands.
  constexpr std::string_view kTaken[] = {"all", "ungrouped", "localhost", "active", "last"};
  if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) {
    return bad("reserved_name",
               fmt::format("{} is not a node name: it means something else", shown(name)),
               "choose another name");
  }
  if (is_name(name)) return {};
  const std::string small = lower(name);
  if (name.empty()) return bad("bad_name", "a node needs a name", "e.g. \"node1\"");
  return bad("bad_name", fmt::format("{} is not a node name", shown(name)),
             is_name(small) ? fmt::format("names are lower case: use \"{}\"", small)
                            : "1 to 63 lower-case letters, digits, '.' and '-', beginning and "
                              "ending with a letter or digit");
}

Status check_word(std::string_view word, std::string_view what) {
  if (is_word(word)) return {};
  return bad("bad_word", fmt::format("{} is not a {}", shown(word), what),
             "1 to 63 lower-case letters, digits, '.', '_' and '-', beginning and ending with a "
             "letter or digit");
}

Status check_addr(std::string_view addr, std::string_view what) {
  if (const std::string_view kind = no_single_machine(addr); !kind.empty()) {
    return bad("bad_addr", fmt::format("{} {} is {}", what, shown(addr), kind),
               "the address of one machine, e.g. \"10.0.0.11\" or \"fd00::11\"");
  }
  if (is_ip(addr) || is_host_name(addr)) return {};
  if (addr.empty()) {
    return bad("bad_addr", fmt::format("{} is missing", what), "an IP address or a host name");
  }
  return bad(
      "bad_addr", fmt::format("{} {} is neither an IP address nor a host name", what, shown(addr)),
      "e.g. \"10.0.0.11\", \"fd00::11\" or \"node1.example.com\"; the port belongs to ssh.port");
}

Status check_label(std::string_view key, std::string_view value) {
  if (!shaped(key, 63, "._-/", true)) {
    return bad("bad_label", fmt::format("{} is not a label key", shown(key)),
               "1 to 63 letters, digits, '.', '_', '-' and '/', beginning and ending with a letter "
               "or digit");
  }
  if (value.size() > 256 || has_control(value) || !valid_utf8(value)) {
    return bad("bad_label", fmt::format("the value of label \"{}\" is not usable", key),
               "at most 256 bytes of UTF-8 on one line");
  }
  return {};
}

Status check_version(std::string_view service, const Json& value) {
  if (auto ok = check_word(service, "service"); !ok) return ok;
  if (value.is_number()) {
    return bad("number_as_version",
               fmt::format("the version of {} is the number {}, and numbers lose digits", service,
                           dump_json(value)),
               "quote it, e.g. \"20.10\"");
  }
  if (!value.is_string()) {
    return bad("wrong_type", fmt::format("the version of {} must be a string", service),
               "e.g. \"20.10.24\"");
  }
  const std::string& text = value.get_ref<const std::string&>();
  const bool fine =
      !text.empty() && text.size() <= 64 && is_alnum(text[0]) &&
      std::all_of(text.begin(), text.end(), [](char c) {
        return is_alnum(c) || std::string_view(".+:~_-").find(c) != std::string_view::npos;
      });
  if (fine) return {};
  return bad("bad_version", fmt::format("{} is not a version of {}", shown(text), service),
             "letters, digits and . + : ~ _ -");
}

Status check_ssh_user(std::string_view user) {
  const bool fine = user.size() <= 64 && (user.empty() || is_alnum(user[0]) || user[0] == '_') &&
                    std::all_of(user.begin(), user.end(), [](char c) {
                      return is_alnum(c) || c == '_' || c == '.' || c == '-';
                    });
  if (fine) return {};
  return bad("bad_ssh_user", fmt::format("ssh.user {} is not a user name", shown(user)),
             "letters, digits, '_', '.' and '-', not beginning with '-' or '.'");
}

Status check_ssh_port(int64_t port) {
  if (port >= 1 && port <= 65535) return {};
  return bad("bad_ssh_port", fmt::format("ssh.port {} is not a port", port),
             "1 to 65535, usually 22");
}

Status check_ssh_jump(std::string_view jump) {
  if (jump.empty()) return {};
  std::string_view rest = jump;
  bool fine = true;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    fine = at > 0 && check_ssh_user(rest.substr(0, at)).has_value();
    rest.remove_prefix(at + 1);
  }
  std::string_view host = rest, port;
  if (!rest.empty() && rest[0] == '[') {
    const size_t close = rest.find(']');
    host = close == std::string_view::npos ? "" : rest.substr(1, close - 1);
    rest = close == std::string_view::npos ? "" : rest.substr(close + 1);
    fine = fine && (rest.empty() || rest[0] == ':') && is_ip(host);
    port = rest.empty() ? rest : rest.substr(1);
    fine = fine && (rest.empty() || !port.empty());
  } else if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
    fine = fine && !port.empty();
  }
  int number = 22;
  if (!port.empty()) {
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
    fine = fine && ec == std::errc() && end == port.data() + port.size() && is_digit(port[0]);
  }
  if (fine && check_addr(host) && check_ssh_port(number)) return {};
  return bad("bad_ssh_jump", fmt::format("ssh.jump {} is not a jump host", shown(jump)),
             "user@host:port, where user and port may be missing and IPv6 stands in []");
}

namespace {

// Options that choose how a connection is made and can start no program and read no file of the
// controller: whoever may change a node must not thereby become root on the controller.
const std::vector<std::string>& harmless_ssh_options() {
  static const std::vector<std::string> kOptions{"AddressFamily",
                                                 "BindAddress",
                                                 "BindInterface",
                                                 "Ciphers",
                                                 "Compression",
                                                 "ConnectionAttempts",
                                                 "ConnectTimeout",
                                                 "HostKeyAlgorithms",
                                                 "IPQoS",
                                                 "KexAlgorithms",
                                                 "MACs",
                                                 "PreferredAuthentications",
                                                 "PubkeyAcceptedAlgorithms",
                                                 "RekeyLimit",
                                                 "ServerAliveCountMax",
                                                 "ServerAliveInterval",
                                                 "SetEnv",
                                                 "TCPKeepAlive"};
  return kOptions;
}

// "Name=value"; ssh itself does not mind case and also takes "Name value".
bool harmless_ssh_option(const std::string& option) {
  const size_t end = option.find_first_of("= \t");
  if (end == std::string::npos) return false;
  const std::string name = lower(option.substr(0, end));
  const auto& known = harmless_ssh_options();
  return std::any_of(known.begin(), known.end(),
                     [&](const std::string& k) { return lower(k) == name; });
}

}  // namespace

Status check_ssh_extra_args(const std::vector<std::string>& args) {
  if (args.size() > kMaxListItems) {
    return bad("bad_ssh_args", "ssh.extra_args has too many entries",
               fmt::format("at most {}", kMaxListItems));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg.empty() || arg.size() > 1024 || has_control(arg) || !valid_utf8(arg)) {
      return bad("bad_ssh_args", fmt::format("ssh.extra_args: {} is not usable", shown(arg)),
                 "one argument of ssh per entry, 1 to 1024 bytes on one line");
    }
    if (arg == "-4" || arg == "-6" || arg == "-C") continue;
    const bool separate = arg == "-o" && i + 1 < args.size();
    const std::string option = separate ? args[++i] : arg.starts_with("-o") ? arg.substr(2) : "";
    if (harmless_ssh_option(option)) continue;
    return bad("bad_ssh_args", fmt::format("ssh.extra_args: {} is not allowed", shown(arg)),
               "-4, -6, -C, or -o with one of: " + join(harmless_ssh_options(), ", ") +
                   "; a way through another machine is ssh.jump");
  }
  return {};
}

Result<std::string> check_host_key(std::string_view key) {
  if (key.empty()) return std::string();
  if (key.size() <= 8192 && !has_control(key)) {
    if (auto plain = plain_ssh_key(key)) return *plain;
  }
  return bad("bad_host_key", fmt::format("ssh.host_key {} is not a public host key", shown(key)),
             "one line as in /etc/ssh/ssh_host_ed25519_key.pub: \"ssh-ed25519 AAAA…\"");
}

Status check_vars(const Json& vars, std::string_view what, size_t max_bytes) {
  if (!vars.is_object()) {
    return bad("not_an_object",
               fmt::format("{} must be a JSON object, not {}", what, vars.type_name()),
               "{\"name\": value, …}");
  }
  for (const auto& [name, value] : vars.items()) {
    if (!is_identifier(name)) {
      return bad("bad_var_name", fmt::format("{}: {} is not a variable name", what, shown(name)),
                 "letters, digits and '_', not beginning with a digit");
    }
    if (depth_of(value, kMaxVarsDepth + 1) > kMaxVarsDepth) {
      return bad("too_deep",
                 fmt::format("{}: {} has more than {} levels", what, name, kMaxVarsDepth),
                 "flatten it, or put it into a file on the nodes");
    }
    if (!all_valid_utf8(value)) {
      return bad("bad_utf8", fmt::format("{}: {} is not valid UTF-8", what, name), "");
    }
    if (holds_nul(value)) {
      return bad("bad_value", fmt::format("{}: {} holds a NUL character", what, name),
                 "leave it out: no file and no command line can hold one");
    }
  }
  if (dump_json(vars).size() > max_bytes) {
    return fail(Code::kTooLarge, "vars_too_large",
                fmt::format("{} take more than {} KiB", what, max_bytes >> 10),
                "put big values into files");
  }
  return {};
}

}  // namespace clusterctl::fleet
