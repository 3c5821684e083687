#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Text that strangers wrote, and HTML. Thread-safe.

/// `text` as HTML shows it, between tags and in quoted attributes: no byte of it is markup. Bytes that are no
/// UTF-8, and control characters other than line ends and tabs, become U+FFFD.
std::string htmlText(std::string_view text);

/// JSON as a script element may hold it: nothing in it ends the element.
std::string scriptText(std::string_view json);

/// A column of a table.
struct HtmlColumn {
    std::string heading{};
    bool isNumber = false; ///< Aligned to the right.
};

/// Cells are HTML.
std::string htmlTable(
    const std::vector<HtmlColumn> &columns, const std::vector<std::vector<std::string>> &rows);

} // namespace planloom
