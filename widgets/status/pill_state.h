#pragma once

#include <QtCore/QString>

#include "widgets/status/status_pill.h"

#include <optional>

namespace planloom {

struct Graph;
struct Plan;
class Workspace;

/// What the pill says.
struct PillState {
    StatusPill::Mood mood = StatusPill::Mood::Quiet;
    QString text{};
};

/// The state of the workspace in the words of ux.md 4.5; `busyMilliseconds` is how long it has been at work.
/// Nothing while work is too short to be announced: then what was said stays.
std::optional<PillState> pillStateOf(const Workspace &workspace, qint64 busyMilliseconds);

/// What the canvases show while that is not the last word: the best plan of a search so far, or the plan of
/// the rows before; empty else, and while work is too short for it.
QString shownPlanText(const Workspace &workspace, qint64 busyMilliseconds);

/// One part of the status bar each; empty ones are not shown.
enum StatusPart {
    kModelPart,
    kRowsPart,
    kFreePart,
    kStepPart,
    kGapPart,
    kPeakPart,
    kBubblePart,
    kProofPart,
    kZoomPart,
    kSavePart,
    kStatusParts
};

/// What the status bar says that takes time to find out, or is not the workspace's.
struct StatusFacts {
    std::optional<std::int32_t> freeDecisions{}; ///< Forward operators that no row of their own holds.
    std::optional<double> bound{}; ///< Seconds no plan of this step can be below.
    double zoom = 0; ///< Of the canvas used last; 1 is one to one on the DAG, the whole step on the timeline.
                     ///< 0 if there is nothing.
};

QString statusText(const Workspace &workspace, const StatusFacts &facts, StatusPart part);
/// How good predictions are of measured runs like the plan, else the question; a link leads to all of them.
QString likeRunsText(const Workspace &workspace);
/// What the part means, in a sentence or more; empty for none.
QString statusTipOf(const Workspace &workspace, StatusPart part);

} // namespace planloom
