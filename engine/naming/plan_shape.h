#pragma once

#include "engine/naming/operator_cut.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Operators that a plan treats alike, and otherwise than most.
struct PlanException {
    std::vector<OperatorId> operators{}; ///< Forward ones, ascending. Not empty.
    OperatorCut cut{};
    bool hasProducts = false; ///< By weights.
    std::vector<DeviceId>
        devices{}; ///< Where they run, where that is not where their stage does; else empty.
};

/// How weights' updates are shared out, of some of them.
struct UpdateSharing {
    std::int32_t stage = 0; ///< Of ZeRO.
    std::int32_t parts = 1; ///< Over so many devices, those of other units included.
    std::int32_t weights = 0;
};

/// What a plan is, in numbers: read from its decisions alone.
struct PlanShape {
    bool trains = false; ///< It has a backward pass.
    std::int32_t devices = 0; ///< Of all units.
    std::int32_t idle = 0; ///< Of these, those that nothing runs on.
    std::int32_t units = 1;
    std::int32_t stages = 1;
    std::int32_t ranks = 1; ///< Groups of devices that stages have for themselves.
    std::int32_t lanes = 1;
    std::int32_t slices = 1;
    /// Of the products by weights that most are cut as; of experts' the degree of experts.
    OperatorCut main{};
    std::int32_t data = 1; ///< `main.data` of all units.
    bool columns = false;
    bool rows = false; ///< Of products by weights.
    bool sequenceParallel = false; ///< What lies between pairs of products is cut along the sequence.
    std::int32_t ring = 1; ///< Devices that keys and values go round.
    std::int32_t byHeads =
        1; ///< Attentions have the sequence whole and so many parts of the heads (Ulysses).
    bool zigzag = false;
    bool axial = false; ///< Attentions are cut along sequences that they do not compare.
    std::vector<UpdateSharing> sharing{}; ///< The most weights first; those of stage 0 among them.
    std::vector<OperatorId> recomputed{}; ///< Forward operators.
    std::vector<OperatorId> offloaded{}; ///< Forward operators.
    bool offloadsStates = false;
    std::vector<OperatorId> inTurns{};
    std::vector<std::int32_t> turns{}; ///< Of these, ascending.
    std::vector<OperatorId> spread{}; ///< On devices of several stages that others have for themselves.
    std::int32_t versions = 1; ///< The most versions that are kept of a weight.
    std::vector<PlanException> exceptions{}; ///< The most operators first.
    std::int32_t rowsOfOrder =
        0; ///< That order operators, blocks or communication, or bound what is in flight.
};

/// @param index  of the plan's graph
/// O(operators x their parts). Thread-safe.
PlanShape shapeOf(const Plan &plan, const SelectorIndex &index);

} // namespace planloom
