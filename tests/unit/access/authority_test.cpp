// The authority of the API: made once, kept, refused when something is wrong with it.
#include "access/authority.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "fakes/temp_dir.h"
#include "fakes/test_tls.h"

namespace clusterctl::access {
namespace {

using std::chrono::hours;
using testing::HasSubstr;
using testing::Not;

class AuthorityTest : public testing::Test {
 protected:
  fs::path dir() const { return temp_.path() / "api-pki"; }
  Result<Authority> open() const { return Authority::open(dir(), now_); }
  mode_t mode(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(stat((dir() / name).c_str(), &info), 0) << name;
    return info.st_mode & 07777;
  }
  void put(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file_atomic(dir() / name, text, 0600));
  }
  // What open() says, which must be one line with the file's name and what to do.
  Error refused() const {
    const auto result = open();
    EXPECT_FALSE(result);
    if (result) return {};
    EXPECT_THAT(result.error().message, HasSubstr(dir().string()));
    EXPECT_THAT(result.error().message, Not(HasSubstr("\n")));
    EXPECT_NE(result.error().hint, "");
    return result.error();
  }

  TempDir temp_;
  Time now_ = TestAuthority::now_time();
  const std::set<std::string> names_{"localhost", "127.0.0.1", "::1", "controller.example"};
};

TEST_F(AuthorityTest, IsMadeOnceAndKept) {
  const auto first = open();
  ASSERT_TRUE(first) << first.error().line();
  EXPECT_EQ(first->fingerprint().size(), 64u);
  EXPECT_EQ(mode("ca.pem"), 0600u);
  EXPECT_EQ(mode("ca.crt"), 0644u);
  EXPECT_EQ(*read_file(first->certificate_file()), first->certificate().pem);
  EXPECT_THAT(first->certificate().pem, Not(HasSubstr("PRIVATE")));
  EXPECT_GT(first->certificate().not_after - now_, hours(24 * 365 * 9));
  const auto second = open();
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
}

TEST_F(AuthorityTest, IsMadeAnewWhenAStartBrokeOffInTheMiddle) {
  fs::path half = dir();
  half += ".new";
  ASSERT_TRUE(make_dirs(half, 0700));
  ASSERT_TRUE(write_file_atomic(half / "ca.pem", "half", 0600));
  EXPECT_TRUE(open());
  EXPECT_FALSE(fs::exists(half));
}

TEST_F(AuthorityTest, TheServersCertificateIsForTheNamesAndSignedByIt) {
  const auto authority = open();
  ASSERT_TRUE(authority);
  const auto server =
      authority->server({"localhost", "[::1]", "127.0.0.1", "Controller.example."}, now_);
  ASSERT_TRUE(server) << server.error().line();
  EXPECT_EQ(server->names, names_);
  EXPECT_EQ(server->fingerprint, authority->fingerprint());
  const auto chain = read_certificates(server->chain);
  ASSERT_TRUE(chain);
  ASSERT_EQ(chain->size(), 2u);
  EXPECT_TRUE(check_issuer(chain->at(0), chain->at(1)));
  EXPECT_TRUE(check_key(chain->at(0), server->key));
  EXPECT_EQ(chain->at(1).fingerprint, authority->fingerprint());
  EXPECT_FALSE(chain->at(0).authority);
  EXPECT_EQ(mode("server.pem"), 0600u);
}

TEST_F(AuthorityTest, TheServersCertificateIsRenewedInTimeAndForOtherNames) {
  const auto authority = open();
  ASSERT_TRUE(authority);
  const auto first = authority->server(names_, now_);
  ASSERT_TRUE(first);
  EXPECT_EQ(authority->server(names_, now_ + hours(24 * 480))->chain, first->chain);
  const Time late = now_ + hours(24 * 490);
  const auto second = authority->server(names_, late);
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_NE(second->chain, first->chain);
  EXPECT_GT(second->not_after, first->not_after);
  EXPECT_EQ(authority->server(names_, late)->chain, second->chain);
  const auto third = authority->server({"localhost"}, late);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->names, (std::set<std::string>{"localhost"}));
  EXPECT_EQ(open()->server({"localhost"}, late)->chain, third->chain);
}

TEST_F(AuthorityTest, NamesThatAreNoneStandInNoCertificate) {
  const auto authority = open();
  ASSERT_TRUE(authority);
  const auto server = authority->server({"a,DNS:evil.example", "", "x y", "good.example"}, now_);
  ASSERT_TRUE(server) << server.error().line();
  EXPECT_EQ(server->names, (std::set<std::string>{"good.example"}));
}

TEST_F(AuthorityTest, DamagedFilesAreRefusedAndLeftAlone) {
  ASSERT_TRUE(open());
  const std::string good = *read_file(dir() / "ca.pem");
  const size_t middle = good.find("-----BEGIN CERTIFICATE-----");
  const std::string other = TestAuthority::make().certificate.pem;
  for (const std::string& bad :
       {std::string(), std::string("rubbish"), good.substr(0, middle), good.substr(middle),
        good.substr(0, good.size() - 40), good.substr(0, middle) + other,
        good.substr(0, middle) + test_identity().server.pem}) {
    put("ca.pem", bad);
    (void)refused();
    EXPECT_EQ(*read_file(dir() / "ca.pem"), bad);
  }
  fs::remove(dir() / "ca.pem");
  (void)refused();
  EXPECT_FALSE(fs::exists(dir() / "ca.pem"));
}

TEST_F(AuthorityTest, ADamagedCertificateOfTheServerIsRefused) {
  const auto authority = open();
  ASSERT_TRUE(authority);
  ASSERT_TRUE(authority->server(names_, now_));
  const std::string good = *read_file(dir() / "server.pem");
  for (const std::string& bad : {std::string("x"), good.substr(0, good.size() / 2),
                                 test_identity().key + test_identity().server.pem}) {
    put("server.pem", bad);
    const auto result = authority->server(names_, now_);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("server.pem"));
    EXPECT_THAT(result.error().hint, HasSubstr("remove"));
  }
  fs::remove(dir() / "server.pem");
  EXPECT_TRUE(authority->server(names_, now_));
}

TEST_F(AuthorityTest, FilesThatOthersCanReadAreRefused) {
  const auto authority = open();
  ASSERT_TRUE(authority);
  ASSERT_TRUE(authority->server(names_, now_));
  for (const mode_t bad : {0640, 0604, 0660}) {
    ASSERT_EQ(chmod((dir() / "ca.pem").c_str(), bad), 0);
    EXPECT_EQ(refused().reason, "bad_mode");
    ASSERT_EQ(chmod((dir() / "ca.pem").c_str(), 0600), 0);
    ASSERT_EQ(chmod((dir() / "server.pem").c_str(), bad), 0);
    EXPECT_EQ(authority->server(names_, now_).error().reason, "bad_mode");
    ASSERT_EQ(chmod((dir() / "server.pem").c_str(), 0600), 0);
  }
  ASSERT_EQ(chmod(dir().c_str(), 0770), 0);
  EXPECT_EQ(refused().reason, "bad_mode");
}

TEST_F(AuthorityTest, AnExpiredAuthorityIsRefused) {
  ASSERT_TRUE(open());
  now_ += hours(24 * 3700);
  EXPECT_THAT(refused().message, HasSubstr("has expired"));
  now_ -= hours(24 * 3800);
  EXPECT_THAT(refused().message, HasSubstr("not valid before"));
}

class SuppliedTest : public testing::Test {
 protected:
  fs::path put(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file_atomic(temp_.path() / name, text, 0600));
    return temp_.path() / name;
  }
  std::string refusal(const std::string& chain, const std::string& key,
                      const std::string& ca = "") {
    const auto result = read_supplied(put("crt", chain), put("key", key),
                                      ca.empty() ? fs::path() : put("ca", ca), now_);
    return result ? "accepted" : result.error().reason;
  }

  TempDir temp_;
  Time now_ = TestAuthority::now_time();
  const TestAuthority authority_ = TestAuthority::make();
  const TestIdentity good_ = authority_.issue({"a.example"}, hours(-1), hours(100));
};

TEST_F(SuppliedTest, IsTakenWithOrWithoutTheAuthority) {
  const fs::path key = put("key", good_.key);
  const auto whole = read_supplied(put("whole", good_.chain), key, "", now_);
  ASSERT_TRUE(whole) << whole.error().line();
  EXPECT_EQ(whole->fingerprint, authority_.certificate.fingerprint);
  EXPECT_EQ(whole->names, (std::set<std::string>{"a.example"}));
  const auto parts = read_supplied(put("leaf", good_.server.pem), key,
                                   put("ca", authority_.certificate.pem), now_);
  ASSERT_TRUE(parts) << parts.error().line();
  EXPECT_EQ(parts->chain, whole->chain);
  const auto leaf = read_supplied(put("leaf", good_.server.pem), key, "", now_);
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->fingerprint, good_.server.fingerprint);
}

TEST_F(SuppliedTest, IsCheckedAtOnce) {
  const TestIdentity old = authority_.issue({"a.example"}, hours(-10), hours(-1));
  const TestIdentity early = authority_.issue({"a.example"}, hours(1), hours(10));
  const std::string other = TestAuthority::make().certificate.pem;
  EXPECT_EQ(refusal(good_.chain, good_.key), "accepted");
  EXPECT_EQ(refusal(good_.chain, old.key), "key_mismatch");
  EXPECT_EQ(refusal(old.chain, old.key), "expired");
  EXPECT_EQ(refusal(early.chain, early.key), "not_yet_valid");
  EXPECT_EQ(refusal(good_.server.pem, good_.key, other), "wrong_issuer");
  EXPECT_EQ(refusal(authority_.certificate.pem + good_.server.pem, authority_.key), "wrong_issuer");
  EXPECT_EQ(refusal("", good_.key), "bad_certificate");
  EXPECT_EQ(refusal(good_.chain + "-----BEGIN CERTIFICATE-----\nxx\n", good_.key),
            "bad_certificate");
  EXPECT_EQ(refusal(good_.chain, good_.server.pem), "bad_key");
  EXPECT_EQ(refusal(good_.chain, ""), "bad_key");
  EXPECT_EQ(read_supplied(temp_.path() / "none", put("key", good_.key), "", now_).error().reason,
            "no_such_file");
  ASSERT_EQ(chmod(put("key", good_.key).c_str(), 0644), 0);
  EXPECT_EQ(read_supplied(put("crt", good_.chain), temp_.path() / "key", "", now_).error().reason,
            "bad_mode");
}

TEST(CanonicalName, IsOneSpelling) {
  EXPECT_EQ(canonical_name("Host.Example."), "host.example");
  EXPECT_EQ(canonical_name("[FD00:0:0::1]"), "fd00::1");
  EXPECT_EQ(canonical_name("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(canonical_name("10.0.0.1"), "10.0.0.1");
  for (const char* bad : {"", "a b", "a,b", "a\nb", "a:b:c", "*"})
    EXPECT_EQ(canonical_name(bad), "") << bad;
}

TEST(Fingerprint, IsReadInTheUsualForms) {
  const std::string text = sha256_hex("x");
  EXPECT_EQ(parse_fingerprint(text), text);
  std::string colons;
  for (size_t i = 0; i < text.size(); i += 2) colons += text.substr(i, 2) + ":";
  EXPECT_EQ(parse_fingerprint(" " + colons + "\n"), text);
  EXPECT_EQ(parse_fingerprint(text.substr(1)), std::nullopt);
  EXPECT_EQ(parse_fingerprint(text + "0"), std::nullopt);
  EXPECT_EQ(parse_fingerprint("g" + text.substr(1)), std::nullopt);
}

}  // namespace
}  // namespace clusterctl::access
