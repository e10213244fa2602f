#include "serve.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "ansible/hints.h"
#include "ansible/private_key.h"
#include "api/compat/compat.h"
#include "api/meters.h"
#include "api/resources.h"
#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/this_host.h"
#include "controller/controller.h"
#include "controller/log_keeper.h"
#include "controller/notices.h"
#include "controller/watch.h"
#include "daemon_config.h"
#include "fleet/patterns.h"
#include "monitor/prober_thread.h"
#include "notify/notify_thread.h"
#include "run/runs.h"
#include "store/store.h"
#include "store/timed_store.h"
#include "ways_in.h"

namespace clusterctl {
namespace {

constexpr const char* kUsage =
    "usage: clusterctl serve [--config FILE] [--state-dir DIR] [--check-config]\n"
    "  --config FILE     daemon configuration (default /etc/clusterctl/clusterctl.yml)\n"
    "  --state-dir DIR   where state, runs and keys live (default /var/lib/clusterctl)\n"
    "  --check-config    read the configuration, say whether it is right, and end\n";

struct Arguments {
  fs::path config = "/etc/clusterctl/clusterctl.yml";
  bool config_given = false;
  fs::path state_dir;
  bool check = false;
  bool help = false;
};

Result<Arguments> parse_arguments(int argc, char** argv) {
  Arguments out;
  for (int i = 2; i < argc; ++i) {
    std::string arg = argv[i], value;
    const size_t equals = arg.find('=');
    const bool inline_value = arg.starts_with("--") && equals != std::string::npos;
    if (inline_value) {
      value = arg.substr(equals + 1);
      arg.resize(equals);
    }
    if (arg == "--help" || arg == "-h") {
      out.help = true;
    } else if (arg == "--check-config") {
      out.check = true;
    } else if (arg == "--config" || arg == "--state-dir") {
      if (!inline_value) {
        if (++i >= argc)
          return fail(Code::kInvalid, "usage", arg + " needs a value", "clusterctl serve --help");
        value = argv[i];
      }
      (arg == "--config" ? out.config : out.state_dir) = value;
      out.config_given = out.config_given || arg == "--config";
    } else {
      return fail(Code::kInvalid, "usage",
                  fmt::format("serve has no argument \"{}\"", one_line(arg)),
                  "clusterctl serve --help");
    }
  }
  return out;
}

fs::path self_path() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec);
}

// Beside a build tree's binary, else where the package puts them.
fs::path default_playbooks() {
  std::error_code ec;
  const fs::path source = self_path().parent_path().parent_path().parent_path() / "playbooks";
  return fs::exists(source / "site.yml", ec) ? source : fs::path("/usr/share/clusterctl/playbooks");
}

constexpr std::chrono::seconds kVersionWait{10};

// "ansible-core 2.14.18", or an Error that says what to install.
Result<std::string> ansible_version(const DaemonConfig& config) {
  std::map<std::string, std::string> env{
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"LANG", "C.UTF-8"},
      {"HOME", "/root"}};
  for (const auto& [name, value] : config.ansible_env) env[name] = value;
  const auto answer =
      run_process({{config.ansible_playbook, "--version"}, env, "/", false, -1, {}}, kVersionWait);
  if (!answer)
    return fail(Code::kUnavailable, "no_ansible", answer.error().message,
                "install ansible-core, or set ansible.playbook_program");
  const std::string first = split(answer->text, '\n').front();
  if (!answer->status.ok())
    return fail(
        Code::kUnavailable, "no_ansible",
        fmt::format("{} --version failed: {}", config.ansible_playbook,
                    first.empty() ? fmt::format("no answer within {} s", kVersionWait.count())
                                  : one_line(first)));
  const size_t open = first.find('['), close = first.find(']');
  return open == std::string::npos || close == std::string::npos
             ? first
             : first.substr(open + 1, close - open - 1);
}

// Everything the daemon consists of, in the order it is built; destroyed backwards.
class Daemon {
 public:
  explicit Daemon(DaemonConfig config) : config_(std::move(config)), ids_(clock_) {}

  // Everything of the configuration that can be known without changing anything.
  Status check() {
    if (auto ok = open_catalog(); !ok) return ok;
    if (auto roles = controller::read_role_variables(config_.playbooks.parent_path() / "roles");
        !roles)
      return fail(roles.error());
    if (auto ok = WaysIn::check(config_, clock_.now()); !ok) return ok;
    return check_programs();
  }

  Status start() {
    if (auto ok = make_dirs(config_.state_dir, 0700); !ok) return ok;
    if (auto ok = check_state_dir(); !ok) return ok;
    if (auto ok = open_store(); !ok) return ok;
    if (auto ok = open_catalog(); !ok) return ok;
    if (auto ok = check_programs(); !ok) return ok;
    ways_in_ = std::make_unique<WaysIn>(config_, clock_);
    if (auto ok = ways_in_->prepare(); !ok) return ok;
    if (auto ok = notify::read_secrets(config_.receivers); !ok) return ok;
    if (auto ok = start_controller(); !ok) return ok;
    if (auto ok = start_notifier(); !ok) return ok;
    if (auto ok = start_monitor(); !ok) return ok;
    // Jobs of the last daemon come first: nobody has to know the version to go on with them.
    auto version = ansible_version(config_);
    if (!version) log::warn("{}", version.error().line());
    about_ = {CLUSTERCTL_VERSION, version.value_or("not found"), config_.playbooks.string(),
              ways_in_->fingerprint()};
    return open_listeners();
  }

  void stop() {
    if (ways_in_) ways_in_->stop();
    prober_thread_.reset();
    if (log_keeper_) log_keeper_->stop();
    if (controller_) controller_->stop();
    // Only now: nothing appends events any more, so nothing calls the wake function.
    if (notify_events_ != 0) controller_->events().unsubscribe(notify_events_);
    notify_events_ = 0;
    notify_thread_.reset();
  }

 private:
  // Whoever can write there can have anything run on every node.
  Status check_state_dir() const {
    struct stat st {};
    if (::stat(config_.state_dir.c_str(), &st) != 0 ||
        (st.st_uid == ::geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0))
      return {};
    return fail(
        Code::kInvalid, "bad_mode",
        fmt::format("the state directory {} can be written by others", config_.state_dir.string()),
        fmt::format("chown {0} {1}; chmod 700 {1}; and look whether somebody did", ::geteuid(),
                    config_.state_dir.string()));
  }

  Status check_programs() const {
    if (!config_.ssh_private_key.empty()) {
      if (auto ok = ansible::check_private_key(config_.ssh_private_key); !ok) return ok;
    }
    // A path that was configured and is wrong is a mistake to mend; a missing package only keeps
    // jobs from succeeding, and the API may still be needed.
    if (config_.ansible_playbook.find('/') != std::string::npos &&
        ::access(config_.ansible_playbook.c_str(), X_OK) != 0) {
      return fail(Code::kInvalid, "no_ansible",
                  fmt::format("ansible.playbook_program {}: {}", config_.ansible_playbook,
                              std::strerror(errno)),
                  "name the ansible-playbook program, or leave the setting out");
    }
    return {};
  }

  Status open_store() {
    auto store = store::open_sqlite_store(config_.state_dir / "clusterctl.db");
    if (!store) return fail(store.error());
    auto timed = std::make_unique<store::TimedStore>(std::move(*store));
    meters_.store = [&timed = *timed] {
      const auto numbers = timed.numbers();
      return api::StoreNumbers{numbers.commits, numbers.failed};
    };
    store_ = std::move(timed);
    return {};
  }

  Status open_catalog() {
    if (config_.playbooks.empty()) config_.playbooks = default_playbooks();
    auto catalog = catalog::Catalog::read(config_.playbooks / "catalog.yml");
    if (!catalog) {
      Error error = catalog.error();
      if (error.code == Code::kNotFound)
        error.hint = "set ansible.playbooks to the folder with catalog.yml and site.yml";
      return fail(std::move(error));
    }
    catalog_ = std::make_unique<catalog::Catalog>(std::move(*catalog));
    if (config_.ansible_config.empty())
      config_.ansible_config = config_.playbooks.parent_path() / "ansible.cfg";
    return {};
  }

  // Those beside the playbooks, which the operator may have added to, else our own.
  Result<ansible::Hints> read_hints() const {
    const fs::path file = config_.playbooks / "hints.yml";
    std::error_code ec;
    return fs::exists(file, ec) ? ansible::Hints::read(file) : ansible::Hints::built_in();
  }

  // What `cluster init` wants of a cluster that begins here, if none is here yet.
  fs::path new_cluster_file() const { return config_.state_dir / "new-cluster.json"; }

  Result<std::string> first_policy() const {
    const auto content = read_file(new_cluster_file(), 4096);
    if (!content && content.error().code == Code::kNotFound) return std::string("always");
    if (!content) return fail(content.error());
    const auto j = parse_json_object(*content, new_cluster_file().string());
    const std::string policy = j ? get_string(*j, "accept_policy").value_or("") : "";
    if (policy == "always" || policy == "manual") return policy;
    return fail(Code::kInvalid, "damaged",
                fmt::format("{} is damaged", new_cluster_file().string()),
                "clusterctl cluster init writes it anew");
  }

  Status start_controller() {
    run::Settings settings;
    settings.runs_dir = config_.state_dir / "runs";
    settings.playbooks = config_.playbooks;
    settings.ansible_config = config_.ansible_config;
    settings.ansible_playbook = config_.ansible_playbook;
    settings.self = self_path();
    settings.extra_env = config_.ansible_env;
    if (auto ok = make_dirs(settings.runs_dir, 0700); !ok) return ok;
    const fs::path pki = config_.state_dir / "pki";
    if (auto ok = make_dirs(pki, 0700); !ok) return ok;
    runs_ = run::make_runs(std::move(settings));
    auto variables = controller::read_role_variables(config_.playbooks.parent_path() / "roles");
    if (!variables) return fail(variables.error());
    controller::Settings options;
    options.cluster_name = config_.cluster_name;
    auto policy = first_policy();
    if (!policy) return fail(policy.error());
    options.accept_policy = std::move(*policy);
    options.max_parallel_runs = config_.max_parallel_runs;
    options.keep_jobs = static_cast<size_t>(config_.keep_jobs);
    options.own_host.machine_id = this_machine_id();
    for (const std::string& name : this_host_names())
      options.own_host.addresses.insert(fleet::canonical_addr(name));
    options.ca_fingerprint = ways_in_->fingerprint();
    if (!config_.ssh_private_key.empty()) {
      if (auto key = ansible::public_key_of(config_.ssh_private_key)) {
        options.ssh_public_key = std::move(*key);
      } else {
        log::warn("machines cannot join: {}", key.error().line());
      }
    }
    auto hints = read_hints();
    if (!hints) return fail(hints.error());
    options.run_defaults = {config_.ssh_user, config_.ssh_private_key, pki.string(),
                            std::make_shared<const ansible::Hints>(std::move(*hints))};
    controller_ = std::make_unique<controller::Controller>(controller::Deps{
        *store_, *runs_, *catalog_, clock_, ids_, std::move(*variables), std::move(options)});
    if (auto ok = controller_->start(); !ok) return ok;
    ::unlink(new_cluster_file().c_str());  // there is a cluster now
    log_keeper_ = std::make_unique<controller::LogKeeper>(
        *controller_,
        controller::LogLimits{static_cast<size_t>(config_.log_keep_jobs), config_.log_keep_days,
                              static_cast<uint64_t>(config_.log_max_bytes)});
    log_keeper_->start();
    return {};
  }

  Status start_monitor() {
    if (!config_.monitor_enabled) return {};
    monitor::Options options;
    options.interval = std::chrono::seconds(config_.monitor_interval);
    options.timeout = std::chrono::seconds(config_.monitor_timeout);
    options.misses = config_.monitor_misses;
    options.parallel = static_cast<size_t>(config_.monitor_parallel);
    options.chance = [engine = std::mt19937(std::random_device{}())]() mutable {
      return std::uniform_real_distribution<double>()(engine);
    };
    auto dialer = monitor::make_socket_dialer();
    if (!dialer) return fail(dialer.error());
    dialer_ = std::move(*dialer);
    watch_ = std::make_unique<controller::Watch>(*controller_);
    prober_ = std::make_unique<monitor::Prober>(std::move(options), *watch_, *dialer_, clock_);
    prober_thread_ = std::make_unique<monitor::ProberThread>(*prober_, *dialer_);
    return {};
  }

  Status start_notifier() {
    if (config_.receivers.empty()) return {};
    notify::Options options;
    options.chance = [engine = std::mt19937(std::random_device{}())]() mutable {
      return std::uniform_real_distribution<double>()(engine);
    };
    notify::TransportOptions transport;
    transport.user_agent = std::string("clusterctl/") + CLUSTERCTL_VERSION;
    notices_ = std::make_unique<controller::Notices>(*controller_);
    transport_ = notify::make_curl_transport(std::move(transport));
    ledger_ = std::make_unique<notify::FileLedger>(config_.state_dir / "notifications.json");
    notifier_ = std::make_unique<notify::Notifier>(std::move(options), std::move(config_.receivers),
                                                   *notices_, *transport_, *ledger_, clock_);
    if (auto ok = notifier_->start(); !ok) return ok;
    notify_thread_ = std::make_unique<notify::NotifyThread>(*notifier_, *transport_);
    notify_events_ = controller_->events().subscribe([this] { notify_thread_->wake(); });
    return {};
  }

  void add_compat_routes() {
    const std::string address = config_.tcp_host.empty()
                                    ? config_.unix_socket.string()
                                    : fmt::format("{}:{}", config_.tcp_host, config_.tcp_port);
    const std::string user = config_.ssh_user;
    api::compat::add_routes(
        router_, *controller_,
        {[user] { return user; }, nullptr, address, config_.playbooks, config_.ssh_private_key});
  }

  Status open_listeners() {
    api::add_routes(router_, *controller_, about_, notifier_.get(), &meters_);
    if (config_.compat) add_compat_routes();
    if (auto ok = router_.mistakes(); !ok) return ok;
    return ways_in_->open(router_, *controller_, meters_);
  }

  DaemonConfig config_;
  SystemClock clock_;
  RandomIds ids_;
  api::About about_;
  api::Meters meters_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<run::Runs> runs_;
  std::unique_ptr<controller::Controller> controller_;
  std::unique_ptr<controller::LogKeeper> log_keeper_;
  std::unique_ptr<monitor::Dialer> dialer_;
  std::unique_ptr<controller::Watch> watch_;
  std::unique_ptr<monitor::Prober> prober_;
  std::unique_ptr<monitor::ProberThread> prober_thread_;
  std::unique_ptr<controller::Notices> notices_;
  std::unique_ptr<notify::Transport> transport_;
  std::unique_ptr<notify::Ledger> ledger_;
  std::unique_ptr<notify::Notifier> notifier_;
  std::unique_ptr<notify::NotifyThread> notify_thread_;
  uint64_t notify_events_ = 0;  // the notifier's place among the followers of events
  api::Router router_;
  std::unique_ptr<WaysIn> ways_in_;
};

int complain(const Error& error) {
  std::fprintf(stderr, "error: %s\n", one_line(error.message).c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "hint: %s\n", one_line(error.hint).c_str());
  return exit_code(error.code);
}

}  // namespace

int serve(int argc, char** argv) {
  auto arguments = parse_arguments(argc, argv);
  if (!arguments) return complain(arguments.error());
  if (arguments->help) {
    std::fputs(kUsage, stdout);
    return kExitOk;
  }
  auto config = read_daemon_config(arguments->config, arguments->config_given);
  if (!config) return complain(config.error());
  if (!arguments->state_dir.empty()) {
    std::error_code ec;
    config->state_dir = fs::absolute(arguments->state_dir, ec);
  }
  if (arguments->check) {
    if (auto right = Daemon(std::move(*config)).check(); !right) return complain(right.error());
    std::printf("%s is right\n", arguments->config.c_str());
    return kExitOk;
  }
  const auto level = config->log_level;
  log::set_level(level == "debug"   ? log::Level::kDebug
                 : level == "warn"  ? log::Level::kWarn
                 : level == "error" ? log::Level::kError
                                    : log::Level::kInfo);

  // Before any thread exists, so that all of them leave these signals to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::umask(027);

  Daemon daemon(std::move(*config));
  if (auto started = daemon.start(); !started) {
    daemon.stop();
    return complain(started.error());
  }
  int signal = 0;
  ::sigwait(&signals, &signal);
  log::info("stopping on signal {}; playbook runs go on", signal);
  daemon.stop();
  return kExitOk;
}

}  // namespace clusterctl
