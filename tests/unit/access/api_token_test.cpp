#include "access/api_token.h"

#include <gmock/gmock.h>

#include "base/digest.h"

namespace clusterctl::access {
namespace {

const std::string kId = "abcdefgh2345";
const std::string kSecret(40, 'a');

ApiToken token() {
  ApiToken out;
  out.id = kId;
  out.name = "ci";
  out.digest = sha256_hex(api_token_text(kId, kSecret));
  out.by = "uid:0";
  out.created = Time(std::chrono::hours(500000));
  return out;
}

TEST(ApiToken, TheTextSaysWhichOneItIs) {
  const std::string text = api_token_text(kId, kSecret);
  EXPECT_EQ(api_token_id(text), kId);
  EXPECT_TRUE(is_text_of(token(), text));
  EXPECT_FALSE(is_text_of(token(), api_token_text(kId, std::string(40, 'b'))));
  EXPECT_FALSE(is_text_of(ApiToken(), ""));
  for (const std::string& bad :
       {std::string(), text + "0", text.substr(1), text.substr(0, text.size() - 1),
        api_token_text("ABCDEFGH2345", kSecret), api_token_text("../../etc/pa", kSecret),
        api_token_text(kId, std::string(40, 'z')), "CCTA-1-" + std::string(53, '-'),
        "CCTJ-1-" + text.substr(7)}) {
    EXPECT_EQ(api_token_id(bad), std::nullopt) << bad;
  }
}

TEST(ApiToken, ComesBackFromItsRecordAndIsShownWithoutTheDigest) {
  for (const bool ends : {false, true}) {
    ApiToken one = token();
    one.read_only = ends;
    if (ends) one.expires = one.created + std::chrono::hours(5);
    const auto back = api_token_from_record(to_record(one));
    ASSERT_TRUE(back) << back.error().line();
    EXPECT_EQ(to_record(*back), to_record(one));
    EXPECT_EQ(back->expires, one.expires);
    EXPECT_EQ(back->read_only, one.read_only);
    EXPECT_EQ(dump_json(token_view(one)).find(one.digest), std::string::npos);
  }
}

TEST(ApiToken, ADamagedRecordIsNoTokenThatMayMore) {
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"expires", "soon"},
                                                                            {"expires", 5},
                                                                            {"read_only", "yes"},
                                                                            {"digest", ""},
                                                                            {"digest", 1},
                                                                            {"created", ""},
                                                                            {"id", ""}}) {
    Json record = to_record(token());
    record[key] = value;
    EXPECT_FALSE(api_token_from_record(record)) << key;
  }
  Json record = to_record(token());
  record.erase("read_only");
  EXPECT_TRUE(api_token_from_record(record)->read_only);
}

}  // namespace
}  // namespace clusterctl::access
