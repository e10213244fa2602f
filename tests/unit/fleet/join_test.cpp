#include "fleet/join.h"

#include <gmock/gmock.h>

#include "fakes/fleet_builder.h"
#include "fleet/conditions.h"

namespace clusterctl::fleet {
namespace {

const std::string kKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPE4ywSVp8aix709goc839CdNBZ2YjVLf";
const std::string kOther = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPE4ywSVp8aix709goc839CdNBZ2other";

class JoinTest : public testing::Test {
 protected:
  JoinTest() { fleet.cluster.accept_policy = "manual"; }

  static Announcement machine(const std::string& name = "n1", const std::string& addr = "10.1.0.1",
                              const std::string& serial = "FCH1") {
    Announcement a;
    a.name = name;
    a.addr = addr;
    a.user = "clusterctl";
    a.identity = {serial, "", kKey, {"00:25:b5:00:00:" + serial.substr(serial.size() - 1) + "1"}};
    a.host_keys = {kKey};
    return a;
  }
  Result<Admission> join(const Announcement& a) {
    changed.clear();
    return join_machine(
        fleet, a, [this] { return "id" + std::to_string(++ids); }, at(100), changed);
  }
  std::string refused(const Announcement& a) {
    const Snapshot before = fleet;
    const auto r = join(a);
    if (r) return "admitted: " + r->message;
    fleet = before;
    return r.error().reason;
  }

  Snapshot fleet;
  std::set<std::string> changed;
  int ids = 0;
};

TEST_F(JoinTest, ANewMachineWaitsWithItsKeyPinned) {
  const auto r = join(machine());
  ASSERT_TRUE(r) << r.error().line();
  EXPECT_EQ(r->finding, Finding::kNew);
  const Node& n = fleet.nodes.at(r->node);
  EXPECT_EQ(n.spec.acceptance, Acceptance::kPending);
  EXPECT_EQ(n.spec.ssh.host_key, kKey);
  EXPECT_EQ(n.spec.ssh.user, "clusterctl");
  EXPECT_EQ(n.status.identity->serial, "FCH1");
  EXPECT_EQ(n.spec.host_group, "");
  EXPECT_EQ(changed, std::set<std::string>{r->node});
}

TEST_F(JoinTest, AMovedMachineIsFollowedWhenItsOldAddressIsSilent) {
  const std::string id = join(machine())->node;
  EXPECT_EQ(refused(machine("n1", "10.1.0.9")), "identity_conflict");
  fleet.nodes.at(id).status.presence = Presence::kDisappeared;
  const auto moved = join(machine("n1", "10.1.0.9"));
  ASSERT_TRUE(moved) << moved.error().line();
  EXPECT_EQ(moved->finding, Finding::kMoved);
  EXPECT_EQ(fleet.nodes.at(id).spec.addr, "10.1.0.9");
  ASSERT_TRUE(join(machine("n2", "10.1.0.2", "FCH2")));
  fleet.nodes.at(id).status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(machine("n1", "10.1.0.2")), "addr_taken");
}

TEST_F(JoinTest, APinnedKeyIsNeverReplaced) {
  const std::string id = join(machine())->node;
  Announcement other = machine();
  other.identity.host_key = kOther;
  other.host_keys = {kOther};
  EXPECT_EQ(refused(other), "host_key_changed");
  // One of several keys is enough.
  other.host_keys = {kOther, kKey};
  ASSERT_TRUE(join(other));
  EXPECT_EQ(fleet.nodes.at(id).spec.ssh.host_key, kKey);
  EXPECT_EQ(fleet.nodes.at(id).status.identity->host_key, kKey);
  // An operator has said that it was installed anew.
  fleet.nodes.at(id).spec.ssh.host_key = "";
  other.host_keys = {kOther};
  ASSERT_TRUE(join(other));
  EXPECT_EQ(fleet.nodes.at(id).spec.ssh.host_key, kOther);
}

TEST_F(JoinTest, WhatAnOperatorHasAcceptedKeepsItsUser) {
  const std::string id = join(machine())->node;
  fleet.nodes.at(id).spec.acceptance = Acceptance::kAccepted;
  Announcement again = machine();
  again.user = "other";
  again.ssh_port = 2222;
  ASSERT_TRUE(join(again));
  EXPECT_EQ(fleet.nodes.at(id).spec.ssh.user, "clusterctl");
  EXPECT_EQ(fleet.nodes.at(id).spec.ssh.port, 22);
}

TEST_F(JoinTest, AMachineThatIsSeveralNodesIsNone) {
  ASSERT_TRUE(join(machine()));
  ASSERT_TRUE(join(machine("n2", "10.1.0.2", "FCH2")));
  Announcement both = machine("n3", "10.1.0.3", "FCH3");
  both.identity = {"", "", kKey, {"00:25:b5:00:00:11", "00:25:b5:00:00:21"}};
  EXPECT_EQ(refused(both), "identity_conflict");
}

TEST_F(JoinTest, AddressesThatAreTheControllersOrEverybodysAreRefused) {
  fleet.own_host.addresses = {"10.1.0.1"};
  EXPECT_EQ(refused(machine()), "own_host");
  for (const char* addr : {"127.0.0.1", "localhost", "::1", "0.0.0.0", "127.8.8.8"}) {
    const auto parsed = parse_announcement({{"name", "n1"}, {"addr", addr}, {"host_keys", {kKey}}});
    ASSERT_FALSE(parsed) << addr;
    EXPECT_EQ(parsed.error().reason, "bad_addr") << addr;
  }
}

TEST_F(JoinTest, PlaceholdersMakeNobodyTheSame) {
  Announcement a = machine("n1", "10.1.0.1"), b = machine("n2", "10.1.0.2");
  a.identity = {"To be filled by O.E.M.", "", kKey, {}};
  b.identity = {"To be filled by O.E.M.", "", kOther, {}};
  b.host_keys = {kOther};
  ASSERT_TRUE(join(a));
  const auto r = join(b);
  ASSERT_TRUE(r) << r.error().line();
  EXPECT_EQ(fleet.nodes.size(), 2u);
}

TEST_F(JoinTest, JoiningAgainTakesTheWishToLeaveBack) {
  const std::string id = join(machine())->node;
  Node& n = fleet.nodes.at(id);
  set_condition(n.status, condition::kLeaveRequested, "x", "", at(1));
  ASSERT_TRUE(join(machine()));
  EXPECT_FALSE(has_condition(fleet.nodes.at(id).status, condition::kLeaveRequested));
}

}  // namespace
}  // namespace clusterctl::fleet
