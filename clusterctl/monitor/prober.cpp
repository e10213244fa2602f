#include "monitor/prober.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace clusterctl::monitor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReadAgain{1000};
constexpr double kJitter = 0.2;  // an interval is so much longer or shorter in all

bool is_probed(const fleet::Node& node) {
  // Behind a jump host a node cannot be reached from here: what runs see of it is all there is.
  return node.spec.acceptance == fleet::Acceptance::kAccepted && !node.spec.addr.empty() &&
         node.spec.ssh.jump.empty();
}

}  // namespace

Prober::Prober(Options options, Host& host, Dialer& dialer, const Clock& clock)
    : options_(std::move(options)), host_(host), dialer_(dialer), clock_(clock) {}

milliseconds Prober::turn(const std::vector<Answer>& answers) {
  const Steady now = options_.now();
  for (const Answer& a : answers) take(a, now);
  give_up_late(now);
  if (now >= next_read_) read_fleet(now);
  judge();
  start_due(now);
  return until_next(now);
}

void Prober::read_fleet(Steady now) {
  next_read_ = now + kReadAgain;
  fleet_ = host_.fleet();
  if (fleet_ == read_) return;
  read_ = fleet_;
  for (auto it = targets_.begin(); it != targets_.end();) {
    const auto node = fleet_->nodes.find(it->first);
    const bool stays = node != fleet_->nodes.end() && is_probed(node->second) &&
                       node->second.spec.addr == it->second.addr &&
                       node->second.spec.ssh.port == it->second.port;
    const auto here = it++;
    if (!stays) forget(here);
  }
  std::vector<const fleet::Node*> added;
  for (const auto& [id, node] : fleet_->nodes) {
    if (is_probed(node) && !targets_.count(id)) added.push_back(&node);
  }
  // A few at once, a whole fleet over one interval.
  const double many = static_cast<double>(added.size());
  const double spread = many / (many + 50.0) * static_cast<double>(options_.interval.count());
  for (const fleet::Node* node : added) {
    const auto it = targets_.emplace(node->id, Target{}).first;
    it->second.addr = node->spec.addr;
    it->second.port = node->spec.ssh.port;
    it->second.due = now + milliseconds(static_cast<int64_t>(options_.chance() * spread));
    due_.insert({it->second.due, it->first});
  }
}

void Prober::forget(Targets::iterator it) {
  due_.erase({it->second.due, it->first});
  if (it->second.probe) {
    dialer_.hang_up(*it->second.probe);
    probes_.erase(*it->second.probe);
  }
  to_judge_.erase(it->first);
  targets_.erase(it);
}

void Prober::take(const Answer& answer, Steady now) {
  const auto probe = probes_.find(answer.probe);
  if (probe == probes_.end()) return;  // given up meanwhile
  const auto it = targets_.find(probe->second);
  probes_.erase(probe);
  if (it != targets_.end()) end_probe(it, answer.ssh, now);
}

void Prober::give_up_late(Steady now) {
  while (!probes_.empty()) {
    const auto first = probes_.begin();
    const auto it = targets_.find(first->second);
    if (it != targets_.end() && it->second.deadline > now) return;
    dialer_.hang_up(first->first);
    probes_.erase(first);
    if (it != targets_.end()) end_probe(it, false, now);
  }
}

void Prober::end_probe(Targets::iterator it, bool there, Steady now) {
  Target& t = it->second;
  t.probe.reset();
  if (there) {
    t.misses = 0;
    t.answered = clock_.now();
    to_judge_.insert(it->first);
  } else {
    if (t.misses == 0) t.first_miss = now;
    t.misses = std::min(t.misses + 1, options_.misses);
    if (t.misses >= options_.misses) to_judge_.insert(it->first);
  }
  const double factor = 1.0 - kJitter / 2 + kJitter * options_.chance();
  t.due = now + milliseconds(
                    static_cast<int64_t>(factor * static_cast<double>(options_.interval.count())));
  due_.insert({t.due, it->first});
}

void Prober::start_due(Steady now) {
  while (!due_.empty() && due_.begin()->first <= now && probes_.size() < options_.parallel) {
    const auto it = targets_.find(due_.begin()->second);
    due_.erase(due_.begin());
    Target& t = it->second;
    t.probe = ++last_probe_;
    t.deadline = now + options_.timeout;
    probes_[*t.probe] = it->first;
    dialer_.dial(*t.probe, t.addr, t.port);
  }
}

bool Prober::present(const std::string& id) const {
  const auto it = fleet_->nodes.find(id);
  return it != fleet_->nodes.end() && it->second.status.presence == fleet::Presence::kDiscovered;
}

// Those that were there and have missed since about the same time, against all that were there.
bool Prober::falls_silent_together(const std::vector<std::string>& gone) const {
  const auto window = options_.interval + options_.interval / 5 + options_.timeout;
  size_t there = 0, most = 0;
  std::vector<Steady> silent;
  for (const auto& [id, t] : targets_) {
    if (!present(id)) continue;
    ++there;
    if (t.misses > 0) silent.push_back(t.first_miss);
  }
  std::sort(silent.begin(), silent.end());
  for (const std::string& id : gone) {
    const Steady at = targets_.at(id).first_miss;
    const auto from = std::lower_bound(silent.begin(), silent.end(), at - window);
    const auto to = std::upper_bound(silent.begin(), silent.end(), at + window);
    most = std::max(most, static_cast<size_t>(to - from));
  }
  return most > 1 && most * 2 > there;
}

bool Prober::majority_is_back() const {
  size_t there = 0, answering = 0;
  for (const auto& [id, t] : targets_) {
    if (!present(id)) continue;
    ++there;
    answering += t.misses == 0 && t.answered.has_value();
  }
  return answering * 2 > there || there == 0;
}

void Prober::judge() {
  if (to_judge_.empty()) return;
  fleet_ = host_.fleet();
  if (isolated_ && majority_is_back()) {
    if (!host_.isolated(std::nullopt, "most nodes answer again")) return;
    isolated_ = false;
    fleet_ = host_.fleet();
    for (const auto& [id, t] : targets_) {
      if (t.misses >= options_.misses) to_judge_.insert(id);
    }
  }
  std::vector<Finding> findings;
  std::vector<std::string> gone;
  for (const std::string& id : to_judge_) {
    const auto node = fleet_->nodes.find(id);
    if (node == fleet_->nodes.end()) continue;
    const Target& t = targets_.at(id);
    const bool there = t.misses == 0;
    const auto wanted = there ? fleet::Presence::kDiscovered : fleet::Presence::kDisappeared;
    if (node->second.status.presence == wanted) continue;
    if (!there && present(id)) gone.push_back(id);
    findings.push_back({id, wanted, t.answered});
  }
  to_judge_.clear();
  if (!isolated_ && !gone.empty() && falls_silent_together(gone)) {
    const std::string message =
        "CONTROLLER_ISOLATED: more than half of the nodes stopped answering within one interval; "
        "their presence is left as it was";
    if (!host_.isolated(clock_.now(), message)) return;  // found again with the next miss
    isolated_ = true;
    log::warn("{}", message);
  }
  if (isolated_) {
    std::erase_if(findings,
                  [](const Finding& f) { return f.presence != fleet::Presence::kDiscovered; });
  }
  if (findings.empty()) return;
  if (auto done = host_.record(findings); !done)
    log::warn("who is there cannot be recorded: {}", done.error().line());
}

milliseconds Prober::until_next(Steady now) const {
  Steady next = next_read_;
  if (!due_.empty() && probes_.size() < options_.parallel)
    next = std::min(next, due_.begin()->first);
  if (!probes_.empty()) {
    if (const auto it = targets_.find(probes_.begin()->second); it != targets_.end())
      next = std::min(next, it->second.deadline);
  }
  const auto wait = std::chrono::ceil<milliseconds>(next - now);
  return std::max(wait, milliseconds(0));
}

}  // namespace clusterctl::monitor
