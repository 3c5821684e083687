#include "engine/graph/dimensions/input_dimension.h"

#include <algorithm>

namespace planloom {

const InputDimension *findDimension(const std::vector<InputDimension> &dimensions, std::string_view name)
{
    const auto found = std::find_if(dimensions.begin(), dimensions.end(), [name](const InputDimension &each) {
        return each.name == name
            || std::find(each.aliases.begin(), each.aliases.end(), name) != each.aliases.end();
    });
    return found == dimensions.end() ? nullptr : &*found;
}

std::string rangeText(const InputDimension &dimension)
{
    if (dimension.most == kOpenEnd)
        return std::to_string(dimension.least) + " and more";
    return std::to_string(dimension.least) + " to " + std::to_string(dimension.most);
}

std::string namesText(const std::vector<InputDimension> &dimensions)
{
    std::string names;
    for (const InputDimension &each : dimensions)
        names += (names.empty() ? "'" : ", '") + each.name + "'";
    return names;
}

} // namespace planloom
