#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace clusterctl {
namespace {

constexpr int kCodes = static_cast<int>(Code::kInternal) + 1;

TEST(ErrorTable, EveryCodeHasItsOwnRow) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCodes; ++i) {
    const Code code = static_cast<Code>(i);
    EXPECT_TRUE(names.insert(code_name(code)).second)
        << "code " << i << " has no row: it fell back to " << code_name(code);
    EXPECT_GE(http_status(code), 400);
    EXPECT_LT(http_status(code), 600);
  }
}

TEST(ErrorTable, ExitCodesAreTheDocumentedOnes) {
  const std::set<int> documented = {kExitJobFailed,   kExitUsage,    kExitRefused,
                                    kExitUnreachable, kExitInternal, kExitNotAuthorised};
  for (int i = 0; i < kCodes; ++i)
    EXPECT_TRUE(documented.contains(exit_code(static_cast<Code>(i))))
        << code_name(static_cast<Code>(i));
  EXPECT_EQ(exit_code(Code::kJobFailed), 1);
  EXPECT_EQ(exit_code(Code::kInvalid), 64);
  EXPECT_EQ(exit_code(Code::kRefused), 65);
  EXPECT_EQ(exit_code(Code::kConflict), 65);
  EXPECT_EQ(exit_code(Code::kUnavailable), 69);
  EXPECT_EQ(exit_code(Code::kUnauthenticated), 77);
  EXPECT_EQ(exit_code(Code::kForbidden), 77);
}

TEST(ErrorTable, OnlyOurOwnFaultsAre500) {
  for (int i = 0; i < kCodes; ++i) {
    const Code code = static_cast<Code>(i);
    if (code == Code::kInternal || code == Code::kJobFailed) continue;
    EXPECT_NE(http_status(code), 500) << code_name(code);
  }
}

TEST(ErrorTable, AStatusComesBackAsItsCode) {
  for (int i = 0; i < kCodes; ++i) {
    const Code code = static_cast<Code>(i);
    if (code == Code::kJobFailed) continue;
    EXPECT_EQ(code_from_http(http_status(code)), code) << code_name(code);
  }
  EXPECT_EQ(code_from_http(431), Code::kInvalid);
  EXPECT_EQ(code_from_http(599), Code::kInternal);
  EXPECT_EQ(code_from_http(502), Code::kUnavailable);
}

TEST(Error, IsOneLineWhateverIsInIt) {
  const Error error{Code::kInvalid, "x", "first\nsecond\r\x1b[31m\x7f", "do\nthis", {}};
  EXPECT_EQ(error.line(), "first second  [31m  (do this)");
  EXPECT_EQ((Error{Code::kInvalid, "x", "plain", "", {}}).line(), "plain");
}

}  // namespace
}  // namespace clusterctl
