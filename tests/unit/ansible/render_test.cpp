#include "ansible/render.h"

#include <gtest/gtest.h>

#include "ansible/ssh_args.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

Host host(std::string name, bool target = true) {
  Host out;
  out.id = "aaaabbbbcccc";
  out.name = std::move(name);
  out.addr = "10.0.0.1";
  out.target = target;
  out.host_group = "service-master";
  out.role = fleet::Role::kManager;
  out.services = {"base", "etcd"};
  out.recorded = {{"etcd", "8e9e05c52164694d"}};
  return out;
}

RunInput input(std::vector<Host> hosts) {
  RunInput out;
  out.run_id = "01jabcdefghjkmnpqrstvwxyz0";
  out.cluster_name = "lab {{ 1 }}";
  out.hosts = std::move(hosts);
  out.managers = {"n1"};
  out.run_dir = "/var/lib/clusterctl/runs/r1";
  out.pki_dir = "/var/lib/clusterctl/pki";
  out.private_key = "/etc/clusterctl/id_ed25519";
  out.default_user = "root";
  return out;
}

Json inventory_of(const RunInput& in) {
  const auto files = render(in);
  EXPECT_TRUE(files) << files.error().line();
  return files ? parse_json(files->inventory, "inventory").value_or(Json()) : Json();
}

std::string reason_of(const RunInput& in) {
  const auto files = render(in);
  return files ? "" : files.error().reason;
}

TEST(Render, WritesHostsGroupsAndVariables) {
  auto in = input({host("n1"), host("n2", false)});
  in.hosts[0].vars = {
      {"text", "{{ 7*7 }}"}, {"number", 5}, {"deep", {{"list", {"a", true, nullptr}}}}};
  in.peer = "n2";
  in.endpoint = "10.0.0.100";
  in.lost = {{"n{{9}}", "10.9.9.9", {{"etcd", "$(id)"}}}};
  const Json all = inventory_of(in).at("all");
  const Json n1 = all.at("children").at("clusterctl_targets").at("hosts").at("n1");
  EXPECT_EQ(n1.at("ansible_host"), (Json{{"__ansible_unsafe", "10.0.0.1"}}));
  EXPECT_EQ(n1.at("ansible_port"), 22);
  EXPECT_EQ(n1.at("clusterctl_role"), "manager");
  EXPECT_EQ(n1.at("clusterctl_services"), Json({"base", "etcd"}));
  EXPECT_EQ(n1.at("clusterctl_recorded").at("etcd").at("__ansible_unsafe"), "8e9e05c52164694d");
  EXPECT_EQ(n1.at("clusterctl_availability"), "active");
  EXPECT_EQ(n1.at("text"), (Json{{"__ansible_unsafe", "{{ 7*7 }}"}}));
  EXPECT_EQ(n1.at("number"), 5);
  EXPECT_EQ(n1.at("deep").at("list"), Json::array({{{"__ansible_unsafe", "a"}}, true, nullptr}));
  EXPECT_TRUE(all.at("children").at("clusterctl_peers").at("hosts").contains("n2"));
  EXPECT_EQ(all.at("children").at("service-master").at("hosts").size(), 2u);
  EXPECT_EQ(all.at("vars").at("clusterctl_peer"), "n2");
  EXPECT_FALSE(all.at("vars").contains("clusterctl_initiator"));
  EXPECT_FALSE(all.at("vars").contains("clusterctl_only_services"));
  EXPECT_EQ(all.at("vars").at("clusterctl_cluster_name").at("__ansible_unsafe"), "lab {{ 1 }}");
  EXPECT_EQ(all.at("vars").at("clusterctl_lost")[0].at("ids").at("etcd").at("__ansible_unsafe"),
            "$(id)");
}

TEST(Render, KeepsTheOrderOfWork) {
  const auto files = render(input({host("z9"), host("b1"), host("m5")}));
  ASSERT_TRUE(files);
  const std::string& text = files->inventory;
  EXPECT_LT(text.find("\"z9\""), text.find("\"b1\""));
  EXPECT_LT(text.find("\"b1\""), text.find("\"m5\""));
}

TEST(Render, RequestVariablesTravelAlone) {
  auto in = input({host("n1")});
  EXPECT_EQ(render(in)->vars, "");
  in.request_vars = {{"k", "{{ lookup('pipe', 'id') }}"}};
  EXPECT_EQ(parse_json(render(in)->vars, "vars")->at("k").at("__ansible_unsafe"),
            "{{ lookup('pipe', 'id') }}");
  EXPECT_EQ(render(in)->inventory.find("lookup"), std::string::npos);
}

TEST(Render, KnownHostsHoldPinnedKeysByNodeId) {
  auto in = input({host("n1")});
  EXPECT_EQ(render(in)->known_hosts, "");
  EXPECT_NE(render(in)->inventory.find("StrictHostKeyChecking=accept-new"), std::string::npos);
  in.hosts[0].ssh.host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKey root@n1";
  EXPECT_EQ(render(in)->known_hosts, "aaaabbbbcccc ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKey\n");
  EXPECT_NE(render(in)->inventory.find("StrictHostKeyChecking=yes"), std::string::npos);
}

TEST(Render, RefusesWhatCouldBecomeAnOptionOrACommand) {
  const std::vector<std::string> hostile = {"-oProxyCommand=touch /tmp/x",
                                            "a b",
                                            "a;b",
                                            "$(id)",
                                            "`id`",
                                            "a\nb",
                                            "{{ 1 }}",
                                            "a'b",
                                            "a%h",
                                            "a/b",
                                            "é"};
  for (const std::string& text : hostile) {
    auto in = input({host("n1")});
    in.hosts[0].addr = text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in = input({host("n1")});
    in.hosts[0].ssh.user = text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in = input({host("n1")});
    in.hosts[0].ssh.jump = text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in.hosts[0].ssh.jump = "root@" + text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in.hosts[0].ssh.jump = text + "@host";
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in.hosts[0].ssh.jump = "host:" + text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    in = input({host("n1")});
    in.hosts[0].ssh.host_key = text;
    EXPECT_EQ(reason_of(in), "bad_connection") << text;
    EXPECT_EQ(reason_of(input({host(text)})), "bad_name") << text;
    in = input({host("n1")});
    in.hosts[0].host_group = text;
    EXPECT_EQ(reason_of(in), "bad_name") << text;
    in = input({host("n1")});
    in.hosts[0].services = {text};
    EXPECT_EQ(reason_of(in), "bad_name") << text;
    in = input({host("n1")});
    in.managers = {text};
    EXPECT_EQ(reason_of(in), "bad_name") << text;
    in = input({host("n1")});
    in.endpoint = text;
    EXPECT_EQ(reason_of(in), "bad_address") << text;
    in = input({host("n1")});
    in.hosts[0].vars = {{text, 1}};
    EXPECT_EQ(reason_of(in), "bad_variable") << text;
  }
  auto in = input({host("n1")});
  in.hosts[0].addr = "";
  EXPECT_EQ(reason_of(in), "bad_connection");
  in = input({host("n1")});
  in.hosts[0].ssh.port = 70000;
  EXPECT_EQ(reason_of(in), "bad_connection");
  in = input({host("n1")});
  in.hosts[0].ssh.extra_args = {"-o\nProxyCommand=x"};
  EXPECT_EQ(reason_of(in), "bad_connection");
  in = input({host("n1")});
  in.peer = "not-there";
  EXPECT_EQ(reason_of(in), "unknown_peer");
  EXPECT_EQ(reason_of(input({host("n1"), host("n1")})), "twice");
  in = input({host("n1")});
  in.hosts[0].host_group = "all";
  EXPECT_EQ(reason_of(in), "bad_name");
}

TEST(Render, AcceptsAddressesOfAllKinds) {
  for (const char* text : {"10.0.0.1", "node-1.example.com", "fe80::1%eth0", "2001:db8::1", "N1"})
    EXPECT_TRUE(valid_address(text)) << text;
  for (const char* text : {"", "-x", "1::2::3", "fe80::1%", "fe80::1%a b", ".x", "x-", ":::"})
    EXPECT_FALSE(valid_address(text)) << text;
}

TEST(VarNames, RefusesNamesThatOthersOwn) {
  EXPECT_TRUE(
      check_var_names({{"docker_version", "1"}, {"env", {{"a", 1}}}, {"_x9", 1}}, "node n1"));
  EXPECT_TRUE(check_var_names({{"ansible_python_interpreter", "/usr/bin/python3"}}, "x"));
  EXPECT_TRUE(check_var_names(nullptr, "x"));
  for (const char* name : {"ansible_host", "ansible_become_pass", "clusterctl_run_id", "hostvars",
                           "inventory_hostname", "groups", "omit", "class", "9lives", "a-b", "a.b",
                           "", "a b", "{{x}}", "vars"}) {
    const auto ok = check_var_names({{name, 1}}, "node n1");
    ASSERT_FALSE(ok) << name;
    EXPECT_EQ(ok.error().reason, "bad_variable");
    EXPECT_NE(ok.error().message.find("node n1"), std::string::npos);
  }
  EXPECT_FALSE(check_var_names(Json::array(), "x"));
  EXPECT_FALSE(check_var_names({{"a", {{"b", {{{"{{ evil }}", 1}}}}}}}, "x"));
  EXPECT_FALSE(check_var_names({{"a", {{"__ansible_vault", "x"}}}}, "x"));
  EXPECT_FALSE(check_var_names({{"a", Json::array({{{"__ansible_unsafe", "x"}}})}}, "x"));
}

TEST(LearntHostKeys, TakesOnlyOurLines) {
  const auto keys = learnt_host_keys(
      "# comment\n\naaaabbbbcccc ssh-rsa AAAAB3NzaC1yc2EAAAADAQ\naaaabbbbcccc ssh-ed25519 "
      "AAAAC3NzaC1lZDI1NTE5AAAA\r\n"
      "|1|hash|hash ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n@revoked x ssh-ed25519 AAAA\nshort\nid2 "
      "ssh-ed25519 {{evil}}AAAAAAAAAAAA\n"
      "dddd ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAA");
  EXPECT_EQ(keys, (std::map<std::string, std::string>{
                      {"aaaabbbbcccc", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA"},
                      {"dddd", "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAA"}}));
}

// The words a shell makes of the arguments, as ssh itself understands them.
std::map<std::string, std::string> ssh_settings(const std::string& args) {
  ProcessSpec spec;
  spec.argv = {"sh", "-c", "exec ssh -G " + args + " 10.0.0.1"};
  spec.env = {{"PATH", "/usr/bin:/bin"}};
  const auto output = run_process(spec, std::chrono::seconds(20));
  EXPECT_TRUE(output && output->status.ok()) << (output ? output->text : output.error().line());
  std::map<std::string, std::string> out;
  for (const std::string& line : split(output ? output->text : "", '\n', true))
    out[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return out;
}

TEST(CommonArgs, SshUnderstandsThem) {
  fleet::Ssh ssh;
  ssh.host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKey";
  ssh.jump = "ops@[2001:db8::5]:2222";
  ssh.extra_args = {"-o", "SetEnv=\"A=b c $(touch x)\"", "-4"};
  const auto settings = ssh_settings(
      common_args({"aaaabbbbcccc", "/keys/my key'%h", "/runs/a b/%n/known_hosts", &ssh}));
  EXPECT_EQ(settings.at("hostkeyalias"), "aaaabbbbcccc");
  EXPECT_EQ(settings.at("globalknownhostsfile"), "/dev/null");
  EXPECT_EQ(settings.at("stricthostkeychecking"), "true");
  EXPECT_EQ(settings.at("identitiesonly"), "yes");
  EXPECT_EQ(settings.at("addressfamily"), "inet");
  EXPECT_EQ(settings.at("setenv"), "A=b c $(touch x)");
  EXPECT_NE(settings.at("userknownhostsfile").find("/runs/a b/"), std::string::npos);
  EXPECT_EQ(settings.at("proxycommand"),
            "ssh -W [%h]:%p -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o "
            "IdentitiesOnly=yes -i '/keys/my key'\\''%%h' -p 2222 -l ops "
            "-- 2001:db8::5");
  ssh.host_key.clear();
  EXPECT_EQ(ssh_settings(common_args({"a", "", "/k", &ssh})).at("stricthostkeychecking"),
            "accept-new");
}

}  // namespace
}  // namespace clusterctl::ansible
