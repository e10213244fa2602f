#include "base/ids.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace clusterctl {
namespace {

constexpr char kBase32[] = "abcdefghijklmnopqrstuvwxyz234567";
constexpr char kCrockford[] = "0123456789abcdefghjkmnpqrstvwxyz";

void fill_random(unsigned char* out, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = getrandom(out + done, size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::abort();  // the kernel has no randomness: nothing here can be safe
    done += static_cast<size_t>(n);
  }
}

}  // namespace

std::string random_base32(size_t characters) {
  std::string out(characters, '\0');
  fill_random(reinterpret_cast<unsigned char*>(out.data()), out.size());
  for (char& c : out) c = kBase32[static_cast<unsigned char>(c) & 31];
  return out;
}

std::string RandomIds::node_id() {
  return random_base32(12);
}

std::string RandomIds::ulid() {
  MutexLock lock(mutex_);
  const auto now = static_cast<uint64_t>(clock_.now().time_since_epoch().count());
  if (now > last_ms_) {
    last_ms_ = now;
    fill_random(random_, sizeof random_);
    random_[0] &= 0x7f;  // room to count upwards within one millisecond
  } else {
    for (int i = 9; i >= 0 && ++random_[i] == 0; --i) {
    }
  }
  std::string out(26, '0');
  uint64_t ms = last_ms_;
  for (int i = 9; i >= 0; --i, ms >>= 5) out[static_cast<size_t>(i)] = kCrockford[ms & 31];
  unsigned buffer = 0;
  int bits = 0;
  size_t pos = 10;
  for (unsigned char b : random_) {
    buffer = buffer << 8 | b;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out[pos++] = kCrockford[buffer >> bits & 31];
    }
  }
  return out;
}

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  fill_random(raw.data(), bytes);
  std::string out;
  for (unsigned char b : raw) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

}  // namespace clusterctl
