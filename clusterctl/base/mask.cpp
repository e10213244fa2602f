#include "base/mask.h"

#include <cctype>

#include "base/strings.h"

namespace clusterctl {
namespace {

constexpr std::string_view kMarks[] = {"ccta-", "cctj-"};
constexpr size_t kMarkSize = 5;
constexpr size_t kShortest = 8;  // what follows a mark and is shorter tells nothing of a secret
constexpr size_t kLongHex = 32;
constexpr std::string_view kCut = "…";

bool in_token(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
}

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

size_t run_from(std::string_view text, size_t from, bool (*fits)(char)) {
  size_t end = from;
  while (end < text.size() && fits(text[end])) ++end;
  return end - from;
}

bool mark_at(std::string_view text, size_t at) {
  const std::string piece = lower(text.substr(at, kMarkSize));
  return piece == kMarks[0] || piece == kMarks[1];
}

std::string unescaped(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]);
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace

std::string mask_tokens(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t behind = mark_at(text, i) ? run_from(text, i + kMarkSize, in_token) : 0;
    if (behind < kShortest) {
      out += text[i++];
      continue;
    }
    out += text.substr(i, kMarkSize);
    out += kCut;
    i += kMarkSize + behind;
  }
  return out;
}

std::string mask_path(std::string_view path) {
  std::string plain(path);
  // Escaped once more it still is one for who unescapes it.
  for (std::string next = unescaped(plain); next != plain; next = unescaped(plain)) plain = next;
  const std::string text = mask_tokens(plain);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t hex = run_from(text, i, is_hex);
    if (hex >= kLongHex) out += kCut;
    if (hex > 0 && hex < kLongHex) out += text.substr(i, hex);
    if (hex == 0) out += text[i];
    i += hex > 0 ? hex : 1;
  }
  return out;
}

}  // namespace clusterctl
