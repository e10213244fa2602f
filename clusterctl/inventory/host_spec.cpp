#include "inventory/host_spec.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"

namespace clusterctl::inventory {
namespace {

bool alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string shown(const Json& value) {
  return truncate_utf8(one_line(dump_json(value)), 80);
}

bool valid_user(std::string_view user) {
  return !user.empty() && user.size() <= 32 && (alnum(user[0]) || user[0] == '_') &&
         std::all_of(user.begin(), user.end(),
                     [](char c) { return alnum(c) || c == '_' || c == '-' || c == '.'; });
}

bool valid_host_key(std::string_view key) {
  const std::vector<std::string> parts = split(key, ' ', true);
  static constexpr std::string_view kTypes[] = {
      "ssh-ed25519",         "ssh-rsa",
      "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
      "ecdsa-sha2-nistp521", "sk-ssh-ed25519@openssh.com"};
  return parts.size() == 2 &&
         std::find(std::begin(kTypes), std::end(kTypes), parts[0]) != std::end(kTypes) &&
         std::all_of(parts[1].begin(), parts[1].end(),
                     [](char c) { return alnum(c) || c == '+' || c == '/' || c == '='; });
}

bool valid_identifier(std::string_view name) {
  return !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), [](char c) { return alnum(c) || c == '_'; });
}

// Settings of Ansible that the controller decides itself, harmless to leave out.
const std::set<std::string>& left_out() {
  static const std::set<std::string> names{"ansible_become",
                                           "ansible_become_method",
                                           "ansible_become_user",
                                           "ansible_connection",
                                           "ansible_ssh_private_key_file",
                                           "ansible_private_key_file",
                                           "ansible_timeout",
                                           "ansible_ssh_timeout",
                                           "ansible_ssh_pipelining",
                                           "ansible_pipelining",
                                           "ansible_shell_type"};
  return names;
}

const std::set<std::string>& spec_names() {
  static const std::set<std::string> names{"ansible_host",
                                           "ansible_ssh_host",
                                           "ansible_port",
                                           "ansible_ssh_port",
                                           "ansible_user",
                                           "ansible_ssh_user",
                                           "clusterctl_ssh_host_key",
                                           "clusterctl_ssh_jump",
                                           "clusterctl_capabilities",
                                           "clusterctl_availability",
                                           "clusterctl_acceptance",
                                           "clusterctl_allocation",
                                           "clusterctl_labels",
                                           "clusterctl_versions"};
  return names;
}

class SpecMaker {
 public:
  SpecMaker(const std::string& name, const Json& all, Sources& sources)
      : name_(name), all_(all), sources_(sources) {}

  Json make() {
    if (!valid_node_name(name_)) {
      problem("bad_name", fmt::format("\"{}\" is no node name", truncate_utf8(one_line(name_), 80)),
              "lower-case letters, digits, dots and dashes; at most 63 characters");
    }
    address();
    Json ssh = Json::object();
    port(ssh);
    text(ssh, "user", find("ansible_user", "ansible_ssh_user"), valid_user, "a user name");
    text(ssh, "host_key", find("clusterctl_ssh_host_key"), valid_host_key,
         "a host key like \"ssh-ed25519 AAAA…\"");
    text(ssh, "jump", find("clusterctl_ssh_jump"), valid_jump, "a jump host like user@host:port");
    if (!ssh.empty()) spec_["ssh"] = std::move(ssh);
    lists();
    return std::move(spec_);
  }

 private:
  static bool valid_jump(std::string_view jump) {
    const size_t at = jump.find('@');
    if (at != std::string_view::npos && !valid_user(jump.substr(0, at))) return false;
    std::string_view host = at == std::string_view::npos ? jump : jump.substr(at + 1);
    const size_t colon = host.rfind(':');
    if (colon != std::string_view::npos && host.find(':') == colon) host = host.substr(0, colon);
    return valid_address(host);
  }

  std::pair<std::string, const Json*> find(const char* a, const char* b = nullptr) const {
    for (const char* key : {a, b}) {
      if (!key) continue;
      const auto it = all_.find(key);
      if (it != all_.end() && !it->is_null()) return {key, &*it};
    }
    return {a, nullptr};
  }

  void address() {
    const auto [key, value] = find("ansible_host", "ansible_ssh_host");
    const std::string addr = !value ? name_ : value->is_string() ? value->get<std::string>() : "";
    if (valid_address(addr)) {
      spec_["addr"] = addr;
    } else if (value) {
      problem("bad_addr", fmt::format("{}: {} is no address", key, shown(*value)),
              "an IP address or a host name");
    }
  }

  void port(Json& ssh) {
    const auto [key, value] = find("ansible_port", "ansible_ssh_port");
    if (!value) return;
    int64_t port = 0;
    if (value->is_number_integer()) port = value->get<int64_t>();
    if (value->is_string()) {
      const std::string& t = value->get_ref<const std::string&>();
      const auto [end, ec] = std::from_chars(t.data(), t.data() + t.size(), port);
      if (ec != std::errc() || end != t.data() + t.size()) port = 0;
    }
    if (port < 1 || port > 65535) {
      problem("bad_port", fmt::format("{}: {} is no port", key, shown(*value)));
      return;
    }
    ssh["port"] = port;
  }

  void text(Json& into, const char* field, std::pair<std::string, const Json*> found,
            bool (*valid)(std::string_view), std::string_view what) {
    const auto& [key, value] = found;
    if (!value) return;
    const std::string t = value->is_string() ? trim(value->get_ref<const std::string&>()) : "";
    if (!valid(t)) {
      problem("bad_" + std::string(field),
              fmt::format("{}: {} is not {}", key, shown(*value), what));
      return;
    }
    into[field] = t;
  }

  void word(const std::string& field, const std::vector<std::string>& words) {
    const Json* v = find(("clusterctl_" + field).c_str()).second;
    if (!v) return;
    if (v->is_string() && std::find(words.begin(), words.end(), *v) != words.end()) {
      spec_[field] = *v;
    } else {
      problem("bad_" + field,
              fmt::format("clusterctl_{}: {} is none of {}", field, shown(*v), join(words, ", ")));
    }
  }

  void lists() {
    if (const Json* v = find("clusterctl_capabilities").second) {
      const auto list = get_strings(all_, "clusterctl_capabilities");
      if (list) {
        spec_["capabilities"] = *v;
      } else {
        problem("wrong_type", "clusterctl_capabilities must be a list of names");
      }
    }
    word("availability", {"active", "pause", "drain"});
    word("allocation", {"in-service", "spare", "retired"});
    word("acceptance", {"pending", "accepted", "rejected"});
    for (const auto& [variable, field] :
         {std::pair{"clusterctl_labels", "labels"}, std::pair{"clusterctl_versions", "versions"}}) {
      const Json* v = find(variable).second;
      if (!v) continue;
      const bool texts = v->is_object() && std::all_of(v->begin(), v->end(), [](const Json& item) {
                           return item.is_string();
                         });
      if (texts) {
        spec_[field] = *v;
      } else {
        problem("wrong_type", fmt::format("{} must map names to texts", variable),
                "quote numbers and truth values");
      }
    }
  }

  void problem(std::string code, std::string message, std::string hint = "") {
    sources_.problem(std::move(code), std::move(message), std::move(hint), one_line(name_));
  }

  const std::string& name_;
  const Json& all_;
  Sources& sources_;
  Json spec_ = Json::object();
};

bool has_template(const Json& value) {
  if (value.is_string()) {
    const std::string& t = value.get_ref<const std::string&>();
    return t.find("{{") != std::string::npos || t.find("{%") != std::string::npos;
  }
  return value.is_structured() && std::any_of(value.begin(), value.end(), has_template);
}

}  // namespace

bool valid_node_name(std::string_view name) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  const auto edge = [&](char c) { return inner(c) && c != '.' && c != '-'; };
  return !name.empty() && name.size() <= 63 && edge(name.front()) && edge(name.back()) &&
         std::all_of(name.begin(), name.end(), inner);
}

bool valid_address(std::string_view addr) {
  const std::string text(addr);
  unsigned char buffer[sizeof(in6_addr)];
  if (text.find('\0') != std::string::npos) return false;
  if (inet_pton(AF_INET, text.c_str(), buffer) == 1) return true;
  if (inet_pton(AF_INET6, text.c_str(), buffer) == 1) return true;
  return !addr.empty() && addr.size() <= 253 && alnum(addr.front()) && alnum(addr.back()) &&
         std::all_of(addr.begin(), addr.end(),
                     [](char c) { return alnum(c) || c == '-' || c == '.'; });
}

Json plain_vars(const Json& vars, const std::string& what, const std::string& node,
                Sources& sources) {
  Json out = Json::object();
  for (const auto& [key, value] : vars.items()) {
    const std::string name = truncate_utf8(one_line(key), 80);
    if (spec_names().contains(key)) continue;
    if (left_out().contains(key)) {
      const std::string note = fmt::format(
          "{} is left out: the controller decides it (section ssh of its settings)", name);
      if (std::find(sources.notes.begin(), sources.notes.end(), note) == sources.notes.end()) {
        sources.notes.push_back(note);
      }
      continue;
    }
    if (key.starts_with("clusterctl_")) {
      const std::string note = fmt::format("{} is left out: the controller sets it", name);
      if (std::find(sources.notes.begin(), sources.notes.end(), note) == sources.notes.end()) {
        sources.notes.push_back(note);
      }
      continue;
    }
    if (key.starts_with("ansible_") && key != "ansible_python_interpreter") {
      sources.problem("reserved_variable", fmt::format("{}: {} cannot be taken over", what, name),
                      key.find("pass") != std::string::npos
                          ? "use SSH keys and passwordless sudo; remove it from the inventory"
                          : "connection settings are ansible_host, ansible_port, ansible_user and "
                            "clusterctl_ssh_jump",
                      node);
      continue;
    }
    if (!valid_identifier(key)) {
      sources.problem("bad_variable", fmt::format("{}: \"{}\" is no variable name", what, name),
                      "letters, digits and underscores", node);
      continue;
    }
    if (has_template(value)) {
      sources.notes.push_back(fmt::format(
          "{}: {} holds a template: the controller passes it as plain text", what, name));
    }
    out[key] = value;
  }
  return out;
}

Json host_spec(const std::string& name, const Json& connection, const Json& vars,
               Sources& sources) {
  Json spec = SpecMaker(name, connection, sources).make();
  Json kept = plain_vars(vars, one_line(name), one_line(name), sources);
  if (!kept.empty()) spec["vars"] = std::move(kept);
  return spec;
}

}  // namespace clusterctl::inventory
