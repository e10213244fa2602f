#include "api/node_texts.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace clusterctl::api {
namespace {

class NodeTextsTest : public testing::Test {
 protected:
  static fleet::Node node(const std::string& id, const std::string& name) {
    fleet::Node out;
    out.id = id;
    out.name = name;
    return out;
  }
  std::string all() { return *texts_.all(std::make_shared<const fleet::Snapshot>(fleet_)); }

  int rendered_ = 0;
  NodeTexts texts_{[this](const fleet::Node& node) {
    ++rendered_;
    return dump_json({{"name", node.name}, {"seen", node.status.last_seen.has_value()}});
  }};
  fleet::Snapshot fleet_;
};

TEST_F(NodeTextsTest, IsSortedByNameAndValidJson) {
  EXPECT_EQ(all(), "{\"nodes\":[]}\n");
  fleet_.nodes["1"] = node("1", "b");
  fleet_.nodes["2"] = node("2", "a");
  const auto json = parse_json(all(), "list");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["nodes"][0]["name"], "a");
  EXPECT_EQ((*json)["nodes"][1]["name"], "b");
  const fleet::Node only = fleet_.nodes["1"];
  EXPECT_EQ(*texts_.list({&only}, "b\"x"),
            "{\"next\":\"b\\\"x\",\"nodes\":[{\"name\":\"b\",\"seen\":false}]}\n");
}

TEST_F(NodeTextsTest, OnlyWhatChangedIsRenderedAgain) {
  for (int i = 0; i < 10; ++i)
    fleet_.nodes[std::to_string(i)] = node(std::to_string(i), "n" + std::to_string(i));
  all();
  EXPECT_EQ(rendered_, 10);
  // Seeing a node changes none of its versions.
  fleet_.nodes["3"].status.last_seen = Time{};
  EXPECT_NE(all().find("{\"name\":\"n3\",\"seen\":true}"), std::string::npos);
  EXPECT_EQ(rendered_, 11);
  fleet_.nodes.erase("3");
  EXPECT_EQ(all().find("n3"), std::string::npos);
  fleet_.nodes["3"] = node("3", "n3");
  all();
  EXPECT_EQ(rendered_, 12);
}

TEST_F(NodeTextsTest, TheSameFleetGivesTheSameBytes) {
  const auto fleet = std::make_shared<const fleet::Snapshot>(fleet_);
  EXPECT_EQ(texts_.all(fleet), texts_.all(fleet));
}

}  // namespace
}  // namespace clusterctl::api
