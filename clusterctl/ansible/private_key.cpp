#include "ansible/private_key.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "base/base64.h"
#include "base/process.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

// OpenSSH's own format names the cipher in the beginning of the body; the older ones say it in
// plain text.
bool has_passphrase(std::string_view text) {
  if (text.find("ENCRYPTED") != std::string_view::npos) return true;
  constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
  const size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos) return false;
  constexpr std::string_view kNoCipher{"openssh-key-v1\0\0\0\0\x04none", 23};
  // Its lines as one, up to the line that ends it.
  std::string body(text.substr(begin + kBegin.size(), 200));
  body.resize(std::min(body.find('-'), body.size()));
  std::erase_if(body, [](unsigned char c) { return std::isspace(c) != 0; });
  const auto bytes = base64_decode(body);
  return !bytes || !bytes->starts_with(kNoCipher);
}

tl::unexpected<Error> bad(const fs::path& path, std::string_view what, std::string hint) {
  return fail(Code::kInvalid, "bad_private_key",
              fmt::format("the ssh key {} {}", path.string(), what), std::move(hint));
}

}  // namespace

Status check_private_key(const fs::path& path) {
  const auto text = read_file(path, 1 << 20);
  if (!text)
    return bad(path, "cannot be read: " + text.error().message,
               "set ssh.private_key to a file of the daemon's user");
  if (text->find("PRIVATE KEY-----") == std::string::npos) {
    const bool is_public = text->rfind("ssh-", 0) == 0 || text->rfind("ecdsa-", 0) == 0 ||
                           text->find("PUBLIC KEY") != std::string::npos;
    return is_public ? bad(path, "is a public key", "name the file without .pub")
                     : bad(path, "is no private key", "make one with ssh-keygen -t ed25519");
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return bad(path, "can be read by others, so ssh will refuse it", "chmod 600 " + path.string());
  }
  if (has_passphrase(*text))
    return bad(path, "asks for a passphrase",
               "use a key without one, or remove it with ssh-keygen -p");
  return {};
}

Result<std::string> public_key_of(const fs::path& path) {
  constexpr std::chrono::seconds kWait{10};
  const auto answer = run_process({{"ssh-keygen", "-y", "-P", "", "-f", path.string()},
                                   {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LANG", "C.UTF-8"}},
                                   "/",
                                   false,
                                   -1,
                                   {}},
                                  kWait, 1 << 16);
  if (!answer) return fail(answer.error());
  const auto parts = split(trim(answer->text), ' ', true);
  if (!answer->status.ok() || parts.size() < 2)
    return bad(path, "tells no public key: " + one_line(trim(answer->text)),
               "make a new one with ssh-keygen -t ed25519");
  return parts[0] + " " + parts[1];
}

}  // namespace clusterctl::ansible
