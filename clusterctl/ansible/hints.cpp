#include "ansible/hints.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/yaml.h"

namespace clusterctl::ansible {

extern const std::string_view kHintsText;  // playbooks/hints.yml

namespace {

constexpr size_t kMaxEvidenceLine = 2000;
constexpr size_t kMaxHint = 400;

tl::unexpected<Error> bad(const std::string& where, std::string why) {
  return fail(Code::kInvalid, "bad_hints", fmt::format("{}: {}", where, why),
              "docs/operations.md, \"Known causes\", says what an entry holds");
}

// A list of texts, or one text.
Result<std::vector<std::string>> texts(const Json& entry, const char* key) {
  const auto it = entry.find(key);
  if (it != entry.end() && it->is_string()) return std::vector{it->get<std::string>()};
  return get_strings(entry, key);
}

Result<std::optional<bool>> flag(const Json& entry, const char* key) {
  if (!entry.contains(key)) return std::optional<bool>();
  const auto value = get_bool(entry, key);
  if (!value) return fail(value.error());
  return std::optional(*value);
}

// The pieces stand in the line one after another.
bool contains(std::string_view line, const std::vector<std::string>& pieces) {
  size_t from = 0;
  for (const std::string& piece : pieces) {
    const size_t at = line.find(piece, from);
    if (at == std::string_view::npos) return false;
    from = at + piece.size();
  }
  return true;
}

bool says_nothing(std::string_view line) {
  static constexpr std::string_view kEmpty[] = {"non-zero return code", "MODULE FAILURE",
                                                "See stdout/stderr for the exact error",
                                                "One or more items failed", "All items completed"};
  return std::any_of(std::begin(kEmpty), std::end(kEmpty),
                     [&](std::string_view s) { return line.starts_with(s); });
}

// Without the frames that programs draw around their words.
std::string undecorated(std::string_view line) {
  const auto junk = [](char c) { return c == '@' || c == '*' || c == ' ' || c == '\t'; };
  while (!line.empty() && junk(line.front())) line.remove_prefix(1);
  while (!line.empty() && junk(line.back())) line.remove_suffix(1);
  return std::string(line);
}

std::string filled(std::string hint, std::string_view node, std::string_view service) {
  const std::pair<std::string_view, std::string_view> words[] = {
      {"{node}", node.empty() ? "the node" : node},
      {"{service}", service.empty() ? "the service" : service}};
  for (const auto& [word, value] : words) {
    for (size_t at = 0; (at = hint.find(word, at)) != std::string::npos; at += value.size())
      hint.replace(at, word.size(), value);
  }
  return hint;
}

}  // namespace

Result<Hints::Entry> Hints::parse_entry(const Json& value, const std::string& where) {
  Entry out;
  if (!value.is_object()) return bad(where, "an entry must hold keys and values");
  if (auto ok = check_keys(value, {"code", "text", "rc", "unreachable", "run", "hint"}, where); !ok)
    return fail(ok.error());
  const auto code = get_string(value, "code");
  const auto hint = get_string(value, "hint");
  const auto text = texts(value, "text");
  const auto unreachable = flag(value, "unreachable");
  const auto run = flag(value, "run");
  for (const Error* error :
       {code ? nullptr : &code.error(), hint ? nullptr : &hint.error(),
        text ? nullptr : &text.error(), unreachable ? nullptr : &unreachable.error(),
        run ? nullptr : &run.error()}) {
    if (error) return bad(where, error->message);
  }
  out.code = *code;
  out.hint = *hint;
  out.unreachable = *unreachable;
  out.whole_run = *run;
  const bool word = std::all_of(out.code.begin(), out.code.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (out.code.empty() || !word) return bad(where, "code must be a word of a-z, 0-9 and _");
  if (out.hint.empty() || out.hint.size() > kMaxHint || one_line(out.hint) != out.hint)
    return bad(where, fmt::format("hint must be one line of at most {} bytes", kMaxHint));
  for (const std::string& pattern : *text) {
    const auto pieces = split(lower(pattern), '*', true);
    if (pieces.empty()) return bad(where, "a text that fits everything");
    out.text.push_back(pieces);
  }
  if (const auto it = value.find("rc"); it != value.end()) {
    const Json list = it->is_array() ? *it : Json::array({*it});
    for (const Json& rc : list) {
      if (!rc.is_number_integer()) return bad(where, "rc must be a number or a list of numbers");
      out.rc.push_back(rc.get<int64_t>());
    }
  }
  if (out.text.empty() && out.rc.empty() && !out.unreachable.value_or(false))
    return bad(where, "needs text, rc or unreachable: true");
  return out;
}

Result<Hints> Hints::parse(std::string_view text, std::string_view file_name) {
  const auto document = parse_yaml(text, file_name);
  if (!document) return fail(document.error());
  const std::string file(file_name);
  if (!document->is_object()) return bad(file, "must hold the key \"causes\"");
  if (auto ok = check_keys(*document, {"causes"}, file); !ok) return fail(ok.error());
  const auto causes = document->find("causes");
  if (causes == document->end() || !causes->is_array())
    return bad(file, "\"causes\" must be a list");
  Hints out;
  for (const Json& value : *causes) {
    const std::string name = value.is_object() ? get_string(value, "code").value_or("") : "";
    auto entry =
        parse_entry(value, fmt::format("{}: cause {}{}", file, out.entries_.size() + 1,
                                       name.empty() ? "" : fmt::format(" ({})", one_line(name))));
    if (!entry) return fail(entry.error());
    out.entries_.push_back(std::move(*entry));
  }
  return out;
}

Result<Hints> Hints::read(const fs::path& file) {
  const auto text = read_file(file, 1 << 20);
  if (!text) return fail(text.error());
  return parse(*text, file.string());
}

Result<Hints> Hints::built_in() {
  return parse(kHintsText, "hints.yml");
}

std::vector<std::string> Hints::codes() const {
  std::vector<std::string> out;
  for (const Entry& e : entries_) out.push_back(e.code);
  return out;
}

bool Hints::fits(const Entry& entry, const Evidence& evidence,
                 const std::vector<std::string>& lowered, size_t& line) {
  if (entry.unreachable && *entry.unreachable != evidence.unreachable) return false;
  if (entry.whole_run && *entry.whole_run != evidence.whole_run) return false;
  if (!entry.rc.empty() &&
      (!evidence.rc || std::find(entry.rc.begin(), entry.rc.end(), *evidence.rc) == entry.rc.end()))
    return false;
  line = lowered.size();
  if (entry.text.empty()) return true;
  for (size_t i = 0; i < lowered.size(); ++i) {
    for (const auto& pieces : entry.text) {
      if (!contains(lowered[i], pieces)) continue;
      line = i;
      return true;
    }
  }
  return false;
}

Explanation Hints::explain(const Evidence& evidence, std::string_view node,
                           std::string_view service) const {
  std::vector<std::string> lines = evidence.message;
  lines.insert(lines.end(), evidence.output.begin(), evidence.output.end());
  std::vector<std::string> lowered;
  for (const std::string& line : lines) lowered.push_back(lower(line));
  Explanation out;
  out.line = plain_line(evidence);
  for (const Entry& entry : entries_) {
    size_t at = 0;
    if (!fits(entry, evidence, lowered, at)) continue;
    out.code = entry.code;
    out.hint = filled(entry.hint, node, service);
    // One line of its own says it all; of several the one that fits is the reason.
    const bool own = evidence.message.size() == 1 && !says_nothing(evidence.message[0]);
    if (at < lines.size() && !(own && at == 0)) {
      std::string reason = undecorated(lines[at]);
      // "Validation of arguments failed:" has its news in what follows.
      if (reason.ends_with(':') && at + 1 < lines.size())
        reason += " " + undecorated(lines[at + 1]);
      out.line = own ? out.line + ": " + reason : reason;
    }
    break;
  }
  return out;
}

std::string plain_line(const Evidence& evidence) {
  const auto& message = evidence.message;
  const bool empty = message.empty() || says_nothing(message[0]);
  if (!empty && message[0].starts_with("Traceback")) return message.back();
  if (!empty) return join(message, " ");
  if (!evidence.output.empty()) return evidence.output.back();
  if (!evidence.rc) return message.empty() ? "" : join(message, " ");
  return *evidence.rc < 0 ? fmt::format("ended by signal {}", -*evidence.rc)
                          : fmt::format("ended with return code {}", *evidence.rc);
}

std::vector<std::string> evidence_lines(std::string_view text, size_t max_lines) {
  std::vector<std::string> out;
  std::string line;
  const auto take = [&] {
    std::string clean = trim(one_line(line));
    if (!clean.empty()) out.push_back(truncate_utf8(clean, kMaxEvidenceLine));
    line.clear();
  };
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      take();
    } else {
      line += c;
    }
  }
  take();
  if (out.size() > max_lines) out.erase(out.begin(), out.end() - static_cast<long>(max_lines));
  return out;
}

Evidence output_evidence(std::string_view tail, int code, int signal) {
  Evidence out;
  out.whole_run = true;
  out.rc = signal ? -signal : code;
  std::vector<std::string> lines = evidence_lines(tail, 200);
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const std::string& l) { return l.starts_with("ERROR!"); });
  if (last == lines.rend()) {
    out.output.assign(lines.end() - std::min<long>(20, std::ssize(lines)), lines.end());
    return out;
  }
  // "ERROR! why", and further down "The error appears to be in 'file': line 3, column 7, but may":
  // why and where are the message, the rest is help.
  const auto error = last.base() - 1;
  std::string why = trim(error->substr(std::string_view("ERROR!").size()));
  for (auto line = error + 1; line != lines.end(); ++line) {
    if (line->starts_with("Syntax Error while loading YAML") && line + 1 != lines.end())
      why = *line + " " + *(line + 1);
    if (!line->starts_with("The error appears to be in")) continue;
    const size_t quote = line->find('\''), comma = line->find(", column");
    if (quote != std::string::npos && comma != std::string::npos && quote < comma)
      why += fmt::format(" (in {})", line->substr(quote, comma - quote));
    break;
  }
  if (!why.empty()) out.message.push_back(why);
  out.output.assign(error + 1, lines.end());
  return out;
}

}  // namespace clusterctl::ansible
