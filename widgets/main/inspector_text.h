#pragma once

#include <QtCore/QString>

#include "widgets/common/palette.h"
#include "widgets/design/plan_update.h"

#include <vector>

namespace planloom {

/// What the inspector says of the selected operators, as rich text: one operator in full, several summed up,
/// none the model as a whole.
/// @param update  the plan that is shown; may be null
QString inspectorText(const Palette &palette, const OpenedModel &model, const PlanUpdate *update,
    const std::vector<OperatorId> &selected);

} // namespace planloom
