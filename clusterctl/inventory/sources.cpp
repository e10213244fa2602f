#include "inventory/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/yaml.h"

namespace clusterctl::inventory {
namespace {

constexpr int kMaxGroupDepth = 16;
constexpr size_t kMaxHosts = 10000;
constexpr size_t kMaxFiles = 20000;

std::string in_quotes(std::string_view text) {
  return "\"" + truncate_utf8(one_line(text), 80) + "\"";
}

bool is_yaml(const fs::path& path) {
  const std::string e = path.extension().string();
  return e == ".yml" || e == ".yaml" || e == ".json";
}

std::vector<fs::path> entries(const fs::path& dir) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && !name.ends_with('~') && out.size() < kMaxFiles) {
      out.push_back(it->path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Reader {
 public:
  explicit Reader(Sources& out) : out_(out) {}

  void read(const fs::path& path) {
    std::error_code ec;
    out_.groups["all"];
    if (!fs::is_directory(path, ec)) {
      inventory_file(path);
      fs::path folder = path.parent_path();
      variable_folders(folder.empty() ? fs::path(".") : folder);
      return;
    }
    // The operator's folder: inventory/ with the variables in it or beside it.
    if (fs::is_directory(path / "inventory", ec)) {
      folder(path / "inventory");
      for (const char* kind : {"group_vars", "host_vars"}) {
        const bool inside = fs::is_directory(path / "inventory" / kind, ec);
        variable_folder_of(kind, inside ? path / "inventory" : path);
      }
      return;
    }
    folder(path);
    variable_folders(path);
  }

 private:
  void folder(const fs::path& path) {
    for (const fs::path& file : entries(path)) {
      const std::string name = file.filename().string();
      if (name == "group_vars" || name == "host_vars") continue;
      if (is_yaml(file)) {
        inventory_file(file);
      } else {
        out_.notes.push_back(fmt::format(
            "{} is left out: only .yml, .yaml and .json files are read", one_line(file.string())));
      }
    }
  }

  std::optional<Json> read_document(const fs::path& file) {
    std::error_code ec;
    const std::string shown = one_line(file.string());
    if (!fs::is_regular_file(file, ec)) {
      out_.problem("no_file", fmt::format("{} is no file that can be read", shown));
      return std::nullopt;
    }
    auto text = read_file(file, 1 << 20);
    if (text && text->starts_with("$ANSIBLE_VAULT")) {
      out_.problem("vault", fmt::format("{} is encrypted with ansible-vault", shown),
                   "decrypt it first: the controller keeps secrets itself");
      return std::nullopt;
    }
    auto json = text ? parse(*text, shown) : Result<Json>(fail(text.error()));
    if (json) return std::move(*json);
    out_.problem(json.error().reason, json.error().message, hint_for(file, json.error()));
    return std::nullopt;
  }

  // As Ansible does: what is JSON is read as JSON, in which 1e3 is a number.
  static Result<Json> parse(const std::string& text, const std::string& shown) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != std::string::npos && text[begin] == '{') {
      if (auto json = parse_json(text, shown)) return json;
    }
    return parse_yaml_1_1(text, shown);
  }

  static std::string hint_for(const fs::path& file, const Error& error) {
    if (!error.hint.empty() || is_yaml(file)) return error.hint;
    return "only YAML inventories are read; ansible-inventory --list --yaml converts others";
  }

  void inventory_file(const fs::path& file) {
    const auto document = read_document(file);
    if (!document || document->is_null()) return;
    if (!document->is_object()) {
      out_.problem(
          "no_inventory",
          fmt::format("{} is no inventory: expected groups at the top", file.string()),
          "only YAML inventories are read; ansible-inventory --list --yaml converts others");
      return;
    }
    for (const auto& [name, body] : document->items()) group(file, name, body, 0);
  }

  void group(const fs::path& file, const std::string& name, const Json& body, int depth) {
    const std::string where = fmt::format("{}: group {}", one_line(file.string()), in_quotes(name));
    if (depth > kMaxGroupDepth) {
      out_.problem("too_deep", where + " is nested too deep");
      return;
    }
    Group& g = out_.groups[name];
    if (body.is_null()) return;
    if (!body.is_object()) {
      out_.problem("no_group", where + " must hold hosts, vars or children");
      return;
    }
    if (auto known = check_keys(body, {"hosts", "vars", "children"}, where); !known) {
      out_.problem("unknown_key", known.error().message, known.error().hint);
    }
    const auto part = [&](const char* key) -> const Json* {
      const auto it = body.find(key);
      if (it == body.end() || it->is_null()) return nullptr;
      if (it->is_object()) return &*it;
      out_.problem("wrong_type", fmt::format("{}: \"{}\" must be a mapping", where, key));
      return nullptr;
    };
    if (const Json* vars = part("vars")) overlay(g.vars, *vars);
    if (const Json* hosts = part("hosts")) {
      for (const auto& [pattern, vars] : hosts->items()) host(where, g, pattern, vars);
    }
    if (const Json* children = part("children")) {
      for (const auto& [child, child_body] : children->items()) {
        out_.groups[name].children.insert(child);
        group(file, child, child_body, depth + 1);
      }
    }
  }

  void host(const std::string& where, Group& g, const std::string& pattern, const Json& vars) {
    if (!vars.is_null() && !vars.is_object()) {
      out_.problem("wrong_type", fmt::format("{}: host {}: its variables must be a mapping", where,
                                             in_quotes(pattern)));
      return;
    }
    const auto names = expand_range(pattern);
    if (!names) {
      out_.problem(names.error().reason, fmt::format("{}: {}", where, names.error().message));
      return;
    }
    for (const std::string& name : *names) {
      if (out_.hosts.size() >= kMaxHosts && !out_.hosts.contains(name)) {
        out_.problem("too_many", fmt::format("{}: more than {} hosts", where, kMaxHosts));
        return;
      }
      g.hosts.insert(name);
      Host& h = out_.hosts[name];
      if (vars.is_object()) overlay(h.vars, vars);
    }
  }

  void variable_folders(const fs::path& beside) {
    variable_folder_of("group_vars", beside);
    variable_folder_of("host_vars", beside);
  }

  void variable_folder_of(std::string_view kind, const fs::path& beside) {
    kind == "group_vars" ? group_vars(beside / kind) : host_vars(beside / kind);
  }

  void group_vars(const fs::path& dir) {
    for (const auto& [name, vars] : variable_folder(dir)) {
      const auto it = out_.groups.find(name);
      if (it == out_.groups.end()) {
        out_.notes.push_back(
            fmt::format("group_vars of {} is left out: no such group", in_quotes(name)));
      } else {
        it->second.file_vars = vars;
      }
    }
  }

  void host_vars(const fs::path& dir) {
    for (const auto& [name, vars] : variable_folder(dir)) {
      const auto it = out_.hosts.find(name);
      if (it == out_.hosts.end()) {
        out_.notes.push_back(
            fmt::format("host_vars of {} is left out: no such host", in_quotes(name)));
      } else {
        it->second.file_vars = vars;
      }
    }
  }

  // NAME, NAME.yml, NAME.yaml, NAME.json, or a folder NAME with files in it.
  std::map<std::string, Json> variable_folder(const fs::path& dir) {
    std::map<std::string, Json> out;
    std::error_code ec;
    if (!fs::is_directory(dir, ec)) return out;
    for (const fs::path& entry : entries(dir)) {
      const bool folder = fs::is_directory(entry, ec);
      const std::string name =
          (folder || !is_yaml(entry) ? entry.filename() : entry.stem()).string();
      if (!folder && entry.extension() == ".md") continue;
      Json& vars = out.try_emplace(name, Json::object()).first->second;
      for (const fs::path& file : folder ? entries(entry) : std::vector{entry}) {
        const auto document = read_document(file);
        if (!document || document->is_null()) continue;
        if (document->is_object()) {
          overlay(vars, *document);
        } else {
          out_.problem("wrong_type", fmt::format("{} must hold variables, not a {}",
                                                 one_line(file.string()), document->type_name()));
        }
      }
    }
    return out;
  }

  Sources& out_;
};

}  // namespace

void Sources::problem(std::string code, std::string message, std::string hint, std::string node) {
  problems.push_back({std::move(code), std::move(message), std::move(hint), std::move(node)});
}

void overlay(Json& base, const Json& top) {
  for (const auto& [key, value] : top.items()) base[key] = value;
}

Result<std::vector<std::string>> expand_range(const std::string& pattern) {
  const size_t open = pattern.find('[');
  if (open == std::string::npos) return std::vector{pattern};
  const auto bad = [&](std::string_view why) {
    return fail(Code::kInvalid, "bad_range", fmt::format("host {}: {}", in_quotes(pattern), why));
  };
  // A code of its own: this is not for Ansible to try.
  const auto too_large = [&] {
    return fail(Code::kInvalid, "range_too_large",
                fmt::format("host {}: the range is too large", in_quotes(pattern)),
                fmt::format("an inventory has at most {} hosts", kMaxHosts));
  };
  const size_t close = pattern.find(']', open);
  if (close == std::string::npos) return bad("the range has no end");
  const std::vector<std::string> ends = split(pattern.substr(open + 1, close - open - 1), ':');
  if (ends.size() != 2) return bad("only ranges of numbers are understood, like node[01:12]");
  int from = 0, to = 0;
  const auto number = [](const std::string& text, int& out) {
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && text.size() <= 6 && text[0] != '-' && ec == std::errc() &&
           end == text.data() + text.size();
  };
  const auto huge = [](const std::string& text) {
    return text.size() > 6 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (huge(ends[0]) || huge(ends[1])) return too_large();
  if (!number(ends[0], from) || !number(ends[1], to)) {
    return bad("only ranges of numbers are understood, like node[01:12]");
  }
  if (from > to) return bad("the range ends before it begins");
  if (to - from >= static_cast<int>(kMaxHosts)) return too_large();
  if (pattern.find('[', close) != std::string::npos) return bad("only one range is understood");
  std::vector<std::string> out;
  const int width = ends[0].size() > 1 && ends[0][0] == '0' ? static_cast<int>(ends[0].size()) : 0;
  for (int i = from; i <= to; ++i) {
    out.push_back(
        fmt::format("{}{:0{}}{}", pattern.substr(0, open), i, width, pattern.substr(close + 1)));
  }
  return out;
}

Sources read_sources(const fs::path& path) {
  Sources out;
  Reader(out).read(path);
  return out;
}

}  // namespace clusterctl::inventory
