#include "base/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fakes/temp_dir.h"

namespace clusterctl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The JSON of the value of one key, or the error.
std::string read(const std::string& scalar) {
  const auto value = parse_yaml("a: " + scalar + "\n", "f.yml");
  return value ? dump_json((*value)["a"]) : value.error().message;
}
std::string whole(std::string_view text) {
  const auto value = parse_yaml(text, "f.yml");
  return value ? dump_json(*value) : value.error().message;
}

TEST(Yaml, PlainScalars) {
  const std::map<std::string, std::string> cases = {
      {"true", "true"},
      {"True", "true"},
      {"FALSE", "false"},
      {"null", "null"},
      {"~", "null"},
      {"", "null"},
      {"NULL", "null"},
      {"0", "0"},
      {"-0", "0"},
      {"42", "42"},
      {"-7", "-7"},
      {"18446744073709551615", "18446744073709551615"},
      {"1.5", "1.5"},
      {"1.10", "1.1"},
      {"-0.5", "-0.5"},
      {"0.0", "0.0"},
      // Text, whatever YAML 1.1 made of it.
      {"yes", "\"yes\""},
      {"no", "\"no\""},
      {"on", "\"on\""},
      {"off", "\"off\""},
      {"y", "\"y\""},
      {"tRuE", "\"tRuE\""},
      {"012", "\"012\""},
      {"-012", "\"-012\""},
      {"0o14", "\"0o14\""},
      {"0x1f", "\"0x1f\""},
      {"0b1", "\"0b1\""},
      {"1_000", "\"1_000\""},
      {"12:30:45", "\"12:30:45\""},
      {"1:2", "\"1:2\""},
      {"2026-11-30", "\"2026-11-30\""},
      {"1e3", "\"1e3\""},
      {"12e5", "\"12e5\""},
      {"1.5e3", "\"1.5e3\""},
      {"+1", "\"+1\""},
      {".5", "\".5\""},
      {"1.", "\"1.\""},

      {".inf", "\".inf\""},
      {".nan", "\".nan\""},
      {"inf", "\"inf\""},
      {"nan", "\"nan\""},
      {"1.2.3", "\"1.2.3\""},
      {"20.10.24", "\"20.10.24\""},
      {"00.5", "\"00.5\""},
      {"1-2", "\"1-2\""},
      {"--1", "\"--1\""},
      {"99999999999999999999", "\"99999999999999999999\""},
      {"0.1234567890123456", "\"0.1234567890123456\""},
      {"a b", "\"a b\""}};
  for (const auto& [text, json] : cases) {
    EXPECT_EQ(read(text), json) << text;
  }
}

TEST(Yaml, QuotedIsAlwaysText) {
  for (const char* text : {"true", "null", "~", "42", "1.5", "", "yes", "012"}) {
    const std::string json = fmt::format("\"{}\"", text);
    EXPECT_EQ(read(fmt::format("'{}'", text)), json);
    EXPECT_EQ(read(fmt::format("\"{}\"", text)), json);
  }
  EXPECT_EQ(read("|\n  42\n"), "\"42\\n\"");
  EXPECT_EQ(read(">-\n  true\n"), "\"true\"");
}

TEST(Yaml, TagsMeanWhatTheySay) {
  EXPECT_EQ(read("!!str 42"), "\"42\"");
  EXPECT_EQ(read("!!str true"), "\"true\"");
  EXPECT_EQ(read("!!str"), "\"\"");
  EXPECT_EQ(read("! 42"), "\"42\"");
  EXPECT_EQ(read("!<tag:yaml.org,2002:str> 5"), "\"5\"");
  EXPECT_EQ(read("!!int '5'"), "5");
  EXPECT_EQ(read("!!float 3"), "3.0");
  EXPECT_EQ(read("!!bool 'true'"), "true");
  EXPECT_EQ(read("!!null ''"), "null");
  EXPECT_EQ(read("!!seq [1]"), "[1]");
  EXPECT_EQ(read("!!map {b: 1}"), "{\"b\":1}");
  EXPECT_EQ(whole("!!str 1: x"), "{\"1\":\"x\"}");
  EXPECT_THAT(read("!!int yes"), HasSubstr("f.yml:1:4: \"yes\" is not a !!int"));
  EXPECT_THAT(read("!!bool yes"), HasSubstr("not a !!bool"));
}

TEST(Yaml, OtherTagsAreRefused) {
  for (const char* text : {"!foo 1", "!!binary aGk=", "!!set {x}", "!!python/object:os.system 'x'",
                           "!unsafe x", "!!seq {a: 1}", "!!map [1]", "!!timestamp 2026-11-30"}) {
    EXPECT_THAT(read(text), HasSubstr("is not supported")) << text;
  }
  const auto vault = parse_yaml("a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n", "f.yml");
  ASSERT_FALSE(vault);
  EXPECT_THAT(vault.error().line(),
              HasSubstr("!vault is not supported (give the value as a secret variable"));
}

TEST(Yaml, Structures) {
  EXPECT_EQ(whole("a: [1, {b: x}]\nc:\n  - d\n  - e: 1\n    f: 2\n"),
            R"({"a":[1,{"b":"x"}],"c":["d",{"e":1,"f":2}]})");
  EXPECT_EQ(whole(""), "null");
  EXPECT_EQ(whole("---\n"), "null");
  EXPECT_EQ(whole("# only a comment\n"), "null");
  EXPECT_EQ(whole("- 1\n-\n- x\n"), R"([1,null,"x"])");
  EXPECT_EQ(whole("---\na: 1\n...\n"), R"({"a":1})");
  EXPECT_EQ(whole("1: a\nyes: b\n2.50: c\n"), R"({"1":"a","2.50":"c","yes":"b"})")
      << "keys keep their spelling";
  EXPECT_EQ(whole("\xef\xbb\xbf"
                  "a: 1"),
            R"({"a":1})");
}

TEST(Yaml, ErrorsSayWhere) {
  EXPECT_THAT(whole("a: 1\nb: [1\nc: 2\n"), StartsWith("f.yml:3:"));
  EXPECT_THAT(whole("a:\n\t- 1\n"), StartsWith("f.yml:2:"));
  EXPECT_THAT(whole("a: *nope"), StartsWith("f.yml:1:4: "));
  EXPECT_EQ(whole("a: 1\nb:\n  c: 1\n  c: 2\n"), "f.yml:4:3: the key \"c\" stands twice");
  EXPECT_EQ(whole("{a: 1, 'a': 2}"), "f.yml:1:8: the key \"a\" stands twice");
  EXPECT_EQ(whole("? [1]\n: 2\n"), "f.yml:1:3: a key must be plain text");
  EXPECT_EQ(whole("~: 2\n"), "f.yml:1:1: a key must be plain text");
  EXPECT_THAT(whole("a: 1\n---\nb: 2\n"), StartsWith("f.yml:2:1: more than one document"));
  EXPECT_THAT(whole("base: &b {x: 1}\nc:\n  <<: *b\n"), StartsWith("f.yml:3:3: merge keys"));
  EXPECT_EQ(whole("'<<': 1"), R"({"<<":1})");
}

TEST(Yaml, InvalidTextIsRefused) {
  EXPECT_EQ(whole("a: \xff"), "f.yml: not valid UTF-8");
  EXPECT_EQ(whole(std::string("a: 1\0b: 2", 9)), "f.yml: contains a NUL byte");
  EXPECT_EQ(read("\"\\ud800\""), "f.yml:1:11: invalid unicode: 55296");
  EXPECT_EQ(parse_yaml(std::string((1 << 20) + 1, ' '), "f").error().code, Code::kTooLarge);
}

TEST(Yaml, AliasesAreValues) {
  EXPECT_EQ(whole("a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]\n"),
            R"({"a":[1,{"b":2}],"c":[1,{"b":2}],"d":[[1,{"b":2}],[1,{"b":2}]]})");
  EXPECT_EQ(whole("a: &x 1\nb: &x 2\nc: *x\n"), R"({"a":1,"b":2,"c":2})")
      << "an anchor may be given again";
}

TEST(Yaml, AnAliasInsideItsOwnAnchorIsRefused) {
  EXPECT_EQ(whole("a: &x [1, *x]"), "f.yml:1:11: an alias inside its own anchor");
  EXPECT_THAT(whole("&x a: *x"),
              ::testing::AnyOf(HasSubstr("its own anchor"), HasSubstr("plain text"),
                               HasSubstr("\"a\":\"a\"")));
  EXPECT_THAT(whole("a: &x\n  b: *x\n"), HasSubstr("its own anchor"));
}

TEST(Yaml, AliasBombsAreRefusedQuickly) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    laughs += fmt::format("a{}: &a{} [", i, i);
    for (int n = 0; n < 9; ++n) laughs += fmt::format("*a{},", i - 1);
    laughs += "]\n";
  }
  EXPECT_THAT(whole(laughs), HasSubstr("more than 100000 values"));

  std::string long_text = "a: &x " + std::string(500 << 10, 'x') + "\nb:\n";
  for (int i = 0; i < 50000; ++i) long_text += "- *x\n";
  EXPECT_THAT(whole(long_text), HasSubstr("bytes of text"));

  std::string tower = "a0: &a0 [x]\n";  // each level is one alias deeper
  for (int i = 1; i < 100; ++i) tower += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_THAT(whole(tower), HasSubstr("32 levels"));
}

TEST(Yaml, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_TRUE(parse_yaml(std::string(32, '[') + std::string(32, ']'), "f"));
  EXPECT_THAT(whole(std::string(33, '[') + std::string(33, ']')), HasSubstr("32 levels"));
  for (const char* unit : {"[", "{", "- ", "? ", "a: [", "[?", "{? ", "- - ", "!!seq ["}) {
    std::string text;
    while (text.size() < 200000) text += unit;
    EXPECT_FALSE(parse_yaml(text, "f")) << unit;
  }
  std::string block;
  for (int i = 0; i < 1000; ++i) block += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(whole(block), HasSubstr("32 levels"));
  std::string hidden = "# " + std::string(500000, ']') + "\n" + std::string(500000, '[');
  EXPECT_FALSE(parse_yaml(hidden, "f"));
}

TEST(Yaml, HostileTextNeverCrashesNorHangs) {
  for (const char* unit :
       {",",    ":",     ": ",    "&a ", "*a ", "!",  "! ", "'", "\"", "|\n", ">\n",
        "%a\n", "---\n", "...\n", "a\n", "#",   "\t", "\n", "?", "-",  "@",   "`"}) {
    std::string text;
    while (text.size() < 50000) text += unit;
    (void)parse_yaml(text, "f");
  }
  EXPECT_TRUE(rc::check("parse_yaml(any)", [] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "{", "}", "[", "]", ",", ": ", "- ", "? ", "\n", "\n  ", "a", "b", "1", "\"", "'", "&x ",
        "*x", "!!str ", "!t ", "|", ">", "#", " ", "---\n", "...\n", "<<", "~", "%YAML 1.2\n", "\t",
        "\\", "\xc3\xa4"));
    std::string text;
    for (const auto& piece : pieces) text += piece;
    const auto value = parse_yaml(text, "f");
    if (value) RC_ASSERT(parse_json(dump_json(*value), "x").has_value());
    if (!value)
      RC_ASSERT(value.error().message.size() < 400 &&
                value.error().message.find('\n') == std::string::npos);
  }));
}

TEST(Yaml, ReadsFiles) {
  TempDir dir;
  EXPECT_EQ(*read_yaml(dir.write("x.yml", "a: 1\n")), Json({{"a", 1}}));
  const auto broken = read_yaml(dir.write("y.yml", "a: [\n"));
  EXPECT_THAT(broken.error().message, StartsWith((dir.path() / "y.yml").string() + ":2:1: "));
  EXPECT_EQ(read_yaml(dir.path() / "none.yml").error().code, Code::kNotFound);
  EXPECT_FALSE(read_yaml(dir.path()));
}

}  // namespace
}  // namespace clusterctl
