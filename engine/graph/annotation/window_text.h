#pragma once

// Private to the graph room: how windows stand in the text of annotations, "; h: 3 by 2 dilated 2 at -1 of
// 8".

#include "engine/graph/annotation/annotation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

/// Appends how the windows of every identifier that counts them lie.
void appendWindows(std::string &text, const Annotation &annotation);

/// What is wrong with a text, and where: a byte of it.
struct TextFault {
    std::size_t position = 0;
    std::string message{};
};

/// Reads what `appendWindows` writes from byte `at` to the end of `text`, into an annotation that has its
/// identifiers.
std::optional<TextFault> readWindows(std::string_view text, std::size_t at, Annotation &annotation);

} // namespace planloom
