#include "widgets/dag/dag_view.h"

#include "engine/base/background_disposal.h"
#include "engine/base/ids.h"
#include "widgets/common/canvas_legend.h"
#include "widgets/common/format.h"
#include "widgets/dag/dag_accessible.h"
#include "widgets/dag/dag_cone_bar.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/design/plan_update.h"

#include <QtCore/QEvent>
#include <QtGui/QPaintEvent>
#include <QtGui/QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr int kMorphMilliseconds = 150;
constexpr int kFrameMilliseconds = 16;

} // namespace

DagView::DagView(QWidget *parent)
    : QWidget(parent)
    , m_coneBar(new DagConeBar(this))
    , m_gestures(new DagGestureLayer(*this))
    , m_findBar(new DagFindBar(this))
{
    setAcceptDrops(true);
    connect(m_gestures, &DagGestureLayer::noted, this, &DagView::noted);
    installDagAccessibility();
    createActions();
    createViewActions();
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Operator graph"));
    refreshFont();
    connect(&m_outlineWatcher, &QFutureWatcherBase::finished, this, &DagView::takeOutline);
    connect(&m_layout, &LayoutService::ready, this, &DagView::takePicture);
    connect(&m_decorator, &DagDecorator::ready, this, &DagView::adopt);
    connect(&m_searchWatcher, &QFutureWatcherBase::finished, this, &DagView::takeSearch);
    connect(&m_choiceWatcher, &QFutureWatcherBase::finished, this, &DagView::takeChoice);
    connect(&m_measureWatcher, &QFutureWatcherBase::finished, this, &DagView::takeMeasure);
    connect(m_coneBar, &DagConeBar::depthChanged, this, &DagView::selectWithinCone);
    connect(m_coneBar, &DagConeBar::closed, this, &DagView::closeCone);
    m_morph.setInterval(kFrameMilliseconds);
    connect(&m_morph, &QTimer::timeout, this, [this] {
        if (m_morphTime.elapsed() >= kMorphMilliseconds)
            m_morph.stop();
        update();
    });
    connect(m_findBar, &DagFindBar::allAsked, this, &DagView::selectMatches);
    connect(m_findBar, &DagFindBar::rowAsked, this, &DagView::askRowFromMatches);
    connect(m_findBar, &DagFindBar::textChanged, this, &DagView::search);
    connect(m_findBar, &DagFindBar::nextAsked, this, &DagView::findNext);
    connect(m_findBar, &DagFindBar::previousAsked, this, &DagView::findPrevious);
    connect(m_findBar, &DagFindBar::closed, this, [this] {
        m_findBar->hide();
        search({});
        setFocus();
    });
    setSelectionModel(nullptr);
    describeForScreenReader();
}

DagView::~DagView()
{
    m_searchStop.request_stop();
    m_choiceStop.request_stop();
    m_measureStop.request_stop();
    m_selection->disconnect(this); // the own one ends before the canvas does, and would report it
}

void DagView::setGraph(GraphSnapshot graph)
{
    if (graph == m_graph)
        return;
    m_gestures->cancel();
    clearMeasure();
    closeCone();
    m_choiceStop.request_stop();
    m_choosing = false;
    m_graph = std::move(graph);
    changeFacts([this](OperatorFacts &facts) {
        if (facts.plan && facts.plan->graph != m_graph)
            facts.plan = nullptr;
        facts.seconds.clear();
        facts.values.clear();
    });
    m_picture = nullptr;
    m_arrived = nullptr;
    m_decor = nullptr;
    m_decorator.cancel();
    m_outline = m_nextOutline = nullptr;
    m_overview = {};
    m_fitNext = true;
    m_focused = m_hovered = m_focusedItem = -1;
    m_history.clear();
    m_filter.clear();
    m_nudges.clear();
    m_matches.clear();
    m_found.clear();
    m_match = -1;
    m_searchStop.request_stop();
    m_searching = false;
    m_outlineBusy = false;
    if (m_graph)
        startOutline();
    m_gestures->pictureChanged();
    update();
    updateBreadcrumbs();
    describeForScreenReader();
}

/// Facts are shared with workers, so they change as a whole.
void DagView::changeFacts(const std::function<void(OperatorFacts &)> &change)
{
    OperatorFacts facts = *m_facts;
    change(facts);
    m_facts = sharedInBackground(std::move(facts));
}

void DagView::setPlan(std::shared_ptr<const Plan> plan)
{
    changeFacts([&](OperatorFacts &facts) { facts.plan = std::move(plan); });
    refreshColours();
}

void DagView::setUpdate(std::shared_ptr<const PlanUpdate> update)
{
    m_update = std::move(update);
    changeFacts([this](OperatorFacts &facts) {
        facts.plan = m_update ? m_update->plan : nullptr;
        facts.seconds.clear();
        if (!m_update)
            return;
        facts.seconds.reserve(m_update->operatorNanoseconds.size());
        for (const auto nanoseconds : m_update->operatorNanoseconds)
            facts.seconds.push_back(static_cast<double>(nanoseconds) * 1e-9);
    });
    refreshColours();
}

const TimelineSummary *DagView::summary() const
{
    return m_update && m_update->scene ? &m_update->summary : nullptr;
}

void DagView::setGestureHost(GestureHost *host)
{
    m_gestures->setHost(host);
}

void DagView::setTimes(std::vector<double> secondsByOperator)
{
    changeFacts([&](OperatorFacts &facts) { facts.seconds = std::move(secondsByOperator); });
    refreshColours();
}

void DagView::setValues(ColourBy colourBy, std::vector<double> valuesByOperator)
{
    changeFacts([&](OperatorFacts &facts) {
        if (valuesByOperator.empty())
            facts.values.erase(colourBy);
        else
            facts.values[colourBy] = std::move(valuesByOperator);
    });
    if (colourBy == m_colourBy)
        refreshColours();
}

void DagView::setDifference(const std::vector<std::uint8_t> &kindByOperator)
{
    setValues(ColourBy::Difference, {kindByOperator.begin(), kindByOperator.end()});
}

const DagColours &DagView::colours() const
{
    static const DagColours kNone;
    return m_decor ? m_decor->colours : kNone;
}

const std::vector<OrderArrow> &DagView::orders() const
{
    static const std::vector<OrderArrow> kNone;
    return m_decor ? m_decor->orders : kNone;
}

const std::vector<std::int32_t> &DagView::operatorsOnDevice() const
{
    static const std::vector<std::int32_t> kNone;
    return m_decor ? m_decor->operatorsOnDevice : kNone;
}

void DagView::setColourBy(ColourBy colourBy)
{
    if (colourBy == m_colourBy)
        return;
    m_colourBy = colourBy;
    m_filter.clear();
    refreshColours();
    Q_EMIT colourByChanged(colourBy);
}

void DagView::setMode(DagMode mode)
{
    if (mode == m_mode)
        return;
    m_mode = mode;
    m_gestures->cancel();
    m_nextOutline = nullptr;
    if (m_graph)
        startOutline();
    Q_EMIT modeChanged(mode);
}

void DagView::setFlow(std::optional<DagFlow> flow)
{
    m_wantedFlow = flow;
    const DagFlow before = m_flow;
    chooseFlow();
    if (m_flow == before)
        return;
    m_fitNext = true;
    requestLayout();
}

void DagView::chooseFlow()
{
    m_flow = m_wantedFlow.value_or(width() > 2 * height() ? DagFlow::Right : DagFlow::Down);
}

void DagView::setSelectionModel(SelectionModel *selection)
{
    m_selection->disconnect(this);
    m_selection = selection != nullptr ? selection : &m_ownSelection;
    connect(m_selection, &SelectionModel::selectionChanged, this, [this] {
        m_markedCommunication = {};
        if (m_cone)
            closeCone(); // something else is selected
        refreshMarks();
        m_gestures->selectionChanged();
        describeForScreenReader();
        update();
    });
    connect(m_selection, &SelectionModel::hoveredChanged, this, [this] {
        if (m_hoveringHere || !m_picture)
            return;
        const auto op = m_selection->hovered();
        const auto &units = m_outline->unitOfOperator;
        const std::int32_t unit = op.valid() && at(op.index) < units.size() ? units[at(op.index)] : -1;
        m_hovered =
            unit >= 0 && m_picture->outline == m_outline ? m_picture->visible.boxOfUnit[at(unit)] : -1;
        update();
    });
    connect(m_selection, &QObject::destroyed, this, [this](QObject *gone) {
        if (gone == m_selection)
            setSelectionModel(nullptr);
    });
    refreshMarks();
    update();
}

void DagView::setLayoutHelper(const QString &program)
{
    m_layout.setHelper(program);
}

void DagView::refreshColours()
{
    requestDecor();
}

void DagView::setLegendFilter(std::set<std::int32_t> keys)
{
    m_filter = std::move(keys);
    refreshMarks();
    update();
}

void DagView::setConflicts(std::vector<OperatorId> operators)
{
    if (operators == m_conflicts)
        return;
    m_conflicts = std::move(operators);
    refreshMarks();
    update();
}

void DagView::refreshMarks()
{
    if (!m_picture)
        return;
    const auto &visible = m_picture->visible;
    const auto &units = m_picture->outline->units;
    const std::size_t boxes = visible.boxes.size();
    m_marks.assign(boxes, 0);
    std::vector<std::int32_t> chosen(boxes, 0);
    std::vector<std::int32_t> total(boxes, 0);
    const auto &selected = m_selection->selected();
    std::vector<bool> isSelected(units.size(), false);
    for (const auto op : selected) {
        if (at(op.index) < m_outline->unitOfOperator.size() && m_outline->unitOfOperator[at(op.index)] >= 0)
            isSelected[at(m_outline->unitOfOperator[at(op.index)])] = true;
    }
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        const auto box = at(visible.boxOfUnit[unit]);
        ++total[box];
        chosen[box] += isSelected[unit] ? 1 : 0;
    }
    for (std::size_t box = boxes; box-- > 0;) {
        if (visible.boxes[box].parent >= 0) {
            total[at(visible.boxes[box].parent)] += total[box];
            chosen[at(visible.boxes[box].parent)] += chosen[box];
        }
        if (chosen[box] > 0)
            m_marks[box] = chosen[box] == total[box] ? kMarkSelected : kMarkPartly;
    }
    for (std::size_t box = 0; box < boxes && !m_filter.empty(); ++box) {
        const auto &shares = m_decor->colours.boxes[box].shares;
        const bool shown = std::any_of(shares.begin(), shares.end(),
            [this](const ColourShare &share) { return m_filter.contains(share.key); });
        if (!shown && !visible.boxes[box].frame)
            m_marks[box] |= kMarkDimmed;
    }
    for (const OperatorId op : m_conflicts) {
        if (at(op) >= m_outline->unitOfOperator.size() || m_outline->unitOfOperator[at(op)] < 0)
            continue;
        const auto unit = at(m_outline->unitOfOperator[at(op)]);
        if (unit < visible.boxOfUnit.size())
            m_marks[at(visible.boxOfUnit[unit])] |= kMarkConflict;
    }
    for (std::size_t i = 0; i < m_matches.size(); ++i) {
        auto &mark = m_marks[at(visible.boxOfUnit[at(m_matches[i])])];
        mark = static_cast<std::uint8_t>(mark | kMarkMatch);
        if (static_cast<int>(i) == m_match)
            mark = static_cast<std::uint8_t>(mark | kMarkCurrent);
    }
}

void DagView::refreshFont()
{
    m_fontTable = std::make_shared<const FontTable>(font());
    m_layout.setMeasure(measureWith(m_fontTable));
}

void DagView::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange)
        refreshColours();
    if (event->type() == QEvent::FontChange) {
        refreshFont();
        requestLayout();
    }
    QWidget::changeEvent(event);
}

QRectF DagView::viewRect(std::int32_t box) const
{
    if (!m_picture || box < 0 || at(box) >= m_picture->scene.rects.size())
        return {};
    const auto &rect = m_picture->scene.rects[at(box)];
    return {m_camera.viewX(rect.x), m_camera.viewY(rect.y), rect.width * m_camera.scale,
        rect.height * m_camera.scale};
}

void DagView::expandAll()
{
    if (!m_outline || changing())
        return;
    remember();
    const auto nudges = m_state.nudges;
    m_state = fullyOpen(*m_outline);
    m_state.nudges = nudges;
    m_fitNext = true;
    requestLayout();
}

void DagView::collapseAll()
{
    if (!m_outline || changing())
        return;
    remember();
    m_state.open.clear();
    m_state.unstacked.clear();
    m_fitNext = true;
    requestLayout();
}

void DagView::expandOneLevel()
{
    if (!m_picture || changing())
        return;
    remember();
    bool changed = false;
    for (const auto &box : m_picture->visible.boxes) {
        if (!box.frame && m_outline->at(box.item).kind != OutlineItem::Kind::Operator)
            changed |= m_state.open.insert(box.item).second;
    }
    if (!changed)
        return;
    if (m_fitted)
        m_fitNext = true;
    requestLayout();
}

void DagView::toggleItem(std::int32_t item, std::optional<QPointF> anchor)
{
    if (!m_picture || changing() || item <= 0 || at(item) >= m_outline->items.size()
        || m_outline->at(item).kind == OutlineItem::Kind::Operator)
        return;
    remember();
    m_anchor = anchorFor(item, anchor);
    if (m_state.open.erase(item) == 0)
        m_state.open.insert(item);
    m_fitted = false;
    requestLayout();
}

void DagView::toggleCopies(std::int32_t item)
{
    if (!m_picture || changing() || item <= 0 || at(item) >= m_outline->items.size()
        || m_outline->at(item).kind != OutlineItem::Kind::Stack)
        return;
    remember();
    m_anchor = anchorFor(item, {});
    if (m_state.unstacked.erase(item) == 0)
        m_state.unstacked.insert(item);
    m_state.open.insert(item);
    m_fitted = false;
    requestLayout();
}

void DagView::fitAll()
{
    if (!m_picture)
        return;
    m_camera.fit(m_picture->scene.bounds, width(), heightAboveLegend(*this), kFitMargin, kMostFitScale);
    m_fitted = true;
    cameraMoved();
}

/// Around the nodes that are selected, in the scene; around the focused one if none is.
std::optional<SceneRect> DagView::selectionBounds() const
{
    std::optional<SceneRect> around;
    const bool focusOnly = m_selection->selected().empty();
    for (std::size_t box = 1; m_picture && box < m_marks.size(); ++box) {
        const bool wanted = focusOnly
            ? static_cast<std::int32_t>(box) == m_focused
            : !m_picture->visible.boxes[box].frame && (m_marks[box] & (kMarkSelected | kMarkPartly)) != 0;
        if (!wanted)
            continue;
        const auto &rect = m_picture->scene.rects[box];
        if (!around) {
            around = rect;
            continue;
        }
        const double right = std::max(around->right(), rect.right());
        const double bottom = std::max(around->bottom(), rect.bottom());
        around->x = std::min(around->x, rect.x);
        around->y = std::min(around->y, rect.y);
        around->width = right - around->x;
        around->height = bottom - around->y;
    }
    return around;
}

void DagView::fitSelection()
{
    if (!m_picture)
        return;
    const auto around = selectionBounds();
    if (!around) {
        fitAll();
        return;
    }
    m_camera.fit(*around, width(), height(), 60, 1.5);
    m_fitted = false;
    cameraMoved();
}

void DagView::zoomBy(double factor)
{
    m_camera.zoomAt(width() / 2.0, height() / 2.0, factor);
    m_fitted = false;
    cameraMoved();
}

void DagView::cameraMoved()
{
    updateBreadcrumbs();
    update();
    Q_EMIT viewChanged();
}

void DagView::updateBreadcrumbs()
{
    QStringList labels;
    m_breadcrumbItems.clear();
    if (m_picture) {
        m_breadcrumbItems.push_back(0);
        // The innermost frame that holds the window's middle and fills at least half of the window.
        const double x = m_camera.sceneX(width() / 2.0);
        const double y = m_camera.sceneY(height() / 2.0);
        std::int32_t innermost = 0;
        for (const auto &frame : m_picture->visible.frames) {
            const auto &rect = m_picture->scene.rects[at(frame.box)];
            const bool large =
                rect.width * m_camera.scale > width() / 2.0 || rect.height * m_camera.scale > height() / 2.0;
            if (frame.box > 0 && large && rect.contains(x, y))
                innermost = frame.box;
        }
        labels.append(QString::fromStdString(m_outline->at(0).label));
        for (const auto item : m_outline->pathTo(m_picture->visible.at(innermost).item)) {
            QString label = QString::fromStdString(m_outline->at(item).label);
            if (m_outline->at(item).kind == OutlineItem::Kind::Stack)
                label += QStringLiteral(" ×%1").arg(m_outline->at(item).children.size());
            labels.append(label);
            m_breadcrumbItems.push_back(item);
        }
    }
    if (labels == m_breadcrumbs)
        return;
    m_breadcrumbs = labels;
    Q_EMIT breadcrumbsChanged(m_breadcrumbs);
}

void DagView::describeForScreenReader()
{
    if (!m_picture) {
        setAccessibleDescription(tr("No model is open."));
        return;
    }
    QString text =
        tr("%1: %2 operators, %3 boxes in sight, %4 operators selected.")
            .arg(QString::fromStdString(m_outline->at(0).label),
                QString::fromStdString(formatCount(static_cast<std::int64_t>(m_graph->operators.size()))))
            .arg(static_cast<qsizetype>(m_picture->visible.boxes.size() - m_picture->visible.frames.size()))
            .arg(static_cast<qsizetype>(m_selection->selected().size()));
    if (m_focused > 0)
        text += QLatin1Char(' ') + tr("Focus: %1.").arg(describe(m_focused));
    setAccessibleDescription(text);
}

void DagView::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    m_overview = {};
    if (m_fitted)
        fitAll();
    placeFindBar();
    m_coneBar->place();
    updateBreadcrumbs();
}

void DagView::paintEvent(QPaintEvent * /*event*/)
{
    QPainter painter(this);
    const Palette &palette = paletteFor(*this);
    if (!m_picture) {
        painter.fillRect(rect(), palette.canvas);
        painter.setPen(palette.textMuted);
        painter.drawText(rect().adjusted(40, 0, -40, 0), Qt::AlignCenter | Qt::TextWordWrap,
            m_graph ? tr("Laying out …") : tr("Open a model to see its operators here."));
        return;
    }
    const DagPaint paint{.picture = *m_picture,
        .labels = m_decor->labels,
        .colours = m_decor->colours,
        .palette = palette,
        .camera = m_camera,
        .width = static_cast<double>(width()),
        .height = static_cast<double>(height()),
        .font = font(),
        .marks = m_marks,
        .hovered = m_hovered,
        .focused = m_focused,
        .hasFocus = hasFocus(),
        .scene = m_morph.isActive() ? &m_morphScene : nullptr};
    if (m_morph.isActive()) {
        const double t = std::min(1.0, static_cast<double>(m_morphTime.elapsed()) / kMorphMilliseconds);
        const double share = t * t * (3 - 2 * t);
        for (std::size_t box = 0; box < m_morphFrom.size(); ++box) {
            const auto &from = m_morphFrom[box];
            const auto &to = m_picture->scene.rects[box];
            m_morphScene.rects[box] = {from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share,
                from.width + (to.width - from.width) * share,
                from.height + (to.height - from.height) * share};
        }
    }
    paintDag(painter, paint);
    if (!m_morph.isActive()) {
        for (const auto &order : m_decor->orders)
            paintOrderArrow(painter, viewRect(order.from), viewRect(order.to), palette);
    }
    if (!m_morph.isActive())
        paintTrafficAndMoment(painter);
    paintOverlays(painter);
    m_gestures->paint(painter);
}

} // namespace planloom

#include "moc_dag_view.cpp"
