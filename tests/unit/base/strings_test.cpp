#include "base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace clusterctl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Strings, JoinAndSplit) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"", "a", ""}, ","), ",a,");
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split(",a,,b,", ',', true), ElementsAre("a", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("", ',', true), IsEmpty());
}

TEST(Strings, SplitUndoesJoin) {
  EXPECT_TRUE(rc::check("split(join(x)) == x", [](std::vector<std::string> parts) {
    RC_PRE(!parts.empty());
    for (std::string& part : parts) std::replace(part.begin(), part.end(), '\x1f', ' ');
    RC_ASSERT(split(join(parts, "\x1f"), '\x1f') == parts);
  }));
}

TEST(Strings, TrimAndLower) {
  EXPECT_EQ(trim(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(lower("ÄBC-xyz"), "Äbc-xyz") << "only ASCII, independent of the locale";
}

TEST(OneLine, NothingInItMovesTheCursor) {
  EXPECT_EQ(one_line("a\nb\tc\r\x1b[2J\x7f"), "a b c  [2J ");
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(one_line("a\xc2\x9b"
                     "2Jb"),
            "a 2Jb")
      << "C1 control sequence introducer";
  EXPECT_EQ(one_line("a\xe2\x80\xa8"
                     "b\xe2\x80\xa9"
                     "c\xc2\x85"),
            "a b c ");
  EXPECT_EQ(one_line("größe \xe2\x82\xac \xc2"), "größe \xe2\x82\xac \xc2")
      << "other text stays, a cut character too";
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> known = {"host_group", "capabilities", "labels", "listen", "ssh"};
  EXPECT_EQ(nearest("host-group", known), "host_group");
  EXPECT_EQ(nearest("capabilites", known), "capabilities");
  EXPECT_EQ(nearest("label", known), "labels");
  EXPECT_EQ(nearest("lsiten", known), "listen");
  EXPECT_EQ(nearest("shh", known), "ssh");
}

TEST(Nearest, KeepsQuietWhenNothingIsNear) {
  EXPECT_EQ(nearest("colour", {"host_group", "labels"}), "");
  EXPECT_EQ(nearest("ab", {"xy", "z"}), "") << "a short word is not near to every other short word";
  EXPECT_EQ(nearest("", {"abc"}), "");
  EXPECT_EQ(nearest("abc", {}), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), {"abc"}), "") << "and costs nothing";
}

TEST(Utf8, AcceptsWhatIsValid) {
  for (const char* text : {"", "plain", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(valid_utf8(text)) << text;
  }
  EXPECT_TRUE(valid_utf8(std::string("a\0b", 3)));
}

TEST(Utf8, RefusesWhatIsNot) {
  for (const char* text : {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf",
                           "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xff", "a\xe2\x82", "\xf0\x9f\x98", "\xc3\x28"}) {
    EXPECT_FALSE(valid_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, TruncationBreaksNoCharacter) {
  EXPECT_EQ(truncate_utf8("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_EQ(truncate_utf8("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(truncate_utf8("\x80\x80\x80", 2), "");
  EXPECT_EQ(truncate_utf8("abc", 0), "");
  EXPECT_TRUE(rc::check("valid stays valid", [](const std::u32string& points) {
    std::string text;
    for (char32_t c : points) {
      const auto p = static_cast<uint32_t>(c) % 0xd800;
      if (p < 0x80) {
        text += static_cast<char>(p);
      } else if (p < 0x800) {
        text += {static_cast<char>(0xc0 | p >> 6), static_cast<char>(0x80 | (p & 63))};
      } else {
        text += {static_cast<char>(0xe0 | p >> 12), static_cast<char>(0x80 | (p >> 6 & 63)),
                 static_cast<char>(0x80 | (p & 63))};
      }
    }
    RC_ASSERT(valid_utf8(text));
    const size_t max = *rc::gen::inRange<size_t>(0, text.size() + 2);
    const std::string cut = truncate_utf8(text, max);
    RC_ASSERT(cut.size() <= max && valid_utf8(cut) && cut.size() + 3 >= std::min(max, text.size()));
  }));
}

}  // namespace
}  // namespace clusterctl
