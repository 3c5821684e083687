#include "engine/search/partition/cost_network.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Sweeps over all variables that improve an answer which is not exact.
constexpr int kSweeps = 8;
/// Additions: for all networks of a search, about two seconds (models whose graphs are nearly trees take a
/// tenth of it); the share of what is left that one network may take; and what it may take at least.
constexpr double kMostWork = 1e9;
constexpr double kShareOfWork = 1.0 / 16;
constexpr double kLeastWork = 1e6;
constexpr double kFewEntries = 1 << 10; ///< Of a table, once a network has taken that.

/// Where the entries of a factor lie among those of the bucket's variables.
struct Reading {
    const std::vector<double> *costs = nullptr;
    std::vector<std::size_t> strides{}; ///< By variable of the bucket; 0 for those it does not have.
};

/// The least, over the choices of one variable, of what all readings say together, by entry of the others.
/// Row by row of the last of those, of which each reading adds all entries of a choice at once: what it takes
/// to find its place is then shared by them.
/// @param sizes  domains of the others
std::vector<double> joined(const std::vector<Reading> &readings, const std::vector<std::size_t> &sizes,
    std::size_t choices, std::size_t entries)
{
    const std::size_t outer = sizes.empty() ? 0 : sizes.size() - 1;
    const std::size_t length = sizes.empty() ? 1 : sizes.back();
    std::vector<double> result(entries);
    std::vector<std::size_t> at(outer, 0);
    std::vector<const double *> from;
    for (const Reading &reading : readings)
        from.push_back(reading.costs->data());
    std::vector<double> sums(length);
    for (std::size_t row = 0; row < entries; row += length) {
        double *const least = result.data() + row;
        for (std::size_t choice = 0; choice < choices; ++choice) {
            std::fill(sums.begin(), sums.end(), 0.0);
            for (std::size_t r = 0; r < readings.size(); ++r) {
                const double *const own = from[r] + choice * readings[r].strides[sizes.size()];
                const std::size_t stride = outer < sizes.size() ? readings[r].strides[outer] : 0;
                if (stride == 0) {
                    const double same = *own;
                    for (std::size_t i = 0; i < length; ++i)
                        sums[i] += same;
                } else {
                    for (std::size_t i = 0; i < length; ++i)
                        sums[i] += own[i * stride];
                }
            }
            for (std::size_t i = 0; i < length; ++i)
                least[i] = choice == 0 ? sums[i] : std::min(least[i], sums[i]);
        }
        for (std::size_t i = outer; i-- > 0;) {
            const bool carries = ++at[i] == sizes[i];
            for (std::size_t r = 0; r < readings.size(); ++r)
                from[r] += readings[r].strides[i];
            if (!carries)
                break;
            for (std::size_t r = 0; r < readings.size(); ++r)
                from[r] -= readings[r].strides[i] * sizes[i];
            at[i] = 0;
        }
    }
    return result;
}

/// Takes variables out of a network one by one.
class Elimination
{
public:
    Elimination(const CostNetwork &network, const NetworkOptions &options)
        : m_network(network)
        , m_options(options)
        , m_factors(network.factors)
        , m_alive(network.factors.size(), true)
        , m_factorsOf(network.domains.size())
    {
        if (options.work)
            m_mostWork = options.work->mostOfNext();
        for (std::size_t f = 0; f < m_factors.size(); ++f) {
            std::erase_if(m_factors[f].variables, [this](std::int32_t v) { return isDecided(v); });
            enter(f);
        }
    }

    Result<NetworkAnswer> run(const std::stop_token &stop);

private:
    using Variables = std::vector<std::int32_t>;
    Result<std::vector<std::int32_t>> eliminateGreedily(const std::stop_token &stop);
    struct Bucket {
        std::int32_t variable = -1;
        std::vector<std::size_t> factors{};
    };

    void enter(std::size_t factor)
    {
        if (m_factors[factor].variables.empty())
            m_constant += m_factors[factor].costs->front();
        for (const std::int32_t v : m_factors[factor].variables)
            m_factorsOf[static_cast<std::size_t>(v)].push_back(factor);
    }
    /// Has one choice, which takes no room in tables.
    bool isDecided(std::int32_t variable) const { return domain(variable) == 1; }
    double domain(std::int32_t variable) const
    {
        return m_network.domains[static_cast<std::size_t>(variable)];
    }
    std::vector<std::size_t> aliveFactors(std::int32_t variable);
    Variables scopeOf(const std::vector<std::size_t> &factors, std::int32_t without) const;
    double entriesOf(const Variables &scope) const;
    double weightOf(std::int32_t variable);
    void eliminate(std::int32_t variable);
    CostTable minimum(const std::vector<std::size_t> &factors, const Variables &scope, std::int32_t variable);
    std::vector<std::int32_t> choose() const;
    void improve(NetworkAnswer &answer) const;

    const CostNetwork &m_network;
    const NetworkOptions &m_options;
    std::vector<CostFactor> m_factors;
    std::vector<bool> m_alive;
    std::vector<std::vector<std::size_t>> m_factorsOf;
    std::vector<Bucket> m_buckets{};
    /// Buckets worked out: the domains of scope and variable, then by factor its table and where its
    /// variables stand among those.
    std::map<std::vector<std::int64_t>, CostTable> m_known{};
    double m_constant = 0;
    double m_squaredEntries = 0;
    double m_work = 0; ///< Additions so far,
    double m_mostWork = kNever; ///< and those after which tables are kept small.
    bool m_exact = true;
};

std::vector<std::size_t> Elimination::aliveFactors(std::int32_t variable)
{
    auto &all = m_factorsOf[static_cast<std::size_t>(variable)];
    std::erase_if(all, [this](std::size_t f) { return !m_alive[f]; });
    return all;
}

Elimination::Variables Elimination::scopeOf(
    const std::vector<std::size_t> &factors, std::int32_t without) const
{
    Variables scope;
    for (const std::size_t f : factors)
        scope.insert(scope.end(), m_factors[f].variables.begin(), m_factors[f].variables.end());
    std::sort(scope.begin(), scope.end());
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    std::erase(scope, without);
    return scope;
}

double Elimination::entriesOf(const Variables &scope) const
{
    double entries = 1;
    for (const std::int32_t v : scope)
        entries *= domain(v);
    return entries;
}

double Elimination::weightOf(std::int32_t variable)
{
    return entriesOf(scopeOf(aliveFactors(variable), variable));
}

CostTable Elimination::minimum(
    const std::vector<std::size_t> &factors, const Variables &scope, std::int32_t variable)
{
    std::vector<std::int64_t> key;
    for (const std::int32_t v : scope)
        key.push_back(m_network.domains[static_cast<std::size_t>(v)]);
    key.push_back(m_network.domains[static_cast<std::size_t>(variable)]);
    std::vector<Reading> readings;
    for (const std::size_t f : factors) {
        const CostFactor &factor = m_factors[f];
        key.push_back(-1);
        key.push_back(reinterpret_cast<std::intptr_t>(factor.costs.get()));
        Reading reading{factor.costs.get(), std::vector<std::size_t>(scope.size() + 1, 0)};
        std::size_t stride = 1;
        for (std::size_t i = factor.variables.size(); i-- > 0;) {
            const std::int32_t v = factor.variables[i];
            const std::size_t place = v == variable
                ? scope.size()
                : static_cast<std::size_t>(std::lower_bound(scope.begin(), scope.end(), v) - scope.begin());
            key.push_back(static_cast<std::int64_t>(place));
            reading.strides[place] = stride;
            stride *= static_cast<std::size_t>(m_network.domains[static_cast<std::size_t>(v)]);
        }
        readings.push_back(std::move(reading));
    }
    const auto [known, fresh] = m_known.try_emplace(std::move(key));
    if (!fresh)
        return known->second;
    const auto entries = static_cast<std::size_t>(entriesOf(scope));
    const auto choices = static_cast<std::size_t>(m_network.domains[static_cast<std::size_t>(variable)]);
    std::vector<std::size_t> sizes;
    for (const std::int32_t v : scope)
        sizes.push_back(static_cast<std::size_t>(m_network.domains[static_cast<std::size_t>(v)]));
    const double all = entriesOf(scope) * domain(variable);
    m_squaredEntries += std::min(all * all, static_cast<double>(m_options.mostEntries));
    m_work += all * static_cast<double>(readings.size());
    std::vector<double> result = joined(readings, sizes, choices, entries);
    known->second = std::make_shared<const std::vector<double>>(std::move(result));
    return known->second;
}

void Elimination::eliminate(std::int32_t variable)
{
    Bucket bucket{variable, aliveFactors(variable)};
    const auto allowed = static_cast<double>(m_options.mostEntries);
    const double most = m_work < m_mostWork ? allowed : std::min(allowed, kFewEntries);
    const auto join = [&](const std::vector<std::size_t> &group, Variables scope) {
        m_factors.push_back({scope, minimum(group, scope, variable)});
        m_alive.push_back(true);
        enter(m_factors.size() - 1);
    };
    // Groups of factors whose tables are small enough: one, where all together are.
    Variables together = scopeOf(bucket.factors, variable);
    if (entriesOf(together) * domain(variable) <= most) {
        join(bucket.factors, std::move(together));
    } else {
        m_exact = false;
        std::vector<std::vector<std::size_t>> groups;
        for (const std::size_t f : bucket.factors) {
            const auto fits = std::find_if(groups.begin(), groups.end(), [&](std::vector<std::size_t> group) {
                group.push_back(f);
                return entriesOf(scopeOf(group, -1)) <= most;
            });
            if (fits == groups.end())
                groups.push_back({f});
            else
                fits->push_back(f);
        }
        for (const std::vector<std::size_t> &group : groups)
            join(group, scopeOf(group, variable));
    }
    for (const std::size_t f : bucket.factors)
        m_alive[f] = false;
    m_buckets.push_back(std::move(bucket));
}

double valueAt(const CostNetwork &network, const CostFactor &factor, const std::vector<std::int32_t> &choice)
{
    std::size_t entry = 0;
    for (const std::int32_t v : factor.variables)
        entry = entry * static_cast<std::size_t>(network.domains[static_cast<std::size_t>(v)])
            + static_cast<std::size_t>(choice[static_cast<std::size_t>(v)]);
    return (*factor.costs)[entry];
}

std::vector<std::int32_t> Elimination::choose() const
{
    std::vector<std::int32_t> choice(m_network.domains.size(), 0);
    for (std::size_t b = m_buckets.size(); b-- > 0;) {
        const Bucket &bucket = m_buckets[b];
        std::int32_t &own = choice[static_cast<std::size_t>(bucket.variable)];
        std::pair<double, std::int32_t> best{kNever, 0};
        for (std::int32_t value = 0; value < m_network.domains[static_cast<std::size_t>(bucket.variable)];
             ++value) {
            own = value;
            double cost = 0;
            for (const std::size_t f : bucket.factors)
                cost += valueAt(m_network, m_factors[f], choice);
            best = std::min(best, {cost, value});
        }
        own = best.second;
    }
    return choice;
}

/// One variable at a time, while that helps.
void Elimination::improve(NetworkAnswer &answer) const
{
    std::vector<std::vector<std::size_t>> of(m_network.domains.size());
    for (std::size_t f = 0; f < m_network.factors.size(); ++f)
        for (const std::int32_t v : m_network.factors[f].variables)
            of[static_cast<std::size_t>(v)].push_back(f);
    bool better = true;
    for (int sweep = 0; sweep < kSweeps && better; ++sweep) {
        better = false;
        for (std::size_t v = 0; v < of.size(); ++v) {
            const std::int32_t before = answer.choice[v];
            std::pair<double, std::int32_t> best{kNever, before};
            double now = kNever;
            for (std::int32_t value = 0; value < m_network.domains[v]; ++value) {
                answer.choice[v] = value;
                double cost = 0;
                for (const std::size_t f : of[v])
                    cost += valueAt(m_network, m_network.factors[f], answer.choice);
                if (value == before)
                    now = cost;
                best = std::min(best, {cost, value});
            }
            const bool gains = best.first < now;
            answer.choice[v] = gains ? best.second : before;
            better = better || gains;
        }
    }
    answer.cost = costOf(m_network, answer.choice);
}

/// Eliminates all variables, the one whose table is smallest first.
/// @return in which order
Result<std::vector<std::int32_t>> Elimination::eliminateGreedily(const std::stop_token &stop)
{
    std::vector<std::int32_t> order;
    std::set<std::pair<double, std::int32_t>> queue;
    std::vector<double> weight(m_network.domains.size());
    for (std::size_t v = 0; v < weight.size(); ++v) {
        if (isDecided(static_cast<std::int32_t>(v)))
            continue;
        weight[v] = weightOf(static_cast<std::int32_t>(v));
        queue.emplace(weight[v], static_cast<std::int32_t>(v));
    }
    while (!queue.empty()) {
        if (stop.stop_requested())
            return cancelled();
        const std::int32_t variable = queue.begin()->second;
        order.push_back(variable);
        queue.erase(queue.begin());
        const Variables neighbours = scopeOf(aliveFactors(variable), variable);
        eliminate(variable);
        for (const std::int32_t other : neighbours) {
            const auto o = static_cast<std::size_t>(other);
            queue.erase({weight[o], other});
            weight[o] = weightOf(other);
            queue.emplace(weight[o], other);
        }
    }
    return order;
}

Result<NetworkAnswer> Elimination::run(const std::stop_token &stop)
{
    std::vector<std::int32_t> *known = m_options.orders ? &m_options.orders->of(m_network) : nullptr;
    if (known && !known->empty()) {
        for (const std::int32_t variable : *known) {
            if (stop.stop_requested())
                return cancelled();
            eliminate(variable);
        }
    } else {
        TRY(auto order, eliminateGreedily(stop));
        if (known)
            *known = std::move(order);
    }
    NetworkAnswer answer;
    answer.choice = choose();
    answer.cost = costOf(m_network, answer.choice);
    answer.bound = m_constant;
    answer.exact = m_exact;
    answer.squaredEntries = m_squaredEntries;
    if (m_options.work)
        m_options.work->add(m_work);
    if (!m_exact)
        improve(answer);
    return answer;
}

} // namespace

double NetworkWork::mostOfNext() const
{
    return std::max(kLeastWork, kShareOfWork * (kMostWork - m_spent));
}

std::vector<std::int32_t> &EliminationOrders::of(const CostNetwork &network)
{
    std::uint64_t hash = 14695981039346656037U; // FNV-1a, by number
    const auto add = [&hash](std::int32_t number) {
        hash = (hash ^ static_cast<std::uint32_t>(number)) * 1099511628211U;
    };
    for (const std::int32_t domain : network.domains)
        add(domain);
    for (const CostFactor &factor : network.factors) {
        add(-1);
        for (const std::int32_t variable : factor.variables)
            add(variable);
    }
    return m_orders[hash];
}

double costOf(const CostNetwork &network, const std::vector<std::int32_t> &choice)
{
    double cost = 0;
    for (const CostFactor &factor : network.factors)
        cost += valueAt(network, factor, choice);
    return cost;
}

Result<NetworkAnswer> cheapestChoice(
    const CostNetwork &network, const NetworkOptions &options, const std::stop_token &stop)
{
    return Elimination(network, options).run(stop);
}

} // namespace planloom
