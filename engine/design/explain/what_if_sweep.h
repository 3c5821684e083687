#pragma once

#include "engine/design/make_plan.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What is changed from point to point.
enum class SweepAxis : std::uint8_t {
    MicroBatches, ///< The rows as they are, with another number of micro-batches.
    Stages, ///< The gallery plan `3d` with another number of stages; replicas make up for the devices.
};

/// One plan that could be.
struct SweepChoice {
    SweepAxis axis = SweepAxis::MicroBatches;
    std::int32_t value = 1; ///< Micro-batches, or stages.
    bool now = false; ///< As it is.
    std::string gallery{}; ///< Of Stages other than now: "3d:dp=2,tp=2,pp=2,...".
    friend bool operator==(const SweepChoice &, const SweepChoice &) = default;
};

/// What it would come to.
struct SweepPoint {
    SweepChoice choice{};
    double stepSeconds = 0; ///< Simulated.
    double bubble = 0;
    Bytes peak{}; ///< Of the fullest device.
    bool fits = false; ///< Into its memory.
    std::optional<Error> problem{}; ///< Why there is no plan.
};

/// The choices beside a plan: micro-batches by powers of two up to the batch, stages that divide the devices
/// which do not share operators' work; with what there is now, ascending.
/// @param answer  with a plan. O(rows)
std::vector<SweepChoice> sweepChoices(const PlanAnswer &answer);

/// The request that leads to `choice`: its table is what the rows would be, unless it has a gallery plan.
/// @param request  of the plan that is changed, without a gallery plan
Result<PlanRequest> requestOf(PlanRequest request, const SweepChoice &choice);

/// Plans and simulates one choice. @return Cancelled if stopped; what keeps it from being a plan is a point
Result<SweepPoint> sweep(
    const PlanRequest &request, const SweepChoice &choice, const std::stop_token &stop = {});

} // namespace planloom
