#pragma once

#include "engine/lowering/cut_gradients.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// What operators that take turns add up as they do: outputs that no turn reads, where a device makes several
/// summands of one box. Of one coshard region, or ring, at a time.
class TurnSums
{
public:
    /// @param cut  of the work; both must outlive this
    TurnSums(LoweringWork &work, CutGradients &cut);

    /// Chooses the sums of operators. Those whose parts lie alike (the projections of queries, keys and
    /// values, in the backward pass) add to the same one. Only where devices make the same summands or none
    /// in common: sums that share some could not be added to a whole any more.
    void choose(const std::vector<OperatorId> &members);
    bool has(OperatorId id, std::size_t slot) const { return m_sumOf.contains({id, slot}); }
    /// Adds a part's output to its sum, if it has one.
    bool add(const TensorView &view, DeviceId device, std::int32_t block, OperatorId op, std::size_t slot,
        std::int32_t summand, std::int32_t buffer);
    /// Says where the sums are, once all turns are over.
    void handOut(std::int32_t block);

private:
    /// Summands by the place that they are made at.
    using Places = std::map<std::pair<DeviceId, IndexMask>, std::set<std::int32_t>>;
    struct Sum {
        TensorId tensor{};
        std::map<std::pair<DeviceId, IndexMask>, Holding> accumulators{}; ///< Buffer -1 until the first part.
        std::set<std::tuple<DeviceId, IndexMask, std::int32_t>> added{}; ///< Summands.
    };

    bool mayAdd(OperatorId id, std::size_t slot);
    Places placesOf(OperatorId id, std::size_t slot) const;
    static bool areSeveralApart(const Places &places);

    LoweringWork &m_work;
    CutGradients &m_cut;
    std::vector<Sum> m_sums{};
    std::map<std::pair<OperatorId, std::size_t>, std::size_t> m_sumOf{}; ///< By output.
};

} // namespace planloom
