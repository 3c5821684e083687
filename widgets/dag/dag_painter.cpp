#include "widgets/dag/dag_painter.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

namespace planloom {

namespace {

// Zooms (scale factors) from which things are drawn.
constexpr double kCardsFrom = 0.30; ///< Bodies with borders; below, blocks of colour.
constexpr double kRoundFrom = 0.7; ///< Round corners, both lines of text.
constexpr double kCurvesFrom = 0.22; ///< Smooth edges; below, straight lines.
constexpr double kArrowsFrom = 0.42;
constexpr double kPillsFrom = 0.55;
constexpr double kDetailFrom = 0.5; ///< Backward boxes, toggles.
constexpr double kBadgesFrom = 0.58;

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

class Painting
{
public:
    Painting(QPainter &painter, const DagPaint &paint)
        : m_painter(painter)
        , m_paint(paint)
        , m_visible(paint.picture.visible)
        , m_scene(paint.picture.scene)
        , m_palette(paint.palette)
        , m_scale(paint.camera.scale)
        , m_right(paint.picture.scene.flow == DagFlow::Right)
        , m_window(paint.camera.visible(paint.width, paint.height))
    {
    }

    void run()
    {
        m_painter.fillRect(QRectF(0, 0, m_paint.width, m_paint.height), m_palette.canvas);
        collect();
        m_painter.setFont(font(DagMetrics::kTitleSize, true));
        for (const auto frame : m_frames)
            paintFrame(frame);
        paintPaths();
        if (m_scale < kCardsFrom)
            paintBlocks();
        else
            paintCards();
        if (m_scale >= kPillsFrom)
            paintStubs();
        paintFrameTitles(); // over the nodes: far away, and where a title stays in sight, they share the
                            // place
        paintMarks();
    }

private:
    QRectF mapped(const SceneRect &rect) const
    {
        return {m_paint.camera.viewX(rect.x), m_paint.camera.viewY(rect.y), rect.width * m_scale,
            rect.height * m_scale};
    }

    QFont font(double sceneSize, bool bold, int least = 1) const
    {
        QFont result(m_paint.font);
        result.setPixelSize(std::max(least, static_cast<int>(std::floor(sceneSize * m_scale + 0.05))));
        result.setBold(bold);
        return result;
    }

    void collect()
    {
        // A margin for what hangs over the boxes: cards behind stacks, badges, pills.
        const SceneRect window{m_window.x - 12, m_window.y - 24, m_window.width + 24, m_window.height + 48};
        for (std::size_t box = 1; box < m_scene.rects.size(); ++box) {
            if (!m_scene.rects[box].intersects(window))
                continue;
            (m_visible.boxes[box].frame ? m_frames : m_nodes).push_back(static_cast<std::int32_t>(box));
        }
    }

    bool isStack(std::int32_t box) const
    {
        return m_paint.picture.outline->at(m_visible.at(box).item).kind == OutlineItem::Kind::Stack;
    }
    bool isOperator(std::int32_t box) const
    {
        return m_paint.picture.outline->at(m_visible.at(box).item).kind == OutlineItem::Kind::Operator;
    }

    QColor frameFill(std::int32_t depth) const
    {
        const QColor tint = m_palette.dark ? QColor(Qt::white) : m_palette.text;
        return mixed(m_palette.canvas, tint, std::min(0.028 * depth, 0.12));
    }

    void paintFrame(std::int32_t box)
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

    void outline(const QRectF &rect, double radius)
    {
        if (radius > 0)
            m_painter.drawRoundedRect(rect, radius, radius);
        else
            m_painter.drawRect(rect.toAlignedRect().adjusted(0, 0, -1, -1));
    }

    void paintFrameTitles()
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
        const auto beginsAbove = [this](std::int32_t box) { return m_scene.rects[at(box)].y < m_window.y; };
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
            if (std::any_of(taken.begin(), taken.end(),
                    [&](const QRectF &other) { return other.intersects(ground); }))
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

    void paintToggle(const SceneRect &place, bool plus, const QColor &ground)
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

    void paintCopies(std::int32_t box)
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

    // Edges.

    bool isStrong(const ScenePath &path, std::int32_t box) const
    {
        if (box < 0)
            return false;
        if (path.source == box)
            return true;
        if (path.target == box)
            return true;
        // On the way to `box` from outside its frame: the path enters a frame around it, or leaves one around
        // its source, and carries what one of its inputs carries.
        if (!std::binary_search(m_sources.begin(), m_sources.end(), path.source))
            return false;
        if (path.target < 0)
            return true;
        for (std::int32_t frame = m_visible.at(box).parent; frame > 0; frame = m_visible.at(frame).parent) {
            if (frame == path.target)
                return true;
        }
        return false;
    }

    void findSources(std::int32_t box)
    {
        m_sources.clear();
        if (box < 0 || m_visible.at(box).frame)
            return;
        for (const auto &edge : m_visible.edges) {
            if (edge.to == box)
                m_sources.push_back(edge.from); // edges ascend by source
        }
    }

    void paintPaths()
    {
        const std::int32_t lit = m_paint.hovered > 0 && !m_visible.at(m_paint.hovered).frame ? m_paint.hovered
            : m_paint.focused > 0 && !m_visible.at(m_paint.focused).frame                    ? m_paint.focused
                                                                                             : -1;
        findSources(lit);
        const bool curves = m_scale >= kCurvesFrom;
        const QColor plain = mixed(m_palette.canvas, m_palette.edge, m_scale >= kCardsFrom ? 0.85 : 0.55);
        std::vector<const ScenePath *> strong;
        QPainterPath smooth;
        QList<QLineF> lines;
        QPainterPath arrows;
        arrows.setFillRule(Qt::WindingFill);
        const double shortest = (m_scale < 0.12 ? 5 : 1.5) / m_scale;
        for (const auto &path : m_scene.paths) {
            if (!path.bounds.intersects(m_window)
                || std::max(path.bounds.width, path.bounds.height) < shortest)
                continue;
            if (lit >= 0 && isStrong(path, lit)) {
                strong.push_back(&path);
                continue;
            }
            if (curves)
                addCurve(smooth, path);
            else
                addLines(lines, path);
            if (m_scale >= kArrowsFrom)
                addArrow(arrows, path);
        }
        m_painter.setBrush(Qt::NoBrush);
        if (curves) {
            m_painter.setRenderHint(QPainter::Antialiasing, true);
            m_painter.setPen(QPen(plain, std::clamp(1.3 * m_scale, 0.9, 2.0)));
            m_painter.drawPath(smooth);
            m_painter.setPen(Qt::NoPen);
            m_painter.setBrush(plain);
            m_painter.drawPath(arrows);
        } else {
            m_painter.setRenderHint(QPainter::Antialiasing, false);
            m_painter.setPen(QPen(plain, 0));
            m_painter.drawLines(lines);
        }
        if (!strong.empty())
            paintStrong(strong);
    }

    void paintStrong(const std::vector<const ScenePath *> &strong)
    {
        QPainterPath smooth;
        QPainterPath arrows;
        arrows.setFillRule(Qt::WindingFill);
        for (const auto *path : strong) {
            addCurve(smooth, *path);
            if (m_scale >= kArrowsFrom)
                addArrow(arrows, *path);
        }
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(m_palette.edgeStrong, std::clamp(2.2 * m_scale, 1.4, 3.0)));
        m_painter.drawPath(smooth);
        m_painter.setPen(Qt::NoPen);
        m_painter.setBrush(m_palette.edgeStrong);
        m_painter.drawPath(arrows);
    }

    QPointF point(std::uint32_t index) const
    {
        const auto &p = m_scene.points[index];
        return {m_paint.camera.viewX(p.x), m_paint.camera.viewY(p.y)};
    }

    void addCurve(QPainterPath &out, const ScenePath &path) const
    {
        out.moveTo(point(path.begin));
        for (std::uint32_t i = path.begin + 1; i + 1 < path.end; i += 2) {
            const QPointF from = point(i);
            const QPointF to = point(i + 1);
            out.lineTo(from);
            const bool straight = std::abs(m_right ? from.y() - to.y() : from.x() - to.x()) < 1;
            if (straight) {
                out.lineTo(to);
            } else {
                const QPointF bend =
                    m_right ? QPointF((to.x() - from.x()) * 0.5, 0) : QPointF(0, (to.y() - from.y()) * 0.5);
                out.cubicTo(from + bend, to - bend, to);
            }
        }
        out.lineTo(point(path.end - 1));
    }

    void addLines(QList<QLineF> &out, const ScenePath &path) const
    {
        // Straight runs are one line: most edges are a single rank long.
        QPointF from = point(path.begin);
        for (std::uint32_t i = path.begin + 1; i < path.end; ++i) {
            const QPointF to = point(i);
            const auto across = [this](QPointF p) { return m_right ? p.y() : p.x(); };
            if (i + 1 < path.end && std::abs(across(to) - across(from)) < 0.5
                && std::abs(across(point(i + 1)) - across(to)) < 0.5)
                continue;
            if (std::abs(to.x() - from.x()) + std::abs(to.y() - from.y()) >= 1)
                out.append(QLineF(from, to));
            from = to;
        }
    }

    void addArrow(QPainterPath &out, const ScenePath &path) const
    {
        if (path.target < 0 || m_visible.at(path.target).frame)
            return;
        const QPointF tip = point(path.end - 1);
        const double size = 4.5 * std::min(m_scale, 1.5);
        out.moveTo(tip);
        const QPointF back = m_right ? QPointF(-size * 1.5, 0) : QPointF(0, -size * 1.5);
        const QPointF side = m_right ? QPointF(0, size * 0.8) : QPointF(size * 0.8, 0);
        out.lineTo(tip + back - side);
        out.lineTo(tip + back + side);
        out.closeSubpath();
    }

    // Nodes.

    void paintBlocks()
    {
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        m_painter.setPen(Qt::NoPen);
        for (const auto box : m_nodes) {
            const QRectF rect = mapped(m_scene.rects[at(box)]);
            const auto &shares = m_paint.colours.boxes[at(box)].shares;
            const QRect pixels(static_cast<int>(rect.x()), static_cast<int>(rect.y()),
                std::max(1, static_cast<int>(rect.width())), std::max(1, static_cast<int>(rect.height())));
            if (shares.size() == 1 || pixels.width() < 6) {
                m_painter.fillRect(pixels, QColor::fromRgb(shares.front().colour));
                continue;
            }
            double x = pixels.x();
            for (const auto &share : shares) {
                const double next = x + static_cast<double>(share.share) * pixels.width();
                m_painter.fillRect(
                    QRectF(x, pixels.y(), next - x, pixels.height()), QColor::fromRgb(share.colour));
                x = next;
            }
        }
    }

    void paintCards()
    {
        const bool round = m_scale >= kRoundFrom;
        const bool detail = m_scale >= kDetailFrom;
        m_painter.setRenderHint(QPainter::Antialiasing, round);
        for (const auto box : m_nodes)
            paintCard(box, round, detail);
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        if (round)
            paintTexts();
        else
            paintShortTitles();
        if (detail) {
            for (const auto box : m_nodes) {
                if (!isOperator(box))
                    paintToggle(toggleRect(m_paint.picture, box), true, m_palette.surface);
            }
            if (m_scale >= kBadgesFrom)
                paintBadges();
        }
    }

    /// A node's own card: what is left of its box beside the backward operator's.
    SceneRect cardRect(std::int32_t box) const
    {
        SceneRect rect = m_scene.rects[at(box)];
        const auto &text = m_scene.texts[at(box)];
        if ((text.twin || text.step) && m_scale >= kDetailFrom)
            rect.width -= DagMetrics::kTwinWidth;
        return rect;
    }

    void paintCard(std::int32_t box, bool round, bool detail)
    {
        const SceneRect card = cardRect(box);
        const QRectF rect = mapped(card);
        const auto &colours = m_paint.colours.boxes[at(box)];
        const QColor main = QColor::fromRgb(colours.main());
        const bool op = isOperator(box);
        const QColor border = mixed(m_palette.border, main, 0.35);
        // A scale is read from the whole card, categories from its bar.
        const double tint = m_paint.colours.scale ? 0.6 : m_palette.dark ? 0.16 : 0.10;
        const QColor fill = mixed(op ? m_palette.surface : m_palette.surfaceRaised, main, tint);
        const double radius = round ? 4 * m_scale : 0;
        m_painter.setPen(QPen(border, round ? 1 : 0));
        if (!op && isStack(box)) {
            const double step = DagMetrics::kStackStep * m_scale * 0.8;
            m_painter.setBrush(mixed(m_palette.canvas, main, 0.12));
            for (int behind = 2; behind >= 1; --behind)
                outline(rect.translated(behind * step, behind * step), radius);
        }
        m_painter.setBrush(fill);
        if (round)
            m_painter.drawRoundedRect(rect, radius, radius);
        else
            m_painter.drawRect(rect);
        paintBar(rect, colours, radius);
        if (!op && round) { // a second line inside the border says: there is more within
            m_painter.setBrush(Qt::NoBrush);
            m_painter.setPen(QPen(mixed(fill, border, 0.45), 1));
            m_painter.drawRoundedRect(rect.adjusted(2.5, 2.5, -2.5, -2.5), radius * 0.7, radius * 0.7);
        }
        if (detail && op)
            paintTwin(box, card, main, radius);
    }

    void paintBar(const QRectF &rect, const BoxColours &colours, double radius)
    {
        const double width = std::max(2.0, 5 * m_scale);
        double y = rect.y() + std::min(radius, 2.0);
        const double height = rect.height() - 2 * std::min(radius, 2.0);
        m_painter.setPen(Qt::NoPen);
        for (const auto &share : colours.shares) {
            const double next = y + static_cast<double>(share.share) * height;
            m_painter.fillRect(QRectF(rect.x() + 0.5, y, width, next - y), QColor::fromRgb(share.colour));
            y = next;
        }
    }

    void paintTwin(std::int32_t box, const SceneRect &card, const QColor &main, double radius)
    {
        const auto &text = m_scene.texts[at(box)];
        if (!text.twin && !text.step)
            return;
        const double gap = 4;
        SceneRect place{card.right() + gap, card.y, DagMetrics::kTwinWidth - gap, (card.height - gap) / 2};
        const bool both = text.twin && text.step;
        if (!both)
            place.y = card.y + (card.height - place.height) / 2;
        m_painter.setFont(font(DagMetrics::kSubtitleSize, false));
        const auto draw = [&](const QString &sign, Direction direction) {
            const QRectF rect = mapped(place);
            const QColor tint = mixed(main, directionColour(m_palette, direction), 0.5);
            m_painter.setPen(QPen(mixed(m_palette.border, tint, 0.4), m_scale >= kRoundFrom ? 1 : 0));
            m_painter.drawLine(QPointF(rect.left() - gap * m_scale, rect.center().y()),
                QPointF(rect.left(), rect.center().y()));
            m_painter.setBrush(mixed(m_palette.surface, tint, m_palette.dark ? 0.22 : 0.16));
            if (radius > 0)
                m_painter.drawRoundedRect(rect, radius * 0.7, radius * 0.7);
            else
                m_painter.drawRect(rect);
            if (m_scale >= kRoundFrom) {
                m_painter.setPen(m_palette.text);
                m_painter.drawText(rect, Qt::AlignCenter, sign);
            }
        };
        if (text.twin) {
            draw(QStringLiteral("∇"), Direction::Backward);
            place.y += place.height + gap;
        }
        if (text.step)
            draw(QStringLiteral("↻"), Direction::Optimizer);
    }

    void paintTexts()
    {
        const QFont titleFont = font(DagMetrics::kTitleSize, true);
        m_painter.setFont(titleFont);
        m_painter.setPen(m_palette.text);
        const double left = DagMetrics::kTextLeft * m_scale;
        for (const auto box : m_nodes) {
            const auto &rect = m_scene.rects[at(box)];
            m_painter.drawText(QPointF(m_paint.camera.viewX(rect.x) + left,
                                   m_paint.camera.viewY(rect.y + rect.height / 2 - 3)),
                m_paint.labels.titles[at(box)]);
        }
        m_painter.setFont(font(DagMetrics::kSubtitleSize, false));
        m_painter.setPen(m_paint.colours.scale ? m_palette.text : m_palette.textMuted);
        for (const auto box : m_nodes) {
            const auto &rect = m_scene.rects[at(box)];
            m_painter.drawText(QPointF(m_paint.camera.viewX(rect.x) + left,
                                   m_paint.camera.viewY(rect.y + rect.height / 2 + 12)),
                m_paint.labels.subtitles[at(box)]);
        }
    }

    void paintShortTitles()
    {
        QFont middle(m_paint.font);
        const bool far = m_scale < kDetailFrom;
        const double size =
            DagMetrics::kTitleSize * m_scale / (far ? DagMetrics::kFarShare : DagMetrics::kMiddleShare);
        middle.setPixelSize(std::max(1, static_cast<int>(std::floor(size + 0.05))));
        middle.setBold(true);
        if (middle.pixelSize() < 6)
            return;
        m_painter.setFont(middle);
        m_painter.setPen(m_palette.text);
        const double left = 8 * m_scale;
        const double down = middle.pixelSize() * 0.36;
        for (const auto box : m_nodes) {
            const auto &rect = m_scene.rects[at(box)];
            m_painter.drawText(QPointF(m_paint.camera.viewX(rect.x) + left,
                                   m_paint.camera.viewY(rect.y + rect.height / 2) + down),
                (far ? m_paint.labels.farTitles : m_paint.labels.shortTitles)[at(box)]);
        }
    }

    void paintBadges()
    {
        const QFont small = font(9, true, 7);
        const QFontMetricsF metrics(small);
        m_painter.setFont(small);
        for (const auto box : m_nodes) {
            const auto &colours = m_paint.colours.boxes[at(box)];
            if (colours.badge.isEmpty())
                continue;
            const QRectF card = mapped(cardRect(box));
            const QString text = metrics.elidedText(colours.badge, Qt::ElideRight, card.width() * 0.6);
            const double height = metrics.height() + 1;
            const double width = std::max(height, metrics.horizontalAdvance(text) + 8);
            const QRectF pill(card.right() - width - 6 * m_scale, card.top() - height * 0.72, width, height);
            const bool single = colours.shares.size() == 1;
            const QColor ground = single ? QColor::fromRgb(colours.main()) : m_palette.surface;
            m_painter.setPen(QPen(single ? mixed(ground, m_palette.text, 0.25) : m_palette.border, 1));
            m_painter.setBrush(ground);
            m_painter.drawRoundedRect(pill, height / 2, height / 2);
            m_painter.setPen(single ? readableOn(ground) : m_palette.text);
            m_painter.drawText(pill, Qt::AlignCenter, text);
        }
    }

    void paintStubs()
    {
        const QFont small = font(9, false, 7);
        const QFontMetricsF metrics(small);
        m_painter.setFont(small);
        for (const auto &stub : m_scene.stubs) {
            const SceneRect around{stub.x - 60, stub.y - 24, 120, 48};
            if (!around.intersects(m_window))
                continue;
            const double x = m_paint.camera.viewX(stub.x);
            const double y = m_paint.camera.viewY(stub.y);
            m_painter.setPen(QPen(m_palette.edge, std::max(1.0, 1.2 * m_scale), Qt::SolidLine, Qt::RoundCap));
            if (!stub.atTarget) { // data leaves here for somewhere far
                const QPointF along = m_right ? QPointF(m_scale, 0) : QPointF(0, m_scale);
                m_painter.drawLine(QPointF(x, y), QPointF(x, y) + 7 * along);
                m_painter.setBrush(m_palette.edge);
                m_painter.drawEllipse(QPointF(x, y) + 8.5 * along, 2 * m_scale, 2 * m_scale);
                continue;
            }
            const QString text = stub.others.size() == 1
                ? m_paint.labels.titles[at(stub.others.front())]
                : QCoreApplication::translate("DagView", "%1 inputs")
                      .arg(static_cast<qsizetype>(stub.others.size()));
            const QString shown = metrics.elidedText(text, Qt::ElideMiddle, 96 * m_scale);
            const double height = metrics.height();
            const double width = metrics.horizontalAdvance(shown) + 10;
            // Beside the middle, where the node's own edge comes in.
            const QRectF pill(x - width / 2 - 34 * m_scale, y - height - 7 * m_scale, width, height);
            m_painter.drawLine(QPointF(pill.center().x(), pill.bottom()), QPointF(pill.center().x(), y));
            m_painter.setPen(QPen(m_palette.border, 1));
            m_painter.setBrush(m_palette.surface);
            m_painter.drawRoundedRect(pill, height / 2, height / 2);
            m_painter.setPen(m_palette.textMuted);
            m_painter.drawText(pill, Qt::AlignCenter, shown);
        }
    }

    // Selection, find, hover, focus.

    void paintMarks()
    {
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setBrush(Qt::NoBrush);
        for (const auto *boxes : {&m_frames, &m_nodes}) {
            for (const auto box : *boxes) {
                const std::uint8_t mark = at(box) < m_paint.marks.size() ? m_paint.marks[at(box)] : 0;
                const bool frame = m_visible.at(box).frame;
                if ((mark & (kMarkMatch | kMarkCurrent)) != 0 && !frame)
                    ring(box, m_palette.match, (mark & kMarkCurrent) != 0 ? 3.5 : 2, Qt::SolidLine, 3.5);
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

    void ring(std::int32_t box, const QColor &colour, double width, Qt::PenStyle style, double distance)
    {
        const QRectF rect = mapped(m_scene.rects[at(box)]);
        const double off = m_scale >= kCardsFrom ? distance : std::min(distance, 1.0);
        m_painter.setPen(QPen(colour, width, style));
        m_painter.setBrush(Qt::NoBrush);
        const double radius = m_scale >= kRoundFrom ? 4 * m_scale + off : 1;
        m_painter.drawRoundedRect(rect.adjusted(-off, -off, off, off), radius, radius);
    }

    QPainter &m_painter;
    const DagPaint &m_paint;
    const VisibleGraph &m_visible;
    const DagScene &m_scene;
    const Palette &m_palette;
    double m_scale;
    bool m_right; ///< Data flows to the right.
    SceneRect m_window; ///< What of the scene is on the canvas.
    std::vector<std::int32_t> m_frames{};
    std::vector<std::int32_t> m_nodes{};
    std::vector<std::int32_t> m_sources{}; ///< Of the lit node's inputs, ascending.
};

} // namespace

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
    Painting(painter, paint).run();
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
