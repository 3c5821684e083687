#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/processes/place.h"
#include "engine/runtime/run.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace planloom {

/// Events of a run are JSON objects, one a line, with "v":1 and a type "t": "hello", "load", "ready", "step",
/// "progress", "live", "spans", "check", "warn", "error", "stalled", "cancelling",
/// "finishing", "resumed", "checkpoint", "done". Readers ignore
/// fields they don't know. They are read by run_event.h.

/// An event of type `type` without more fields.
nlohmann::json event(std::string_view type);

/// code, message, advice, where.
nlohmann::json errorJson(const Error &error);
/// "error": as `errorJson`.
nlohmann::json errorEvent(const Error &error);
/// Inverse of both; what is missing is empty.
Error errorIn(const nlohmann::json &event);

/// "check": ok, worst {tensor, error}, first_difference.
nlohmann::json checkEvent(const CheckReport &report);
/// Its inverse. Throws what nlohmann::json throws for what is none.
CheckReport checkIn(const nlohmann::json &event);

/// "checkpoint": step, path, seconds.
nlohmann::json checkpointEvent(const SavedCheckpoint &saved);

/// "spans": columns of one device's spans (queue by name, nanoseconds from the start of the step) and its
/// memory curve.
nlohmann::json spansEvent(const Timeline &timeline, std::int32_t device);

/// "live": spans of one device that have just ended, as columns: device, step, segment, instruction,
/// micro_batch, start, duration.
nlohmann::json liveEvent(std::int32_t device, const std::vector<LiveSpan> &spans);

/// How far one device is: device, issued, finished and, once it has issued any, step, segment, instruction,
/// micro_batch, kind, operator.
nlohmann::json deviceState(
    const ExecutionPlan &plan, std::int32_t device, std::int64_t issued, std::int64_t finished);

/// Inverse of `nameOf` of a queue; nothing for unknown names.
std::optional<QueueKind> findQueue(std::string_view name);

/// "invalid-input", "cancelled", ...
const char *nameOf(ErrorCode code);

/// Inverse of `nameOf`; Internal for unknown names.
ErrorCode errorCodeNamed(std::string_view name);

} // namespace planloom
