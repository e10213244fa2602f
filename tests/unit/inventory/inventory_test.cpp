#include "inventory/inventory.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "base/yaml.h"
#include "inventory/sources.h"

namespace clusterctl::inventory {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kGroups{"service-master", "service-worker"};

class InventoryTest : public testing::Test {
 protected:
  InventoryTest() {
    char path[] = "/tmp/clusterctl_inventory_XXXXXX";
    dir = mkdtemp(path);
  }
  ~InventoryTest() override { fs::remove_all(dir); }

  fs::path write(const std::string& name, const std::string& content) {
    fs::create_directories((dir / name).parent_path());
    EXPECT_TRUE(write_file_atomic(dir / name, content));
    return dir / name;
  }
  Result<Inventory> read(const std::string& content) {
    return read_inventory(write("hosts.yml", content), kGroups);
  }
  // Code of the only problem, or of the error itself.
  std::string code_of(const std::string& content) {
    const auto got = read(content);
    if (got) return "accepted";
    return got.error().problems.empty() ? got.error().message : got.error().problems[0].code;
  }
  static std::string host(const std::string& name, const std::string& vars = "") {
    return "all: {children: {service-master: {hosts: {" + name + ": {" + vars + "}}}}}\n";
  }

  fs::path dir;
};

TEST_F(InventoryTest, ReadsWhatTheLabWrites) {
  const auto got = read(R"(
all:
  vars: {service_vip: 10.0.0.100, ansible_user: ops}
  children:
    service-master:
      hosts:
        node1:
          ansible_host: 10.0.0.11
          ansible_ssh_private_key_file: /k
          clusterctl_ssh_host_key: ssh-ed25519 AAAAC3Nz/+=
    service-worker:
      vars: {docker_storage: overlay2}
      hosts:
        node4: {ansible_host: 10.0.0.14, ansible_port: 2222, ansible_user: root, rack: r3}
        node5:
)");
  ASSERT_TRUE(got) << got.error().line();
  ASSERT_EQ(got->nodes.size(), 3u);
  EXPECT_EQ(got->nodes[0].name, "node1");
  EXPECT_EQ(got->nodes[0].spec, Json::parse(R"({"addr":"10.0.0.11","host_group":"service-master",
      "ssh":{"user":"ops","host_key":"ssh-ed25519 AAAAC3Nz/+="}})"));
  EXPECT_EQ(got->nodes[1].spec, Json::parse(R"({"addr":"10.0.0.14","host_group":"service-worker",
      "ssh":{"user":"root","port":2222},"vars":{"docker_storage":"overlay2","rack":"r3"}})"));
  EXPECT_EQ(got->nodes[2].spec["addr"], "node5");
  EXPECT_EQ(got->globals, Json::parse(R"({"service_vip":"10.0.0.100"})"));
  EXPECT_THAT(got->notes, ElementsAre(HasSubstr("ansible_ssh_private_key_file is left out")));
}

TEST_F(InventoryTest, VariablesWinAsInAnsible) {
  write("group_vars/all.yml", "a: gv_all\nb: gv_all\nonly_all: 1\n");
  write("group_vars/service-master/10.yml", "b: gv_group\n");
  write("group_vars/rack/vars", "c: gv_rack\n");
  write("host_vars/n1.yml", "e: hv\n");
  write("host_vars/other.yml", "x: 1\n");
  const auto got = read(R"(
rack: {children: {service-master: }, vars: {c: rack, d: rack}}
service-master:
  vars: {a: group, d: master}
  hosts: {n1: {d: host, e: host}}
)");
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->globals, Json::parse(R"({"a":"gv_all","b":"gv_all","only_all":1})"));
  EXPECT_EQ(got->nodes[0].spec["vars"],
            Json::parse(R"({"b":"gv_group","c":"gv_rack","d":"host","e":"hv"})"));
  EXPECT_THAT(got->notes, ElementsAre(HasSubstr("host_vars of \"other\"")));
}

TEST_F(InventoryTest, FolderOfFiles) {
  write("inv/a.yml", "all: {children: {service-master: {hosts: {n1: }}}}");
  write("inv/b.yaml", "all: {children: {service-worker: {hosts: {n2: }}}}");
  write("inv/clusterctl", "#!/bin/sh\n");
  write("inv/group_vars/all.yml", "x: 1");
  const auto got = read_inventory(dir / "inv", kGroups);
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->nodes.size(), 2u);
  EXPECT_EQ(got->globals["x"], 1);
  EXPECT_THAT(got->notes, ElementsAre(HasSubstr("left out")));
}

TEST_F(InventoryTest, Ranges) {
  EXPECT_THAT(*expand_range("n[08:11].x"), ElementsAre("n08.x", "n09.x", "n10.x", "n11.x"));
  EXPECT_THAT(*expand_range("n[0:1]"), ElementsAre("n0", "n1"));
  EXPECT_THAT(*expand_range("plain"), ElementsAre("plain"));
  for (const char* bad : {"n[1", "n[a:c]", "n[3:1]", "n[0:999999]", "n[1:2:1]", "n[-1:2]", "n[:]",
                          "n[1:2][1:2]", "n[]"}) {
    EXPECT_FALSE(expand_range(bad)) << bad;
  }
}

TEST_F(InventoryTest, RefusesHostileNamesAndValues) {
  EXPECT_EQ(code_of(host("\"{{ lookup('pipe','id') }}\"")), "bad_name");
  EXPECT_EQ(code_of(host("\"a\\nb\"")), "bad_name");
  EXPECT_EQ(code_of(host("-oProxyCommand=x")), "bad_name");
  EXPECT_EQ(code_of(host("\"$(touch x)\"")), "bad_name");
  EXPECT_EQ(code_of(host(std::string(64, 'a'))), "bad_name");
  EXPECT_EQ(code_of(host("n1", "ansible_host: -oProxyCommand=x")), "bad_addr");
  EXPECT_EQ(code_of(host("n1", "ansible_host: \"{{ x }}\"")), "bad_addr");
  EXPECT_EQ(code_of(host("n1", "ansible_host: 7")), "bad_addr");
  EXPECT_EQ(code_of(host("n1", "ansible_host: [a]")), "bad_addr");
  EXPECT_EQ(code_of(host("n1", "ansible_port: 0")), "bad_port");
  EXPECT_EQ(code_of(host("n1", "ansible_port: \"22; x\"")), "bad_port");
  EXPECT_EQ(code_of(host("n1", "ansible_user: \"a b\"")), "bad_user");
  EXPECT_EQ(code_of(host("n1", "clusterctl_ssh_host_key: \"ssh-ed25519 A\\nx y\"")),
            "bad_host_key");
  EXPECT_EQ(code_of(host("n1", "clusterctl_ssh_jump: \"-oX=y\"")), "bad_jump");
  EXPECT_EQ(code_of(host("n1", "ansible_password: x")), "reserved_variable");
  EXPECT_EQ(code_of(host("n1", "ansible_ssh_common_args: -o ProxyCommand=x")), "reserved_variable");
  EXPECT_EQ(code_of(host("n1", "\"a-b\": x")), "bad_variable");
  EXPECT_EQ(code_of(host("n1", "\"x\\ny\": x")), "bad_variable");
  EXPECT_EQ(code_of(host("n1", "clusterctl_capabilities: x")), "wrong_type");
  EXPECT_EQ(code_of(host("n1", "clusterctl_labels: {a: 1}")), "wrong_type");
  EXPECT_EQ(code_of(host("n1", "clusterctl_availability: off")), "bad_availability");
}

TEST_F(InventoryTest, RefusesBrokenFiles) {
  EXPECT_THAT(code_of("all: [a"), HasSubstr("hosts.yml:1"));
  EXPECT_THAT(code_of("[masters]\nn1 ansible_host=1\n"), HasSubstr("hosts.yml"));
  EXPECT_THAT(code_of("just text"), HasSubstr("no inventory"));
  EXPECT_THAT(code_of(""), HasSubstr("has no hosts"));
  EXPECT_THAT(code_of("all: 5"), HasSubstr("must hold"));
  EXPECT_THAT(code_of("all: {host: {n1: }}"), HasSubstr("no \"host\""));
  EXPECT_THAT(code_of("all: {hosts: [n1]}"), HasSubstr("mapping"));
  EXPECT_THAT(code_of("all: {hosts: {n1: 5}}"), HasSubstr("mapping"));
  EXPECT_THAT(code_of("all: {hosts: {n1: }, hosts: {n2: }}"), HasSubstr("twice"));
  EXPECT_THAT(code_of("$ANSIBLE_VAULT;1.1;AES256\n6134\n"), HasSubstr("ansible-vault"));
  EXPECT_THAT(code_of(host("n1", "secret: !vault abc")), HasSubstr("tag"));
  EXPECT_THAT(code_of(std::string(2 << 20, 'a')), HasSubstr("hosts.yml"));
  EXPECT_THAT(code_of(std::string(5000, '[')), HasSubstr("hosts.yml:1:"));
  EXPECT_FALSE(read_inventory(dir / "missing.yml", kGroups));
  EXPECT_FALSE(read_inventory("/dev/zero", kGroups));
}

TEST_F(InventoryTest, AliasBombsAreRefused) {
  std::string bomb = "x: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string p = "*a" + std::to_string(i - 1);
    bomb += "x" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + p;
    for (int j = 1; j < 10; ++j) bomb += "," + p;
    bomb += "]\n";
  }
  EXPECT_THAT(code_of(bomb), HasSubstr("more than"));
}

TEST_F(InventoryTest, CyclesAndTwoGroups) {
  EXPECT_EQ(code_of("a: {children: {b: }}\nb: {children: {a: }, hosts: {n1: }}\n"), "cycle");
  EXPECT_THAT(code_of("a: {children: {a: {hosts: {n1: }}}}"), HasSubstr("contains itself"));
  EXPECT_EQ(code_of("service-master: {hosts: {n1: }}\nservice-worker: {hosts: {n1: }}\n"),
            "two_host_groups");
}

TEST_F(InventoryTest, AllProblemsAtOnce) {
  const auto got = read(
      "service-master: {hosts: {n1: {ansible_port: x, ansible_host: -a}, n_2: , n3: {ansible_host: "
      "n1a}, n4: "
      "{ansible_host: n1a}}}\n");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().problems.size(), 4u);
  EXPECT_EQ(exit_code(got.error().code), kExitRefused);
}

TEST_F(InventoryTest, NotesWhatMaySurprise) {
  const auto got = read(
      "all: {hosts: {n1: {t: \"{{ x }}\", y: yes, clusterctl_role: manager, n: null}}, vars: {z: "
      "[\"{% x %}\"]}}");
  ASSERT_TRUE(got);
  EXPECT_THAT(got->notes, Contains(HasSubstr("t holds a template")));
  EXPECT_THAT(got->notes, Contains(HasSubstr("z holds a template")));
  EXPECT_THAT(got->notes, Contains(HasSubstr("clusterctl_role is left out")));
  EXPECT_THAT(got->notes, Contains(HasSubstr("in none of the host groups")));
}

TEST_F(InventoryTest, ExportComesBackTheSame) {
  const Json nodes = Json::parse(R"([
    {"name":"n1","spec":{"addr":"10.0.0.1","host_group":"service-master","ssh":{"user":"ops","port":2222,
      "host_key":"ssh-ed25519 AAAA","jump":"a@b"},"capabilities":["ucp-controller"],"availability":"drain",
      "labels":{"rack":"1","x":"yes"},"versions":{"etcd":"3.4"},"vars":{"text":"a: b # c","num":5,"list":[1,[2,{"k":"v"}],{}],
      "empty":"","multi":"a\nb\t\u2028\"","version":"1.10","uni":"ü\ud83d\ude00"}}},
    {"name":"n2","spec":{"addr":"n2","availability":"active","ssh":{"port":22}}}])");
  const Json globals = Json::parse(R"({"a":{"b":[true,null,1.5]},"e":{},"yes":"no"})");
  const auto back = read(to_yaml(to_ansible_inventory(nodes, globals)));
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(back->globals, globals);
  ASSERT_EQ(back->nodes.size(), 2u);
  EXPECT_EQ(back->nodes[0].spec, nodes[0]["spec"]);
  EXPECT_EQ(back->nodes[1].spec, (Json{{"addr", "n2"}}));
}

TEST(Yaml, IsReadBackAsTheSameValues) {
  for (
      const char* json :
      {R"({})", R"([])", R"("x")", R"(null)", R"([[1,2],[[3]],{"a":[]}])",
       R"({"a":{"b":{"c":[{"d":1,"e":[2]}]}}})",
       R"({"no":"no","1":"1","":"","- a":"- b","a: b":"#","x\ny":"\u0001\u007f\u0085\ufeff"})",
       R"(["10.0.0.1","1.2","2001-01-01","0x10","1e3",".5","~","null","True","y","=","<<","*a","&a","!t","%x","@x","`","12:30:45"])"}) {
    const Json value = Json::parse(json);
    const auto back = parse_yaml(to_yaml(value), "x");
    ASSERT_TRUE(back) << back.error().line() << "\n" << to_yaml(value);
    EXPECT_EQ(*back, value) << to_yaml(value);
  }
}

TEST(Yaml, Looks) {
  EXPECT_EQ(
      to_yaml(Json::parse(R"({"b":[{"x":1,"z":[2]},"t"],"a":{"addr":"10.0.0.1","v":"1.10"}})")),
      "a:\n  addr: 10.0.0.1\n  v: \"1.10\"\nb:\n  - x: 1\n    z:\n      - 2\n  - t\n");
}

}  // namespace
}  // namespace clusterctl::inventory
