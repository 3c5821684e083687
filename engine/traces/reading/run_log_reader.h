#pragma once

#include "engine/base/result.h"
#include "engine/traces/reading/trace_bytes.h"
#include "engine/traces/trace.h"

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Whether a text begins as the events of a run do (run_event.h): those of planloom-exec, and of `train.py
/// --log-file FILE --spans` in an exported PyTorch program.
bool isRunLog(std::string_view beginning);

constexpr int kSampleLines = 64; ///< More ranks than a screen shows at a time.

/// Reads when each instruction of a plan ran on each device, of the last step that the log has spans of.
/// Ranks are devices. Lines that are none are remarked.
///
/// @param isSample  stops behind the first `kSampleLines` lines of spans, and says so of the ranks where
/// there was more Safe for any bytes: memory is bounded by a multiple of their number.
/// @return InvalidInput if it has no spans; ResourceLimit for lines beyond 256 MiB; Cancelled; Io
Result<std::vector<RankTrace>> readRunLog(
    TraceBytes &bytes, const std::string &where, const std::stop_token &stop = {}, bool isSample = false);

} // namespace planloom
