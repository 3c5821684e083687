#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QFutureWatcher>
#include <QtCore/QPointF>
#include <QtCore/QStringList>
#include <QtCore/QTimer>
#include <QtGui/QPixmap>
#include <QtWidgets/QWidget>

#include "widgets/common/canvas_tool.h"
#include "widgets/common/selection_model.h"
#include "widgets/dag/dag_camera.h"
#include "widgets/dag/dag_colours.h"
#include "widgets/dag/dag_decor.h"
#include "widgets/dag/dag_navigation.h"
#include "widgets/dag/dag_playing.h"
#include "widgets/dag/dag_text.h"
#include "widgets/dag/layout_service.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

class DagConeBar;
class DagFindBar;
class DagGestureLayer;
class GestureHost;
struct DagChoice;
struct DagMeasure;
struct DagSearch;
class DagStill;
enum class DagExtent : std::uint8_t;
struct PlanUpdate;
struct TimelineSummary;

/// The canvas that shows a model's operators as a graph of groups, stacks of repeated layers and operators.
///
/// One widget, painted as a whole (dag_painter.h). What is in sight is laid out by a `LayoutService`; until a
/// layout arrives the last picture stays. All gestures act on items of the outline and on the shared
/// selection.
class DagView : public QWidget
{
    Q_OBJECT
public:
    explicit DagView(QWidget *parent = nullptr);
    ~DagView() override;

    /// Shows a model, closed but for what fits, all of it in the window. Null shows an empty canvas.
    void setGraph(GraphSnapshot graph);
    /// Devices and stages of operators; null, or a plan of another graph, leaves nodes without them.
    void setPlan(std::shared_ptr<const Plan> plan);
    /// Seconds of one training step by operator index; empty if unknown.
    void setTimes(std::vector<double> secondsByOperator);
    /// Values by operator for a colouring that needs them (NaN where there is none); empty takes them away.
    void setValues(ColourBy colourBy, std::vector<double> valuesByOperator);
    /// `OperatorChange` by operator, for comparing: shown by `ColourBy::Difference`.
    void setDifference(const std::vector<std::uint8_t> &kindByOperator);
    void setColourBy(ColourBy colourBy);
    ColourBy colourBy() const { return m_colourBy; }
    void setMode(DagMode mode);
    DagMode mode() const { return m_mode; }
    /// Direction of data flow; none chooses it by the window's shape when a model is opened.
    void setFlow(std::optional<DagFlow> flow);
    DagFlow flow() const { return m_flow; }
    /// Only boxes with these of the legend's keys are shown in full; none shows all. Changes with the
    /// colouring.
    void setLegendFilter(std::set<std::int32_t> keys);
    /// Marks operators about which rows cannot hold together; none takes the marks away.
    void setConflicts(std::vector<OperatorId> operators);
    const std::set<std::int32_t> &legendFilter() const { return m_filter; }
    /// Where the legend's entries are, as last painted; empty for those that found no room.
    QRectF legendRect(std::size_t entry) const;
    const DagColours &colours() const;
    /// Layouts change at once instead of within 150 ms.
    void setReducedMotion(bool reduced);
    /// Groups moved by hand, by path (`pathOfItem`): offsets in scene units.
    void setNudges(const std::map<std::string, QPointF> &nudges);
    /// Up to nine states of the view, by number from 1; empty where there is none.
    void setBookmarks(const QStringList &bookmarks);
    const QStringList &bookmarks() const { return m_bookmarks; }
    /// What is shown and from where, as text for the session.
    QString cameraState() const;
    /// Brings back what `cameraState` gave, now or once a model is shown; other texts change nothing.
    void restoreCamera(const QString &state);
    using QWidget::render;
    /// Pixels the whole model takes at zoom 1, with a margin.
    QSizeF wholeSize() const;
    /// Paints what is in sight, or the whole model with all its details, into `target`: for pictures of any
    /// size, texts as texts.
    void render(QPainter &painter, const QRectF &target, bool wholeModel, const Palette &palette);
    /// What `extent` is now, to be painted later, elsewhere, in tiles, by any thread (dag_still.h); empty if
    /// nothing is selected.
    std::shared_ptr<const DagStill> still(DagExtent extent, const Palette &palette) const;
    /// Shared with other views; the view has one of its own until then. Not owned.
    void setSelectionModel(SelectionModel *selection);
    SelectionModel *selectionModel() const { return m_selection; }
    /// Badges on the lines of what is communicated.
    void setCommunicationShown(bool shown);
    bool isCommunicationShown() const { return m_communicationShown; }
    /// The badges of the present picture.
    const std::vector<TrafficBadge> &traffic() const;
    /// Where a badge is, as last painted; empty if it is not.
    QRectF trafficRect(std::size_t badge) const;
    const PaintedBadges &paintedTraffic() const { return m_painted; }
    /// Marks the badge of what serves `op` with `tensor`, until something else is selected.
    void markCommunication(OperatorId op, TensorId tensor);
    /// The badge that is marked; nothing if none is.
    std::optional<std::size_t> markedCommunication() const;
    /// Shows a moment of the step: what computes, and what is on its way; an empty one takes it away.
    void setMoment(DagMoment moment);
    const DagMoment &moment() const { return m_moment; }
    /// Lets people shape the plan by hand here; null takes that away. Not owned.
    void setGestureHost(GestureHost *host);
    const DagGestureLayer &gestures() const { return *m_gestures; }
    /// Plan, times and memory of an update at once; null, or one without a plan, leaves nodes without them.
    void setUpdate(std::shared_ptr<const PlanUpdate> update);
    /// Of the update's timeline; null without one.
    const TimelineSummary *summary() const;
    /// What drags with the left button do. Holding Space pans and holding M measures whatever the tool is.
    void setTool(CanvasTool tool);
    CanvasTool tool() const { return m_tool; }
    /// As the tool has it, now that nothing else wants a cursor of its own.
    void showToolCursor();
    /// What the measured path says; empty if there is none yet.
    QString measureText() const;
    const DagConeBar &coneBar() const { return *m_coneBar; }
    /// Program that lays out small groups (`planloom-layout`); empty does without.
    void setLayoutHelper(const QString &program);

    /// What is shown now; null before the first layout.
    DagPictureSnapshot picture() const { return m_picture; }
    const DagCamera &camera() const { return m_camera; }
    /// False while a layout is under way.
    bool isSettled() const;
    /// Labels from the model's top to the innermost group that fills the window.
    QStringList breadcrumbs() const { return m_breadcrumbs; }
    /// The matches of the last search: units of the outline, ascending.
    const std::vector<std::int32_t> &matches() const { return m_matches; }
    /// Where find stands among them; -1 if nowhere.
    int currentMatch() const { return m_match; }
    /// Orders between boxes that rows ask for.
    const std::vector<OrderArrow> &orders() const;
    /// By device: forward operators with a part there; empty without a plan.
    const std::vector<std::int32_t> &operatorsOnDevice() const;
    /// What screen readers say of a box: kind, devices, rows.
    QString describe(std::int32_t box) const;
    /// Where a box is painted, in widget coordinates.
    QRectF viewRect(std::int32_t box) const;
    /// The innermost box at a place in widget coordinates; -1 for the model's own ground.
    std::int32_t boxAt(QPointF view) const;
    /// `BoxMark`s by box.
    const std::vector<std::uint8_t> &marks() const { return m_marks; }
    void panBy(double dx, double dy);
    /// Gives a box the keyboard focus; -1 takes it away.
    void focusBox(std::int32_t box);
    std::int32_t hoveredBox() const { return m_hovered; }
    std::int32_t focusedBox() const { return m_focused; }

    QSize sizeHint() const override { return {900, 600}; }
    QSize minimumSizeHint() const override { return {200, 120}; }

public Q_SLOTS:
    void expandAll();
    void collapseAll();
    void expandOneLevel();
    /// Opens or closes a group or stack of the outline; what is at `anchor` (widget coordinates) stays there.
    void toggleItem(std::int32_t item, std::optional<QPointF> anchor = {});
    /// Shows each copy of an open stack, or one for all.
    void toggleCopies(std::int32_t item);
    void fitAll();
    void fitSelection();
    void zoomBy(double factor);
    void openFind();
    void findNext();
    void findPrevious();
    /// Opens what hides `op`, selects it and moves it into sight.
    void showOperator(planloom::OperatorId op);
    /// Shows the group of a label of `breadcrumbs` whole.
    void showBreadcrumb(int index);
    void goBack();
    void goForward();
    /// What is selected, in all copies.
    void selectSimilar();
    /// The selection with everything its data reaches, or comes from.
    void selectCone(bool forwards);
    void selectMatches();
    void invertSelection();
    void selectSameDevice();
    void selectSameStage();
    void toggleFlow();
    /// Keeps where the view is, in the first free place or that of the oldest.
    void setBookmark();
    void goToBookmark(int number);
    /// Takes back what was moved by hand in the selected or focused group; everywhere if there is none.
    void relayoutHere();
    /// Asks for a row about what find has found.
    void askRowFromMatches();

Q_SIGNALS:
    void breadcrumbsChanged(const QStringList &labels);
    void colourByChanged(planloom::ColourBy colourBy);
    void modeChanged(planloom::DagMode mode);
    /// A new picture has taken the place of the last one.
    void pictureChanged();
    /// A group was moved by hand: by how much in all, from where the layout has it, in scene units; 0, 0
    /// takes it back.
    void nudged(const QString &path, double dx, double dy);
    void bookmarksChanged(const QStringList &bookmarks);
    /// Someone wants a row that begins with this selector.
    void rowAsked(const QString &selector);
    /// Find has looked: how many it found, and what is wrong with the question.
    void searched(int count, const QString &problem);
    /// What is shown, or from where, has changed; for saving the view's state.
    void viewChanged();
    void toolChanged(planloom::CanvasTool tool);
    /// The path between two operators has been measured: in words.
    void measured(const QString &words);
    /// A sentence for the status bar: why a gesture was refused.
    void noted(const QString &sentence);
    /// A badge was clicked: what it stands for.
    void communicationChosen(const std::vector<planloom::EdgeCommunication> &edges);

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void keyReleaseEvent(QKeyEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dragMoveEvent(QDragMoveEvent *event) override;
    void dragLeaveEvent(QDragLeaveEvent *event) override;
    void dropEvent(QDropEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;

private:
    static constexpr double kFitMargin = 24;
    static constexpr double kMostFitScale = 1.25; ///< A small model is not blown up to fill the window.

    enum class Gesture : std::uint8_t { None, Press, Pan, Box, Overview, Nudge, Measure };

    /// Where something must stay when the next picture comes.
    struct Anchor {
        std::int32_t item = -1;
        double shareX = 0.5; ///< Of the item's width.
        double down = 0; ///< Scene units from its top.
        QPointF view{};
    };

    // dag_view.cpp: data, layout, painting
    void startOutline();
    void takeOutline();
    void adopt(const DagDecorSnapshot &decor);
    bool changing() const { return m_outlineBusy || m_nextOutline != nullptr; }
    void startMorph(const std::map<std::int32_t, QRectF> &before);
    void changeFacts(const std::function<void(OperatorFacts &)> &change);
    void chooseFlow();
    void requestLayout();
    void takePicture(const DagPictureSnapshot &picture);
    bool openLess(const DagPicture &picture);
    Anchor anchorFor(std::int32_t item, std::optional<QPointF> point) const;
    void applyAnchor();
    std::optional<SceneRect> selectionBounds() const;
    void refreshColours();
    void refreshMarks();
    void requestDecor();
    void refreshFont();
    void updateBreadcrumbs();
    void cameraMoved();
    void describeForScreenReader();
    // dag_view_overlays.cpp
    void paintOverlays(QPainter &painter);
    void paintLegend(QPainter &painter);
    void paintOverviewMap(QPainter &painter);
    QRectF overviewRect() const;

    // dag_view_traffic.cpp: communication on the lines, the moment that is played
    void paintTrafficAndMoment(QPainter &painter);
    std::optional<std::size_t> trafficAt(QPointF view) const;
    bool clickTraffic(QPointF view);

    // dag_view_actions.cpp
    void createActions();
    void createViewActions();
    void filterLikeFocus();
    bool triggerShortcut(const QKeyEvent &event);

    // dag_view_input.cpp: pointer, keys
    void setHovered(std::int32_t box);
    void setFocused(std::int32_t box, bool reveal);
    void click(QPointF view, Qt::KeyboardModifiers modifiers);
    void selectBox(std::int32_t box, Qt::KeyboardModifiers modifiers);
    void selectInside(const QRectF &view, bool touching, Qt::KeyboardModifiers modifiers);
    void moveFocus(int dx, int dy);
    void walkEdge(bool forwards);
    void toggleFocused();
    void selectSameKind(std::int32_t item);
    void selectSame(bool device);
    void jumpOverview(QPointF view);
    bool toggleLegend(QPointF view);
    bool jumpAlongEdge(QPointF view);
    void nudgeBy(std::int32_t item, double dx, double dy);
    // dag_view_navigation.cpp
    DagPlace placeNow() const;
    void remember();
    void goTo(const DagPlace &place);
    void applyRestore();
    // dag_view_select.cpp
    /// What is selected, or where nothing is, what the focused box stands for.
    std::vector<OperatorId> selectedOrFocused() const;
    std::vector<std::int32_t> selectedUnits() const;
    void selectUnits(const std::vector<std::int32_t> &units);
    void choose(std::function<DagChoice(const DagOutline &, const std::stop_token &)> find);
    void take(const std::shared_ptr<const DagChoice> &choice);
    void takeChoice();
    void selectWithinCone(int depth);
    void closeCone();
    // dag_view_tools.cpp
    CanvasTool toolInHand() const;
    void startMeasure(QPointF view);
    void measureTo(QPointF view);
    void takeMeasure();
    void clearMeasure();
    void paintMeasure(QPainter &painter);
    // dag_view_find.cpp
    void takeSearch();
    BoxFacts boxFacts(std::int32_t box) const;
    QString tooltipOf(std::int32_t box) const;
    void search(const QString &text);
    void stepMatch(int by);
    void placeFindBar();

    GraphSnapshot m_graph;
    std::shared_ptr<const OperatorFacts> m_facts = std::make_shared<const OperatorFacts>();
    ColourBy m_colourBy = ColourBy::Kind;
    DagMode m_mode = DagMode::Folded;
    std::optional<DagFlow> m_wantedFlow;
    DagFlow m_flow = DagFlow::Down;
    std::shared_ptr<const DagOutline>
        m_outline; ///< Of the picture in sight, or of the one that is laid out first.
    std::shared_ptr<const DagOutline>
        m_nextOutline; ///< Laid out, while the picture in sight is still of another.
    QFutureWatcher<std::shared_ptr<const DagOutline>> m_outlineWatcher{this};
    bool m_outlineBusy = false;
    DagState m_state;
    LayoutService m_layout;
    std::shared_ptr<const FontTable> m_fontTable;

    DagPictureSnapshot m_picture;
    DagPictureSnapshot m_arrived; ///< Laid out, not decorated yet.
    DagDecorator m_decorator;
    DagDecorSnapshot m_decor; ///< Of `m_picture`.
    std::set<std::int32_t> m_filter; ///< Keys of the legend.
    mutable std::vector<QRectF> m_legendRects;
    std::vector<OperatorId> m_conflicts;
    std::vector<std::uint8_t> m_marks;
    DagCamera m_camera;
    std::size_t m_initialBoxes = 0; ///< How much the first picture may open; 0 once it is shown.
    bool m_fitNext = true; ///< The next picture is shown whole.
    bool m_fitted = false; ///< All is shown, and stays so when the window's size changes.
    std::optional<Anchor> m_anchor;
    std::optional<std::int32_t> m_revealUnit; ///< To bring into sight with the next picture.
    QStringList m_breadcrumbs;
    std::vector<std::int32_t> m_breadcrumbItems;
    DagHistory m_history;
    std::optional<DagPlace> m_goTo; ///< To show from with the next picture.
    QString m_restore; ///< A state of the view that waits for its model.
    QStringList m_bookmarks;
    std::map<std::string, QPointF> m_nudges; ///< By path, as given; those that exist are in `m_state`.
    std::int32_t m_nudgedItem = -1;

    bool m_reducedMotion = false;
    DagScene m_morphScene;
    std::vector<SceneRect> m_morphFrom; ///< By box: where each came from, in the new picture's coordinates.
    QElapsedTimer m_morphTime;
    QTimer m_morph;

    SelectionModel m_ownSelection;
    SelectionModel *m_selection = &m_ownSelection;
    bool m_hoveringHere = false;

    Gesture m_gesture = Gesture::None;
    QPointF m_pressed;
    QPointF m_last;
    bool m_spaceHeld = false;
    CanvasTool m_tool = CanvasTool::Select;
    bool m_measureHeld = false;
    bool m_measuring = false; ///< Under way from an operator.
    std::int32_t m_measureFrom = -1; ///< Box.
    std::int32_t m_measureTo = -1;
    QPointF m_measureEnd;
    bool m_measureBusy = false;
    std::shared_ptr<const DagMeasure> m_measure;
    QFutureWatcher<std::shared_ptr<const DagMeasure>> m_measureWatcher{this};
    std::stop_source m_measureStop;
    DagConeBar *m_coneBar;
    std::shared_ptr<const DagChoice> m_cone; ///< What the bar is about.
    bool m_choosing = false;
    QFutureWatcher<std::shared_ptr<const DagChoice>> m_choiceWatcher{this};
    std::stop_source m_choiceStop;
    std::int32_t m_hovered = -1;
    std::int32_t m_focused = -1;
    std::int32_t m_focusedItem = -1;

    DagGestureLayer *m_gestures;
    std::shared_ptr<const PlanUpdate> m_update;
    DagFindBar *m_findBar;
    QFutureWatcher<std::shared_ptr<const DagSearch>> m_searchWatcher{this};
    std::stop_source m_searchStop;
    bool m_searching = false;
    int m_stepWhenFound = 0;
    std::vector<OperatorId> m_found; ///< All operators of the last search.
    std::vector<std::int32_t> m_matches; ///< Units of the outline, ascending.
    int m_match = -1; ///< Index into `m_matches`.

    mutable QPixmap m_overview; ///< Painted when needed.

    bool m_communicationShown = true;
    PaintedBadges m_painted; ///< Of the last frame.
    std::pair<OperatorId, TensorId> m_markedCommunication; ///< Invalid for none.
    DagMoment m_moment;
};

} // namespace planloom
