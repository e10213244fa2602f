#include "cli/text.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "cli/vars.h"

namespace clusterctl::cli {
namespace {

TEST(Text, WidthCountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("a→b"), 3);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);
  EXPECT_EQ(display_width("\xf0\x9f\x98\x80"), 2);
  EXPECT_EQ(display_width("\xff\xe6"), 2);
}

TEST(Text, FitCutsWholeCharacters) {
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("漢字漢字", 4), "漢…");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Text, CleanTakesControlsAway) {
  EXPECT_EQ(clean("a\x1b[2Jb\nc\td"), "a [2Jb c d");
  EXPECT_EQ(clean("x\xc2\x9b y"), "x  y");
  EXPECT_EQ(clean("a\xe2\x80\xae"
                  "b"),
            "a b");
  EXPECT_EQ(clean_lines("a\x1b[0m\n\tb\r\n"), "a [0m\n\tb \n");
  EXPECT_EQ(clean("\xff"), "\xef\xbf\xbd");
}

TEST(Text, TableLinesUp) {
  Table t({"NAME", "GROUP", "X"});
  t.add({"n1", "a→b", "1"});
  t.add({"漢字", "", "line\nbreak"});
  EXPECT_EQ(t.render(), "NAME  GROUP  X\nn1    a→b    1\n漢字  -      line break\n");
}

TEST(Text, FieldsAreTolerant) {
  const Json j = Json::parse(R"({"a":{"b":5},"s":"x","l":["a",1]})");
  EXPECT_EQ(text(field(j, "a"), "b"), "5");
  EXPECT_EQ(text(field(j, "s"), "b"), "");
  EXPECT_EQ(text(j, "a"), "");
  EXPECT_EQ(texts(field(j, "l")), (std::vector<std::string>{"a", "1"}));
  EXPECT_EQ(texts(field(j, "s")).size(), 0u);
  EXPECT_EQ(duration("2026-11-30T10:00:00.000Z", "2026-11-30T10:02:05.000Z"), "2m05s");
  EXPECT_EQ(duration("x", nullptr), "");
  EXPECT_EQ(short_time("2026-11-30T10:00:00.123Z"), "2026-11-30 10:00:00");
}

TEST(Vars, OnlyObjects) {
  for (const char* bad :
       {"[]", "\"a=b\"", "1", "true", "null", "{\"a\":1}x", "{\"a\":1,\"a\":2}", "{'a':1}", "a=b",
        "{\"n\":123456789012345678901234567890}", "@/nonexistent", "@/dev/zero"}) {
    const auto got = parse_extra_vars({bad});
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(exit_code(got.error().code), kExitUsage) << bad;
  }
  EXPECT_EQ(*parse_extra_vars({"", "  "}), Json::object());
  EXPECT_EQ(parse_extra_vars({"{\"n\":12345678901234567890}"})->at("n").dump(),
            "12345678901234567890");
  EXPECT_EQ(*parse_extra_vars({"{\"a\":1,\"b\":{\"x\":1}}", "{\"b\":{\"y\":\"$(x) {{ y }}\\n\"}}"}),
            Json::parse(R"({"a":1,"b":{"y":"$(x) {{ y }}\n"}})"));
}

TEST(Vars, FromFiles) {
  const std::string base = testing::TempDir() + "/clusterctl_vars";
  ASSERT_TRUE(write_file_atomic(base + ".yml", "a: 1\nb: [x]\n"));
  ASSERT_TRUE(write_file_atomic(base + ".json", R"({"a":2})"));
  ASSERT_TRUE(write_file_atomic(base + ".bad.yml", "- 1\n"));
  EXPECT_EQ(*parse_extra_vars({"@" + base + ".yml"}), Json::parse(R"({"a":1,"b":["x"]})"));
  EXPECT_EQ(*parse_extra_vars({"@" + base + ".json"}), Json::parse(R"({"a":2})"));
  EXPECT_FALSE(parse_extra_vars({"@" + base + ".bad.yml"}));
  for (const char* end : {".yml", ".json", ".bad.yml"}) fs::remove(base + end);
}

TEST(Vars, Assignments) {
  EXPECT_EQ(
      *parse_assignments({"a=1", "b=true", "c=20.10", "d=x=y", "e=", "f={\"k\":[1]}", "g=\"5\"",
                          "h=null", "i={bad"},
                         false),
      Json::parse(
          R"({"a":1,"b":true,"c":"20.10","d":"x=y","e":"","f":{"k":[1]},"g":"5","h":null,"i":"{bad"})"));
  EXPECT_EQ(*parse_assignments({"a-"}, true), Json::parse(R"({"a":null})"));
  EXPECT_FALSE(parse_assignments({"a-"}, false));
  EXPECT_FALSE(parse_assignments({"=x"}, true));
  EXPECT_FALSE(parse_assignments({"x"}, true));
  EXPECT_EQ(*parse_labels({"a=1", "b-"}, true), Json::parse(R"({"a":"1","b":null})"));
}

}  // namespace
}  // namespace clusterctl::cli
