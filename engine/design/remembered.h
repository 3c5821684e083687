#pragma once

#include "engine/base/result.h"
#include "engine/design/models/opened_model.h"
#include "engine/design/models/target.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"

#include <map>
#include <string>

namespace planloom {

/// What a plan file remembers of how it was made (`ExecutionPlan::origin`): "model", "cluster", "rows" and
/// the model's options, "dim" as "batch=8,length=64". Paths of models are absolute, so that a plan file can
/// be read from anywhere.
std::map<std::string, std::string> originOf(
    const ModelSource &model, const std::string &cluster, const std::string &rows);

/// The same with what a plan file carries, so that it needs none of the files that it was made from but the
/// model: the cluster ("cluster.json") and the operator files ("operators-text.PATH").
std::map<std::string, std::string> originOf(
    const OpenedModel &model, const Cluster &cluster, const std::string &rows);

/// The model that `plan` was made for, with the operator files that it carries.
/// @return InvalidInput if it does not say which, or remembers options that are none; `where` "/origin/NAME"
Result<ModelSource> rememberedModel(const ExecutionPlan &plan);

/// True if the model's file is there, as a model of the zoo always is.
bool isAtHand(const ModelSource &model);

/// The text of the rows that `plan` was made of.
/// @return InvalidInput if it does not say; `where` "/origin/rows"
Result<std::string> rowsRemembered(const ExecutionPlan &plan);

/// "dgx-a100:8"; "cpu" with the plan's devices if it does not say.
std::string rememberedCluster(const ExecutionPlan &plan);

/// The cluster that `plan` was made for: as it carries it, or, in older files, by its name.
TargetChoice rememberedTarget(const ExecutionPlan &plan);

} // namespace planloom
