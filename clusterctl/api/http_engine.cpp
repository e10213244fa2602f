#include "api/http_engine.h"

#include <fmt/format.h>

#include "api/problem.h"
#include "base/ids.h"
#include "base/log.h"

namespace clusterctl::api {

HttpEngine::HttpEngine(EngineOptions options, Handle handle)
    : options_(std::move(options)),
      handle_(std::move(handle)),
      id_prefix_(random_hex(4)),
      hub_({options_.max_streams, options_.heartbeat, options_.write_timeout, options_.now}),
      loop_(options_, hub_, [this](uint64_t connection, RawRequest request, const Peer& peer) {
        const MutexLock lock(mutex_);
        jobs_.push_back({connection, std::move(request), peer});
        changed_.notify_one();
      }) {}

HttpEngine::~HttpEngine() {
  stop();
}

Status HttpEngine::listen_unix(const fs::path& path, const std::string& group) {
  auto listener = Listener::unix_socket(path, group);
  if (!listener) return fail(listener.error());
  listeners_.push_back(std::move(*listener));
  return {};
}

Result<int> HttpEngine::listen_tcp(const std::string& host, int port,
                                   std::shared_ptr<const TlsServer> tls) {
  auto listener = Listener::tcp(host, port, std::move(tls));
  if (!listener) return fail(listener.error());
  const int bound = listener->port();
  listeners_.push_back(std::move(*listener));
  return bound;
}

Status HttpEngine::start() {
  if (auto started = hub_.start(); !started) return started;
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
  return loop_.start(std::move(listeners_));
}

void HttpEngine::stop() {
  listeners_.clear();
  loop_.stop();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  hub_.stop();
}

void HttpEngine::wake() {
  loop_.wake();
  hub_.wake();
}

void HttpEngine::work() {
  HttplibCodec codec(options_.idle_timeout);
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (jobs_.empty() && !stopping_) changed_.wait(mutex_);
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    loop_.answer(serve(std::move(job), codec));
  }
}

Answer HttpEngine::serve(Job job, HttplibCodec& codec) {
  RawRequest& raw = job.request;
  Request request;
  request.id = fmt::format("{}-{}", id_prefix_, requests_.fetch_add(1) + 1);
  request.method = raw.method;
  request.target = std::move(raw.target);
  request.headers = raw.headers;
  request.body = std::move(raw.body);
  request.peer = std::move(job.peer);

  Response response = call(request);
  response.headers.emplace_back("X-Request-Id", request.id);
  if (response.stream && raw.method != "HEAD" && !hub_.reserve()) {
    response =
        problem_response(Error{Code::kTooMany,
                               "too_many_streams",
                               fmt::format("{} streams are open already", options_.max_streams),
                               "try again",
                               {}});
  }
  Answer answer;
  answer.connection = job.connection;
  if (response.stream && raw.method != "HEAD") {
    answer.bytes = stream_head(raw, response);
    answer.stream = std::move(response.stream);
    answer.chunked = raw.minor == 1;
    answer.heartbeat = response.heartbeat;
  } else {
    answer.keep_alive = raw.keep_alive;
    answer.bytes = codec.encode(raw, response, raw.keep_alive, answer.body);
  }
  return answer;
}

// Libraries below a handler may throw; the client learns nothing of it.
Response HttpEngine::call(Request& request) {
  std::string what;
  try {
    return handle_(request);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "an exception of unknown type";
  }
  log::error("request {}: {} {}: {}", request.id, request.method, loggable_path(request), what);
  return problem_response(Error{Code::kInternal, "", "", "", {}});
}

}  // namespace clusterctl::api
