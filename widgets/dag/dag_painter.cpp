#include "widgets/dag/dag_painter.h"

#include "engine/base/ids.h"
#include "widgets/dag/dag_painting.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

namespace planloom {

void DagPainting::run()
{
    m_painter.fillRect(
        m_paint.part.isNull() ? QRectF(0, 0, m_paint.width, m_paint.height) : m_paint.part, m_palette.canvas);
    collect();
    m_painter.setFont(font(DagMetrics::kTitleSize, true));
    for (const auto frame : m_frames)
        paintFrame(frame);
    paintPaths();
    if (m_scale < kCardsFrom) {
        paintMarksBehindBlocks();
        paintBlocks();
    } else {
        paintCards();
    }
    if (m_scale >= kPillsFrom)
        paintStubs();
    paintFrameTitles(); // over the nodes: far away, and where a title stays in sight, they share the
                        // place
    paintMarks();
}

QRectF DagPainting::mapped(const SceneRect &rect) const
{
    return {m_paint.camera.viewX(rect.x), m_paint.camera.viewY(rect.y), rect.width * m_scale,
        rect.height * m_scale};
}

QFont DagPainting::font(double sceneSize, bool bold, int least) const
{
    QFont result(m_paint.font);
    result.setPixelSize(std::max(least, static_cast<int>(std::floor(sceneSize * m_scale + 0.05))));
    result.setBold(bold);
    return result;
}

void DagPainting::collect()
{
    // A margin for what hangs over the boxes: cards behind stacks, badges, pills.
    const auto widened = [](const SceneRect &rect) {
        return SceneRect{rect.x - 12, rect.y - 24, rect.width + 24, rect.height + 48};
    };
    const SceneRect window = widened(m_window);
    const SceneRect canvas = widened(m_canvas); // titles make room for one another wherever they are painted
    for (std::size_t box = 1; box < m_scene.rects.size(); ++box) {
        const bool frame = m_visible.boxes[box].frame;
        if (m_scene.rects[box].intersects(frame ? canvas : window))
            (frame ? m_frames : m_nodes).push_back(static_cast<std::int32_t>(box));
    }
}

bool DagPainting::isStack(std::int32_t box) const
{
    return m_paint.picture.outline->at(m_visible.at(box).item).kind == OutlineItem::Kind::Stack;
}

bool DagPainting::isOperator(std::int32_t box) const
{
    return m_paint.picture.outline->at(m_visible.at(box).item).kind == OutlineItem::Kind::Operator;
}

QColor DagPainting::frameFill(std::int32_t depth) const
{
    const QColor &tint = m_palette.text;
    return mixed(m_palette.canvas, tint, std::min(0.028 * depth, 0.12));
}

void DagPainting::paintFrame(std::int32_t box)
{
    const QRectF rect = mapped(m_scene.rects[at(box)]);
    if (rect.width() < 2 || rect.height() < 2)
        return;
    const std::int32_t depth = m_visible.at(box).depth;
    const QColor fill = frameFill(depth);
    const QColor border = mixed(m_palette.canvas, m_palette.border, 0.55);
    const double radius = m_scale >= kRoundFrom ? 8 * m_scale : 0;
    m_painter.setRenderHint(QPainter::Antialiasing, radius > 0);
    m_painter.setPen(QPen(border, 0));
    if (isStack(box) && rect.width() > 30) {
        const double step = DagMetrics::kStackStep * std::min(1.0, std::max(m_scale, 0.4));
        for (int card = 2; card >= 1; --card) {
            m_painter.setBrush(frameFill(depth - 1));
            outline(rect.translated(card * step, card * step), radius);
        }
    }
    m_painter.setBrush(fill);
    outline(rect, radius);
}

void DagPainting::outline(const QRectF &rect, double radius)
{
    if (radius > 0)
        m_painter.drawRoundedRect(rect, radius, radius);
    else
        m_painter.drawRect(rect.toAlignedRect().adjusted(0, 0, -1, -1));
}

void DagPainting::paintFrameTitles()
{
    const int size =
        std::max(10, static_cast<int>(std::floor(DagMetrics::kTitleSize * std::min(m_scale, 1.6))));
    QFont titleFont(m_paint.font);
    titleFont.setPixelSize(size);
    titleFont.setBold(true);
    QFont noteFont(m_paint.font);
    noteFont.setPixelSize(std::max(9, size - 2));
    const QFontMetricsF metrics(titleFont);
    const QFontMetricsF noteMetrics(noteFont);
    const double line = metrics.height();
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    // One title a place. Of the frames that reach beyond the window's top the innermost is named, of
    // those that begin in it the outermost.
    std::vector<std::int32_t> order;
    const auto beginsAbove = [this](std::int32_t box) { return m_scene.rects[at(box)].y < m_canvas.y; };
    std::copy_if(m_frames.rbegin(), m_frames.rend(), std::back_inserter(order), beginsAbove);
    std::copy_if(m_frames.begin(), m_frames.end(), std::back_inserter(order), std::not_fn(beginsAbove));
    std::vector<QRectF> taken;
    for (const auto box : order) {
        const QRectF rect = mapped(m_scene.rects[at(box)]);
        if (rect.width() < 64 || rect.height() < 30)
            continue;
        if (m_scale >= kDetailFrom) {
            paintToggle(toggleRect(m_paint.picture, box), false, frameFill(m_visible.at(box).depth));
            paintCopies(box);
        }
        // The title stays in sight while its frame is.
        const double header = std::max(DagMetrics::kFrameHeader * m_scale, line + 4);
        const double toggle = m_scale >= kDetailFrom ? 20 * m_scale : 2;
        const double left = std::max(rect.left(), 0.0) + 5 * std::max(m_scale, 0.5) + toggle;
        const double top =
            std::clamp(rect.top(), std::min(0.0, rect.bottom() - header), rect.bottom() - header);
        const double room = std::min(rect.right(), m_paint.width) - left - 8;
        const QString &title = m_paint.labels.titles[at(box)];
        QString shown = title;
        double width = metrics.horizontalAdvance(shown);
        if (width > room) {
            shown = metrics.elidedText(title, Qt::ElideMiddle, room);
            width = metrics.horizontalAdvance(shown);
        }
        if ((shown.size() < 2 && shown != title) || (m_scale < kCardsFrom && width > 0.7 * rect.width()))
            continue;
        const QString &note = m_paint.labels.subtitles[at(box)];
        const double noteWidth = noteMetrics.horizontalAdvance(note);
        const bool withNote =
            m_scale >= kDetailFrom && width + noteWidth + 12 < room - (isStack(box) ? 70 : 0);
        const QRectF ground(left - 3, top + 2, width + 6 + (withNote ? noteWidth + 8 : 0), header - 4);
        if (std::any_of(
                taken.begin(), taken.end(), [&](const QRectF &other) { return other.intersects(ground); }))
            continue;
        taken.push_back(ground);
        m_painter.setPen(Qt::NoPen);
        m_painter.setBrush(frameFill(m_visible.at(box).depth));
        m_painter.drawRect(ground);
        m_painter.setFont(titleFont);
        m_painter.setPen(m_palette.text);
        const double base = top + header / 2 + metrics.capHeight() / 2;
        m_painter.drawText(QPointF(left, base), shown);
        if (withNote) {
            m_painter.setFont(noteFont);
            m_painter.setPen(m_palette.textMuted);
            m_painter.drawText(QPointF(left + width + 9, base), note);
        }
    }
}

void DagPainting::paintToggle(const SceneRect &place, bool plus, const QColor &ground)
{
    const QRectF rect = mapped(place);
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    m_painter.setPen(QPen(m_palette.border, 1));
    m_painter.setBrush(ground);
    m_painter.drawRoundedRect(rect, 2.5 * m_scale, 2.5 * m_scale);
    m_painter.setPen(QPen(m_palette.textMuted, std::max(1.0, 1.4 * m_scale)));
    const double arm = rect.width() * 0.26;
    const QPointF middle = rect.center();
    m_painter.drawLine(middle - QPointF(arm, 0), middle + QPointF(arm, 0));
    if (plus)
        m_painter.drawLine(middle - QPointF(0, arm), middle + QPointF(0, arm));
}

void DagPainting::paintCopies(std::int32_t box)
{
    const SceneRect place = copiesRect(m_paint.picture, box);
    if (place.width <= 0)
        return;
    const QRectF rect = mapped(place);
    const auto &item = m_paint.picture.outline->at(m_visible.at(box).item);
    const bool all = m_paint.picture.state.unstacked.contains(m_visible.at(box).item);
    m_painter.setPen(Qt::NoPen);
    m_painter.setBrush(mixed(m_palette.surface, m_palette.accent, 0.16));
    m_painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2);
    m_painter.setFont(font(DagMetrics::kSubtitleSize, true));
    m_painter.setPen(m_palette.text);
    m_painter.drawText(rect, Qt::AlignCenter,
        all ? QCoreApplication::translate("DagView", "one of %1")
                  .arg(static_cast<qsizetype>(item.children.size()))
            : QCoreApplication::translate("DagView", "show all %1")
                  .arg(static_cast<qsizetype>(item.children.size())));
}

void DagPainting::paintMarks()
{
    QColor veil = m_palette.canvas;
    veil.setAlphaF(0.72F);
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    for (const auto box : m_nodes) {
        if (at(box) < m_paint.marks.size() && (m_paint.marks[at(box)] & kMarkDimmed) != 0)
            m_painter.fillRect(
                mapped(m_scene.rects[at(box)]).adjusted(-3, -3 - 9 * std::min(1.0, m_scale), 3, 3), veil);
    }
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    m_painter.setBrush(Qt::NoBrush);
    const bool far = m_scale < kCardsFrom;
    if (far)
        paintFarFrameMarks();
    for (const auto *boxes : {&m_frames, &m_nodes}) {
        if (far)
            break; // those of nodes are behind their blocks
        for (const auto box : *boxes) {
            const std::uint8_t mark = at(box) < m_paint.marks.size() ? m_paint.marks[at(box)] : 0;
            const bool frame = m_visible.at(box).frame;
            if ((mark & (kMarkMatch | kMarkCurrent)) != 0 && !frame)
                ring(box, m_palette.match, (mark & kMarkCurrent) != 0 ? 3.5 : 2, Qt::SolidLine, 3.5);
            if ((mark & kMarkConflict) != 0)
                ring(box, m_palette.error, 2.6, Qt::SolidLine, 4);
            if ((mark & kMarkSelected) != 0)
                ring(box, m_palette.accent, frame ? 1.6 : 2.4, Qt::SolidLine, 1);
            else if ((mark & kMarkPartly) != 0 && !frame)
                ring(box, m_palette.accent, 1.6, Qt::DashLine, 1);
        }
    }
    if (m_paint.hovered > 0)
        ring(m_paint.hovered, m_palette.hover, 1.4, Qt::SolidLine, 2);
    if (m_paint.focused > 0 && m_paint.hasFocus)
        ring(m_paint.focused, m_palette.text, 1.2, Qt::DotLine, 4.5);
}

/// Thousands of frames may be marked at once where they are small: plain lines, and none around what is a
/// line itself.
void DagPainting::paintFarFrameMarks()
{
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    m_painter.setPen(QPen(m_palette.accent, 1));
    for (const auto box : m_frames) {
        if (at(box) >= m_paint.marks.size() || (m_paint.marks[at(box)] & kMarkSelected) == 0)
            continue;
        const QRect rect = mapped(m_scene.rects[at(box)]).toAlignedRect();
        if (rect.width() > 3 && rect.height() > 3)
            m_painter.drawRect(rect.adjusted(-1, -1, 0, 0));
    }
    m_painter.setRenderHint(QPainter::Antialiasing, true);
}

void DagPainting::ring(
    std::int32_t box, const QColor &colour, double width, Qt::PenStyle style, double distance)
{
    const QRectF rect = mapped(m_scene.rects[at(box)]);
    const double off = m_scale >= kCardsFrom ? distance : std::min(distance, 1.0);
    m_painter.setPen(QPen(colour, width, style));
    m_painter.setBrush(Qt::NoBrush);
    const double radius = m_scale >= kRoundFrom ? 4 * m_scale + off : 1;
    m_painter.drawRoundedRect(rect.adjusted(-off, -off, off, off), radius, radius);
}

SceneRect toggleRect(const DagPicture &picture, std::int32_t box)
{
    if (box <= 0 || picture.outline->at(picture.visible.at(box).item).kind == OutlineItem::Kind::Operator)
        return {};
    const auto &rect = picture.scene.rects[at(box)];
    constexpr double kSize = 12;
    if (picture.visible.at(box).frame)
        return {rect.x + 8, rect.y + (DagMetrics::kFrameHeader - kSize) / 2, kSize, kSize};
    return {rect.right() - kSize - 6, rect.y + (rect.height - kSize) / 2, kSize, kSize};
}

SceneRect copiesRect(const DagPicture &picture, std::int32_t box)
{
    if (box <= 0 || !picture.visible.at(box).frame
        || picture.outline->at(picture.visible.at(box).item).kind != OutlineItem::Kind::Stack)
        return {};
    const auto &rect = picture.scene.rects[at(box)];
    constexpr double kWidth = 74;
    constexpr double kHeight = 16;
    if (rect.width < kWidth + 100)
        return {};
    return {rect.right() - kWidth - 8, rect.y + (DagMetrics::kFrameHeader - kHeight) / 2, kWidth, kHeight};
}

void paintDag(QPainter &painter, const DagPaint &paint)
{
    DagPainting(painter, paint).run();
}

void paintOverview(QPainter &painter, const DagPicture &picture, const DagColours &colours,
    const Palette &palette, const DagCamera &camera)
{
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (std::size_t box = 1; box < picture.scene.rects.size(); ++box) {
        const auto &rect = picture.scene.rects[box];
        const QRectF place(camera.viewX(rect.x), camera.viewY(rect.y),
            std::max(1.0, rect.width * camera.scale), std::max(1.0, rect.height * camera.scale));
        const bool frame = picture.visible.boxes[box].frame;
        painter.fillRect(place,
            frame ? mixed(palette.surface, palette.border, 0.12 * picture.visible.boxes[box].depth)
                  : QColor::fromRgb(colours.boxes[box].main()));
    }
}

} // namespace planloom
