#pragma once

#include "engine/search/partition/operator_choices.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// Where a second axis of devices that share operators' work may help: devices of one axis cut a dimension
/// evenly or not at all, so that eight of them cannot cut twelve heads. Four can, and two groups of four can
/// cut something else besides.
class NestedMeshes
{
public:
    /// @param setting  of whole operators: an axis of one device. O(operators).
    explicit NestedMeshes(const AxisSetting &setting);

    /// How many of `shards` devices the outer one of two axes may have: such that the inner axis has the most
    /// devices that divide a dimension which all of them do not, of operators that take a share of the
    /// model's time worth it. The batch does not count: replicas cut that. Those of the largest share first;
    /// few; empty where one axis is as good.
    std::vector<std::int32_t> outerShards(std::int32_t shards) const;

private:
    struct OperatorTime {
        std::vector<std::int64_t> sizes{}; ///< Of the dimensions that can be cut.
        double seconds = 0; ///< Of both passes of all operators that have these.
    };
    std::vector<OperatorTime> m_operators{};
    double m_seconds = 0; ///< Of all operators.
};

} // namespace planloom
