#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "base/strings.h"
#include "base/yaml_scalars.h"

namespace clusterctl {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxNodes = 100000;
constexpr size_t kMaxText = 4 << 20;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

bool is_null(std::string_view t) {
  return t.empty() || t == "~" || t == "null" || t == "Null" || t == "NULL";
}
bool is_true(std::string_view t) {
  return t == "true" || t == "True" || t == "TRUE";
}
bool is_false(std::string_view t) {
  return t == "false" || t == "False" || t == "FALSE";
}

size_t digits(std::string_view t, size_t from) {
  size_t n = 0;
  while (from + n < t.size() && t[from + n] >= '0' && t[from + n] <= '9') ++n;
  return n;
}

// A decimal integer or fraction in its one usual spelling: -?(0|[1-9][0-9]*)(.[0-9]+)?. Whatever
// would lose something as a number (leading zeros, exponents of what may be a serial or a commit,
// more digits than a number holds) is the text itself.
Json number_or_text(const std::string& text) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  const size_t whole = digits(text, sign);
  if (whole == 0 || (whole > 1 && text[sign] == '0')) return Json(text);
  const char* end = text.data() + text.size();
  if (sign + whole == text.size()) {
    int64_t i = 0;
    if (auto [p, ec] = std::from_chars(text.data(), end, i); ec == std::errc() && p == end)
      return Json(i);
    uint64_t u = 0;
    if (auto [p, ec] = std::from_chars(text.data(), end, u); ec == std::errc() && p == end)
      return Json(u);
    return Json(text);
  }
  const size_t fraction = digits(text, sign + whole + 1);
  const bool usual =
      text[sign + whole] == '.' && fraction > 0 && sign + whole + 1 + fraction == text.size();
  double d = 0;
  if (!usual || whole + fraction > 15) return Json(text);
  if (auto [p, ec] = std::from_chars(text.data(), end, d); ec == std::errc() && p == end)
    return Json(d);
  return Json(text);
}

Result<Json> resolve(std::string_view text) {
  if (is_null(text)) return Json();
  if (is_true(text) || is_false(text)) return Json(is_true(text));
  return number_or_text(std::string(text));
}

std::string shown(std::string_view text) {
  return truncate_utf8(one_line(text), 80);
}

// Builds JSON from the parser's events. The first problem wins; after it the remaining events are
// ignored, since the parser cannot be stopped. An alias is the finished value of its anchor, so a
// cycle cannot come into being, and it counts as much as that value.
class Builder final : public YAML::EventHandler {
 public:
  using Resolve = Result<Json> (*)(std::string_view);
  Builder(std::string_view file, Resolve resolve) : file_(file), resolve_(resolve) {}

  Result<Json> take() {
    if (error_) return fail(*error_);
    return std::move(root_);
  }

  void problem(const YAML::Mark& mark, std::string_view why, std::string hint = "") {
    if (error_) return;
    const std::string place =
        mark.is_null() ? file_ : fmt::format("{}:{}:{}", file_, mark.line + 1, mark.column + 1);
    error_ =
        Error{Code::kInvalid, "bad_yaml", fmt::format("{}: {}", place, why), std::move(hint), {}};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_document_)
      problem(mark, "more than one document, or text behind the end of the document");
    seen_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) return problem(mark, "a key must be plain text");
    if (enter(mark, 0)) finish({Json(), anchor, 1, 0, 0});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (error_) return;
    if (expects_key()) return problem(mark, "a key must be plain text");
    if (it == anchors_.end()) return problem(mark, "an alias inside its own anchor");
    nodes_ += it->second.nodes - 1;
    if (enter(mark, it->second.bytes, it->second.height)) finish(Value(it->second));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (!enter(mark, text.size())) return;
    if (!valid_utf8(text)) return problem(mark, "not valid UTF-8");
    if (expects_key()) return key(mark, tag, text);
    finish({scalar(mark, tag, text), anchor, 1, text.size(), 0});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, "seq", Json::array(), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, "map", Json::object(), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // A finished value with what it weighs: values in it, bytes of text in it, levels below it.
  struct Value {
    Json json;
    YAML::anchor_t anchor;
    size_t nodes, bytes;
    int height;
  };
  // An open collection; `nodes` and `bytes` of its Value are the totals at its start until it is
  // closed.
  struct Frame {
    Value value;
    std::optional<std::string> key;
  };

  bool expects_key() const {
    return !frames_.empty() && frames_.back().value.json.is_object() && !frames_.back().key;
  }

  // Counts a value against the limits. False: refused, now or before.
  bool enter(const YAML::Mark& mark, size_t bytes, int height = 0) {
    if (error_) return false;
    bytes_ += bytes;
    if (static_cast<int>(frames_.size()) + height > kMaxDepth)
      problem(mark, fmt::format("more than {} levels of nesting", kMaxDepth));
    if (++nodes_ > kMaxNodes) problem(mark, fmt::format("more than {} values", kMaxNodes));
    if (bytes_ > kMaxText) problem(mark, fmt::format("more than {} bytes of text", kMaxText));
    return !error_;
  }

  void key(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    const bool quoted = tag == "!";
    if (text == "<<" && !quoted)
      return problem(mark, "merge keys (<<) are not supported", "write the values out");
    if (!quoted && !untagged(tag) && tag != std::string(kCoreTag) + "str")
      return bad_tag(mark, tag);
    Frame& frame = frames_.back();
    if (frame.value.json.contains(text))
      return problem(mark, fmt::format("the key \"{}\" stands twice", shown(text)));
    frame.key = text;
  }

  Json scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (untagged(tag)) return resolved(mark, text);
    if (tag == "!") return Json(text);  // quoted, or told to be text
    const std::string_view type =
        tag.starts_with(kCoreTag) ? std::string_view(tag).substr(kCoreTag.size()) : "";
    const Json value = type == "str" ? Json() : resolved(mark, text);
    if (error_) return Json();
    if (type == "str") return Json(text);
    if (type == "int" && value.is_number_integer()) return value;
    if (type == "float" && value.is_number()) return Json(value.get<double>());
    if (type == "bool" && value.is_boolean()) return value;
    if (type == "null" && value.is_null()) return value;
    const bool known = type == "int" || type == "float" || type == "bool" || type == "null";
    known ? problem(mark, fmt::format("\"{}\" is not a !!{}", shown(text), type))
          : bad_tag(mark, tag);
    return Json();
  }

  Json resolved(const YAML::Mark& mark, const std::string& text) {
    auto value = resolve_(text);
    if (value) return std::move(*value);
    problem(mark, value.error().message, value.error().hint);
    return Json();
  }

  void open(const YAML::Mark& mark, const std::string& tag, std::string_view type, Json empty,
            YAML::anchor_t anchor) {
    if (!enter(mark, 0, 1)) return;
    if (expects_key()) return problem(mark, "a key must be plain text");
    if (!untagged(tag) && tag != "!" && tag != fmt::format("{}{}", kCoreTag, type))
      return bad_tag(mark, tag);
    frames_.push_back({{std::move(empty), anchor, nodes_ - 1, bytes_, 0}, std::nullopt});
  }

  void close() {
    if (error_) return;
    Value value = std::move(frames_.back().value);
    frames_.pop_back();
    value.nodes = nodes_ - value.nodes;
    value.bytes = bytes_ - value.bytes;
    ++value.height;
    finish(std::move(value));
  }

  void finish(Value value) {
    if (error_) return;
    if (value.anchor != YAML::NullAnchor) anchors_.insert_or_assign(value.anchor, value);
    if (frames_.empty()) {
      root_ = std::move(value.json);
      return;
    }
    Frame& parent = frames_.back();
    parent.value.height = std::max(parent.value.height, value.height);
    if (parent.value.json.is_array()) {
      parent.value.json.push_back(std::move(value.json));
    } else {
      parent.value.json[*parent.key] = std::move(value.json);
      parent.key.reset();
    }
  }

  static bool untagged(std::string_view tag) { return tag.empty() || tag == "?"; }

  void bad_tag(const YAML::Mark& mark, const std::string& tag) {
    problem(
        mark, fmt::format("the tag {} is not supported", shown(tag)),
        tag == "!vault" ? "give the value as a secret variable instead of an encrypted text" : "");
  }

  std::string file_;
  Resolve resolve_;
  std::optional<Error> error_;
  bool seen_document_ = false;
  Json root_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Value> anchors_;
  size_t nodes_ = 0;
  size_t bytes_ = 0;
};

}  // namespace

namespace {

Result<Json> parse(std::string_view text, std::string_view file_name, Builder::Resolve resolve) {
  if (text.size() > kMaxBytes) {
    return fail(Code::kTooLarge, "file_too_large",
                fmt::format("{} is larger than {} bytes", file_name, kMaxBytes));
  }
  Builder builder(file_name, resolve);
  if (!valid_utf8(text)) builder.problem(YAML::Mark::null_mark(), "not valid UTF-8");
  if (text.find('\0') != std::string_view::npos)
    builder.problem(YAML::Mark::null_mark(), "contains a NUL byte");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // Never a third time: on some broken texts the parser finds empty documents without end.
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& e) {
    builder.problem(e.mark, shown(e.msg));
  }
  return builder.take();
}

}  // namespace

Result<Json> parse_yaml(std::string_view text, std::string_view file_name) {
  return parse(text, file_name, resolve);
}

Result<Json> parse_yaml_1_1(std::string_view text, std::string_view file_name) {
  return parse(text, file_name, resolve_yaml_1_1);
}

Result<Json> read_yaml(const fs::path& path) {
  auto text = read_file(path, kMaxBytes);
  if (!text) return fail(text.error());
  return parse_yaml(*text, path.string());
}

std::vector<std::string> yaml_key_order(std::string_view text,
                                        const std::vector<std::string>& path) {
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
