#include "fleet/patterns.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fleet/subnet.h"

namespace clusterctl::fleet {
namespace {

const std::vector<std::string> kHostile{"-oProxyCommand=touch /tmp/x",
                                        "{{ lookup('pipe','id') }}",
                                        "$(id)",
                                        "`id`",
                                        "a\nb",
                                        std::string("a\0b", 3),
                                        "a b",
                                        "\xff\xfe",
                                        "../../etc/passwd",
                                        "a;b",
                                        "a|b",
                                        "a'b",
                                        "a\"b",
                                        "a{%b%}",
                                        "",
                                        " ",
                                        "\t",
                                        std::string(100000, 'a'),
                                        "-",
                                        ".",
                                        "a.",
                                        "-a",
                                        "a-"};

TEST(Patterns, NamesOfNodes) {
  for (const char* good : {"a", "n1", "node-1.example.com", "0", "a..b"})
    EXPECT_TRUE(is_name(good)) << good;
  EXPECT_TRUE(is_name(std::string(63, 'a')));
  EXPECT_FALSE(is_name(std::string(64, 'a')));
  for (const char* bad : {"N1", "n_1", "é"}) EXPECT_FALSE(is_name(bad)) << bad;
  for (const std::string& bad : kHostile) EXPECT_FALSE(check_name(bad)) << bad;
  EXPECT_NE(check_name("N1").error().hint.find("\"n1\""), std::string::npos);
}

TEST(Patterns, Addresses) {
  for (const char* good :
       {"10.0.0.1", "fd00::1", "::1", "n1", "Node1.Example.com", "1a.example", "3com"}) {
    EXPECT_TRUE(check_addr(good)) << good;
  }
  for (const char* bad : {"10.0.0.300", "1234", "10.0.0.1:22", "fe80::1%eth0", "[::1]", "-a", "a_b",
                          "a..b", "user@host", "10.0.0.1/24"}) {
    EXPECT_FALSE(check_addr(bad)) << bad;
  }
  for (const std::string& bad : kHostile) EXPECT_FALSE(check_addr(bad)) << bad;
}

TEST(Patterns, OneSpellingPerAddress) {
  EXPECT_EQ(canonical_addr("FD00:0:0::1"), "fd00::1");
  EXPECT_EQ(canonical_addr("Node1"), "node1");
  EXPECT_EQ(canonical_addr("10.0.0.1"), "10.0.0.1");
}

TEST(Patterns, AnAddressIsThatOfOneMachine) {
  for (const char* bad :
       {"0.0.0.0", "0.1.2.3", "::", "0:0::0", "255.255.255.255", "224.0.0.1", "239.255.255.255",
        "ff02::1", "FF0E::1", "::ffff:0.0.0.0", "::ffff:224.0.0.1"})
    EXPECT_FALSE(check_addr(bad)) << bad;
  for (const char* good : {"127.0.0.1", "127.9.9.9", "::1", "223.255.255.254", "240.0.0.1",
                           "fd00::11", "fe80::1", "ff::1", "::ffff:10.0.0.1", "ff.example.com"})
    EXPECT_TRUE(check_addr(good)) << good;
  EXPECT_EQ(canonical_addr("::ffff:127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(canonical_addr("::FFFF:7f00:1"), "127.0.0.1");
}

TEST(Patterns, SshSettings) {
  for (const char* good : {"", "root", "svc_ansible", "j.doe", "_x"})
    EXPECT_TRUE(check_ssh_user(good)) << good;
  for (const char* bad : {"-l", "a b", "a@b", "a:b", ".a", "$(id)"})
    EXPECT_FALSE(check_ssh_user(bad)) << bad;
  for (const char* good :
       {"", "jump", "root@jump", "root@10.0.0.1:2222", "[fd00::1]:22", "root@[fd00::1]"}) {
    EXPECT_TRUE(check_ssh_jump(good)) << good;
  }
  for (const char* bad :
       {"@jump", "jump:", "jump:0", "jump:70000", "jump:-1", "a@b@c", "-oProxyCommand=x", "fd00::1",
        "[fd00::1", "[x]:22", "[fd00::1]22", "[fd00::1]:", "jump,other", "a b", "jump:+1"}) {
    EXPECT_FALSE(check_ssh_jump(bad)) << bad;
  }
  EXPECT_FALSE(check_ssh_port(0));
  EXPECT_FALSE(check_ssh_port(65536));
  EXPECT_FALSE(check_ssh_port(-1));
  EXPECT_TRUE(check_ssh_port(65535));
  EXPECT_TRUE(check_ssh_extra_args({"-o", "Compression=yes"}));
  EXPECT_TRUE(check_ssh_extra_args({"-oConnectTimeout=5", "-4"}));
  for (const char* bad :
       {"-oProxyCommand=x", "-oproxycommand x", "-oLocalCommand=x", "-oPermitLocalCommand=yes",
        "-oInclude=/x", "-oKnownHostsCommand=x", "-oProxyUseFdpass=yes", "-oMatch=exec x", "-F/x",
        "-J", "-o", "host", "-oConnectTimeout"}) {
    EXPECT_FALSE(check_ssh_extra_args({bad})) << bad;
  }
  EXPECT_FALSE(check_ssh_extra_args({"-o", "ProxyCommand=x"}));
  EXPECT_FALSE(check_ssh_extra_args({""}));
  EXPECT_FALSE(check_ssh_extra_args({"a\nb"}));
  EXPECT_FALSE(check_ssh_extra_args(std::vector<std::string>(65, "a")));
}

TEST(Patterns, HostKeysLoseTheirComment) {
  const std::string key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ";
  EXPECT_EQ(*check_host_key(key + " root@n1"), key);
  EXPECT_EQ(*check_host_key(""), "");
  for (const char* bad :
       {"ssh-ed25519", "ssh-dss AAAAC3NzaC1lZDI1NTE5AAAAIJ", "AAAA",
        "ssh-rsa AAAA\nother ssh-rsa AAAA", "@cert-authority ssh-rsa AAAAC3NzaC1lZDI1NTE5",
        "ssh-rsa $(id)AAAAAAAAAAAAAAAAAAA"}) {
    EXPECT_FALSE(check_host_key(bad)) << bad;
  }
}

TEST(Patterns, LabelsAndVersions) {
  EXPECT_TRUE(check_label("rack", "r 1, {{ not evaluated }}"));
  EXPECT_TRUE(check_label("example.com/Rack_1", ""));
  EXPECT_FALSE(check_label("", "x"));
  EXPECT_FALSE(check_label("a=b", "x"));
  EXPECT_FALSE(check_label("a", "x\ny"));
  EXPECT_FALSE(check_label("a", std::string(257, 'x')));
  EXPECT_FALSE(check_label("a", "\xff"));
  EXPECT_TRUE(check_version("docker", "5:20.10.24~3-0~debian+1"));
  EXPECT_EQ(check_version("docker", 20.1).error().reason, "number_as_version");
  EXPECT_NE(check_version("docker", 20.1).error().hint.find("quote it"), std::string::npos);
  for (const Json& bad : {Json(true), Json(nullptr), Json(""), Json("a b"), Json("-1"),
                          Json("$(id)"), Json(Json::array())}) {
    EXPECT_FALSE(check_version("docker", bad)) << bad;
  }
}

TEST(Patterns, VariablesAreBounded) {
  EXPECT_TRUE(check_vars(Json::object(), "vars", 100));
  for (const Json& bad : {Json(), Json(1), Json("a=b"), Json::array(), Json(true)}) {
    EXPECT_EQ(check_vars(bad, "vars", 100).error().reason, "not_an_object");
  }
  for (const char* bad : {"", "a-b", "1a", "a b", "é", "{{a}}"}) {
    EXPECT_EQ(check_vars(Json{{bad, 1}}, "vars", 1000).error().reason, "bad_var_name") << bad;
  }
  EXPECT_EQ(check_vars(Json{{"a", std::string(200, 'x')}}, "vars", 100).error().code,
            Code::kTooLarge);
  Json deep = 1;
  for (int i = 0; i < kMaxVarsDepth; ++i) deep = Json::array({deep});
  EXPECT_TRUE(check_vars(Json{{"a", deep}}, "vars", 1000));
  EXPECT_EQ(check_vars(Json{{"a", Json::array({deep})}}, "vars", 1000).error().reason, "too_deep");
  EXPECT_EQ(check_vars(Json{{"a", "\xff"}}, "vars", 1000).error().reason, "bad_utf8");
  EXPECT_EQ(check_vars(Json{{"a", {{"\xff", 1}}}}, "vars", 1000).error().reason, "bad_utf8");
}

TEST(Patterns, MessagesStayOneShortLine) {
  for (const std::string& hostile : kHostile) {
    const std::string line = check_name(hostile).error().line();
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_LT(line.size(), 400u);
  }
}

TEST(Patterns, ANumberIsNoHostName) {
  for (const char* text :
       {"0x7f000001", "0x7f.1", "2130706433", "127.1", "0X7F000001", "0x", "a.0xff", "10.0.0.300"})
    EXPECT_FALSE(check_addr(text)) << text;
  for (const char* text : {"x7f", "0xg", "a0x1", "0x7f.example"})
    EXPECT_TRUE(check_addr(text)) << text;
}

TEST(Patterns, WhatAlwaysMeansThisMachine) {
  for (const char* text :
       {"127.0.0.1", "127.9.9.9", "::1", "0:0::1", "::ffff:127.0.0.1", "localhost", "LocalHost",
        "x.localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
    EXPECT_TRUE(is_loopback(text)) << text;
  for (const char* text : {"10.0.0.1", "::2", "localhost1", "localdomain", "127.example"})
    EXPECT_FALSE(is_loopback(text)) << text;
}

TEST(Patterns, WhatPassesIsHarmless) {
  EXPECT_TRUE(rc::check("names and addresses", [](const std::string& text) {
    if (is_name(text) || is_host_name(text) || is_ip(text)) {
      RC_ASSERT(text[0] != '-');
      RC_ASSERT(text.find_first_of(" \n\t{}$`'\"\\/;|&<>()*?~#%@=,") == std::string::npos);
    }
  }));
}

TEST(Subnet, ContainsBothFamilies) {
  const auto v4 = Subnet::parse("10.0.0.7/23");
  ASSERT_TRUE(v4);
  EXPECT_TRUE(v4->contains("10.0.1.255"));
  EXPECT_FALSE(v4->contains("10.0.2.0"));
  EXPECT_FALSE(v4->contains("fd00::1"));
  EXPECT_FALSE(v4->contains("n1"));
  EXPECT_TRUE(v4->is_edge("10.0.0.0"));
  EXPECT_TRUE(v4->is_edge("10.0.1.255"));
  EXPECT_FALSE(v4->is_edge("10.0.0.255"));
  const auto v6 = Subnet::parse("fd00::/63");
  ASSERT_TRUE(v6);
  EXPECT_TRUE(v6->contains("fd00:0:0:1::5"));
  EXPECT_FALSE(v6->contains("fd00:0:0:2::5"));
  EXPECT_FALSE(v6->is_edge("fd00::"));
  EXPECT_TRUE(Subnet::parse("0.0.0.0/0")->contains("1.2.3.4"));
  EXPECT_TRUE(Subnet::parse("10.0.0.1/32")->contains("10.0.0.1"));
  EXPECT_FALSE(Subnet::parse("10.0.0.1/32")->is_edge("10.0.0.1"));
  for (const char* bad : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                          "fd00::/129", "x/8", "/8", "10.0.0.0/ 8"}) {
    EXPECT_FALSE(Subnet::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace clusterctl::fleet
