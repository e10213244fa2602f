// `clusterctl serve`: builds the daemon's collaborators, runs until SIGTERM or SIGINT. Playbook
// runs outlive it.
#pragma once

namespace clusterctl {

int serve(int argc, char** argv);

}  // namespace clusterctl
