#include <unistd.h>

#include "cli/cli.h"
#include "cli/demo_stage.h"

namespace clockwise::cli {

int demo(bool once) { return once || isatty(STDOUT_FILENO) == 0 ? demo_once() : demo_live(); }

}  // namespace clockwise::cli
