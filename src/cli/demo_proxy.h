// The proxy of the demo: this same binary, run as a child, and its admin API.
#pragma once

#include <sys/types.h>

#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace clockwise::cli {

// A port of the loopback interface that is free now.
[[nodiscard]] Result<std::uint16_t> free_port();

// GET of a JSON document from 127.0.0.1:PORT; fails on any other answer than 200.
[[nodiscard]] Result<boost::json::value> get_json(std::uint16_t port, const std::string& path);

class DemoProxy {
 public:
  // `log` takes what the proxy writes to stderr.
  DemoProxy(std::filesystem::path configuration, std::filesystem::path log, std::uint16_t admin);
  // Ends the proxy: asked first, and by force when it does not listen.
  ~DemoProxy();
  DemoProxy(const DemoProxy&) = delete;
  DemoProxy& operator=(const DemoProxy&) = delete;

  // Returns once it is ready for requests; the error holds the last line of its log.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool running();
  [[nodiscard]] std::string last_words() const;  // last line of the log
  void stop();

 private:
  // Waits for the end of the child, at most that long.
  bool ended_within(std::chrono::milliseconds patience);

  std::filesystem::path configuration_, log_;
  std::uint16_t admin_;
  pid_t pid_ = -1;
};

}  // namespace clockwise::cli
