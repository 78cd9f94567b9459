// The running process: builds the tree of workers, admin and reload, and lives until a signal ends
// it.
//
// Two threads of its own beside workers and admin. The main thread waits for signals and is never
// busy, so that a stop is heard at once; the control thread loads, reloads and watches files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/load.h"

namespace clockwise::runtime {

struct ServeSettings {
  std::string config_file;
  config::FileReader read = config::real_files();  // where the text of `config_file` comes from
  std::optional<std::uint32_t> workers;            // over the file
};

// Runs until a signal. Returns 0 after a clean stop, 1 when the start failed; the reason is on
// stderr: problems of the configuration as `check` prints them, anything else in one line.
int serve(const ServeSettings& settings);

}  // namespace clockwise::runtime
