#include "engine/search/partition/meeting_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace planloom {

namespace {

/// Entries of one tensor's table. Above, each of its readers has its share.
constexpr double kMostEntries = 1 << 14;

/// The next of all choices of some operators, the last fastest; false behind the last.
bool advance(std::vector<std::int32_t> &at, const std::vector<std::int32_t> &sizes)
{
    for (std::size_t i = at.size(); i-- > 0;) {
        if (++at[i] < sizes[i])
            return true;
        at[i] = 0;
    }
    return false;
}

} // namespace

template<typename Cost>
CostTable MeetingTables::table(
    std::vector<std::int64_t> key, const std::vector<std::int32_t> &scope, const Cost &cost)
{
    CostTable &table = m_known[std::move(key)];
    if (table)
        return table;
    std::vector<std::int32_t> sizes;
    for (const std::int32_t v : scope)
        sizes.push_back(static_cast<std::int32_t>(m_problem.choiceCount(static_cast<std::size_t>(v))));
    std::vector<std::int32_t> at(scope.size(), 0);
    std::vector<double> costs;
    do {
        Entry chosen;
        for (std::size_t i = 0; i < scope.size(); ++i)
            chosen.push_back(&m_problem.choiceOf(static_cast<std::size_t>(scope[i]), at[i]));
        costs.push_back(cost(chosen));
    } while (advance(at, sizes));
    table = std::make_shared<const std::vector<double>>(std::move(costs));
    return table;
}

MeetingTables::MeetingTables(const PartitionProblem &problem)
    : m_problem(problem)
    , m_factors(problem.meetings().size())
{
}

const std::vector<CostFactor> &MeetingTables::of(std::size_t meeting, CountedPasses passes)
{
    auto &factors = m_factors[meeting][static_cast<std::size_t>(passes)];
    if (!factors)
        factors = make(m_problem.meetings()[meeting], passes);
    return *factors;
}

CostFactor MeetingTables::scaled(const CostFactor &factor, double times)
{
    CostTable &table = m_scaled[{factor.costs, times}];
    if (!table) {
        std::vector<double> costs;
        for (const double cost : *factor.costs)
            costs.push_back(std::isfinite(cost) ? cost * times : cost);
        table = std::make_shared<const std::vector<double>>(std::move(costs));
    }
    return {factor.variables, table};
}

std::vector<CostFactor> MeetingTables::make(const Meeting &meeting, CountedPasses passes)
{
    const std::vector<std::int32_t> whole = meeting.scope();
    double entries = 1;
    for (const std::int32_t v : whole)
        entries *= static_cast<double>(m_problem.choiceCount(static_cast<std::size_t>(v)));
    const bool joint = entries <= kMostEntries;

    std::vector<CostFactor> factors;
    for (std::size_t r = 0; r < (joint ? 1 : meeting.readers.size()); ++r) {
        std::vector<std::int32_t> scope = whole;
        if (!joint) {
            scope = {meeting.readers[r].first};
            if (meeting.producer >= 0)
                scope.push_back(meeting.producer);
            else if (r > 0) // of a weight, neighbours agree
                scope.push_back(meeting.readers[r - 1].first);
            std::sort(scope.begin(), scope.end());
            scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
        }
        const auto placeOf = [&](std::int32_t v) {
            return static_cast<std::size_t>(std::lower_bound(scope.begin(), scope.end(), v) - scope.begin());
        };
        std::vector<std::int64_t> key{meeting.bytes, meeting.gradientBytes,
            static_cast<std::int64_t>(meeting.combination), static_cast<std::int64_t>(passes), joint,
            std::bit_cast<std::int64_t>(meeting.beforeRead),
            std::bit_cast<std::int64_t>(meeting.beforeReadBack)};
        for (const std::int32_t v : scope)
            key.push_back(m_problem.kindOf(static_cast<std::size_t>(v)));
        key.push_back(meeting.producer >= 0 ? static_cast<std::int64_t>(placeOf(meeting.producer)) : -1);
        key.push_back(static_cast<std::int64_t>(meeting.output));
        if (joint) {
            for (const auto &[reader, slot] : meeting.readers) {
                key.push_back(static_cast<std::int64_t>(placeOf(reader)));
                key.push_back(static_cast<std::int64_t>(slot));
            }
        } else { // by all readers, whose layouts a share is worked out of
            key.push_back(static_cast<std::int64_t>(placeOf(meeting.readers[r].first)));
            key.push_back(static_cast<std::int64_t>(meeting.readers[r].second));
            for (const auto &[reader, slot] : meeting.readers) {
                key.push_back(m_problem.kindOf(static_cast<std::size_t>(reader)));
                key.push_back(static_cast<std::int64_t>(slot));
            }
        }
        const auto producerIn = [&](const Entry &chosen) {
            return meeting.producer < 0 ? nullptr : chosen[placeOf(meeting.producer)];
        };
        CostTable costs = table(std::move(key), scope, [&](const Entry &chosen) {
            if (joint) {
                Entry readers;
                for (const auto &[reader, slot] : meeting.readers)
                    readers.push_back(chosen[placeOf(reader)]);
                return m_problem.moves().seconds(meeting, readers, producerIn(chosen), passes);
            }
            const OperatorChoice &own = *chosen[placeOf(meeting.readers[r].first)];
            if (meeting.producer >= 0)
                return m_problem.moves().shareSeconds(meeting, r, own, producerIn(chosen), passes);
            if (r == 0)
                return 0.0;
            Meeting two = meeting;
            two.readers = {meeting.readers[r - 1], meeting.readers[r]};
            return m_problem.moves().seconds(
                two, {chosen[placeOf(meeting.readers[r - 1].first)], &own}, nullptr, passes);
        });
        if (std::any_of(costs->begin(), costs->end(), [](double cost) { return cost > 0; }))
            factors.push_back({std::move(scope), std::move(costs)});
    }
    return factors;
}

CostFactor MeetingTables::leastOver(const CostFactor &factor, const std::vector<bool> &inside)
{
    CostFactor least;
    std::vector<std::int32_t> sizes;
    std::vector<std::int64_t> key;
    for (const std::int32_t v : factor.variables) {
        const auto op = static_cast<std::size_t>(v);
        sizes.push_back(static_cast<std::int32_t>(m_problem.choiceCount(op)));
        key.push_back(inside[op] ? sizes.back() : -sizes.back());
        if (inside[op])
            least.variables.push_back(v);
    }
    if (least.variables.size() == factor.variables.size())
        return factor;
    CostTable &known = m_least[{factor.costs.get(), std::move(key)}];
    if (!known) {
        std::size_t entries = 1;
        std::vector<std::size_t> strides(sizes.size(), 0);
        for (std::size_t i = sizes.size(); i-- > 0;)
            if (inside[static_cast<std::size_t>(factor.variables[i])]) {
                strides[i] = entries;
                entries *= static_cast<std::size_t>(sizes[i]);
            }
        std::vector<double> costs(entries, std::numeric_limits<double>::infinity());
        std::vector<std::int32_t> at(sizes.size(), 0);
        std::size_t from = 0;
        do {
            std::size_t to = 0;
            for (std::size_t i = 0; i < at.size(); ++i)
                to += strides[i] * static_cast<std::size_t>(at[i]);
            costs[to] = std::min(costs[to], (*factor.costs)[from++]);
        } while (advance(at, sizes));
        known = std::make_shared<const std::vector<double>>(std::move(costs));
    }
    least.costs = known;
    return least;
}

} // namespace planloom
