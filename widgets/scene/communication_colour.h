#pragma once

#include "engine/lowering/execution_plan.h"
#include "widgets/common/palette.h"

namespace planloom {

QColor communicationColour(const Palette &palette, InstructionKind kind);

} // namespace planloom
