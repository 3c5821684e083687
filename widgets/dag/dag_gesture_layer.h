#pragma once

#include <QtCore/QObject>
#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QTimer>

#include "widgets/dag/dag_gestures.h"
#include "widgets/dag/device_shelf.h"

#include <functional>
#include <vector>

class QDropEvent;
class QKeyEvent;
class QMimeData;
class QMouseEvent;
class QPainter;
class QWheelEvent;

namespace planloom {

class DagLineEditor;
class DagView;

/// What of the canvas shapes plans: chips, order handles, the device shelf, ghosts, the tag at the pointer, and the line
/// editors that do the same by keyboard. Hands to `DagGestures` what pointer and keys do to it.
class DagGestureLayer : public QObject
{
    Q_OBJECT
public:
    explicit DagGestureLayer(DagView &view);
    ~DagGestureLayer() override;

    void setHost(GestureHost *host);
    const DagGestures &gestures() const { return m_gestures; }
    /// A drag is under way, or a line editor is open.
    bool busy() const { return m_gestures.active(); }
    bool dragging() const { return m_drag != Drag::None; }

    // Events of the canvas; true if taken.
    bool mousePress(const QMouseEvent &event);
    bool mouseMove(const QMouseEvent &event);
    bool mouseRelease(const QMouseEvent &event);
    bool wheel(const QWheelEvent &event);
    bool key(const QKeyEvent &event, bool pressed);
    /// A press on a body became a drag: takes it as op-assign if there is something to place.
    bool startBody(QPointF pressed, QPointF now, Qt::KeyboardModifiers modifiers);
    /// True once after the right button abandoned a gesture: its menu is not wanted.
    bool takeMenuRefusal();
    bool dragOver(const QMimeData &data, QPointF view);
    void dragLeft();
    bool drop(const QMimeData &data, QPointF view);

    /// Ends what is under way without a trace.
    void cancel();
    void pictureChanged();
    void selectionChanged();
    void paint(QPainter &painter);

    // By keyboard and menu; each acts on the selection, or on what has the focus.
    void editSplit(SplitKind kind);
    void editPlace();
    void editOrder();
    void editStage();
    void recompute();
    void hold();
    void free();

    /// Forward operators that keyboard and menu act on.
    std::vector<OperatorId> subject() const;

    // Where things are, in pixels of the canvas; empty where there is none.
    std::int32_t chipBox() const { return m_chipBox; }
    const std::vector<DimensionChip> &chips() const { return m_chips; }
    QRectF chipRect(std::int32_t chip) const;
    QRectF handleRect(std::int32_t box) const;
    const std::vector<ShelfTile> &tiles() const { return m_tiles; }
    QRectF tileRect(std::int32_t tile) const; ///< While the shelf is out.
    QRectF tagRect() const; ///< As last painted.
    QString tag() const;
    DagLineEditor *editor() const { return m_editor; }

Q_SIGNALS:
    /// A sentence for the status bar: why something was refused.
    void noted(const QString &sentence);

private:
    enum class Drag : std::uint8_t { None, ChipPress, Chip, Body, HandlePress, Handle, Foreign };

    SceneRect nodeRect(std::int32_t box) const;
    std::vector<OperatorId> forwardOf(const std::vector<OperatorId> &operators) const;
    std::vector<OperatorId> operatorsFor(std::int32_t box) const;
    std::vector<OperatorId> onlyThese(const std::vector<OperatorId> &operators) const;
    std::vector<OperatorId> copiesInSight(OperatorId op, std::int32_t box) const;
    OperatorId representative(std::int32_t box) const;
    PlaceWorld world() const;
    void refreshChips(std::int32_t box);
    std::vector<PlacedChip> placedChips() const;
    std::int32_t handleAt(QPointF view) const;
    void step(QPointF view, Qt::KeyboardModifiers modifiers);
    void stepShelf();
    void scrollAtEdges();
    void finish(QPointF view);
    void endDrag();
    void setCursorFor();
    void note(const QString &sentence, QPointF place);
    void act(const std::function<Proposal(const GestureContext &, const std::vector<OperatorId> &)> &propose);
    void open(DagLineEditor *editor);
    void closeEditor();
    QPointF editorPlace() const;

    static QString lockReason(const DimensionChip &chip);
    void paintGhost(QPainter &painter);
    void paintShelf(QPainter &painter);
    void paintTag(QPainter &painter);

    DagView &m_view;
    DagGestures m_gestures;
    Drag m_drag = Drag::None;
    QPointF m_pressed;
    QPointF m_last;
    std::int32_t m_box = -1; ///< Where the drag began.
    std::int32_t m_targetBox = -1; ///< What an order would be before, or what something is dropped on.
    bool m_refuseMenu = false;

    std::int32_t m_chipBox = -1;
    std::int32_t m_pinnedChips = -1; ///< Box that has chips because something is dragged over it.
    std::vector<DimensionChip> m_chips;
    std::vector<double> m_chipWidths;
    std::int32_t m_hoveredChip = -1;
    std::int32_t m_handleBox = -1; ///< Whose handle the pointer is at.

    std::vector<ShelfTile> m_tiles;
    std::vector<std::int32_t> m_tileCounts;
    ShelfLayout m_shelf;
    QTimer m_scroll;

    DagLineEditor *m_editor = nullptr;
    QString m_note;
    QPointF m_notePlace;
    QTimer m_noteEnd;
    QRectF m_tagRect;
};

} // namespace planloom
