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
    std::int32_t deviceClass = 0;
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

/// Finds the choices of operators, once for those that are alike (repeated layers): same kind, attributes,
/// annotation, types, neighbours to share a launch with, and rows.
class ChoiceFinder
{
public:
    explicit ChoiceFinder(const AxisSetting &setting);

    const OperatorChoices &of(OperatorId forward);

private:
    std::string keyOf(OperatorId forward) const;
    OperatorChoices find(OperatorId forward) const;
    bool add(OperatorId forward, const Split &split, OperatorChoices &choices) const;
    double kernelSeconds(OperatorId op, const PartViews &views) const;
    bool joins(OperatorId op) const;

    const AxisSetting m_setting;
    const Graph &m_graph;
    std::map<std::string, OperatorChoices> m_known{};
    std::vector<OperatorId> m_before{}; ///< By operator: the kernel that runs just before it.
};

} // namespace planloom
