#pragma once

#include <QtCore/QString>

#include <string_view>

namespace planloom {

/// Markdown within a line (`code`, **strong**, *emphasised*, links) as rich text. Links to "glossary:TERM"
/// are links; of others the address stands behind the words: a lesson opens nothing. O(length). Thread-safe.
QString richTextOf(std::string_view markdown);

} // namespace planloom
