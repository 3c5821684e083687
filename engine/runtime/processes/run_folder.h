#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"

#include <cstdint>
#include <memory>
#include <string>

namespace planloom {

/// All that a supervised run needs; what a run folder holds.
struct RunRequest {
    ExecutionPlan plan{};
    RunOptions options{};
    std::shared_ptr<const ExecutionPlan>
        reference{}; ///< The unpartitioned model to compare with; may be null.
    std::int32_t ranks = 1; ///< Processes that hold the devices, as even parts of them as can be.
    double predictedStepSeconds = 0; ///< Of the simulator; 0 if unknown.
    std::string backend =
        "cpu"; ///< What runs it; who starts the run opens its devices (`RunOptions::devices`).
    std::string python{}; ///< For "torch": the interpreter that runs it,
    std::string pythonSaid{}; ///< and what it printed when it was probed; empty: it is probed again.
    std::string outcomeFolder{}; ///< Where to write the outcome's arrays, as <name>.npy (`dumpOf`); empty for
                                 ///< nowhere.
    bool spans = true; ///< Report spans and memory curves of the last step.
    bool liveSpans = false; ///< Report spans of every step while it runs.
    bool temporary = false; ///< Nobody needs the run folder once planloom-exec has read it.
};

/// Writes `request` as files that `planloom-exec run` reads: plan.json, options.json, and where needed
/// reference.json, inputs.npz and weights_<n>.npz (each below 1 GiB, so that any reader of .npz can open
/// them). Weights beside the model stay there; options.json says where. Missing folders are made, files of an
/// earlier run overwritten.
/// @return Io; NotSupported for an array of 4 GiB or more
Result<void> writeRunFolder(const std::string &folder, const RunRequest &request);

/// Reads the files back: paths of plan.json and options.json, which names the others relative to itself.
/// @return NotFound, Io; InvalidInput with file and field in `where`
Result<RunRequest> readRunFolder(const std::string &planPath, const std::string &optionsPath);

/// Removes what `writeRunFolder` wrote beside `optionsPath`, and the folder if nothing else is in it.
void removeRunFolder(const std::string &optionsPath);

/// Arrays of an outcome by the names of `planloom-cli run --dump`: "loss" (one element per step),
/// "out/<output>", "grad/<weight>", "weight/<weight>".
NamedArrays dumpOf(const RunOutcome &outcome);

} // namespace planloom
