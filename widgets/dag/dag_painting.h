#pragma once

#include "widgets/dag/dag_painter.h"

#include <QtGui/QPainterPath>

#include <vector>

namespace planloom {

// Zooms (scale factors) from which things are drawn.
constexpr double kCardsFrom = 0.30; ///< Bodies with borders; below, blocks of colour.
constexpr double kRoundFrom = 0.7; ///< Round corners, both lines of text.
constexpr double kCurvesFrom = 0.22; ///< Smooth edges; below, straight lines.
constexpr double kArrowsFrom = 0.42;
constexpr double kPillsFrom = 0.55;
constexpr double kDetailFrom = 0.5; ///< Backward boxes, toggles.
constexpr double kBadgesFrom = 0.58;

/// One painting of the canvas: parts of `paintDag` (dag_painter.cpp: frames and marks, dag_paint_edges.cpp,
/// dag_paint_nodes.cpp).
class DagPainting
{
public:
    DagPainting(QPainter &painter, const DagPaint &paint)
        : m_painter(painter)
        , m_paint(paint)
        , m_visible(paint.picture.visible)
        , m_scene(paint.scene != nullptr ? *paint.scene : paint.picture.scene)
        , m_palette(paint.palette)
        , m_scale(paint.camera.scale)
        , m_right(paint.picture.scene.flow == DagFlow::Right)
        , m_canvas(paint.camera.visible(paint.width, paint.height))
        , m_window(paint.part.isNull()
                  ? m_canvas
                  : SceneRect{paint.camera.sceneX(paint.part.x()), paint.camera.sceneY(paint.part.y()),
                      paint.part.width() / paint.camera.scale, paint.part.height() / paint.camera.scale})
    {
    }
    void run();

private:
    QRectF mapped(const SceneRect &rect) const;
    QFont font(double sceneSize, bool bold, int least = 1) const;
    void collect();
    bool isStack(std::int32_t box) const;
    bool isOperator(std::int32_t box) const;
    QColor frameFill(std::int32_t depth) const;
    void paintFrame(std::int32_t box);
    void outline(const QRectF &rect, double radius);
    void paintFrameTitles();
    void paintToggle(const SceneRect &place, bool plus, const QColor &ground);
    void paintCopies(std::int32_t box);
    bool isStrong(const ScenePath &path, std::int32_t box) const;
    void findSources(std::int32_t box);
    void paintPaths();
    void paintStrong(const std::vector<const ScenePath *> &strong);
    QPointF point(std::uint32_t index) const;
    void addCurve(QPainterPath &out, const ScenePath &path) const;
    void addLines(QList<QLineF> &out, const ScenePath &path) const;
    void addArrow(QPainterPath &out, const ScenePath &path) const;
    void paintBlocks();
    void paintMarksBehindBlocks();
    void paintCards();
    /// A node's own card: what is left of its box beside the backward operator's.
    SceneRect cardRect(std::int32_t box) const;
    QColor cardFill(std::int32_t box) const;
    QColor textOn(std::int32_t box) const;
    void paintCard(std::int32_t box, bool round, bool detail);
    void paintBar(const QRectF &rect, const BoxColours &colours, double radius);
    void paintTwin(std::int32_t box, const SceneRect &card, const QColor &main, double radius);
    void paintTexts();
    void paintShortTitles();
    void paintBadges();
    void paintPins();
    void paintStubs();
    void paintMarks();
    void paintFarFrameMarks();
    void ring(std::int32_t box, const QColor &colour, double width, Qt::PenStyle style, double distance);

    QPainter &m_painter;
    const DagPaint &m_paint;
    const VisibleGraph &m_visible;
    const DagScene &m_scene;
    const Palette &m_palette;
    double m_scale;
    bool m_right; ///< Data flows to the right.
    SceneRect m_canvas; ///< What of the scene is on the canvas.
    SceneRect m_window; ///< What of that is painted.
    std::vector<std::int32_t> m_frames{};
    std::vector<std::int32_t> m_nodes{};
    std::vector<std::int32_t> m_sources{}; ///< Of the lit node's inputs, ascending.
};

} // namespace planloom
