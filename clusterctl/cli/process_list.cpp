#include "cli/process_list.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace clusterctl::cli {
namespace {

// The daemon knows more of them, from the roles; these it takes for secret by their name alone
// (controller/secrets.cpp).
constexpr std::array<std::string_view, 8> kSecretWords{
    "password", "passwd", "passphrase", "secret", "token", "api_key", "private_key", "credential"};
constexpr std::string_view kJoinToken = "CCTJ-", kTokenOption = "--token";

bool says_secret(std::string_view text) {
  const std::string low = lower(text);
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](std::string_view word) { return low.find(word) != std::string::npos; });
}

// Only read, not a secret itself.
bool names_a_file(std::string_view value) {
  return value.starts_with('@') || value == "-";
}

// From where on a word is secret; npos: nowhere.
size_t secret_part(std::string_view word, bool value_of_token) {
  if (value_of_token) return names_a_file(word) ? std::string_view::npos : 0;
  if (const size_t token = word.find(kJoinToken); token != std::string_view::npos) return token;
  const size_t equals = word.find('=');
  if (word.substr(0, equals) == kTokenOption && equals != std::string_view::npos)
    return names_a_file(word.substr(equals + 1)) ? std::string_view::npos : equals + 1;
  // A JSON object of variables, also as "-e{…}" and "--extra-vars={…}".
  if (const size_t object = word.find('{'); object != std::string_view::npos)
    return says_secret(word.substr(object)) ? object : std::string_view::npos;
  // name=value, also as "--var=name=value".
  const size_t name = word.starts_with("--") && equals != std::string_view::npos ? equals + 1 : 0;
  const size_t assigned = word.find('=', name);
  if (assigned == std::string_view::npos || word.substr(name, 1) == "-")
    return std::string_view::npos;
  return says_secret(word.substr(name, assigned - name)) ? assigned + 1 : std::string_view::npos;
}

}  // namespace

void hide_secret_arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const bool value_of_token = std::string_view(argv[i - 1]) == kTokenOption;
    for (size_t at = secret_part(word, value_of_token); at < word.size(); ++at) argv[i][at] = '*';
  }
}

}  // namespace clusterctl::cli
