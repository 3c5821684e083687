#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/framework_config.h"
#include "engine/measured/measured_rows.h"
#include "engine/measured/measured_run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// What the engine says of a measured run.
struct PredictedRun {
    double seconds = 0; ///< Of a step.
    std::vector<std::int64_t> peaks{}; ///< Bytes, by rank.
    bool fits = true; ///< Into the memory of its devices.
    RunLikeness like{}; ///< Of its plan.
    std::string
        insteadOf{}; ///< "fp8 in place of MXFP8": what could not be planned as it was run; empty: all could.
};

/// What a plan of `model` on `cluster` is like.
RunLikeness likenessOf(const OpenedModel &model, const Cluster &cluster);

/// `run` in the words of framework configs. @return NotSupported without a profile of its device
Result<FrameworkConfig> configOf(const MeasuredRun &run);

/// The plan of `run`, as a request: its model of the zoo, its devices with the framework that trained it, its
/// degrees, micro-batches, formats, recomputation and stages. No figure of it belongs to a row or a model.
/// @return NotSupported, InvalidInput or NotFound for what can't be said so (`where` names the column)
Result<PlanRequest> requestOf(const MeasuredRun &run);

/// Plans `run` as it was run, and simulates a step.
/// @return as `requestOf` and `makePlan`
Result<PredictedRun> predict(const MeasuredRun &run);

} // namespace planloom
