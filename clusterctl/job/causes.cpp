#include "job/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace clusterctl::job {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

bool word(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

// Every place where `what` stands as a word of its own becomes `by`.
void replace_word(std::string& text, const std::string& what, std::string_view by) {
  if (what.empty()) return;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    const size_t end = at + what.size();
    const bool whole = (at == 0 || !word(text[at - 1])) && (end == text.size() || !word(text[end]));
    if (whole) text.replace(at, what.size(), by);
    at += whole ? by.size() : 1;
  }
}

// IPv4 addresses, and numbers after "pid" or "process": they differ from node to node and mean the
// same.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!digit(text[i]) || (i > 0 && word(text[i - 1]))) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    int dots = 0;
    while (end < text.size() && (digit(text[end]) || (text[end] == '.' && end + 1 < text.size() &&
                                                      digit(text[end + 1])))) {
      dots += text[end++] == '.';
    }
    const bool pid = out.ends_with("pid ") || out.ends_with("process ") || out.ends_with("PID ");
    out += dots == 3 ? "<addr>" : pid ? "<pid>" : std::string(text.substr(i, end - i));
    i = end;
  }
  return out;
}

// What two failures must have in common.
std::string key_of(const NodeOutcome& n, const fleet::Snapshot* fleet) {
  std::string message = n.message;
  if (fleet) {
    if (const auto it = fleet->nodes.find(n.node); it != fleet->nodes.end())
      replace_word(message, it->second.spec.addr, "<addr>");
  }
  replace_word(message, n.name, "<node>");
  return n.stage + "\n" + n.service + "\n" + n.task + "\n" + n.code + "\n" +
         without_numbers(message);
}

}  // namespace

bool answers_and_refuses(std::string_view code) {
  constexpr std::array<std::string_view, 5> kCodes{"host_key_changed", "host_key_unknown",
                                                   "ssh_auth_refused", "ssh_too_many_keys",
                                                   "ssh_no_common_algorithm"};
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

std::string cause_line(const NodeOutcome& node) {
  std::string out = node.name;
  for (const std::string* part : {&node.service, &node.task, &node.message}) {
    if (!part->empty()) out += ": " + *part;
  }
  return out;
}

std::vector<CauseGroup> group_causes(const Job& job, const fleet::Snapshot* fleet) {
  std::vector<CauseGroup> out;
  std::map<std::string, size_t> by_key;
  for (const NodeOutcome& n : job.nodes) {
    if (n.state != OutcomeState::kFailed && n.state != OutcomeState::kCancelled) continue;
    const auto [it, fresh] = by_key.emplace(key_of(n, fleet), out.size());
    if (fresh) out.push_back({cause_line(n), n.service, n.task, n.message, n.hint, n.code, {}});
    out[it->second].nodes.push_back(n.name);
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const CauseGroup& g) { return g.code != "not_attempted"; });
  return out;
}

std::string cause_summary(const std::vector<CauseGroup>& groups) {
  if (groups.empty()) return "failed";
  const auto nodes = [](size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "node" : "nodes");
  };
  const size_t same = groups[0].nodes.size() - 1;
  size_t others = 0;
  for (const CauseGroup& g : groups) others += g.nodes.size();
  others -= same + 1;
  std::string more;
  if (same) more = "same on " + nodes(same, "other ");
  if (others) more += (more.empty() ? "" : "; ") + nodes(others, "") + " failed otherwise";
  return groups[0].line + (more.empty() ? "" : " (" + more + ")");
}

}  // namespace clusterctl::job
