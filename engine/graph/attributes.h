#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace planloom {

struct OperatorDefinition;

/// Value of an operator's attribute.
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
    std::vector<double>, std::vector<std::string>>;

/// An operator's attributes by name, in order of name so that equal operators print alike. An operator of
/// kind Custom has beside them what an operator file says it is.
class Attributes
{
public:
    bool has(std::string_view name) const;
    /// The attribute, or `fallback` where it is missing or of another type.
    std::int64_t integer(std::string_view name, std::int64_t fallback = 0) const;
    double real(std::string_view name, double fallback = 0) const;
    std::string text(std::string_view name, std::string_view fallback = {}) const;
    std::vector<std::int64_t> integers(std::string_view name) const;

    void set(std::string_view name, Attribute value);
    void erase(std::string_view name);
    const std::map<std::string, Attribute, std::less<>> &all() const { return m_values; }

    /// Of kind Custom: never null. Of all others: null.
    const std::shared_ptr<const OperatorDefinition> &definition() const { return m_definition; }
    void setDefinition(std::shared_ptr<const OperatorDefinition> definition);

    /// Two definitions are equal if they say the same.
    friend bool operator==(const Attributes &a, const Attributes &b);

private:
    std::map<std::string, Attribute, std::less<>> m_values;
    std::shared_ptr<const OperatorDefinition> m_definition;
};

} // namespace planloom
