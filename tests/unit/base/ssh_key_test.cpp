#include "base/ssh_key.h"

#include <gtest/gtest.h>

namespace clusterctl {
namespace {

// Made with ssh-keygen, and what `ssh-keygen -lf` says of it.
constexpr const char* kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPE4ywSVp8aix709goc839CdNBZ2YjVLf/7e3E3clsnc";
constexpr const char* kFingerprint = "SHA256:CgXN2+w99cFmf8Q67xpChfJtggTcfQukJRNm8cyLauY";

TEST(SshKey, HasTheFingerprintThatSshKeygenShows) {
  EXPECT_EQ(ssh_fingerprint(kKey), kFingerprint);
  EXPECT_EQ(ssh_fingerprint(std::string(kKey) + " somebody@somewhere\n"), kFingerprint);
}

TEST(SshKey, WhatIsNoneHasNone) {
  for (const char* bad : {"", "ssh-ed25519", "ssh-ed25519 x", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIOM",
                          "ssh-unknown AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0",
                          "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA$(id)AAAAAAAAAAA",
                          "restrict ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0"}) {
    EXPECT_EQ(plain_ssh_key(bad), std::nullopt) << bad;
    EXPECT_EQ(ssh_fingerprint(bad), "") << bad;
  }
}

TEST(SshKey, LosesItsComment) {
  EXPECT_EQ(plain_ssh_key(std::string("  ") + kKey + "  me\n"), kKey);
}

}  // namespace
}  // namespace clusterctl
