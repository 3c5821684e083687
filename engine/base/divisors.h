#pragma once

#include <concepts>
#include <vector>

namespace planloom {

/// The numbers that divide `number`, ascending; none of 0 and below. O(square root of `number`)
template<std::integral Integer> std::vector<Integer> divisorsOf(Integer number)
{
    std::vector<Integer> low;
    std::vector<Integer> high;
    for (Integer each = 1; each <= number / each; ++each) {
        if (number % each != 0)
            continue;
        low.push_back(each);
        if (each != number / each)
            high.push_back(number / each);
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

} // namespace planloom
