// Source of identifiers. Node ids: 12 characters of lower-case base32. Job, run and plan ids: ULID
// (26 characters, lower case, sorts by time, monotonic within a millisecond). Safe to call from any
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/annotations.h"
#include "base/clock.h"

namespace clusterctl {

class Ids {
 public:
  virtual ~Ids() = default;
  virtual std::string node_id() = 0;
  virtual std::string ulid() = 0;
};

class RandomIds final : public Ids {
 public:
  explicit RandomIds(const Clock& clock) : clock_(clock) {}
  std::string node_id() override;
  std::string ulid() override;

 private:
  const Clock& clock_;
  Mutex mutex_;
  uint64_t last_ms_ GUARDED_BY(mutex_) = 0;
  unsigned char random_[10] GUARDED_BY(mutex_) = {};
};

// `bytes` random bytes from the kernel as lower-case hexadecimal: tokens and secrets.
std::string random_hex(size_t bytes);
// `characters` of lower-case base32, five random bits each.
std::string random_base32(size_t characters);

}  // namespace clusterctl
