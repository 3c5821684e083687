#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QTimer>

#include "widgets/dag/dag_conversions.h"
#include "widgets/dag/dag_gestures.h"
#include "widgets/dag/dag_orders.h"
#include "widgets/dag/device_shelf.h"

#include <functional>
#include <stop_token>
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

/// What of the canvas shapes plans: chips, order handles, the device shelf, ghosts, the tag at the pointer,
/// and the line editors that do the same by keyboard. Hands to `DagGestures` what pointer and keys do to it.
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
    /// Goes to the next (1) or the one before (-1) of the orders' arrows in sight.
    void focusOrder(std::int32_t by);
    std::int32_t focusedOrder() const
    {
        return m_focusedOrder;
    } ///< Index into the canvas' orders; -1 for none.
    /// @return false if no arrow had the focus
    bool leaveOrder();
    /// The row of the arrow that has the focus, in one line.
    void editOrderRow();
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
    QLineF orderArrow(std::int32_t arrow) const; ///< From end to end.
    QRectF tileRect(std::int32_t tile) const; ///< While the shelf is out.
    QRectF tagRect() const; ///< As last painted.
    QString tag() const;
    /// What the split that is shown needs around the chips' operator, once the engine has said so.
    const std::vector<TensorConversion> &conversions() const { return m_conversions; }
    DagLineEditor *editor() const { return m_editor; }

Q_SIGNALS:
    /// A sentence for the status bar: why something was refused.
    void noted(const QString &sentence);

private:
    enum class Drag : std::uint8_t {
        None,
        ChipPress,
        Chip,
        Body,
        HandlePress,
        Handle,
        Foreign,
        OrderPress,
        OrderEnd
    };

    SceneRect nodeRect(std::int32_t box) const;
    std::vector<OperatorId> forwardOf(const std::vector<OperatorId> &operators) const;
    std::vector<OperatorId> operatorsFor(std::int32_t box) const;
    std::vector<OperatorId> onlyThese(const std::vector<OperatorId> &operators) const;
    std::vector<OperatorId> copiesInSight(OperatorId op, std::int32_t box) const;
    OperatorId representative(std::int32_t box) const;
    PlaceWorld world() const;
    void refreshChips(std::int32_t box);
    std::vector<SceneRect> besideChips() const;
    std::vector<PlacedChip> placedChips() const;
    std::int32_t handleAt(QPointF view) const;
    QRectF pushRect() const;
    bool pushedIn(QPointF view) const;
    void step(QPointF view, Qt::KeyboardModifiers modifiers);
    void lookUpConversions();
    void takeConversions();
    void paintConversions(QPainter &painter);
    OrderGrip gripUnder(QPointF view) const;
    std::int32_t lineOfOrder(std::int32_t arrow) const;
    bool beginOrderEnd();
    void stepOrderEnd(QPointF view);
    void paintOrderEnds(QPainter &painter);
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
    QString tagKey() const;

    DagView &m_view;
    DagGestures m_gestures;
    Drag m_drag = Drag::None;
    QPointF m_pressed;
    bool m_pulledOut = false; ///< The chip left the way to its node in this drag.
    QPointF m_last;
    std::int32_t m_box = -1; ///< Where the drag began.
    std::int32_t m_targetBox = -1; ///< What an order would be before, or what something is dropped on.
    bool m_refuseMenu = false;
    OrderArrow m_arrow; ///< Whose end is in the hand.
    /// Which of the copies that the end's box stands for the row is about; it stays about those of another
    /// box.
    std::vector<bool> m_orderedCopies;
    OrderGrip m_grip; ///< The arrow's end under the pointer, or in the hand.
    std::int32_t m_focusedOrder = -1;

    std::int32_t m_chipBox = -1;
    std::int32_t m_pinnedChips = -1; ///< Box that has chips because something is dragged over it.
    std::vector<DimensionChip> m_chips;
    struct LaidChips {
        std::vector<double> widths{}; ///< Of their texts.
        SceneRect node{}; ///< Where theirs was.
        std::vector<PlacedChip> chips{};
    };
    mutable LaidChips m_laid; ///< As last asked for without anything in the hand.
    std::int32_t m_hoveredChip = -1;
    std::int32_t m_handleBox = -1; ///< Whose handle the pointer is at.

    std::vector<ShelfTile> m_tiles;
    std::vector<std::int32_t> m_tileCounts;
    ShelfLayout m_shelf;
    QTimer m_scroll;

    std::vector<TensorConversion> m_conversions;
    TimelineSceneSnapshot m_conversionsOf;
    QFutureWatcher<std::vector<TensorConversion>> m_conversionWatcher{this};
    std::stop_source m_conversionStop;

    DagLineEditor *m_editor = nullptr;
    QString m_note;
    QPointF m_notePlace;
    QTimer m_noteEnd;
    QRectF m_tagRect;
};

} // namespace planloom
