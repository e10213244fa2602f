#include "api/node_texts.h"

#include <algorithm>

#include "base/json.h"

namespace clusterctl::api {

SharedText NodeTexts::all(const std::shared_ptr<const fleet::Snapshot>& fleet) {
  const MutexLock lock(mutex_);
  if (fleet == fleet_) return all_;
  std::vector<const fleet::Node*> nodes;
  nodes.reserve(fleet->nodes.size());
  for (const auto& [id, node] : fleet->nodes) nodes.push_back(&node);
  std::sort(nodes.begin(), nodes.end(),
            [](const fleet::Node* a, const fleet::Node* b) { return a->name < b->name; });
  std::erase_if(known_, [&](const auto& entry) { return !fleet->nodes.count(entry.first); });
  all_ = join(nodes, "");
  fleet_ = fleet;
  return all_;
}

SharedText NodeTexts::list(const std::vector<const fleet::Node*>& nodes, const std::string& next) {
  const MutexLock lock(mutex_);
  return join(nodes, next);
}

SharedText NodeTexts::join(const std::vector<const fleet::Node*>& nodes, const std::string& next) {
  std::vector<const std::string*> texts;
  texts.reserve(nodes.size());
  size_t size = next.size() + 64;
  for (const fleet::Node* node : nodes) {
    texts.push_back(&text_of(*node));
    size += texts.back()->size() + 1;
  }
  auto out = std::make_shared<std::string>();
  out->reserve(size);
  *out += next.empty() ? "{\"nodes\":[" : "{\"next\":" + dump_json(next) + ",\"nodes\":[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) *out += ',';
    *out += *texts[i];
  }
  *out += "]}\n";
  return out;
}

// Not by version: seeing a node changes what is shown of it and no version.
const std::string& NodeTexts::text_of(const fleet::Node& node) {
  const auto it = known_.find(node.id);
  if (it != known_.end() && it->second.node == node) return it->second.text;
  return known_.insert_or_assign(node.id, Known{node, render_(node)}).first->second.text;
}

}  // namespace clusterctl::api
