#pragma once

#include <QtCore/QObject>

#include "engine/gesture/gesture.h"
#include "widgets/design/plan_update.h"

#include <memory>

namespace planloom {

/// What the engine says of a proposal's rows before they are written: the ghost. Immutable.
struct Preview {
    Proposal proposal{};
    std::int32_t linesBefore = 0; ///< Of the table that the proposal changes.
    /// The would-be plan as far as it is known: null at first, then with its timeline. Its `rows` tell which
    /// rows could not hold.
    PlanUpdateSnapshot update{};
    PlanUpdateSnapshot baseline{}; ///< The plan on screen when the gesture began; may be null.
    bool final = false; ///< No more is coming.

    /// There is such a plan, and its figures are known; its spans may still follow.
    bool feasible() const { return update && update->isTimed(); }
};
using PreviewSnapshot = std::shared_ptr<const Preview>;

/// What a ghost says about being let go. Wherever it is shown as a colour, an icon and a word double it.
enum class GhostMood : std::uint8_t {
    Waiting, ///< The engine is at work.
    Holds, ///< Nothing is in the way.
    Blocked, ///< It may be let go, but other rows can't hold then: see `blockingLines`.
    Refused, ///< Letting go writes nothing.
};
GhostMood moodOf(const Preview &preview);
/// Rows, other than those the gesture writes, that keep its plan from holding: lines of the table as the
/// proposal leaves it, ascending.
std::vector<std::int32_t> blockingLines(const Preview &preview);

/// The tag at the pointer: "split k+ by 4 · 24 operators · step 43.9 → 41.2 ms · peak 71 → 63 GiB · adds 24 ×
/// all-reduce 32 MiB · feasible". Numbers not yet known are "…". One line of plain text.
QString tagOf(const Preview &preview);

/// What the canvases talk to while a person shapes a plan by hand. GUI thread only.
///
/// A canvas asks for the context, makes a `Proposal` from it (engine/gesture/gesture.h) for every step of the
/// gesture, shows it at once, and passes it to `preview`; the engine's answer follows by `previewChanged`
/// (newest wins). Releasing calls `commit`, giving up calls `endPreview`. Nothing is written before `commit`.
class GestureHost : public QObject
{
    Q_OBJECT
public:
    using QObject::QObject;

    /// The design as it is; null without a model. Changes with `contextChanged`.
    virtual GestureContextSnapshot gestureContext() const = 0;
    /// Asks what the proposal would lead to. Refused proposals only replace what is shown.
    virtual void preview(const Proposal &proposal) = 0;
    /// The ghost to draw; null when no gesture is under way.
    virtual PreviewSnapshot currentPreview() const = 0;
    virtual void endPreview() = 0;
    /// Writes the proposal's rows: one step of the history. Ends the preview. A refused or empty one writes
    /// nothing. Steps with the same `mergeKey` (not empty) within a second are one step: repeated presses of
    /// a key.
    /// @return true if rows were written
    virtual bool commit(const Proposal &proposal, const QString &mergeKey = {}) = 0;

Q_SIGNALS:
    void contextChanged();
    void previewChanged();
};

} // namespace planloom
