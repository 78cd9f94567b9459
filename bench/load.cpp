// A small origin and a small load generator, so that costs per request can be measured with nothing
// but this repository.
//
//   load origin [BODY_OCTETS]            prints "port P", answers every request until stdin ends
//   load client PORT CLIENTS KEYS        keeps CLIENTS connections open and obeys lines on stdin:
//                                        "run N" sends N requests over /object/0 … /object/KEYS-1
//                                        and prints {"requests": …, "failed": …, "seconds": …}
//
// One thread, one epoll set, one request in flight per connection. An answer counts as failed when
// its status is not 200 or its length is not what Content-Length said.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

int check(int result, const char* what) {
  if (result < 0) give_up(what);
  return result;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void send_without_delay(int socket) {
  const int on = 1;
  check(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

class Poll {
 public:
  Poll() : epoll_(check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}
  void add(int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    check(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }
  // Calls `ready` with each descriptor that can be read.
  template <class Ready>
  void wait(Ready ready) {
    epoll_event events[256];
    const int n = epoll_wait(epoll_, events, 256, 10'000);
    if (n < 0 && errno != EINTR) give_up("epoll_wait");
    if (n == 0) throw std::runtime_error("nothing happened for 10 s");
    for (int i = 0; i < n; ++i) ready(events[i].data.fd);
  }

 private:
  int epoll_;
};

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Appends what has arrived; false at the end of the stream.
bool receive(int socket, std::string& buffer) {
  char bytes[64 * 1024];
  const ssize_t n = recv(socket, bytes, sizeof bytes, 0);
  if (n <= 0) return false;
  buffer.append(bytes, static_cast<std::size_t>(n));
  return true;
}

// --- origin
// ---------------------------------------------------------------------------------------

std::string origin_answer(std::size_t body) {
  return "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
         "Content-Type: application/octet-stream\r\nCache-Control: max-age=1000000000\r\n"
         "ETag: \"5f3c-1\"\r\nContent-Length: " +
         std::to_string(body) + "\r\n\r\n" + std::string(body, 'x');
}

int serve_origin(std::size_t body) {
  const std::string answer = origin_answer(body);
  const int listener = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  check(bind(listener, reinterpret_cast<sockaddr*>(&address), size), "bind");
  check(listen(listener, 1024), "listen");
  check(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  std::cout << "port " << ntohs(address.sin_port) << std::endl;

  Poll poll;
  poll.add(listener);
  poll.add(STDIN_FILENO);
  std::unordered_map<int, std::string> unread;
  bool running = true;
  auto answer_requests = [&](int client) {
    std::string& buffer = unread[client];
    if (!receive(client, buffer)) return false;
    for (std::size_t end; (end = buffer.find("\r\n\r\n")) != std::string::npos;) {
      buffer.erase(0, end + 4);
      if (!send_all(client, answer)) return false;
    }
    return true;
  };
  while (running) {
    try {
      poll.wait([&](int descriptor) {
        if (descriptor == STDIN_FILENO) {
          running = false;
        } else if (descriptor == listener) {
          const int client = check(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
          send_without_delay(client);
          poll.add(client);
        } else if (!answer_requests(descriptor)) {
          unread.erase(descriptor);
          close(descriptor);
        }
      });
    } catch (const std::runtime_error&) {
      // A quiet origin is no fault.
    }
  }
  return 0;
}

// --- client
// ---------------------------------------------------------------------------------------

std::string request_for(unsigned key) {
  return "GET /object/" + std::to_string(key) +
         " HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: load/1.0\r\nAccept: */*\r\n"
         "Accept-Encoding: gzip, deflate\r\nAccept-Language: en-GB,en;q=0.8\r\n\r\n";
}

// Octets of the first complete answer in `buffer`, 0 when more must come. REQUIRES: the answer has
// a Content-Length, as every answer of the origin has.
std::size_t answer_size(const std::string& buffer) {
  const std::size_t head = buffer.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  const char kField[] = "\r\nContent-Length: ";
  const std::size_t field = buffer.find(kField);
  if (field == std::string::npos || field > head) throw std::runtime_error("no Content-Length");
  const std::size_t size =
      head + 4 + std::strtoull(buffer.c_str() + field + sizeof kField - 1, nullptr, 10);
  return buffer.size() >= size ? size : 0;
}

class Client {
 public:
  Client(std::uint16_t port, unsigned clients, unsigned keys) : keys_(keys) {
    for (unsigned i = 0; i < clients; ++i) connect_to(port);
  }

  void run(std::uint64_t requests) {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t begun = 0, done = 0, failed = 0;
    for (const int socket : sockets_)
      if (begun < requests) begin(socket), ++begun;
    while (done < requests) {
      poll_.wait([&](int socket) {
        std::string& buffer = buffers_[socket];
        if (!receive(socket, buffer)) throw std::runtime_error("the proxy closed a connection");
        const std::size_t size = answer_size(buffer);
        if (size == 0) return;
        ++done;
        if (buffer.compare(0, 12, "HTTP/1.1 200") != 0 || buffer.size() != size) ++failed;
        buffer.clear();
        if (begun < requests) begin(socket), ++begun;
      });
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << "{\"requests\": " << done << ", \"failed\": " << failed
              << ", \"seconds\": " << seconds.count() << "}" << std::endl;
  }

 private:
  void connect_to(std::uint16_t port) {
    const int s = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    sockaddr_in address = loopback(port);
    check(connect(s, reinterpret_cast<sockaddr*>(&address), sizeof address), "connect");
    send_without_delay(s);
    poll_.add(s);
    sockets_.push_back(s);
  }
  void begin(int socket) {
    if (!send_all(socket, request_for(next_++ % keys_))) give_up("send");
  }

  Poll poll_;
  std::vector<int> sockets_;
  std::unordered_map<int, std::string> buffers_;
  unsigned keys_;
  unsigned next_ = 0;
};

int run_client(std::uint16_t port, unsigned clients, unsigned keys) {
  Client client(port, clients, keys);
  for (std::string line; std::getline(std::cin, line);)
    if (line.rfind("run ", 0) == 0) client.run(std::stoull(line.substr(4)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && words[0] == "origin")
      return serve_origin(words.size() > 1 ? std::stoul(words[1]) : 1024);
    if (words.size() == 4 && words[0] == "client")
      return run_client(static_cast<std::uint16_t>(std::stoul(words[1])),
                        static_cast<unsigned>(std::stoul(words[2])),
                        static_cast<unsigned>(std::stoul(words[3])));
  } catch (const std::exception& e) {
    std::cerr << "load: " << e.what() << '\n';
    return 1;
  }
  std::cerr << "usage: load origin [BODY_OCTETS] | load client PORT CLIENTS KEYS\n";
  return 2;
}
