// Mutex types whose use clang checks at compile time (-Wthread-safety). With other compilers the
// annotations are empty.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CLUSTERCTL_TSA(x) __attribute__((x))
#else
#define CLUSTERCTL_TSA(x)
#endif

#define GUARDED_BY(m) CLUSTERCTL_TSA(guarded_by(m))
#define REQUIRES(...) CLUSTERCTL_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) CLUSTERCTL_TSA(locks_excluded(__VA_ARGS__))

namespace clusterctl {

class CLUSTERCTL_TSA(capability("mutex")) Mutex {
 public:
  void lock() CLUSTERCTL_TSA(acquire_capability()) { m_.lock(); }
  void unlock() CLUSTERCTL_TSA(release_capability()) { m_.unlock(); }

 private:
  std::mutex m_;
};

class CLUSTERCTL_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& m) CLUSTERCTL_TSA(acquire_capability(m)) : m_(m) { m_.lock(); }
  ~MutexLock() CLUSTERCTL_TSA(release_capability()) { m_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& m_;
};

// Waits with a Mutex held; the caller loops over its own condition, so that clang sees the guarded
// reads.
class CondVar {
 public:
  void wait(Mutex& m) REQUIRES(m) { cv_.wait(m); }
  template <typename TimePoint>
  std::cv_status wait_until(Mutex& m, const TimePoint& t) REQUIRES(m) {
    return cv_.wait_until(m, t);
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

 private:
  std::condition_variable_any cv_;
};

}  // namespace clusterctl
