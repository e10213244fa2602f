// A terminal that remembers what was written, with answers given in advance.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace clusterctl::fakes {

class FakeTerminal final : public cli::Terminal {
 public:
  std::string out_text, err_text;
  std::vector<std::string> questions;
  bool redraw = false, ask = false, answer = false;
  int columns = 80, lines = 24;
  int interrupt_after = -1;  // so many calls of interrupted() say no; -1: never
  bool watching = false;

  void out(std::string_view text) override { out_text += text; }
  void err(std::string_view text) override { err_text += text; }
  bool can_redraw() const override { return redraw; }
  bool can_ask() const override { return ask; }
  int width() const override { return columns; }
  int height() const override { return lines; }
  bool confirm(std::string_view question) override {
    questions.emplace_back(question);
    return answer;
  }
  void watch_interrupts(bool on) override { watching = on; }
  void watch_ends(bool on) override { watching = on; }
  bool interrupted() override {
    if (interrupt_after > 0) --interrupt_after;
    return interrupt_after == 0;
  }
};

}  // namespace clusterctl::fakes
