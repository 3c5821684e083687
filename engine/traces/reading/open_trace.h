#pragma once

#include "engine/base/result.h"
#include "engine/base/user_folder.h"
#include "engine/traces/trace.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <vector>

namespace planloom {

/// How far the reading of a trace is.
struct TraceProgress {
    std::size_t files = 0; ///< Read,
    std::size_t allFiles = 0; ///< of so many.
};

struct TraceOptions {
    /// Where what was read is kept for the next time; empty: nowhere.
    std::filesystem::path cache =
        userCacheFolder().empty() ? std::filesystem::path{} : userCacheFolder() / "traces";
    std::int32_t threads = 2;
    std::function<void(const TraceProgress &)> onProgress{}; ///< From any thread, one at a time.
};

/// The files of a trace, a rank or more in each.
struct TraceFiles {
    std::vector<std::filesystem::path> named{}; ///< Must be traces.
    std::vector<std::filesystem::path> found{}; ///< In folders: what is none is remarked.
};

/// Takes files as they are, and of folders the files whose names end as those of traces do (.json, .json.gz,
/// .sqlite, .jsonl), by name; folders within are not entered.
/// @return NotFound, InvalidInput for a folder without any; ResourceLimit for more than 4,096 files
Result<TraceFiles> traceFilesOf(const std::vector<std::filesystem::path> &paths);

/// Whether a file's beginning is that of a trace: of torch.profiler, Nsight Systems, or a run's log.
bool isTraceFile(const std::filesystem::path &path);

/// Reads all files, each from the index that was kept of it where it has not changed since (path, size, time
/// of change), else whole. A rank's number is what its file says; else what stands in the file's name behind
/// "rank", or its last number; else the next free one. Of two files of one rank the first counts.
/// @return what is wrong with a named file, or with the first of those found if none is a trace; Cancelled
/// Waits for the disk: for a worker.
Result<Trace> openTrace(
    const TraceFiles &files, const TraceOptions &options = {}, const std::stop_token &stop = {});

/// A first picture in a fraction of the time: for each file stretches from its beginning to its end
/// (`sampleKineto`), or the whole where an index of it is kept. Ranks that are samples say so.
Result<Trace> sampleTrace(
    const TraceFiles &files, const TraceOptions &options = {}, const std::stop_token &stop = {});

} // namespace planloom
