#pragma once

#include "engine/base/result.h"
#include "engine/design/models/model_options.h"
#include "sessions/history.h"

#include <vector>

namespace planloom {

// A design's model options are named values of its state ("model/optimizer": "sgd"), so that choosing others
// is a step of the history. What a state does not name is as the session's model was opened
// (`SessionModel::options`): sessions without such values stay as they are.

/// The options that `state` asks for.
/// @param opened  as the session's model was opened
/// @return as `modelOptionsOf`
Result<ModelOptions> modelOptionsIn(const DesignState &state, const ModelOptions &opened);

/// Named values that take `state` from the options `before` to `after`; empty if these are equal. Sizes of
/// dimensions can be given, not taken away.
std::vector<ValueChange> changeOfOptions(
    const DesignState &state, const ModelOptions &before, const ModelOptions &after);

/// The value is one of the model's options.
bool isModelValue(const std::string &name);

} // namespace planloom
