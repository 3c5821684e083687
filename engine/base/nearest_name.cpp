#include "engine/base/nearest_name.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

/// Letters to change, add or leave out, and neighbours to change places, to come from one to the other, each
/// letter once at most; something above `most` where it is more.
std::size_t distanceOf(std::string_view a, std::string_view b, std::size_t most)
{
    if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most)
        return most + 1;
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    std::vector<std::size_t> before(row.size()); // the row above, and the one above that
    std::vector<std::size_t> beforeThat(row.size());
    std::size_t leastBefore = 0;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        beforeThat.swap(before);
        before.swap(row);
        row[0] = i;
        std::size_t least = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] =
                std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], beforeThat[j - 2] + 1);
            least = std::min(least, row[j]);
        }
        if (std::min(least, leastBefore) > most)
            return most + 1;
        leastBefore = least;
    }
    return row.back();
}

using Near = std::pair<std::size_t, std::string_view>; ///< By distance.

std::vector<Near> nearest(
    std::string_view name, const std::vector<std::string_view> &known, std::size_t count, std::size_t most)
{
    std::vector<Near> found;
    for (const std::string_view each : known) {
        const std::size_t bound = found.size() < count ? most : std::min(most, found.back().first);
        const Near near{distanceOf(name, each, bound), each};
        if (near.first > bound || std::find(found.begin(), found.end(), near) != found.end())
            continue;
        found.insert(std::upper_bound(found.begin(), found.end(), near), near);
        if (found.size() > count)
            found.pop_back();
    }
    return found;
}

} // namespace

std::vector<std::string> nearestNames(
    std::string_view name, const std::vector<std::string_view> &known, std::size_t count)
{
    std::vector<std::string> names;
    for (const auto &[distance, each] :
        nearest(name, known, count, std::numeric_limits<std::size_t>::max() - 1))
        names.emplace_back(each);
    return names;
}

std::string didYouMean(std::string_view name, const std::vector<std::string_view> &known)
{
    const auto found = nearest(name, known, 1, std::max<std::size_t>(1, name.size() / 3));
    if (found.empty())
        return {};
    return "did you mean '" + std::string(found.front().second) + "'?";
}

} // namespace planloom
