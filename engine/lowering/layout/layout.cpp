#include "engine/lowering/layout/layout.h"

#include "engine/lowering/layout/layout_digits.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// Weight of each digit in a position number: the product of the radices behind it.
std::vector<std::int32_t> weightsOf(const std::vector<std::int32_t> &radices)
{
    std::vector<std::int32_t> weights(radices.size(), 1);
    for (std::size_t i = radices.size(); i-- > 1;)
        weights[i - 1] = weights[i] * radices[i];
    return weights;
}

std::int32_t digitOf(std::int32_t position, std::size_t digit, const std::vector<std::int32_t> &radices,
    const std::vector<std::int32_t> &weights)
{
    return position / weights[digit] % radices[digit];
}

/// The number that `digits` (outermost first) spell at `position`.
std::int64_t numberOf(const Digits &digits, std::int32_t position, const std::vector<std::int32_t> &radices,
    const std::vector<std::int32_t> &weights)
{
    std::int64_t number = 0;
    for (const std::int8_t digit : digits) {
        const auto d = static_cast<std::size_t>(digit);
        number = number * radices[d] + digitOf(position, d, radices, weights);
    }
    return number;
}

/// Finds the digits that spell `value[position]` in mixed radix, outermost first; nothing if none do.
std::optional<Digits> spellingOf(const std::vector<std::int64_t> &value,
    const std::vector<std::int32_t> &radices, const std::vector<std::int32_t> &weights)
{
    struct Candidate {
        std::int64_t stride;
        std::int8_t digit;
    };
    std::vector<Candidate> candidates;
    for (std::size_t d = 0; d < radices.size(); ++d) {
        const std::int64_t stride = value[static_cast<std::size_t>(weights[d])] - value[0];
        if (stride < 0)
            return std::nullopt;
        if (stride > 0)
            candidates.push_back({stride, static_cast<std::int8_t>(d)});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
        return a.stride != b.stride ? a.stride > b.stride : a.digit < b.digit;
    });
    Digits digits;
    for (const Candidate &candidate : candidates)
        digits.push_back(candidate.digit);
    for (std::size_t position = 0; position < value.size(); ++position)
        if (value[position] != numberOf(digits, static_cast<std::int32_t>(position), radices, weights))
            return std::nullopt;
    return digits;
}

/// No summand is in two of the sets, and none is empty, unless there is only one.
bool areDisjoint(const std::vector<const SummandSet *> &sets)
{
    if (sets.size() < 2)
        return true;
    std::set<std::int32_t> seen;
    for (const auto *set : sets)
        for (const std::int32_t summand : *set)
            if (!seen.insert(summand).second)
                return false;
    return std::none_of(sets.begin(), sets.end(), [](const auto *set) { return set->empty(); });
}

/// The digits that number the summands: any labels will do, as long as the digits that change the set tell
/// the sets apart. Nothing if there are none such.
std::optional<Digits> summandDigitsOf(
    const std::vector<Holding> &holdings, const Layout &layout, const std::vector<std::int32_t> &radices)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    Digits found;
    for (std::size_t d = 0; d < radices.size(); ++d)
        if (holdings[static_cast<std::size_t>(weights[d])].summands != holdings[0].summands)
            found.push_back(static_cast<std::int8_t>(d));
    // A digit that cuts a dimension and changes the set as well would leave boxes without some summands.
    if (std::any_of(found.begin(), found.end(), [&](std::int8_t digit) { return cuts(layout, digit); }))
        return std::nullopt;
    std::vector<const SummandSet *> sets(static_cast<std::size_t>(partsOf(found, radices)), nullptr);
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        auto &set =
            sets[static_cast<std::size_t>(numberOf(found, static_cast<std::int32_t>(i), radices, weights))];
        if (!set)
            set = &holdings[i].summands;
        else if (*set != holdings[i].summands)
            return std::nullopt;
    }
    return areDisjoint(sets) ? std::optional(std::move(found)) : std::nullopt;
}

/// The first digits along which every subgroup holds the same summands, each once, in whatever order.
std::optional<Digits> mixedSummandDigitsOf(
    const std::vector<Holding> &holdings, const Layout &layout, const std::vector<std::int32_t> &radices)
{
    Digits candidates;
    for (std::size_t d = 0; d < radices.size(); ++d)
        if (const auto digit = static_cast<std::int8_t>(d); !cuts(layout, digit))
            candidates.push_back(digit);
    const std::set<SummandSet> all = [&] {
        std::set<SummandSet> sets;
        for (const Holding &h : holdings)
            sets.insert(h.summands);
        return sets;
    }();
    for (std::uint32_t subset = 1; subset < (1u << candidates.size()); ++subset) {
        Digits digits;
        for (std::size_t c = 0; c < candidates.size(); ++c)
            if (subset >> c & 1u)
                digits.push_back(candidates[c]);
        if (partsOf(digits, radices) != static_cast<std::int64_t>(all.size()))
            continue;
        const auto groups = subgroupsOf(digits, radices);
        const bool fits = std::all_of(groups.begin(), groups.end(), [&](const auto &positions) {
            std::set<SummandSet> sets;
            for (const std::int32_t position : positions)
                sets.insert(holdings[static_cast<std::size_t>(position)].summands);
            return sets == all;
        });
        if (!fits)
            continue;
        std::vector<const SummandSet *> sets;
        for (const SummandSet &set : all)
            sets.push_back(&set);
        return areDisjoint(sets) ? std::optional(std::move(digits)) : std::nullopt;
    }
    return std::nullopt;
}

} // namespace

std::vector<std::int32_t> radicesOf(std::int32_t n)
{
    std::vector<std::int32_t> radices;
    for (std::int32_t p = 2; p * p <= n; ++p)
        for (; n % p == 0; n /= p)
            radices.push_back(p);
    if (n > 1)
        radices.push_back(n);
    std::reverse(radices.begin(), radices.end());
    return radices;
}

std::optional<Layout> recogniseLayout(const std::vector<Holding> &holdings, const IndexMask &whole,
    const std::vector<std::int32_t> &radices, bool mixed)
{
    const std::size_t n = holdings.size();
    const std::vector<std::int32_t> weights = weightsOf(radices);
    assert(n == static_cast<std::size_t>(radices.empty() ? 1 : weights[0] * radices[0]));
    Layout layout;
    layout.dimensionDigits.resize(whole.ranges.size());
    std::vector<std::int64_t> number(n);
    for (std::size_t dimension = 0; dimension < whole.ranges.size(); ++dimension) {
        const Range all = whole.ranges[dimension];
        const std::int64_t extent = holdings[0].box.ranges[dimension].size();
        if (extent <= 0 || all.size() % extent != 0)
            return std::nullopt;
        for (std::size_t i = 0; i < n; ++i) {
            const Range range = holdings[i].box.ranges[dimension];
            if (range.size() != extent || (range.begin - all.begin) % extent != 0)
                return std::nullopt;
            number[i] = (range.begin - all.begin) / extent;
        }
        auto digits = spellingOf(number, radices, weights);
        if (!digits || partsOf(*digits, radices) != all.size() / extent)
            return std::nullopt;
        layout.dimensionDigits[dimension] = std::move(*digits);
    }
    if (auto digits = summandDigitsOf(holdings, layout, radices)) {
        layout.summandDigits = std::move(*digits);
        return layout;
    }
    if (!mixed)
        return std::nullopt;
    auto digits = mixedSummandDigitsOf(holdings, layout, radices);
    if (!digits)
        return std::nullopt;
    layout.summandDigits = std::move(*digits);
    layout.mixedSummands = true;
    return layout;
}

IndexMask boxUnder(const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices,
    std::int32_t position)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    IndexMask box = whole;
    for (std::size_t dimension = 0; dimension < box.ranges.size(); ++dimension) {
        const Digits &digits = layout.dimensionDigits[dimension];
        const std::int64_t extent = box.ranges[dimension].size() / partsOf(digits, radices);
        box.ranges[dimension].begin += extent * numberOf(digits, position, radices, weights);
        box.ranges[dimension].end = box.ranges[dimension].begin + extent;
    }
    return box;
}

std::vector<Cell> cellsUnder(
    const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    const std::int32_t n = radices.empty() ? 1 : weights[0] * radices[0];
    std::vector<Cell> cells;
    cells.reserve(static_cast<std::size_t>(n));
    for (std::int32_t position = 0; position < n; ++position)
        cells.push_back({boxUnder(layout, whole, radices, position),
            static_cast<std::int32_t>(numberOf(layout.summandDigits, position, radices, weights))});
    return cells;
}

std::vector<std::vector<std::int32_t>> subgroupsOf(
    const Digits &digits, const std::vector<std::int32_t> &radices)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    const std::int32_t n = radices.empty() ? 1 : weights[0] * radices[0];
    const auto members = static_cast<std::size_t>(partsOf(digits, radices));
    std::vector<std::vector<std::int32_t>> groups;
    std::vector<std::int32_t> groupOf(static_cast<std::size_t>(n), -1);
    for (std::int32_t position = 0; position < n; ++position) {
        std::int32_t base = position;
        for (const std::int8_t digit : digits) {
            const auto d = static_cast<std::size_t>(digit);
            base -= digitOf(position, d, radices, weights) * weights[d];
        }
        std::int32_t &group = groupOf[static_cast<std::size_t>(base)];
        if (group < 0) {
            group = static_cast<std::int32_t>(groups.size());
            groups.emplace_back(members, -1);
        }
        groups[static_cast<std::size_t>(group)]
              [static_cast<std::size_t>(numberOf(digits, position, radices, weights))] = position;
    }
    return groups;
}

std::vector<std::int32_t> topologyOf(
    const Cluster &cluster, const std::vector<DeviceId> &group, std::int32_t origin)
{
    // Where nodes differ, or lie in racks, it matters which they are.
    const bool alike = cluster.otherClasses.empty() && cluster.links.outer.empty();
    std::vector<std::int32_t> nodes;
    for (const DeviceId device : group)
        nodes.push_back(alike ? cluster.nodeOf(device) - origin
                              : cluster.nodeOf(device) * static_cast<std::int32_t>(kMostDeviceClasses)
                    + cluster.classOf(device));
    return nodes;
}

} // namespace planloom
