#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace clusterctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string why(std::string_view text) {
  const auto value = parse_json(text, "the body");
  if (value) return "accepted: " + dump_json(*value);
  EXPECT_EQ(value.error().code, Code::kInvalid);
  EXPECT_EQ(value.error().reason, "bad_json");
  EXPECT_THAT(value.error().message, HasSubstr("the body"));
  EXPECT_LT(value.error().message.size(), 400u);
  return value.error().message;
}

TEST(Json, ReadsWhatIsValid) {
  const auto value =
      parse_json(R"( {"a": [1, -2, 1.5, true, null, "\u00e4\ud83d\ude00"], "b": {}} )", "x");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"][5], "\xc3\xa4\xf0\x9f\x98\x80");
  EXPECT_EQ(*parse_json("18446744073709551615", "x"), Json(UINT64_MAX));
}

TEST(Json, RefusesWhatIsNotExactlyJson) {
  for (const char* text :
       {"",        " ",     "{",       "{}}",       "{} {}",    "[1,]",      "{\"a\":1,}",
        "{'a':1}", "{a:1}", "NaN",     "Infinity",  "01",       "+1",        ".5",
        "1.",      "0x10",  "// c\n1", "/* c */ 1", "\"a\nb\"", "\"\\x41\"", "\"\\ud800\"",
        "tru",     "nul",   "[1 2]",   "1e999"}) {
    EXPECT_THAT(why(text), HasSubstr("not valid JSON")) << text;
  }
}

TEST(Json, RefusesInvalidUtf8) {
  EXPECT_THAT(why("\"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(why("\"\xed\xa0\x80\""), HasSubstr("UTF-8"));
  EXPECT_THAT(why("{\"\xc3\": 1}"), HasSubstr("UTF-8"));
}

TEST(Json, ANulHidesNothing) {
  EXPECT_THAT(why(std::string("{}\0{", 4)), HasSubstr("NUL"));
  EXPECT_THAT(why(std::string("\0", 1)), HasSubstr("NUL"));
}

TEST(Json, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_THAT(why(R"({"a":1,"a":1})"), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(why(R"([{"x":{"b":1,"c":2,"b":3}}])"), HasSubstr("\"b\" stands twice"));
  EXPECT_THAT(why(R"({"a":1,"\u0061":1})"), HasSubstr("stands twice"));
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":{"a":1}}])", "x"));
}

TEST(Json, DepthIsLimitedWithoutRecursion) {
  EXPECT_TRUE(parse_json(std::string(32, '[') + std::string(32, ']'), "x"));
  EXPECT_THAT(why(std::string(33, '[') + std::string(33, ']')), HasSubstr("32 levels"));
  EXPECT_THAT(why(std::string(1 << 20, '[')), HasSubstr("32 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(why(objects), HasSubstr("32 levels"));
  EXPECT_TRUE(parse_json("[[1]]", "x", 2));
  EXPECT_FALSE(parse_json("[[1]]", "x", 1));
}

TEST(Json, ForeignTextInMessagesIsShortAndOnOneLine) {
  const std::string message = why("{\"" + std::string(1 << 16, 'k') + "\\n\":1,\"" +
                                  std::string(1 << 16, 'k') + "\\n\":1}");
  EXPECT_EQ(message.find('\n'), std::string::npos);
  why("\"" + std::string(1 << 20, 'x'));
}

TEST(Json, AnObjectIsAskedFor) {
  EXPECT_EQ(parse_json_object("[]", "x").error().reason, "not_an_object");
  EXPECT_EQ(parse_json_object("null", "x").error().reason, "not_an_object");
  EXPECT_EQ(*parse_json_object(" \n", "x", true), Json::object());
  EXPECT_FALSE(parse_json_object(" \n", "x"));
}

TEST(Json, DumpNeverThrows) {
  EXPECT_EQ(dump_json(Json("a\xff"
                           "b")),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_TRUE(
      rc::check("parse(dump(any bytes))", [](const std::string& text, const std::string& key) {
        RC_ASSERT(parse_json(dump_json(Json{{key, text}}), "x").has_value());
      }));
}

TEST(Json, HostileBytesNeverCrash) {
  EXPECT_TRUE(rc::check("parse_json(any)", [] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("{", "}", "[", "]", ",", ":", "\"", "\"a\"", "1", "-", "1e5",
                                      "null", "\\u12", "\xff", "\xc3\xa4", " ", "true"));
    std::string text;
    for (const auto& piece : pieces) text += piece;
    const auto value = parse_json(text, "x");
    if (value) RC_ASSERT(parse_json(dump_json(*value), "x").has_value());
  }));
}

TEST(JsonFields, DefaultsAndTypes) {
  const Json object = *parse_json(
      R"({"s":"x","b":true,"i":-5,"big":18446744073709551615,"f":1.5,"l":["a","b"],"o":{"k":1},"n":null,"mixed":["a",1]})",
      "x");
  EXPECT_EQ(*get_string(object, "s"), "x");
  EXPECT_EQ(*get_string(object, "none", "default"), "default");
  EXPECT_EQ(*get_string(object, "n", "default"), "default");
  EXPECT_EQ(*get_bool(object, "b"), true);
  EXPECT_EQ(*get_int(object, "i"), -5);
  EXPECT_THAT(*get_strings(object, "l"), ElementsAre("a", "b"));
  EXPECT_EQ(*get_object(object, "o"), Json({{"k", 1}}));
  EXPECT_EQ(*get_object(object, "none"), Json::object());
  EXPECT_EQ(get_string(object, "i").error().message, "\"i\" must be a string, not number");
  EXPECT_FALSE(get_bool(object, "s"));
  EXPECT_FALSE(get_bool(object, "i"));
  EXPECT_FALSE(get_int(object, "f")) << "a fraction is not cut";
  EXPECT_FALSE(get_int(object, "big")) << "a number does not wrap around";
  EXPECT_FALSE(get_int(object, "s"));
  EXPECT_FALSE(get_strings(object, "s"));
  EXPECT_FALSE(get_strings(object, "mixed"));
  EXPECT_FALSE(get_object(object, "l"));
}

TEST(JsonFields, ReadersOfWhatIsNoObjectGiveTheDefault) {
  EXPECT_EQ(*get_string(Json(5), "a", "d"), "d");
  EXPECT_EQ(*get_int(Json::array({1}), "a", 7), 7);
}

TEST(JsonFields, UnknownKeysAreNamedWithTheNearestKnownOne) {
  const auto near = check_keys(Json({{"host_gruop", 1}}), {"host_group", "addr"}, "spec");
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().reason, "unknown_key");
  EXPECT_EQ(near.error().line(), "spec has no \"host_gruop\" (did you mean \"host_group\"?)");
  const auto far = check_keys(Json({{"colour", 1}}), {"host_group", "addr"}, "spec");
  EXPECT_EQ(far.error().hint, "known: host_group, addr");
  EXPECT_TRUE(check_keys(Json({{"addr", 1}}), {"host_group", "addr"}, "spec"));
  EXPECT_LT(
      check_keys(Json({{std::string(1 << 20, 'x'), 1}}), {"addr"}, "spec").error().message.size(),
      400u);
}

}  // namespace
}  // namespace clusterctl
