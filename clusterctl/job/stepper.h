// Steps one job through its stages: prepare, start, follow, evaluate, decide. Every step is durable
// before the next one begins, so that a stepper in a restarted daemon goes on exactly there. One
// stepper per job; run() blocks in a thread of its own.
#pragma once

#include <stop_token>

#include "ansible/events.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

class Stepper {
 public:
  // `job` is running (already committed as such), new or found at start-up.
  Stepper(Context context, Job job) : c_(context), job_(std::move(job)) {}

  // Returns when the job has ended or is paused, or when `stop` is requested (the playbook run then
  // goes on without us).
  void run(std::stop_token stop);

 private:
  enum class Next { kGoOn, kDetached };
  Next step(StageStatus& stage, std::stop_token stop);
  Next pause(const StageStatus& stage);
  std::optional<Next> take_out(const StageStatus& stage);
  Next prepare(StageStatus& stage);
  Next follow(StageStatus& stage, std::stop_token stop);
  bool conclude(StageStatus& stage, const run::RunState& state, const ansible::RunResult& result);
  bool advance_batches();
  void choose_targets(StageStatus& stage) const;
  void check_quorum(const StageStatus& stage);
  void check_returned(const StageStatus& stage);
  void skip_planned();
  void give_up(std::string reason, std::string error);
  void give_up_cancelled();
  void name_overrun();
  bool cancel_reaches(const StageStatus& stage);
  bool cancel_wanted();
  bool pause_wanted() const;
  void finish();
  bool propose(std::vector<NodeChange> nodes = {}, std::string event = "",
               std::string message = "");

  Context c_;
  Job job_;
};

}  // namespace clusterctl::job
