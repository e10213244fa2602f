// The controller: keeps the fleet, accepts work, runs jobs. The only writer: every change of any
// record goes through here, is committed durably and then published as an immutable State. All
// functions may be called from any thread; readers never wait for writers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "access/api_token.h"
#include "base/annotations.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "catalog/catalog.h"
#include "controller/change.h"
#include "controller/damper.h"
#include "controller/event_log.h"
#include "controller/join_token.h"
#include "controller/reports.h"
#include "controller/secrets.h"
#include "controller/tallies.h"
#include "controller/writer.h"
#include "fleet/join.h"
#include "job/continue.h"
#include "job/host.h"
#include "job/locks.h"
#include "monitor/prober.h"
#include "run/runs.h"
#include "store/store.h"

namespace clusterctl::controller {

struct Settings {
  std::string cluster_name =
      "default";  // of a new cluster; later changes go through the cluster record
  std::string accept_policy = "always";  // of a new cluster, likewise
  int max_parallel_runs = 2;             // urgent jobs (job/locks.h) do not count
  size_t keep_jobs = 500;                // ended jobs kept, with their logs
  job::RunDefaults run_defaults;
  fleet::OwnHost own_host;  // the machine it runs on; empty: nobody asked
  // What machines that join need: the key by which runs reach nodes, one line ("ssh-ed25519 AAAA…";
  // empty: there is none), and the fingerprint of the certificate authority of this API, 64 hex
  // digits (empty: it has none).
  std::string ssh_public_key, ca_fingerprint;
  std::chrono::milliseconds store_retry{1000};  // after the store refused a step
};

struct Deps {
  store::Store& store;
  run::Runs& runs;
  const catalog::Catalog& catalog;
  const Clock& clock;
  Ids& ids;
  RoleVariables variables;
  Settings settings;
};

// What create_job answers: the job, or for a dry run the plan.
struct Accepted {
  std::optional<job::Job> job;
  Json plan;                            // of a dry run
  std::vector<std::string> nodes = {};  // of a dry run of continue_job: names of those it takes
  bool repeated = false;                // the same Idempotency-Key had made it before
};

// Where a new job comes from.
struct Origin {
  std::string initiator;
  std::string key = "";     // Idempotency-Key
  std::string digest = "";  // of the request as sent (request_digest)
  const job::Job* continues = nullptr;
  job::Selection what = {};  // of a job that is continued
};

// What apply_plan answers.
struct AppliedPlan {
  std::string id;
  std::vector<std::string> jobs;
  bool repeated = false;
};

// Versions of the record that the caller accepts; nullopt: any.
using IfMatch = std::optional<std::vector<int64_t>>;
// kStale "stale" when `version` is none of them. `what`: "node n1".
Status check_version(std::string_view what, uint64_t version, const IfMatch& if_match);

// What becomes of a machine that joins: what it is told.
struct Joined {
  fleet::Node node;
  fleet::Admission admission;
  std::string leave_secret;  // said once; of a dry run empty
};

// Who asks for a change, and why, if that was said.
struct By {
  std::string who;
  std::string reason = "";
};

class Controller final : public job::Host {
 public:
  explicit Controller(Deps deps);
  ~Controller() override;

  // Loads the store, takes over jobs of the last daemon, starts the scheduler. Call once.
  Status start();
  // Stops stepping; playbook runs go on and are taken over by the next daemon.
  void stop();

  std::shared_ptr<const State> state() const { return writer_.state(); }
  // Why nothing can be stored at present; nullopt: all is well.
  std::optional<Error> store_trouble() const { return writer_.trouble(); }
  EventLog& events() { return events_; }
  const EventLog& events() const { return events_; }
  const Tallies& tallies() const { return tallies_; }
  const catalog::Catalog& catalog() const { return deps_.catalog; }
  const Settings& settings() const { return deps_.settings; }
  const Clock& clock() const { return deps_.clock; }
  fs::path run_dir(const std::string& run_id) const { return deps_.runs.dir(run_id); }

  // What makes something takes an Idempotency-Key (once.h): sent again it is answered with what was
  // made the first time, as that is now.
  Result<fleet::Node> add_node(const Json& body, const By& by = {}, Once* once = nullptr);
  Result<fleet::Node> patch_node(std::string_view ref, const Json& patch, const IfMatch& if_match,
                                 const By& by = {});
  Status remove_node(std::string_view ref, const IfMatch& if_match, const By& by = {});

  // What a monitor tells, body of POST /v1/monitor/event. All of it is refused when a part of it is
  // malformed. Calls that come at the same time share one commit.
  Result<std::vector<Seen>> monitor_event(const Json& body) EXCLUDES(mutex_);
  // What the prober found; in this order, in commits of a bounded size.
  Status record_presence(const std::vector<monitor::Finding>& found) EXCLUDES(mutex_);
  // Since when most nodes are out of sight, and how many of how many; nullopt: not any more.
  Status set_isolated(std::optional<Time> since, const std::string& message) EXCLUDES(mutex_);
  // The hardware seen now is this node's. kConflict when nobody asked.
  Result<fleet::Node> confirm_hardware(std::string_view ref, const IfMatch& if_match,
                                       bool dry_run = false);
  // Body {"name"}; not of a commissioned node, nor of one that a job works on.
  Result<fleet::Node> rename_node(std::string_view ref, const Json& body, const IfMatch& if_match,
                                  bool dry_run = false);

  // Join tokens (docs/join.md). The text of a new one is answered once and stored nowhere.
  Result<NewJoinToken> create_join_token(const Json& body, const By& by) EXCLUDES(mutex_);
  // Again: as it is.
  Result<JoinToken> revoke_join_token(std::string_view id, const By& by) EXCLUDES(mutex_);
  // Body of POST /v1/join. Whoever has a token may ask: kUnauthenticated without a good one, else
  // kInvalid or kConflict; a refusal changes nothing and uses nothing up.
  Result<Joined> join_machine(const Json& body) EXCLUDES(mutex_);
  // Body of POST /v1/join/leave, {"node", "secret"}. True: it is no longer a member of anything;
  // false: it is, and operators see that it asks.
  Result<bool> leave_machine(const Json& body) EXCLUDES(mutex_);

  // `merge`: null removes a name; else everything is replaced. Answers the warnings (names no role
  // knows). `if_match`: revisions of the globals.
  Result<std::vector<Problem>> set_globals(const Json& vars, bool merge,
                                           const IfMatch& if_match = std::nullopt,
                                           const By& by = {});
  // JSON merge patch of {"name", "accept_policy", "max_unavailable", "drift_policy"}; `if_match`:
  // versions of the cluster's record. `dry_run`, here and elsewhere: what it would be; nothing is
  // stored.
  Result<fleet::Cluster> patch_cluster(const Json& patch, const IfMatch& if_match = std::nullopt,
                                       bool dry_run = false);

  // Body {"name", "expires"?: time or duration, "read_only"?}. Only this answer has the text.
  struct NewToken {
    access::ApiToken token;
    std::string text;
  };
  Result<NewToken> create_token(const Json& body, const std::string& by);
  // By id or name; nobody gets in with it from now on.
  Status revoke_token(std::string_view ref, const std::string& by);

  // `if_match`: versions of the one node that the request names.
  Result<Accepted> create_job(const Json& body, const std::string& initiator,
                              const std::string& idempotency_key,
                              const IfMatch& if_match = std::nullopt);
  // Also of a job that waits or is paused. A job that was cancelled already is answered as it is.
  Result<job::Job> cancel_job(std::string_view ref, bool now);
  // Stops a running job at the next gate between stages; it keeps its locks.
  Result<job::Job> pause_job(std::string_view ref);
  // Takes a pause back: the job goes on as soon as there is a place for it.
  Result<job::Job> resume_job(std::string_view ref);
  // A new job that goes on from one that ended badly; what it would be when `dry_run`.
  Result<Accepted> continue_job(std::string_view ref, const job::Selection& what, bool dry_run,
                                const std::string& initiator, const std::string& key = "");
  // A plan that may be applied later (docs/apply.md), in the shape of docs/rest.md; only shown when
  // the request says so or there is nothing to do: then it has no "id".
  // Sent again with its key it is planned anew, on what is true now, and is kConflict
  // "plan_applied" or kStale "plan_stale" when it fits no more.
  Result<Json> create_plan(const Json& body, const std::string& initiator, Once* once = nullptr);
  // Everything in one commit, or nothing. Again: the jobs of the first time.
  Result<AppliedPlan> apply_plan(std::string_view ref, const std::string& initiator,
                                 const std::string& key = "");
  // Id, or unambiguous prefix of at least 4 characters.
  Result<std::shared_ptr<const StoredPlan>> find_plan(std::string_view ref) const;
  // Id, unambiguous prefix of at least 4 characters, "last" or "active".
  Result<std::shared_ptr<const job::Job>> find_job(std::string_view ref) const;
  // What the jobs that wait, wait for, by job id.
  std::map<std::string, job::Conflict> waiting(const State& state) const;

  // job::Host, for steppers.
  std::set<std::string> waiting_drains() const override;
  std::shared_ptr<const fleet::Snapshot> fleet() const override { return state()->fleet; }
  Status propose(const job::Proposal& proposal) override;
  std::optional<job::Job> current(const std::string& job_id) const override;
  Result<job::Resolved> resolve(const Json& vars) const override;

 private:
  Status first_start() REQUIRES(mutex_);
  Status commit(Change change) REQUIRES(mutex_);
  // Adds the conditions that follow from the fleet as it is after `change`: Pending and Drifted
  // (derive.cpp). The result is managers_seen_ of the time after it; nullopt: as it was.
  std::optional<std::string> derive(Change& change) const REQUIRES(mutex_);
  void follow_drift_policy() REQUIRES(mutex_);
  Result<Json> hide(const Json& vars, const std::string& scope, Change& change) const;
  // Names of secrets that an object owned and nothing else in the fleet or in a job refers to.
  static void forget_secrets(const State& now, const std::set<std::string>& names,
                             const std::string& owner, Change& change);
  Result<job::Job> accept(const plan::Request& request, const plan::Plan& plan,
                          const Origin& origin) REQUIRES(mutex_);
  // The job that `accept` would queue, with all it changes, added to `change`.
  Result<job::Job> draft(const plan::Request& request, const plan::Plan& plan, const Origin& origin,
                         Change& change) REQUIRES(mutex_);
  // Id of what this key has made (KeyTable::find).
  Result<std::optional<std::string>> made_by(const std::string& key,
                                             const std::string& digest) const REQUIRES(mutex_);
  // Remembers it in the commit that makes `made`.
  void remember(const std::string& key, const std::string& digest, const std::string& made,
                Change& change) const REQUIRES(mutex_);
  // The job that a key has made.
  Result<Accepted> made_job(const std::string& id) const;
  // The plan that the key has made, if that can still be applied; null: none.
  Result<std::shared_ptr<const StoredPlan>> plan_of_key(const std::string& key,
                                                        const std::string& digest) const
      REQUIRES(mutex_);
  Accepted preview(plan::Plan plan, const Origin& origin) const;
  void take_over(job::Job& job, const Origin& origin, Change& change) const;
  Status check_free(const job::Job& old, const std::vector<std::string>& nodes, bool resume) const;
  Status check_busy(const State& state, const plan::Request& request) const;
  Status check_not_worked_on(const fleet::Node& node, bool also_queued) const;
  // What the facts of a run say about which machines the nodes are.
  void recognize(const State& now, const job::Proposal& proposal, Change& change) const;
  Result<Report> parse_report(const Json& body) const;
  Result<JoinToken> good_join_token(const Json& body) const;
  void work_off(Report& report, fleet::Snapshot& fleet, Change& change) REQUIRES(mutex_);
  const fleet::Node* before(const Change& change, const std::string& id) const;
  bool admit(const std::string& id, fleet::Snapshot& fleet, const Change& change,
             std::set<std::string>& changed) REQUIRES(mutex_);
  void take_changed(fleet::Snapshot& fleet, std::set<std::string> changed, Change& change) const;
  void settle_flapping() REQUIRES(mutex_);
  void add_events(Change& change, const fleet::Node& before, const fleet::Node& after,
                  const std::string& job) const;

  void pin(StoredPlan& stored, const plan::Difference& d, const State& now) const;
  Result<Json> store_plan(StoredPlan stored, const std::map<std::string, Json>& values, Json shown,
                          const std::string& digest, Once* once);
  Status plan_job(const State& now, const Json& body, StoredPlan& stored,
                  std::map<std::string, Json>& values, Json& shown) const;
  Status check_pins(const StoredPlan& stored, const State& now) const;
  Status apply_job(StoredPlan& stored, const State& now, const std::string& initiator,
                   Change& change) REQUIRES(mutex_);
  Status apply_wanted(StoredPlan& stored, const State& now, const std::string& initiator,
                      Change& change) REQUIRES(mutex_);
  void change_records(const State& now, const plan::Difference& d, Change& change) REQUIRES(mutex_);
  static void drop_plan(const StoredPlan& stored, Change& change);
  void expire_plans() REQUIRES(mutex_);
  Result<plan::Wanted> wanted_at(const State& now, uint64_t revision);
  Result<plan::Wanted> wanted_of(const State& now, const std::map<std::string, Before>& then,
                                 const std::optional<Json>& globals) const;
  // Ends a job whose predecessor in a plan did not end well; false: nothing of the kind.
  bool end_broken_chain() REQUIRES(mutex_);
  void remove_record(const State& now, const fleet::Node& node, const std::string& job,
                     Change& change) const;
  // Nodes that a plan removes once they are out of the cluster.
  void remove_done(const State& now, const job::Job& job, Change& change) REQUIRES(mutex_);

  void end_unstarted(job::Job& job, job::State final_state, Change& change) REQUIRES(mutex_);
  static void forget_job_secrets(job::Job& job, Change& change);
  void expire_secrets() REQUIRES(mutex_);
  void note_overdue() REQUIRES(mutex_);

  Status ask_to_end(const job::Job& job, bool also_what_puts_back = false);
  void check_limits() REQUIRES(mutex_);
  void schedule(std::stop_token stop);
  bool start_next() REQUIRES(mutex_);
  bool begin(const job::Job& queued) REQUIRES(mutex_);
  bool end_pause(const job::Job& paused) REQUIRES(mutex_);
  void go_on(const job::Job& job) REQUIRES(mutex_);
  void launch(job::Job job) REQUIRES(mutex_);
  bool relaunch_lost() REQUIRES(mutex_);
  static void settle_tombstone(const State& now, const fleet::Node& before,
                               const fleet::Node& after, Change& change);
  void forget_old_jobs() REQUIRES(mutex_);

  Deps deps_;
  SecretNames secret_names_;
  EventLog events_;
  Tallies tallies_;
  Mutex mutex_;
  Writer writer_;  // commits under mutex_
  Reports reports_;
  Damper damper_ GUARDED_BY(mutex_);
  CondVar changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;         // something happened that may let a job start
  bool start_failed_ GUARDED_BY(mutex_) = false;  // the store refused the start of a job
  bool derive_all_ GUARDED_BY(mutex_) = true;     // the catalog may be another one than before
  std::string managers_seen_ GUARDED_BY(mutex_);  // what Pending was derived from: pending_key
  std::string auto_refused_ GUARDED_BY(mutex_);   // why the drift policy could not act last
  std::map<std::string, std::jthread> steppers_ GUARDED_BY(mutex_);
  std::vector<std::jthread> ended_ GUARDED_BY(mutex_);
  std::jthread scheduler_;
};

}  // namespace clusterctl::controller
