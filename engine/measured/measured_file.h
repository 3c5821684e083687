#pragma once

#include "engine/base/result.h"
#include "engine/measured/measured_run.h"

#include <filesystem>
#include <string>
#include <vector>

namespace planloom {

/// A file of training runs that somebody measured: what they trained, on what, and how long a step took.
///
///     {"source": "...", "cluster": "8 H100", "fixed": {"sequence": 4096, ...},
///      "models": {"8B": {"layers": 32, "hidden": 4096, ...}},
///      "columns": ["model", "devices", "step_seconds", ...], "rows": [["8B", 64, 1.2, ...], ...],
///      "failed_columns": [...], "failed": [...]}
///
/// Rows may be objects, too; failed are runs that did not run. A model without sizes in the file is the one
/// of that name in the zoo.
///
/// A file may be the trace of one rank that ran a micro-batch's forward pass beside another one's backward
/// pass (DualPipe's overlapped pair): its rows are phases, "attn(F)", of "layers" that are all alike, and
/// `whole.span_us` is what the pair took. That is one run.
///
///     {"source": "...", "cluster": "64 H800", "model": "DeepSeek-V3: ...", "fixed": {"sequence": 4096, ...},
///      "whole": {"span_us": 129012}, "columns": ["phase", ...], "rows": [["attn(F)", ...], ...]}
struct MeasuredFile {
    std::string name{};
    std::vector<MeasuredRun> runs{}; ///< In the file's order, those that failed at the end.
};

/// Reads `path`. Files of settings (rows with the name of a recipe, and no times) that stand beside it, or in
/// a folder "measured" there, complete its runs.
/// @return Io; InvalidInput with the place of what is not as said above. Columns that are unknown are kept.
Result<MeasuredFile> readMeasuredFile(const std::filesystem::path &path);

/// As above, of text alone. @param name  of the file
Result<MeasuredFile> readMeasured(std::string_view text, const std::string &name);

} // namespace planloom
