#include "cli/demo_proxy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/parse.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <istream>
#include <iterator>
#include <thread>
#include <utility>

namespace clockwise::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr auto kStartPatience = 20s;
constexpr auto kStopPatience = 5s;

// In the child: only calls that are safe after fork().
[[noreturn]] void become_proxy(const char* configuration, const char* log) {
  // Ctrl-C reaches the whole group of the terminal; the demo stops its proxy itself, at the end.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0 || nothing < 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execl("/proc/self/exe", "clockwise", "serve", "-c", configuration, static_cast<char*>(nullptr));
  _exit(127);
}

}  // namespace

Result<std::uint16_t> free_port() try {
  asio::io_context io;
  const tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  return acceptor.local_endpoint().port();
} catch (const boost::system::system_error& e) {
  return fail(fmt::format("no free port: {}", e.code().message()));
}

Result<boost::json::value> get_json(std::uint16_t port, const std::string& path) {
  tcp::iostream stream;
  stream.expires_after(2s);
  stream.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port));
  stream << "GET " << path << " HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
         << std::flush;
  const std::string answer{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos)
    return fail(fmt::format("no answer from the admin API on port {}", port));
  const std::string status = answer.substr(0, answer.find('\r'));
  if (status.find(" 200") == std::string::npos) return fail(path + ": " + status);
  boost::system::error_code error;
  boost::json::value document =
      boost::json::parse(std::string_view(answer).substr(body + 4), error);
  if (error) return fail(path + ": " + error.message());
  return document;
}

DemoProxy::DemoProxy(std::filesystem::path configuration, std::filesystem::path log,
                     std::uint16_t admin)
    : configuration_(std::move(configuration)), log_(std::move(log)), admin_(admin) {}

DemoProxy::~DemoProxy() { stop(); }

Result<void> DemoProxy::start() {
  pid_ = fork();
  if (pid_ < 0) return fail("cannot start a process for the proxy");
  if (pid_ == 0) become_proxy(configuration_.c_str(), log_.c_str());
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (!get_json(admin_, "/api/v1/status")) {
    if (ended_within(50ms)) return fail("the proxy did not start: " + last_words());
    if (std::chrono::steady_clock::now() > deadline) return fail("the proxy does not get ready");
  }
  return {};
}

bool DemoProxy::running() { return !ended_within(0ms); }

bool DemoProxy::ended_within(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (pid_ > 0) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
    if (pid_ < 0 || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(5ms);
  }
  return pid_ < 0;
}

std::string DemoProxy::last_words() const {
  std::ifstream file(log_);
  std::string last = "it wrote nothing";
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

void DemoProxy::stop() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  if (ended_within(kStopPatience)) return;
  kill(pid_, SIGKILL);
  ended_within(kStopPatience);
}

}  // namespace clockwise::cli
