#pragma once

#include "engine/terminal/arguments.h"

#include "engine/base/result.h"
#include "engine/design/models/opened_model.h"

namespace planloom::cli {

/// Every option has an effect: one that can have none beside the other words of the command is refused.
/// @return InvalidInput naming it in `where`, with the reason
Result<void> checkEffects(const VerbSpec &verb, const Arguments &arguments);

/// The same of options that are about training, for a model that is there: without a loss nothing is trained.
Result<void> checkEffects(const Arguments &arguments, const OpenedModel &model);

/// True if `path` is called as plan files are, "plan.json" or "my.plan".
bool isPlanFile(const std::string &path);
/// True for the path of an operator file, false for the name of an operator.
bool isOperatorFile(const std::string &text);

} // namespace planloom::cli
