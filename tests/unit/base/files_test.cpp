#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "fakes/temp_dir.h"

namespace clusterctl {
namespace {

using ::testing::HasSubstr;

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Fd, ClosesExactlyOnce) {
  int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    Fd a(raw);
    Fd b(std::move(a));
    EXPECT_FALSE(a.valid());
    Fd c;
    c = std::move(b);
    EXPECT_EQ(c.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
  Fd d(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  raw = d.release();
  d.reset();
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(ReadFile, GivesAllBytesOrAnErrorNamingThePath) {
  TempDir dir;
  const std::string content("a\0b\xff\n", 5);
  EXPECT_EQ(*read_file(dir.write("x", content)), content);
  EXPECT_EQ(*read_file(dir.write("exact", "12345"), 5), "12345");
  EXPECT_EQ(read_file(dir.write("large", "123456"), 5).error().code, Code::kTooLarge);
  const auto missing = read_file(dir.path() / "none");
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message,
            "cannot open " + (dir.path() / "none").string() + ": No such file or directory");
  EXPECT_FALSE(read_file(dir.path()));
  EXPECT_EQ(read_file("/dev/zero", 1 << 20).error().code, Code::kTooLarge) << "a file without end";
}

TEST(WriteFileAtomic, ReplacesContentAndMode) {
  TempDir dir;
  const fs::path file = dir.path() / "f";
  ASSERT_TRUE(write_file_atomic(file, "one", 0600));
  EXPECT_EQ(mode_of(file), 0600u);
  const mode_t old = ::umask(077);
  ASSERT_TRUE(write_file_atomic(file, "two", 0644));
  ::umask(old);
  EXPECT_EQ(mode_of(file), 0644u) << "exactly the mode that was asked for";
  EXPECT_EQ(dir.read("f"), "two");
  EXPECT_EQ(entries(dir.path()), 1u) << "no temporary file is left";
}

TEST(WriteFileAtomic, FailsCleanly) {
  TempDir dir;
  fs::create_directory(dir.path() / "folder");
  const auto onto_folder = write_file_atomic(dir.path() / "folder", "x");
  ASSERT_FALSE(onto_folder);
  EXPECT_THAT(onto_folder.error().message, HasSubstr((dir.path() / "folder").string()));
  EXPECT_EQ(entries(dir.path()), 1u);
  EXPECT_EQ(write_file_atomic(dir.path() / "none" / "f", "x").error().code, Code::kNotFound);
  EXPECT_FALSE(write_file_atomic("/proc/clusterctl-test", "x"));
}

TEST(WriteFileAtomic, ReadersSeeOldOrNewNeverABit) {
  TempDir dir;
  const fs::path file = dir.path() / "f";
  ASSERT_TRUE(write_file_atomic(file, std::string(100000, 'a')));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i)
      EXPECT_TRUE(write_file_atomic(file, std::string(100000, static_cast<char>('a' + i % 26))));
    stop = true;
  });
  while (!stop) {
    const auto text = read_file(file);
    ASSERT_TRUE(text);
    ASSERT_EQ(text->size(), 100000u);
    ASSERT_EQ(text->find_first_not_of(text->front()), std::string::npos);
  }
  writer.join();
}

TEST(CreateFile, NeverTouchesAnExistingOne) {
  TempDir dir;
  const mode_t old = ::umask(077);
  ASSERT_TRUE(create_file(dir.path() / "f", "mine", 0640));
  ::umask(old);
  EXPECT_EQ(mode_of(dir.path() / "f"), 0640u);
  const auto again = create_file(dir.path() / "f", "yours", 0600);
  EXPECT_EQ(again.error().code, Code::kConflict);
  EXPECT_EQ(again.error().reason, "exists");
  EXPECT_EQ(dir.read("f"), "mine");
  fs::create_symlink(dir.path() / "elsewhere", dir.path() / "link");
  EXPECT_FALSE(create_file(dir.path() / "link", "x", 0600)) << "a link is not followed";
  EXPECT_FALSE(fs::exists(dir.path() / "elsewhere"));
}

TEST(CreateFile, OneOfManyWins) {
  TempDir dir;
  std::atomic<int> won = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { won += create_file(dir.path() / "started", "x", 0600) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
}

TEST(MakeDirs, MakesParentsAndIsIdempotent) {
  TempDir dir;
  const fs::path deep = dir.path() / "a" / "b" / "c";
  ASSERT_TRUE(make_dirs(deep, 0700));
  EXPECT_EQ(mode_of(deep), 0700u);
  EXPECT_TRUE(make_dirs(deep, 0755));
  EXPECT_EQ(mode_of(deep), 0700u);
  ASSERT_TRUE(make_dirs(dir.path().string() + "/d/", 0700));
  EXPECT_EQ(mode_of(dir.path() / "d"), 0700u) << "a slash at the end changes nothing";
  EXPECT_TRUE(make_dirs("/"));
  EXPECT_TRUE(make_dirs(""));
}

TEST(MakeDirs, SaysWhatIsInTheWay) {
  TempDir dir;
  dir.write("file", "");
  EXPECT_EQ(make_dirs(dir.path() / "file").error().reason, "not_a_folder");
  EXPECT_FALSE(make_dirs(dir.path() / "file" / "x"));
  EXPECT_FALSE(make_dirs("/proc/clusterctl-test/x"));
  ASSERT_FALSE(make_dirs(dir.path() / std::string(300, 'x')));
}

TEST(FileLock, ExcludesOthersUntilItEnds) {
  TempDir dir;
  const fs::path file = dir.path() / "lock";
  EXPECT_FALSE(FileLock::held(file)) << "a missing file is free";
  {
    const auto lock = FileLock::acquire(file);
    ASSERT_TRUE(lock);
    EXPECT_EQ(mode_of(file), 0600u);
    EXPECT_TRUE(FileLock::held(file));
    const auto second = FileLock::acquire(file);
    EXPECT_EQ(second.error().code, Code::kConflict);
    EXPECT_EQ(second.error().reason, "locked");
  }
  EXPECT_FALSE(FileLock::held(file));
  EXPECT_TRUE(FileLock::acquire(file));
}

TEST(FileLock, LookingNeverTakesItFromAnOwner) {
  TempDir dir;
  const fs::path file = dir.path() / "lock";
  dir.write("lock", "");
  std::atomic<bool> stop = false;
  std::thread looker([&] {
    while (!stop) FileLock::held(file);
  });
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(FileLock::acquire(file));
  stop = true;
  looker.join();
}

TEST(FileLock, IsFreedByKillNine) {
  TempDir dir;
  const fs::path file = dir.path() / "lock";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(file);
    (void)!::write(ends[1], lock ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ends[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(FileLock::held(file));
  EXPECT_FALSE(FileLock::acquire(file));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(FileLock::held(file));
  EXPECT_TRUE(FileLock::acquire(file));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(FileLock, IsAnOrdinaryFlock) {
  TempDir dir;
  dir.write("lock", "");
  const Fd other(::open((dir.path() / "lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_TRUE(FileLock::held(dir.path() / "lock"));
}

TEST(ErrnoError, SortsTheUsualTroubles) {
  const std::map<int, std::pair<Code, std::string>> cases = {
      {ENOENT, {Code::kNotFound, "no_such_file"}},
      {EACCES, {Code::kForbidden, "io"}},
      {EPERM, {Code::kForbidden, "io"}},
      {EROFS, {Code::kForbidden, "io"}},
      {ENOSPC, {Code::kUnavailable, "no_space"}},
      {EDQUOT, {Code::kUnavailable, "no_space"}},
      {EIO, {Code::kInternal, "io"}}};
  for (const auto& [number, expected] : cases) {
    errno = number;
    const Error error = errno_error("open", "/x");
    EXPECT_EQ(error.code, expected.first) << number;
    EXPECT_EQ(error.reason, expected.second) << number;
    EXPECT_THAT(error.message, HasSubstr("cannot open /x: "));
  }
}

TEST(WriteAll, SaysWhenItCannot) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(full.get(), "x").error().reason, "no_space");
  EXPECT_FALSE(write_all(-1, "x"));
  EXPECT_TRUE(write_all(-1, ""));
}

}  // namespace
}  // namespace clusterctl
