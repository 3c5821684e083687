#pragma once

#include <QtWidgets/QWidget>

#include "engine/analyse/memory_at.h"
#include "widgets/scene/memory_colours.h"
#include "widgets/scene/timeline_scene.h"

#include <vector>

namespace planloom {

/// One device's memory over the step, stacked by kind, with the device's capacity. A click or the arrow keys
/// choose a moment.
class MemoryCurveView : public QWidget
{
    Q_OBJECT
public:
    explicit MemoryCurveView(QWidget *parent = nullptr);
    /// Null shows nothing.
    void setScene(TimelineSceneSnapshot scene, std::int32_t device);
    void setTime(std::int64_t nanoseconds);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void timeChosen(qint64 nanoseconds);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    QRectF plot() const;
    const MemoryCurve *curve() const;
    void chooseAt(double x);

    TimelineSceneSnapshot m_scene;
    std::int32_t m_device = 0;
    std::int64_t m_time = 0;
};

/// Live buffers as surfaces in proportion to their bytes. A click chooses the operator that made one.
class MemoryTreemap : public QWidget
{
    Q_OBJECT
public:
    static constexpr std::size_t kMostTiles = 400; ///< The smaller ones are one tile together.

    explicit MemoryTreemap(QWidget *parent = nullptr);
    /// @param live  largest first
    void setLive(std::vector<BufferLifetime> live, GraphSnapshot graph);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    /// What is said of a tile: tensor, kind, bytes, who made it.
    QString factOf(std::size_t tile) const;
    std::size_t tileCount() const { return m_tiles.size(); }
    QRectF tileRect(std::size_t tile) const { return m_tiles[tile].rect; }

Q_SIGNALS:
    void chosen(planloom::OperatorId op);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    struct Tile {
        QRectF rect{};
        std::size_t first = 0; ///< Index into m_live.
        std::size_t count = 1; ///< More than one: the small ones together.
        std::int64_t bytes = 0;
    };
    void layOut();
    int tileAt(QPointF at) const;
    void choose(int tile);

    std::vector<BufferLifetime> m_live;
    GraphSnapshot m_graph;
    std::vector<Tile> m_tiles;
    std::int64_t m_total = 0;
    int m_current = -1;
};

} // namespace planloom
