#pragma once

#include <QtCore/QString>

#include "widgets/main/status_pill.h"

#include <optional>

namespace planloom {

class Workspace;

/// What the pill says.
struct PillState {
    StatusPill::Mood mood = StatusPill::Mood::Quiet;
    QString text{};
};

/// The state of the workspace in the words of ux.md 4.5; `busyMilliseconds` is how long it has been at work. Nothing while
/// work is too short to be announced: then what was said stays.
std::optional<PillState> pillStateOf(const Workspace &workspace, qint64 busyMilliseconds);

/// One part of the status bar each; empty ones are not shown.
enum StatusPart { kModelPart, kRowsPart, kStepPart, kPeakPart, kBubblePart, kProofPart, kSavePart, kStatusParts };
QString statusText(const Workspace &workspace, StatusPart part);
/// What the part means, in a sentence or more; empty for none.
QString statusTipOf(const Workspace &workspace, StatusPart part);

} // namespace planloom
