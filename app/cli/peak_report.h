#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom::cli {

/// What the fullest device holds as it is fullest.
struct PeakReport {
    DeviceId device{};
    std::int64_t time = 0; ///< Nanoseconds from the start of the step.
    std::int64_t bytes = 0;
    std::array<std::int64_t, kMemoryKindCount> ofKinds{};
    struct Held { ///< Buffers of one tensor, and of one kind.
        std::string tensor{};
        MemoryKind kind{};
        std::int64_t bytes = 0;
        std::int32_t buffers = 0;
    };
    std::vector<Held> held{}; ///< The largest first.
};

/// @param timeline  with spans @return nothing held where the plan has no devices
PeakReport peakOf(const ExecutionPlan &plan, const Timeline &timeline);

/// {"device", "time_seconds", "bytes", "kinds": {"weight": ...}, "held": [{"tensor", "kind", "bytes",
/// "buffers"}, ...]}
nlohmann::json peakToJson(const PeakReport &peak);
/// The same to read, without the smaller ones.
void printPeak(const PeakReport &peak);

} // namespace planloom::cli
