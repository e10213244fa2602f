#include "fleet/names.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/host_name.h"
#include "fakes/fleet_builder.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

TEST(Names, OneSpelling) {
  EXPECT_EQ(normal_host_name("N1.Example.COM."), "n1.example.com");
  EXPECT_EQ(normal_host_name("n1"), "n1");
  EXPECT_EQ(normal_host_name("."), ".");
  EXPECT_EQ(normal_host_name(" n1\n"), " n1\n") << "not a name, and not made one";
}

RC_GTEST_PROP(Names, NormalisingTwiceIsOnce, (const std::string& text)) {
  const std::string once = normal_host_name(text);
  RC_PRE(!once.ends_with('.'));
  RC_ASSERT(normal_host_name(once) == once);
  if (is_name(text)) RC_ASSERT(once == text);
}

TEST(Names, ShortAndFull) {
  const std::vector<std::tuple<const char*, const char*, bool>> rows{
      {"n1", "n1", true},         {"n1", "n1.a.org", true}, {"n1.a.org", "n1", true},
      {"n1", "n10.a.org", false}, {"n1", "n2", false},      {"n1.a.org", "n1.b.org", false},
      {"n1.a", "n1.a.org", false}};
  for (const auto& [a, b, same] : rows) EXPECT_EQ(same_name(a, b), same) << a << " " << b;
}

TEST(Names, LookUpInAnySpelling) {
  FleetBuilder fleet;
  fleet.add("n1.a.org");
  fleet.add("web.a.org");
  fleet.add("web.b.org");
  fleet.add("db");
  const Snapshot& s = fleet.snapshot();
  for (const char* spelling : {"n1.a.org", "N1.A.ORG", "n1.a.org.", "n1", " N1 "})
    EXPECT_EQ((*s.find(spelling))->name, "n1.a.org") << spelling;
  EXPECT_EQ(s.find("web").error().reason, "ambiguous");
  EXPECT_EQ((*s.find("web.b.org"))->name, "web.b.org");
  // A name in another domain is another machine: nothing is done to the one that is known.
  EXPECT_EQ(s.find("n1.b.org").error().reason, "no_such_node");
  EXPECT_EQ(s.find("db.a.org").error().reason, "no_such_node");
}

TEST(Names, TwoSpellingsAreOneNode) {
  FleetBuilder fleet;
  fleet.add("n1.a.org");
  const auto add = [&](const std::string& name) {
    return check_unique(fleet.snapshot(), name, "192.0.2.99");
  };
  EXPECT_EQ(add("n1.a.org").error().reason, "name_taken");
  EXPECT_EQ(add("n1").error().reason, "name_taken");
  EXPECT_TRUE(add("n1.b.org"));
  EXPECT_TRUE(add("n10"));
}

// Machines that report no serial are not the same machine.
TEST(Names, ANameIsNobodysId) {
  FleetBuilder fleet;
  const std::string id = fleet.add("n1").id;
  const auto refused = check_unique(fleet.snapshot(), id, "", "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "name_taken");
  EXPECT_NE(refused.error().message.find("n1"), std::string::npos);
}

TEST(Names, NoRefusalSuggestsToForgetTheOtherNode) {
  FleetBuilder fleet;
  fleet.add("n1").spec.addr = "10.0.0.1";
  for (const auto& refused : {check_unique(fleet.snapshot(), "n1", "", ""),
                              check_unique(fleet.snapshot(), "n2", "10.0.0.1", "")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().hint.find("node rm"), std::string::npos) << refused.error().hint;
  }
}

TEST(Names, EmptyAttributesAreNoDuplicates) {
  FleetBuilder fleet;
  fleet.add("v1").status.hardware = Hardware{};
  fleet.add("v2").status.hardware = Hardware{};
  EXPECT_TRUE(check_unique(fleet.snapshot(), "v3", "192.0.2.99"));
  EXPECT_TRUE(check_unique(fleet.snapshot(), "v4", ""));
}

}  // namespace
}  // namespace clusterctl::fleet
