#pragma once

#include <QtCore/QHash>
#include <QtGui/QPainter>
#include <QtGui/QPixmap>
#include <QtGui/QStaticText>

#include "widgets/timeline/pixel_strip.h"
#include "widgets/timeline/timeline_picture.h"

#include <optional>
#include <string>
#include <unordered_map>

namespace planloom {

/// What the painters of a timeline's parts share: where things are, and how texts and marks look.
class TimelineCanvasPainter
{
public:
    static constexpr double kLabelPixels = 26; ///< Spans narrower than this have no label.

    TimelineCanvasPainter(QPainter &painter, const Palette &palette, const TimelinePicture &picture);

protected:
    static QString translated(const char *text);

    bool visible(const TimelineRow &row) const;
    /// Device rows and headers in sight, those that scroll first; `sticky` ones after them.
    template<typename Visit> void eachVisible(const Visit &visit) const
    {
        const int sticky = m_sticky;
        const auto &rows = *m_picture.rows;
        const auto first = std::upper_bound(rows.begin(), rows.end(), m_picture.scroll + sticky,
            [](int y, const TimelineRow &row) { return y < row.y + row.height; });
        for (auto row = first; row != rows.end() && visible(*row); ++row) {
            if (!(row->pinned && sticky > 0) && m_picture.exposes(*row))
                visit(*row);
        }
    }
    template<typename Visit> void eachSticky(const Visit &visit) const
    {
        for (const TimelineRow &row : *m_picture.rows) {
            if (!row.pinned || m_sticky == 0)
                break;
            visit(row);
        }
    }
    QRect scrolledArea() const { return m_canvas.adjusted(0, m_sticky, 0, 0); }
    /// Visits the pieces of a lane's blocks in sight, in order of time, with where they begin and end in
    /// pixels. What lies within half a pixel of the one before is left out: thousands of blocks cost no more
    /// than there are pixels.
    template<typename Visit> void eachPiece(const DeviceLane &lane, const Visit &visit) const
    {
        constexpr double kHalf = 0.5;
        const double last = m_picture.axis.timeAt(m_canvas.width());
        double drawn = -1e9;
        for (std::size_t i = lane.firstPieceEndingAfter(m_picture.axis.timeAt(0));
             i < lane.pieces.size() && static_cast<double>(lane.pieces[i].begin) < last; ++i) {
            const BlockPiece &piece = lane.pieces[i];
            const double x1 = m_picture.axis.xOf(static_cast<double>(piece.end));
            if (x1 < drawn + kHalf) {
                i = std::max(i, lane.firstPieceEndingAfter(m_picture.axis.timeAt(drawn + kHalf)) - 1);
                continue;
            }
            drawn = x1;
            visit(piece, m_picture.axis.xOf(static_cast<double>(piece.begin)), x1);
        }
    }
    /// The queues that share the communication sub-lane of `row`: its own, and those of what a ghost would
    /// lead to, so that what is there and what would be there are on the same tracks.
    QueueSet queuesOf(const TimelineRow &row) const;
    /// The track of a queue in the picture; nothing if the sub-lane is hidden, or has no such queue.
    std::optional<TrackPlace> trackOf(const TimelineRow &row, QueueKind queue) const;

    double x(double nanoseconds) const { return m_canvas.left() + m_picture.axis.xOf(nanoseconds); }
    /// A rectangle from x0 to x1 in pixels of the canvas' own, at least one wide, cut to what is visible.
    QRectF box(double x0, double x1, int y, int height) const;
    QRectF boxOfTimes(double begin, double end, int y, int height) const;
    QColor faded(const QColor &colour) const;
    /// Where the spans of a queue are, compute among them.
    std::optional<TrackPlace> placeOf(const TimelineRow &row, QueueKind queue) const;
    /// A label over a communication fits into a track of this height.
    bool fitsLabel(int height) const;
    /// With a hairline to the next, where it is wide enough for that.
    static QRectF separated(const QRectF &rect, double width);
    /// In small letters in the middle of `rect`, cut where it does not fit; none where `rect` is narrower
    /// than `least`. The painter's font is the small one.
    void label(const QRectF &rect, const std::string &text, const QColor &colour, double least);
    void outline(const QRectF &rect, const QColor &colour);
    /// A stretch of small spans, which shows once the strip is finished.
    void fillStretch(const DrawRecord &record, int y, int height, const QColor &colour);
    /// `readableOn`, remembered.
    QColor readable(const QColor &background);
    /// A rounded flag with text at a time of the ruler.
    void flag(double at, const QString &text, const QColor &fill, bool leftwards);

    QPainter &m_painter;
    const Palette &m_palette;
    const TimelinePicture &m_picture;
    const TimelineScene &m_scene;
    QRect m_canvas;
    PixelStrip m_strip; ///< For what is too small to be painted one by one.
    int m_sticky = 0;
    QFont m_small;

private:
    /// A text that is laid out once: the same ones stand in every lane.
    struct ShapedText {
        QStaticText text{};
        QSize size{};
        qsizetype letters = 0;
    };
    const ShapedText &shaped(const QString &text);

    std::unordered_map<QString, ShapedText> m_shaped;
    QHash<QRgb, QColor> m_readable;
};

} // namespace planloom
