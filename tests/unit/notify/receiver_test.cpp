#include "notify/receiver.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "fakes/temp_dir.h"
#include "notify/ledger.h"

namespace clusterctl::notify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Json kGood{{"url", "https://hooks.example.com:8443/a?b=c"}, {"secret_file", "/etc/s"}};

Json with(const std::string& key, const Json& value) {
  Json item = kGood;
  item[key] = value;
  return Json::array({item});
}

std::string error_of(const Json& list) {
  const auto parsed = parse_receivers(list);
  return parsed ? "none" : parsed.error().line();
}

TEST(Receivers, DefaultsOfAShortEntry) {
  const auto parsed = parse_receivers(Json::array({kGood}));
  ASSERT_TRUE(parsed) << parsed.error().line();
  ASSERT_EQ(parsed->size(), 1u);
  EXPECT_EQ((*parsed)[0].name, "hooks.example.com:8443");
  EXPECT_THAT((*parsed)[0].events, ElementsAre("job.ended", "node.presence"));
  EXPECT_EQ(origin_of((*parsed)[0].url), "https://hooks.example.com:8443");
  EXPECT_TRUE(parse_receivers(Json())->empty());
}

TEST(Receivers, MistakesAreNamedWithTheNearestRightWord) {
  EXPECT_THAT(error_of(with("evnts", Json::array())), HasSubstr("\"events\""));
  EXPECT_THAT(error_of(with("events", {"job.endet"})), HasSubstr("did you mean \"job.ended\"?"));
  EXPECT_THAT(error_of(with("events", Json::array())),
              HasSubstr("notifications[0]: events is empty"));
  EXPECT_THAT(error_of(Json::object()), HasSubstr("must be a list"));
  EXPECT_THAT(error_of(Json::array({kGood, kGood})), HasSubstr("two receivers are named"));
  EXPECT_THAT(error_of(with("secret_file", "")), HasSubstr("secret_file is missing"));
  EXPECT_THAT(error_of(with("secret_file", "s")), HasSubstr("must be an absolute path"));
  EXPECT_THAT(error_of(with("name", "a b")), HasSubstr("name must be"));
}

TEST(Receivers, OnlyPlainHttpAddresses) {
  for (const char* url :
       {"", "ftp://x/", "file:///etc/passwd", "x", "http://", "http:///x", "https://:80/",
        "https://user:pw@x/", "https://x/a b", "https://x/\n", "gopher://x", "HTTP//x"}) {
    EXPECT_THAT(error_of(with("url", url)), HasSubstr("notifications[0]: url")) << url;
  }
}

class SecretFile : public testing::Test {
 protected:
  Status read(std::string_view content, mode_t mode) {
    const fs::path file = dir_.path() / "secret";
    std::error_code ec;
    fs::remove(file, ec);
    EXPECT_TRUE(create_file(file, content, mode));
    receivers_ = *parse_receivers(Json::array({kGood}));
    receivers_[0].secret_file = file;
    return read_secrets(receivers_);
  }
  TempDir dir_;
  std::vector<Receiver> receivers_;
};

TEST_F(SecretFile, IsReadWithoutItsLineEnd) {
  ASSERT_TRUE(read("0123456789abcdef\n", 0600));
  EXPECT_EQ(receivers_[0].secret, "0123456789abcdef");
}

TEST_F(SecretFile, MustBeLongAndPrivate) {
  EXPECT_THAT(read("short\n", 0600).error().line(), HasSubstr("fewer than 16"));
  const auto open = read("0123456789abcdef\n", 0644);
  EXPECT_THAT(open.error().line(), HasSubstr("by others"));
  EXPECT_THAT(open.error().line(), Not(HasSubstr("0123456789abcdef")));
}

TEST(FileLedger, KeepsWhatItWasGivenAndRefusesDamage) {
  TempDir dir;
  const fs::path file = dir.path() / "n.json";
  FileLedger ledger(file);
  EXPECT_TRUE(ledger.load()->empty());
  ASSERT_TRUE(ledger.save({{"a", 7}, {"b", 9}}));
  EXPECT_EQ(*ledger.load(), (Cursors{{"a", 7}, {"b", 9}}));
  ASSERT_TRUE(write_file_atomic(file, "{\"cursors\": {\"a\": -1}}"));
  EXPECT_THAT(ledger.load().error().line(), HasSubstr("n.json"));
  ASSERT_TRUE(write_file_atomic(file, "{"));
  EXPECT_FALSE(ledger.load());
}

}  // namespace
}  // namespace clusterctl::notify
