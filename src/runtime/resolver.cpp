#include "runtime/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace clockwise::runtime {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::tcp;

// The system's resolver gives no way to stop a look-up; this many may hang at once.
constexpr std::size_t kMaxUnderWay = 32;

std::vector<address> ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    tcp::endpoint endpoint;
    endpoint.resize(entry->ai_addrlen);
    std::copy_n(reinterpret_cast<const std::byte*>(entry->ai_addr), entry->ai_addrlen,
                reinterpret_cast<std::byte*>(endpoint.data()));
    addresses.push_back(endpoint.address());
  }
  ::freeaddrinfo(found);
  return addresses;
}

}  // namespace

std::optional<std::string> host_name(const config::Address& address) {
  if (address.is_unix()) return std::nullopt;
  boost::system::error_code not_numeric;
  boost::asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) return std::nullopt;
  return address.host;
}

std::vector<upstream::Endpoint> endpoints(const config::Address& address,
                                          const HostAddresses& hosts) {
  if (address.is_unix())
    return {upstream::Endpoint(boost::asio::local::stream_protocol::endpoint(address.path))};
  boost::system::error_code not_numeric;
  const auto numeric = boost::asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) return {upstream::Endpoint(tcp::endpoint(numeric, address.port))};

  std::vector<upstream::Endpoint> out;
  if (const auto found = hosts.find(address.host); found != hosts.end())
    for (const auto& each : found->second) out.emplace_back(tcp::endpoint(each, address.port));
  return out;
}

struct Resolver::Shared {
  std::mutex mutex;
  std::condition_variable answered;
  bool giving_up = false;
  std::set<std::string> under_way;
  HostAddresses answers;  // not yet handed out; an empty list: does not resolve
};

Resolver::Resolver() : shared_(std::make_shared<Shared>()) {}
Resolver::~Resolver() = default;

HostAddresses Resolver::lookup(const std::set<std::string>& hosts,
                               std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(shared_->mutex);
  HostAddresses found;
  std::set<std::string> open = hosts;
  const auto collect = [&] {
    std::erase_if(open, [&](const std::string& host) {
      auto answer = shared_->answers.extract(host);
      if (answer.empty()) return false;
      if (!answer.mapped().empty()) found.insert(std::move(answer));
      return true;
    });
  };
  const auto start_more = [&] {
    for (const std::string& host : open) {
      if (shared_->under_way.size() >= kMaxUnderWay) return;
      if (!shared_->under_way.insert(host).second) continue;
      try {
        std::thread([shared = shared_, host] {
          std::vector<address> addresses = ask_system(host);
          const std::lock_guard done(shared->mutex);
          shared->under_way.erase(host);
          shared->answers[host] = std::move(addresses);
          shared->answered.notify_all();
        }).detach();
      } catch (const std::system_error&) {  // no more threads: the next call tries again
        shared_->under_way.erase(host);
        return;
      }
    }
  };
  for (collect(); !open.empty() && !shared_->giving_up; collect()) {
    start_more();
    if (shared_->answered.wait_until(lock, deadline) == std::cv_status::timeout) break;
  }
  collect();
  return found;
}

void Resolver::give_up() {
  const std::lock_guard lock(shared_->mutex);
  shared_->giving_up = true;
  shared_->answered.notify_all();
}

}  // namespace clockwise::runtime
