// From what is wanted to what changes: records here, jobs in steps.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/names.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"
#include "fleet/tombstone.h"
#include "plan/steps.h"

namespace clusterctl::plan {
namespace {

using fleet::Node;

// Maps of which each member is a field of its own.
const std::vector<std::string> kMaps{"labels", "ssh", "vars", "versions"};

// Fields that only a job changes while the node is commissioned.
const std::vector<std::string> kOfJobs{"acceptance", "availability", "capabilities", "host_group"};

void compare_maps(const Json& from, const Json& to, const std::string& prefix,
                  std::vector<FieldChange>& out) {
  for (const auto& [key, value] : from.items()) {
    const auto it = to.find(key);
    if (it == to.end()) {
      out.push_back({prefix + key, value, Json(), false});
    } else if (*it != value) {
      out.push_back({prefix + key, value, *it, false});
    }
  }
  for (const auto& [key, value] : to.items()) {
    if (!from.contains(key)) out.push_back({prefix + key, Json(), value, false});
  }
}

void sort_fields(std::vector<FieldChange>& fields) {
  std::sort(fields.begin(), fields.end(),
            [](const FieldChange& a, const FieldChange& b) { return a.field < b.field; });
}

void add_secrets(const std::set<std::string>& names, const Json& vars, const std::string& prefix,
                 std::vector<FieldChange>& out) {
  for (const std::string& name : names) {
    const std::string field = prefix + name;
    const bool listed =
        std::any_of(out.begin(), out.end(), [&](const FieldChange& c) { return c.field == field; });
    const auto it = vars.find(name);
    if (!listed && it != vars.end()) out.push_back({field, *it, *it, true});
  }
}

std::vector<FieldChange> compare_specs(const fleet::NodeSpec& from, const fleet::NodeSpec& to,
                                       const std::set<std::string>& secrets) {
  std::vector<FieldChange> out;
  if (from == to && secrets.empty()) return out;
  const Json a = fleet::to_json(from), b = fleet::to_json(to);
  for (const auto& [key, value] : a.items()) {
    const bool map = std::find(kMaps.begin(), kMaps.end(), key) != kMaps.end();
    if (map) {
      compare_maps(value, b.at(key), key + ".", out);
    } else if (value != b.at(key)) {
      out.push_back({key, value, b.at(key), false});
    }
  }
  add_secrets(secrets, b.at("vars"), "vars.", out);
  sort_fields(out);
  return out;
}

// The spec as it would be: before, and what the document says over it.
Result<fleet::NodeSpec> laid_over(const Node& node, const WantedNode& wanted, Reading reading) {
  if (reading == Reading::kWhole) {
    auto spec = fleet::parse_spec(wanted.spec);
    // A key that was learnt since is no wish that could be taken back.
    if (spec && spec->ssh.host_key.empty()) spec->ssh.host_key = node.spec.ssh.host_key;
    return spec;
  }
  Json patch = wanted.spec;
  if (reading == Reading::kDocument) {
    Json merged = fleet::to_json(node.spec);
    Json whole = Json::object();
    whole["vars"] = Json::object();
    for (const char* key : {"vars", "labels", "versions"}) {
      if (patch.contains(key)) whole[key] = patch[key];
      patch.erase(key);
    }
    merged.merge_patch(patch);
    for (const auto& [key, value] : whole.items()) merged[key] = value;
    return fleet::parse_spec(merged);
  }
  auto spec = fleet::apply_spec_patch(node, {{"spec", patch}});
  if (!spec) return fail(spec.error());
  return std::move(spec->spec);
}

class Differ {
 public:
  Differ(const Surroundings& around, const Wanted& wanted) : around_(around), wanted_(wanted) {
    out_.after = around.snapshot;
    ++out_.after.revision;
    for (const auto& [id, node] : around.snapshot.nodes) by_name_[node.name] = &node;
  }

  Result<Difference> make() {
    globals();
    for (const WantedNode& w : sorted()) named(w);
    gone();
    unique();
    if (problems_.empty() && wanted_.work) {
      add_steps(around_, wanted_, targets_, out_, problems_);
    } else if (problems_.empty()) {
      refuse_work();
    }
    if (!problems_.empty()) return problems_.refuse("nothing is changed");
    sum_up();
    return std::move(out_);
  }

 private:
  std::vector<WantedNode> sorted() {
    std::vector<WantedNode> nodes = wanted_.nodes;
    std::sort(nodes.begin(), nodes.end(),
              [](const WantedNode& a, const WantedNode& b) { return a.name < b.name; });
    for (size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].name == nodes[i - 1].name)
        problem(Code::kInvalid, "twice", nodes[i].name, "stands twice in the document",
                "say everything about a node in one place");
    }
    return nodes;
  }

  void globals() {
    if (!wanted_.globals) return;
    if (auto fine = fleet::check_vars(*wanted_.globals, "globals", fleet::kMaxRequestVarsBytes);
        !fine)
      return problems_.add(fine.error());
    compare_maps(around_.snapshot.globals, *wanted_.globals, "", out_.globals);
    add_secrets(wanted_.secrets, *wanted_.globals, "", out_.globals);
    sort_fields(out_.globals);
    out_.after.globals = *wanted_.globals;
  }

  void named(const WantedNode& w) {
    const auto it = by_name_.find(w.name);
    if (it == by_name_.end()) return added(w);
    const Node& before = *it->second;
    named_.insert(before.id);
    auto spec = laid_over(before, w, wanted_.reading);
    if (!spec) return problems_.add(spec.error(), w.name);
    if (!known_group(*spec, w.name)) return;
    if (same_capabilities(before.spec, *spec)) spec->capabilities = before.spec.capabilities;
    NodeDifference d{before.id, w.name, NodeDifference::What::kChange,
                     compare_specs(before.spec, *spec, w.secrets), false};
    targets_.push_back({before.id, *spec, !w.secrets.empty()});
    if (d.fields.empty()) return;
    Node after = before;
    d.record = fleet::set_spec(after, record_part(before, *spec));
    if (!d.record && !w.secrets.empty()) {  // a new value behind the same reference is a change
      ++after.generation;
      ++after.resource_version;
      d.record = true;
    }
    if (d.record) held(before);
    if (d.record &&
        fleet::canonical_addr(before.spec.addr) != fleet::canonical_addr(after.spec.addr))
      fleet::note_move(after, before.spec.addr, around_.now);
    out_.after.nodes[before.id] = std::move(after);
    out_.nodes.push_back(std::move(d));
  }

  // None are those of the group: two ways to say it.
  bool same_capabilities(const fleet::NodeSpec& a, const fleet::NodeSpec& b) const {
    const auto of = [&](const fleet::NodeSpec& spec) {
      const auto names = around_.catalog.capabilities_for(spec.host_group, spec.capabilities);
      return std::set<std::string>(names.begin(), names.end());
    };
    return a.host_group == b.host_group && of(a) == of(b);
  }

  // What a job has to change stays until its acceptance changes it (kOfJobs).
  static fleet::NodeSpec record_part(const Node& before, const fleet::NodeSpec& wanted) {
    fleet::NodeSpec out = wanted;
    if (!is_commissioned(before)) return out;
    out.host_group = before.spec.host_group;
    out.capabilities = before.spec.capabilities;
    out.availability = before.spec.availability;
    out.acceptance = before.spec.acceptance;
    return out;
  }

  void added(const WantedNode& w) {
    auto request = fleet::parse_new_node({{"name", w.name}, {"spec", w.spec}});
    if (!request) return problems_.add(request.error(), w.name);
    if (!known_group(request->spec, w.name)) return;
    if (around_.catalog.host_group(w.name)) {
      return problem(Code::kInvalid, "reserved_name", w.name, "is the name of a host group",
                     "choose another name");
    }
    Node node;
    node.id = around_.new_id.at(w.name);
    node.name = w.name;
    node.created = around_.now;
    node.spec = std::move(request->spec);
    if (!request->acceptance_given && around_.snapshot.cluster.accept_policy == "manual")
      node.spec.acceptance = fleet::Acceptance::kPending;
    fleet::mark_returned(around_.snapshot, node, around_.now);
    NodeDifference d{node.id, w.name, NodeDifference::What::kAdd,
                     compare_specs(fleet::NodeSpec{}, node.spec, {}), true};
    targets_.push_back({node.id, node.spec, false});
    named_.insert(node.id);
    out_.after.nodes[node.id] = std::move(node);
    out_.nodes.push_back(std::move(d));
  }

  // Named to be removed, or not named at all.
  void gone() {
    for (const std::string& name : wanted_.remove) {
      const auto it = by_name_.find(name);
      if (it == by_name_.end()) continue;  // gone already
      if (named_.count(it->second->id)) {
        problem(Code::kInvalid, "both", name, "is named and to be removed", "decide for one");
      } else if (wanted_.reading == Reading::kWhole && !wanted_.prune) {
        out_.missing.push_back(name);
      } else {
        remove(*it->second);
      }
    }
    if (wanted_.reading != Reading::kDocument) return;
    for (const auto& [name, node] : by_name_) {
      if (named_.count(node->id) || leaving_.count(node->id)) continue;
      // A machine that waits to be let in is nobody's forgotten node.
      if (node->spec.acceptance == fleet::Acceptance::kPending) continue;
      if (wanted_.prune) {
        remove(*node);
      } else {
        out_.missing.push_back(name);
      }
    }
  }

  void remove(const Node& node) {
    leaving_.insert(node.id);
    held(node);
    NodeDifference d{node.id, node.name, NodeDifference::What::kRemove, {}, false};
    if (is_commissioned(node)) {
      targets_.push_back({node.id, node.spec, false, true});
    } else {
      d.record = true;
      out_.after.nodes.erase(node.id);
    }
    out_.nodes.push_back(std::move(d));
  }

  void held(const Node& node) {
    const auto it = around_.busy.find(node.id);
    if (it == around_.busy.end()) return;
    problem(Code::kConflict, "busy", node.name,
            fmt::format("job {} ({}) works on it", it->second.job, it->second.kind),
            fmt::format("wait for it: clusterctl job wait {}", it->second.job));
  }

  bool known_group(const fleet::NodeSpec& spec, const std::string& name) {
    if (spec.host_group.empty() || around_.catalog.host_group(spec.host_group)) return true;
    problem(Code::kInvalid, "unknown_host_group", name,
            fmt::format("there is no host group \"{}\"", spec.host_group),
            "known: " + join(around_.catalog.host_group_names(), ", "));
    return false;
  }

  // Of the fleet as it would be: two nodes may change their addresses with one another.
  void unique() {
    unique_names();
    std::map<std::string, const Node*> owners;
    for (const auto& [id, node] : out_.after.nodes) {
      const std::string addr = fleet::canonical_addr(node.spec.addr);
      if (addr.empty()) continue;
      const auto [it, fresh] = owners.try_emplace(addr, &node);
      if (fresh) continue;
      problem(Code::kConflict, "addr_taken", std::max(node.name, it->second->name),
              fmt::format("{} is the address of node {}", node.spec.addr,
                          std::min(node.name, it->second->name)),
              "give each node its own address");
    }
  }

  void unique_names() {
    for (const auto& [id, node] : out_.after.nodes) {
      const auto it = out_.after.nodes.find(node.name);
      if (it == out_.after.nodes.end() || it->first == id) continue;
      problem(Code::kConflict, "name_taken", node.name,
              fmt::format("is the id of node {}", it->second.name), "choose another name");
    }
    std::map<std::string, std::vector<const Node*>> by_label;
    for (const auto& [id, node] : out_.after.nodes)
      by_label[node.name.substr(0, node.name.find('.'))].push_back(&node);
    for (const auto& [label, nodes] : by_label) {
      for (const Node* a : nodes) {
        for (const Node* b : nodes) {
          if (a->name >= b->name || !fleet::same_name(a->name, b->name)) continue;
          problem(Code::kConflict, "name_taken", b->name,
                  fmt::format("is another spelling of node {}", a->name), "keep one of them");
        }
      }
    }
  }

  // Only records may change, and these fields mean work.
  void refuse_work() {
    for (const Target& t : targets_) {
      const auto it = around_.snapshot.nodes.find(t.id);
      if (it == around_.snapshot.nodes.end() || !is_commissioned(it->second)) continue;
      const Node& node = it->second;
      if (t.leaves) {
        problem(Code::kConflict, "commissioned", node.name,
                fmt::format("is {} and cannot be removed", word(node.status.lifecycle)),
                fmt::format("`clusterctl node decommission {}` first", node.name));
      } else if (record_part(node, t.spec) != t.spec ||
                 (t.spec.allocation != node.spec.allocation &&
                  t.spec.allocation != fleet::Allocation::kInService)) {
        problem(Code::kConflict, "needs_job", node.name,
                "is commissioned: its group, capabilities, availability, acceptance and allocation "
                "need work on the node",
                "apply it with work, or leave them as they are");
      }
    }
  }

  // Fields that only a job could change, on nodes that no job takes: they stay, so they are no
  // change.
  void leave_out() {
    std::set<std::string> worked_on;
    for (const Step& step : out_.steps)
      worked_on.insert(step.plan.targets.begin(), step.plan.targets.end());
    for (NodeDifference& d : out_.nodes) {
      const auto before = around_.snapshot.nodes.find(d.id);
      if (d.what != NodeDifference::What::kChange || worked_on.count(d.id) ||
          !is_commissioned(before->second))
        continue;
      const size_t erased = std::erase_if(d.fields, [](const FieldChange& c) {
        return std::find(kOfJobs.begin(), kOfJobs.end(), c.field) != kOfJobs.end();
      });
      if (erased > 0) out_.left_out.push_back(d.name);
    }
    std::erase_if(out_.nodes, [](const NodeDifference& d) {
      return d.what == NodeDifference::What::kChange && d.fields.empty() && !d.record;
    });
    std::sort(out_.left_out.begin(), out_.left_out.end());
  }

  void sum_up() {
    leave_out();
    std::sort(out_.nodes.begin(), out_.nodes.end(),
              [](const NodeDifference& a, const NodeDifference& b) { return a.name < b.name; });
    for (const NodeDifference& d : out_.nodes) out_.affected.insert(d.name);
    for (const Step& step : out_.steps) {
      for (const std::string& id : step.plan.targets)
        out_.affected.insert(out_.after.nodes.at(id).name);
    }
    for (const Target& t : targets_) {
      if (t.leaves) continue;
      const std::string& name = out_.after.nodes.at(t.id).name;
      const bool out = std::binary_search(out_.left_out.begin(), out_.left_out.end(), name);
      if (!out && !out_.affected.count(name)) ++out_.unchanged;
    }
  }

  void problem(Code code, std::string reason, const std::string& node, std::string message,
               std::string hint) {
    problems_.add(code, Problem{std::move(reason), std::move(message), std::move(hint), node});
  }

  const Surroundings& around_;
  const Wanted& wanted_;
  std::map<std::string, const Node*> by_name_;
  std::set<std::string> named_, leaving_;  // ids
  std::vector<Target> targets_;
  fleet::Problems problems_;
  Difference out_;
};

}  // namespace

Result<Difference> difference(const Surroundings& around, const Wanted& wanted) {
  return Differ(around, wanted).make();
}

Json to_json(const FieldChange& c) {
  Json out{{"field", c.field}, {"from", c.from}, {"to", c.to}};
  if (c.secret_value) out["secret_value"] = true;
  return out;
}

Json to_json(const Difference& d) {
  static constexpr const char* kWords[] = {"add", "change", "remove"};
  Json nodes = Json::array(), globals = Json::array(), steps = Json::array(),
       warnings = Json::array();
  for (const NodeDifference& n : d.nodes) {
    Json fields = Json::array();
    for (const FieldChange& c : n.fields) fields.push_back(to_json(c));
    nodes.push_back(
        {{"name", n.name}, {"what", kWords[static_cast<int>(n.what)]}, {"fields", fields}});
  }
  for (const FieldChange& c : d.globals) globals.push_back(to_json(c));
  for (const Step& s : d.steps) {
    Json step = to_json(s.plan, d.after);
    if (s.removes) step["removes"] = true;
    steps.push_back(std::move(step));
  }
  for (const Problem& w : d.warnings)
    warnings.push_back(
        {{"code", w.code}, {"message", w.message}, {"hint", w.hint}, {"node", w.node}});
  return {{"nodes", nodes},         {"globals", globals},       {"steps", steps},
          {"missing", d.missing},   {"unchanged", d.unchanged}, {"warnings", warnings},
          {"left_out", d.left_out}, {"nothing", d.nothing()}};
}

}  // namespace clusterctl::plan
