// One thread that owns all connections whose request is still being read or whose answer is still
// being written, so that slow, silent and half-open clients hold a few bytes and never a worker.
// Complete requests go to `dispatch`; answers come back by answer(). Public members may be called
// from any thread; the rest is the thread's.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/engine_options.h"
#include "api/httplib_codec.h"
#include "api/listener.h"
#include "api/stream_hub.h"
#include "base/annotations.h"
#include "base/poller.h"

namespace clusterctl::api {

// What a worker has made of a request.
struct Answer {
  uint64_t connection = 0;
  std::string bytes;  // the whole answer, or its head, or the head of a stream
  SharedText body;    // after the head
  bool keep_alive = false;
  // A stream, for which a place in the hub is reserved.
  std::unique_ptr<StreamSource> stream;
  bool chunked = true, heartbeat = false;
};

class ConnectionLoop {
 public:
  // Called by the loop's thread; must not wait.
  using Dispatch = std::function<void(uint64_t connection, RawRequest request, const Peer& peer)>;

  ConnectionLoop(const EngineOptions& options, StreamHub& hub, Dispatch dispatch);
  ~ConnectionLoop();
  ConnectionLoop(const ConnectionLoop&) = delete;
  ConnectionLoop& operator=(const ConnectionLoop&) = delete;

  Status start(std::vector<Listener> listeners);
  // Closes the listeners, lets running requests finish for a while, then closes everything.
  void stop();
  // Dropped at once when the loop has been stopped.
  void answer(Answer answer);
  void wake();

 private:
  enum class State { kReading, kHandling, kWriting, kLingering };
  // Of TLS: nothing has come yet, the handshake, behind it (or no TLS).
  enum class Greeting { kAwaited, kRunning, kDone };
  struct Connection {
    explicit Connection(const RequestLimits& limits) : reader(limits) {}
    std::unique_ptr<ByteStream> io;
    Peer peer;
    size_t listener = 0;
    State state = State::kReading;
    Greeting greeting = Greeting::kDone;
    RequestReader reader;
    size_t in_flight = 0;  // bytes of the request that a worker has
    size_t held = 0;       // what is counted of this connection in held_
    OutQueue out;
    bool close_after = false;
    size_t swallowed = 0;
  };
  struct Accepting {
    explicit Accepting(Listener l) : listener(std::move(l)) {}
    Listener listener;
    size_t connections = 0;
  };

  void run();
  void take_answers();
  bool stopping();
  void begin_drain();
  void on_event(uint64_t id);
  void on_due(uint64_t id);
  void accept_all(size_t index);
  void admit(size_t index, Fd fd);
  bool make_room(size_t index);
  bool greet(uint64_t id, Connection& c);
  void read(uint64_t id, Connection& c);
  void advance(uint64_t id, Connection& c);
  void expect_request(uint64_t id, Connection& c);
  void refuse(uint64_t id, Connection& c, const Response& response);
  void finish(uint64_t id, Connection& c, Answer answer);
  void write(uint64_t id, Connection& c);
  void linger(uint64_t id, Connection& c);
  void swallow(uint64_t id, Connection& c);
  void arm(uint64_t id, const Connection& c, uint32_t events);
  void due_in(uint64_t id, std::chrono::milliseconds delay);
  void account(Connection& c);
  void drop(uint64_t id);

  const EngineOptions& options_;
  StreamHub& hub_;
  const Dispatch dispatch_;
  Poller poller_;
  std::thread thread_;
  Mutex mutex_;
  std::vector<Answer> answers_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  // Below: only the thread.
  std::vector<Accepting> accepting_;
  std::map<uint64_t, Connection> connections_;  // ids grow: the first is the oldest
  Deadlines deadlines_;
  HttplibCodec codec_;
  std::array<char, 64 << 10> scratch_;
  Fd spare_;  // given up for a moment to turn a connection away when descriptors have run out
  uint64_t last_id_ = 0;
  size_t held_ = 0;
  bool draining_ = false;
};

}  // namespace clusterctl::api
