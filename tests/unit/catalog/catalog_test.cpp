#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <fstream>

namespace clusterctl::catalog {
namespace {

const char* kGood = R"(
host_groups:
  service-master: {manager: true, capabilities: [ucp-controller]}
  service-worker: {manager: false, capabilities: [service-worker, can-run-user-containers], vars: {a: 1}}
defaults: {scheduler_provider: swarm-mode}
services:
  base: {on: all, memory: 256M}
  docker: {on: all, needs: [base], version: docker_version, memory: 1G, disrupts: node}
  etcd: {on: {role: manager}, needs: [base], quorum: members, ports: {etcd_client_port: 2379}}
  ucarp: {on: {role: manager}, when: service_vip}
  swarm: {on: all, when: {scheduler_provider: swarm-mode}, quorum: members, ports: {swarm_port: {port: 2377, role: manager}, swarm_data_port: 4789}}
  volplugin: {on: {capability: [can-run-user-containers]}, when: volplugin_version, needs: [docker]}
  dtr: {on: {capability: [dtr-controller, dtr-replica]}, needs: docker, upgrade: cluster, needs_when: {dtr_storage: {volplugin: volplugin}}, forbids: {service: swarm}}
)";

TEST(Catalog, ReadsWhatTheDesignShows) {
  const auto c = Catalog::parse_text(kGood, "catalog.yml");
  ASSERT_TRUE(c) << c.error().line();
  std::vector<std::string> names;
  for (const Service& s : c->services()) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"base", "docker", "etcd", "ucarp", "swarm",
                                             "volplugin", "dtr"}))
      << "the order of the file";
  EXPECT_EQ(c->service("docker")->memory_mb, 1024);
  EXPECT_EQ(c->service("base")->memory_mb, 256);
  EXPECT_EQ(c->service("etcd")->ports.at("etcd_client_port"), 2379);
  EXPECT_EQ(c->service("swarm")->ports.at("swarm_port"), 2377);
  EXPECT_EQ(c->service("swarm")->port_roles,
            (std::map<std::string, fleet::Role>{{"swarm_port", fleet::Role::kManager}}));
  EXPECT_EQ(c->services_of_capabilities("dtr-"), std::vector<std::string>{"dtr"});
  EXPECT_EQ(c->service("dtr")->forbids, std::vector<std::string>{"swarm"});
  EXPECT_EQ(c->quorum_services(), (std::vector<std::string>{"etcd", "swarm"}));
  EXPECT_EQ(c->host_group_names(), (std::vector<std::string>{"service-master", "service-worker"}));
  EXPECT_FALSE(c->service("nothing"));
  EXPECT_FALSE(c->host_group(""));
  EXPECT_EQ(c->needs_of(*c->service("dtr"), {{"dtr_storage", "volplugin"}}),
            (std::vector<std::string>{"docker", "volplugin"}));
  EXPECT_EQ(c->needs_of(*c->service("dtr"), {{"dtr_storage", "nfs"}}),
            std::vector<std::string>{"docker"});
}

TEST(Catalog, TheRoleFollowsGroupAndCapabilities) {
  const auto c = Catalog::parse_text(kGood, "catalog.yml");
  EXPECT_EQ(c->role("service-master", {"ucp-controller"}), fleet::Role::kManager);
  EXPECT_EQ(c->role("service-master", {"dtr-replica"}), fleet::Role::kWorker);
  EXPECT_EQ(c->role("service-worker", {"ucp-controller"}), fleet::Role::kWorker);
  EXPECT_EQ(c->role("no-such", {}), fleet::Role::kWorker);
  EXPECT_EQ(c->capabilities_for("service-master", {}), std::vector<std::string>{"ucp-controller"});
  EXPECT_EQ(c->capabilities_for("service-master", {"x"}), std::vector<std::string>{"x"});
  EXPECT_EQ(c->capabilities_for("no-such", {}), std::vector<std::string>{});
}

TEST(Catalog, TheVersionIsADigestOfTheDocumentAndItsOrder) {
  const auto a = Catalog::parse_text(kGood, "a"),
             b = Catalog::parse_text(std::string("# comment\n") + kGood, "b");
  EXPECT_EQ(a->version(), b->version());
  std::string changed = kGood;
  changed.replace(changed.find("256M"), 4, "257M");
  EXPECT_NE(Catalog::parse_text(changed, "c")->version(), a->version());
}

TEST(Catalog, ProblemsNameFileAndEntry) {
  const std::string groups = "host_groups: {m: {manager: true}}\n";
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "must be a mapping"},
      {"[]", "must be a mapping"},
      {groups, "has no services"},
      {"services: {a: {on: all}}", "has no host_groups"},
      {groups + "services: {}", "has no services"},
      {groups + "services: {a: {on: all}}\nother: 1", "has no \"other\""},
      {groups + "services: {a: {onn: all}}", "service \"a\": a service has no \"onn\""},
      {groups + "services: {a: {memory: 1M}}", "it has no `on`"},
      {groups + "services: {a: all}", "it must be a mapping"},
      {groups + "services: {a: {on: some}}", "`on` must be"},
      {groups + "services: {a: {on: {role: boss}}}", "must be manager or worker"},
      {groups + "services: {a: {on: {role: manager, capability: [x]}}}", "`on` must be"},
      {groups + "services: {a: {on: {rack: r1}}}", "is not known"},
      {groups + "services: {a: {on: {capability: []}}}", "names nothing"},
      {groups + "services: {a: {on: all, needs: [b]}}", "which is no service"},
      {groups + "services: {a: {on: all, needs: [b]}, b: {on: all}}", "does not stand before"},
      {groups + "services: {a: {on: all, needs: [b]}, b: {on: all, needs: [a]}}",
       "does not stand before"},
      {groups + "services: {a: {on: all, needs: [a]}}", "does not stand before"},
      {groups + "services: {a: {on: all, memory: 256}}", "not an amount of memory"},
      {groups + "services: {a: {on: all, memory: -1M}}", "not an amount of memory"},
      {groups + "services: {a: {on: all, memory: 99999999999G}}", "not an amount of memory"},
      {groups + "services: {a: {on: all, ports: {x: 0}}}", "is not a port"},
      {groups + "services: {a: {on: all, ports: [80]}}", "`ports` must be"},
      {groups + "services: {a: {on: all, ports: {x: {port: 80}}}}", "role: manager"},
      {groups + "services: {a: {on: all, ports: {x: {port: 80, role: chief}}}}", "role: manager"},
      {groups + "services: {a: {on: all, ports: {x: {port: 0, role: manager}}}}", "is not a port"},
      {groups + "services: {a: {on: all, quorum: maybe}}", "quorum \"maybe\" is not known"},
      {groups + "services: {a: {on: all, upgrade: now}}", "upgrade \"now\" is not known"},
      {groups + "services: {a: {on: all, disrupts: all}}", "disrupts \"all\" is not known"},
      {groups + "services: {a: {on: all, when: {}}}", "`when` must be"},
      {groups + "services: {a: {on: all, when: {x: [1]}}}", "needs a plain value"},
      {groups + "services: {a: {on: all, when: 5}}", "`when` must be"},
      {groups + "services: {a: {on: all, forbids: b}}", "`forbids` must be"},
      {groups + "services: {a: {on: all, needs_when: {x: y}}}", "`needs_when` must be"},
      {groups + "services: {a: {on: all, needs_when: {x: {y: z}}}}", "may need \"z\""},
      {groups + "services: {a: {on: all, version: 1}}", "must be a string"},
      {groups + "services: {'A b': {on: all}}", "is not a service"},
      {groups + "services: {a: {on: all}}\ndefaults: []", "must be an object"},
      {"host_groups: {m: {managers: true}}\nservices: {a: {on: all}}", "did you mean \"manager\"?"},
      {"host_groups: {m: {manager: maybe}}\nservices: {a: {on: all}}", "must be true or false"},
      {"host_groups: {m: {capabilities: [A]}}\nservices: {a: {on: all}}", "is not a capability"},
      {"host_groups: {m: {vars: 3}}\nservices: {a: {on: all}}", "must be an object"},
      {groups + "services: {a: {on: all}, a: {on: all}}", "stands twice"},
      {"a: [", "file.yml:"},
  };
  for (const auto& [text, want] : rows) {
    const auto c = Catalog::parse_text(text, "file.yml");
    ASSERT_FALSE(c) << text;
    EXPECT_EQ(c.error().code, Code::kInvalid) << text;
    EXPECT_NE(c.error().line().find(want), std::string::npos) << text << "\n" << c.error().line();
    EXPECT_NE(c.error().line().find("file.yml"), std::string::npos) << text;
  }
  EXPECT_FALSE(Catalog::read("/nonexistent/catalog.yml"));
  for (const Json& bad : {Json(), Json(1), Json("x"), Json::array()})
    EXPECT_FALSE(Catalog::parse(bad, "x"));
}

TEST(Catalog, AJsonDocumentIsOrderedByNeeds) {
  const Json doc{
      {"host_groups", {{"m", {{"manager", true}}}}},
      {"services",
       {{"a", {{"on", "all"}, {"needs", {"z"}}}}, {"b", {{"on", "all"}}}, {"z", {{"on", "all"}}}}}};
  const auto c = Catalog::parse(doc, "x");
  ASSERT_TRUE(c) << c.error().line();
  std::vector<std::string> names;
  for (const Service& s : c->services()) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "z", "a"}));
}

// tests/catalog_vectors.json is run by the playbooks' filter plugin as well: both must give the
// same services.
TEST(Catalog, SharedVectors) {
  std::ifstream in(SOURCE_DIR "/tests/catalog_vectors.json");
  if (!in) GTEST_SKIP() << "no vectors in this tree";
  const auto vectors = nlohmann::ordered_json::parse(in);
  const auto shipped = Catalog::read(SOURCE_DIR "/playbooks/catalog.yml");
  ASSERT_TRUE(shipped) << shipped.error().line();
  int run = 0;
  for (const auto& v : vectors.at("cases")) {
    const std::string name = v.at("name");
    Catalog catalog = *shipped;
    if (v.contains("catalog")) {
      std::vector<std::string> order;
      for (const auto& [service, entry] : v["catalog"]["services"].items())
        order.push_back(service);
      const auto own = Catalog::parse(Json::parse(v["catalog"].dump()), name, order);
      ASSERT_TRUE(own) << name << ": " << own.error().line();
      catalog = *own;
    }
    const std::string group = v["node"].value("host_group", "");
    const auto capabilities = v["node"]["capabilities"].get<std::vector<std::string>>();
    std::optional<fleet::Role> role;
    if (v["node"].contains("role"))
      role = v["node"]["role"] == "manager" ? fleet::Role::kManager : fleet::Role::kWorker;
    const Json vars = Json::parse(v["vars"].dump());
    EXPECT_EQ(catalog.services_for(group, capabilities, vars, role),
              v.at("services").get<std::vector<std::string>>())
        << name;
    if (v.contains("role")) {
      EXPECT_EQ(catalog.role(group, capabilities) == fleet::Role::kManager ? "manager" : "worker",
                v["role"].get<std::string>())
          << name;
    }
    ++run;
  }
  EXPECT_GT(run, 0);
}

}  // namespace
}  // namespace clusterctl::catalog
