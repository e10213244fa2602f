#include "client/endpoint.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "client/rest_client.h"

namespace clusterctl::client {
namespace {

TEST(Endpoint, ReadsAllForms) {
  EXPECT_EQ(parse_endpoint("unix:/run/x.sock")->socket, "/run/x.sock");
  EXPECT_EQ(parse_endpoint("unix:///run/x.sock")->socket, "/run/x.sock");
  EXPECT_EQ(parse_endpoint("/run/x.sock")->name, "unix:/run/x.sock");
  EXPECT_EQ(parse_endpoint("http://127.0.0.1:9007/")->url, "http://127.0.0.1:9007");
  EXPECT_EQ(parse_endpoint("10.0.0.1:80")->url, "http://10.0.0.1:80");
  EXPECT_EQ(parse_endpoint("https://ctl.example:443")->url, "https://ctl.example:443");
  EXPECT_TRUE(parse_endpoint("http://[::1]:80")->local);
  EXPECT_TRUE(parse_endpoint("localhost:80")->local);
  EXPECT_FALSE(parse_endpoint("http://10.0.0.1:80")->local);
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (const char* text : {"", "unix:", "unix:relative", "ftp://x", "http://", "http://a b",
                           "http://h:0", "http://h:99999", "http://h:1x", "http://user@h",
                           "http://h/path", "http://h\r\nX: y", "::1", "http://:80"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
  EXPECT_FALSE(parse_endpoint("unix:/" + std::string(200, 'a')));
}

TEST(Endpoint, SeveralAndDefault) {
  EXPECT_EQ(parse_endpoints("")->at(0).name, kDefaultServer);
  EXPECT_FALSE(parse_endpoints(" , "));
  const auto two = parse_endpoints("unix:/a, http://h:1");
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ(two->at(1).name, "http://h:1");
  EXPECT_FALSE(parse_endpoints("unix:/a,ftp://x"));
}

TEST(Token, IsOneWord) {
  char path[] = "/tmp/clusterctl_token_XXXXXX";
  const int fd = mkstemp(path);
  close(fd);
  ASSERT_TRUE(write_file_atomic(path, "abc123\n"));
  EXPECT_EQ(*read_token(path), "abc123");
  for (const char* bad : {"", "two words", "a\nb", "a\x01"}) {
    ASSERT_TRUE(write_file_atomic(path, bad));
    EXPECT_EQ(read_token(path).error().code, Code::kUnauthenticated) << bad;
  }
  unlink(path);
  EXPECT_EQ(exit_code(read_token(path).error().code), kExitNotAuthorised);
}

TEST(Rest, EscapesEverythingThatCouldChangeThePath) {
  EXPECT_EQ(escape("node-1.a_b~"), "node-1.a_b~");
  EXPECT_EQ(escape("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
  EXPECT_EQ(escape(".."), "%2E%2E");
  EXPECT_EQ(escape("ü"), "%C3%BC");
  EXPECT_EQ(
      target({"GET", "/v1/nodes", {{"selector", "a=b,c!=d"}, {"limit", "5"}}, std::nullopt, {}}),
      "/v1/nodes?selector=a%3Db%2Cc%21%3Dd&limit=5");
}

TEST(Problem, KeepsEverything) {
  const Error e = error_from_answer(422, R"({"detail":"refused","code":"placement","hint":"do x",
      "problems":[{"code":"a","message":"m","hint":"h","node":"n1"}, 7, {"message":5}]})");
  EXPECT_EQ(e.code, Code::kRefused);
  EXPECT_EQ(e.reason, "placement");
  EXPECT_EQ(e.message, "refused");
  EXPECT_EQ(e.hint, "do x");
  ASSERT_EQ(e.problems.size(), 2u);
  EXPECT_EQ(e.problems[0], (Problem{"a", "m", "h", "n1"}));
}

TEST(Problem, SurvivesAnything) {
  for (const char* body :
       {"", "<html>", "[]", "{\"detail\":7,\"problems\":{}}", "\xff\xfe", "null"}) {
    const Error e = error_from_answer(503, body);
    EXPECT_EQ(e.code, Code::kUnavailable);
    EXPECT_FALSE(e.message.empty());
  }
  EXPECT_EQ(error_from_answer(418, "").code, Code::kInvalid);
}

}  // namespace
}  // namespace clusterctl::client
