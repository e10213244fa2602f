#include "base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace clusterctl {
namespace {

using std::chrono::milliseconds;

TEST(Time, FormatsUtcWithMilliseconds) {
  EXPECT_EQ(format_time(Time{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(Time{milliseconds(1796034362123)}), "2026-11-30T10:26:02.123Z");
  EXPECT_EQ(format_time(Time{milliseconds(-1)}), "1969-12-31T23:59:59.999Z");
}

TEST(Time, ReadsWhatItWrites) {
  EXPECT_TRUE(rc::check("parse(format(t)) == t", [] {
    const Time t{milliseconds(*rc::gen::inRange<int64_t>(-62135596800000, 253402300800000))};
    const auto back = parse_time(format_time(t));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == t);
  }));
}

TEST(Time, ReadsAnyNumberOfFractionDigits) {
  EXPECT_EQ(parse_time("2026-11-30T10:26:02Z"), Time{milliseconds(1796034362000)});
  EXPECT_EQ(parse_time("2026-11-30T10:26:02.1Z"), Time{milliseconds(1796034362100)});
  EXPECT_EQ(parse_time("2026-11-30T10:26:02.123456789123456789Z"),
            Time{milliseconds(1796034362123)});
  EXPECT_EQ(parse_time("2024-02-29T00:00:00Z"), Time{milliseconds(1709164800000)});
}

TEST(Time, ReadsOffsets) {
  EXPECT_EQ(parse_time("2026-11-30T12:26:02+02:00"), Time{milliseconds(1796034362000)});
  EXPECT_EQ(parse_time("2026-11-30T04:56:02.5-05:30"), Time{milliseconds(1796034362500)});
  EXPECT_EQ(parse_time("2026-12-01T00:26:02+14:00"), Time{milliseconds(1796034362000)});
  EXPECT_EQ(parse_time("2026-11-30T10:26:02-00:00"), Time{milliseconds(1796034362000)});
}

TEST(Time, RefusesEverythingElse) {
  for (const char* text : {"",
                           "2026-11-30",
                           "2026-11-30T10:26:02",
                           "2026-11-30T10:26:02+0200",
                           "2026-11-30T10:26:02+02",
                           "2026-11-30T10:26:02+24:00",
                           "2026-11-30T10:26:02+02:60",
                           "2026-11-30T10:26:02+02:00Z",
                           "2026-11-30T10:26:02 02:00",
                           "2026-11-30 10:26:02Z",
                           "2026-11-30t10:26:02z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2025-02-29T00:00:00Z",
                           "2026-11-31T00:00:00Z",
                           "2026-11-30T24:00:00Z",
                           "2026-11-30T10:60:00Z",
                           "2026-11-30T10:26:60Z",
                           "2026-11-30T10:26:02.Z",
                           "2026-11-30T10:26:02.1",
                           "2026-11-30T10:26:02Zx",
                           "-026-11-30T10:26:02Z",
                           "+026-11-30T10:26:02Z",
                           "2026-11-3 T10:26:02Z",
                           "2026-1-30T10:26:02Z",
                           " 2026-11-30T10:26:02Z",
                           "2026-11-30T-1:26:02Z",
                           "20261130T102602Z",
                           "now"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Time, HostileTextNeverCrashes) {
  EXPECT_TRUE(rc::check("parse_time(any)", [](std::string text) { (void)parse_time(text); }));
  EXPECT_TRUE(rc::check("parse_time(nearly)", [] {
    std::string text = "2026-11-30T10:26:02.123Z";
    text[*rc::gen::inRange<size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    (void)parse_time(text.substr(0, *rc::gen::inRange<size_t>(0, text.size() + 1)));
  }));
}

TEST(Time, ReadsDurations) {
  using std::chrono::seconds;
  EXPECT_EQ(parse_duration("90"), seconds(90));
  EXPECT_EQ(parse_duration("90s"), seconds(90));
  EXPECT_EQ(parse_duration("10m"), seconds(600));
  EXPECT_EQ(parse_duration("2h"), seconds(7200));
  EXPECT_EQ(parse_duration("365d"), seconds(365 * 86400));
  for (const char* bad : {"", "s", "0", "0s", "-5", "-5m", "+5", " 5", "5 ", "5x", "5ms", "1.5h",
                          "366d", "99999999999999999999", "9223372036854775807d", "1e3"}) {
    const auto read = parse_duration(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().reason, "bad_duration");
  }
}

TEST(Time, DurationsForPeople) {
  EXPECT_EQ(format_duration(milliseconds(999)), "0s");
  EXPECT_EQ(format_duration(milliseconds(43000)), "43s");
  EXPECT_EQ(format_duration(milliseconds(125000)), "2m05s");
  EXPECT_EQ(format_duration(milliseconds(3720000)), "1h02m");
  EXPECT_EQ(format_duration(milliseconds(100 * 3600000)), "100h00m");
  EXPECT_EQ(format_duration(milliseconds(-5000)), "0s") << "clocks of two machines may disagree";
}

}  // namespace
}  // namespace clusterctl
