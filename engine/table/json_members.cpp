#include "engine/table/json_members.h"

#include "engine/table/kinds/rule_traits.h"

#include <nlohmann/json.hpp>

namespace planloom {

using Json = nlohmann::json;

Error wrong(const std::string &where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "see resources/schema/table.json", where};
}

Result<std::int64_t> integerAt(
    const Json &object, const char *key, const std::string &where, std::int64_t least, std::int64_t most)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer())
        return wrong(where + "/" + key, "expected an integer");
    // Unsigned numbers beyond int64 would wrap around.
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostExtent))
        return wrong(where + "/" + key, "expected a number of at most " + std::to_string(most));
    const auto value = found->get<std::int64_t>();
    if (value < least || value > most) {
        return wrong(where + "/" + key,
            "expected a number from " + std::to_string(least) + " to " + std::to_string(most) + ", found "
                + std::to_string(value));
    }
    return value;
}

Result<std::int32_t> countAt(const Json &object, const char *key, const std::string &where,
    std::int64_t least, std::optional<std::int32_t> fallback)
{
    if (fallback && !object.contains(key))
        return *fallback;
    TRY(const auto value, integerAt(object, key, where, least, kMostCount));
    return static_cast<std::int32_t>(value);
}

Result<bool> flagAt(const Json &object, const char *key, const std::string &where, bool fallback)
{
    const auto found = object.find(key);
    if (found == object.end())
        return fallback;
    if (!found->is_boolean())
        return wrong(where + "/" + key, "expected true or false");
    return found->get<bool>();
}

Result<std::string> textAt(
    const Json &object, const char *key, const std::string &where, std::optional<std::string> fallback)
{
    const auto found = object.find(key);
    if (found == object.end() && fallback)
        return *std::move(fallback);
    if (found == object.end() || !found->is_string())
        return wrong(where + "/" + key, "expected a text");
    return found->get<std::string>();
}

Result<const Json *> listAt(const Json &object, const char *key, const std::string &where)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array() || found->empty())
        return wrong(where + "/" + key, "expected a list that is not empty");
    return &*found;
}

Result<Selector> selectorAt(const Json &object, const char *key, const std::string &where)
{
    TRY(const std::string text, textAt(object, key, where));
    auto selector = parseSelector(text);
    if (!selector) {
        Error error = std::move(selector).error();
        error.where = where + "/" + key + "@" + error.where.substr(error.where.rfind(':') + 1);
        return error;
    }
    return selector;
}

Result<void> requireObject(const Json &value, const std::string &where)
{
    if (!value.is_object())
        return wrong(where, "expected an object");
    return {};
}

Result<void> requireMembers(
    const Json &object, std::initializer_list<std::string_view> known, const std::string &where)
{
    for (const auto &[key, value] : object.items()) {
        bool found = false;
        for (const std::string_view name : known)
            found = found || name == key;
        if (!found)
            return wrong(where, "there is no member '" + key.substr(0, 40) + "' here");
    }
    return {};
}

} // namespace planloom
