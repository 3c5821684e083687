#pragma once

#include <QtCore/QPoint>
#include <QtCore/QRect>
#include <QtCore/QStringList>
#include <QtGui/QFont>

#include "widgets/common/palette.h"
#include "widgets/timeline/timeline_gestures.h"

#include <cstdint>

class QPainter;

namespace planloom {

/// The words that follow the pointer during a gesture.
struct TimelineTag {
    enum class State : std::uint8_t {
        Legal,
        Yielding, ///< Other rows would give way, or are in the way.
        Refused,
    };
    State state = State::Legal;
    QStringList lines{}; ///< Empty for no tag. The first says what, those below why and how else.
};

/// What to say of a gesture; `preview` and `way` may be null.
TimelineTag tagFor(const TimelineGhost &ghost, const std::optional<Proposal> &proposal,
    const Preview *preview, const RowsInTheWay *way = nullptr);
/// The preview is of what is proposed, and other rows keep it from holding.
bool isBlocked(const std::optional<Proposal> &proposal, const Preview *preview);

/// Draws the tag beside `at`, inside `bounds`: lines too long for it are wrapped, never cut.
/// @return where it was drawn
QRect paintTag(QPainter &painter, const Palette &palette, const TimelineTag &tag, const QFont &font,
    QPoint at, const QRect &bounds);

} // namespace planloom
