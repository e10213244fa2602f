#include "ansible/render.h"

#include <fmt/format.h>

#include <set>

#include "ansible/ssh_args.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

Json unsafe_text(std::string_view text) {
  return Json{{"__ansible_unsafe", text}};
}

std::string_view availability_word(fleet::Availability availability) {
  switch (availability) {
    case fleet::Availability::kPause:
      return "pause";
    case fleet::Availability::kDrain:
      return "drain";
    case fleet::Availability::kActive:
      break;
  }
  return "active";
}

Status check_name(std::string_view what, std::string_view name) {
  if (valid_host_name(name)) return {};
  return fail(Code::kInvalid, "bad_name",
              fmt::format("{} \"{}\" cannot stand in an inventory", what,
                          truncate_utf8(one_line(name), 80)),
              "lower-case letters, digits, dots and dashes, at most 63");
}

Status check_words(std::string_view what, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!valid_word(word)) {
      return fail(Code::kInvalid, "bad_name",
                  fmt::format("the {} \"{}\" cannot stand in an inventory", what,
                              truncate_utf8(one_line(word), 80)));
    }
  }
  return {};
}

Status check_host(const Host& host, const RunInput& input) {
  if (auto ok = check_name("the node name", host.name); !ok) return ok;
  if (!valid_word(host.id))
    return fail(Code::kInvalid, "bad_name", fmt::format("node {} has no usable id", host.name));
  static const std::set<std::string> kReserved = {"all", "ungrouped", "clusterctl_targets",
                                                  "clusterctl_peers"};
  if (!host.host_group.empty() &&
      (!valid_word(host.host_group) || kReserved.count(host.host_group))) {
    return fail(Code::kInvalid, "bad_name",
                fmt::format("{}: the host group \"{}\" cannot be used", host.name,
                            one_line(host.host_group)));
  }
  if (auto ok = check_words("service", host.services); !ok) return ok;
  const std::string& user = host.ssh.user.empty() ? input.default_user : host.ssh.user;
  if (auto ok = check_connection(host.name, host.addr, user, host.ssh); !ok) return ok;
  return check_var_names(host.vars, "node " + host.name);
}

Status check(const RunInput& input) {
  std::set<std::string> names;
  for (const Host& host : input.hosts) {
    if (auto ok = check_host(host, input); !ok) return ok;
    if (!names.insert(host.name).second)
      return fail(Code::kInternal, "twice", fmt::format("{} stands twice in one run", host.name));
  }
  for (const auto* list : {&input.managers, &input.leaving}) {
    for (const std::string& name : *list) {
      if (auto ok = check_name("the node name", name); !ok) return ok;
    }
  }
  for (const std::string* name : {&input.initiator, &input.peer}) {
    if (name->empty()) continue;
    // delegate_to an unknown name would be an implicit host with inherited settings, and no error.
    if (!names.count(*name))
      return fail(Code::kInternal, "unknown_peer",
                  fmt::format("{} is no host of this run", one_line(*name)));
  }
  for (const auto& [what, words] : std::map<std::string, std::vector<std::string>>{
           {"run id", {input.run_id}},
           {"order", input.order.empty() ? std::vector<std::string>{}
                                         : std::vector<std::string>{input.order}},
           {"service", input.only_services},
           {"run id of a fence", input.fence_runs},
           {"cleanup level", {input.cleanup_level}}}) {
    if (auto ok = check_words(what, words); !ok) return ok;
  }
  if (!input.endpoint.empty() && !valid_address(input.endpoint)) {
    return fail(Code::kInvalid, "bad_address",
                fmt::format("the cluster's address \"{}\" is none", one_line(input.endpoint)));
  }
  return check_var_names(input.request_vars, "the request");
}

Json host_vars(const Host& host, const RunInput& input) {
  Json out = unsafe_value(host.vars.is_null() ? Json::object() : host.vars);
  const std::string& user = host.ssh.user.empty() ? input.default_user : host.ssh.user;
  out["ansible_host"] = unsafe_text(host.addr);
  out["ansible_port"] = host.ssh.port;
  if (!user.empty()) out["ansible_user"] = unsafe_text(user);
  if (!input.private_key.empty())
    out["ansible_ssh_private_key_file"] = unsafe_text(input.private_key);
  const Connection connection{host.id, input.private_key, input.run_dir + "/known_hosts",
                              &host.ssh};
  out["ansible_ssh_common_args"] = unsafe_text(common_args(connection));
  out["ansible_host_key_checking"] =
      true;  // else Ansible would put StrictHostKeyChecking=no before our arguments
  out["clusterctl_node_id"] = host.id;
  out["clusterctl_role"] = host.role == fleet::Role::kManager ? "manager" : "worker";
  out["clusterctl_services"] = host.services;
  out["clusterctl_recorded"] = unsafe_value(Json(host.recorded));
  out["clusterctl_availability"] = availability_word(host.availability);
  if (host.in_service) out["clusterctl_in_service"] = *host.in_service;
  return out;
}

Json all_vars(const RunInput& input) {
  Json out = {{"clusterctl_run_id", input.run_id},
              {"clusterctl_cluster_name", unsafe_text(input.cluster_name)},
              {"clusterctl_managers", input.managers},
              {"clusterctl_leaving", input.leaving},
              {"clusterctl_fence_runs", input.fence_runs},
              {"clusterctl_cleanup_level", input.cleanup_level},
              {"clusterctl_pki_dir", unsafe_text(input.pki_dir)}};
  if (!input.initiator.empty()) out["clusterctl_initiator"] = input.initiator;
  if (!input.peer.empty()) out["clusterctl_peer"] = input.peer;
  if (!input.endpoint.empty()) out["clusterctl_endpoint"] = unsafe_text(input.endpoint);
  if (!input.only_services.empty()) out["clusterctl_only_services"] = input.only_services;
  if (!input.order.empty()) out["clusterctl_order"] = input.order;
  if (input.drain_deadline) out["clusterctl_drain_deadline"] = *input.drain_deadline;
  Json lost = Json::array();
  for (const LostMember& member : input.lost) {
    lost.push_back(
        unsafe_value({{"name", member.name}, {"addr", member.addr}, {"ids", member.ids}}));
  }
  out["clusterctl_lost"] = std::move(lost);
  return out;
}

// Ansible takes the order of hosts from the first group that names them, so the order of work must
// survive: ordered JSON.
std::string inventory_text(const RunInput& input) {
  using Ordered = nlohmann::ordered_json;
  Ordered targets = Ordered::object(), peers = Ordered::object(), groups = Ordered::object();
  for (const Host& host : input.hosts) {
    (host.target ? targets : peers)[host.name] = host_vars(host, input);
    if (!host.host_group.empty()) groups[host.host_group]["hosts"][host.name] = Ordered::object();
  }
  Ordered children = Ordered::object();
  children["clusterctl_targets"]["hosts"] = std::move(targets);
  children["clusterctl_peers"]["hosts"] = std::move(peers);
  for (auto& [name, group] : groups.items()) children[name] = std::move(group);
  Ordered root;
  root["all"]["vars"] = all_vars(input);
  root["all"]["children"] = std::move(children);
  return root.dump(1, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace

Json unsafe_value(const Json& value) {
  if (value.is_string()) return unsafe_text(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, inner] : value.items()) {
    if (value.is_array()) {
      out.push_back(unsafe_value(inner));
    } else {
      out[key] = unsafe_value(inner);
    }
  }
  return out;
}

Result<RunFiles> render(const RunInput& input) {
  if (auto ok = check(input); !ok) return fail(ok.error());
  RunFiles out;
  try {
    out.inventory = inventory_text(input);
    if (input.request_vars.is_object() && !input.request_vars.empty())
      out.vars = dump_json(unsafe_value(input.request_vars), 1) + "\n";
  } catch (const nlohmann::json::exception& e) {
    return fail(Code::kInternal, "render",
                fmt::format("the inventory of run {} cannot be written: {}", input.run_id,
                            one_line(e.what())));
  }
  for (const Host& host : input.hosts) {
    if (host.ssh.host_key.empty()) continue;
    const auto fields = split(host.ssh.host_key, ' ', true);  // without the comment
    out.known_hosts += fmt::format("{} {} {}\n", host.id, fields[0], fields[1]);
  }
  return out;
}

std::map<std::string, std::string> learnt_host_keys(std::string_view known_hosts) {
  std::map<std::string, std::string> out;
  for (const std::string& line : split(known_hosts, '\n', true)) {
    const auto fields = split(trim(line), ' ', true);
    if (fields.size() < 3 || !valid_word(fields[0]))
      continue;  // comments, markers, hashed and listed names are not ours
    const std::string key = fields[1] + " " + fields[2];
    if (!valid_host_key(key)) continue;
    std::string& kept = out[fields[0]];
    if (kept.empty() || fields[1] == "ssh-ed25519") kept = key;
  }
  return out;
}

}  // namespace clusterctl::ansible
