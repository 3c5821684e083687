#pragma once

#include "engine/analyse/statistics.h"
#include "engine/analyse/what_if.h"
#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// One line of a panel on the timeline.
struct PanelLine {
    int depth = 0; ///< 0 for headings.
    std::vector<std::string> cells{}; ///< What, and its figures; fewer than columns where there are none.
    std::int64_t span = -1; ///< Row of the spans it is about; -1 for none.
    friend bool operator==(const PanelLine &, const PanelLine &) = default;
};

/// A table in a panel.
struct PanelTable {
    std::string title{};
    std::vector<std::string> columns{};
    std::vector<PanelLine> lines{};
    bool folded = false; ///< What stands below headings is hidden until they are opened.
    /// Lines as text, cells with tabs between them.
    std::string text() const;
};

/// Busy, communicating and idle time of a box by device, kind, pass and micro-batch.
PanelTable statisticsTable(const TimelineScene &scene, const BoxStatistics &statistics);

/// What if spans took no time; `what` names the spans: "h.0.attn.c_attn".
PanelTable whatIfTable(const TimelineScene &scene, const WhatIf &answer, const std::string &what);

} // namespace planloom
