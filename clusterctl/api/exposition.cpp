#include "api/exposition.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace clusterctl::api {
namespace {

// Whole numbers as such, others with as many digits as tell them apart.
std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

}  // namespace

void Exposition::begin(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  text_ += fmt::format("# HELP {} ", name);
  append_escaped(text_, help, false);
  text_ += fmt::format("\n# TYPE {} {}\n", name, type);
}

void Exposition::sample(double value, const Labels& labels, std::string_view suffix) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, word] : labels) {
    text_ += before;
    text_ += label;
    text_ += "=\"";
    append_escaped(text_, word, true);
    text_ += '"';
    before = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += ' ';
  text_ += number_text(value);
  text_ += '\n';
}

void Exposition::sample(const Histogram& histogram, const Labels& labels) {
  Labels with = labels;
  with.emplace_back("le", "");
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    const std::string end = number_text(Histogram::kBounds[i]);
    with.back().second = end;
    sample(static_cast<double>(histogram.at_most(i)), with, "_bucket");
  }
  with.back().second = "+Inf";
  sample(static_cast<double>(histogram.count()), with, "_bucket");
  sample(histogram.sum(), labels, "_sum");
  sample(static_cast<double>(histogram.count()), labels, "_count");
}

}  // namespace clusterctl::api
