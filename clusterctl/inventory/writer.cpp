#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "inventory/inventory.h"

namespace clusterctl::inventory {
namespace {

bool plain(const std::string& text) {
  static constexpr std::string_view kWords[] = {
      "true", "false", "null", "yes", "no",
      "on",   "off",   "y",    "n"};  // "=" and "<<" are not plain anyway
  if (text.empty() || text.size() > 200) return false;
  const std::string low = lower(text);
  if (std::find(std::begin(kWords), std::end(kWords), low) != std::end(kWords)) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool address =
      std::count(text.begin(), text.end(), '.') >= 2 && digit(text.back()) &&
      std::all_of(text.begin(), text.end(), [&](char c) { return digit(c) || c == '.'; });
  if (address) return digit(text[0]);
  return letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || digit(c) || c == '.' || c == '-' || c == '/';
         });
}

// Double quoted. Beyond JSON's escapes: what YAML takes for line breaks or does not allow at all.
std::string in_quotes(const std::string& text) {
  const std::string json = dump_json(Json(text));
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i);
    if (json[i] == 0x7f) {
      out += "\\x7f";
    } else if (rest.size() >= 2 && rest[0] == '\xc2' &&
               static_cast<unsigned char>(rest[1]) < 0xa0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest[1]));
      i += 1;
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (rest.starts_with("\xef\xbb\xbf")) {
      out += "\\ufeff";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string scalar(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return plain(text) ? text : in_quotes(text);
  }
  if (value.is_object()) return "{}";
  if (value.is_array()) return "[]";
  std::string text = dump_json(value);
  // YAML 1.1 takes 1e+16 for text: a fraction has a point.
  const size_t exponent = value.is_number_float() ? text.find('e') : std::string::npos;
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

void write(std::string& out, const Json& value, size_t indent, bool in_list) {
  const std::string pad(indent, ' ');
  bool first = in_list;  // the first key stands on the line of the dash
  const auto begin_line = [&] {
    if (!first) out += pad;
    first = false;
  };
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      begin_line();
      out += (plain(key) ? key : in_quotes(key)) + ":";
      if (item.is_structured() && !item.empty()) {
        out += "\n";
        write(out, item, indent + 2, false);
      } else {
        out += " " + scalar(item) + "\n";
      }
    }
    return;
  }
  for (const Json& item : value) {
    begin_line();
    if (item.is_structured() && !item.empty()) {
      out += "- ";
      write(out, item, indent + 2, true);
    } else {
      out += "- " + scalar(item) + "\n";
    }
  }
}

Json host_entry(const Json& spec) {
  const Json ssh = get_object(spec, "ssh").value_or(Json::object());
  Json out = get_object(spec, "vars").value_or(Json::object());
  const auto copy = [&out](const Json& from, const char* field, const char* variable,
                           const Json& usual) {
    const auto it = from.find(field);
    if (it != from.end() && !it->is_null() && *it != usual) out[variable] = *it;
  };
  copy(spec, "addr", "ansible_host", "");
  copy(ssh, "user", "ansible_user", "");
  copy(ssh, "port", "ansible_port", 22);
  copy(ssh, "host_key", "clusterctl_ssh_host_key", "");
  copy(ssh, "jump", "clusterctl_ssh_jump", "");
  copy(spec, "capabilities", "clusterctl_capabilities", Json::array());
  copy(spec, "availability", "clusterctl_availability", "active");
  copy(spec, "allocation", "clusterctl_allocation", "in-service");
  copy(spec, "acceptance", "clusterctl_acceptance", "accepted");
  copy(spec, "labels", "clusterctl_labels", Json::object());
  copy(spec, "versions", "clusterctl_versions", Json::object());
  return out;
}

}  // namespace

Json to_ansible_inventory(const Json& nodes, const Json& globals) {
  Json all = Json::object();
  if (globals.is_object() && !globals.empty()) all["vars"] = globals;
  for (const Json& node : nodes) {
    const Json spec = get_object(node, "spec").value_or(Json::object());
    const std::string name = get_string(node, "name").value_or("");
    if (name.empty()) continue;
    const std::string group = get_string(spec, "host_group").value_or("");
    Json& hosts = group.empty() ? all["hosts"] : all["children"][group]["hosts"];
    hosts[name] = host_entry(spec);
  }
  return Json{{"all", std::move(all)}};
}

std::string to_yaml(const Json& value) {
  std::string out;
  if (value.is_structured() && !value.empty()) {
    write(out, value, 0, false);
  } else {
    out = scalar(value) + "\n";
  }
  return out;
}

}  // namespace clusterctl::inventory
