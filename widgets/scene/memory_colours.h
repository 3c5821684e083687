#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "widgets/common/palette.h"

namespace planloom {

/// The colour of a kind of memory, the same in every view.
QColor memoryColour(const Palette &palette, MemoryKind kind);

} // namespace planloom
