#include "fleet/identity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fakes/fleet_builder.h"
#include "fleet/evidence.h"

namespace clusterctl::fleet {
namespace {

constexpr Match kMatches[] = {Match::kEqual, Match::kDiffers, Match::kUnknown};

const char* sign(std::string_view pattern) {
  if (pattern == "=") return "same";
  if (pattern == "!") return "other";
  return pattern == "?" ? "unknown" : "any";
}

const char* told(Likeness likeness) {
  switch (likeness) {
    case Likeness::kSame:
      return "the same machine";
    case Likeness::kReinstalled:
      return "the same machine, installed anew";
    case Likeness::kReplaced:
      return "the same node on other hardware";
    case Likeness::kDifferent:
      return "another machine";
    case Likeness::kUnknown:
      break;
  }
  return "not known";
}

// The table of docs/identity.md between its two marks.
std::string rendered() {
  std::string out =
      "| | serial | UUID | MAC addresses | host key | it is | for example |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  int number = 0;
  for (const LikenessRow& r : likeness_table()) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", ++number, sign(r.serial),
                       sign(r.uuid), sign(r.macs), sign(r.host_key), told(r.likeness), r.meaning);
  }
  return out;
}

TEST(Identity, TheTableInTheDocumentsIsTheOneInTheCode) {
  const std::string path = SOURCE_DIR "/docs/identity.md";
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string text = content.str();
  const std::string begin = "<!-- table of likeness -->\n", end = "<!-- end of the table -->";
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  if (std::getenv("CLUSTERCTL_WRITE_DOCS")) {
    std::ofstream(path) << text.substr(0, from + begin.size()) + rendered() + text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(from + begin.size(), to - from - begin.size()), rendered())
      << "CLUSTERCTL_WRITE_DOCS=1 writes it";
}

TEST(Identity, EveryCombinationHasARowAndEveryRowACombination) {
  std::set<const LikenessRow*> used;
  for (const Match serial : kMatches)
    for (const Match uuid : kMatches)
      for (const Match macs : kMatches)
        for (const Match key : kMatches) used.insert(&likeness_row(serial, uuid, macs, key));
  EXPECT_EQ(used.size(), likeness_table().size()) << "a row that no combination reaches is dead";
  const LikenessRow& last = likeness_table().back();
  EXPECT_EQ(std::string(last.serial) + std::string(last.uuid) + std::string(last.macs), "???")
      << "the fallback must be the row of no evidence, else a combination is missing";
  EXPECT_EQ(
      likeness_row(Match::kUnknown, Match::kUnknown, Match::kUnknown, Match::kDiffers).likeness,
      Likeness::kUnknown);
}

TEST(Identity, PlaceholdersAreNoEvidence) {
  for (const char* serial :
       {"", " ", "To be filled by O.E.M.", "TO BE FILLED BY O.E.M.", "None", "none",
        "Default string", "System Serial Number", "0", "00000000", "0000-0000", "Not Specified",
        "N/A", "xxxxxxxx", "........", "0123456789", "FFFFFFFF", "Unknown"}) {
    EXPECT_EQ(usable_serial(serial), "") << serial;
  }
  for (const char* serial : {"FCH1925V1XY", "S-n1", "0A", "000000001"})
    EXPECT_NE(usable_serial(serial), "") << serial;
  EXPECT_EQ(usable_serial(" fch1925v1xy "), "fch1925v1xy");

  for (const char* uuid :
       {"", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
        "Not Settable", "4c4c4544"}) {
    EXPECT_EQ(usable_uuid(uuid), "") << uuid;
  }
  EXPECT_NE(usable_uuid("4C4C4544-0031-3010-8052-B4C04F4E3132"), "");
  for (const char* mac :
       {"", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "02:42", "zz:42:0a:00:00:01"})
    EXPECT_EQ(usable_mac(mac), "") << mac;
  EXPECT_EQ(usable_mac("00:25:B5:00:00:1A"), "00:25:b5:00:00:1a");
}

TEST(Identity, AUuidIsTheSameInEitherByteOrder) {
  const Identity a{"", "4c4c4544-0031-3010-8052-b4c04f4e3132", "", {}};
  const Identity b{"", "44454c4c-3100-1030-8052-b4c04f4e3132", "", {}};
  EXPECT_EQ(compare(a, b).likeness, Likeness::kSame);
}

struct Case {
  const char* what;
  Identity known, seen;
  Likeness likeness;
};

const std::string kUuidA = "4c4c4544-0031-3010-8052-b4c04f4e3132";
const std::string kUuidB = "4c4c4544-0031-3010-8052-b4c04f4e3133";
const std::string kMacA = "00:25:b5:00:00:1a", kMacB = "00:25:b5:00:00:2b";

TEST(Identity, OneSpellingOfEveryPieceOrARefusal) {
  const std::string uuid = "4c4c4544-0031-3010-8052-b4c04f4e3132", mac = "00:25:b5:00:00:01";
  for (const char* text :
       {"4C4C4544-0031-3010-8052-B4C04F4E3132", "{4c4c4544-0031-3010-8052-b4c04f4e3132}",
        "4c4c4544003130108052b4c04f4e3132", " urn:uuid:4c4c4544-0031-3010-8052-b4c04f4e3132 "}) {
    EXPECT_EQ(normal_uuid(text), uuid) << text;
    EXPECT_EQ(usable_uuid(text), uuid) << text;
  }
  for (const char* text : {"00:25:B5:00:00:01", "00-25-B5-00-00-01", "0025.b500.0001",
                           "0025b5000001", " 00:25:b5:00:00:01\n"}) {
    EXPECT_EQ(normal_mac(text), mac) << text;
    EXPECT_EQ(usable_mac(text), mac) << text;
  }

  struct Row {
    Json machine;
    std::string piece;  // that is named in the refusal; empty: taken
  };
  const std::vector<Row> rows{
      {{{"macs", {"00-25-B5-00-00-01", "0025.b500.0001", ""}}}, ""},
      {{{"macs", {"80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:5e:11"}}}, ""},
      {{{"uuid", "Not Settable"}, {"serial", "To be filled by O.E.M."}}, ""},
      {{{"uuid", ""}}, ""},
      {{{"macs", {"xx"}}}, "nodes[0].macs[0] \"xx\""},
      {{{"macs", {"00:25:b5:00:00:01", "00:25:b5"}}}, "nodes[0].macs[1] \"00:25:b5\""},
      {{{"uuid", "zzz"}}, "nodes[0].uuid \"zzz\""},
      {{{"uuid", "4c4c4544"}}, "nodes[0].uuid \"4c4c4544\""},
      {{{"serial", "{{ 7*7 }}"}}, "nodes[0].serial \"{{ 7*7 }}\""},
  };
  for (const Row& row : rows) {
    Problems problems;
    const Identity read = parse_evidence(row.machine, "nodes[0]", problems);
    ASSERT_EQ(problems.empty(), row.piece.empty()) << row.machine.dump();
    if (row.piece.empty()) continue;
    const auto refusal = problems.refuse("nothing is recorded").value();
    EXPECT_NE((refusal.message + refusal.line()).find(row.piece), std::string::npos)
        << refusal.line();
  }
  Problems none;
  EXPECT_EQ(parse_evidence({{"macs", {"0025.b500.0001"}}}, "x", none).macs,
            std::vector<std::string>{mac});
}

TEST(Identity, WhatHappensToMachines) {
  const std::vector<Case> cases{
      {"nothing", {"SA1", kUuidA, "k1", {kMacA}}, {"sa1", kUuidA, "k1", {kMacA}}, Likeness::kSame},
      {"a service profile on a spare blade",
       {"SA1", kUuidA, "k1", {kMacA}},
       {"SB2", kUuidA, "k1", {kMacA}},
       Likeness::kReplaced},
      {"the same, with local disks",
       {"SA1", kUuidA, "k1", {kMacA}},
       {"SB2", kUuidA, "k2", {kMacA}},
       Likeness::kReplaced},
      {"a new image",
       {"SA1", kUuidA, "k1", {kMacA}},
       {"SA1", kUuidA, "k2", {kMacA}},
       Likeness::kReinstalled},
      {"a new network card",
       {"SA1", kUuidA, "k1", {kMacA}},
       {"SA1", kUuidA, "k1", {kMacB}},
       Likeness::kSame},
      {"blades of one enclosure",
       {"CH", kUuidA, "k1", {kMacA}},
       {"CH", kUuidB, "k2", {kMacB}},
       Likeness::kDifferent},
      {"the disk in another machine",
       {"SA1", kUuidA, "k1", {kMacA}},
       {"SB2", kUuidB, "k1", {kMacB}},
       Likeness::kDifferent},
      {"placeholders everywhere",
       {"None", "03000200-0400-0500-0006-000700080009", "", {}},
       {"None", "03000200-0400-0500-0006-000700080009", "", {}},
       Likeness::kUnknown},
      {"a serial alone", {"SA1", kUuidA, "k1", {kMacA}}, {"SA1", "", "", {}}, Likeness::kSame},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(compare(c.known, c.seen).likeness, c.likeness) << c.what;
    EXPECT_EQ(compare(c.seen, c.known).likeness, c.likeness) << c.what << ", the other way round";
  }
}

TEST(Identity, ASerialOfSeveralNodesIsShared) {
  FleetBuilder fleet;
  fleet.add("n1").status.identity = Identity{"CH", kUuidA, "", {}};
  fleet.add("n2").status.identity = Identity{"CH", "", "", {}};
  EXPECT_FALSE(shared_serial(fleet.snapshot(), "CH")) << "they may be one machine";
  fleet.snapshot().nodes.begin()->second.status.identity->macs = {kMacA};
  fleet.node("n2").status.identity = Identity{"ch", kUuidB, "", {}};
  EXPECT_TRUE(shared_serial(fleet.snapshot(), "CH")) << "told apart by their UUIDs";
  EXPECT_TRUE(alike(fleet.snapshot(), {"CH", "", "", {}}, "").empty());
  fleet.node("n2").status.identity = Identity{"CH", "", "", {}};
  fleet.add("n3").status.identity = Identity{"CH", "", "", {}};
  EXPECT_TRUE(shared_serial(fleet.snapshot(), "CH")) << "three";
}

TEST(Identity, MachinesOfOneImageAreNotOneMachine) {
  FleetBuilder fleet;
  fleet.add("n1").status.identity = Identity{"SA1", "", "k1", {kMacA}};
  EXPECT_TRUE(alike(fleet.snapshot(), {"", "", "k1", {kMacB}}, "").empty());
  EXPECT_EQ(alike(fleet.snapshot(), {"", "", "k1", {}}, "").size(), 1u)
      << "where nothing else is known, the key is all there is";
}

rc::Gen<std::string> one_of(std::vector<std::string> values) {
  return rc::gen::elementOf(std::move(values));
}

Identity any_identity() {
  Identity out;
  out.serial = *one_of({"", "None", "SA1", "SB2", "SC3", "To be filled by O.E.M.", "000"});
  out.uuid = *one_of({"", kUuidA, kUuidB, "03000200-0400-0500-0006-000700080009",
                      "00000000-0000-0000-0000-000000000000"});
  out.host_key = *one_of({"", "k1", "k2"});
  for (const std::string& mac : {kMacA, kMacB, std::string("00:00:00:00:00:00")}) {
    if (*rc::gen::arbitrary<bool>()) out.macs.push_back(mac);
  }
  return out;
}

RC_GTEST_PROP(Identity, IsSymmetric, ()) {
  const Identity a = any_identity(), b = any_identity();
  RC_ASSERT(compare(a, b).likeness == compare(b, a).likeness);
  RC_ASSERT(compare_nodes(a, b) == compare_nodes(b, a));
}

RC_GTEST_PROP(Identity, ASideWithoutEvidenceIsLikeNobody, ()) {
  const Identity a = any_identity();
  const Identity b{*one_of({"", "None", "0", "Default string"}),
                   *one_of({"", "03000200-0400-0500-0006-000700080009"}),
                   "",
                   {"00:00:00:00:00:00"}};
  RC_ASSERT(compare(a, b).likeness == Likeness::kUnknown);
}

RC_GTEST_PROP(Identity, AMachineIsLikeItselfIfAnythingIsKnown, ()) {
  const Identity a = any_identity();
  RC_ASSERT(compare(a, a).likeness == (has_evidence(a) ? Likeness::kSame : Likeness::kUnknown));
}

}  // namespace
}  // namespace clusterctl::fleet
