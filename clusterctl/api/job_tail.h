// The end of one file of a job's runs, for all who follow it: one look at the file finds out for
// everybody whether there is more, and what all of them get is read and rendered once. Belongs to
// the stream thread, JobTails too.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/http.h"
#include "controller/controller.h"

namespace clusterctl::api {

// What is sent for the lines that begin at an offset.
struct Chunk {
  SharedText text;      // null: the lines give nothing to send
  uint64_t offset = 0;  // where the next one begins
  uint64_t line = 0;    // number of its last line
};

class JobTail final : public Topic {
 public:
  JobTail(const controller::Controller& controller, std::string job, std::string file)
      : c_(controller), job_(std::move(job)), file_(std::move(file)) {}

  std::optional<std::chrono::milliseconds> poll() const override;
  bool changed() override;

  // Null when the job is no longer kept.
  std::shared_ptr<const job::Job> job() const;
  // The bytes of a run's file from an offset: at most about 64 KiB, cut after the last complete
  // line. A longer line comes whole up to `longest`, beyond that in pieces. Empty: nothing yet, or,
  // when the run is finished, nothing more.
  std::string read(const std::string& run, uint64_t offset, bool finished, size_t longest) const;

  const Chunk* find(const std::string& run, uint64_t offset) const;
  void keep(const std::string& run, uint64_t offset, Chunk chunk);

 private:
  struct Seen {
    uint64_t version = 0;  // of the job
    std::string run;
    uint64_t size = 0;
    bool operator==(const Seen&) const = default;
  };

  const controller::Controller& c_;
  const std::string job_, file_;
  std::optional<Seen> seen_;
  std::deque<std::pair<std::pair<std::string, uint64_t>, Chunk>> chunks_;
};

// The tails that somebody follows.
class JobTails {
 public:
  explicit JobTails(const controller::Controller& controller) : c_(controller) {}
  std::shared_ptr<JobTail> get(const std::string& job, const std::string& file);

 private:
  const controller::Controller& c_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<JobTail>> tails_;
};

}  // namespace clusterctl::api
