#pragma once

#include "widgets/design/workspace.h"

namespace planloom {

inline bool isPlanned(const Workspace &workspace)
{
    return workspace.lastGood() && !workspace.isStale() && !workspace.isPlanning();
}

} // namespace planloom
