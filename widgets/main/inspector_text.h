#pragma once

#include <QtCore/QString>

#include "widgets/common/palette.h"
#include "widgets/design/plan_update.h"

#include <vector>

namespace planloom {

/// What the inspector says of the selected operators, as rich text: one operator in full, several summed up,
/// none the model as a whole.
/// @param update  the plan that is shown; may be null
/// @param isInFull  with rows that decide an operator as they read, however long; links "why:full" and
/// "why:short"
///   ask for the other
QString inspectorText(const Palette &palette, const OpenedModel &model, const PlanUpdate *update,
    const std::vector<OperatorId> &selected, bool isInFull = false);

} // namespace planloom
