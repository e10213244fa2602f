// Random operations on random fleets against an independent model (model.h) and machines that keep
// their own accounts (world.h), with a failure of the store or of the daemon at a commit of each
// operation. CLUSTERCTL_MODEL_OPERATIONS says how many; the default takes seconds.
//
// What is compared: whether a request is accepted; where its nodes end; that a refusal changes
// nothing and starts nothing; that no run loses a majority or begins a second cluster; that what a
// node is said to be is what is on it; and in the end that there is a way back for every node.
#include "controller/model.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "controller/controller.h"
#include "controller/world.h"
#include "fakes/failing_store.h"
#include "fakes/sanitized.h"
#include "fleet/conditions.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

using fakes::FailingStore;
using fakes::Way;

constexpr int kOperations = fakes::kSanitized ? 40 : 200;
constexpr int kOperationsOfALife = 40;

int operations() {
  const char* given = std::getenv("CLUSTERCTL_MODEL_OPERATIONS");
  return given ? std::atoi(given) : kOperations;
}

using Names = std::vector<std::string>;

class ModelTest : public testing::Test {
 protected:
  ModelTest() : catalog_(*catalog::Catalog::read(SOURCE_DIR "/playbooks/catalog.yml")) {}

  // ---- chance ----
  int any(int n) { return std::uniform_int_distribution<int>(0, n - 1)(chance_); }
  bool one_in(int n) { return any(n) == 0; }
  Names some(int most) {
    Names all = names_;
    std::shuffle(all.begin(), all.end(), chance_);
    all.resize(static_cast<size_t>(1 + any(std::min<int>(most, static_cast<int>(all.size())))));
    return all;
  }

  // ---- one life ----
  void begin_life(unsigned seed) {
    chance_.seed(seed);
    controller_.reset();
    durable_ = store::make_memory_store();
    store_ = std::make_unique<FailingStore>(*durable_);
    world_ = std::make_unique<World>(clock_);
    model_ = std::make_unique<Model>(*world_);
    names_.clear();
    start();
    model_->vip = !one_in(6);
    if (model_->vip) set_vip();
    const int managers = 1 + any(5), workers = any(5);
    for (int i = 1; i <= managers; ++i) add("m" + std::to_string(i), i, true);
    for (int i = 1; i <= workers; ++i) add("w" + std::to_string(i), 10 + i, false);
    synced_ = true;
  }
  void add(const std::string& name, int number, bool manager) {
    const auto node =
        controller_->add_node({{"name", name},
                               {"spec",
                                {{"addr", "10.0.0." + std::to_string(number)},
                                 {"host_group", manager ? "service-master" : "service-worker"}}}});
    ASSERT_TRUE(node) << node.error().line();
    names_.push_back(name);
    world_->machines[name] = {};
    model_->nodes[name].manager = manager;
  }
  void set_vip() {
    EXPECT_TRUE(controller_->set_globals({{"service_vip", "10.0.0.100"}}, true));
    model_->vip = true;
  }
  void start() {
    Settings settings;
    settings.store_retry = std::chrono::milliseconds(1);
    controller_ = std::make_unique<Controller>(
        Deps{*store_, *world_, catalog_, clock_, ids_, {}, std::move(settings)});
    while (!controller_->start()) revive_store();
  }
  void revive_store() { store_ = std::make_unique<FailingStore>(*durable_); }
  void revive() {
    controller_->stop();
    controller_.reset();
    revive_store();
    start();
  }

  // ---- requests ----
  Json random_request() {
    static const Names kKinds{"commission", "commission", "decommission", "decommission",
                              "update",     "update",     "drain",        "activate"};
    Json r{{"kind", kKinds[static_cast<size_t>(any(static_cast<int>(kKinds.size())))]},
           {"nodes", some(3)}};
    const std::string kind = r["kind"];
    // Mostly something that may be possible at all.
    if (!one_in(6)) {
      Names fit;
      for (const std::string& name : names_) {
        const Model::Node& n = model_->nodes[name];
        const bool serves = model_->serves(n) && (!n.seen_down || one_in(4));
        const bool fits = kind == "commission"     ? !model_->in_use(n)
                          : kind == "decommission" ? model_->in_use(n)
                                                   : serves;
        if (fits) fit.push_back(name);
      }
      if (!fit.empty()) {
        std::shuffle(fit.begin(), fit.end(), chance_);
        const int most = one_in(6) ? static_cast<int>(fit.size()) : 1 + any(3);
        fit.resize(std::min(fit.size(), static_cast<size_t>(most)));
        r["nodes"] = fit;
      }
    }
    if (kind == "commission" && one_in(8))
      r["host_group"] = one_in(2) ? "service-master" : "service-worker";
    if ((kind == "commission" || kind == "decommission") && one_in(3)) r["force"] = true;
    bool dead = false;
    for (const std::string& name : r["nodes"].get<Names>())
      dead = dead || model_->nodes[name].seen_down;
    if (kind == "decommission" && (dead ? !one_in(3) : r.contains("force") && one_in(4)))
      r["force"] = r["powered_off"] = true;
    if (kind == "update" && one_in(2)) r["allow_outage"] = true;
    if ((kind == "update" || kind == "drain") && one_in(2))
      r["max_unavailable"] = std::to_string(1 + any(4));
    return r;
  }
  void random_faults(const Json& r) {
    world_->faults.clear();
    if (!one_in(4)) return;
    const std::string kind = r["kind"];
    const Names stages = kind == "commission"     ? Names{"check", "site", "verify"}
                         : kind == "decommission" ? Names{"cleanup"}
                         : kind == "update"       ? Names{"check", "site", "verify"}
                                                  : Names{kind};
    const auto nodes = r["nodes"].get<Names>();
    const std::string host = nodes[static_cast<size_t>(any(static_cast<int>(nodes.size())))];
    const std::string stage = stages[static_cast<size_t>(any(static_cast<int>(stages.size())))];
    world_->faults.push_back({stage, host, one_in(2)});
    if (kind == "commission" && one_in(3)) world_->faults.push_back({"cleanup", host, true});
  }

  // What a client does: the same request with the same key until it is answered; then it waits.
  struct Answer {
    std::optional<job::Job> job;
    std::optional<Error> refused;
  };
  Answer ask(const Json& body) {
    const std::string key = "k" + std::to_string(++keys_);
    for (;;) {
      const auto accepted = controller_->create_job(body, "test", key);
      if (!accepted && accepted.error().reason != "no_space") return {{}, accepted.error()};
      if (accepted) {
        const std::string id = accepted->job->id;
        for (;;) {
          const auto job = controller_->current(id);
          if (store_->dead() || !job) break;
          if (job::is_final(job->state)) return {*job, {}};
          std::this_thread::yield();
        }
      }
      if (store_->dead()) revive();
    }
  }

  // ---- what is known ----
  fleet::Node node(const std::string& name) { return *controller_->fleet()->by_name(name); }
  // The model learns what became of the nodes.
  void learn() {
    for (const std::string& name : names_) {
      const fleet::Node n = node(name);
      Model::Node& m = model_->nodes[name];
      m.lifecycle = std::string(fleet::word(n.status.lifecycle));
      m.verified = n.status.applied.has_value();
      m.seen_down = n.status.presence == fleet::Presence::kDisappeared;
      m.manager = plan::role_of(catalog_, n) == fleet::Role::kManager;
      if (n.status.applied) m.availability = fleet::word(n.status.applied->availability);
    }
  }
  // Everybody is looked at: what the controller knows is what is true.
  void look() {
    world_->faults.clear();
    for (const std::string& name : names_) {
      const bool seen_down = node(name).status.presence == fleet::Presence::kDisappeared;
      if (seen_down == world_->machines[name].up) ask({{"kind", "check"}, {"nodes", {name}}});
    }
    ask({{"kind", "observe"}});
    learn();
    synced_ = true;
    for (const std::string& name : names_) {
      EXPECT_EQ(node(name).status.presence == fleet::Presence::kDisappeared,
                !world_->machines[name].up && model_->nodes[name].seen_down)
          << name;
    }
  }
  // The model answers exactly where nothing is half done: every member serves, every serving
  // manager is a member, and a majority answers.
  bool exact() {
    if (!synced_) return false;
    for (const std::string& service : world_->quorum_services) {
      if (!world_->majority(service)) return false;
      for (const std::string& m : world_->members(service)) {
        const Model::Node& n = model_->nodes[m];
        if (!n.manager || !model_->serves(n)) return false;
      }
      for (const auto& [name, n] : model_->nodes) {
        if (n.manager && model_->in_use(n) && !world_->members(service).count(name)) return false;
      }
    }
    return true;
  }

  // ---- one operation ----
  void operate() {
    if (one_in(8)) return power();
    Json r = random_request();
    const bool off = r.value("powered_off", false);
    if (off) {  // who says so has done so
      for (const std::string& name : r["nodes"].get<Names>()) {
        if (world_->machines[name].up) synced_ = false;
        world_->machines[name].up = false;
      }
    }
    if (off && one_in(2)) look();
    random_faults(r);
    judge(r);
  }
  void power() {
    const std::string name = some(1)[0];
    bool& up = world_->machines[name].up;
    if (up && one_in(2)) return;  // most of them are up most of the time
    up = !up;
    synced_ = false;
    if (!one_in(3)) look();
  }

  void judge(const Json& r) {
    const bool sure = exact();
    const std::string expected = model_->judge(r);
    const auto faults = world_->faults;
    const auto before = model_->nodes;
    const auto nodes_before = controller_->fleet()->nodes;
    const size_t runs_before = world_->runs();
    const auto way = static_cast<Way>(any(3));
    const int at = 1 + any(kind_commits_[r["kind"]] + 1);
    store_->arm(way, at);
    const Answer answer = ask(r);
    note_failure(r["kind"], way, at);
    learn();
    if (sure) ++compared_;
    if (answer.refused) {
      ++refused_;
      Names codes;
      for (const Problem& p : answer.refused->problems) codes.push_back(p.code);
      for (const std::string& code : codes) ++codes_[code];
      if (sure) {
        EXPECT_THAT(codes, testing::Contains(expected)) << tell(r, answer);
      }
      EXPECT_EQ(controller_->fleet()->nodes, nodes_before) << "a refusal changes nothing: " << r;
      EXPECT_EQ(world_->runs(), runs_before) << "a refusal starts nothing: " << r;
    } else {
      ++accepted_;
      if (sure) {
        EXPECT_EQ(expected, "") << "should have been refused: " << tell(r, answer);
        if (expected.empty()) check_ends(r, before, faults, *answer.job);
      }
      if (r.value("powered_off", false)) bury(r);
    }
    check_truth(r);
    // A job that broke off may have left changes behind that nobody has looked at since.
    if (answer.job && answer.job->state != job::State::kSucceeded) {
      synced_ = false;
      if (!one_in(3)) look();
    }
  }
  // How many commits work of this kind has, and which of them have failed in which way.
  void note_failure(const std::string& kind, Way way, int at) {
    kind_commits_[kind] = std::max(kind_commits_[kind], store_->commits());
    // A daemon that died has another store by now; then it was hit.
    if (store_->hit() || store_->commits() == 0) hits_[kind].insert({at, way});
    store_->arm(Way::kRefusedOnce, 0);
  }
  // A cluster of which every member is off for good is no more.
  void bury(const Json& r) {
    const auto gone = r["nodes"].get<Names>();
    world_->forget_cluster_of(gone);
  }

  static bool failing(const std::vector<World::Fault>& faults, const std::string& name,
                      const std::string& stage = "") {
    return std::any_of(faults.begin(), faults.end(), [&](const World::Fault& f) {
      return f.host == name && f.stage != "cleanup" && (stage.empty() || f.stage == stage);
    });
  }
  void check_ends(const Json& r, const std::map<std::string, Model::Node>& before,
                  const std::vector<World::Fault>& faults, const job::Job& job) {
    const auto nodes = r["nodes"].get<Names>();
    const std::string kind = r["kind"];
    const std::set<std::string> targets(nodes.begin(), nodes.end());
    bool trouble = !faults.empty(), beginner_in_trouble = false;
    for (const std::string& name : nodes) {
      const bool down = !world_->machines[name].up;
      if (kind == "commission" && down) trouble = true;
      if (kind == "commission" && (down || failing(faults, name)) && model_manager(r, name, before))
        beginner_in_trouble = true;
    }
    if (!trouble) {
      EXPECT_EQ(job::to_word(job.state), "succeeded") << r << " " << job.error;
    }
    for (const std::string& name : names_) {
      const std::string& was = before.at(name).lifecycle;
      const std::string is = model_->nodes[name].lifecycle;
      std::set<std::string> may{was};
      if (targets.count(name)) may = ends(kind, name, was, faults, trouble, beginner_in_trouble, r);
      EXPECT_EQ(may.count(is), 1U) << name << " was " << was << " and is " << is << " after " << r
                                   << " " << job.error << " " << testing::PrintToString(may);
    }
  }
  bool model_manager(const Json& r, const std::string& name,
                     const std::map<std::string, Model::Node>& before) {
    const std::string group = r.value("host_group", "");
    return group.empty() ? before.at(name).manager : group == "service-master";
  }
  std::set<std::string> ends(const std::string& kind, const std::string& name,
                             const std::string& was, const std::vector<World::Fault>& faults,
                             bool trouble, bool beginner, const Json& r) {
    const bool fails = failing(faults, name);
    if (kind == "commission") {
      if (fails || !world_->machines[name].up) return {"Unallocated"};
      if (beginner) return {"Allocated", "Unallocated"};
      return {"Allocated"};
    }
    if (kind == "decommission") {
      const bool broken =
          std::any_of(faults.begin(), faults.end(), [&](const auto& f) { return f.host == name; });
      if (broken && !r.value("powered_off", false)) return {"Cancelled", was};
      return {"Decommissioned"};
    }
    if (kind == "update") {
      if (failing(faults, name, "check") || (trouble && !fails)) return {"Allocated", was};
      if (fails) return {"Maintenance", was};
      return {"Allocated"};
    }
    return {was};
  }

  // Always, whatever happened.
  void check_truth(const Json& r) {
    EXPECT_THAT(world_->wrong(), testing::IsEmpty()) << r;
    for (const std::string& name : names_) {
      const fleet::Node n = node(name);
      const World::Machine& machine = world_->machines[name];
      const std::string is(fleet::word(n.status.lifecycle));
      const auto has = [&](std::string_view c) { return fleet::has_condition(n.status, c); };
      const bool unsure = has(fleet::condition::kNotCleaned) || has(fleet::condition::kDirty) ||
                          has(fleet::condition::kInterrupted);
      EXPECT_NE(is, "Provisioning") << name << " after " << r;
      if (is == "Allocated" && n.status.conditions.empty()) {
        for (const std::string& service : n.status.applied->services)
          EXPECT_EQ(machine.services.count(service), 1U) << name << " without " << service << r;
        EXPECT_EQ(machine.availability, fleet::word(n.status.applied->availability)) << name << r;
        EXPECT_EQ(n.spec.availability, n.status.applied->availability) << name << r;
      }
      if ((is == "Unallocated" || is == "Decommissioned") && !unsure) {
        EXPECT_TRUE(machine.services.empty()) << name << " is " << is << " after " << r;
        EXPECT_FALSE(world_->is_member(name)) << name << " is " << is << " after " << r;
      }
      if (is == "Allocated" && machine.services.count("ucarp")) {
        for (const std::string& service : world_->quorum_services)
          EXPECT_EQ(world_->members(service).count(name), 1U)
              << name << " may hold the address without " << service << " " << r;
      }
    }
  }

  // From wherever a node is, it can serve again.
  void way_out() {
    for (auto& [name, machine] : world_->machines) machine.up = true;
    look();
    for (int round = 0; round < 5; ++round) {
      bool done = true;
      for (const std::string& name : names_) {
        const std::string is = model_->nodes[name].lifecycle;
        const bool settled = is == "Allocated" && node(name).status.conditions.empty();
        if (settled) continue;
        done = false;
        Json r{{"nodes", {name}}};
        r["kind"] = is == "Cancelled"                          ? "decommission"
                    : is == "Maintenance" || is == "Allocated" ? "update"
                                                               : "commission";
        if (r["kind"] == "update") r["allow_outage"] = true;
        if (r["kind"] == "update") r["max_unavailable"] = "100%";
        if (r["kind"] != "update") r["force"] = true;
        if (!model_->vip) set_vip();
        stuck_[name] = tell(r, ask(r));
        look();
      }
      if (done) return;
    }
    for (const std::string& name : names_) {
      EXPECT_EQ(model_->nodes[name].lifecycle, "Allocated")
          << name << " has no way out: " << stuck_[name];
    }
  }

  std::string tell(const Json& r, const Answer& a) {
    std::string out = dump_json(r) + "\n";
    for (const auto& [name, n] : model_->nodes) {
      out += "  " + name + " " + n.lifecycle + (n.manager ? " manager" : "") +
             (n.verified ? "" : " unverified") + (n.seen_down ? " seen down" : "") + " " +
             n.availability + (world_->machines[name].up ? "" : " DOWN");
      for (const std::string& service : world_->quorum_services)
        out += world_->members(service).count(name) ? " " + service : "";
      out += "\n";
    }
    if (a.refused) {
      for (const Problem& p : a.refused->problems) out += "  " + p.code + ": " + p.message + "\n";
    } else if (a.job) {
      out += "  " + std::string(job::to_word(a.job->state)) + " " + a.job->error + "\n";
    }
    return out;
  }

  const catalog::Catalog catalog_;
  std::mt19937 chance_;
  FakeClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<store::Store> durable_;
  std::unique_ptr<FailingStore> store_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Model> model_;
  Names names_;
  std::unique_ptr<Controller> controller_;
  bool synced_ = true;
  int keys_ = 0, compared_ = 0, accepted_ = 0, refused_ = 0;
  std::map<std::string, int> kind_commits_, codes_;
  std::map<std::string, std::set<std::pair<int, Way>>> hits_;
  std::map<std::string, std::string> stuck_;
};

TEST_F(ModelTest, RandomOperationsEndAsTheRulesSay) {
  const int total = operations();
  unsigned seed = 1;
  if (const char* given = std::getenv("CLUSTERCTL_MODEL_SEED"))
    seed = static_cast<unsigned>(std::atoi(given));
  int done = 0;
  for (; done < total; ++seed) {
    SCOPED_TRACE("CLUSTERCTL_MODEL_SEED=" + std::to_string(seed));
    begin_life(seed);
    judge({{"kind", "commission"}, {"nodes", names_}});
    for (int i = 1; i < kOperationsOfALife && done + i < total; ++i) {
      operate();
      if (HasFailure()) return;
    }
    way_out();
    if (HasFailure()) return;
    done += kOperationsOfALife;
  }
  int points = 0, possible = 0;
  for (const auto& [kind, commits] : kind_commits_) {
    points += static_cast<int>(hits_[kind].size());
    possible += 3 * commits;
  }
  std::printf(
      "%d operations: %d accepted, %d refused, %d compared exactly; failures at %d of %d "
      "commit points (kind, commit, way)\n",
      done, accepted_, refused_, compared_, points, possible);
  for (const auto& [code, n] : codes_) std::printf("  %-22s %d\n", code.c_str(), n);
  const bool many = total >= 200;  // a few say nothing about shares
  EXPECT_GT(accepted_, many ? total / 5 : 0);
  EXPECT_GT(refused_, many ? total / 10 : 0);
  EXPECT_GT(compared_, many ? total / 3 : 0);
}

}  // namespace
}  // namespace clusterctl::controller
