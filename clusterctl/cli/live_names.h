// Names that completion offers: of nodes, jobs, groups and so on, as the daemon knows them now.
// One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "client/rest_client.h"

namespace clusterctl::cli {

struct Candidate {
  std::string word;
  std::string about;  // may be empty
};

// What an option or argument takes, by the names of both and of the command.
enum class Live {
  kNone,
  kNodes,
  kNodesToAccept,
  kNodesToReject,
  kCommissioned,
  kNotCommissioned,
  kJobs,
  kPlans,
  kRevisions,
  kGroups,
  kCapabilities,
  kSelectors,
  kLabels,
  kNodesOrLabels,
  kVariables,
  kAssignments,
  kTokens,
  kJoinTokens,
  kContexts,
  kFiles,
};
// `option`: "--host-group", or the capital name of an argument.
Live live_of(const std::string& noun, const std::string& command, const std::string& option,
             const std::string& placeholder);

// `word` is what is there already; answers may be more than fit. Empty when the daemon does not
// answer.
std::vector<Candidate> live_names(Live live, const std::string& word, client::RestClient& rest);
std::vector<Candidate> context_names(const fs::path& file);

}  // namespace clusterctl::cli
