#pragma once

#include "engine/base/result.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
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
    [[noreturn]] void fail(const std::string &message, const std::string &below = {}) const
    {
        throw Error{ErrorCode::InvalidInput, message, "write the plan again with planloom-cli solve --out",
            m_place + below};
    }

    /// A member that must be there.
    PlanValue at(const std::string &name) const
    {
        if (!m_value->is_object())
            fail("expected an object");
        const auto it = m_value->find(name);
        if (it == m_value->end())
            fail("is missing", "/" + name);
        return {*it, m_place + "/" + name};
    }
    std::optional<PlanValue> find(const std::string &name) const
    {
        const auto it = m_value->find(name);
        return it == m_value->end() ? std::nullopt : std::optional(PlanValue(*it, m_place + "/" + name));
    }
    /// A member that may be missing.
    bool flag(const char *name, bool missing) const
    {
        const auto it = m_value->find(name);
        if (it == m_value->end())
            return missing;
        if (!it->is_boolean())
            fail("expected true or false", std::string("/") + name);
        return it->get<bool>();
    }

    /// Of a list, with the place of the list.
    std::vector<PlanValue> items() const
    {
        std::vector<PlanValue> items;
        items.reserve(list().size());
        for (const nlohmann::json &item : list())
            items.emplace_back(item, m_place);
        return items;
    }
    /// Of a list, each with a place of its own.
    std::vector<PlanValue> numbered() const
    {
        std::vector<PlanValue> items = this->items();
        for (std::size_t i = 0; i < items.size(); ++i)
            items[i].m_place += "/" + std::to_string(i);
        return items;
    }
    PlanValue operator[](std::size_t item) const { return {(*m_value)[item], m_place}; }
    /// Fails, as it is not `what`, unless it is a list of so many.
    const PlanValue &ofSize(std::size_t count, const char *what) const
    {
        if (!m_value->is_array() || m_value->size() != count)
            fail(std::string("expected ") + what);
        return *this;
    }

    template<typename T = std::int32_t> T integer(std::int64_t least, std::int64_t most) const
    {
        return static_cast<T>(number(*m_value, least, most));
    }
    /// An index into what has so many elements; -1 where that may be.
    std::int32_t index(std::size_t count, std::int64_t least = 0) const
    {
        return integer(least, static_cast<std::int64_t>(count) - 1);
    }
    template<typename T = std::int32_t> std::vector<T> integers(std::int64_t least, std::int64_t most) const
    {
        std::vector<T> result;
        for (const nlohmann::json &item : list())
            result.push_back(static_cast<T>(number(item, least, most)));
        return result;
    }
    std::string text() const
    {
        if (!m_value->is_string())
            fail("expected a text");
        return *m_value;
    }
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
        if (m_value->is_string())
            for (const T kind : kinds)
                if (m_value->get_ref<const std::string &>() == nameOf(kind))
                    return kind;
        fail("expected a known name");
    }

private:
    const nlohmann::json &list() const
    {
        if (!m_value->is_array())
            fail("expected a list");
        return *m_value;
    }
    /// @param value  this one, or an item of it
    std::int64_t number(const nlohmann::json &value, std::int64_t least, std::int64_t most) const
    {
        if (!value.is_number_integer()
            || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
            || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
            fail("expected an integer from " + std::to_string(least) + " to " + std::to_string(most));
        return value.get<std::int64_t>();
    }

    const nlohmann::json *m_value;
    std::string m_place;
};

} // namespace planloom
