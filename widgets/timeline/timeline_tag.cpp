#include "widgets/timeline/timeline_tag.h"

#include "widgets/common/qt_text.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetrics>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

constexpr int kTagPadding = 8;
constexpr int kTagOffset = 18; ///< From the pointer.
constexpr int kIcon = 14;
constexpr int kWidestCharacters = 70;

QString translated(const char *text)
{
    return QCoreApplication::translate("planloom::TimelineView", text);
}

QColor colourOf(const Palette &palette, TimelineTag::State state)
{
    switch (state) {
    case TimelineTag::State::Legal:
        return palette.success;
    case TimelineTag::State::Yielding:
        return palette.warning;
    case TimelineTag::State::Refused:
        break;
    }
    return palette.error;
}

/// A tick in a circle, an exclamation mark in a triangle, a bar in a circle: told apart without their
/// colours.
void paintIcon(QPainter &painter, const Palette &palette, TimelineTag::State state, const QRectF &box)
{
    const QColor colour = colourOf(palette, state);
    painter.setRenderHint(QPainter::Antialiasing, true);
    QPainterPath shape;
    if (state == TimelineTag::State::Yielding) {
        shape.moveTo(box.center().x(), box.top());
        shape.lineTo(box.right(), box.bottom());
        shape.lineTo(box.left(), box.bottom());
        shape.closeSubpath();
    } else {
        shape.addEllipse(box);
    }
    painter.fillPath(shape, colour);
    painter.setPen(QPen(readableOn(colour), 1.8, Qt::SolidLine, Qt::RoundCap));
    const QPointF centre = box.center();
    const double r = box.width() / 4;
    if (state == TimelineTag::State::Legal) {
        painter.drawLine(centre + QPointF(-r, 0), centre + QPointF(-r / 3, r));
        painter.drawLine(centre + QPointF(-r / 3, r), centre + QPointF(r, -r));
    } else if (state == TimelineTag::State::Yielding) {
        painter.drawLine(centre + QPointF(0, -r * 0.6), centre + QPointF(0, r * 0.7));
        painter.drawPoint(centre + QPointF(0, r * 1.5));
    } else {
        painter.drawLine(centre + QPointF(-r, 0), centre + QPointF(r, 0));
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

} // namespace

bool isBlocked(const std::optional<Proposal> &proposal, const Preview *preview)
{
    return proposal && preview && preview->proposal.edit == proposal->edit && !proposal->refusal
        && moodOf(*preview) == GhostMood::Blocked;
}

TimelineTag tagFor(const TimelineGhost &ghost, const std::optional<Proposal> &proposal,
    const Preview *preview, const RowsInTheWay *way)
{
    TimelineTag tag;
    if (ghost.drag == TimelineDrag::None)
        return tag;
    if (ghost.atHome || !proposal) {
        tag.lines << translated("release here to leave it as it is");
        return tag;
    }
    if (proposal->refusal) {
        tag.state = TimelineTag::State::Refused;
        const QString what = toQString(proposal->words);
        const QString why = toQString(proposal->refusal->message);
        tag.lines << (what.isEmpty() ? translated("not possible: %1").arg(why)
                                     : translated("%1 is not possible: %2").arg(what, why));
        if (!proposal->refusal->advice.empty())
            tag.lines << toQString(proposal->refusal->advice);
    } else {
        // A preview of the step before this one says nothing of this one.
        const bool current = preview && preview->proposal.edit == proposal->edit;
        tag.lines << (current ? tagOf(*preview)
                              : toQString(proposal->words) + translated(" · step … · peak …"));
        if (proposal->edit.empty())
            tag.lines << translated("this changes nothing");
        if (!proposal->yieldingWords.empty()) {
            tag.state = TimelineTag::State::Yielding;
            for (const std::string &sentence : proposal->yieldingWords) {
                if (!tag.lines.front().contains(toQString(sentence)))
                    tag.lines << toQString(sentence);
            }
        }
        if (ghost.kept && ghost.kept->rows > 0)
            tag.lines << (ghost.kept->rows == 1
                    ? translated("one row more keeps what follows in its order")
                    : translated("%1 rows more keep what follows in its order").arg(ghost.kept->rows));
        else if (ghost.kept && ghost.kept->known)
            tag.lines << translated("what follows keeps its order: no row is needed for it");
        if (ghost.kept && ghost.kept->known && ghost.kept->lost > 0)
            tag.lines << translated("%1 of what follows go along: they need what runs later now")
                             .arg(ghost.kept->lost);
        if (isBlocked(proposal, preview))
            tag.state = TimelineTag::State::Yielding;
        if (preview && way) {
            const QString key = ghost.drag == TimelineDrag::Line ? translated("Alt+O") : translated("O");
            tag.lines << wordsOfRowsInTheWay(*preview, *way, key);
        }
    }
    if (ghost.drag == TimelineDrag::Spread && ghost.choices.size() > 1) {
        QStringList keys;
        for (std::size_t i = 0; i < ghost.choices.size() && i < 9; ++i) {
            const QString entry = QStringLiteral("%1 %2").arg(i + 1).arg(toQString(ghost.choices[i]));
            keys << (static_cast<std::int32_t>(i) == ghost.choice ? QStringLiteral("[%1]").arg(entry)
                                                                  : entry);
        }
        tag.lines << translated("by dimension, keys: %1").arg(keys.join(QStringLiteral("  ")));
    }
    return tag;
}

QRect paintTag(QPainter &painter, const Palette &palette, const TimelineTag &tag, const QFont &font,
    QPoint at, const QRect &bounds)
{
    if (tag.lines.isEmpty())
        return {};
    const QFontMetrics metrics(font);
    const int icon = metrics.height();
    const int room = bounds.width() - 2 * kTagPadding - icon - 8;
    const int widest = std::max(std::min(metrics.averageCharWidth() * kWidestCharacters, room), kIcon);
    const int flags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap | Qt::TextWrapAnywhere;
    int width = 0;
    int height = 2 * kTagPadding;
    std::vector<int> heights;
    for (const QString &line : tag.lines) {
        // At words where it can: TextWrapAnywhere alone would break inside of them.
        QRect needed = metrics.boundingRect(QRect(0, 0, widest, 10'000), flags & ~Qt::TextWrapAnywhere, line);
        if (needed.width() > widest)
            needed = metrics.boundingRect(QRect(0, 0, widest, 10'000), flags, line);
        width = std::max(width, std::min(needed.width() + 1, widest));
        heights.push_back(needed.height() + 2);
        height += heights.back();
    }
    QRect box(at + QPoint(kTagOffset, kTagOffset), QSize(width + 2 * kTagPadding + icon + 6, height));
    if (box.right() > bounds.right())
        box.moveRight(std::min(at.x() - kTagOffset / 2, bounds.right()));
    if (box.left() < bounds.left())
        box.moveLeft(bounds.left());
    if (box.bottom() > bounds.bottom())
        box.moveBottom(std::min(at.y() - kTagOffset / 2, bounds.bottom()));
    if (box.top() < bounds.top())
        box.moveTop(bounds.top());

    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    QPainterPath path;
    path.addRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    painter.fillPath(path, palette.surface);
    painter.setPen(QPen(colourOf(palette, tag.state), 1.5));
    painter.drawPath(path);
    painter.setRenderHint(QPainter::Antialiasing, false);
    paintIcon(painter, palette, tag.state,
        QRectF(box.left() + kTagPadding, box.top() + kTagPadding + 1, icon - 2, icon - 2));
    painter.setFont(font);
    int y = box.top() + kTagPadding;
    for (int i = 0; i < tag.lines.size(); ++i) {
        painter.setPen(i == 0 ? palette.text : palette.textMuted);
        const QRect place(
            box.left() + kTagPadding + icon + 6, y, width, heights[static_cast<std::size_t>(i)]);
        const QString &line = tag.lines[i];
        const bool anywhere =
            metrics.boundingRect(QRect(0, 0, widest, 10'000), flags & ~Qt::TextWrapAnywhere, line).width()
            > widest;
        painter.drawText(place, anywhere ? flags : flags & ~Qt::TextWrapAnywhere, line);
        y += heights[static_cast<std::size_t>(i)];
    }
    painter.restore();
    return box;
}

} // namespace planloom
