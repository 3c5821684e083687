#pragma once

#include "engine/terminal/program.h"

namespace planloom::cli {

/// planloom-cli: all its verbs, in the order of the help.
const ProgramSpec &program();

} // namespace planloom::cli
