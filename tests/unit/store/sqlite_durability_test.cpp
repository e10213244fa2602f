// What was reported as committed is there after kill -9, and a full disk loses nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "fakes/temp_dir.h"
#include "operations.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

// Commits pairs of records for ever and reports each number only after its commit has returned.
[[noreturn]] void commit_for_ever(const fs::path& file, int report) {
  auto store = open_sqlite_store(file);
  if (!store) ::_exit(1);
  const size_t start = (*store)->load("pair/")->size() / 2;
  for (uint32_t n = static_cast<uint32_t>(start);; ++n) {
    const std::string number = fmt::format("{:08}", n);
    const std::string value = number + std::string(2000, 'x');
    if (!(*store)->commit(
            {put("pair/" + number + "/a", value), put("pair/" + number + "/b", value)}))
      ::_exit(2);
    if (::write(report, &n, sizeof n) != sizeof n) ::_exit(3);
  }
}

TEST(SqliteDurability, KillNineLosesNothingThatWasReported) {
  TempDir dir;
  const fs::path file = dir.path() / "store.db";
  std::optional<uint32_t> last;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      commit_for_ever(file, ends[1]);
    }
    ::close(ends[1]);
    Fd reader(ends[0]);
    uint32_t n = 0;
    const int before_the_kill = 20 + 40 * round;  // also across a checkpoint of the log
    for (int i = 0; i < before_the_kill; ++i) {
      ASSERT_EQ(::read(reader.get(), &n, sizeof n), static_cast<ssize_t>(sizeof n));
      last = n;
    }
    ::kill(child, SIGKILL);
    while (::read(reader.get(), &n, sizeof n) == sizeof n)
      last = n;  // reported between the last look and the kill
    ::waitpid(child, nullptr, 0);

    const auto store = open_sqlite_store(file);
    ASSERT_TRUE(store) << store.error().line();
    const auto records = (*store)->load("pair/");
    ASSERT_TRUE(records);
    ASSERT_GE(records->size(), 2 * (*last + 1)) << "round " << round;
    ASSERT_EQ(records->size() % 2, 0u) << "half a batch";
    for (size_t i = 0; i < records->size(); i += 2) {
      ASSERT_EQ((*records)[i].key, fmt::format("pair/{:08}/a", i / 2));
      ASSERT_EQ((*records)[i].revision, (*records)[i + 1].revision);
    }
  }
}

// In a process of its own with a small file system of its own, which goes away with it.
int on_a_small_disk(const fs::path& mount_point, bool (*work)(const fs::path&)) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int flags = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (::unshare(flags) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=1m") != 0) {
      ::_exit(77);
    }
    ::_exit(work(mount_point) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CHECK_THAT(condition)                             \
  if (!(condition)) {                                     \
    fmt::print(stderr, "{}: {}\n", __LINE__, #condition); \
    return false;                                         \
  }

bool fill_the_disk(const fs::path& folder) {
  const fs::path ballast = folder / "ballast";
  std::ofstream(ballast) << std::string(200 << 10, 'b');
  uint64_t committed = 0;
  {
    auto store = open_sqlite_store(folder / "store.db");
    CHECK_THAT(store.has_value());
    Result<uint64_t> done = 0;
    for (int i = 0; i < 1000 && done; ++i) {
      done = (*store)->commit({put(fmt::format("a/{:04}", i), std::string(20000, 'x')),
                               put("count", fmt::format("{}", i))});
      if (done) ++committed;
    }
    CHECK_THAT(!done && done.error().code == Code::kUnavailable &&
               done.error().reason == "no_space");
    CHECK_THAT(committed > 5);
    CHECK_THAT((*store)->load("a/")->size() == committed);
    CHECK_THAT((*store)->load("count")->front().value == fmt::format("{}", committed - 1));
    fs::remove(ballast);
    CHECK_THAT(
        (*store)->commit({put("after", "1")}).has_value());  // goes on as soon as there is room
  }
  auto again = open_sqlite_store(folder / "store.db");
  CHECK_THAT(again.has_value());
  CHECK_THAT((*again)->load("a/")->size() == committed);
  CHECK_THAT((*again)->load("after")->size() == 1);
  return true;
}

bool open_on_a_full_disk(const fs::path& folder) {
  std::ofstream(folder / "ballast") << std::string(2 << 20, 'b');
  auto store = open_sqlite_store(folder / "store.db");
  CHECK_THAT(!store && store.error().code == Code::kUnavailable &&
             store.error().reason == "no_space");
  fs::remove(folder / "ballast");
  CHECK_THAT(open_sqlite_store(folder / "store.db").has_value());
  return true;
}

class SmallDisk : public ::testing::TestWithParam<bool (*)(const fs::path&)> {};

TEST_P(SmallDisk, IsAClearErrorAndLosesNothing) {
  TempDir dir;
  const int result = on_a_small_disk(dir.path(), GetParam());
  if (result == 77) GTEST_SKIP() << "this machine lets us mount no tmpfs";
  EXPECT_EQ(result, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, SmallDisk, ::testing::Values(fill_the_disk, open_on_a_full_disk),
                         [](const auto& info) {
                           return info.index == 0 ? "WhileRunning" : "AtStart";
                         });

}  // namespace
}  // namespace clusterctl::store
