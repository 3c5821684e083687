#pragma once

#include "engine/base/units.h"
#include "widgets/dag/dag_outline.h"

#include <QtCore/QString>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

struct TimelineScene;

/// What lies between two operators along the data flow.
struct DagMeasure {
    std::vector<std::int32_t>
        path{}; ///< Units of a shortest path, the source first; empty if no data flows between them.
    bool backwards = false; ///< Data flows from the second to the first.
    bool planned = false; ///< There is a timeline, so that the next two say something.
    Bytes moved{}; ///< What devices put into communication for data on the path, in one step.
    double seconds = 0; ///< Of one step: for each operator and each communication on the path, of the device
                        ///< that is longest at it.
    std::int32_t hops() const { return path.empty() ? 0 : static_cast<std::int32_t>(path.size()) - 1; }
};

/// O(units + edges + spans of the path's operators).
/// @param scene  of a plan of the outline's graph; may be null
DagMeasure measurePath(const DagOutline &outline, const TimelineScene *scene,
    const std::vector<std::int32_t> &from, const std::vector<std::int32_t> &to,
    const std::stop_token &stop = {});

/// "3 hops · 12 MiB moved · 1.2 ms a step", or that no data flows between them.
QString textOf(const DagMeasure &measure);

} // namespace planloom
