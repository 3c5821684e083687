#pragma once

#include "app/cli/arguments.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/execution_plan.h"
#include "engine/plan/complete.h"

#include <filesystem>
#include <string>
#include <vector>

namespace planloom::cli {

/// A model as the options ask for it: forward graph, and what is planned (with its training step, if it has a
/// loss).
struct LoadedModel {
    Graph forward{};
    GraphSnapshot graph{};
};

Result<Graph> loadForward(const Arguments &arguments, const std::string &model);
Result<LoadedModel> loadModel(const Arguments &arguments, const std::string &model);

/// The cluster and number of devices that the options ask for.
struct Target {
    Cluster cluster{};
    std::int32_t devices = 1;
};
Result<Target> targetOf(const Arguments &arguments);

/// A model planned and lowered.
struct SolvedPlan {
    LoadedModel model{};
    Target target{};
    ConstraintTable table{};
    Plan plan{};
    ExecutionPlan execution{};
    double solveSeconds = 0;
    std::vector<std::string> warnings{}; ///< "row 4: binds to no operator": of rows that do not do what they say.
};
Result<SolvedPlan> solve(const Arguments &arguments, const std::string &model);

Result<std::string> readFile(const std::filesystem::path &path);
Result<void> writeFile(const std::filesystem::path &path, std::string_view bytes);

/// A plan file. @return NotFound, Io, or what is wrong in it with the file's name in `where`
Result<ExecutionPlan> readPlan(const std::string &path);

/// The cluster that a plan file was made for, unless `--cluster` asks for another.
/// @return InvalidInput if it has fewer devices than the plan
Result<Cluster> clusterOf(const Arguments &arguments, const ExecutionPlan &plan);

std::string bytesText(double bytes); ///< "1.50 GiB"
std::string secondsText(double seconds); ///< "1.234 ms"

/// Options that a plan file remembers, as the command line would give them.
Result<Arguments> rememberedArguments(const ExecutionPlan &plan);

} // namespace planloom::cli
