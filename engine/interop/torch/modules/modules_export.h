#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/interop/configs/write_config.h"
#include "engine/interop/torch/torch_export.h"

#include <cstdint>
#include <string>

namespace planloom {

struct ModulesOptions {
    /// Where the scripts find the user's module: "package.module:make_model", a function without arguments.
    /// Empty: they ask for it (`--module`).
    std::string module{};
    bool leaveOut = false; ///< Rows that can't be said are left out, and listed in the README.
};

/// A plan in the words of torch.distributed, on the user's own nn.Module.
struct ModulesExport {
    /// README.md, train.py, parallelize.py ...: what `writeTorchFolder` writes. Without files where rows
    /// can't be said and are not to be left out.
    TorchExport folder{};
    /// What can't be said (`unsaid`, by row), and what the scripts do in its place (`instead`). `isWhole`:
    /// what is said was planned again, and is the same plan. `text` is empty.
    WrittenConfig said{};
    bool isWritten() const { return !folder.files.empty(); }
};

/// Writes the rows of `request` as parallelize_module, fully_shard, PipelineStage, context_parallel and the
/// like: read off from what the plan decides of each operator, and planned again from what was read, so that
/// what is said to be said, is.
/// @param request  with its model, its rows (no gallery) and its target
/// @return InvalidInput where the rows are no plan, NotSupported for a model that is not trained
/// O(rows x operators). Waits for the disk: the model's file says the classes of its modules.
Result<ModulesExport> modulesExport(const PlanRequest &request, const ModulesOptions &options = {});

/// Why nothing was written, with the rows and the ways out, for people. `where` is "--leave-out".
Error unsaidError(const ModulesExport &made);

} // namespace planloom
