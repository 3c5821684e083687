#pragma once

#include "widgets/dag/dag_scene.h"
#include "widgets/dag/visible_graph.h"

namespace planloom {

/// Moves the boxes that were moved by hand, with all that is in them; data flow to and from them follows, and
/// frames around them grow as needed. O(boxes + paths) if anything was moved.
void nudge(DagScene &scene, const VisibleGraph &visible, const DagState &state);

} // namespace planloom
