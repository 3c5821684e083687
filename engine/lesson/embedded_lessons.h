#pragma once

#include <span>
#include <string_view>

namespace planloom {

/// The lesson.md of a folder of resources/lessons, compiled in.
struct EmbeddedLesson {
    std::string_view name{}; ///< Of the folder.
    std::string_view text{};
};
std::span<const EmbeddedLesson> embeddedLessons();

} // namespace planloom
