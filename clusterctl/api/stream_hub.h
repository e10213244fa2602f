// Serves all endless answers of the daemon with one thread: pulls each StreamSource when its client
// can take more, sends heartbeats, and notices clients that are gone. Knows nothing of requests; it
// is handed a connection. All public members may be called from any thread.
//
// A client holds at most one step of its source, and steps that many get are shared. One that takes
// nothing is not pulled; after the write timeout it is dropped.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/deadlines.h"
#include "api/http.h"
#include "base/annotations.h"
#include "base/poller.h"

namespace clusterctl::api {

struct StreamOptions {
  size_t max_streams = 2000;
  std::chrono::milliseconds heartbeat{15'000};
  std::chrono::milliseconds write_timeout{
      30'000};  // a client that takes nothing for so long is dropped
  SteadyClock now;
};

// A connection whose answer is a stream. A place for it must have been reserved.
struct NewStream {
  std::unique_ptr<ByteStream> io;
  OutQueue out;  // what goes first: the head of the answer
  std::unique_ptr<StreamSource> source;
  bool chunked = true;
  bool heartbeat = true;
};

class StreamHub {
 public:
  explicit StreamHub(StreamOptions options);
  ~StreamHub();
  StreamHub(const StreamHub&) = delete;
  StreamHub& operator=(const StreamHub&) = delete;

  Status start();
  // Ends all streams without their last chunk, so that clients see a broken stream and not an end.
  void stop();

  // Takes one of the places; false: all are taken. Given back when the stream ends, or by
  // release().
  bool reserve();
  void release();
  void adopt(NewStream stream);
  // Looks at the clock again (for tests that move it).
  void wake();
  // Places taken.
  size_t count() const { return places_.load(); }

 private:
  struct Stream {
    std::unique_ptr<ByteStream> io;
    OutQueue out;
    std::unique_ptr<StreamSource> source;
    bool chunked = true, heartbeat = true, ended = false, blocked = false;
    uint64_t may_receive = 0;  // bytes in all, while it should only listen
    uint32_t awaits = 0;       // while blocked: what sending waits for
    bool deaf = false;         // reading waits for room to write
    Steady quiet_since{};      // last time something was sent
    std::optional<Steady> poll_at;
    uint64_t crowd = 0;  // 0: none
  };
  // Streams that wait for the same.
  struct Crowd {
    std::shared_ptr<Topic> topic;
    std::set<uint64_t> members;
  };
  struct Mailbox;

  void run();
  void take_mail();
  void open(NewStream fresh);
  void on_event(uint64_t id, uint32_t events);
  void on_due(uint64_t id);
  void pump(uint64_t id, Stream& stream);
  bool step(uint64_t id, Stream& stream);
  bool join(uint64_t id, Stream& stream, std::shared_ptr<Topic> topic);
  void leave(uint64_t id, Stream& stream);
  void look(uint64_t crowd);
  void tell(uint64_t crowd);
  bool flush(Stream& stream);
  void listen(uint64_t id, const Stream& stream);
  void schedule(uint64_t id, const Stream& stream);
  bool client_present(Stream& stream);
  void close(uint64_t id);

  const StreamOptions options_;
  std::atomic<size_t> places_{0};
  Poller poller_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::thread thread_;
  // Below: only the thread.
  std::map<uint64_t, Stream> streams_;
  std::map<uint64_t, Crowd> crowds_;  // numbered like streams
  std::map<const Topic*, uint64_t> crowd_of_;
  Deadlines deadlines_;
  uint64_t last_id_ = 0;
};

}  // namespace clusterctl::api
