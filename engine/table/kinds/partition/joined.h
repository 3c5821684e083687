#pragma once

#include <string>
#include <vector>

namespace planloom {

/// `show(item)` of all items with `separator` between them.
template<typename T, typename Show>
std::string joined(const std::vector<T> &items, const char *separator, Show show)
{
    std::string text;
    for (const T &item : items) {
        if (!text.empty())
            text += separator;
        text += show(item);
    }
    return text;
}

} // namespace planloom
