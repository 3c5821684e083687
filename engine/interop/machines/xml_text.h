#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr std::size_t kMostXmlElements = 100'000;
constexpr std::int32_t kMostXmlDepth = 64; ///< Of elements in elements.
constexpr std::size_t kMostXmlAttributes = 64; ///< Of one element.

/// An element of an XML file.
struct XmlElement {
    std::string name{};
    std::map<std::string, std::string, std::less<>> attributes{};
    std::vector<std::size_t> children{}; ///< Indices into the file's elements.
    std::int32_t line = 0; ///< From 1: where its tag begins.
};

/// The elements of a file of data without text: element 0 is the root, parents stand before children.
///
/// Reads less than XML, so that a stranger's file can do nothing: no document types and so no entities but
/// the five that every file has, no references to characters, no text between tags, no instructions but the
/// first line's. Nothing that it names is opened.
/// @return InvalidInput with its place (`where` "line:LINE:COLUMN"), also for another element that closes
/// than was opened and for an attribute that stands twice; ResourceLimit beyond the limits above. Memory and
/// time O(length). Thread-safe.
Result<std::vector<XmlElement>> readXml(std::string_view text);

} // namespace planloom
