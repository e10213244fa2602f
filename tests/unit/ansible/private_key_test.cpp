#include "ansible/private_key.h"

#include "ansible/rig.h"

namespace clusterctl::ansible {
namespace {

class PrivateKey : public AnsibleRig {
 protected:
  void make(const std::string& name, const std::string& passphrase, std::vector<std::string> more) {
    ProcessSpec spec;
    spec.argv = {"ssh-keygen", "-q", "-N", passphrase, "-f", (top / name).string()};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.env = env;
    ASSERT_TRUE(run_process(spec, std::chrono::seconds(60))->status.ok());
  }
  std::string verdict(const std::string& name) {
    const auto ok = check_private_key(top / name);
    return ok ? "" : ok.error().message;
  }
};

TEST_F(PrivateKey, EachFaultHasItsOwnMessage) {
  make("good", "", {"-t", "ed25519"});
  make("pem", "", {"-t", "ecdsa", "-m", "PEM"});
  make("locked", "secret phrase", {"-t", "ed25519"});
  make("locked-pem", "secret phrase", {"-t", "ecdsa", "-m", "PEM"});
  EXPECT_EQ(verdict("good"), "");
  EXPECT_EQ(verdict("pem"), "");
  EXPECT_NE(verdict("locked").find("passphrase"), std::string::npos);
  EXPECT_NE(verdict("locked-pem").find("passphrase"), std::string::npos);
  EXPECT_NE(verdict("good.pub").find("public key"), std::string::npos);
  EXPECT_NE(verdict("nothing").find("No such file"), std::string::npos);
  write("text", "hello", 0600);
  EXPECT_NE(verdict("text").find("no private key"), std::string::npos);
  ::chmod((top / "good").c_str(), 0644);
  EXPECT_NE(verdict("good").find("by others"), std::string::npos);
}

}  // namespace
}  // namespace clusterctl::ansible
