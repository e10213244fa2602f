#include "base/time.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace clusterctl {
namespace {

// Reads exactly `digits` decimal digits at `pos`, then the separator `sep` (0 for none).
bool take(std::string_view s, size_t& pos, size_t digits, char sep, int& out) {
  if (pos + digits > s.size()) return false;
  auto [end, ec] = std::from_chars(s.data() + pos, s.data() + pos + digits, out);
  if (ec != std::errc() || end != s.data() + pos + digits || s[pos] == '-') return false;
  pos += digits;
  if (sep == 0) return true;
  if (pos >= s.size() || s[pos] != sep) return false;
  ++pos;
  return true;
}

// "Z" or "+01:00" up to the end; how far the clock is ahead of UTC.
bool take_offset(std::string_view s, size_t pos, std::chrono::minutes& out) {
  if (pos >= s.size()) return false;
  const char sign = s[pos++];
  if (sign == 'Z') return pos == s.size();
  int h = 0, mi = 0;
  if ((sign != '+' && sign != '-') || !take(s, pos, 2, ':', h) || !take(s, pos, 2, 0, mi) ||
      pos != s.size() || h > 23 || mi > 59)
    return false;
  out = std::chrono::hours{h} + std::chrono::minutes{mi};
  if (sign == '-') out = -out;
  return true;
}

}  // namespace

std::string format_time(Time t) {
  using namespace std::chrono;
  const auto day = floor<days>(t);
  const year_month_day ymd{day};
  const hh_mm_ss hms{t - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(ymd.year()),
                     static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                     hms.hours().count(), hms.minutes().count(), hms.seconds().count(),
                     hms.subseconds().count());
}

Result<Time> parse_time(std::string_view s) {
  using namespace std::chrono;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, sec = 0, ms = 0;
  size_t pos = 0;
  bool ok = take(s, pos, 4, '-', y) && take(s, pos, 2, '-', mo) && take(s, pos, 2, 'T', d) &&
            take(s, pos, 2, ':', h) && take(s, pos, 2, ':', mi) && take(s, pos, 2, 0, sec);
  if (ok && pos < s.size() && s[pos] == '.') {
    ++pos;
    int scale = 100;
    size_t start = pos;
    for (; pos < s.size() && s[pos] >= '0' && s[pos] <= '9'; ++pos, scale /= 10)
      ms += (s[pos] - '0') * scale;
    ok = pos > start;
  }
  const year_month_day ymd{year{y}, month{static_cast<unsigned>(mo)},
                           day{static_cast<unsigned>(d)}};
  minutes ahead{0};
  ok = ok && take_offset(s, pos, ahead) && ymd.ok() && h < 24 && mi < 60 && sec < 60;
  if (!ok)
    return fail(Code::kInvalid, "bad_time", fmt::format("\"{}\" is not an RFC 3339 time", s),
                "write 2026-11-30T10:26:02Z or 2026-11-30T11:26:02+01:00");
  return Time{sys_days{ymd} + hours{h} + minutes{mi} + seconds{sec} + milliseconds{ms} - ahead};
}

Result<std::chrono::seconds> parse_duration(std::string_view text) {
  constexpr std::string_view kUnits = "smhd";
  constexpr int64_t kSeconds[] = {1, 60, 3600, 86400};
  constexpr int64_t kMax = 365 * 86400;
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, number);
  const bool digits = ec == std::errc() && text.front() != '-';
  const size_t unit = rest == end ? 0 : rest + 1 == end ? kUnits.find(*rest) : kUnits.npos;
  if (!digits || unit == kUnits.npos || number < 1 || number > kMax / kSeconds[unit]) {
    return fail(Code::kInvalid, "bad_duration",
                fmt::format("\"{}\" is no time from a second to 365 days",
                            one_line(truncate_utf8(text, 64))),
                "write 90s, 10m, 2h or 1d");
  }
  return std::chrono::seconds(number * kSeconds[unit]);
}

std::string format_duration(std::chrono::milliseconds d) {
  const long s = std::max<long>(0, d.count() / 1000);  // clocks of two machines may disagree
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
}

}  // namespace clusterctl
