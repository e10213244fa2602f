#include "base/json.h"

#include <fmt/format.h>

#include <set>

#include "base/strings.h"

namespace clusterctl {
namespace {

constexpr size_t kMaxQuoted = 300;  // bytes of a foreign text inside one of our messages

// Feeds nlohmann's DOM builder, refusing duplicate keys and too much depth on the way.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(Json& root, int max_depth) : dom_(root, false), max_depth_(max_depth) {}

  bool null() override { return dom_.null(); }
  bool boolean(bool v) override { return dom_.boolean(v); }
  bool number_integer(number_integer_t v) override { return dom_.number_integer(v); }
  bool number_unsigned(number_unsigned_t v) override { return dom_.number_unsigned(v); }
  bool number_float(number_float_t v, const string_t& s) override {
    // An integer arrives here only when it does not fit into 64 bits: it would silently lose
    // digits.
    if (s.find_first_of(".eE") == string_t::npos)
      return stop(fmt::format("the integer {} is too large; write it as text", s));
    return dom_.number_float(v, s);
  }
  bool string(string_t& v) override { return dom_.string(v); }
  bool binary(binary_t& v) override { return dom_.binary(v); }
  bool start_object(size_t n) override {
    keys_.emplace_back();
    return deeper() && dom_.start_object(n);
  }
  bool key(string_t& k) override {
    if (!keys_.back().insert(k).second)
      return stop(fmt::format("the key \"{}\" stands twice in one object", k));
    return dom_.key(k);
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return dom_.end_object();
  }
  bool start_array(size_t n) override { return deeper() && dom_.start_array(n); }
  bool end_array() override {
    --depth_;
    return dom_.end_array();
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    std::string text =
        e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    const size_t cut = text.find("] ");
    return stop(fmt::format("{} (byte {})", cut == std::string::npos ? text : text.substr(cut + 2),
                            position));
  }

  const std::string& problem() const { return problem_; }

 private:
  bool deeper() {
    return ++depth_ <= max_depth_ ||
           stop(fmt::format("more than {} levels of nesting", max_depth_));
  }
  bool stop(std::string why) {
    problem_ = std::move(why);
    return false;
  }

  nlohmann::detail::json_sax_dom_parser<Json> dom_;
  std::vector<std::set<std::string>> keys_;
  int depth_ = 0;
  int max_depth_;
  std::string problem_;
};

tl::unexpected<Error> wrong_type(std::string_view key, std::string_view want, const Json& got) {
  return fail(Code::kInvalid, "wrong_type",
              fmt::format("\"{}\" must be {}, not {}", key, want, got.type_name()));
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth) {
  const auto bad = [&](std::string_view why) {
    return fail(
        Code::kInvalid, "bad_json",
        fmt::format("{} is not valid JSON: {}", what, truncate_utf8(one_line(why), kMaxQuoted)));
  };
  // The library takes a NUL for the end of the text and would accept whatever follows it.
  if (text.find('\0') != std::string_view::npos) return bad("it contains a NUL byte");
  Json root;
  StrictBuilder builder(root, max_depth);
  if (!Json::sax_parse(text, &builder)) {
    return bad(builder.problem());
  }
  return root;
}

Result<Json> parse_json_object(std::string_view text, std::string_view what, bool blank_is_empty) {
  if (blank_is_empty && text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Json::object();
  auto value = parse_json(text, what);
  if (value && !value->is_object()) {
    return fail(Code::kInvalid, "not_an_object",
                fmt::format("{} must be a JSON object, not {}", what, value->type_name()));
  }
  return value;
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> get_string(const Json& object, std::string_view key,
                               std::string_view fallback) {
  const Json* v = find(object, key);
  if (!v) return std::string(fallback);
  if (!v->is_string()) return wrong_type(key, "a string", *v);
  return v->get<std::string>();
}

Result<bool> get_bool(const Json& object, std::string_view key, bool fallback) {
  const Json* v = find(object, key);
  if (!v) return fallback;
  if (!v->is_boolean()) return wrong_type(key, "true or false", *v);
  return v->get<bool>();
}

Result<int64_t> get_int(const Json& object, std::string_view key, int64_t fallback) {
  const Json* v = find(object, key);
  if (!v) return fallback;
  if (!v->is_number_integer()) return wrong_type(key, "an integer", *v);
  if (v->is_number_unsigned() && v->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return fail(Code::kInvalid, "wrong_type",
                fmt::format("\"{}\" is too large: {}", key, v->get<uint64_t>()));
  }
  return v->get<int64_t>();
}

Result<std::vector<std::string>> get_strings(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  const Json* v = find(object, key);
  if (!v) return out;
  if (!v->is_array()) return wrong_type(key, "a list of strings", *v);
  for (const Json& item : *v) {
    if (!item.is_string()) return wrong_type(key, "a list of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<Json> get_object(const Json& object, std::string_view key) {
  const Json* v = find(object, key);
  if (!v) return Json::object();
  if (!v->is_object()) return wrong_type(key, "an object", *v);
  return *v;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

Status check_keys(const Json& object, const std::vector<std::string>& known,
                  std::string_view what) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    return fail(Code::kInvalid, "unknown_key",
                fmt::format("{} has no \"{}\"", what, truncate_utf8(one_line(key), kMaxQuoted)),
                known.empty()  ? "it takes none; leave it out"
                : near.empty() ? "known: " + join(known, ", ")
                               : fmt::format("did you mean \"{}\"?", near));
  }
  return {};
}

}  // namespace clusterctl
