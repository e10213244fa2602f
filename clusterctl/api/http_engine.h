// The HTTP server: listeners, one thread for connections, one for streams, and workers that run the
// handler. Nothing above this header needs to know how. Set up and stopped by one thread.
//
//   HttpEngine engine(options, [&](Request& r) { return service.handle(r); });
//   engine.listen_unix(path, "clusterctl"); engine.listen_tcp("127.0.0.1", 9007); engine.start(); …
//   engine.stop();
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/connection_loop.h"
#include "api/engine_options.h"
#include "api/http.h"
#include "api/listener.h"
#include "api/stream_hub.h"
#include "base/annotations.h"

namespace clusterctl::api {

class HttpEngine {
 public:
  // Called by several workers at once. A HEAD request gets the answer of its GET; the body is left
  // out here.
  using Handle = std::function<Response(Request&)>;

  HttpEngine(EngineOptions options, Handle handle);
  ~HttpEngine();
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;

  // Before start(). Connections queue from here on and are served after start(). The TCP one
  // returns the port.
  Status listen_unix(const fs::path& path, const std::string& group);
  Result<int> listen_tcp(const std::string& host, int port,
                         std::shared_ptr<const TlsServer> tls = nullptr);

  Status start();
  // Refuses new connections, lets running handlers finish, ends streams. The handler's own objects
  // may be destroyed afterwards.
  void stop();

  size_t streams() const { return hub_.count(); }
  // Looks at the clock again (for tests that move it).
  void wake();

 private:
  struct Job {
    uint64_t connection = 0;
    RawRequest request;
    Peer peer;
  };

  void work();
  Answer serve(Job job, HttplibCodec& codec);
  Response call(Request& request);

  const EngineOptions options_;
  const Handle handle_;
  const std::string id_prefix_;
  std::atomic<uint64_t> requests_{0};
  std::vector<Listener> listeners_;
  StreamHub hub_;
  ConnectionLoop loop_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace clusterctl::api
