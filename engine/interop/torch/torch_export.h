#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace planloom {

/// A plan as PyTorch code: what a folder holds that runs by itself under torchrun (README.md of
/// resources/torch).
struct TorchExport {
    std::map<std::string, std::string> files{}; ///< Texts by path in the folder.
    /// Of files of tensors, by path in the folder: constants by tensor, weights (if asked for) by name in
    /// files.
    std::map<std::string, std::map<std::string, TensorData>> tensors{};
    std::int32_t world = 0; ///< Processes.
    std::int32_t programs = 0; ///< Distinct ones.
};

struct TorchExportOptions {
    bool weights = false; ///< Also those that the model has.
    const ExecutionPlan *reference =
        nullptr; ///< The model's plan for one device: what check.py compares with; may be null.
};

/// Writes `plan` as code. Nothing is decided anew: every instruction stands in it once, in its order.
/// @return NotSupported naming what has no counterpart in PyTorch; InvalidInput for weights that are asked
/// for and not there
Result<TorchExport> exportTorch(const ExecutionPlan &plan, const TorchExportOptions &options = {});

/// Writes the folder, whole or not at all. One that is there is taken if it is empty, or was written by this
/// before.
/// @return InvalidInput for a folder with other files, naming one; Io
Result<void> writeTorchFolder(const TorchExport &made, const std::filesystem::path &folder);

} // namespace planloom
