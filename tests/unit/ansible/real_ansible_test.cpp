// Slow: what the real Ansible makes of a rendered run. Skipped, loudly, where it is not installed.
#include "ansible/rig.h"

namespace clusterctl::ansible {
namespace {

class RealAnsible : public AnsibleRig {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/ansible-playbook", X_OK) != 0)
      GTEST_SKIP() << "NOT TESTED: ansible-playbook is not installed";
    AnsibleRig::SetUp();
    add("n1", fleet::Role::kManager);
    write("ansible.cfg", "[defaults]\nforce_valid_group_names = ignore\nroles_path = " +
                             (top / "roles").string() + "\n");
    env["ANSIBLE_CONFIG"] = (top / "ansible.cfg").string();
    env["ANSIBLE_LOCAL_TEMP"] = (top / "tmp").string();
  }
  Json file(const std::string& name) const {
    return parse_json(read_file(top / name).value_or("null"), name).value_or(Json());
  }
};

constexpr const char* kDump = R"(- hosts: clusterctl_targets
  gather_facts: false
  roles: [level]
  tasks:
    - copy:
        dest: "{{ clusterctl_pki_dir }}.{{ inventory_hostname }}"
        content: "{{ {'only_default': only_default, 'node': node, 'request': request, 'typed': typed, 'odd': odd, 'name': clusterctl_cluster_name,
                  'lost': clusterctl_lost, 'groups': group_names, 'keys': odd.keys() | list, 'one': odd.list[0]} | to_json }}"
    - command: {argv: [echo, "{{ odd.list[0] }} {{ odd.quotes }}"]}
    - command: "echo {{ odd.list[1] | quote }}"
    - set_fact: {again: "{{ odd }}"}
    - debug: {msg: "{{ again }} {{ odd.list | join(' ') }}"}
)";

TEST_F(RealAnsible, SlowPrecedenceAndNothingIsEvaluated) {
  const std::string evil = "{{ lookup('pipe', 'touch " + (top / "pwned").string() + "') }}";
  write("roles/level/defaults/main.yml",
        "only_default: default\nnode: default\nrequest: default\n");
  write("roles/level/tasks/main.yml", "[]\n");
  write("playbooks/dump.yml", kDump);
  input.cluster_name = evil;
  input.lost = {{evil, evil, {{"etcd", evil}}}};
  Json& vars = input.hosts[0].vars;
  vars = {{"node", "node"},
          {"request", "node"},
          {"typed",
           {{"yes", "yes"},
            {"octal", "012"},
            {"version", "1.10"},
            {"int", 3},
            {"no", false},
            {"nothing", nullptr}}}};
  vars["odd"] = {{"list", {evil, "$(touch " + (top / "pwned").string() + ")"}},
                 {"quotes", "'\"`\\ \n\t\xc3\xa9"},
                 {"blank key '\" $(x)", evil}};
  input.request_vars = {{"request", "request " + evil}};
  const Output output = run("ansible-playbook", "dump.yml", {"-c", "local"});
  ASSERT_TRUE(output.status.ok()) << output.text;
  const Json seen = file("pki.n1");
  EXPECT_EQ(seen.at("only_default"), "default");
  EXPECT_EQ(seen.at("node"), "node");
  EXPECT_EQ(seen.at("request"), "request " + evil);
  EXPECT_EQ(seen.at("typed"), vars.at("typed"));
  EXPECT_EQ(seen.at("odd"), vars.at("odd"));
  EXPECT_EQ(seen.at("one"), evil);
  EXPECT_EQ(seen.at("name"), evil);
  EXPECT_EQ(seen.at("lost")[0].at("ids").at("etcd"), evil);
  EXPECT_EQ(seen.at("groups"), Json({"clusterctl_targets", "service-master"}));
  EXPECT_FALSE(fs::exists(top / "pwned"));
}

TEST_F(RealAnsible, SlowOrderOfWorkAndAMegabyteOfVariables) {
  add("a9", fleet::Role::kManager);
  add("z1", fleet::Role::kManager);
  input.request_vars = {{"big", std::string(1 << 20, 'x') + "end"}};
  write("playbooks/order.yml",
        "- hosts: clusterctl_targets\n  gather_facts: false\n  tasks:\n"
        "    - copy: {dest: \"{{ clusterctl_pki_dir }}.order\", content: \"{{ "
        "[ansible_play_hosts_all, big | length, big[-3:]] | to_json }}\"}\n"
        "      when: inventory_hostname == 'n1'\n");
  const Output output = run("ansible-playbook", "order.yml", {"-c", "local"});
  ASSERT_TRUE(output.status.ok()) << output.text.substr(0, 2000);
  EXPECT_EQ(file("pki.order"), Json::array({{"n1", "a9", "z1"}, (1 << 20) + 3, "end"}));
}

TEST_F(RealAnsible, SlowSshGetsOurArgumentsFirstAndUnchanged) {
  write("bin/ssh",
        "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >> " + (top / "ssh-args").string() +
            "\nexit 255\n",
        0755);
  fleet::Ssh& ssh = input.hosts[0].ssh;
  ssh.port = 2222;
  ssh.user = "ops";
  ssh.host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKey";
  ssh.extra_args = {"-o", "ProxyCommand=nc -x 'a b' %h %p {{ 1+1 }}"};
  input.private_key = (top / "my key").string();
  write("playbooks/ping.yml", "- hosts: all\n  gather_facts: false\n  tasks: [{ping: }]\n");
  const Output output = run("ansible-playbook", "ping.yml");
  EXPECT_EQ(output.status.code, 4) << output.text;
  const auto words = split(read_file(top / "ssh-args").value_or(""), '\n', true);
  const auto has = [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  EXPECT_TRUE(has("HostKeyAlias=idn1")) << output.text;
  EXPECT_TRUE(has("UserKnownHostsFile=\"" + (top / "run/known_hosts").string() + "\""));
  EXPECT_TRUE(has("StrictHostKeyChecking=yes"));
  EXPECT_TRUE(has("ProxyCommand=nc -x 'a b' %h %p {{ 1+1 }}"));
  EXPECT_TRUE(has("Port=2222"));
  EXPECT_TRUE(has("IdentityFile=\"" + input.private_key + "\""));
  EXPECT_TRUE(has("User=\"ops\""));
  EXPECT_FALSE(has("StrictHostKeyChecking=no"));
}

TEST_F(RealAnsible, SlowThePluginSpeaksOurLanguage) {
  const fs::path plugins = fs::path(SOURCE_DIR) / "playbooks/plugins/callback";
  if (!fs::exists(plugins / "clusterctl_events.py"))
    GTEST_SKIP() << "NOT TESTED: the callback plugin is not there yet";
  write("ansible.cfg", "[defaults]\nforce_valid_group_names = ignore\nroles_path = " +
                           (top / "roles").string() + "\ncallback_plugins = " + plugins.string() +
                           "\ncallbacks_enabled = clusterctl_events\n");
  add("n2", fleet::Role::kManager);
  write("roles/etcd/tasks/main.yml",
        "- name: change something\n  copy: {dest: \"{{ clusterctl_pki_dir }}.x\", content: x}\n"
        "- name: does not matter\n  command: 'false'\n  ignore_errors: true\n"
        "- name: hidden\n  command: echo secret\n  no_log: true\n"
        "- name: loop\n  command: \"echo {{ item }}\"\n  loop: [a, b]\n"
        "- name: report\n  set_fact:\n    clusterctl_service_etcd: {v: 1, version: '3.4.23', "
        "healthy: true, message: ''}\n"
        "- name: start the member\n  fail: {msg: \"no\\nspace\"}\n  when: inventory_hostname == "
        "'n2'\n");
  write("playbooks/site.yml",
        "- hosts: clusterctl_targets\n  gather_facts: false\n  tasks:\n    - include_role: {name: "
        "etcd, tasks_from: main}\n");
  EXPECT_EQ(run("ansible-playbook", "site.yml", {"-c", "local"}).status.code, 2);
  const RunResult r = result();
  EXPECT_EQ(r.bad_lines(), 0);
  ASSERT_TRUE(r.complete());
  EXPECT_EQ(r.cause("n2")->line(), "n2: etcd: start the member: no space");
  EXPECT_EQ(r.cause("n2")->door, "main");
  EXPECT_FALSE(r.cause("n1"));
  EXPECT_TRUE(r.touched("n1"));
  ASSERT_NE(r.fact("n1", "clusterctl_service_etcd"), nullptr);
  EXPECT_TRUE(decode_service_fact(*r.fact("n1", "clusterctl_service_etcd"), Time{})->healthy);
  EXPECT_EQ(r.changed_services("n1"), std::vector<std::string>{"etcd"});
  EXPECT_EQ(r.hosts().at("n1").module_runs, 5);
  EXPECT_EQ(read_file(top / "run/events.jsonl")->find("echo secret"), std::string::npos);
}

}  // namespace
}  // namespace clusterctl::ansible
