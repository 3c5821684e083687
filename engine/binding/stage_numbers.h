#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// A stage row against the data flow.
struct StageViolation {
    OperatorId op{};
    OperatorId producer{}; ///< Of a later stage.
    std::int32_t stage = 0;
    std::int32_t producerStage = 0;
};

/// Pipeline stages of all forward operators, by operator.
struct StageNumbers {
    std::vector<std::int32_t> stage{};
    std::vector<StageViolation> violations{}; ///< In the order of the operators.
};

/// Stages where rows give some: those numbers; an operator without one is in the last stage of its producers;
/// one that is computed from inputs and constants alone in the stage of the first of its consumers.
/// @param byRow  by operator: the stage a row gives it, or -1
/// O(operators + edges).
StageNumbers numberStages(const SelectorIndex &index, const std::vector<std::int32_t> &byRow);

/// By operator: forward, not named (`named`), without weights where `weightsCount`, and so are all operators
/// it depends on. Such operators belong to their consumers.
std::vector<bool> freeOperators(
    const SelectorIndex &index, const std::vector<bool> &named, bool weightsCount);
/// Puts free operators in the first of their consumers' stages; 0 without consumers.
void joinConsumers(
    const SelectorIndex &index, const std::vector<bool> &isFree, std::vector<std::int32_t> &stage);

} // namespace planloom
