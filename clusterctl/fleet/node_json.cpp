#include "fleet/node_json.h"

#include <fmt/format.h>

#include "base/time.h"
#include "base/time_json.h"
#include "fleet/problems.h"

namespace clusterctl::fleet {
namespace {

// Reads a record we wrote ourselves: the first wrong field is an Error.
class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  std::string text(const Json& o, std::string_view key) {
    return problems_.take(get_string(o, key));
  }
  std::vector<std::string> texts(const Json& o, std::string_view key) {
    return problems_.take(get_strings(o, key));
  }
  Json object(const Json& o, std::string_view key) {
    const auto it = o.find(key);
    if (it == o.end()) return Json::object();
    return problems_.take(get_object(o, key));
  }
  int64_t number(const Json& o, std::string_view key) { return problems_.take(get_int(o, key)); }
  bool flag(const Json& o, std::string_view key) { return problems_.take(get_bool(o, key)); }
  std::optional<Time> time(const Json& o, std::string_view key) {
    const std::string written = text(o, key);
    if (written.empty()) return std::nullopt;
    return problems_.take(parse_time(written));
  }
  template <typename E>
  E word_of(const Json& o, std::string_view key, E fallback) {
    const std::string written = text(o, key);
    if (written.empty()) return fallback;
    if (auto e = from_word<E>(written)) return *e;
    wrong(key);
    return fallback;
  }
  std::map<std::string, std::string> text_map(const Json& o, std::string_view key) {
    std::map<std::string, std::string> out;
    const Json entries = object(o, key);
    for (const auto& [name, value] : entries.items()) {
      if (!value.is_string())
        wrong(key);
      else
        out[name] = value.get<std::string>();
    }
    return out;
  }
  std::vector<Json> objects(const Json& o, std::string_view key) {
    std::vector<Json> out;
    const auto it = o.find(key);
    if (it == o.end() || it->is_null()) return out;
    if (!it->is_array())
      wrong(key);
    else {
      for (const Json& item : *it) item.is_object() ? out.push_back(item) : wrong(key);
    }
    return out;
  }
  void wrong(std::string_view key) {
    problems_.add(Code::kInvalid,
                  Problem{"damaged", fmt::format("\"{}\" has a wrong value", key), "", ""});
  }

 private:
  Problems& problems_;
};

NodeSpec read_spec(Reader& r, const Json& o) {
  NodeSpec s;
  s.addr = r.text(o, "addr");
  const Json ssh = r.object(o, "ssh");
  s.ssh.user = r.text(ssh, "user");
  s.ssh.port = static_cast<int>(r.number(ssh, "port"));
  s.ssh.host_key = r.text(ssh, "host_key");
  s.ssh.jump = r.text(ssh, "jump");
  s.ssh.extra_args = r.texts(ssh, "extra_args");
  s.acceptance = r.word_of(o, "acceptance", s.acceptance);
  s.allocation = r.word_of(o, "allocation", s.allocation);
  s.host_group = r.text(o, "host_group");
  s.capabilities = r.texts(o, "capabilities");
  s.availability = r.word_of(o, "availability", s.availability);
  s.labels = r.text_map(o, "labels");
  s.vars = r.object(o, "vars");
  s.versions = r.text_map(o, "versions");
  return s;
}

Applied read_applied(Reader& r, const Json& o) {
  Applied a;
  a.host_group = r.text(o, "host_group");
  a.capabilities = r.texts(o, "capabilities");
  a.availability = r.word_of(o, "availability", a.availability);
  a.versions = r.text_map(o, "versions");
  a.services = r.texts(o, "services");
  a.vars_fingerprint = r.text(o, "vars_fingerprint");
  const Json digests = r.object(o, "digests");  // older records have none
  a.vars = r.text_map(digests, "vars");
  a.catalog = r.text_map(digests, "catalog");
  return a;
}

ServiceStatus read_service(Reader& r, const Json& o) {
  ServiceStatus s;
  s.version = r.text(o, "version");
  s.healthy = r.flag(o, "healthy");
  s.message = r.text(o, "message");
  s.role = r.text(o, "role");
  s.member_id = r.text(o, "member_id");
  for (const Json& m : r.objects(o, "members")) {
    s.members.push_back({r.text(m, "id"), r.text(m, "name"), r.text(m, "addr"), r.text(m, "role"),
                         r.flag(m, "reachable"), r.flag(m, "leader")});
  }
  s.endpoint = r.text(o, "endpoint");
  s.observed = r.time(o, "observed").value_or(Time{});
  return s;
}

Hardware read_hardware(Reader& r, const Json& o) {
  Hardware h;
  h.vendor = r.text(o, "vendor");
  h.model = r.text(o, "model");
  h.serial = r.text(o, "serial");
  h.uuid = r.text(o, "uuid");
  h.machine_id = r.text(o, "machine_id");
  h.series = r.text(o, "series");
  h.os = r.text(o, "os");
  h.os_version = r.text(o, "os_version");
  h.arch = r.text(o, "arch");
  h.kernel = r.text(o, "kernel");
  h.host_name = r.text(o, "host_name");
  h.chassis = r.text(o, "chassis");
  h.slot = r.text(o, "slot");
  h.macs = r.texts(o, "macs");
  h.cpus = r.number(o, "cpus");
  h.memory_mb = r.number(o, "memory_mb");
  return h;
}

Maintenance read_maintenance(Reader& r, const Json& o) {
  Maintenance m;
  m.kind = r.text(o, "kind");
  m.reason = r.text(o, "reason");
  m.owner = r.text(o, "owner");
  m.job = r.text(o, "job");
  m.since = r.time(o, "since").value_or(Time{});
  m.until = r.time(o, "until");
  m.before = r.word_of(o, "availability_before", m.before);
  return m;
}

Identity read_identity(Reader& r, const Json& o) {
  return {r.text(o, "serial"), r.text(o, "uuid"), r.text(o, "host_key"), r.texts(o, "macs")};
}

Requested read_requested(Reader& r, const Json& o) {
  Requested out;
  out.host_group = r.text(o, "host_group");
  out.capabilities = r.texts(o, "capabilities");
  out.labels = r.text_map(o, "labels");
  out.os = r.text(o, "os");
  out.token = r.text(o, "token");
  out.leave_digest = r.text(o, "leave_digest");
  out.since = r.time(o, "since").value_or(Time{});
  return out;
}

NodeStatus read_status(Reader& r, const Json& o) {
  NodeStatus s;
  s.lifecycle = r.word_of(o, "lifecycle", s.lifecycle);
  if (!r.text(o, "previous").empty()) s.previous = r.word_of(o, "previous", s.lifecycle);
  s.presence = r.word_of(o, "presence", s.presence);
  s.last_seen = r.time(o, "last_seen");
  if (o.contains("applied") && !o["applied"].is_null())
    s.applied = read_applied(r, r.object(o, "applied"));
  const Json services = r.object(o, "services");
  for (const auto& [name, value] : services.items()) {
    value.is_object() ? void(s.services[name] = read_service(r, value)) : r.wrong("services");
  }
  if (o.contains("hardware") && !o["hardware"].is_null())
    s.hardware = read_hardware(r, r.object(o, "hardware"));
  if (o.contains("identity") && !o["identity"].is_null())
    s.identity = read_identity(r, r.object(o, "identity"));
  if (o.contains("elsewhere") && !o["elsewhere"].is_null()) {
    const Json seen = r.object(o, "elsewhere");
    s.elsewhere = {r.text(seen, "addr"), r.text(seen, "name"),
                   r.time(seen, "since").value_or(Time{})};
  }
  if (o.contains("requested") && !o["requested"].is_null())
    s.requested = read_requested(r, r.object(o, "requested"));
  for (const Json& c : r.objects(o, "conditions")) {
    s.conditions.push_back({r.text(c, "type"), r.text(c, "reason"), r.text(c, "job"),
                            r.time(c, "since").value_or(Time{})});
  }
  if (o.contains("maintenance") && !o["maintenance"].is_null())
    s.maintenance = read_maintenance(r, r.object(o, "maintenance"));
  s.fence_runs = r.texts(o, "fence_runs");
  return s;
}

}  // namespace

Json to_json(const Member& m) {
  return {{"id", m.id},     {"name", m.name},           {"addr", m.addr},
          {"role", m.role}, {"reachable", m.reachable}, {"leader", m.leader}};
}

Json to_json(const ServiceStatus& s) {
  Json members = Json::array();
  for (const Member& m : s.members) members.push_back(to_json(m));
  return {{"version", s.version},     {"healthy", s.healthy},
          {"message", s.message},     {"role", s.role},
          {"member_id", s.member_id}, {"members", std::move(members)},
          {"endpoint", s.endpoint},   {"observed", format_time(s.observed)}};
}

Json to_json(const Hardware& h) {
  return {{"vendor", h.vendor},
          {"model", h.model},
          {"serial", h.serial},
          {"uuid", h.uuid},
          {"machine_id", h.machine_id},
          {"series", h.series},
          {"os", h.os},
          {"os_version", h.os_version},
          {"arch", h.arch},
          {"kernel", h.kernel},
          {"host_name", h.host_name},
          {"chassis", h.chassis},
          {"slot", h.slot},
          {"macs", h.macs},
          {"cpus", h.cpus},
          {"memory_mb", h.memory_mb}};
}

Json to_json(const Identity& i) {
  return {{"serial", i.serial}, {"uuid", i.uuid}, {"host_key", i.host_key}, {"macs", i.macs}};
}

Json to_json(const Elsewhere& e) {
  return {{"addr", e.addr}, {"name", e.name}, {"since", format_time(e.since)}};
}

Json to_json(const Requested& r) {
  return {{"host_group", r.host_group}, {"capabilities", r.capabilities},
          {"labels", r.labels},         {"os", r.os},
          {"token", r.token},           {"since", format_time(r.since)}};
}

Json to_json(const Applied& a) {
  return {{"host_group", a.host_group},
          {"capabilities", a.capabilities},
          {"availability", word(a.availability)},
          {"versions", a.versions},
          {"services", a.services},
          {"vars_fingerprint", a.vars_fingerprint}};
}

Json to_json(const Maintenance& m) {
  return {{"kind", m.kind},
          {"reason", m.reason},
          {"owner", m.owner},
          {"job", m.job},
          {"since", format_time(m.since)},
          {"until", time_or_null(m.until)},
          {"availability_before", word(m.before)}};
}

Json to_json(const Condition& c) {
  return {{"type", c.type}, {"reason", c.reason}, {"job", c.job}, {"since", format_time(c.since)}};
}

Json to_json(const NodeSpec& s) {
  Json ssh{{"user", s.ssh.user},
           {"port", s.ssh.port},
           {"host_key", s.ssh.host_key},
           {"jump", s.ssh.jump},
           {"extra_args", s.ssh.extra_args}};
  return {{"addr", s.addr},
          {"ssh", std::move(ssh)},
          {"acceptance", word(s.acceptance)},
          {"allocation", word(s.allocation)},
          {"host_group", s.host_group},
          {"capabilities", s.capabilities},
          {"availability", word(s.availability)},
          {"labels", s.labels},
          {"vars", s.vars},
          {"versions", s.versions}};
}

Json to_json(const NodeStatus& s) {
  Json services = Json::object();
  for (const auto& [name, status] : s.services) services[name] = to_json(status);
  Json conditions = Json::array();
  for (const Condition& c : s.conditions) conditions.push_back(to_json(c));
  return {{"lifecycle", word(s.lifecycle)},
          {"previous", s.previous ? Json(word(*s.previous)) : Json()},
          {"presence", word(s.presence)},
          {"last_seen", time_or_null(s.last_seen)},
          {"applied", s.applied ? to_json(*s.applied) : Json()},
          {"services", std::move(services)},
          {"hardware", s.hardware ? to_json(*s.hardware) : Json()},
          {"identity", s.identity ? to_json(*s.identity) : Json()},
          {"elsewhere", s.elsewhere ? to_json(*s.elsewhere) : Json()},
          {"requested", s.requested ? to_json(*s.requested) : Json()},
          {"conditions", std::move(conditions)},
          {"maintenance", s.maintenance ? to_json(*s.maintenance) : Json()},
          {"fence_runs", s.fence_runs}};
}

Json to_json(const Node& node, std::string_view role) {
  return {{"id", node.id},
          {"name", node.name},
          {"generation", node.generation},
          {"resource_version", node.resource_version},
          {"created", format_time(node.created)},
          {"role", role},
          {"spec", to_json(node.spec)},
          {"status", to_json(node.status)}};
}

Json to_store(const Node& node) {
  Json out = to_json(node, "");
  out.erase("role");
  out["v"] = kNodeVersion;
  if (const auto& applied = node.status.applied)
    out["status"]["applied"]["digests"] = {{"vars", applied->vars}, {"catalog", applied->catalog}};
  if (const auto& requested = node.status.requested)
    out["status"]["requested"]["leave_digest"] = requested->leave_digest;
  return out;
}

Result<Node> node_from_json(const Json& record) {
  if (!record.is_object())
    return fail(Code::kInternal, "damaged", "a node record is not a JSON object");
  Problems problems;
  Reader r(problems);
  Node node;
  node.id = r.text(record, "id");
  node.name = r.text(record, "name");
  const int64_t version = r.number(record, "v");
  if (version > kNodeVersion) {
    return fail(Code::kInternal, "newer_schema",
                fmt::format("the record of node \"{}\" was written by a newer clusterctl (v{})",
                            node.name, version),
                "run that version, or restore the copy from before its first start");
  }
  if (version != kNodeVersion) r.wrong("v");
  if (node.id.empty()) r.wrong("id");
  if (node.name.empty()) r.wrong("name");
  const int64_t generation = r.number(record, "generation");
  const int64_t resource_version = r.number(record, "resource_version");
  if (generation < 1) r.wrong("generation");
  if (resource_version < 1) r.wrong("resource_version");
  node.generation = static_cast<uint64_t>(generation);
  node.resource_version = static_cast<uint64_t>(resource_version);
  node.created = r.time(record, "created").value_or(Time{});
  if (!record.contains("spec")) r.wrong("spec");
  if (!record.contains("status")) r.wrong("status");
  node.spec = read_spec(r, r.object(record, "spec"));
  node.status = read_status(r, r.object(record, "status"));
  if (problems.empty()) return node;
  return fail(Code::kInternal, "damaged",
              fmt::format("the record of node \"{}\" ({}) is damaged: {}", node.name, node.id,
                          problems.list()[0].message),
              "restore the state directory from a backup");
}

}  // namespace clusterctl::fleet
