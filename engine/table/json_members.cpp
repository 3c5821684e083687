#include "engine/table/json_members.h"

#include "engine/table/kinds/rule_traits.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace planloom {

using Json = nlohmann::json;

Error wrong(const std::string &where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "see resources/schema/table.json", where};
}

std::string pathOf(const std::string &where, const std::string &key)
{
    return key.empty() ? where : where + "/" + key;
}

Json &memberOf(Json &object, const std::string &key)
{
    return key.empty() ? object : object[key];
}

namespace {

const Json *findMember(const Json &object, const std::string &key)
{
    if (key.empty())
        return &object;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
}

Error expectedAt(const Json &object, const std::string &key, const std::string &where, const char *what)
{
    const bool isNone = !key.empty() && !object.is_object();
    return isNone ? wrong(where, "expected an object")
                  : wrong(pathOf(where, key), std::string("expected ") + what);
}

} // namespace

Result<std::int64_t> integerAt(const Json &object, const std::string &key, const std::string &where,
    std::int64_t least, std::int64_t most)
{
    const Json *found = findMember(object, key);
    if (!found || !found->is_number_integer())
        return expectedAt(object, key, where, "an integer");
    // Unsigned numbers beyond int64 would wrap around.
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostExtent))
        return wrong(pathOf(where, key), "expected a number of at most " + std::to_string(most));
    const auto value = found->get<std::int64_t>();
    if (value < least || value > most) {
        return wrong(pathOf(where, key),
            "expected a number from " + std::to_string(least) + " to " + std::to_string(most) + ", found "
                + std::to_string(value));
    }
    return value;
}

Result<bool> flagAt(const Json &object, const std::string &key, const std::string &where, bool fallback)
{
    const Json *found = findMember(object, key);
    if (found && !found->is_boolean())
        return expectedAt(object, key, where, "true or false");
    return found ? found->get<bool>() : fallback;
}

Result<std::string> textAt(
    const Json &object, const std::string &key, const std::string &where, std::optional<std::string> fallback)
{
    const Json *found = findMember(object, key);
    if (!found && fallback)
        return *std::move(fallback);
    if (!found || !found->is_string())
        return expectedAt(object, key, where, "a text");
    return found->get<std::string>();
}

Result<const Json *> listAt(const Json &object, const std::string &key, const std::string &where)
{
    const Json *found = findMember(object, key);
    if (!found || !found->is_array() || found->empty())
        return expectedAt(object, key, where, "a list that is not empty");
    return found;
}

Result<Selector> selectorAt(const Json &object, const std::string &key, const std::string &where)
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
    const Json &object, const std::vector<std::string> &known, const std::string &where)
{
    for (const auto &[key, value] : object.items()) {
        if (std::find(known.begin(), known.end(), key) == known.end())
            return wrong(where, "there is no member '" + key.substr(0, 40) + "' here");
    }
    return {};
}

} // namespace planloom
