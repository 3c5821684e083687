#pragma once

#include "engine/binding/bound_table.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A plan on its way from bound rows to decisions: rules of completion fill in `plan` one after the other,
/// within what `bound` allows, and report rows that cannot hold.
struct PlanDraft {
    const ConstraintTable &table;
    BoundTable bound{};
    Plan plan{};
    std::vector<Domain>
        domains{}; ///< Places in use, by number; 0: where operators without any placement run.
    /// By tensor: lanes made it, each of its own share, or it was made from such a tensor. Empty without
    /// lanes.
    std::vector<bool> ofLanes{};
    /// Of forward operators that one lane runs for all: the devices of every lane, one after the other.
    std::map<OperatorId, std::vector<DeviceId>> inEveryLane{};

    const Graph &graph() const { return bound.setting.graph(); }
    const SelectorIndex &index() const { return bound.setting.index(); }
    const BatchInfo &batch() const { return bound.setting.batch(); }
    OperatorDecision &decisionOf(OperatorId op) { return plan.decisions[static_cast<std::size_t>(op.index)]; }
    const OperatorBinding &bindingOf(OperatorId op) const { return bound.of(op); }
    /// The number of a place; a new one if it is not in use yet.
    std::int32_t domainNumber(const Domain &domain);

    /// Some input of `op` is `ofLanes`.
    bool readsOfLanes(const Operator &op) const
    {
        return !ofLanes.empty() && std::any_of(op.inputs.begin(), op.inputs.end(), [this](TensorId tensor) {
            return tensor && ofLanes[static_cast<std::size_t>(tensor.index)];
        });
    }
    void noteOfLanes(const Operator &op)
    {
        ofLanes.resize(graph().tensors.size(), false);
        for (const TensorId output : op.outputs)
            if (output)
                ofLanes[static_cast<std::size_t>(output.index)] = true;
    }

    bool failed() const { return bound.failed; }
    void fail(std::int32_t row, std::string message, std::string advice = {})
    {
        bound.fail(row, std::move(message), std::move(advice));
    }
};

/// A split that rows ask of an operator, and the first row that does.
struct ChosenSplit {
    Split split{};
    std::int32_t row = -1;
};

/// The splits of an operator that rows decide, over axes in mesh order, then those within a device: of a set
/// of several the preferred one that is legal with those before it. Sets that only exclude decide nothing.
std::vector<ChosenSplit> chosenSplits(const Operator &op, const OperatorBinding &binding);

/// Decides partition and devices of every forward operator within what rows allow. The seam for searches:
/// whoever has a better way than the default rule passes it to `completePlan`.
class Decider
{
public:
    virtual ~Decider() = default;
    /// Fills in partition, devices, rows and why of the forward operators' decisions, or fails rows of the
    /// draft.
    virtual void decide(PlanDraft &draft) const = 0;
};

} // namespace planloom
