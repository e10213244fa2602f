// Bytes on their way to one client. Texts that many clients get are shared, not copied. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/byte_stream.h"

namespace clusterctl::api {

using SharedText = std::shared_ptr<const std::string>;

class OutQueue {
 public:
  enum class Sent { kAll, kBlocked, kGone };

  void push(std::string text);
  void push(SharedText text);
  bool empty() const { return pieces_.empty(); }
  void clear();

  // As much as the connection takes now. `progress`: at least one byte has left.
  Sent send(ByteStream& io, bool& progress);

 private:
  struct Piece {
    std::string own;
    SharedText shared;
    std::string_view view() const { return shared ? *shared : own; }
  };
  void drop_sent(size_t n);

  std::vector<Piece> pieces_;
  size_t first_ = 0;  // the first piece that is not sent
  size_t sent_ = 0;   // of it
};

}  // namespace clusterctl::api
