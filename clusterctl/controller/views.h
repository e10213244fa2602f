// What is derived from the state for readers: the overview of `status`, and the inventory for plain
// Ansible. Pure; any thread.
#pragma once

#include "base/json.h"
#include "catalog/catalog.h"
#include "controller/change.h"

namespace clusterctl::controller {

// docs/rest.md, GET /v1/status.
Json status_view(const State& state, const catalog::Catalog& catalog);

// Dynamic inventory of the commissioned nodes in the shape of `--list` (docs/run-contract.md
// section 6). Secrets stay references.
// `pki_dir`: where the cluster's authority is, on this host.
Json inventory_view(const State& state, const catalog::Catalog& catalog,
                    const std::string& pki_dir);

}  // namespace clusterctl::controller
