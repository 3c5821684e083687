#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/verify/specification.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace planloom {

/// How Value splits divide what they read.
///
/// Part i of such a split may read any share of its input, as long as the shares of all parts are the value:
/// some of the input's summands, or a part of them that a ValueSelect left. The share of part i has to be the
/// same wherever part i reads the same box (its replicas, when it is run again): what they make counts as one
/// summand.
class ValueParts
{
public:
    /// Part `part` of input `slot` of `op` reads, over `box`, the `selected` part of `summands`.
    /// @return why that cannot be; empty if it can
    std::string note(const ExecutionPlan &plan, OperatorId op, std::size_t slot, const IndexMask &box,
        ValueMask part, const SummandSet &summands, ValueMask selected);

    /// Why what was noted does not add up to the values; empty if it does. Call it at the end.
    std::string problem(const ExecutionPlan &plan, const Specification &specification) const;

private:
    struct Share {
        SummandSet summands{};
        ValueMask selected{};
        friend bool operator==(const Share &, const Share &) = default;
    };
    using Shares = std::vector<std::optional<Share>>; ///< By part.

    static bool addUp(const Shares &shares, std::int32_t summandCount);

    std::map<std::tuple<OperatorId, std::size_t, IndexMask>, Shares> m_shares{};
};

} // namespace planloom
