#include "engine/base/place.h"

#include <charconv>
#include <string_view>

namespace planloom {

std::optional<TextPlace> textPlaceOf(const Error &error)
{
    constexpr std::string_view kPrefix = "line:";
    if (!error.where.starts_with(kPrefix))
        return {};
    TextPlace place;
    const char *end = error.where.data() + error.where.size();
    const auto [colon, failure] = std::from_chars(error.where.data() + kPrefix.size(), end, place.line);
    if (failure != std::errc {})
        return {};
    if (colon != end)
        std::from_chars(colon + 1, end, place.column);
    return place;
}

} // namespace planloom
