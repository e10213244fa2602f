// The routes of docs/rest.md, one file per resource. Called once while the daemon starts; the
// handlers are then called by all workers at once. The controller must outlive the router.
#pragma once

#include "api/router.h"
#include "controller/controller.h"
#include "notify/notifier.h"

namespace clusterctl::api {

struct Meters;

// What /v1/version and /readyz say of this daemon.
struct About {
  std::string version;
  std::string ansible;         // version of ansible-core, or why it is not known
  std::string playbooks;       // path
  std::string ca_fingerprint;  // of the authority that clients of the TLS listener pin
};

void add_node_routes(Router& router, controller::Controller& controller);
// POST /v1/monitor/event, /v1/nodes/{n}/confirm-hardware, /v1/nodes/{n}/rename.
void add_monitor_routes(Router& router, controller::Controller& controller);
// POST /v1/join and /v1/join/leave, which need no token but a join token; /v1/join-tokens.
void add_join_routes(Router& router, controller::Controller& controller);
void add_job_routes(Router& router, controller::Controller& controller);
void add_job_stream_routes(Router& router, controller::Controller& controller);
void add_job_timeline_routes(Router& router, controller::Controller& controller);
// Plans and what they change: /v1/plans, /v1/revisions.
void add_plan_routes(Router& router, controller::Controller& controller);
void add_global_routes(Router& router, controller::Controller& controller);
void add_event_routes(Router& router, controller::Controller& controller);
void add_meta_routes(Router& router, controller::Controller& controller, About about);
// GET /metrics (metrics.h). The meters must outlive the router.
void add_metrics_route(Router& router, const controller::Controller& controller, About about,
                       const notify::Notifier* notifier, const Meters& meters);
// GET and POST /v1/tokens, DELETE /v1/tokens/{t}.
void add_token_routes(Router& router, controller::Controller& controller);
// Tokens of all kinds, join tokens included, are made and revoked by who is here, or has the
// daemon's own token: one that somebody lost must not outlive its revocation in another that it
// made.
Status may_manage_tokens(const Request& request);
// GET /v1/status, /v1/cluster, /v1/managers, /v1/services, /v1/inventory, /v1/notifications. Null:
// nobody is notified.
void add_cluster_routes(Router& router, controller::Controller& controller,
                        const notify::Notifier* notifier);

// The node as every route of nodes answers it, with its ETag.
Response node_answer(const fleet::Node& node, const controller::Controller& controller,
                     int status = 200);

// 410 "log_expired" when the runs of that job are no longer kept; nullopt when they are, or when
// there is no such job.
std::optional<Response> log_expired(const controller::Controller& controller,
                                    const std::string& job_ref);

// All of them. `meters` null: nothing is measured.
void add_routes(Router& router, controller::Controller& controller, About about,
                const notify::Notifier* notifier = nullptr, const Meters* meters = nullptr);

}  // namespace clusterctl::api
