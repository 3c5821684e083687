#pragma once

#include "engine/runtime/run.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace planloom {

/// What a device did last.
struct RunDevice {
    std::int64_t issued = 0;
    std::int64_t finished = 0;
    std::int32_t step = 0;
    std::int32_t microBatch = 0;
    std::string kind{}; ///< "kernel", "all-reduce"
    std::string operatorName{};
    friend bool operator==(const RunDevice &, const RunDevice &) = default;
};

/// One event of a run (event_json.h), read. What an event of its type does not have is empty.
struct RunEvent {
    std::string type{}; ///< "live", "step" ...; empty for a line that was no event.
    std::string text{}; ///< Of warnings and stalls; a rank's digest; why the line was no event.
    double loss = 0; ///< Of a step; NaN where it has none.
    double seconds = 0;
    std::vector<std::pair<std::size_t, RunDevice>> devices{};
    std::size_t device = 0; ///< Of spans.
    std::vector<LiveSpan> spans{};
    MemoryCurve memory{};
    std::int64_t stepNanoseconds = 0;
    std::optional<CheckReport> check{};
    std::optional<Error> error{};
    std::vector<std::int64_t> peakBytes{};
    std::int64_t step = 0; ///< Of checkpoints: steps done. Of a step: its number in the run, from 0.
    std::string path{};
    RunOutcome outcome{}; ///< Of "done", as far as it is told.
};

/// @return InvalidInput for an event that cannot have been written by a runner
Result<RunEvent> runEventIn(const nlohmann::json &event);
/// The same of a line. Never fails: what cannot be read is an event without type. Reading may take long
/// (spans of a whole step): for a worker.
RunEvent readRunEvent(std::string_view line);

} // namespace planloom
