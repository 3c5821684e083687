#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "widgets/common/palette.h"

namespace planloom {

QColor communicationColour(const Palette &palette, InstructionKind kind);

} // namespace planloom
