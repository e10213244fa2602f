// The bytes of one connection, whatever carries them: a socket as it is, or TLS over it. Nothing
// here ever waits. Belongs to one thread at a time; it may be handed on to another.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/files.h"

namespace clusterctl::api {

class ByteStream {
 public:
  // kBlocked: again when the socket is ready for waits_for(). kGone: the other end has closed, or
  // something is wrong; nothing but destruction may follow.
  enum class Io { kDone, kBlocked, kGone };

  virtual ~ByteStream() = default;
  // At least one byte into `data` when kDone. Nothing that has arrived stays behind in memory here:
  // what was not read shows at the socket.
  virtual Io read(char* data, size_t size, size_t& n) = 0;
  // As much of the parts as goes now, at least one byte when kDone. After kBlocked the next call
  // must begin with the same bytes, and have no fewer.
  virtual Io write(const iovec* parts, size_t count, size_t& n) = 0;
  // Nothing more will be written: tells the other end.
  virtual void finish() = 0;

  // The socket, away from here; then only destruction may follow.
  virtual Fd release() = 0;

  virtual int fd() const = 0;
  // EPOLLIN or EPOLLOUT: what the last kBlocked waits for. Under TLS reading may have to wait for
  // room to write.
  virtual uint32_t waits_for() const = 0;
  // Both ends have agreed on how to speak.
  virtual bool established() const { return true; }
  // All bytes taken from the socket so far.
  virtual uint64_t received() const = 0;
};

// The socket itself; it must be non-blocking or is treated as if.
std::unique_ptr<ByteStream> make_plain_stream(Fd fd);

}  // namespace clusterctl::api
