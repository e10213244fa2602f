// Numbers as Prometheus reads them, text format 0.0.4. Plain value, one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace clusterctl::api {

inline constexpr const char* kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

// Families in the order given; each is begun once, with all its samples after it.
class Exposition {
 public:
  void gauge(std::string_view name, std::string_view help) { begin(name, help, "gauge"); }
  void counter(std::string_view name, std::string_view help) { begin(name, help, "counter"); }
  void histogram(std::string_view name, std::string_view help) { begin(name, help, "histogram"); }
  void summary(std::string_view name, std::string_view help) { begin(name, help, "summary"); }

  // One sample of the family begun last; `suffix`: "_sum", "_count" of a summary.
  void sample(double value, const Labels& labels = {}, std::string_view suffix = "");
  void sample(const Histogram& histogram, const Labels& labels = {});

  std::string take() { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);

  std::string name_;
  std::string text_;
};

}  // namespace clusterctl::api
