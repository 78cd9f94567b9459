#include "runtime/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include "admin/server.h"
#include "base/version.h"
#include "proxy/access_log.h"
#include "runtime/checker.h"
#include "runtime/crew.h"
#include "runtime/limits.h"
#include "runtime/log.h"
#include "runtime/memory_watch.h"
#include "runtime/notify.h"
#include "runtime/ports.h"
#include "runtime/privileges.h"
#include "runtime/reloader.h"
#include "runtime/resolver.h"
#include "runtime/state_dir.h"
#include "runtime/watcher.h"
#include "upstream/directory.h"

namespace clockwise::runtime {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using upstream::ReloadResult;
using upstream::Trigger;

constexpr auto kRefreshNames = 30s;
constexpr auto kRetryNames = 3s;  // while one does not resolve
constexpr auto kListenPatience = 5s;
constexpr auto kSaveHistory = 10s;        // requests that changes moved go on being counted
constexpr auto kLastLines = 1s;           // how long a stuck stderr may hold up the exit
constexpr auto kRefreshPatience = 500ms;  // what is late counts at the next refresh

// Counters are sized for the most workers that a reload may ask for.
std::size_t most_workers(const config::Config& config) {
  constexpr std::size_t kAlways = 8;
  return std::max<std::size_t>({config.workers, std::thread::hardware_concurrency(), kAlways});
}

void print_problems(const std::vector<config::Problem>& problems) {
  for (const config::Problem& problem : problems) fmt::print(stderr, "{}\n", problem.text());
}

class Supervisor {
 public:
  explicit Supervisor(const ServeSettings& settings);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int run();

 private:
  // Start, on the main thread.
  bool start();
  bool load();
  bool find_user(const config::Config& config);
  Result<std::shared_ptr<proxy::AccessLog>> open_access_log(const config::Config& config);
  bool open_state_dir(const config::Config& config);
  Result<proxy::ListenerSpec> listen(const config::Config& config,
                                     const config::Listener& listener);
  bool start_admin();
  bool drop_privileges();
  void start_watching();
  void announce() const;
  Reloader::World world();

  // Reload, on the control thread.
  void request_reload(Trigger trigger, bool force,
                      std::function<void(const upstream::ReloadOutcome&)> done);
  void reload(Trigger trigger, bool force,
              const std::function<void(const upstream::ReloadOutcome&)>& done);
  void rollback(std::uint64_t id, bool force,
                const std::function<void(const upstream::RollbackResult&)>& done);
  void change_server(const upstream::ServerChange& change, bool force,
                     const std::function<void(const upstream::ServerChangeResult&)>& done);
  void refresh_names_later();
  void save_history();
  void save_history_later();

  // Signals and stop, on the main thread.
  void wait_for_signal();
  void on_signal(int number);
  void stop_gracefully(int number);
  void stop_now();
  void feed_watchdog();

  const ServeSettings settings_;
  const std::uint64_t descriptors_ = raise_descriptor_limit();
  const std::uint64_t inherited_ = open_descriptors();

  asio::io_context main_{1};
  asio::signal_set signals_{main_};
  asio::steady_timer shutdown_timer_{main_};
  asio::steady_timer watchdog_timer_{main_};
  asio::executor_work_guard<asio::io_context::executor_type> stay_{main_.get_executor()};
  std::atomic<bool> stopping_{false};
  const std::shared_ptr<proxy::Admission> admission_ = std::make_shared<proxy::Admission>();
  MemoryWatch memory_{main_, admission_};

  asio::io_context control_{1};
  asio::executor_work_guard<asio::io_context::executor_type> control_stay_{control_.get_executor()};
  asio::steady_timer names_timer_{control_};
  asio::steady_timer history_timer_{control_};
  Resolver resolver_;
  Ports ports_;
  std::unique_ptr<upstream::Directory> directory_;
  std::optional<Identity> identity_;     // to become
  std::unique_ptr<StateDir> state_dir_;  // null: the history ends with the process
  std::unique_ptr<Crew> crew_;
  std::optional<Checker> checker_;  // has a thread
  bool running_ = false;            // the workers' threads are up
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<admin::AdminServer> admin_;
  config::Address admin_address_;
  std::thread control_thread_;
};

Supervisor::Supervisor(const ServeSettings& settings) : settings_(settings) {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2})
    signals_.add(number);
}

Supervisor::~Supervisor() {
  control_.stop();
  if (control_thread_.joinable()) control_thread_.join();
}

int Supervisor::run() {
  if (!start()) return 1;
  wait_for_signal();
  main_.run();
  return 0;
}

// --- start ------------------------------------------------------------------------------------

bool Supervisor::start() {
  if (!load() || !start_admin() || !drop_privileges()) return false;
  start_watching();
  memory_.configure(reloader_->config().overload);
  crew_->start();
  running_ = true;
  control_thread_ = std::thread([this] { control_.run(); });
  directory_->set_ready(true);
  announce();
  feed_watchdog();
  return true;
}

bool Supervisor::load() {
  FileMarks marks;
  auto result = config::load(settings_.config_file, marking(settings_.read, marks),
                             config::real_environment());
  if (const auto* failure = std::get_if<config::Failure>(&result)) {
    print_problems(failure->problems);
    return false;
  }
  auto& loaded = std::get<config::Loaded>(result);
  if (settings_.workers) loaded.config.workers = *settings_.workers;
  directory_ = std::make_unique<upstream::Directory>(most_workers(loaded.config),
                                                     upstream::WallClock::now());
  reloader_ = std::make_unique<Reloader>(settings_.config_file, *directory_, world());
  if (!find_user(loaded.config) || !open_state_dir(loaded.config)) return false;
  checker_.emplace();
  const DescriptorShares shares = descriptor_shares(descriptors_, loaded.config.workers);
  admission_->client_descriptors = shares.clients;
  admission_->warn = [](std::string_view text) { log::write(log::Level::warn, text); };
  admission_->server_descriptors = shares.servers;
  crew_ = std::make_unique<Crew>(directory_->workers(), admission_,
                                 [this] { asio::post(control_, [this] { crew_->reap(); }); });
  const auto outcome = reloader_->start(std::move(loaded), std::move(marks));
  print_problems(outcome.errors);
  return outcome.result == ReloadResult::applied;
}

bool Supervisor::find_user(const config::Config& config) {
  auto who = identity_of(config.user);
  if (!who) {
    log::error("{}", who.error().message);
    return false;
  }
  identity_ = std::move(*who);
  if (!config.user.empty()) forgo_new_privileges();  // before there are threads
  if (identity_)
    if (const auto made = make_files_for(*identity_, config); !made) {
      log::error("{}", made.error().message);
      return false;
    }
  return true;
}

Result<std::shared_ptr<proxy::AccessLog>> Supervisor::open_access_log(
    const config::Config& config) {
  if (!config.access_log) return std::shared_ptr<proxy::AccessLog>();
  const ActingAs user(identity_);
  return proxy::AccessLog::open(*config.access_log, directory_->shared_workers());
}

bool Supervisor::open_state_dir(const config::Config& config) {
  if (config.state_dir.empty()) return true;
  const ActingAs user(identity_);
  auto opened = StateDir::open(config.state_dir);
  if (!opened) {
    log::error("{}", opened.error().message);
    return false;
  }
  state_dir_ = std::move(*opened);
  if (state_dir_) directory_->restore(state_dir_->load());
  return true;
}

Result<proxy::ListenerSpec> Supervisor::listen(const config::Config& config,
                                               const config::Listener& listener) {
  HostAddresses hosts;
  if (const auto name = host_name(listener.address))
    hosts = resolver_.lookup({*name}, kListenPatience);
  auto address = ports_.hold(listener, hosts);
  if (!address) return address.error();
  const auto automatic =
      automatic_connections(descriptors_, inherited_, config.workers, config.listeners.size());
  if (!automatic) return automatic.error();

  proxy::ListenerSpec spec;
  spec.config = listener;
  spec.config.address = std::move(*address);
  spec.listening_descriptor = ports_.listening(listener.address);
  const std::uint32_t asked = listener.limits.max_connections;
  spec.max_connections_per_worker =
      asked == 0 ? *automatic : (asked + config.workers - 1) / config.workers;
  if (spec.max_connections_per_worker > *automatic)
    log::warn(
        "listener {}: limits.max_connections is {}, but the limit of open files ({}) is enough "
        "for about {}",
        listener.name, asked, descriptors_, *automatic * config.workers);
  return spec;
}

bool Supervisor::start_admin() {
  upstream::ControlPort port;
  port.reload = [this](Trigger trigger, bool force, auto done) {
    asio::post(control_, [this, trigger, force, done = std::move(done)]() mutable {
      request_reload(trigger, force, std::move(done));
    });
  };
  port.rollback = [this](std::uint64_t id, bool force, auto done) {
    asio::post(control_, [this, id, force, done = std::move(done)] { rollback(id, force, done); });
  };
  port.change_server = [this](const upstream::ServerChange& change, bool force, auto done) {
    asio::post(control_, [this, change, force, done = std::move(done)] {
      change_server(change, force, done);
    });
  };
  admin_ = std::make_unique<admin::AdminServer>(*directory_, std::move(port));
  auto address = admin_->start(reloader_->config().admin);
  if (!address) {
    log::error("{}", address.error().message);
    return false;
  }
  admin_address_ = std::move(*address);
  return true;
}

// The ports are taken; nothing after this needs to be root.
bool Supervisor::drop_privileges() {
  if (!identity_) return true;
  const auto became = become(*identity_);
  if (!became) log::error("{}", became.error().message);
  identity_.reset();
  return became.has_value();
}

void Supervisor::start_watching() {
  watcher_ = std::make_unique<Watcher>(
      control_, settings_.read,
      Watcher::Events{.changed = [this](Trigger trigger) { request_reload(trigger, false, {}); },
                      .up = [this](bool up) { directory_->set_watch_up(up); }});
  if (!watcher_->has_events())
    log::warn("the kernel reports no file changes (inotify): files are looked at every 2 s");
  watcher_->watch(reloader_->marks());
  refresh_names_later();
  save_history_later();
}

void Supervisor::announce() const {
  const upstream::View view = directory_->view();
  log::info("clockwise {} ({}, {}), {} workers, configuration {}", version(), revision(),
            compiler(), view.config->workers, view.config_digest);
  for (const config::Listener& listener : view.config->listeners)
    for (const auto& counters : view.listeners)
      if (counters->name == listener.name)
        log::info("listener {} on {}, pool {}", listener.name, counters->bound_address,
                  listener.pool);
  log::info("admin on {}", admin_address_.text);
  notify_manager(fmt::format("READY=1\nSTATUS=Serving, configuration {}", view.config_digest));
}

Reloader::World Supervisor::world() {
  return {
      .read = settings_.read,
      .environment = config::real_environment(),
      .override_config =
          [this](config::Config& config) {
            if (settings_.workers) config.workers = *settings_.workers;
          },
      .lookup =
          [this](const std::set<std::string>& names, std::chrono::milliseconds patience) {
            return resolver_.lookup(names, patience);
          },
      .listen = [this](const config::Config& config,
                       const config::Listener& listener) { return listen(config, listener); },
      .keep_only =
          [this](const std::vector<config::Listener>& listeners) { ports_.keep_only(listeners); },
      .open_log = [this](const config::Config& config) { return open_access_log(config); },
      .adopt = [this](const proxy::WorkerState& state, std::size_t workers) -> Result<void> {
        auto adopted = running_ ? crew_->adopt(state, workers) : crew_->open(state, workers);
        if (adopted) checker_->adopt(state.routing);
        return adopted;
      },
  };
}

// --- reload -----------------------------------------------------------------------------------

void Supervisor::request_reload(Trigger trigger, bool force,
                                std::function<void(const upstream::ReloadOutcome&)> done) {
  watcher_->when_written(
      [this, trigger, force, done = std::move(done)] { reload(trigger, force, done); });
}

void Supervisor::reload(Trigger trigger, bool force,
                        const std::function<void(const upstream::ReloadOutcome&)>& done) {
  // New listeners would take in new work.
  if (stopping_) {
    log::info("reload ({}): the process is stopping, nothing changes", to_string(trigger));
    upstream::ReloadOutcome nothing;
    nothing.trigger = trigger;
    nothing.config_digest = directory_->view().config_digest;
    if (done) done(nothing);
    return;
  }
  notify_reloading();
  const upstream::ReloadOutcome outcome = reloader_->reload(trigger, force);
  watcher_->watch(reloader_->marks());
  asio::post(main_,
             [this, overload = reloader_->config().overload] { memory_.configure(overload); });
  notify_manager(fmt::format("READY=1\nSTATUS=Last reload {}, configuration {}",
                             to_string(outcome.result), outcome.config_digest));
  save_history();  // before the answer: what was told is not lost by a crash
  if (done) done(outcome);
}

void Supervisor::rollback(std::uint64_t id, bool force,
                          const std::function<void(const upstream::RollbackResult&)>& done) {
  const upstream::RollbackResult result = reloader_->rollback(id, force);
  save_history();
  done(result);
}

void Supervisor::change_server(
    const upstream::ServerChange& change, bool force,
    const std::function<void(const upstream::ServerChangeResult&)>& done) {
  const upstream::ServerChangeResult result = reloader_->change_server(change, force);
  save_history();
  done(result);
}

void Supervisor::save_history() {
  if (state_dir_) state_dir_->save(directory_->view());
}

void Supervisor::save_history_later() {
  if (!state_dir_) return;
  history_timer_.expires_after(kSaveHistory);
  history_timer_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    save_history();
    save_history_later();
  });
}

void Supervisor::refresh_names_later() {
  names_timer_.expires_after(reloader_->has_unresolved() ? std::chrono::seconds(kRetryNames)
                                                         : std::chrono::seconds(kRefreshNames));
  names_timer_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    if (reloader_->has_names()) reloader_->refresh_names(kRefreshPatience);
    refresh_names_later();
  });
}

// --- signals and stop -------------------------------------------------------------------------

void Supervisor::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code failed, int number) {
    if (failed) return;
    on_signal(number);
    wait_for_signal();
  });
}

void Supervisor::on_signal(int number) {
  switch (number) {
    case SIGHUP:
      asio::post(control_, [this] { request_reload(Trigger::signal, false, {}); });
      break;
    case SIGUSR1:
      log::info("SIGUSR1: the access log is opened again");
      asio::post(control_, [this] {
        if (proxy::AccessLog* log = reloader_->access_log()) log->reopen();
      });
      break;
    case SIGUSR2:  // by habit from nginx; unhandled, it would end the process
      log::warn("SIGUSR2: replacing the binary is not supported yet, nothing changes");
      break;
    default:
      if (stopping_)
        stop_now();
      else
        stop_gracefully(number);
  }
}

void Supervisor::stop_gracefully(int number) {
  stopping_ = true;
  directory_->set_stopping();
  const auto patience = directory_->view().config->shutdown_timeout;
  shutdown_timer_.expires_after(patience);
  shutdown_timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    log::warn("shutdown_timeout is over: open connections are dropped");
    stop_now();
  });
  crew_->drain([this] { asio::post(main_, [this] { stop_now(); }); });
  log::info("{}: stopping, requests in flight have {} s; a second signal stops at once",
            number == SIGINT    ? "SIGINT"
            : number == SIGQUIT ? "SIGQUIT"
                                : "SIGTERM",
            std::chrono::duration<double>(patience).count());
  notify_manager("STOPPING=1\nSTATUS=Finishing requests in flight");
}

// A manager that watches starts the process anew when an event loop has stopped turning.
void Supervisor::feed_watchdog() {
  const auto patience = watchdog_patience();
  if (!patience) return;
  watchdog_timer_.expires_after(*patience / 2);
  watchdog_timer_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    if (crew_->all_turn()) notify_manager("WATCHDOG=1");
    feed_watchdog();
  });
}

void Supervisor::stop_now() {
  if (main_.stopped()) return;
  resolver_.give_up();
  crew_->give_up();
  control_.stop();
  control_thread_.join();
  crew_->stop();
  save_history();  // the last requests are counted, and no other thread writes any more
  admin_->stop();
  log::info("stopped");
  main_.stop();
}

}  // namespace

int serve(const ServeSettings& settings) {
  const int code = Supervisor(settings).run();
  log::flush(kLastLines);
  return code;
}

}  // namespace clockwise::runtime
