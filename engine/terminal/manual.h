#pragma once

#include "engine/terminal/program.h"

#include <string>

namespace planloom {

/// The man page of a program (section 1), in roff's man macros. Equal tables give equal bytes.
std::string manualOf(const ProgramSpec &program);

} // namespace planloom
