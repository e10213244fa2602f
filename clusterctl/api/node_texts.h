// Lists of nodes as JSON. Rendering a node costs far more than comparing it, so the text of each is
// kept as long as the node is the same, and the list of all as long as the fleet is. Any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/out_queue.h"
#include "base/annotations.h"
#include "fleet/snapshot.h"

namespace clusterctl::api {

class NodeTexts {
 public:
  // `render` makes the JSON of one node, of nothing but the node; called by one thread at a time.
  using Render = std::function<std::string(const fleet::Node&)>;
  explicit NodeTexts(Render render) : render_(std::move(render)) {}

  // {"nodes": [every node, by name]}
  SharedText all(const std::shared_ptr<const fleet::Snapshot>& fleet) EXCLUDES(mutex_);
  // {"nodes": [these, in this order], "next"?: next}
  SharedText list(const std::vector<const fleet::Node*>& nodes, const std::string& next)
      EXCLUDES(mutex_);

 private:
  struct Known {
    fleet::Node node;
    std::string text;
  };
  const std::string& text_of(const fleet::Node& node) REQUIRES(mutex_);
  SharedText join(const std::vector<const fleet::Node*>& nodes, const std::string& next)
      REQUIRES(mutex_);

  const Render render_;
  Mutex mutex_;
  std::map<std::string, Known> known_ GUARDED_BY(mutex_);  // by id
  std::shared_ptr<const fleet::Snapshot> fleet_ GUARDED_BY(mutex_);
  SharedText all_ GUARDED_BY(mutex_);  // of fleet_
};

}  // namespace clusterctl::api
