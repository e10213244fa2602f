#include "controller/variable_types.h"

#include <gtest/gtest.h>

namespace clusterctl::controller {
namespace {

VariableTypes types() {
  const auto option = [](const char* text) { return type_of(*parse_json(text, "option")); };
  return {{"text", {option(R"({"type": "str"})")}},
          {"untyped", {option(R"({})")}},
          {"where", {option(R"({"type": "path"})")}},
          {"number", {option(R"({"type": "int"})")}},
          {"fraction", {option(R"({"type": "float"})")}},
          {"flag", {option(R"({"type": "bool"})")}},
          {"names", {option(R"({"type": "list", "elements": "str"})")}},
          {"things", {option(R"({"type": "list"})")}},
          {"map", {option(R"({"type": "dict"})")}},
          {"any", {option(R"({"type": "raw"})")}},
          {"word", {option(R"({"type": "str", "choices": ["a", "b"]})")}},
          {"both", {option(R"({"type": "str"})"), option(R"({"type": "int"})")}}};
}

TEST(VariableTypes, WhatFits) {
  for (const char* vars : {R"({"text": "x"})",
                           R"({"text": ""})",
                           R"({"untyped": "x"})",
                           R"({"text": 24})",
                           R"({"where": "/x"})",
                           R"({"number": 5})",
                           R"({"number": "5"})",
                           R"({"fraction": 1.5})",
                           R"({"fraction": 2})",
                           R"({"flag": false})",
                           R"({"names": ["a"]})",
                           R"({"names": []})",
                           R"({"things": [1, {}]})",
                           R"({"map": {}})",
                           R"({"any": [1]})",
                           R"({"any": "x"})",
                           R"({"word": "b"})",
                           R"({"both": 5})",
                           R"({"both": "x"})",
                           R"({"text": null})",
                           R"({"text": {"secret": "globals.text"}})",
                           R"({"names": [{"secret": "x"}]})",
                           R"({"nobody_knows": [1]})"}) {
    const auto ok = check_types(*parse_json(vars, "vars"), types(), "globals");
    EXPECT_TRUE(ok) << vars << " " << ok.error().line();
  }
}

TEST(VariableTypes, WhatDoesNotFitIsNamed) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {R"({"text": 20.1})", "globals: text has to be a text, not a number"},
      {R"({"text": true})", "globals: text has to be a text, not true or false"},
      {R"({"untyped": 1.0})", "globals: untyped has to be a text, not a number"},
      {R"({"where": []})", "globals: where has to be a path, not a list"},
      {R"({"number": "5s"})", "globals: number has to be a whole number, not a text"},
      {R"({"number": 1.5})", "globals: number has to be a whole number, not a number"},
      {R"({"number": true})", "globals: number has to be a whole number, not true or false"},
      {R"({"fraction": "x"})", "globals: fraction has to be a number, not a text"},
      {R"({"flag": "yes"})", "globals: flag has to be true or false, not a text"},
      {R"({"flag": 1})", "globals: flag has to be true or false, not a number"},
      {R"({"names": "a,b"})", "globals: names has to be a list, not a text"},
      {R"({"names": ["a", true]})", "globals: names[1] has to be a text, not true or false"},
      {R"({"map": "a=b"})", "globals: map has to be an object, not a text"},
      {R"({"word": "c"})", "globals: word is \"c\""},
      {R"({"both": []})", "globals: both has to be a text, not a list"}};
  for (const auto& [vars, message] : rows) {
    const auto refused = check_types(*parse_json(vars, "vars"), types(), "globals");
    ASSERT_FALSE(refused) << vars;
    EXPECT_EQ(refused.error().message, message);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_FALSE(refused.error().hint.empty());
  }
}

}  // namespace
}  // namespace clusterctl::controller
