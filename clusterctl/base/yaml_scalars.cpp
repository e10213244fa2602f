#include "base/yaml_scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"

namespace clusterctl {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool all(std::string_view t, std::string_view of) {
  return !t.empty() && t.find_first_not_of(of) == std::string_view::npos;
}
constexpr std::string_view kDigits = "0123456789_";

std::string without_underscores(std::string_view t) {
  std::string out(t);
  std::erase(out, '_');
  return out;
}

tl::unexpected<Error> no_value(std::string_view text, std::string_view why) {
  return fail(Code::kInvalid, "bad_scalar",
              "\"" + truncate_utf8(one_line(text), 80) + "\" " + std::string(why), "quote it");
}

// Digits in a base, with their sign; as text when they do not fit.
Result<Json> integer(std::string_view whole, std::string_view sign, const std::string& digits,
                     int base) {
  if (digits.empty()) return no_value(whole, "is no number");
  uint64_t value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (end != digits.data() + digits.size() && ec == std::errc())
    return no_value(whole, "is no number");
  if (ec != std::errc()) {
    if (base == 10) return Json(std::string(sign == "-" ? "-" : "") + digits);
    return no_value(whole, "is larger than 64 bits");
  }
  if (sign != "-") return value <= INT64_MAX ? Json(static_cast<int64_t>(value)) : Json(value);
  if (value > static_cast<uint64_t>(INT64_MAX) + 1) return Json("-" + digits);
  return Json(static_cast<int64_t>(0 - value));
}

// "12:30:45", "1:30.5": base 60. The first group begins with 1 to 9 when it is an integer.
std::optional<std::vector<std::string>> groups_of(std::string_view body) {
  std::vector<std::string> groups = split(std::string(body), ':');
  if (groups.size() < 2 || !digit(groups[0].empty() ? 'x' : groups[0][0]) ||
      !all(groups[0], kDigits))
    return std::nullopt;
  for (size_t i = 1; i < groups.size(); ++i) {
    std::string_view g = groups[i];
    if (i + 1 == groups.size()) g = g.substr(0, g.find('.'));
    const bool fits = (g.size() == 1 && digit(g[0])) ||
                      (g.size() == 2 && g[0] >= '0' && g[0] <= '5' && digit(g[1]));
    if (!fits) return std::nullopt;
  }
  return groups;
}

std::optional<Result<Json>> sexagesimal(std::string_view text, std::string_view sign,
                                        std::string_view body) {
  const auto groups = groups_of(body);
  if (!groups) return std::nullopt;
  const size_t dot = body.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view rest = body.substr(dot + 1);
    if (!rest.empty() && !all(rest, kDigits)) return std::nullopt;
  } else if (body[0] == '0') {
    return std::nullopt;
  }
  double value = 0;
  for (const std::string& g : *groups) {
    double part = 0;
    const std::string clean = without_underscores(g);
    std::from_chars(clean.data(), clean.data() + clean.size(), part);
    value = value * 60 + part;
  }
  if (std::abs(value) > 9e15) return Result<Json>(no_value(text, "is larger than 64 bits"));
  if (sign == "-") value = -value;
  if (dot == std::string_view::npos) return Result<Json>(Json(static_cast<int64_t>(value)));
  return Result<Json>(Json(value));
}

std::optional<Result<Json>> fraction(std::string_view text, std::string_view sign,
                                     std::string_view body) {
  const size_t dot = body.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view whole = body.substr(0, dot);
  std::string_view rest = body.substr(dot + 1), exponent;
  if (const size_t e = rest.find_first_of("eE"); e != std::string_view::npos) {
    exponent = rest.substr(e);
    rest = rest.substr(0, e);
    const bool fits = exponent.size() > 2 && (exponent[1] == '+' || exponent[1] == '-') &&
                      all(exponent.substr(2), "0123456789");
    if (!fits) return std::nullopt;
  }
  if (!rest.empty() && !all(rest, kDigits)) return std::nullopt;
  if (whole.empty()) {
    if (!sign.empty() || rest.empty() || !digit(rest[0])) return std::nullopt;
  } else if (!digit(whole[0]) || !all(whole, kDigits)) {
    return std::nullopt;
  }
  std::string number = without_underscores(whole.empty() ? "0" : whole) + "." +
                       without_underscores(rest) + "0" + std::string(exponent);
  double value = 0;
  const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (ec == std::errc::result_out_of_range && number.find("e-") == std::string::npos &&
      number.find("E-") == std::string::npos)
    return Result<Json>(no_value(text, "is too large"));
  if (ec == std::errc::result_out_of_range) value = 0;
  return Result<Json>(Json(sign == "-" ? -value : value));
}

std::optional<Result<Json>> number(std::string_view text) {
  const bool has_sign = text[0] == '-' || text[0] == '+';
  const std::string_view sign = text.substr(0, has_sign ? 1 : 0), body = text.substr(sign.size());
  if (body.empty()) return std::nullopt;
  if (body == ".inf" || body == ".Inf" || body == ".INF" ||
      (sign.empty() && (body == ".nan" || body == ".NaN" || body == ".NAN")))
    return Result<Json>(no_value(text, "has no value in JSON"));
  if (auto value = fraction(text, sign, body)) return value;
  if (auto value = sexagesimal(text, sign, body)) return value;
  const std::string digits = without_underscores(body);
  if (body.starts_with("0b") && all(body.substr(2), "01_"))
    return integer(text, sign, digits.substr(2), 2);
  if (body.starts_with("0x") && all(body.substr(2), "0123456789abcdefABCDEF_"))
    return integer(text, sign, digits.substr(2), 16);
  if (body == "0") return Result<Json>(Json(0));
  if (body[0] == '0' && all(body.substr(1), "01234567_")) return integer(text, sign, digits, 8);
  if (body[0] >= '1' && body[0] <= '9' && all(body, kDigits))
    return integer(text, sign, digits, 10);
  return std::nullopt;
}

// yyyy-mm-dd, alone or with a time behind it.
std::optional<Result<Json>> date(std::string_view t) {
  const auto digits_at = [&](size_t from, size_t n) {
    return t.size() >= from + n && all(t.substr(from, n), "0123456789");
  };
  if (t.size() == 10 && digits_at(0, 4) && t[4] == '-' && digits_at(5, 2) && t[7] == '-' &&
      digits_at(8, 2)) {
    const int year = std::stoi(std::string(t.substr(0, 4)));
    const int month = std::stoi(std::string(t.substr(5, 2)));
    const int day = std::stoi(std::string(t.substr(8, 2)));
    static constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > kDays[month - 1] ||
        (month == 2 && day == 29 && !leap))
      return Result<Json>(no_value(t, "is no date"));
    return Result<Json>(Json(std::string(t)));
  }
  if (!digits_at(0, 4) || t.size() < 12 || t[4] != '-') return std::nullopt;
  const size_t time = t.find_first_of("Tt \t", 5);
  const size_t colon = t.find(':');
  if (time == std::string_view::npos || colon == std::string_view::npos || colon < time ||
      !all(t.substr(5, time - 5), "0123456789-") || !all(t.substr(time), "0123456789-+:.TtZ \t"))
    return std::nullopt;
  return Result<Json>(no_value(t, "is a date with a time"));
}

}  // namespace

Result<Json> resolve_yaml_1_1(std::string_view t) {
  static constexpr std::string_view kTrue[] = {"yes",  "Yes", "YES", "true", "True",
                                               "TRUE", "on",  "On",  "ON"};
  static constexpr std::string_view kFalse[] = {"no",    "No",  "NO",  "false", "False",
                                                "FALSE", "off", "Off", "OFF"};
  if (t.empty() || t == "~" || t == "null" || t == "Null" || t == "NULL") return Json();
  if (std::find(std::begin(kTrue), std::end(kTrue), t) != std::end(kTrue)) return Json(true);
  if (std::find(std::begin(kFalse), std::end(kFalse), t) != std::end(kFalse)) return Json(false);
  if (t == "=") return no_value(t, "is the value key of YAML 1.1");
  if (auto value = number(t)) return *value;
  if (auto value = date(t)) return *value;
  return Json(std::string(t));
}

}  // namespace clusterctl
