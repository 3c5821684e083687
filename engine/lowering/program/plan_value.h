#pragma once

#include "engine/base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// A value of an execution plan's document, and the JSON pointer of its place. What is wrong with it is
/// thrown as an `Error`, which whoever reads the document turns into a result.
class PlanValue
{
public:
    PlanValue(const nlohmann::json &value, std::string place)
        : m_value(&value)
        , m_place(std::move(place))
    {
    }

    const nlohmann::json &json() const { return *m_value; }

    /// @param below  the place inside this value that is wrong: "/shape"
    [[noreturn]] void fail(const std::string &message, const std::string &below = {}) const;

    PlanValue at(const std::string &name) const; ///< A member that must be there.
    std::optional<PlanValue> find(const std::string &name) const;
    bool flag(const char *name, bool missing) const; ///< A member that may be missing.

    std::vector<PlanValue> items() const; ///< Of a list, with the place of the list.
    std::vector<PlanValue> numbered() const; ///< Of a list, each with a place of its own.
    PlanValue operator[](std::size_t item) const;
    /// Fails, as it is not `what`, unless it is a list of so many.
    const PlanValue &ofSize(std::size_t count, const char *what) const;

    template<typename T = std::int32_t> T integer(std::int64_t least, std::int64_t most) const
    {
        return static_cast<T>(number(least, most));
    }
    /// An index into what has so many elements; -1 where that may be.
    std::int32_t index(std::size_t count, std::int64_t least = 0) const
    {
        return integer(least, static_cast<std::int64_t>(count) - 1);
    }
    template<typename T = std::int32_t> std::vector<T> integers(std::int64_t least, std::int64_t most) const
    {
        const std::vector<std::int64_t> all = numbers(least, most);
        std::vector<T> result(all.size());
        std::transform(
            all.begin(), all.end(), result.begin(), [](std::int64_t each) { return static_cast<T>(each); });
        return result;
    }
    std::string text() const;
    /// Which of these words it is.
    template<std::size_t N> std::size_t word(const std::array<const char *, N> &words) const
    {
        const auto found = std::find(words.begin(), words.end(), text());
        if (found == words.end())
            fail("expected a known name, found \"" + text() + "\"");
        return static_cast<std::size_t>(found - words.begin());
    }
    template<typename T, std::size_t N> T named(const std::array<T, N> &kinds) const
    {
        for (const T kind : kinds)
            if (isText(nameOf(kind)))
                return kind;
        fail("expected a known name");
    }

private:
    const nlohmann::json &list() const;
    bool isText(std::string_view text) const;
    std::int64_t number(std::int64_t least, std::int64_t most) const;
    std::vector<std::int64_t> numbers(std::int64_t least, std::int64_t most) const;

    const nlohmann::json *m_value;
    std::string m_place;
};

} // namespace planloom
