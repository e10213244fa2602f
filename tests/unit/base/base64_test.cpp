#include "base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace clusterctl {
namespace {

TEST(Base64, TheVectorsOfTheStandard) {
  const std::pair<const char*, const char*> rows[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},         {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : rows) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded), plain);
    EXPECT_EQ(base64_decode(coded + std::string("==")), plain);
  }
}

TEST(Base64, WhatIsNoneIsRefused) {
  for (const char* text : {"Zm9v YmFy", "Zm9v\n", "Zm=9v", "Zm9-", "$(id)", "\xff"})
    EXPECT_FALSE(base64_decode(text)) << text;
}

TEST(Base64, AnyBytesComeBack) {
  EXPECT_TRUE(rc::check("round trip", [](const std::string& bytes) {
    RC_ASSERT(base64_decode(base64_encode(bytes)) == bytes);
  }));
}

}  // namespace
}  // namespace clusterctl
