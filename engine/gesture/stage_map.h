#pragma once

#include "engine/gesture/gesture.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// The pipeline stages that stage rows give to forward operators, as completion numbers them (stages.h).
struct StageMap {
    std::vector<std::int32_t> byRow{}; ///< By operator; -1 where no row gives one. Empty without stage rows.
    std::vector<std::int32_t> stage{}; ///< By operator, forward ones; filled in by `numberStages`.
};

StageMap stageRows(const GestureContext &context);

/// A stage row against the data flow.
struct StageViolation {
    OperatorId op{};
    OperatorId producer{}; ///< Of a later stage.
    std::int32_t stage = 0;
    std::int32_t producerStage = 0;
};
/// Numbers the stages of all forward operators. @return the first row's stage that is against the data flow
std::optional<StageViolation> numberStages(const SelectorIndex &index, StageMap &map);

/// The stage whose operators run on (some of) these devices most, in the plan; invalid without a plan.
StageId stageOn(const GestureContext &context, const std::vector<DeviceId> &devices);

} // namespace planloom
