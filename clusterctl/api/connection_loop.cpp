#include "api/connection_loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "api/problem.h"
#include "base/log.h"

namespace clusterctl::api {
namespace {

constexpr int kAcceptAtOnce = 64;
constexpr uint64_t kFirstConnection = 1000;  // smaller ids are listeners
constexpr size_t kMaxSwallowed = 128 << 20;  // of a refused request

using RealClock = std::chrono::steady_clock;

ssize_t send_some(int fd, std::string_view bytes) {
  ssize_t n = 0;
  do {
    n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n;
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

Response busy(std::string_view what) {
  return problem_response(Error{Code::kUnavailable, "busy", std::string(what), "try again", {}});
}

}  // namespace

ConnectionLoop::ConnectionLoop(const EngineOptions& options, StreamHub& hub, Dispatch dispatch)
    : options_(options),
      hub_(hub),
      dispatch_(std::move(dispatch)),
      codec_(options.idle_timeout),
      last_id_(kFirstConnection) {}

ConnectionLoop::~ConnectionLoop() {
  stop();
}

Status ConnectionLoop::start(std::vector<Listener> listeners) {
  if (auto opened = poller_.open(); !opened) return opened;
  for (Listener& listener : listeners) {
    if (auto added = poller_.add(listener.fd(), accepting_.size() + 1, EPOLLIN); !added) {
      return added;
    }
    accepting_.emplace_back(std::move(listener));
  }
  spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  thread_ = std::thread([this] { run(); });
  return {};
}

void ConnectionLoop::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  poller_.wake();
  thread_.join();
  std::vector<Answer> late;
  const MutexLock lock(mutex_);
  closed_ = true;
  late.swap(answers_);
}

void ConnectionLoop::answer(Answer answer) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    first = answers_.empty();
    answers_.push_back(std::move(answer));
  }
  if (first) poller_.wake();
}

void ConnectionLoop::wake() {
  if (thread_.joinable()) poller_.wake();
}

bool ConnectionLoop::stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

void ConnectionLoop::run() {
  std::optional<RealClock::time_point> drain_end;
  while (!drain_end || (!connections_.empty() && RealClock::now() < *drain_end)) {
    auto timeout = deadlines_.wait(options_.now());
    if (drain_end) timeout = std::chrono::milliseconds(20);
    for (const Poller::Event& event : poller_.wait(timeout)) {
      if (event.id < kFirstConnection) {
        accept_all(event.id - 1);
      } else {
        on_event(event.id);
      }
    }
    take_answers();
    for (const uint64_t id : deadlines_.take_due(options_.now())) on_due(id);
    if (!drain_end && stopping()) {
      begin_drain();
      drain_end = RealClock::now() + options_.drain;
    }
  }
  connections_.clear();
}

void ConnectionLoop::begin_drain() {
  draining_ = true;
  accepting_.clear();
  std::vector<uint64_t> unused;
  for (const auto& [id, c] : connections_) {
    if (c.state == State::kReading || c.state == State::kLingering) unused.push_back(id);
  }
  for (const uint64_t id : unused) drop(id);
}

void ConnectionLoop::take_answers() {
  std::vector<Answer> answers;
  {
    const MutexLock lock(mutex_);
    answers.swap(answers_);
  }
  for (Answer& answer : answers) {
    const uint64_t id = answer.connection;
    const auto it = connections_.find(id);
    if (it != connections_.end()) {
      finish(id, it->second, std::move(answer));
    } else if (answer.stream) {
      hub_.release();
    }
  }
}

void ConnectionLoop::on_event(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  switch (it->second.state) {
    case State::kReading:
      return read(id, it->second);
    case State::kWriting:
      return write(id, it->second);
    case State::kLingering:
      return swallow(id, it->second);
    case State::kHandling:
      return;
  }
}

void ConnectionLoop::on_due(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  Connection& c = it->second;
  if (c.state != State::kReading || c.reader.idle()) return drop(id);
  refuse(id, c, problem_response(408, "request_timeout", "the request took too long to arrive"));
}

void ConnectionLoop::accept_all(size_t index) {
  if (index >= accepting_.size()) return;
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    const int listener = accepting_[index].listener.fd();
    Fd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      admit(index, std::move(fd));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // Else the connection would stay in the queue and wake us for ever.
    log::warn("{}: out of file descriptors, turning a connection away",
              accepting_[index].listener.name());
    spare_.reset();
    Fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return;
  }
}

void ConnectionLoop::admit(size_t index, Fd fd) {
  const std::shared_ptr<const TlsServer>& tls = accepting_[index].listener.tls();
  const bool room = accepting_[index].connections < options_.max_connections || make_room(index);
  if (!room) {
    const Response response = busy("too many connections");
    // Under TLS there is nothing that could be said before the handshake.
    if (!tls) send_some(fd.get(), codec_.encode(RawRequest(), response, false));
    return;
  }
  const uint64_t id = ++last_id_;
  Connection& c = connections_.emplace(id, options_.limits).first->second;
  const Transport transport = accepting_[index].listener.transport();
  const int on = 1;
  if (transport == Transport::kTcp) {
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  c.peer = peer_of(fd.get(), transport);
  c.listener = index;
  c.greeting = tls ? Greeting::kAwaited : Greeting::kDone;
  c.io = tls ? tls->accept(std::move(fd)) : make_plain_stream(std::move(fd));
  ++accepting_[index].connections;
  if (!c.io || !poller_.add(c.io->fd(), id, EPOLLIN | EPOLLONESHOT)) return drop(id);
  due_in(id, options_.idle_timeout);
}

// Drops the oldest connection of a listener that has nothing running. A new one is safe until as
// many newer ones have come as there is room for, so a flood of half-open connections does not shut
// others out.
bool ConnectionLoop::make_room(size_t index) {
  for (const auto& [id, c] : connections_) {
    if (c.listener != index || c.state == State::kHandling || c.state == State::kWriting) continue;
    drop(id);
    return true;
  }
  return false;
}

// The first byte on a TLS listener; false: it was no handshake, or nothing.
bool ConnectionLoop::greet(uint64_t id, Connection& c) {
  char first = 0;
  const ssize_t n = recv(c.io->fd(), &first, 1, MSG_DONTWAIT | MSG_PEEK);
  if (n < 0 && (would_block() || errno == EINTR)) {
    arm(id, c, EPOLLIN);
    return false;
  }
  if (n <= 0) {
    drop(id);
    return false;
  }
  if (first >= 'A' && first <= 'Z') {
    c.io = make_plain_stream(c.io->release());
    c.greeting = Greeting::kDone;
    refuse(id, c,
           problem_response(Error{Code::kInvalid,
                                  "tls_required",
                                  "this port speaks TLS, the request came without",
                                  "use https:// instead of http://",
                                  {}}));
    return false;
  }
  c.greeting = Greeting::kRunning;
  due_in(id, options_.request_timeout);
  return true;
}

void ConnectionLoop::read(uint64_t id, Connection& c) {
  if (c.greeting == Greeting::kAwaited && !greet(id, c)) return;
  size_t n = 0;
  const ByteStream::Io done = c.io->read(scratch_.data(), scratch_.size(), n);
  if (done == ByteStream::Io::kGone) return drop(id);
  if (c.greeting == Greeting::kRunning && c.io->established()) {
    c.greeting = Greeting::kDone;
    due_in(id, options_.idle_timeout);
  }
  if (done == ByteStream::Io::kBlocked) return arm(id, c, c.io->waits_for());
  if (c.reader.idle()) due_in(id, options_.request_timeout);
  c.reader.feed({scratch_.data(), n});
  account(c);
  advance(id, c);
}

// Acts on what the reader has so far.
void ConnectionLoop::advance(uint64_t id, Connection& c) {
  if (c.reader.state() == RequestReader::State::kBad) {
    const Rejection& why = c.reader.rejection();
    return refuse(id, c, problem_response(why.status, why.reason, why.message));
  }
  if (held_ > options_.max_buffered) {
    return refuse(id, c, busy("too many requests are arriving at once"));
  }
  if (c.reader.state() == RequestReader::State::kMore) {
    if (c.reader.take_expectation()) {
      // What does not go now goes before the answer.
      bool progress = false;
      c.out.push(std::string("HTTP/1.1 100 Continue\r\n\r\n"));
      if (c.out.send(*c.io, progress) == OutQueue::Sent::kGone) return drop(id);
    }
    return arm(id, c, EPOLLIN);
  }
  RawRequest request = c.reader.take();
  c.state = State::kHandling;
  c.in_flight = request.body.size();
  account(c);
  deadlines_.clear(id);
  dispatch_(id, std::move(request), c.peer);
}

// The answer is out: on to what the client has sent meanwhile, or to waiting for it.
void ConnectionLoop::expect_request(uint64_t id, Connection& c) {
  c.state = State::kReading;
  c.out.clear();
  c.reader.feed("");
  account(c);
  due_in(id, c.reader.idle() ? options_.idle_timeout : options_.request_timeout);
  advance(id, c);
}

void ConnectionLoop::refuse(uint64_t id, Connection& c, const Response& response) {
  Answer answer;
  answer.bytes = codec_.encode(c.reader.partial(), response, false);
  c.reader = RequestReader(options_.limits);
  finish(id, c, std::move(answer));
}

void ConnectionLoop::finish(uint64_t id, Connection& c, Answer answer) {
  c.in_flight = 0;
  account(c);
  if (answer.stream) {
    poller_.remove(c.io->fd());
    c.out.push(std::move(answer.bytes));
    hub_.adopt({std::move(c.io), std::move(c.out), std::move(answer.stream), answer.chunked,
                answer.heartbeat});
    return drop(id);
  }
  c.state = State::kWriting;
  c.out.push(std::move(answer.bytes));
  c.out.push(std::move(answer.body));
  c.close_after = !answer.keep_alive || draining_;
  due_in(id, options_.write_timeout);
  write(id, c);
}

void ConnectionLoop::write(uint64_t id, Connection& c) {
  bool progress = false;
  const OutQueue::Sent sent = c.out.send(*c.io, progress);
  if (sent == OutQueue::Sent::kGone) return drop(id);
  if (progress) due_in(id, options_.write_timeout);
  if (sent == OutQueue::Sent::kBlocked) return arm(id, c, c.io->waits_for());
  if (c.close_after) return linger(id, c);
  expect_request(id, c);
}

// Closing with unread bytes in the socket would reset the connection and could destroy the answer
// on its way.
void ConnectionLoop::linger(uint64_t id, Connection& c) {
  if (draining_) return drop(id);
  c.state = State::kLingering;
  c.out.clear();
  c.io->finish();
  due_in(id, options_.linger);
  swallow(id, c);
}

void ConnectionLoop::swallow(uint64_t id, Connection& c) {
  // Whatever it is: under TLS it need not even be decrypted.
  const ssize_t n = recv(c.io->fd(), scratch_.data(), scratch_.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && !would_block() && errno != EINTR)) return drop(id);
  if (n > 0) c.swallowed += static_cast<size_t>(n);
  if (c.swallowed > kMaxSwallowed) return drop(id);
  arm(id, c, EPOLLIN);
}

// One event at most until the next call, so that a connection being handled makes no noise.
void ConnectionLoop::arm(uint64_t id, const Connection& c, uint32_t events) {
  poller_.modify(c.io->fd(), id, events | EPOLLONESHOT);
}

void ConnectionLoop::due_in(uint64_t id, std::chrono::milliseconds delay) {
  deadlines_.set(id, options_.now() + delay);
}

void ConnectionLoop::account(Connection& c) {
  const size_t now = c.reader.held() + c.in_flight;
  held_ = held_ + now - c.held;
  c.held = now;
}

void ConnectionLoop::drop(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  Connection& c = it->second;
  if (c.io) poller_.remove(c.io->fd());
  held_ -= c.held;
  deadlines_.clear(id);
  if (c.listener < accepting_.size()) --accepting_[c.listener].connections;
  connections_.erase(it);
}

}  // namespace clusterctl::api
