#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/setting.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// One word that a script comes to, and the line that it stands in.
struct ShellWord {
    std::string text{};
    std::int32_t line = 0;
    friend bool operator==(const ShellWord &, const ShellWord &) = default;
};

/// What a shell script comes to without running anything: the words of every command, and of every variable
/// that is set, with variables, arrays and integer arithmetic in place.
struct ShellText {
    std::vector<std::vector<ShellWord>> commands{}; ///< In their order.
    std::vector<ShellWord> directives{}; ///< Words behind "#SBATCH".
    std::vector<std::string> notes{};
};

/// Reads a script as far as plans need it. Branches of `if` and `case` are taken as variables decide; a
/// loop's body is read once; a function's where it is defined. What only a run knows (a variable that is set
/// nowhere,
/// "$1", "$(...)") stays in words as it is written, and branches that ask for it are not taken. Nothing is
/// run, and no file is opened.
/// @param variables  that are set before the first line
/// @return InvalidInput for a quote or bracket that is never closed (`where` "line:N"); ResourceLimit
/// O(length of the text and of what variables come to, which is bounded).
Result<ShellText> readShell(std::string_view text, const std::map<std::string, std::string> &variables = {});

/// Options ("--name value", "--name=value") and overrides ("a.b=value") among words.
std::vector<Setting> settingsOf(const std::vector<ShellWord> &words);

/// "[core_attn,moe_act]" or "core_attn" as a list of words.
std::vector<std::string> listOf(std::string_view text);

} // namespace planloom
