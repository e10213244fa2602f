// What a command may do with the outside: write, know its terminal, ask, notice Ctrl-C. Commands
// get one and never touch std::cout, so that tests read what they said. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace clusterctl::cli {

class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual void out(std::string_view text) = 0;
  virtual void err(std::string_view text) = 0;
  // Why what was given to out() did not get through (a full disk), or empty.
  virtual std::string output_problem() const { return ""; }
  // Standard output is a terminal that can move its cursor: lines may be redrawn.
  virtual bool can_redraw() const = 0;
  // Somebody can be asked.
  virtual bool can_ask() const = 0;
  virtual int width() const = 0;
  virtual int height() const = 0;
  // Columns that a table may take; 0: as many as it needs, because no terminal shows it.
  virtual int table_width() const { return can_redraw() ? width() : 0; }
  // Asks on standard error; only a clear yes is true.
  virtual bool confirm(std::string_view question) = 0;
  // The other end of the pipe that standard output is has been closed.
  virtual bool output_closed() { return false; }
  // What goes on until it is interrupted ends then, too.
  bool nobody_reads() { return output_closed() || !output_problem().empty(); }
  // While watching, Ctrl-C does not end the program but makes interrupted() true.
  virtual void watch_interrupts(bool on) = 0;
  // The same for whatever asks a program to end (SIGTERM, SIGHUP as well): what was begun is undone
  // first.
  virtual void watch_ends(bool on) = 0;
  virtual bool interrupted() = 0;
};

std::unique_ptr<Terminal> make_system_terminal();

}  // namespace clusterctl::cli
