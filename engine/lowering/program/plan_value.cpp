#include "engine/lowering/program/plan_value.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

std::optional<std::int64_t> integerWithin(const nlohmann::json &value, std::int64_t least, std::int64_t most)
{
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX))
        return std::nullopt;
    const auto number = value.get<std::int64_t>();
    return number < least || number > most ? std::nullopt : std::optional(number);
}

std::string rangeOf(std::int64_t least, std::int64_t most)
{
    return "expected an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

} // namespace

void PlanValue::fail(const std::string &message, const std::string &below) const
{
    throw Error{ErrorCode::InvalidInput, message, "write the plan again with planloom-cli solve --out",
        m_place + below};
}

PlanValue PlanValue::at(const std::string &name) const
{
    if (!m_value->is_object())
        fail("expected an object");
    const auto it = m_value->find(name);
    if (it == m_value->end())
        fail("is missing", "/" + name);
    return {*it, m_place + "/" + name};
}

std::optional<PlanValue> PlanValue::find(const std::string &name) const
{
    const auto it = m_value->find(name);
    return it == m_value->end() ? std::nullopt : std::optional(PlanValue(*it, m_place + "/" + name));
}

bool PlanValue::flag(const char *name, bool missing) const
{
    const auto it = m_value->find(name);
    if (it == m_value->end())
        return missing;
    if (!it->is_boolean())
        fail("expected true or false", std::string("/") + name);
    return it->get<bool>();
}

std::vector<PlanValue> PlanValue::items() const
{
    std::vector<PlanValue> items;
    items.reserve(list().size());
    for (const nlohmann::json &item : list())
        items.emplace_back(item, m_place);
    return items;
}

std::vector<PlanValue> PlanValue::numbered() const
{
    std::vector<PlanValue> items = this->items();
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i].m_place += "/" + std::to_string(i);
    return items;
}

PlanValue PlanValue::operator[](std::size_t item) const
{
    return {(*m_value)[item], m_place};
}

const PlanValue &PlanValue::ofSize(std::size_t count, const char *what) const
{
    if (!m_value->is_array() || m_value->size() != count)
        fail(std::string("expected ") + what);
    return *this;
}

std::string PlanValue::text() const
{
    if (!m_value->is_string())
        fail("expected a text");
    return *m_value;
}

const nlohmann::json &PlanValue::list() const
{
    if (!m_value->is_array())
        fail("expected a list");
    return *m_value;
}

bool PlanValue::isText(std::string_view text) const
{
    return m_value->is_string() && m_value->get_ref<const std::string &>() == text;
}

std::int64_t PlanValue::number(std::int64_t least, std::int64_t most) const
{
    const auto found = integerWithin(*m_value, least, most);
    if (!found)
        fail(rangeOf(least, most));
    return *found;
}

std::vector<std::int64_t> PlanValue::numbers(std::int64_t least, std::int64_t most) const
{
    std::vector<std::int64_t> all;
    all.reserve(list().size());
    for (const nlohmann::json &item : list()) {
        const auto found = integerWithin(item, least, most);
        if (!found)
            fail(rangeOf(least, most));
        all.push_back(*found);
    }
    return all;
}

} // namespace planloom
