#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QFutureWatcher>
#include <QtCore/QPoint>
#include <QtCore/QTimer>
#include <QtWidgets/QAbstractScrollArea>

#include "widgets/common/canvas_tool.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/gesture_host.h"
#include "widgets/scene/timeline_box.h"
#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_lane_cache.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_picture.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

class QAction;
class QPinchGesture;

namespace planloom {

class TimelineAnalyst;
class TimelineLineEditor;
class TimelinePanel;
struct PanelTable;
enum class TimelineLine : std::uint8_t;

/// The timeline of one training step, and a canvas to shape its plan on: a lane for each device (symmetric
/// ones share one), with blocks of micro-batches, operators, communication and memory.
///
/// With a gesture host, spans and blocks are dragged: vertically to another lane (op-assign), horizontally to
/// a caret (op-order), by the bottom edge over further lanes (op-trans), and the warm-up's bracket by its
/// end. Everything has a key and an action.
///
/// Wheel scrolls, Ctrl+wheel zooms at the pointer, Shift+wheel, middle and Space drag pan, dragging on empty
/// space selects a box, with Alt zooms to it, Alt+click and a long press list all that is under the pointer,
/// with M held measures (`setTool` gives the left button one of these alone); W and S zoom, A and D pan, Home
/// fits the step, F fits the selection, double-click fits a span, Escape clears the selection; arrows move
/// the focus.
class TimelineView : public QAbstractScrollArea
{
    Q_OBJECT
public:
    /// @param selection  shared with the other views; must outlive this one
    explicit TimelineView(SelectionModel *selection, QWidget *parent = nullptr);
    ~TimelineView() override;

    /// Shows `scene`; null empties the view. The zoom is kept if the step is about as long as before. During
    /// a drag it waits for its end.
    void setScene(TimelineSceneSnapshot scene);
    const TimelineSceneSnapshot &scene() const { return m_scene; }

    /// What a run measured, drawn over what was predicted: spans filled, predicted ones as outlines. Null
    /// takes it away. May be called many times a second. Must be of the same execution plan.
    void setMeasured(TimelineSceneSnapshot measured);
    const TimelineSceneSnapshot &measured() const { return m_measured; }
    /// Words that stay in the corner: "CPU emulation: times are not GPU times"; empty for none.
    void setBadge(const QString &text);
    const QString &badge() const { return m_badge; }

    /// Who takes gestures; null (the usual state) makes this a viewer. Must outlive this, or be reset.
    void setGestureHost(GestureHost *host);

    /// What an empty view says; empty for the usual words.
    void setEmptyText(const QString &text);

    /// Marks the picture as that of rows which have changed since.
    void setStale(bool stale);
    /// Marks the lanes of devices about which rows cannot hold together; none takes the marks away.
    void setConflicts(std::set<DeviceId> devices);

    void setColouring(TimelineColouring colouring);
    TimelineColouring colouring() const { return m_colouring; }

    const TimeAxis &axis() const { return m_axis; }
    /// Shows another stretch of time: what links two timelines. Does not report back.
    void setAxis(const TimeAxis &axis);
    /// Where the axis' zero is, in the viewport's coordinates.
    int axisLeft() const { return m_metrics.header; }
    /// Where the lanes begin, in the viewport's coordinates.
    int lanesTop() const { return m_metrics.ruler + phasesHeight(); }
    const std::vector<TimelineRow> &rows() const { return m_rows; }
    const LaneArrangement &arrangement() const { return m_arrangement; }
    void setArrangement(LaneArrangement arrangement);
    const TimelineFocus &focus() const { return m_focus; }
    const TimelineGestures &gestures() const { return m_gestures; }
    /// The table over the canvas: figures of the box that was drawn, or why a device is idle.
    const TimelinePanel &panel() const { return *m_panel; }
    void hidePanel();
    /// Selects what is in a box of the viewport and shows its figures.
    void selectBox(const QRect &box, bool enclosed, Qt::KeyboardModifiers modifiers);
    /// Draws the critical path.
    void setCriticalPath(bool shown);

    /// What the spans of the present scene wait for is known: arrows, slack and the critical path are drawn.
    bool isAnalysed() const;

    /// What happens to those that follow something that is moved in time.
    void setFollowersPolicy(FollowersPolicy policy);
    FollowersPolicy followersPolicy() const { return m_gestures.followersPolicy(); }

    /// What a drag with the left button does. Space and M held mean *Pan* and *Measure* whatever it is.
    void setTool(CanvasTool tool);
    CanvasTool tool() const { return m_tool; }

    /// Marks a time of the step with a line and its flag, and scrolls it into view: where the curve of
    /// another panel was clicked. Escape takes it away, as does a step that is over before it.
    void showTime(Nanoseconds time);
    /// The time that is marked.
    std::optional<Nanoseconds> shownTime() const { return m_shownTime; }
    void clearTime();

    /// Marks a time that goes on by itself: what is behind it is drawn pale. Nothing takes it away.
    void setPlayhead(std::optional<Nanoseconds> time);
    bool hasPlayhead() const { return m_plays; }

    /// Outlines the spans of these communications, in place of those of the selected operators, until
    /// something is selected; the first of them comes into sight.
    void selectCommunication(std::vector<EdgeCommunication> edges);
    /// Rows of the spans that are outlined, ascending.
    const std::vector<std::size_t> &selectedRows() const { return m_selected; }

    /// Where a span is drawn, in the viewport's coordinates; nothing if its lane is folded away or it is off
    /// the screen.
    std::optional<QRect> rectOf(std::size_t row) const;
    /// The same of a block of a lane.
    std::optional<QRect> rectOfBlock(std::int32_t lane, std::size_t block) const;
    /// The grip of a lane's bracket.
    std::optional<QRect> rectOfBracketEnd(std::int32_t lane) const;

    // For screen readers.

    /// What the keyboard is at: "forward of micro-batch 3, stage 0 on GPU 1, 2.30 ms"; empty if nothing has
    /// the focus.
    QString focusText() const;
    /// "GPU 0-3, four symmetric devices, stage 0, busy 71%, memory peak 276 MiB".
    QString laneText(std::int32_t lane) const;
    /// In the viewport's coordinates; empty if it is not in sight.
    QRect focusRect() const;
    QRect laneRect(std::int32_t lane) const;

    // For export.

    /// Where the selected operators' spans are: their lanes, from the first to the last; nothing without a
    /// selection.
    std::optional<TimelinePart> partOfSelection() const;
    /// The whole step on all lanes that are shown.
    TimelinePart wholePart() const;
    /// The size of a picture of this width in which all lanes of `part` (null: all that are shown) have room.
    QSize pictureSize(int width, const TimelinePart *part = nullptr) const;
    /// Draws a picture without pointer and focus: any size, any palette. Null is the present stretch of time
    /// on all lanes that are shown. Painted in tiles (a device smaller than the picture, `painter`
    /// translated), it costs each tile only what lies in it.
    void render(QPainter &painter, const QSize &size, const Palette &palette,
        const TimelinePart *part = nullptr) const;
    using QWidget::render;

    /// Zoom, scroll, lanes' order, pins and folds, as text for the session.
    std::string viewState() const;
    /// Takes what `viewState` gave, as far as it fits; now, or with the next scene.
    void restoreViewState(const std::string &state);

    void zoomIn();
    void zoomOut();
    void fitAll();
    /// Fits the spans of the selected operators; all if there are none.
    void focusSelection();
    /// Shows symmetric devices one by one, or once.
    void setExpanded(std::int32_t symmetryClass, bool expanded);
    void expandAll(bool expanded);

Q_SIGNALS:
    /// The person chose an operator here (the selection has changed already).
    void operatorActivated(planloom::OperatorId op);
    /// Zoomed or panned here (not by `setAxis`).
    void axisChanged(const planloom::TimeAxis &axis);
    /// Lanes were moved, pinned, folded or filtered, or zoom and scroll have changed: `viewState` is another.
    void viewStateChanged();
    void followersPolicyChanged(planloom::FollowersPolicy policy);
    /// A key or drop was refused: the sentence, for the status bar.
    void refused(const QString &sentence);
    /// Another step is shown, predicted or measured.
    void shownSceneChanged();
    /// A moment was pointed at on the ruler.
    void timeAsked(planloom::Nanoseconds time);
    /// Escape has taken the marked time away.
    void timeCleared();
    /// A communication was clicked: the operator that it serves (the selection has changed already), and the
    /// tensor.
    void communicationChosen(planloom::OperatorId op, planloom::TensorId tensor);

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void keyReleaseEvent(QKeyEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dragMoveEvent(QDragMoveEvent *event) override;
    void dragLeaveEvent(QDragLeaveEvent *event) override;
    void dropEvent(QDropEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    /// What lies in a box.
    struct BoxContents;
    /// What the step would come to without some of its spans.
    struct WhatIfAnswer;

    /// What a pressed button does when it is none of the plan's business.
    enum class Hand : std::uint8_t { None, Pressed, Pan, Box, ZoomBox, Measure, Lane, Scrub };

    struct Hover {
        TimelineHit hit{};
        std::vector<FactLine> facts{};
    };

    // timeline_view.cpp
    const TimelineSceneSnapshot &shown() const { return m_measured ? m_measured : m_scene; }
    double extent() const;
    double canvasWidth() const;
    int canvasHeight() const;
    TimelinePicture picture() const;
    TimelineLanesKey lanesKey(
        const TimelinePicture &picture, const Palette &palette, const PlanUpdateSnapshot &would) const;
    std::vector<TimelineRow> rowsOfPart(const TimelinePart *part, int height) const;
    TimelineCanvas canvas() const;
    void takeScene(TimelineSceneSnapshot scene);
    void relayout();
    void moveAxis(const TimeAxis &axis);
    void updateScrollBars();
    void zoomAt(double factor, double x);
    void fitTimes(double begin, double end);
    void onSelectionChanged();
    void takeSelected();
    TimelineFocus refocused(const TimelineScene &before, const TimelineFocus &focus) const;
    std::optional<QRect> onScreen(std::int32_t device, double begin, double end,
        const std::function<std::optional<TrackPlace>(const TimelineRow &)> &placeIn) const;

    // timeline_view_input.cpp
    std::optional<std::pair<double, int>> contentAt(QPoint position) const;
    TimelineHit hitTest(QPoint position) const;
    std::vector<FactLine> factsOf(const TimelineHit &hit) const;
    void hover(QPoint position);
    void leave();
    void pinchTo(const QPinchGesture &pinch);
    void updateCursor(const TimelineHit &hit);
    CanvasTool toolInHand() const;
    void clickOn(const TimelineHit &hit, QPoint position, Qt::KeyboardModifiers modifiers);
    void dragTo(QPoint position, Qt::KeyboardModifiers modifiers);
    void scrollAtEdges();
    void dropLane(QPoint position);
    void finishHand(QPoint position, Qt::KeyboardModifiers modifiers);
    void abandonHand();
    QRect handBox() const;

    // timeline_view_keys.cpp
    bool keyDuringGesture(QKeyEvent *event);
    void focusOn(const TimelineFocus &focus, bool select);
    void stepFocus(int direction);
    void stepFocusVertically(int direction);
    void reveal(const TimelineFocus &focus);
    void selectSpan(std::int64_t span, Qt::KeyboardModifiers modifiers);
    void selectBlock(std::int32_t lane, std::int32_t block, Qt::KeyboardModifiers modifiers);
    void moveByKey(int slots, bool onlyThis, bool held = false);
    void moveLaneByKey(int lanes);
    void changeBracketByKey(int by);
    void reportRefusal();

    // timeline_view_actions.cpp
    void makeActions();
    QAction *addViewAction(
        const char *name, const QString &text, const QKeySequence &key, std::function<void()> act);
    void syncActions();
    void updateActions();
    std::vector<OperatorId> selectedForward() const;
    void openLine(TimelineLine line);
    void closeLine();
    void commitProposal(const Proposal &proposal);
    void pinLane();
    void shiftLane(int by);
    void unfoldLane();

    // timeline_view_analysis.cpp
    void takeBox();
    void showPanel(PanelTable table);
    void placePanel();
    void copyPanel();
    void onAnalysed();

    // timeline_view_idle.cpp
    void needAnalysis();
    void explainIdle();
    void showIdleTimes();
    std::vector<FactLine> factsOfPause(const TimelineHit &hit) const;

    // timeline_view_what_if.cpp
    bool canAskWhatIf() const;
    void askWhatIf();
    void takeWhatIf();

    // timeline_view_unit.cpp
    std::int32_t unitOfScene() const;
    void pinUnit(bool pinned);

    // timeline_view_play.cpp
    void askTime(QPoint position);
    void revealRow(std::size_t row);

    // timeline_view_under.cpp
    void listUnder(QPoint position);
    void listFocus();

    void announceFocus();
    int phasesHeight() const;

    SelectionModel *m_selection;
    TimelineSceneSnapshot m_scene;
    TimelineSceneSnapshot m_measured;
    std::optional<TimelineSceneSnapshot> m_waiting; ///< Came during a drag.
    TimelineLaneCache m_lanes;
    std::uint64_t m_rowsVersion = 0; ///< How often `m_rows` has changed.
    std::uint64_t m_selectedVersion = 0; ///< How often `m_selected` has changed.
    TimelineMetrics m_metrics;
    std::vector<TimelineRow> m_rows;
    LaneArrangement m_arrangement;
    TimeAxis m_axis;
    bool m_fitted = true; ///< The whole step is shown and stays so when the size changes.
    bool m_scrolling = false; ///< The scroll bars are being set, not moved.
    bool m_stale = false;
    std::set<DeviceId> m_conflicts;
    QString m_emptyText;
    QString m_badge;
    std::string m_pendingState; ///< View state that waits for a scene.
    TimelineColouring m_colouring = TimelineColouring::Direction;
    std::vector<std::size_t> m_selected; ///< Rows of the selected operators' spans.
    QFutureWatcher<std::vector<std::size_t>> m_selectedWatcher{this};
    std::stop_source m_selectedStop;

    QFutureWatcher<std::shared_ptr<const BoxContents>> m_boxWatcher{this};
    std::stop_source m_boxStop;
    bool m_boxAdds = false;

    QFutureWatcher<std::shared_ptr<const WhatIfAnswer>> m_whatIfWatcher{this};
    std::stop_source m_whatIfStop;
    bool m_asksWhatIf = false; ///< The question waits for the analysis.
    std::optional<std::int64_t> m_wouldEnd; ///< Nanoseconds: the answer, while its table is open.

    TimelineGestures m_gestures;
    QTimer m_longPress; ///< Since the button went down on one place.
    QTimer m_edgeTimer; ///< Scrolls while a drag is at an edge.
    Hover m_hover;
    TimelineFocus m_focus;
    QPoint m_pointer{-1, -1};
    Hand m_hand = Hand::None;
    TimelineHit m_pressedHit;
    QPoint m_pressed;
    QPoint m_dragged;
    Qt::KeyboardModifiers m_dragModifiers;
    double m_pressedTime = 0;
    int m_pressedContent = 0;
    TimeAxis m_axisPressed;
    int m_scrollPressed = 0;
    CanvasTool m_tool = CanvasTool::Select;
    std::optional<Nanoseconds> m_shownTime;
    bool m_plays = false; ///< It is the playhead.
    std::vector<EdgeCommunication> m_edges; ///< Whose spans are outlined alone.
    bool m_spaceHeld = false;
    bool m_measureHeld = false;
    std::optional<std::pair<double, double>> m_measuredTimes; ///< Of the M drag, kept until the next click.

    TimelineLineEditor *m_line;
    TimelineAnalyst *m_analyst;
    TimelinePanel *m_panel;
    bool m_criticalPath = false;
    double m_idleTime =
        -1; ///< Nanoseconds: where the pause was clicked that has the focus; negative if by key.
    bool m_explains = false; ///< A bubble waits for the analysis.
    bool m_wantsIdleTable = false; ///< So does the table of all of them.
    IdleChain m_chain{}; ///< Of the bubble that the panel explains; empty without one.
    std::vector<std::int32_t> m_rowOfDevice; ///< Index into m_rows; -1 for none.
    std::map<std::string, QAction *> m_actions;
};

} // namespace planloom
