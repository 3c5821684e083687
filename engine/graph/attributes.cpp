#include "engine/graph/attributes.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/operator_files/operator_definition.h"

#include <utility>

namespace planloom {

namespace {

/// The value called `name` if it is there and holds a `T`.
template<typename T>
const T *find(const std::map<std::string, Attribute, std::less<>> &values, std::string_view name)
{
    const auto it = values.find(name);
    return it == values.end() ? nullptr : std::get_if<T>(&it->second);
}

} // namespace

bool Attributes::has(std::string_view name) const
{
    return m_values.find(name) != m_values.end();
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t fallback) const
{
    const auto *value = find<std::int64_t>(m_values, name);
    return value ? *value : fallback;
}

double Attributes::real(std::string_view name, double fallback) const
{
    const auto *value = find<double>(m_values, name);
    return value ? *value : fallback;
}

std::string Attributes::text(std::string_view name, std::string_view fallback) const
{
    const auto *value = find<std::string>(m_values, name);
    return value ? *value : std::string(fallback);
}

std::vector<std::int64_t> Attributes::integers(std::string_view name) const
{
    const auto *value = find<std::vector<std::int64_t>>(m_values, name);
    return value ? *value : std::vector<std::int64_t>{};
}

void Attributes::set(std::string_view name, Attribute value)
{
    m_values.insert_or_assign(std::string(name), std::move(value));
}

void Attributes::erase(std::string_view name)
{
    const auto it = m_values.find(name);
    if (it != m_values.end())
        m_values.erase(it);
}

void Attributes::setDefinition(std::shared_ptr<const OperatorDefinition> definition)
{
    m_definition = std::move(definition);
}

namespace {

/// NaN is what it is: attributes that are read back are those that were written.
bool isSame(double a, double b)
{
    return a == b || (std::isnan(a) && std::isnan(b));
}

bool isSame(const Attribute &a, const Attribute &b)
{
    const auto *one = std::get_if<double>(&a);
    const auto *other = std::get_if<double>(&b);
    if (one && other)
        return isSame(*one, *other);
    const auto *list = std::get_if<std::vector<double>>(&a);
    const auto *otherList = std::get_if<std::vector<double>>(&b);
    if (list && otherList)
        return std::equal(list->begin(), list->end(), otherList->begin(), otherList->end(),
            [](double x, double y) { return isSame(x, y); });
    return a == b;
}

} // namespace

bool operator==(const Attributes &a, const Attributes &b)
{
    if (!std::equal(a.m_values.begin(), a.m_values.end(), b.m_values.begin(), b.m_values.end(),
            [](const auto &x, const auto &y) { return x.first == y.first && isSame(x.second, y.second); }))
        return false;
    return a.m_definition == b.m_definition
        || (a.m_definition && b.m_definition && *a.m_definition == *b.m_definition);
}

} // namespace planloom
