#include "engine/lowering/layout/coarse_digits.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// `a` and the digit behind it have one role in `layout`, and one place.
bool goTogether(const Layout &layout, std::int8_t a)
{
    const auto b = static_cast<std::int8_t>(a + 1);
    const auto has = [](const std::vector<std::int8_t> &digits, std::int8_t digit) {
        return std::find(digits.begin(), digits.end(), digit) != digits.end();
    };
    if (has(layout.summandDigits, a) != has(layout.summandDigits, b))
        return false;
    return std::all_of(layout.dimensionDigits.begin(), layout.dimensionDigits.end(), [&](const auto &digits) {
        const auto at = std::find(digits.begin(), digits.end(), a);
        return at == digits.end() ? !has(digits, b) : at + 1 != digits.end() && *(at + 1) == b;
    });
}

/// Some two devices that differ in this digit alone are on different nodes.
bool leadsAcrossNodes(
    std::int8_t digit, const std::vector<std::int32_t> &radices, const std::vector<std::int32_t> &nodes)
{
    for (const auto &positions : subgroupsOf({digit}, radices))
        for (const std::int32_t position : positions)
            if (nodes[static_cast<std::size_t>(position)]
                != nodes[static_cast<std::size_t>(positions.front())])
                return true;
    return false;
}

} // namespace

CoarseDigits::CoarseDigits(const std::vector<const Layout *> &ends, const std::vector<std::int32_t> &radices,
    const std::vector<std::int32_t> &nodes)
{
    bool across = false;
    for (std::size_t d = 0; d < radices.size(); ++d) {
        const auto digit = static_cast<std::int8_t>(d);
        const bool wasAcross = std::exchange(across, leadsAcrossNodes(digit, radices, nodes));
        const bool joins = d > 0 && across == wasAcross
            && std::all_of(ends.begin(), ends.end(), [digit](const Layout *layout) {
                   return goTogether(*layout, static_cast<std::int8_t>(digit - 1));
               });
        if (!joins) {
            m_runs.emplace_back();
            m_radices.push_back(1);
        }
        m_runs.back().push_back(digit);
        m_radices.back() *= radices[d];
        m_runOf.push_back(static_cast<std::int8_t>(m_runs.size() - 1));
    }
}

CoarseDigits::Digits CoarseDigits::coarse(const Digits &digits) const
{
    Digits result;
    for (const std::int8_t digit : digits)
        if (m_runs[static_cast<std::size_t>(m_runOf[static_cast<std::size_t>(digit)])].front() == digit)
            result.push_back(m_runOf[static_cast<std::size_t>(digit)]);
    return result;
}

CoarseDigits::Digits CoarseDigits::fine(const Digits &digits) const
{
    Digits result;
    for (const std::int8_t digit : digits) {
        const Digits &run = m_runs[static_cast<std::size_t>(digit)];
        result.insert(result.end(), run.begin(), run.end());
    }
    return result;
}

Layout CoarseDigits::coarse(const Layout &layout) const
{
    Layout result{.summandDigits = coarse(layout.summandDigits), .mixedSummands = layout.mixedSummands};
    for (const Digits &digits : layout.dimensionDigits)
        result.dimensionDigits.push_back(coarse(digits));
    return result;
}

Layout CoarseDigits::fine(const Layout &layout) const
{
    Layout result{.summandDigits = fine(layout.summandDigits), .mixedSummands = layout.mixedSummands};
    for (const Digits &digits : layout.dimensionDigits)
        result.dimensionDigits.push_back(fine(digits));
    return result;
}

Hop CoarseDigits::fine(Hop hop) const
{
    hop.digits = fine(hop.digits);
    hop.to = fine(hop.to);
    return hop;
}

} // namespace planloom
