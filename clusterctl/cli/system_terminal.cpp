#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

#include "base/files.h"
#include "base/strings.h"
#include "cli/terminal.h"

namespace clusterctl::cli {
namespace {

class SystemTerminal final : public Terminal {
 public:
  ~SystemTerminal() override { watch_interrupts(false); }

  void out(std::string_view text) override {
    if (const auto written = write_all(STDOUT_FILENO, text); !written && problem_.empty())
      problem_ = written.error().message;
  }
  std::string output_problem() const override { return problem_; }
  bool output_closed() override {
    pollfd out{STDOUT_FILENO, 0, 0};
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLNVAL)) != 0;
  }
  void err(std::string_view text) override { (void)write_all(STDERR_FILENO, text); }

  bool can_redraw() const override {
    const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody sets any
    return isatty(STDOUT_FILENO) != 0 && term && std::string_view(term) != "dumb";
  }
  bool can_ask() const override { return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0; }
  int width() const override {
    if (const int asked = asked_columns(); asked > 0) return asked;
    return size().ws_col > 0 ? size().ws_col : 80;
  }
  int table_width() const override {
    return asked_columns() > 0 || isatty(STDOUT_FILENO) != 0 ? width() : 0;
  }
  int height() const override { return size().ws_row > 0 ? size().ws_row : 24; }

  bool confirm(std::string_view question) override {
    err(std::string(question) + " [y/N] ");
    std::string answer;
    char c = 0;
    while (answer.size() < 64 && read(STDIN_FILENO, &c, 1) == 1 && c != '\n') answer += c;
    answer = lower(trim(answer));
    return answer == "y" || answer == "yes";
  }

  void watch_interrupts(bool on) override { watch({SIGINT}, on); }
  void watch_ends(bool on) override { watch({SIGINT, SIGTERM, SIGHUP, SIGQUIT}, on); }

  bool interrupted() override {
    signalfd_siginfo info;
    while (signals_.valid() && read(signals_.get(), &info, sizeof info) == sizeof info)
      seen_ = true;
    return seen_;
  }

 private:
  void watch(std::initializer_list<int> signals, bool on) {
    if (on == signals_.valid()) return;
    if (!on) {
      interrupted();  // what came meanwhile was meant for the wait
      signals_.reset();
      pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
      return;
    }
    sigemptyset(&watched_);
    for (const int s : signals) sigaddset(&watched_, s);
    pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
    signals_.reset(signalfd(-1, &watched_, SFD_NONBLOCK | SFD_CLOEXEC));
  }

  // COLUMNS in the environment was put there on purpose: shells keep theirs to themselves.
  static int asked_columns() {
    const char* text = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe): the same
    const long columns = text ? std::strtol(text, nullptr, 10) : 0;
    return columns > 0 && columns <= 10000 ? static_cast<int>(columns) : 0;
  }

  static winsize size() {
    winsize w{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0) w = {};
    return w;
  }

  std::string problem_;
  Fd signals_;
  sigset_t watched_{};
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<Terminal> make_system_terminal() {
  return std::make_unique<SystemTerminal>();
}

}  // namespace clusterctl::cli
