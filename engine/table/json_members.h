#pragma once

#include "engine/base/result.h"
#include "engine/table/selector.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// Reads the table's JSON by members. `where` is the object's path in its document: "rows/3/rule". Errors
// are InvalidInput with the path of what is wrong, "rows/3/rule/count", and say what was expected there. With
// an empty `key`, `object` is the value itself, an element of a list, and `where` its path.

Error wrong(const std::string &where, std::string message);

/// "rows/3/rule/count"
std::string pathOf(const std::string &where, const std::string &key);
/// The member to write to.
nlohmann::json &memberOf(nlohmann::json &object, const std::string &key);

/// An integer in [least, most], `most` being at most `kMostExtent`.
Result<std::int64_t> integerAt(const nlohmann::json &object, const std::string &key, const std::string &where,
    std::int64_t least, std::int64_t most);

Result<bool> flagAt(
    const nlohmann::json &object, const std::string &key, const std::string &where, bool fallback);

Result<std::string> textAt(const nlohmann::json &object, const std::string &key, const std::string &where,
    std::optional<std::string> fallback = {});

/// The array at `key`, with at least one element.
Result<const nlohmann::json *> listAt(
    const nlohmann::json &object, const std::string &key, const std::string &where);

/// A selector in its text form; the error's place within it is "rows/3/selector@6", from 1.
Result<Selector> selectorAt(const nlohmann::json &object, const std::string &key, const std::string &where);

Result<void> requireObject(const nlohmann::json &value, const std::string &where);

/// Refuses members that no reader here knows, which would otherwise be dropped silently.
Result<void> requireMembers(
    const nlohmann::json &object, const std::vector<std::string> &known, const std::string &where);

} // namespace planloom
