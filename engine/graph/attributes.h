#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace planloom {

/// Value of an operator's attribute.
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
    std::vector<double>, std::vector<std::string>>;

/// An operator's attributes by name, in order of name so that equal operators print alike.
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

    friend bool operator==(const Attributes &, const Attributes &) = default;

private:
    std::map<std::string, Attribute, std::less<>> m_values;
};

} // namespace planloom
