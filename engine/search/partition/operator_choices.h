#pragma once

#include "engine/binding/bound_table.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/hardware/cost_model.h"
#include "engine/plan/plan.h"
#include "engine/search/partition/alike_operators.h"
#include "engine/search/partition/cost_network.h"
#include "engine/search/partition/halos.h"
#include "engine/search/partition/layout_moves.h"
#include "engine/search/partition/shard_layout.h"
#include "engine/table/model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What the choices of a plan's operators over one mesh axis, or two, are read against. What it points to
/// must live as long as it.
struct AxisSetting {
    const Model *model = nullptr;
    /// With the same rows and everything replicated: precisions, attention modes, how the batch is cut.
    const Plan *plan = nullptr;
    std::int32_t microBatches = 1; ///< Of a step; `plan` does not count.
    const StorageTypes *types = nullptr; ///< Of `plan`.
    const CostModel *costs = nullptr;
    const BoundTable *bound = nullptr; ///< With the mesh; null where no row speaks of operators.
    std::string axis{};
    std::int32_t parts = 1; ///< Devices of the axis.
    /// A second axis, outside of the first in the mesh; none where it has one device.
    std::string outerAxis{};
    std::int32_t outerParts = 1;
    std::int32_t batchCuts = 1; ///< Into how many pieces replicas and micro-batches cut the batch.
    std::string replicaAxis{}; ///< Over which replicas cut the batch; counts where rows bound parts.
    std::int32_t replicas = 1;
    std::int32_t deviceClass = 0;
    /// By operator: a number that forward operators share which cost the same and are cut alike where rows
    /// say the same of them; `alikeOperators`.
    std::shared_ptr<const std::vector<std::int32_t>> alike{};
    std::shared_ptr<const std::vector<bool>> joins{}; ///< `summandJoins`.
    NetworkWork *work = nullptr; ///< Of the search; may be null.
    /// By forward operator: those that rows place apart (placed_operators.h). They have one choice, which
    /// costs nothing and wants nothing: what they take is in estimates alone (aside_times.h). May be null.
    const std::vector<bool> *aside = nullptr;
    bool batchAlone =
        false; ///< Operators are cut along the batch where they can be, and have no other choice.

    bool isAside(std::size_t op) const { return aside && !aside->empty() && (*aside)[op]; }
    std::int32_t shards() const { return parts * outerParts; } ///< Devices of both axes.
    /// Into how many parts a tensor is cut that lies so.
    std::int32_t partsOf(ShardLayout layout) const
    {
        return (isCut(layout.inner) ? parts : 1) * (isCut(layout.outer) ? outerParts : 1);
    }
    std::int32_t devicesOver(ShardAxes axes) const
    {
        return (contains(axes, ShardAxes::Inner) ? parts : 1)
            * (contains(axes, ShardAxes::Outer) ? outerParts : 1);
    }
    /// The axes over which such a tensor is in summands.
    ShardAxes sumsOf(ShardLayout layout) const
    {
        return together(layout.inner == kSummands && parts > 1 ? ShardAxes::Inner : ShardAxes::None,
            layout.outer == kSummands && outerParts > 1 ? ShardAxes::Outer : ShardAxes::None);
    }
};

/// One way to partition a forward operator, with its backward operator, over the axes; of one micro-batch on
/// one device.
struct OperatorChoice {
    Split split{}; ///< Replicate, Dimension, or Value where that may help.
    Split outer{}; ///< Likewise over the outer axis, which the other is nested in; one part without that.
    std::vector<ShardLayout> inputs{}; ///< As the operator reads them, by slot.
    std::vector<ShardLayout> outputs{}; ///< As it makes them.
    std::vector<ShardLayout> inputGradients{}; ///< As the backward operator makes them, by input slot.
    std::vector<ShardLayout> outputGradients{}; ///< As it reads them, by output slot.
    double forward = 0; ///< Seconds of its kernel.
    double backward = 0; ///< Of the backward operator's,
    double weightGradients = 0; ///< and of that, what may wait for a pass of its own;
    double splitMore = 0; ///< both parts take so much longer: each is a launch.
    /// Bytes of what the backward operator reads again, by input slot and then by output slot.
    std::vector<std::int64_t> kept{};
    /// By input slot, where parts read other pieces than even ones, of one that lies in even ones; empty
    /// where none do.
    std::vector<HaloTime> halos{};
    std::vector<HaloTime> gradientHalos{}; ///< Until even pieces have its gradient.
};

/// An operator whose part on a device is cut into parts that take turns there (coshard).
struct OperatorInTurns {
    /// Seconds of its kernel in all turns, with adding up what they make summands of; no less than all at
    /// once.
    double forward = 0;
    double backward = 0; ///< Likewise.
    /// What one turn has of a device's part: of what the backward operator reads again (as
    /// `OperatorChoice::kept`), and of the gradients by input and output slot.
    std::vector<double> kept{};
    std::vector<double> inputGradients{};
    std::vector<double> outputGradients{};
};

/// All choices of an operator; shared by operators that are alike.
struct OperatorChoices {
    std::int32_t kind = -1; ///< Number of what is alike: equal for operators that share this.
    std::vector<OperatorChoice> choices{}; ///< The first is Replicate, unless rows forbid it. May be empty.
};

/// Finds the choices of operators, once for those that are alike and of which the same rows speak.
class ChoiceFinder
{
public:
    /// @param groups  of the setting's devices: who exchanges halos
    explicit ChoiceFinder(const AxisSetting &setting, const ShardGroups &groups = {});

    const OperatorChoices &of(OperatorId forward);
    /// @param choice  of `forward` @param turns  along a dimension of its annotation
    /// @return nothing where they do not divide what there is
    std::optional<OperatorInTurns> inTurns(
        OperatorId forward, const OperatorChoice &choice, const Split &turns) const;
    /// How an operator is cut apart from the axes: as rows say, and its batch by replicas. Needs the rows.
    std::vector<Split> otherSplits(OperatorId forward) const;

    /// A backward operator makes gradients of weights, or of what is made of weights alone, and no others.
    bool makesWeightsAlone(OperatorId backward) const;

private:
    using Key = std::pair<std::int32_t, std::vector<std::int32_t>>; ///< Of those alike; rows.
    Key keyOf(OperatorId forward) const;
    OperatorChoices find(OperatorId forward) const;
    /// Over the outer axis and the inner one; the first alone where there is no outer axis.
    bool add(OperatorId forward, const Split &split, const Split &outer, OperatorChoices &choices) const;
    /// What rows allow of splits over one axis of several devices; null: anything.
    const Allowed<Split> *allowedOver(OperatorId forward, const std::string &axis) const;
    std::vector<Split> splitsOver(OperatorId forward, const std::string &axis, std::int32_t parts) const;
    /// What parts that read through windows exchange.
    void addHalos(OperatorId forward, const Partition &partition, OperatorChoice &choice) const;
    struct Parts; ///< What the devices along an axis have of a tensor.
    Parts partsAlong(ShardLayout layout, const std::vector<PartViews> &views, bool outputs, std::size_t slot,
        std::int64_t size, DataType type) const;
    /// Seconds of adding up over `turns` what an operator makes summands of.
    double sumSeconds(OperatorId op, const PartViews &whole, const PartViews &part, std::int32_t turns) const;
    double kernelSeconds(OperatorId op, const PartViews &views, const Partition &partition,
        const std::vector<Range> &outer) const;
    /// @param share  the operator, with what it reads and makes at all
    double kernelSeconds(OperatorId op, const Operator &share, const PartViews &views,
        const Partition &partition, const std::vector<Range> &outer) const;
    /// Of a backward operator, what makes gradients of weights, or of what is made of weights alone: of a
    /// product, half of it (lowering, lower_backward.cpp); all where it makes no others.
    void addWeightGradients(OperatorId backward, const PartViews &views, const Partition &partition,
        const std::vector<Range> &outer, OperatorChoice &choice) const;

    const AxisSetting m_setting;
    const ShardGroups m_groups;
    const Graph &m_graph;
    const std::vector<bool> m_ofWeights; ///< By tensor (`gradientsOfWeights`).
    std::map<Key, OperatorChoices> m_known{};
    const LaunchNeighbours m_neighbours;
    const std::shared_ptr<const std::vector<std::int32_t>> m_alike;
    const std::shared_ptr<const std::vector<bool>> m_joins;
};

} // namespace planloom
