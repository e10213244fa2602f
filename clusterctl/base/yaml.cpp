#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>

#include "base/strings.h"

namespace clusterctl {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100000;

class Converter {
 public:
  explicit Converter(std::string_view file) : file_(file) {}

  Result<Json> convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth) return problem(node, fmt::format("more than {} levels of nesting", kMaxDepth));
    if (++nodes_ > kMaxNodes) return problem(node, fmt::format("more than {} values", kMaxNodes));
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return Json();
      case YAML::NodeType::Scalar: return scalar(node);
      case YAML::NodeType::Sequence: return sequence(node, depth);
      case YAML::NodeType::Map: return map(node, depth);
    }
    return Json();
  }

 private:
  Result<Json> sequence(const YAML::Node& node, int depth) {
    Json out = Json::array();
    for (const YAML::Node& item : node) {
      auto value = convert(item, depth + 1);
      if (!value) return value;
      out.push_back(std::move(*value));
    }
    return out;
  }

  Result<Json> map(const YAML::Node& node, int depth) {
    Json out = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return problem(entry.first, "a key must be plain text");
      const std::string key = entry.first.Scalar();
      if (out.contains(key)) return problem(entry.first, fmt::format("the key \"{}\" stands twice", one_line(key)));
      auto value = convert(entry.second, depth + 1);
      if (!value) return value;
      out[key] = std::move(*value);
    }
    return out;
  }

  Result<Json> scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (!valid_utf8(text)) return problem(node, "not valid UTF-8");
    if (node.Tag() == "!") return Json(text);  // quoted
    if (text == "true" || text == "false") return Json(text == "true");
    if (text == "null" || text == "~" || text.empty()) return Json();
    return number(text);
  }

  // A decimal integer or fraction in its usual spelling, else the text itself.
  static Json number(const std::string& text) {
    const char* begin = text.data();
    const char* end = begin + text.size();
    const size_t sign = text[0] == '-' ? 1 : 0;
    const bool padded = text.size() > sign + 1 && text[sign] == '0' && text[sign + 1] != '.';
    if (padded || text.size() == sign || text[sign] < '0' || text[sign] > '9') return Json(text);
    int64_t i = 0;
    if (auto [p, ec] = std::from_chars(begin, end, i); ec == std::errc() && p == end) return Json(i);
    uint64_t u = 0;
    if (auto [p, ec] = std::from_chars(begin, end, u); ec == std::errc() && p == end) return Json(u);
    double d = 0;
    if (auto [p, ec] = std::from_chars(begin, end, d); ec == std::errc() && p == end) return Json(d);
    return Json(text);
  }

  tl::unexpected<Error> problem(const YAML::Node& node, std::string why) {
    const YAML::Mark mark = node.Mark();
    return fail(Code::kInvalid, "bad_yaml", fmt::format("{}:{}:{}: {}", file_, mark.line + 1, mark.column + 1, why));
  }

  std::string file_;
  int nodes_ = 0;
};

}  // namespace

Result<Json> parse_yaml(std::string_view text, std::string_view file_name) {
  if (text.size() > kMaxBytes) {
    return fail(Code::kTooLarge, "file_too_large", fmt::format("{} is larger than {} bytes", file_name, kMaxBytes));
  }
  // yaml-cpp recurses while it builds nodes: refuse deep flow nesting before it sees the text.
  int open = 0;
  for (char c : text) {
    open += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (open > 1000) return fail(Code::kInvalid, "bad_yaml", fmt::format("{}: too many levels of nesting", file_name));
  }
  try {
    return Converter(file_name).convert(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& e) {
    return fail(Code::kInvalid, "bad_yaml",
                fmt::format("{}:{}:{}: {}", file_name, e.mark.line + 1, e.mark.column + 1, one_line(e.msg)));
  }
}

Result<Json> read_yaml(const fs::path& path) {
  auto text = read_file(path, kMaxBytes);
  if (!text) return fail(text.error());
  return parse_yaml(*text, path.string());
}

std::vector<std::string> yaml_key_order(std::string_view text, const std::vector<std::string>& path) {
  std::vector<std::string> out;
  try {
    YAML::Node node = YAML::Load(std::string(text));
    for (const std::string& key : path) {
      if (!node.IsMap()) return out;
      node.reset(node[key]);
    }
    if (!node.IsMap()) return out;
    for (const auto& entry : node) out.push_back(entry.first.Scalar());
  } catch (const YAML::Exception&) {
    out.clear();
  }
  return out;
}

}  // namespace clusterctl
