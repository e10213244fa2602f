// Arguments stand in the process list, where everybody on the machine reads them: secrets among
// them are overwritten as soon as they have been read. One thread.
#pragma once

namespace clusterctl::cli {

// Join tokens, and values of variables whose names say that they are secret.
void hide_secret_arguments(int argc, char** argv);

}  // namespace clusterctl::cli
