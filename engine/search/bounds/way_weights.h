#pragma once

#include "engine/search/bounds/step_way.h"

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// How often what is done for each weight lies on the mean of some ways, apart from what is done for all of a
/// stage; by tensor.
struct WeightCounts {
    explicit WeightCounts(std::size_t tensors);
    bool hasTraffic(TensorId weight) const;

    std::array<std::vector<double>, kReducedAs> reduced{}; ///< Reductions, as they are bounded,
    std::vector<double> shared; ///< those of weights that several stages read,
    std::vector<double> sharedUpdate; ///< what is updated behind them,
    std::vector<double> gathered; ///< and gathering as a step begins.
};

/// The weights that stages read, and what is done for them on ways through a step.
class WayWeights
{
public:
    explicit WayWeights(const BoundedStep &step);

    /// Those of a rank's weights that are complete when operator `StepWay::behind` has made its gradients, or
    /// later, and those that it shares with others' stages.
    void addReductions(const StepWay &way, double counts, WeightCounts &weights) const;
    /// Those that `reader` and the operators of its stage before it read.
    void addGathering(std::int32_t reader, double counts, WeightCounts &weights) const;

    /// What ways take for the weights that an operator reads, as it has them under a choice.
    /// @param stage  of that operator
    void addSeconds(std::size_t op, const OperatorChoice &choice, const StageCounts &stage,
        const WeightCounts &weights, double &seconds) const;

private:
    struct Read {
        std::int32_t reader = -1; ///< The first forward operator of the stage that reads it.
        TensorId weight{};
        bool isLast = false; ///< Its gradient is complete in the stage's last block.
    };
    struct Shared { ///< A weight that several stages read and whose gradient they add up.
        TensorId weight{};
        std::vector<std::int32_t> stages{}; ///< Ascending.
    };
    /// With ZeRO-2 and 3, what nothing that is computed hides: of a stage's weights those that are read first
    /// are gathered before a forward pass, and reduced behind a backward pass; those that are read last are
    /// gathered before the latter.
    struct AtEnds {
        bool first = false;
        bool last = false;
    };
    void findAtEnds();

    const BoundedStep &m_step;
    std::vector<std::vector<Read>> m_read; ///< By stage.
    std::vector<Shared> m_shared{};
    std::vector<std::int32_t> m_sharedBy; ///< By tensor: its number among those; -1.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> m_readersIn{}; ///< Slots, by stage, of those.
    std::vector<AtEnds> m_atEnds{}; ///< By tensor; empty where there is nothing of the kind.
};

} // namespace planloom
