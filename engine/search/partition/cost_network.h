#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace planloom {

/// Costs of every choice of a few variables, the last variable fastest; infinity where a choice cannot be.
/// Factors that cost the same should share one: what was worked out for one is then known for the other.
using CostTable = std::shared_ptr<const std::vector<double>>;

/// What some variables cost together.
struct CostFactor {
    std::vector<std::int32_t> variables{}; ///< Distinct, ascending.
    CostTable costs{}; ///< Not null.
};

/// Variables with small domains, and what their choices cost: a weighted constraint network (Dechter, "Bucket
/// elimination", 1999).
struct CostNetwork {
    std::vector<std::int32_t> domains{}; ///< By variable: how many choices it has; at least 1.
    std::vector<CostFactor> factors{};
};

struct NetworkAnswer {
    std::vector<std::int32_t> choice{}; ///< By variable.
    double cost = 0; ///< Of `choice`, infinite if there is none that can be.
    double bound = 0; ///< No choice costs less. Equal to `cost` but for rounding where `exact`.
    bool exact = true;
    /// Entries of all tables on the way, equal ones once, if every domain were squared; those that would be
    /// larger than allowed count as large as allowed.
    double squaredEntries = 0;
};

/// In which order variables of networks were eliminated, by who meets whom and by domains: networks that
/// differ in costs alone need not look for it again. For one thread.
class EliminationOrders
{
public:
    /// @return the order for such a network; empty if there was none yet
    std::vector<std::int32_t> &of(const CostNetwork &network);

private:
    std::unordered_map<std::uint64_t, std::vector<std::int32_t>>
        m_orders{}; ///< By a hash: any order is right.
};

/// Additions of costs that some networks were solved with: what a search spends on them. They are counted,
/// not timed, so that what is found does not depend on how busy the machine is. For one thread.
class NetworkWork
{
public:
    void add(double additions) { m_spent += additions; }
    /// That the next network may take before its tables are kept small: a share of what is left, and never
    /// next to nothing.
    double mostOfNext() const;

private:
    double m_spent = 0;
};

struct NetworkOptions {
    std::size_t mostEntries = std::size_t{1} << 18; ///< Of one table on the way.
    EliminationOrders *orders = nullptr; ///< May be null.
    NetworkWork *work = nullptr; ///< Null: a network may take whatever it needs.
};

/// The cheapest choice of all variables: exact min-sum elimination where no table on the way is larger than
/// `mostEntries`. Where one would be, its factors are bounded apart from one another (mini-buckets), and what
/// was chosen is improved one variable at a time. So it is for the rest of a network that has taken all that
/// `work` leaves it, with tables much smaller than that.
///
/// The order of elimination is greedy by the size of the table made. Equal buckets (the same tables joined in
/// the same way: repeated layers) are worked out once.
/// O(variables x log + distinct buckets x mostEntries).
/// @return Cancelled if stopped
Result<NetworkAnswer> cheapestChoice(
    const CostNetwork &network, const NetworkOptions &options = {}, const std::stop_token &stop = {});

/// What `choice` costs.
double costOf(const CostNetwork &network, const std::vector<std::int32_t> &choice);

} // namespace planloom
