#pragma once

#include "engine/binding/bound_table.h"
#include "engine/graph/partition.h"
#include "engine/graph/storage_types.h"
#include "engine/hardware/cost_model.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// How a tensor lies over the devices of one mesh axis: whole on each, in summands, or cut along a dimension.
using AxisLayout = std::int8_t;
constexpr AxisLayout kAbsent = -1;
constexpr AxisLayout kWhole = 0;
constexpr AxisLayout kSummands = 1;
constexpr AxisLayout cutAlong(std::size_t dimension)
{
    return static_cast<AxisLayout>(2 + dimension);
}

/// What the choices of a plan's operators over one mesh axis are read against. What it points to must live as
/// long as it.
struct AxisSetting {
    const Model *model = nullptr;
    /// With the same rows and everything replicated: precisions, attention modes, how the batch is cut.
    const Plan *plan = nullptr;
    const StorageTypes *types = nullptr; ///< Of `plan`.
    const CostModel *costs = nullptr;
    const BoundTable *bound = nullptr; ///< With the mesh; null where no row speaks of operators.
    std::string axis{};
    std::int32_t parts = 1; ///< Devices of the axis.
    std::int32_t batchCuts = 1; ///< Into how many pieces replicas and micro-batches cut the batch.
    std::string replicaAxis{}; ///< Over which replicas cut the batch; counts where rows bound parts.
    std::int32_t replicas = 1;
    std::int32_t deviceClass = 0;
    /// By operator: a number that forward operators share which cost the same and are cut alike where rows
    /// say the same of them; `alikeOperators`.
    std::shared_ptr<const std::vector<std::int32_t>> alike{};
    /// By forward operator: those that rows place apart (placed_operators.h). They have one choice, which
    /// costs nothing and wants nothing. May be null.
    const std::vector<bool> *aside = nullptr;
    bool batchAlone =
        false; ///< Operators are cut along the batch where they can be, and have no other choice.
};

/// One way to partition a forward operator, with its backward operator, over the axis; of one micro-batch on
/// one device.
struct OperatorChoice {
    Split split{}; ///< Replicate or Dimension.
    std::vector<AxisLayout> inputs{}; ///< As the operator reads them, by slot.
    std::vector<AxisLayout> outputs{}; ///< As it makes them.
    std::vector<AxisLayout> inputGradients{}; ///< As the backward operator makes them, by input slot.
    std::vector<AxisLayout> outputGradients{}; ///< As it reads them, by output slot.
    double forward = 0; ///< Seconds of its kernel.
    double backward = 0; ///< Of the backward operator's.
    /// Bytes of what the backward operator reads again, by input slot and then by output slot.
    std::vector<std::int64_t> kept{};
};

/// All choices of an operator; shared by operators that are alike.
struct OperatorChoices {
    std::int32_t kind = -1; ///< Number of what is alike: equal for operators that share this.
    std::vector<OperatorChoice> choices{}; ///< The first is Replicate, unless rows forbid it. May be empty.
};

/// Which operators share a launch with the one before.
class LaunchNeighbours
{
public:
    explicit LaunchNeighbours(const Graph &graph); ///< Must outlive it.
    /// The kernel that runs just before an operator; invalid for the first.
    OperatorId before(OperatorId op) const { return m_before[static_cast<std::size_t>(op.index)]; }
    bool joins(OperatorId op) const;

private:
    const Graph &m_graph;
    std::vector<OperatorId> m_before{};
};

/// Numbers forward operators that are alike (repeated layers): same kind, attributes, annotation, types, and
/// neighbours to share a launch with; -1 for others. O(operators).
/// @param types  of `plan`
std::vector<std::int32_t> alikeOperators(const Model &model, const Plan &plan, const StorageTypes &types);

/// Finds the choices of operators, once for those that are alike and of which the same rows speak.
class ChoiceFinder
{
public:
    explicit ChoiceFinder(const AxisSetting &setting);

    const OperatorChoices &of(OperatorId forward);
    /// How an operator is cut apart from the axis: as rows say, and its batch by replicas. Needs the rows.
    std::vector<Split> otherSplits(OperatorId forward) const;

private:
    using Key = std::pair<std::int32_t, std::vector<std::int32_t>>; ///< Of those alike; rows.
    Key keyOf(OperatorId forward) const;
    OperatorChoices find(OperatorId forward) const;
    bool isAside(OperatorId forward) const;
    bool add(OperatorId forward, const Split &split, OperatorChoices &choices) const;
    double kernelSeconds(OperatorId op, const PartViews &views) const;

    const AxisSetting m_setting;
    const Graph &m_graph;
    std::map<Key, OperatorChoices> m_known{};
    const LaunchNeighbours m_neighbours;
    const std::shared_ptr<const std::vector<std::int32_t>> m_alike;
};

} // namespace planloom
