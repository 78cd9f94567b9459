#include "cli/cli.h"

int main(int argc, char** argv) { return clockwise::cli::run(argc, argv); }
