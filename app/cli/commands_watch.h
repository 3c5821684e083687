#pragma once

#include "engine/terminal/arguments.h"

namespace planloom::cli {

/// `solve --watch FILE`: solves the table of a file anew whenever it changes, and prints a line for every
/// grade of every answer. Ends with an interrupt.
Result<int> watchTable(const Arguments &arguments);

} // namespace planloom::cli
