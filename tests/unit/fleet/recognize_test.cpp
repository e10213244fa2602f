#include "fleet/recognize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "fakes/fleet_builder.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

const std::string kUuid = "4c4c4544-0031-3010-8052-b4c04f4e3132";
const std::string kOtherUuid = "4c4c4544-0031-3010-8052-b4c04f4e3133";
const std::string kMac = "00:25:b5:00:00:1a", kOtherMac = "00:25:b5:00:00:2b";

const std::string kHostKey1 =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPE4ywSVp8aix709goc839CdNBZ2YjVLfAAAAAAAAAAA";
const std::string kHostKey2 =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPE4ywSVp8aix709goc839CdNBZ2YjVLfBBBBBBBBBBB";

class Recognize : public testing::Test {
 protected:
  Recognized see(const std::string& name, const std::string& addr, const Identity& identity) {
    const auto found = discovered(
        fleet_.snapshot(), {name, addr, identity},
        [this] { return "made" + std::to_string(++made_); }, at(10), changed_);
    settle();
    return found;
  }
  Recognized see(const std::string& name, const std::string& addr, const std::string& serial) {
    return see(name, addr, Identity{serial, "", "", {}});
  }
  Recognized see_later(int when, const std::string& name, const std::string& addr,
                       const std::string& serial) {
    const auto found = discovered(
        fleet_.snapshot(), {name, addr, {serial, "", "", {}}},
        [this] { return "made" + std::to_string(++made_); }, at(when), changed_);
    settle();
    return found;
  }
  Recognized lose(const std::string& name, const std::string& addr, const std::string& serial) {
    const auto found =
        disappeared(fleet_.snapshot(), {name, addr, {serial, "", "", {}}}, at(20), changed_);
    settle();
    return found;
  }
  void settle() { settle_conflicts(fleet_.snapshot(), changed_, at(10), changed_); }
  // The facts of a run on that node.
  void facts(const std::string& name, const Identity& seen) {
    Node& node = fleet_.node(name);
    Hardware h;
    h.serial = seen.serial;
    h.uuid = seen.uuid;
    h.macs = seen.macs;
    node.status.hardware = h;
    if (!seen.host_key.empty()) node.spec.ssh.host_key = seen.host_key;
    recognize_facts(fleet_.snapshot(), node.id, "job", at(30), changed_);
    changed_.insert(node.id);
    settle();
  }
  // The operator's word, as PATCH takes it.
  void patch(const std::string& name, const Json& spec) {
    Json body;
    body["spec"] = spec;
    const auto done = patch_node(fleet_.snapshot(), fleet_.node(name), body, at(40));
    ASSERT_TRUE(done) << done.error().line();
    settle();
  }
  bool has(const std::string& name, std::string_view type) {
    return has_condition(fleet_.node(name).status, type);
  }
  std::string reason(const std::string& name, std::string_view type) {
    const Condition* c = find_condition(fleet_.node(name).status, type);
    return c ? c->reason : "";
  }
  bool blocked(const std::string& name, std::string_view kind) {
    return identity_block(fleet_.node(name), kind, false).has_value();
  }

  FleetBuilder fleet_;
  std::set<std::string> changed_;
  int made_ = 0;
};

TEST_F(Recognize, AnUnknownMachineBecomesANodeAsThePolicySays) {
  EXPECT_EQ(see("web", "10.0.1.1", "SA1").finding, Finding::kNew);
  EXPECT_EQ(fleet_.node("web").spec.acceptance, Acceptance::kAccepted);
  EXPECT_EQ(fleet_.node("web").status.presence, Presence::kDiscovered);
  fleet_.snapshot().cluster.accept_policy = "manual";
  EXPECT_EQ(see("db", "10.0.1.2", "SB2").finding, Finding::kNew);
  EXPECT_EQ(fleet_.node("db").spec.acceptance, Acceptance::kPending);
}

TEST_F(Recognize, EqualNamesAndOtherSerialsAreTwoNodes) {
  see("web", "10.0.1.1", "SA1");
  const auto second = see("web", "10.0.1.2", "SB2");
  EXPECT_EQ(second.finding, Finding::kNew);
  EXPECT_EQ(fleet_.snapshot().nodes.at(second.node).name, "web-sb2");
  EXPECT_FALSE(has("web", "IdentityConflict"));
}

TEST_F(Recognize, WithoutASerialNameAndAddressDecide) {
  see("v1", "10.0.1.1", "");
  EXPECT_EQ(see("v2", "10.0.1.2", "None").finding, Finding::kNew) << "no serial equals no serial";
  EXPECT_EQ(see("v1", "10.0.1.1", "").finding, Finding::kKnown);
  EXPECT_EQ(see("v1.example.com", "10.0.1.1", "0000").finding, Finding::kKnown);
  EXPECT_EQ(fleet_.snapshot().nodes.size(), 2u);
}

TEST_F(Recognize, AMachineThatMovedTakesItsNodeAlong) {
  see("web", "10.0.1.1", "SA1");
  lose("web", "10.0.1.1", "SA1");
  const auto moved = see("web", "10.0.1.9", "SA1");
  EXPECT_EQ(moved.finding, Finding::kMoved);
  EXPECT_EQ(fleet_.node("web").spec.addr, "10.0.1.9");
  EXPECT_EQ(fleet_.node("web").status.presence, Presence::kDiscovered);
  EXPECT_EQ(fleet_.snapshot().nodes.size(), 1u);
}

TEST_F(Recognize, AMoveOfAMemberHasToBeVerified) {
  Node& worker = fleet_.worker("w1");
  worker.status.identity = Identity{"SA1", "", "", {}};
  lose("w1", worker.spec.addr, "SA1");
  see("w1", "10.0.1.9", "SA1");
  EXPECT_NE(reason("w1", "NeedsVerification").find("10.0.1.9"), std::string::npos);
}

TEST_F(Recognize, OneIdentityAtTwoLivingAddressesIsAConflictUntilOneIsGone) {
  see("web", "10.0.1.1", "SA1");
  const auto twin = see("web", "10.0.1.2", "SA1");
  EXPECT_EQ(twin.finding, Finding::kConflict);
  EXPECT_EQ(fleet_.snapshot().nodes.size(), 1u);
  for (const char* addr : {"10.0.1.1", "10.0.1.2"})
    EXPECT_NE(reason("web", "IdentityConflict").find(addr), std::string::npos) << addr;
  for (const char* kind : {"commission", "update", "decommission", "drain"})
    EXPECT_TRUE(blocked("web", kind)) << kind;
  EXPECT_FALSE(blocked("web", "check"));

  lose("web", "10.0.1.2", "SA1");
  EXPECT_FALSE(has("web", "IdentityConflict"));
  EXPECT_EQ(fleet_.node("web").status.presence, Presence::kDiscovered) << "it was the other one";
}

TEST_F(Recognize, WhoWasReportedElsewhereMovesThereWhenItsOldPlaceIsSilent) {
  see("web", "10.0.1.1", "SA1");
  see("web", "10.0.1.2", "SA1");
  record_presence(fleet_.snapshot(), "made1", Presence::kDisappeared, at(50), changed_);
  settle();
  EXPECT_EQ(fleet_.node("web").spec.addr, "10.0.1.2");
  EXPECT_EQ(fleet_.node("web").status.presence, Presence::kDiscovered);
  EXPECT_FALSE(has("web", "IdentityConflict"));
}

TEST_F(Recognize, AnAddressOfANodeIsNotGivenAway) {
  see("web", "10.0.1.1", "SA1");
  EXPECT_EQ(see("other", "10.0.1.1", "SB2").finding, Finding::kConflict);
  EXPECT_EQ(fleet_.snapshot().nodes.size(), 1u);
  EXPECT_TRUE(has("web", "IdentityConflict"));
  EXPECT_EQ(see("web", "10.0.1.1", "SA1").finding, Finding::kKnown);
  EXPECT_FALSE(has("web", "IdentityConflict")) << "its own machine is back";
}

TEST_F(Recognize, ASwappedBladeIsTheSameNodeAndAsksFirst) {
  fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  facts("w1", {"SB2", kUuid, kHostKey1, {kMac}});
  EXPECT_NE(reason("w1", "HardwareReplaced").find("\"SA1\" → \"SB2\""), std::string::npos)
      << reason("w1", "HardwareReplaced");
  EXPECT_EQ(fleet_.node("w1").status.identity->serial, "SA1") << "not accepted yet";
  EXPECT_TRUE(blocked("w1", "update"));
  EXPECT_FALSE(blocked("w1", "verify"));
  EXPECT_FALSE(blocked("w1", "decommission")) << "a way out";

  ASSERT_TRUE(confirm_hardware(fleet_.snapshot(), fleet_.node("w1").id, at(40), changed_));
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
  EXPECT_TRUE(has("w1", "NeedsVerification"));
  EXPECT_EQ(fleet_.node("w1").status.identity->serial, "SB2");
  EXPECT_FALSE(confirm_hardware(fleet_.snapshot(), fleet_.node("w1").id, at(40), changed_));
}

TEST_F(Recognize, ABladeThatComesBackAsksNoMore) {
  fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  facts("w1", {"SB2", kUuid, kHostKey1, {kMac}});
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
}

TEST_F(Recognize, AReplacedBladeThatOnlyAMonitorReportedIsConfirmedToo) {
  fleet_.worker("w1").spec.addr = "10.0.1.1";
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  EXPECT_EQ(see("w1", "10.0.1.1", "SB2").finding, Finding::kReplaced);
  ASSERT_TRUE(confirm_hardware(fleet_.snapshot(), fleet_.node("w1").id, at(40), changed_));
  EXPECT_EQ(see("w1", "10.0.1.1", "SB2").finding, Finding::kKnown);
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
}

TEST_F(Recognize, SilenceConfirmsNoOtherHardware) {
  struct Row {
    const char* what;
    Identity silent;
  };
  const std::vector<Row> rows{
      {"nothing", {}},
      {"a placeholder", {"To be filled by O.E.M.", kUuid, kHostKey1, {kMac}}},
      {"no serial", {"", kUuid, kHostKey1, {kMac}}},
      {"network cards alone", {"", "", kHostKey1, {kMac}}},
      {"the host key alone", {"", "", kHostKey1, {}}},
      {"the serial without the UUID", {"SA1", "", kHostKey1, {}}},
  };
  for (const Row& row : rows) {
    const std::string name = std::string("w") + std::to_string(&row - rows.data());
    fleet_.worker(name);
    const std::string tail = std::to_string(&row - rows.data());
    const auto own = [&](Identity i) {  // machines of one test are different machines
      if (!i.serial.empty() && i.serial[0] == 'S') i.serial += tail;
      if (!i.uuid.empty()) i.uuid.back() = tail[0];
      for (std::string& mac : i.macs) mac.back() = tail[0];
      return i;
    };
    facts(name, own({"SA1", kUuid, kHostKey1, {kMac}}));
    facts(name, own({"SB2", kUuid, kHostKey1, {kMac}}));
    ASSERT_TRUE(has(name, "HardwareReplaced")) << row.what;
    facts(name, own(row.silent));
    EXPECT_TRUE(has(name, "HardwareReplaced")) << row.what << ", by facts";
    see(name, fleet_.node(name).spec.addr, own(row.silent));
    EXPECT_TRUE(has(name, "HardwareReplaced")) << row.what << ", by a monitor";
    EXPECT_EQ(*fleet_.node(name).status.identity, own({"SA1", kUuid, kHostKey1, {kMac}}));
    facts(name, own({"SA1", kUuid, kHostKey1, {kMac}}));
    EXPECT_FALSE(has(name, "HardwareReplaced")) << row.what << ", the accepted one is back";
  }
}

TEST_F(Recognize, LookingEndsTheConflictWithAStrangerAtItsAddress) {
  Node& w1 = fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  const std::string addr = w1.spec.addr;
  const auto evil = [&] {
    ASSERT_EQ(see("evil", addr, "EVIL").finding, Finding::kConflict);
    ASSERT_TRUE(has("w1", "IdentityConflict"));
  };
  evil();
  EXPECT_NE(conflict_hint(w1).find("node check w1"), std::string::npos);
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "its own machine was seen there";

  evil();
  facts("w1", {"SA1", kUuid, kHostKey2, {kMac}});
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "installed anew it is its own machine, too";

  evil();
  const auto patched = patch_node(fleet_.snapshot(), w1, {{"spec", {{"addr", addr}}}}, at(40));
  ASSERT_TRUE(patched) << patched.error().line();
  settle();
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "the operator said so";

  evil();
  patch("w1", {{"addr", addr}, {"labels", {{"a", "b"}}}});
  EXPECT_TRUE(has("w1", "IdentityConflict")) << "what was read before says nothing";
  see("w1", addr, "");
  EXPECT_TRUE(has("w1", "IdentityConflict")) << "silence is no evidence";

  EXPECT_EQ(lose("evil", addr, "EVIL").finding, Finding::kKnown);
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "the other machine is gone";
  EXPECT_NE(w1.status.presence, Presence::kDisappeared);

  evil();
  facts("w1", {"EVIL", kOtherUuid, kHostKey1, {kOtherMac}});
  EXPECT_TRUE(has("w1", "IdentityConflict")) << "it is the other one that is there";
  ASSERT_TRUE(confirm_hardware(fleet_.snapshot(), w1.id, at(40), changed_));
  settle();
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "and that is right";
}

TEST_F(Recognize, LookingDoesNotEndAConflictWithAnotherAddress) {
  Node& w1 = fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  see("w1", "10.0.9.9", "SA1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  EXPECT_TRUE(has("w1", "IdentityConflict")) << "both are there";
  EXPECT_NE(conflict_hint(w1).find("node move w1 10.0.9.9"), std::string::npos);
  patch("w1", {{"addr", w1.spec.addr}});
  EXPECT_FALSE(has("w1", "IdentityConflict")) << "its own address was the right one";
}

TEST_F(Recognize, AStrangerThatGoesTakesNobodyAlong) {
  struct Row {
    const char *name, *addr, *serial;
    bool gone;
  };
  const std::vector<Row> rows{
      {"stranger", "10.0.1.1", "SX9", false},  // the address
      {"web", "10.0.7.7", "SX9", false},       // the name
      {"web", "", "SX9", false},
      {"web", "10.0.1.1", "SX9", true},  // both: the node on other hardware
      {"web", "10.0.1.1", "", true},     // nothing else is said
      {"other", "10.0.1.1", "SA1", true},
  };
  for (const Row& row : rows) {
    fleet_ = FleetBuilder();
    see("web", "10.0.1.1", "SA1");
    lose(row.name, row.addr, row.serial);
    EXPECT_EQ(fleet_.node("web").status.presence == Presence::kDisappeared, row.gone)
        << row.name << " " << row.addr << " " << row.serial;
  }
}

TEST_F(Recognize, NoMachineIsOverlookedBecauseOfItsName) {
  struct Row {
    std::string first, second;
    Identity identity;
    std::string name;
  };
  const std::string longest(63, 'n');
  const std::vector<Row> rows{
      {"k.example.com", "k", {"K2", "", "", {}}, "k-k2"},
      {"k", "k.example.com", {"K2", "", "", {}}, "k-k2.example.com"},
      {"k.example.com", "k.example.com", {"K2", "", "", {}}, "k-k2.example.com"},
      {"k", "k", {"A/B 7", "", "", {}}, "k-a-b-7"},
      {longest, longest, {"L2", "", "", {}}, std::string(60, 'n') + "-l2"},
      {"k", "k", {"K1", kOtherUuid, "", {kOtherMac}}, "k-k1"},
      {"k", "k", {"", kOtherUuid, "", {}}, "k-4c4c4544-0031-3010-8052-b4c04f4e"},
  };
  for (const Row& row : rows) {
    fleet_ = FleetBuilder();
    see(row.first, "10.0.1.1", Identity{"K1", kUuid, "", {kMac}});
    const auto second = see(row.second, "10.0.1.2", row.identity);
    ASSERT_EQ(second.finding, Finding::kNew) << row.second << ": " << second.message;
    const std::string name = fleet_.snapshot().nodes.at(second.node).name;
    EXPECT_EQ(name, row.name);
    EXPECT_TRUE(check_name(name)) << name;
    const auto again = see(row.second, "10.0.1.2", row.identity);
    EXPECT_EQ(again.node, second.node);
    EXPECT_EQ(again.message.find("rename"), std::string::npos) << "that name is not free";
  }
}

TEST_F(Recognize, MachinesThatChangedPlacesMoveAllAtOnce) {
  for (const int count : {2, 3}) {
    fleet_ = FleetBuilder();
    const auto serial = [](int i) { return "SW" + std::to_string(i); };
    const auto name = [](int i) { return "s" + std::to_string(i); };
    const auto addr = [&](int i) { return "10.0.1." + std::to_string(i % count + 1); };
    for (int i = 0; i < count; ++i) see_later(10, name(i), addr(i), serial(i));
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(see_later(11, name(i), addr(i + 1), serial(i)).finding,
                i + 1 < count ? Finding::kConflict : Finding::kMoved);
    }
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(fleet_.node(name(i)).spec.addr, addr(i + 1));
      EXPECT_FALSE(has(name(i), "IdentityConflict")) << name(i);
      EXPECT_EQ(fleet_.node(name(i)).status.presence, Presence::kDiscovered);
    }
  }
}

TEST_F(Recognize, WhoWasSeenAtHomeSinceHasNotChangedPlaces) {
  see_later(10, "s1", "10.0.1.1", "SW1");
  see_later(10, "s2", "10.0.1.2", "SW2");
  see_later(11, "s1", "10.0.1.2", "SW1");
  see_later(12, "s1", "10.0.1.1", "SW1");
  EXPECT_EQ(see_later(13, "s2", "10.0.1.1", "SW2").finding, Finding::kConflict);
  EXPECT_EQ(fleet_.node("s1").spec.addr, "10.0.1.1");
  EXPECT_EQ(see_later(14, "s1", "10.0.1.2", "SW1").finding, Finding::kMoved);
  EXPECT_EQ(fleet_.node("s1").spec.addr, "10.0.1.2");
  EXPECT_EQ(fleet_.node("s2").spec.addr, "10.0.1.1");
}

TEST_F(Recognize, AConflictSaysTruthfullyWhoAnswers) {
  see("s1", "10.0.1.1", "SW1");
  see("s2", "10.0.1.2", "SW2");
  see("s1", "10.0.1.2", "SW1");
  EXPECT_NE(reason("s1", "IdentityConflict").find("10.0.1.1 answers as well"), std::string::npos);
  lose("s1", "10.0.1.1", "SW1");
  EXPECT_NE(reason("s1", "IdentityConflict").find("10.0.1.1 is silent"), std::string::npos)
      << reason("s1", "IdentityConflict");
}

TEST_F(Recognize, ManagersInConflictAreNotSaidToBeSilent) {
  Node& m1 = fleet_.worker("m1");
  Node& m2 = fleet_.worker("m2");
  const auto silent = no_manager_to_ask({&m1, &m2}, "nobody answers");
  EXPECT_EQ(silent.message, "nobody answers");
  EXPECT_NE(silent.hint.find("bring m1 back"), std::string::npos);
  set_condition(m2, condition::kIdentityConflict, "x", "", at(1));
  m2.status.elsewhere = Elsewhere{m2.spec.addr, "evil", at(1)};
  const auto doubtful = no_manager_to_ask({&m1, &m2}, "nobody answers");
  EXPECT_NE(doubtful.message.find("IdentityConflict: m2"), std::string::npos) << doubtful.message;
  EXPECT_EQ(doubtful.hint, conflict_hint(m2));
}

TEST_F(Recognize, AnImageSetAnewIsTheSameMachineThatHasToBeVerified) {
  fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  facts("w1", {"SA1", kUuid, kHostKey2, {kMac}});
  EXPECT_TRUE(has("w1", "NeedsVerification"));
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
  EXPECT_EQ(fleet_.node("w1").status.identity->host_key, kHostKey2);
}

TEST_F(Recognize, APlaceholderForgetsNothingThatWasAccepted) {
  fleet_.worker("w1");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  facts("w1", {"To be filled by O.E.M.", kUuid, kHostKey1, {"00:00:00:00:00:00"}});
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
  facts("w1", {"SA1", "03000200-0400-0500-0006-000700080009", kHostKey1, {kMac}});
  EXPECT_FALSE(has("w1", "HardwareReplaced"));
  EXPECT_EQ(*fleet_.node("w1").status.identity, (Identity{"SA1", kUuid, kHostKey1, {kMac}}));
  facts("w1", {"SB2", kUuid, kHostKey1, {kMac}});
  EXPECT_NE(reason("w1", "HardwareReplaced").find("\"SA1\" → \"SB2\""), std::string::npos)
      << "the serial is still compared";
}

TEST_F(Recognize, TwoNodesWithOneIdentityBlockEachOther) {
  fleet_.worker("w1");
  fleet_.worker("w2");
  facts("w1", {"SA1", kUuid, kHostKey1, {kMac}});
  facts("w2", {"SA1", kUuid, kHostKey2, {kMac}});
  for (const char* name : {"w1", "w2"}) {
    EXPECT_TRUE(blocked(name, "update"));
    EXPECT_NE(reason(name, "IdentityConflict").find("10.0.0.11"), std::string::npos);
    EXPECT_NE(reason(name, "IdentityConflict").find("10.0.0.12"), std::string::npos);
  }
  fleet_.snapshot().nodes.erase(fleet_.node("w1").id);
  settle();
  EXPECT_FALSE(has("w2", "IdentityConflict"));
}

TEST_F(Recognize, BladesOfOneEnclosureAreNoConflict) {
  for (const char* name : {"w1", "w2"}) fleet_.worker(name);
  facts("w1", {"CH", kUuid, kHostKey1, {kMac}});
  facts("w2", {"CH", kOtherUuid, kHostKey2, {kOtherMac}});
  EXPECT_FALSE(has("w1", "IdentityConflict"));
  EXPECT_FALSE(has("w2", "IdentityConflict"));
  EXPECT_EQ(see("w3", "10.0.1.3", "CH").finding, Finding::kNew) << "that serial means nothing";
}

TEST_F(Recognize, AConflictByASerialAloneEndsWhenFactsTellThemApart) {
  for (const char* name : {"w1", "w2"}) fleet_.worker(name).spec.addr = std::string(name) + ".net";
  facts("w1", {"CH", "", "", {}});
  facts("w2", {"CH", "", "", {}});
  EXPECT_TRUE(has("w1", "IdentityConflict"));
  facts("w1", {"CH", kUuid, "", {}});
  facts("w2", {"CH", kOtherUuid, "", {}});
  EXPECT_FALSE(has("w1", "IdentityConflict"));
  EXPECT_FALSE(has("w2", "IdentityConflict"));
}

TEST_F(Recognize, RenamedMachinesAreOfferedNotRenamed) {
  see("old", "10.0.1.1", "SA1");
  const auto again = see("new", "10.0.1.1", "SA1");
  EXPECT_EQ(again.finding, Finding::kKnown);
  EXPECT_NE(again.message.find("node rename old new"), std::string::npos) << again.message;
  ASSERT_TRUE(rename_node(fleet_.snapshot(), again.node, "new", changed_));
  EXPECT_EQ(fleet_.node("new").id, again.node);
  fleet_.worker("w1");
  EXPECT_EQ(rename_node(fleet_.snapshot(), fleet_.node("w1").id, "w9", changed_).error().reason,
            "commissioned");
  EXPECT_EQ(rename_node(fleet_.snapshot(), again.node, "w1", changed_).error().reason,
            "name_taken");
  EXPECT_FALSE(rename_node(fleet_.snapshot(), again.node, "{{ evil }}", changed_));
}

TEST_F(Recognize, RejectedMachinesStayRejected) {
  fleet_.snapshot().cluster.accept_policy = "manual";
  see("web", "10.0.1.1", "SA1");
  fleet_.node("web").spec.acceptance = Acceptance::kRejected;
  EXPECT_EQ(see("web", "10.0.1.1", "SA1").finding, Finding::kIgnored);
  EXPECT_EQ(fleet_.snapshot().nodes.size(), 1u);
}

TEST_F(Recognize, UnknownMachinesThatGoAreNobody) {
  EXPECT_EQ(lose("x", "10.9.9.9", "SZ9").finding, Finding::kIgnored);
  EXPECT_TRUE(changed_.empty());
}

// ---- whatever is reported
// ------------------------------------------------------------------------

struct Machine {
  std::string name, serial, uuid;
};

// Machines with placeholders, serials of their own or of the enclosure, reported in any order and
// from any of three addresses each.
RC_GTEST_PROP(RecognizeProperty, NoMachineBecomesTwoNodesAndNoTwoMachinesOne, ()) {
  FleetBuilder fleet;
  std::set<std::string> changed;
  int made = 0;
  const int machines = *rc::gen::inRange(1, 6);
  std::vector<Machine> all;
  for (int i = 0; i < machines; ++i) {
    const bool placeholder = *rc::gen::arbitrary<bool>();
    all.push_back({"m" + std::to_string(i),
                   placeholder
                       ? *rc::gen::element<std::string>("", "None", "0000", "Default string")
                       : "S" + std::to_string(i),
                   placeholder ? "03000200-0400-0500-0006-000700080009" : ""});
  }
  std::map<std::string, std::string> node_of;  // machine -> node
  const int reports = *rc::gen::inRange(1, 30);
  for (int r = 0; r < reports; ++r) {
    const Machine& m = all[*rc::gen::inRange<size_t>(0, all.size())];
    const int place = *rc::gen::inRange(1, 4);
    const Sighting s{m.name,
                     "10.0." + m.name.substr(1) + "." + std::to_string(place),
                     {m.serial, m.uuid, "", {}}};
    const bool gone = *rc::gen::arbitrary<bool>();
    const Recognized found =
        gone ? disappeared(fleet.snapshot(), s, at(r), changed)
             : discovered(
                   fleet.snapshot(), s, [&] { return "id" + std::to_string(++made); }, at(r),
                   changed);
    settle_conflicts(fleet.snapshot(), changed, at(r), changed);
    if (found.node.empty()) continue;
    const auto [it, first] = node_of.emplace(m.name, found.node);
    RC_ASSERT(it->second == found.node);
    for (const auto& [name, id] : node_of) RC_ASSERT(name == m.name || id != found.node);
  }
  RC_ASSERT(fleet.snapshot().nodes.size() <= all.size());
  std::set<std::string> addrs;
  for (const auto& [id, node] : fleet.snapshot().nodes) {
    RC_ASSERT(addrs.insert(node.spec.addr).second);
    RC_ASSERT(has_condition(node.status, "IdentityConflict") == node.status.elsewhere.has_value());
  }
}

// Conflict is mutual, and whoever is in one is not worked on.
RC_GTEST_PROP(RecognizeProperty, ConflictsAreMutualAndBlock, ()) {
  FleetBuilder fleet;
  std::set<std::string> changed;
  const int nodes = *rc::gen::inRange(2, 6);
  for (int i = 0; i < nodes; ++i) {
    Node& n = fleet.add("n" + std::to_string(i));
    Identity identity{*rc::gen::element<std::string>("", "None", "SA1", "SB2"),
                      *rc::gen::element<std::string>("", kUuid, kOtherUuid),
                      *rc::gen::element<std::string>("", kHostKey1),
                      {}};
    if (*rc::gen::arbitrary<bool>()) identity.macs = {*rc::gen::element(kMac, kOtherMac)};
    n.status.identity = identity;
    changed.insert(n.id);
  }
  settle_conflicts(fleet.snapshot(), changed, at(1), changed);
  for (const auto& [id, node] : fleet.snapshot().nodes) {
    const auto twins = alike(fleet.snapshot(), known_identity(node), id);
    RC_ASSERT(twins.empty() != has_condition(node.status, "IdentityConflict"));
    RC_ASSERT(twins.empty() != identity_block(node, "update", false).has_value());
    for (const Node* t : twins) RC_ASSERT(has_condition(t->status, "IdentityConflict"));
  }
  const auto before = fleet.snapshot().nodes;
  std::set<std::string> again;
  settle_conflicts(fleet.snapshot(), changed, at(2), again);
  RC_ASSERT(again.empty());
  RC_ASSERT(before == fleet.snapshot().nodes);
}

}  // namespace
}  // namespace clusterctl::fleet
