#include "widgets/dag/dag_view.h"

#include "widgets/common/format.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/design/engine_job.h"

#include <QtCore/QEvent>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintEvent>
#include <QtGui/QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kFitMargin = 24;
constexpr std::size_t kMostInitialBoxes = 32;
constexpr double kLeastFirstScale = 0.45;
constexpr double kMostFitScale = 1.25; ///< A small model is not blown up to fill the window.

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

} // namespace

DagView::DagView(QWidget *parent)
    : QWidget(parent)
    , m_gestures(new DagGestureLayer(*this))
    , m_findBar(new DagFindBar(this))
{
    setAcceptDrops(true);
    connect(m_gestures, &DagGestureLayer::noted, this, &DagView::noted);
    createActions();
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Operator graph"));
    refreshFont();
    connect(&m_layout, &LayoutService::ready, this, &DagView::takePicture);
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
    m_selection->disconnect(this); // the own one ends before the canvas does, and would report it
}

void DagView::setGraph(GraphSnapshot graph)
{
    if (graph == m_graph)
        return;
    m_gestures->cancel();
    m_graph = std::move(graph);
    if (m_facts.plan && m_facts.plan->graph != m_graph)
        m_facts.plan = nullptr;
    m_facts.seconds.clear();
    m_picture = nullptr;
    m_outline = nullptr;
    m_overview = {};
    m_fitNext = true;
    m_focused = m_hovered = m_focusedItem = -1;
    if (m_graph)
        buildOutlineNow();
    update();
    updateBreadcrumbs();
    describeForScreenReader();
}

void DagView::buildOutlineNow()
{
    m_outline = std::make_shared<const DagOutline>(buildOutline(m_graph, m_mode));
    chooseFlow();
    m_initialBoxes = kMostInitialBoxes;
    m_state = initialState(*m_outline, m_initialBoxes);
    m_fitNext = true;
    m_anchor.reset();
    m_revealUnit.reset();
    m_matches.clear();
    m_match = -1;
    if (!m_findBar->text().isEmpty() && m_findBar->isVisible())
        search(m_findBar->text());
    requestLayout();
}

void DagView::setPlan(std::shared_ptr<const Plan> plan)
{
    m_facts.plan = std::move(plan);
    refreshColours();
}

void DagView::setUpdate(std::shared_ptr<const PlanUpdate> update)
{
    m_update = std::move(update);
    m_facts.plan = m_update ? m_update->plan : nullptr;
    m_facts.seconds.clear();
    if (m_update) {
        m_facts.seconds.reserve(m_update->operatorNanoseconds.size());
        for (const auto nanoseconds : m_update->operatorNanoseconds)
            m_facts.seconds.push_back(static_cast<double>(nanoseconds) * 1e-9);
    }
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
    m_facts.seconds = std::move(secondsByOperator);
    refreshColours();
}

void DagView::setColourBy(ColourBy colourBy)
{
    if (colourBy == m_colourBy)
        return;
    m_colourBy = colourBy;
    refreshColours();
    Q_EMIT colourByChanged(colourBy);
}

void DagView::setMode(DagMode mode)
{
    if (mode == m_mode)
        return;
    m_mode = mode;
    if (m_graph)
        buildOutlineNow();
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

bool DagView::isSettled() const
{
    return !m_layout.isBusy();
}

void DagView::requestLayout()
{
    if (m_outline)
        m_layout.request(m_outline, m_state, m_flow);
}

void DagView::takePicture(const DagPictureSnapshot &picture)
{
    if (picture->outline != m_outline)
        return; // of a model that has gone
    if (m_initialBoxes > 0 && openLess(*picture))
        return;
    m_initialBoxes = 0;
    m_picture = picture;
    m_labels = labelsOf(picture->visible, picture->scene, *m_fontTable);
    m_focused = m_focusedItem >= 0 ? picture->visible.boxOfItem(m_focusedItem) : -1;
    m_hovered = -1;
    refreshColours();
    if (m_fitNext) {
        m_fitNext = false;
        fitAll();
    } else {
        applyAnchor();
    }
    if (m_revealUnit) {
        m_camera.scale = std::max(m_camera.scale, 0.7);
        const std::int32_t box = picture->visible.boxOfUnit[at(*m_revealUnit)];
        m_camera.centreOn(picture->scene.rects[at(box)], width(), height());
        setFocused(box, false);
        m_revealUnit.reset();
        m_fitted = false;
    }
    cameraMoved();
    m_gestures->pictureChanged();
    describeForScreenReader();
    Q_EMIT pictureChanged();
}

/// The first picture of a model opens only so many groups that their names can be read.
bool DagView::openLess(const DagPicture &picture)
{
    DagCamera camera;
    camera.fit(picture.scene.bounds, width(), height(), kFitMargin, kMostFitScale);
    while (camera.scale < kLeastFirstScale && m_initialBoxes > 1) {
        m_initialBoxes /= 2;
        auto state = initialState(*m_outline, m_initialBoxes);
        if (state == m_state)
            continue;
        m_state = std::move(state);
        requestLayout();
        return true;
    }
    return false;
}

void DagView::applyAnchor()
{
    if (!m_anchor)
        return;
    // The item itself, or the nearest of what it lies in: it may have been closed from outside.
    std::int32_t item = m_anchor->item;
    std::int32_t box = m_picture->visible.boxOfItem(item);
    while (box < 0 && item > 0) {
        item = m_outline->at(item).parent;
        box = m_picture->visible.boxOfItem(item);
    }
    if (box >= 0) {
        const auto &rect = m_picture->scene.rects[at(box)];
        const double down = std::min(m_anchor->down, rect.height - 1);
        m_camera.x = m_anchor->view.x() - (rect.x + m_anchor->shareX * rect.width) * m_camera.scale;
        m_camera.y = m_anchor->view.y() - (rect.y + down) * m_camera.scale;
    }
    m_anchor.reset();
}

void DagView::refreshColours()
{
    if (!m_picture)
        return;
    m_colours = coloursOf(*m_picture->outline, m_picture->visible, m_facts, m_colourBy, paletteFor(*this));
    m_overview = {};
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
    if (!m_outline)
        return;
    m_state = fullyOpen(*m_outline);
    m_fitNext = true;
    requestLayout();
}

void DagView::collapseAll()
{
    if (!m_outline)
        return;
    m_state = DagState{};
    m_fitNext = true;
    requestLayout();
}

void DagView::expandOneLevel()
{
    if (!m_picture)
        return;
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

DagView::Anchor DagView::anchorFor(std::int32_t item, std::optional<QPointF> point) const
{
    Anchor anchor;
    anchor.item = item;
    const std::int32_t box = m_picture ? m_picture->visible.boxOfItem(item) : -1;
    if (box < 0)
        return anchor;
    const auto &rect = m_picture->scene.rects[at(box)];
    if (point && viewRect(box).contains(*point)) {
        anchor.view = *point;
        anchor.shareX = (m_camera.sceneX(point->x()) - rect.x) / std::max(1.0, rect.width);
        // Within what a closed group and the title of an open one have in common.
        anchor.down = std::min(m_camera.sceneY(point->y()) - rect.y, DagMetrics::kFrameHeader);
        return anchor;
    }
    // The top's middle, or as much of it as is in sight.
    const QRectF shown = viewRect(box).intersected(QRectF(QWidget::rect()));
    const double x = shown.isEmpty() ? viewRect(box).center().x() : shown.center().x();
    anchor.shareX = (m_camera.sceneX(x) - rect.x) / std::max(1.0, rect.width);
    anchor.down = 0;
    anchor.view = {x, m_camera.viewY(rect.y)};
    return anchor;
}

void DagView::toggleItem(std::int32_t item, std::optional<QPointF> anchor)
{
    if (!m_outline || item <= 0 || at(item) >= m_outline->items.size()
        || m_outline->at(item).kind == OutlineItem::Kind::Operator)
        return;
    m_anchor = anchorFor(item, anchor);
    if (m_state.open.erase(item) == 0)
        m_state.open.insert(item);
    m_fitted = false;
    requestLayout();
}

void DagView::toggleCopies(std::int32_t item)
{
    if (!m_outline || item <= 0 || m_outline->at(item).kind != OutlineItem::Kind::Stack)
        return;
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
    m_camera.fit(m_picture->scene.bounds, width(), height(), kFitMargin, kMostFitScale);
    m_fitted = true;
    cameraMoved();
}

void DagView::fitSelection()
{
    if (!m_picture)
        return;
    SceneRect around;
    bool any = false;
    for (std::size_t box = 1; box < m_marks.size(); ++box) {
        const bool focusOnly = m_selection->selected().empty();
        const bool wanted = focusOnly
            ? static_cast<std::int32_t>(box) == m_focused
            : !m_picture->visible.boxes[box].frame && (m_marks[box] & (kMarkSelected | kMarkPartly)) != 0;
        if (!wanted)
            continue;
        const auto &rect = m_picture->scene.rects[box];
        if (!any) {
            around = rect;
            any = true;
            continue;
        }
        const double right = std::max(around.right(), rect.right());
        const double bottom = std::max(around.bottom(), rect.bottom());
        around.x = std::min(around.x, rect.x);
        around.y = std::min(around.y, rect.y);
        around.width = right - around.x;
        around.height = bottom - around.y;
    }
    if (!any) {
        fitAll();
        return;
    }
    m_camera.fit(around, width(), height(), 60, 1.5);
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
}

void DagView::updateBreadcrumbs()
{
    QStringList labels;
    if (m_picture) {
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
        text += QLatin1Char(' ')
            + tr("Focus: %1, %2.").arg(m_labels.titles[at(m_focused)], m_labels.subtitles[at(m_focused)]);
    setAccessibleDescription(text);
}

void DagView::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    m_overview = {};
    if (m_fitted)
        fitAll();
    placeFindBar();
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
        .labels = m_labels,
        .colours = m_colours,
        .palette = palette,
        .camera = m_camera,
        .width = static_cast<double>(width()),
        .height = static_cast<double>(height()),
        .font = font(),
        .marks = m_marks,
        .hovered = m_hovered,
        .focused = m_focused,
        .hasFocus = hasFocus()};
    paintDag(painter, paint);
    paintOverlays(painter);
    m_gestures->paint(painter);
}

} // namespace planloom
