#pragma once

#include "engine/search/time/pipeline_time.h"

#include <cstddef>
#include <vector>

namespace planloom {

/// What a stage holds at some moment, or at several in the mean.
struct MixedHeld {
    double microBatches = 0; ///< Whose `StageTime::kept` is there,
    double deferred = 0; ///< likewise `StageTime::deferred`,
    double gradients = 0; ///< and how much of the gradients of its weights.
    friend bool operator==(const MixedHeld &, const MixedHeld &) = default;
};

/// At which moments the ranks of a pipeline are likely to be fullest. A rank may hold as much while the first
/// micro-batches are kept as at the end, with all gradients: a partition that holds little at one of them
/// holds more at the other. What all of them must keep to is a limit of the mean, too, whatever its weights;
/// the weights that ask for most are between those at which one moment and the other is the fullest (the dual
/// of a largest of several). Moments come as they are found.
class HeldMoments
{
public:
    /// @param first  by stage: as each rank was fullest; stage s runs on rank s mod `ranks`
    HeldMoments(std::size_t ranks, const std::vector<StageHeld> &first);

    /// By stage: in the mean of its rank's moments.
    const std::vector<MixedHeld> &mixed() const { return m_mixed; }

    /// Moves the weights of a rank's moments to that at which it was fullest.
    /// @param heldBy  by stage, under the partition that holds least in the mean
    /// @return whether they were others before; not where they are known well enough
    bool shift(std::size_t rank, const std::vector<StageHeld> &heldBy);

private:
    using Moment = std::vector<MixedHeld>; ///< By stage of a rank.
    struct Rank {
        std::vector<Moment> known{}; ///< In `base`.
        Moment base{};
        Moment target{}; ///< The moment that is weighed against them; empty: none.
        double low = 0; ///< Between these is its weight.
        double high = 1;
    };
    Moment momentOf(std::size_t rank, const std::vector<StageHeld> &heldBy) const;
    Moment mixedOf(const Rank &rank) const;
    void put(std::size_t rank, const Moment &moment);

    std::vector<Rank> m_ranks;
    std::vector<MixedHeld> m_mixed;
};

} // namespace planloom
