#pragma once

#include "engine/terminal/arguments.h"

#include "engine/design/make_plan.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"

#include <map>
#include <string>

namespace planloom::cli {

/// A model as the options ask for it.
Result<ModelSource> modelSource(const Arguments &arguments, const std::string &model);

/// Opens a model whose plans are held against it: without its training step, if it has a loss, it would be
/// another one.
Result<ModelSnapshot> openToTrain(const ModelSource &source);

/// What the options ask to be planned, with the model opened. How far is left to the verb.
/// @param shapes  of arrays that it will be run with, by input: sizes that nothing else says are theirs
/// @param known  a model that was opened before, which is taken where it is the one asked for; may be null
Result<PlanRequest> planRequest(const Arguments &arguments, const std::string &model,
    const std::map<std::string, Shape> &shapes = {}, const ModelSnapshot &known = {});

/// A plan file. @return NotFound, Io, or what is wrong in it with the file's name in `where`
Result<ExecutionPlan> readPlan(const std::string &path);

/// A plan file with its model's values: a plan holds none. Where the model is not at hand, which is said, it
/// is the plan as it is.
Result<ExecutionPlan> planWithValues(const std::string &path);

/// The cluster that the command line names, with its framework. @param usual  where it names none
std::string clusterWord(const Arguments &arguments, const std::string &usual);

/// The cluster that a plan file was made for, unless `--cluster` asks for another.
/// @return InvalidInput if it has fewer devices than the plan
Result<Cluster> clusterOf(const Arguments &arguments, const ExecutionPlan &plan);

std::string secondsText(double seconds); ///< "1.234 ms"

} // namespace planloom::cli
