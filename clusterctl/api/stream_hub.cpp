#include "api/stream_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"

namespace clusterctl::api {
namespace {

constexpr int kStepsAtOnce = 16;           // then the other streams have their turn
constexpr size_t kMaxReceived = 64 << 10;  // what a client may say while it listens
constexpr std::chrono::milliseconds kMinPoll{1};
constexpr std::string_view kHeartbeat = ": heartbeat\n\n";

void push(OutQueue& out, std::string text, bool chunked) {
  if (text.empty()) return;
  out.push(chunked ? fmt::format("{:x}\r\n{}\r\n", text.size(), text) : std::move(text));
}

void push(OutQueue& out, SharedText text, bool chunked) {
  if (!text || text->empty()) return;
  if (chunked) out.push(fmt::format("{:x}\r\n", text->size()));
  out.push(std::move(text));
  if (chunked) out.push(std::string("\r\n"));
}

}  // namespace

// What other threads leave for the stream thread. Outlives the hub in the hands of sources' wake
// functions.
struct StreamHub::Mailbox {
  Mutex mutex;
  Poller* poller GUARDED_BY(mutex) = nullptr;
  bool stopping GUARDED_BY(mutex) = false;
  std::vector<uint64_t> woken GUARDED_BY(mutex);
  std::vector<NewStream> fresh GUARDED_BY(mutex);

  void wake(uint64_t id) {
    const MutexLock lock(mutex);
    if (!poller) return;
    woken.push_back(id);
    if (woken.size() == 1) poller->wake();
  }
};

StreamHub::StreamHub(StreamOptions options)
    : options_(std::move(options)), mailbox_(std::make_shared<Mailbox>()) {}

StreamHub::~StreamHub() {
  stop();
}

Status StreamHub::start() {
  if (auto opened = poller_.open(); !opened) return opened;
  {
    const MutexLock lock(mailbox_->mutex);
    mailbox_->poller = &poller_;
    mailbox_->stopping = false;
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void StreamHub::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mailbox_->mutex);
    mailbox_->stopping = true;
    poller_.wake();
  }
  thread_.join();
}

bool StreamHub::reserve() {
  size_t taken = places_.load();
  while (taken < options_.max_streams) {
    if (places_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

void StreamHub::release() {
  places_.fetch_sub(1);
}

void StreamHub::adopt(NewStream stream) {
  {
    const MutexLock lock(mailbox_->mutex);
    if (mailbox_->poller) {
      mailbox_->fresh.push_back(std::move(stream));
      poller_.wake();
      return;
    }
  }
  release();  // stopped: the connection closes with `stream`
}

void StreamHub::wake() {
  const MutexLock lock(mailbox_->mutex);
  if (mailbox_->poller) poller_.wake();
}

void StreamHub::run() {
  while (true) {
    const auto& events = poller_.wait(deadlines_.wait(options_.now()));
    for (const Poller::Event& event : events) on_event(event.id, event.events);
    {
      const MutexLock lock(mailbox_->mutex);
      if (mailbox_->stopping) break;
    }
    take_mail();
    for (const uint64_t id : deadlines_.take_due(options_.now())) on_due(id);
  }
  std::vector<NewStream> rest;
  {
    const MutexLock lock(mailbox_->mutex);
    mailbox_->poller = nullptr;
    rest.swap(mailbox_->fresh);
  }
  places_.fetch_sub(rest.size());
  while (!streams_.empty()) close(streams_.begin()->first);
}

void StreamHub::take_mail() {
  std::vector<uint64_t> woken;
  std::vector<NewStream> fresh;
  {
    const MutexLock lock(mailbox_->mutex);
    woken.swap(mailbox_->woken);
    fresh.swap(mailbox_->fresh);
  }
  for (NewStream& stream : fresh) open(std::move(stream));
  for (const uint64_t id : woken) {
    const auto it = streams_.find(id);
    if (it != streams_.end() && !it->second.blocked) pump(id, it->second);
    tell(id);
  }
}

void StreamHub::open(NewStream fresh) {
  const uint64_t id = ++last_id_;
  Stream& stream = streams_[id];
  stream.io = std::move(fresh.io);
  stream.out = std::move(fresh.out);
  stream.may_receive = stream.io->received() + kMaxReceived;
  stream.source = std::move(fresh.source);
  stream.chunked = fresh.chunked;
  stream.heartbeat = fresh.heartbeat;
  stream.quiet_since = options_.now();
  if (!poller_.add(stream.io->fd(), id, EPOLLIN | EPOLLRDHUP)) return close(id);
  stream.source->start([box = mailbox_, id] { box->wake(id); });
  pump(id, stream);
}

void StreamHub::on_event(uint64_t id, uint32_t events) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  Stream& stream = it->second;
  if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0 || !client_present(stream)) {
    return close(id);
  }
  const bool was_blocked = stream.blocked;
  if ((events & stream.awaits) != 0) stream.blocked = false;
  listen(id, stream);
  if (was_blocked && !stream.blocked) pump(id, stream);
}

void StreamHub::on_due(uint64_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return look(id);
  Stream& stream = it->second;
  const Steady now = options_.now();
  if (stream.blocked) return close(id);  // it took nothing for the whole write timeout
  if (stream.heartbeat && now >= stream.quiet_since + options_.heartbeat) {
    push(stream.out, std::string(kHeartbeat), stream.chunked);
  }
  pump(id, stream);
}

// Sends and pulls until the client or the source has enough.
void StreamHub::pump(uint64_t id, Stream& stream) {
  stream.poll_at.reset();
  for (int i = 0; i < kStepsAtOnce; ++i) {
    if (!flush(stream)) return close(id);
    if (stream.blocked) {
      listen(id, stream);
      deadlines_.set(id, stream.quiet_since + options_.write_timeout);
      return;
    }
    if (stream.ended) {
      stream.io->finish();
      return close(id);
    }
    bool more = false;
    try {
      more = step(id, stream);
    } catch (const std::exception& e) {
      log::error("a stream failed: {}", e.what());
      return close(id);
    }
    if (!more) return schedule(id, stream);
  }
  deadlines_.set(id, options_.now());
}

// Asks the source once; false: it has nothing now.
bool StreamHub::step(uint64_t id, Stream& stream) {
  StreamStep step = stream.source->next();
  switch (step.kind) {
    case StreamStep::Kind::kData:
      push(stream.out, std::move(step.text), stream.chunked);
      push(stream.out, std::move(step.shared), stream.chunked);
      return true;
    case StreamStep::Kind::kEnd:
      push(stream.out, std::move(step.text), stream.chunked);
      if (stream.chunked) stream.out.push(std::string("0\r\n\r\n"));
      stream.ended = true;
      return true;
    case StreamStep::Kind::kIdle:
      // Never at once: a source that asks to be polled after 0 ms must not take the whole thread.
      if (step.poll_after) stream.poll_at = options_.now() + std::max(*step.poll_after, kMinPoll);
      return step.topic && join(id, stream, std::move(step.topic));
  }
  return false;
}

// True when the topic was not watched until now: what came since the source looked would be missed,
// so it has to look once more.
bool StreamHub::join(uint64_t id, Stream& stream, std::shared_ptr<Topic> topic) {
  const auto known = crowd_of_.find(topic.get());
  if (known != crowd_of_.end() && known->second == stream.crowd) return false;
  leave(id, stream);
  const bool fresh = known == crowd_of_.end();
  const uint64_t number = fresh ? ++last_id_ : known->second;
  Crowd& crowd = crowds_[number];
  crowd.members.insert(id);
  stream.crowd = number;
  if (!fresh) return false;
  crowd.topic = std::move(topic);
  crowd_of_[crowd.topic.get()] = number;
  crowd.topic->start([box = mailbox_, number] { box->wake(number); });
  if (const auto every = crowd.topic->poll()) deadlines_.set(number, options_.now() + *every);
  return true;
}

void StreamHub::leave(uint64_t id, Stream& stream) {
  const auto it = crowds_.find(std::exchange(stream.crowd, 0));
  if (it == crowds_.end()) return;
  it->second.members.erase(id);
  if (!it->second.members.empty()) return;
  it->second.topic->stop();
  crowd_of_.erase(it->second.topic.get());
  deadlines_.clear(it->first);
  crowds_.erase(it);
}

// Asks a topic that has to be asked.
void StreamHub::look(uint64_t number) {
  const auto it = crowds_.find(number);
  if (it == crowds_.end()) return;
  const std::shared_ptr<Topic> topic = it->second.topic;
  if (const auto every = topic->poll()) deadlines_.set(number, options_.now() + *every);
  if (topic->changed()) tell(number);
}

void StreamHub::tell(uint64_t number) {
  const auto it = crowds_.find(number);
  if (it == crowds_.end()) return;
  const std::vector<uint64_t> members(it->second.members.begin(), it->second.members.end());
  for (const uint64_t id : members) {
    const auto stream = streams_.find(id);
    if (stream != streams_.end() && !stream->second.blocked) pump(id, stream->second);
  }
}

// False when the client is gone. Sets `blocked` when it cannot take more now.
bool StreamHub::flush(Stream& stream) {
  if (stream.out.empty()) return true;
  bool progress = false;
  const Steady begun = options_.now();
  const OutQueue::Sent sent = stream.out.send(*stream.io, progress);
  if (progress) stream.quiet_since = begun;
  stream.blocked = sent == OutQueue::Sent::kBlocked;
  if (stream.blocked) stream.awaits = stream.io->waits_for();
  return sent != OutQueue::Sent::kGone;
}

// What its connection wakes us for. One whose reading waits for room to write would wake us for
// ever with what it has to read.
void StreamHub::listen(uint64_t id, const Stream& stream) {
  uint32_t events = EPOLLRDHUP;
  if (!stream.deaf) events |= EPOLLIN;
  if (stream.blocked) events |= stream.awaits;
  if (stream.deaf) events |= EPOLLOUT;
  poller_.modify(stream.io->fd(), id, events);
}

void StreamHub::schedule(uint64_t id, const Stream& stream) {
  std::optional<Steady> due = stream.poll_at;
  if (stream.heartbeat) {
    const Steady beat = stream.quiet_since + options_.heartbeat;
    if (!due || beat < *due) due = beat;
  }
  if (due) {
    deadlines_.set(id, *due);
  } else {
    deadlines_.clear(id);
  }
}

// Throws away what a listening client sends; false when it has closed or talks too much.
bool StreamHub::client_present(Stream& stream) {
  std::array<char, 4096> scratch;
  while (stream.io->received() <= stream.may_receive) {
    size_t n = 0;
    const ByteStream::Io done = stream.io->read(scratch.data(), scratch.size(), n);
    stream.deaf = done == ByteStream::Io::kBlocked && stream.io->waits_for() == EPOLLOUT;
    if (done != ByteStream::Io::kDone) return done == ByteStream::Io::kBlocked;
  }
  return false;
}

void StreamHub::close(uint64_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  poller_.remove(it->second.io->fd());
  deadlines_.clear(id);
  leave(id, it->second);
  streams_.erase(it);
  release();
}

}  // namespace clusterctl::api
