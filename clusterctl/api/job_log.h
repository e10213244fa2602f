// A job's log as plain text for a reader that knows no events.
#pragma once

#include <memory>
#include <string>

#include "api/job_tail.h"

namespace clusterctl::api {

// From the start, followed until the job ends, then `last_line` of the ended job. `tails` belong to
// such answers alone. Any thread.
Response follow_text(std::shared_ptr<JobTails> tails, std::string job,
                     std::string (*last_line)(const job::Job&));

}  // namespace clusterctl::api
