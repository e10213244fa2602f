#include "ansible/timeline.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"

namespace clusterctl::ansible {
namespace {

constexpr size_t kMaxServices = 64;  // of one host
constexpr size_t kSlowest = 5;
constexpr size_t kMaxName = 200;

// Reads the few plain fields of a line that a timeline needs and makes no document of the rest: of
// hundreds of thousands of lines nearly all are results and tasks.
class PlainFields final : public nlohmann::json_sax<Json> {
 public:
  explicit PlainFields(Event& event) : event_(event) {}

  bool null() override { return done(); }
  bool boolean(bool value) override {
    if (flag_) *flag_ = value;
    return done();
  }
  bool number_integer(int64_t value) override {
    if (number_) *number_ = value;
    return done();
  }
  bool number_unsigned(uint64_t value) override {
    if (number_) *number_ = static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    return done();
  }
  bool number_float(double, const std::string&) override { return done(); }
  bool string(std::string& value) override {
    if (text_) text_->swap(value);
    return done();
  }
  bool binary(Json::binary_t&) override { return done(); }
  bool start_object(size_t) override {
    done();
    return ++depth_ <= kMaxDepth;
  }
  bool start_array(size_t) override {
    done();
    return ++depth_ <= kMaxDepth;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
  bool key(std::string& name) override {
    done();
    if (depth_ != 1) return true;
    if (name == "v") number_ = &version;
    if (name == "ms") number_ = &event_.duration_ms;
    if (name == "changed") flag_ = &event_.changed;
    if (name == "ignored") flag_ = &event_.ignored;
    const std::pair<const char*, std::string*> texts[] = {
        {"event", &event_.kind}, {"t", &event_.time},          {"host", &event_.host},
        {"task", &event_.task},  {"service", &event_.service}, {"status", &event_.status},
        {"item", &event_.item}};
    for (const auto& [word, target] : texts) {
      if (name == word) text_ = target;
    }
    return true;
  }

  int64_t version = 0;

 private:
  static constexpr int kMaxDepth = 32;

  bool done() {
    text_ = nullptr;
    number_ = nullptr;
    flag_ = nullptr;
    return true;
  }

  Event& event_;
  std::string* text_ = nullptr;
  int64_t* number_ = nullptr;
  bool* flag_ = nullptr;
  int depth_ = 0;
};

std::optional<Time> time_of(const Event& event) {
  const auto t = parse_time(event.time);
  return t ? std::optional(*t) : std::nullopt;
}

}  // namespace

void RunTimeline::feed_line(std::string_view line) {
  Event plain;
  PlainFields fields(plain);
  if (!Json::sax_parse(line.begin(), line.end(), &fields) || fields.version != 1) return;
  if (plain.kind == "task" || (plain.kind == "result" && !plain.host.empty())) {
    plain.host = one_line(plain.host);
    plain.task = one_line(plain.task);
    plain.service = one_line(plain.service);
    feed(plain);
  } else if (const auto event = decode_event(line)) {
    feed(*event);
  }
}

void RunTimeline::feed(const Event& event) {
  const auto at = time_of(event);
  ++events_;
  if (at) last_ = at;
  if (event.kind == "play") {
    play_ = truncate_utf8(event.play, kMaxName);
    play_hosts_.clear();
    for (const Json& host : event.value) {
      if (host.is_string() && play_hosts_.size() < kMaxHosts)
        play_hosts_.insert(one_line(host.get_ref<const std::string&>()));
    }
  } else if (event.kind == "task") {
    end_task(at);
    current_ = Current{play_, truncate_utf8(event.service, kMaxName),
                       truncate_utf8(event.task, kMaxName), at, play_hosts_};
  } else if (event.kind == "result") {
    feed_result(event, at);
  } else if (event.kind == "stats" || event.kind == "cancelled") {
    end_task(at);
    current_.reset();
  }
}

void RunTimeline::end_task(const std::optional<Time>& at) {
  if (!current_ || !current_->since || !at) return;
  TaskSpan span{current_->service, current_->task, (*at - *current_->since).count()};
  const auto place = std::find_if(slowest_.begin(), slowest_.end(),
                                  [&](const TaskSpan& s) { return s.ms < span.ms; });
  slowest_.insert(place, std::move(span));
  if (slowest_.size() > kSlowest) slowest_.pop_back();
}

void RunTimeline::feed_result(const Event& event, const std::optional<Time>& at) {
  if (hosts_.size() >= kMaxHosts && !hosts_.count(event.host)) return;
  auto& spans = hosts_[event.host];
  auto span = std::find_if(spans.begin(), spans.end(),
                           [&](const ServiceSpan& s) { return s.service == event.service; });
  if (span == spans.end()) {
    if (spans.size() >= kMaxServices) return;
    spans.push_back({truncate_utf8(event.service, kMaxName), {}, {}, 0, 0, 0, "ok"});
    span = spans.end() - 1;
  }
  const std::chrono::milliseconds took(std::clamp<int64_t>(event.duration_ms, 0, INT32_MAX));
  if (at && !span->started) span->started = *at - took;
  if (at) span->ended = at;
  if ((event.status == "failed" || event.status == "unreachable") && !event.ignored)
    span->state = event.status;
  if (!event.item.empty()) return;  // the result of the whole loop comes as well
  span->busy_ms += took.count();
  ++span->tasks;
  span->changed += event.changed;
  // A result may come after the next task was begun, where nodes go on by themselves.
  if (current_ && current_->task == truncate_utf8(event.task, kMaxName))
    current_->waiting_for.erase(event.host);
}

}  // namespace clusterctl::ansible
