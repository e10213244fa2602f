#include "ansible/events.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

constexpr size_t kMaxLine = 4 << 20;
constexpr size_t kMaxText = 4000;

// Text of an event: of any JSON type when absent or null, else a string. On one line, so that no
// reader of ours is led astray.
Status read_text(const Json& object, const char* key, std::string& out) {
  auto text = get_string(object, key);
  if (!text) return fail(text.error());
  out = truncate_utf8(one_line(*text), kMaxText);
  return {};
}

Status read_texts(const Json& object, Event& event) {
  const std::pair<const char*, std::string*> fields[] = {
      {"event", &event.kind},       {"t", &event.time},        {"host", &event.host},
      {"play", &event.play},        {"task", &event.task},     {"service", &event.service},
      {"door", &event.door},        {"action", &event.action}, {"item", &event.item},
      {"status", &event.status},    {"msg", &event.message},   {"name", &event.name},
      {"delegate", &event.delegate}};
  for (const auto& [key, target] : fields) {
    if (auto ok = read_text(object, key, *target); !ok) return ok;
  }
  return {};
}

Status read_numbers(const Json& object, Event& event) {
  const auto n = get_int(object, "n");
  if (!n) return fail(n.error());
  event.n = *n > 0 ? static_cast<uint64_t>(*n) : 0;
  const auto ms = get_int(object, "ms");
  if (!ms) return fail(ms.error());
  event.duration_ms = *ms;
  if (const auto it = object.find("rc"); it != object.end() && it->is_number_integer())
    event.rc = it->get<int64_t>();
  const std::pair<const char*, bool*> flags[] = {
      {"changed", &event.changed}, {"ignored", &event.ignored}, {"module", &event.module}};
  for (const auto& [key, target] : flags) {
    const auto flag = get_bool(object, key);
    if (!flag) return fail(flag.error());
    *target = *flag;
  }
  return {};
}

// The lines of a text field; a wrong type is as good as none, the event itself still counts.
std::vector<std::string> read_lines(const Json& object, const char* key) {
  const auto text = get_string(object, key);
  return text ? evidence_lines(std::string_view(*text).substr(0, kMaxText * 2))
              : std::vector<std::string>();
}

void read_evidence(const Json& object, Event& event) {
  if (event.kind != "result" || event.status == "ok") return;
  event.message_lines = read_lines(object, "msg");
  event.output_lines = read_lines(object, "stderr");
  if (event.output_lines.empty()) event.output_lines = read_lines(object, "stdout");
}

tl::unexpected<Error> bad(std::string_view why) {
  return fail(Code::kInvalid, "bad_event", fmt::format("bad event: {}", why));
}

// What a kind must have beyond the types of its fields.
Status check_kind(const Json& object, Event& event) {
  if (event.kind == "result") {
    if (event.host.empty()) return bad("a result without host");
    if (event.status != "ok" && event.status != "failed" && event.status != "unreachable")
      return bad("a result without a known status");
  } else if (event.kind == "fact") {
    if (event.host.empty() || event.name.empty() || !object.contains("value"))
      return bad("a fact without host, name or value");
    event.value = object.at("value");
  } else if (event.kind == "stats" || event.kind == "play") {
    const auto hosts = object.find("hosts");
    const bool stats = event.kind == "stats";
    if (hosts == object.end() || (stats ? !hosts->is_object() : !hosts->is_array()))
      return bad("no hosts");
    event.value = *hosts;
  } else if (event.kind == "start") {
    return read_text(object, "playbook", event.name);
  } else if (event.kind.empty()) {
    return bad("no kind");
  }
  return {};
}

}  // namespace

Result<Event> decode_event(std::string_view line) {
  if (line.size() > kMaxLine) return bad(fmt::format("a line of {} bytes", line.size()));
  auto object = parse_json_object(line, "event");
  if (!object) return fail(object.error());
  const auto version = get_int(*object, "v");
  if (!version || *version != 1) return bad("its version is not 1");
  Event event;
  if (auto ok = read_texts(*object, event); !ok) return fail(ok.error());
  if (auto ok = read_numbers(*object, event); !ok) return fail(ok.error());
  if (auto ok = check_kind(*object, event); !ok) return fail(ok.error());
  read_evidence(*object, event);
  return event;
}

std::string Cause::line() const {
  std::vector<std::string> parts;
  for (const std::string& part : {host, service, task}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (unreachable) parts = {host, "cannot be reached"};
  parts.push_back(message.empty() ? "failed without a message" : message);
  return one_line(join(parts, ": "));
}

}  // namespace clusterctl::ansible
