#include "access/join_token.h"

#include <gmock/gmock.h>

namespace clusterctl::access {
namespace {

const JoinTokenText kToken{std::string(64, 'a'), "abcdefgh", "abcdefghijklmnopqrstuvwxyz"};

TEST(JoinToken, IsReadAsItWasWritten) {
  const std::string text = format(kToken);
  EXPECT_EQ(text, "CCTJ-1-" + std::string(64, 'a') + "-abcdefgh-abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(parse_join_token(text).value(), kToken);
  EXPECT_EQ(parse_join_token(" " + text + "\n").value(), kToken);
}

TEST(JoinToken, AnythingElseIsNoneAndIsNotRepeated) {
  const std::string text = format(kToken);
  for (const std::string& bad :
       {std::string(), std::string("x"), text.substr(1), text.substr(0, text.size() - 1),
        text + "a", text + "-a", "CCTJ-2" + text.substr(6), "cctj" + text.substr(4),
        std::string("CCTJ-1-") + std::string(64, 'A') + text.substr(71),
        text.substr(0, text.size() - 1) + "1", text + std::string(1, '\0')}) {
    const auto parsed = parse_join_token(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().reason, "bad_join_token");
    EXPECT_THAT(parsed.error().line(), testing::Not(testing::HasSubstr("abcdefghijkl")));
  }
}

TEST(JoinToken, DigestsAreEqualOnlyWhenTheyAre) {
  EXPECT_TRUE(same_digest(digest("a"), digest("a")));
  EXPECT_FALSE(same_digest(digest("a"), digest("b")));
  EXPECT_FALSE(same_digest(digest("a"), digest("a").substr(1)));
  EXPECT_FALSE(same_digest("", "")) << "nothing stored lets nobody in";
}

}  // namespace
}  // namespace clusterctl::access
