// A controller whose power can fail at any point at which something is stored.
#pragma once

#include <memory>
#include <string>

#include "controller/fixture.h"
#include "fakes/mortal_store.h"
#include "fakes/sanitized.h"

namespace clusterctl::controller {

class MortalTest : public ControllerTest {
 public:
  MortalTest() {
    controller_->stop();
    controller_.reset();
    auto mortal = std::make_unique<fakes::MortalStore>(std::move(store_));
    mortal_ = mortal.get();
    store_ = std::move(mortal);
    start();
  }
  void TestBody() override {}

 protected:
  // One life after another, in each of which the power fails one commit later, with the runs or
  // without them, until one survives. `prepare(life)` comes before, `look(life, job, where)` when
  // the next daemon has brought the job to its end.
  template <typename Life, typename Prepare, typename Look>
  static void die_at_every_point(const Json& body, bool power_cut, Prepare prepare, Look look) {
    int point = 0;
    for (bool survived = false; !survived; point += kStride) {
      ASSERT_LT(point, 100);
      Life w;
      prepare(w);
      w.mortal_->die_after(point);
      const auto job = w.submit(body);
      if (job) {
        while (!w.mortal_->dead() && !job::is_final(w.c().current(job->id)->state))
          std::this_thread::yield();
      }
      survived = !w.mortal_->dead();
      w.c().stop();
      if (power_cut) w.runs_.power_cut();
      w.mortal_->mend();
      w.restart();
      const std::string where = body["kind"].get<std::string>() + ", commit " +
                                std::to_string(point) + (power_cut ? " with the runs" : "");
      if (!job) continue;
      const auto ended = w.wait(job->id);
      for (const job::UndoEntry& e : ended.ledger) EXPECT_FALSE(job::is_open(e.state)) << where;
      if (!power_cut) {
        EXPECT_EQ(ended.state, job::State::kSucceeded) << where << ": " << ended.error;
      }
      look(w, ended, where);
      w.c().stop();
    }
    EXPECT_GT(point, 5) << "there were points to fail at";
  }

  // The release build dies at every point; sanitized, one walk would take minutes.
  static constexpr int kStride = fakes::kSanitized ? 5 : 1;

  fakes::MortalStore* mortal_ = nullptr;
};

}  // namespace clusterctl::controller
