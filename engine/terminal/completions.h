#pragma once

#include "engine/terminal/program.h"

#include <string>
#include <string_view>

namespace planloom {

/// What a shell reads to complete the words of a program. `shell` is "bash", "zsh" or "fish"; empty for
/// others. Equal tables give equal bytes.
std::string completionsOf(const ProgramSpec &program, std::string_view shell);

} // namespace planloom
