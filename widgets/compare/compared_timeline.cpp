#include "widgets/compare/compared_timeline.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QToolTip>

#include "engine/base/words.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/timeline/timeline_colours.h"
#include "widgets/timeline/timeline_text.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;
constexpr int kLaneAir = 5; ///< Pixels above and below a lane ...
constexpr int kTightAir = 1; ///< ... and where there are many.
constexpr int kLeastHalf = 3; ///< Pixels of a plan's part of a lane.
constexpr int kMostArrows = 160;
constexpr std::size_t kMostTried = 20'000; ///< Moves looked at to find those arrows.

} // namespace

ComparedTimeline::ComparedTimeline(SelectionModel *selection, QWidget *parent)
    : QAbstractScrollArea(parent)
    , m_selection(selection)
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Both timelines"));
    viewport()->setMouseTracking(true);
    connect(m_selection, &SelectionModel::selectionChanged, viewport(), qOverload<>(&QWidget::update));
}

int ComparedTimeline::header() const
{
    return fontMetrics().averageCharWidth() * 20;
}

int ComparedTimeline::ruler() const
{
    return fontMetrics().height() * 3 / 2;
}

int ComparedTimeline::half() const
{
    // Where there is room, lanes grow; where there is too little, they shrink until all are in sight.
    const int least = leastHalf();
    const int room = roomOfLane() - 2 * air();
    if (isTight())
        return std::clamp(room / (m_mode == Mode::Difference ? 3 : 2), kLeastHalf, least);
    const double halves = m_mode == Mode::Difference ? 4 : 3;
    return std::clamp(static_cast<int>(room / halves), least, 3 * least);
}

int ComparedTimeline::leastHalf() const
{
    return fontMetrics().height() * 5 / 4;
}

int ComparedTimeline::roomOfLane() const
{
    return (viewport()->height() - ruler()) / std::max(static_cast<int>(m_lanes.size()), 1);
}

bool ComparedTimeline::isTight() const
{
    const int strips = std::max(leastHalf() / 2, leastStrip());
    const int halves = m_mode == Mode::Difference ? 3 : 2;
    return roomOfLane() < halves * leastHalf() + 2 * strips + 2 * kLaneAir;
}

int ComparedTimeline::air() const
{
    return isTight() ? kTightAir : kLaneAir;
}

int ComparedTimeline::leastStrip() const
{
    constexpr int kLeastTrack = 8; // pixels
    return m_mostTracks > 1 ? m_mostTracks * kLeastTrack : 0;
}

int ComparedTimeline::strip() const
{
    return isTight() ? 0 : std::max(half() / 2, leastStrip());
}

TrackPlace ComparedTimeline::placeOf(const ComparedLane &lane, bool ofB, QueueKind queue) const
{
    // A's communication above its compute part, B's below: compute parts face each other.
    //
    //     tensor |
    //     data   |  A
    //     compute|
    //     (gap, for arrows)
    //     compute|
    //     tensor |  B
    //     data   |
    const int own = air() + (ofB ? strip() + half() + gap() : 0);
    if (queue == QueueKind::Compute)
        return {own + (ofB ? 0 : strip()), half()};
    const int top = own + (ofB ? half() : 0);
    return trackIn(lane.queues, queue, top, strip()).value_or(TrackPlace{top, strip()});
}

int ComparedTimeline::gap() const
{
    return m_mode == Mode::Difference ? half() : 0;
}

int ComparedTimeline::laneHeight() const
{
    return 2 * half() + 2 * strip() + gap() + 2 * air();
}

int ComparedTimeline::topOf(std::size_t lane) const
{
    return ruler() + static_cast<int>(lane) * laneHeight() - verticalScrollBar()->value();
}

double ComparedTimeline::extent() const
{
    double longest = 0;
    if (m_result) {
        for (const PlanUpdateSnapshot &plan : {m_result->a, m_result->b}) {
            if (plan->scene)
                longest = std::max(longest, static_cast<double>(plan->scene->timeline->step.count()));
        }
    }
    return longest;
}

double ComparedTimeline::canvasWidth() const
{
    return std::max(viewport()->width() - header(), 1);
}

void ComparedTimeline::setResult(CompareSnapshot result)
{
    m_result = std::move(result);
    m_lanes.clear();
    if (m_result)
        m_lanes = comparedLanes(m_result->a->scene.get(), m_result->b->scene.get());
    m_mostTracks = 1;
    for (const ComparedLane &lane : m_lanes)
        m_mostTracks = std::max(m_mostTracks, lane.queues.count());
    m_laneOfDevice.clear();
    for (std::size_t i = 0; i < m_lanes.size(); ++i) {
        for (const DeviceId device : m_lanes[i].devices) {
            m_laneOfDevice.resize(
                std::max(m_laneOfDevice.size(), static_cast<std::size_t>(device.index) + 1), -1);
            m_laneOfDevice[static_cast<std::size_t>(device.index)] = static_cast<std::int32_t>(i);
        }
    }
    if (m_fitted)
        m_axis = fitted(extent(), canvasWidth());
    relayout();
    if (m_result) {
        setAccessibleDescription(tr("%1 spans moved, %2 only in A, %3 only in B, %4 where they were")
                                     .arg(m_result->moves.moved.size())
                                     .arg(m_result->moves.onlyA.size())
                                     .arg(m_result->moves.onlyB.size())
                                     .arg(m_result->moves.same));
    }
}

void ComparedTimeline::setMode(Mode mode)
{
    m_mode = mode;
    relayout();
}

void ComparedTimeline::setAxis(const TimeAxis &axis)
{
    m_fitted = false;
    m_axis = axis;
    viewport()->update();
}

void ComparedTimeline::setShift(double nanoseconds)
{
    m_shift = nanoseconds;
    viewport()->update();
}

TimeAxis ComparedTimeline::axisOf(bool ofB) const
{
    TimeAxis axis = m_axis;
    if (ofB)
        axis.origin += m_shift;
    return axis;
}

void ComparedTimeline::moveAxis(const TimeAxis &axis)
{
    m_axis = axis;
    viewport()->update();
    Q_EMIT axisChanged(m_axis);
}

void ComparedTimeline::relayout()
{
    const int height = static_cast<int>(m_lanes.size()) * laneHeight();
    const int room = std::max(viewport()->height() - ruler(), 1);
    verticalScrollBar()->setRange(0, std::max(0, height - room));
    verticalScrollBar()->setPageStep(room);
    verticalScrollBar()->setSingleStep(laneHeight() / 3);
    viewport()->update();
}

std::optional<QRectF> ComparedTimeline::rectOf(bool ofB, std::size_t row) const
{
    const TimelineSceneSnapshot scene = m_result ? (ofB ? m_result->b : m_result->a)->scene : nullptr;
    if (!scene)
        return {};
    const SpanColumns &spans = scene->timeline->spans;
    const std::int32_t lane = m_laneOfDevice[static_cast<std::size_t>(spans.device[row])];
    if (lane < 0)
        return {};
    const TrackPlace place = placeOf(m_lanes[static_cast<std::size_t>(lane)], ofB, spans.queue[row]);
    const TimeAxis axis = axisOf(ofB);
    const double x0 = axis.xOf(static_cast<double>(spans.start[row]));
    const double x1 = axis.xOf(static_cast<double>(spans.start[row] + spans.duration[row]));
    return QRectF(header() + x0, topOf(static_cast<std::size_t>(lane)) + place.top, std::max(x1 - x0, 1.0),
        place.height);
}

void ComparedTimeline::paintHalf(
    QPainter &painter, const Palette &palette, const ComparedLane &lane, bool ofB, int top)
{
    const TimelineSceneSnapshot &scene = (ofB ? m_result->b : m_result->a)->scene;
    const std::int32_t index = ofB ? lane.b : lane.a;
    if (!scene || index < 0)
        return;
    const TrackPlace computePlace = placeOf(lane, ofB, QueueKind::Compute);
    const QColor idle = mixed(palette.canvas, palette.textMuted, 0.12);
    const TimeAxis axis = axisOf(ofB);
    const double end = axis.xOf(static_cast<double>(scene->timeline->step.count()));
    const double begin = std::max(axis.xOf(0), 0.0);
    painter.fillRect(QRectF(header() + begin, top + computePlace.top,
                         std::max(0.0, std::min(end, canvasWidth()) - begin), computePlace.height),
        idle);
    const SpanSubset &subset = ofB ? m_result->moves.toB : m_result->moves.fromA;
    const bool all = m_mode == Mode::Butterfly;
    const SpanColumns &spans = all ? scene->timeline->spans : subset.spans;
    const std::vector<BusyBefore> &before = all ? scene->before : subset.before;
    const DeviceLane &device = scene->lanes[static_cast<std::size_t>(index)];
    const auto d = static_cast<std::size_t>(device.device.index);
    std::vector<DrawRecord> records;
    const auto draw = [&](QueueKind queue) {
        const TrackPlace place = placeOf(lane, ofB, queue);
        const LaneRows rows = all ? device.rowsOf(queue) : subset.rowsOf(d, queue);
        const bool isCommunication = queue != QueueKind::Compute;
        records.clear();
        foldSpans(spans, before, rows, axis, canvasWidth(), records);
        for (const DrawRecord &record : records) {
            const std::size_t middle = record.row + static_cast<std::size_t>(record.count) / 2;
            const std::size_t row = all ? middle : subset.rows[middle];
            const Instruction *instruction = scene->findInstruction(row);
            const QColor colour = !isCommunication
                ? computeColour(palette, *scene, TimelineColouring::Direction, row)
                : instruction ? communicationColour(palette, instruction->kind)
                              : palette.neutral;
            const double left = std::max(record.x0, -2.0);
            const double right = std::min(std::max(record.x1, record.x0 + 1), canvasWidth() + 2);
            const QRectF box(header() + left, top + place.top, std::max(right - left, 1.0), place.height);
            const bool old = !all && !ofB;
            if (old) { // where it was: an outline
                painter.fillRect(box, mixed(palette.canvas, colour, 0.22 * record.busy + 0.05));
                painter.setPen(QPen(colour, 1, Qt::DotLine));
                if (box.width() > 3)
                    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
            } else {
                painter.fillRect(box, mixed(idle, colour, 0.2 + 0.8 * record.busy));
            }
            if (record.count == 1 && m_selection->contains(scene->operatorOf(row))) {
                painter.setPen(QPen(palette.accent, 2));
                painter.drawRect(box.adjusted(1, 1, -1, -1));
            }
            if (record.count == 1 && box.width() > fontMetrics().averageCharWidth() * 5 && !isCommunication) {
                painter.setPen(old ? palette.text : readableOn(colour));
                painter.drawText(box.adjusted(2, 0, -2, 0), Qt::AlignCenter,
                    fontMetrics().elidedText(
                        toQString(labelOf(*scene, row)), Qt::ElideRight, static_cast<int>(box.width()) - 4));
            }
        }
    };
    for (int queue = 0; queue < kQueueCount; ++queue)
        draw(static_cast<QueueKind>(queue));
}

void ComparedTimeline::paintArrows(QPainter &painter, const Palette &palette)
{
    m_arrows = 0;
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF area(header(), ruler(), canvasWidth(), viewport()->height() - ruler());
    const auto &moved = m_result->moves.moved;
    const double head = std::max(fontMetrics().height() * 0.28, 4.0);
    for (std::size_t i = 0; i < std::min(moved.size(), kMostTried) && m_arrows < kMostArrows; ++i) {
        const auto from = rectOf(false, moved[i].a);
        const auto to = rectOf(true, moved[i].b);
        if (!from || !to || (from->width() < kFoldPixels && to->width() < kFoldPixels))
            continue;
        const QPointF begin(from->center().x(), from->bottom());
        const QPointF end(to->center().x(), to->top());
        if (!area.contains(begin) && !area.contains(end))
            continue;
        if (std::abs(begin.x() - end.x()) < 2 && std::abs(begin.y() - end.y()) < 2)
            continue; // longer or shorter, and where it was
        painter.setPen(QPen(mixed(palette.canvas, palette.text, 0.75), 1.2));
        painter.setBrush(Qt::NoBrush);
        const double reach = std::max(6.0, std::abs(end.y() - begin.y()) * 0.5);
        QPainterPath path(begin);
        path.cubicTo(begin + QPointF(0, reach), end - QPointF(0, reach), end);
        painter.drawPath(path);
        painter.setBrush(palette.text);
        painter.setPen(Qt::NoPen);
        painter.drawPolygon(
            QPolygonF{end, end + QPointF(-head * 0.6, -head), end + QPointF(head * 0.6, -head)});
        ++m_arrows;
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void ComparedTimeline::paintEvent(QPaintEvent *)
{
    QPainter painter(viewport());
    const Palette &palette = paletteFor(*this);
    painter.fillRect(viewport()->rect(), palette.canvas);
    const bool complete = m_result && m_result->a->scene && m_result->b->scene;
    if (!complete || (m_mode == Mode::Difference && m_result->moves.empty())) {
        painter.setPen(palette.textMuted);
        painter.drawText(viewport()->rect().adjusted(30, 20, -30, -20), Qt::AlignCenter | Qt::TextWordWrap,
            complete ? tr("Nothing moved: every span is where it was.")
                     : tr("Two plans with timelines appear here beside each other."));
        m_arrows = 0;
        return;
    }
    QFont small = font();
    small.setPointSizeF(std::max(font().pointSizeF() * 0.85, 6.5));
    const QFontMetrics metrics(small);
    painter.setClipRect(
        QRect(header(), ruler(), viewport()->width() - header(), viewport()->height() - ruler()));
    const TimeTicks ticks = ticksOf(m_axis, canvasWidth());
    painter.setPen(palette.grid);
    for (const TimeTick &tick : ticks.ticks) {
        if (tick.label.empty())
            continue;
        const double x = header() + m_axis.xOf(tick.nanoseconds);
        painter.drawLine(QPointF(x, ruler()), QPointF(x, viewport()->height()));
    }
    painter.setFont(small);
    for (std::size_t i = 0; i < m_lanes.size(); ++i) {
        const int top = topOf(i);
        if (top + laneHeight() < ruler() || top > viewport()->height())
            continue;
        paintHalf(painter, palette, m_lanes[i], false, top);
        paintHalf(painter, palette, m_lanes[i], true, top);
        if (gap() == 0) {
            const int middle = top + placeOf(m_lanes[i], true, QueueKind::Compute).top;
            painter.setPen(palette.border);
            painter.drawLine(header(), middle, viewport()->width(), middle);
        }
    }
    for (const bool ofB : {false, true}) { // where each step ends
        const double end = axisOf(ofB).xOf(
            static_cast<double>((ofB ? m_result->b : m_result->a)->scene->timeline->step.count()));
        painter.setPen(QPen(palette.text, 1, ofB ? Qt::SolidLine : Qt::DashLine));
        painter.drawLine(QPointF(header() + end, ruler()), QPointF(header() + end, viewport()->height()));
    }
    if (m_mode == Mode::Difference)
        paintArrows(painter, palette);
    else
        m_arrows = 0;

    painter.setClipping(false);
    painter.fillRect(QRect(0, ruler(), header(), viewport()->height()), palette.surface);
    int named = 0; // down to here there are names: of lanes that are lower than a line some have none
    for (std::size_t i = 0; i < m_lanes.size(); ++i) {
        const int top = topOf(i);
        if (top + laneHeight() < ruler() || top > viewport()->height())
            continue;
        if (top < named)
            continue;
        named = top + std::min(fontMetrics().height(), 2 * laneHeight());
        painter.setClipRect(QRect(0, ruler(), header(), viewport()->height()));
        painter.setFont(font());
        painter.setPen(palette.text);
        const int letter = fontMetrics().averageCharWidth() * 3;
        const int line = std::max(laneHeight(), fontMetrics().height());
        painter.drawText(QRect(8, top + (laneHeight() - line) / 2, header() - letter - 12, line),
            Qt::AlignVCenter | Qt::AlignLeft,
            fontMetrics().elidedText(toQString(m_lanes[i].title), Qt::ElideRight, header() - letter - 14));
        for (const bool ofB : {false, true}) {
            const TrackPlace place = placeOf(m_lanes[i], ofB, QueueKind::Compute);
            if (place.height * 2 > fontMetrics().height())
                painter.drawText(QRect(header() - letter, top + place.top, letter, place.height),
                    Qt::AlignCenter, ofB ? QStringLiteral("B") : QStringLiteral("A"));
        }
        painter.setPen(palette.grid);
        painter.drawLine(0, top + laneHeight() - 1, viewport()->width(), top + laneHeight() - 1);
        painter.setClipping(false);
    }
    painter.fillRect(QRect(0, 0, viewport()->width(), ruler()), palette.surfaceRaised);
    painter.setFont(small);
    painter.setPen(palette.textMuted);
    for (const TimeTick &tick : ticks.ticks) {
        if (tick.label.empty())
            continue;
        const double x = header() + m_axis.xOf(tick.nanoseconds);
        if (x < header() - 1)
            continue;
        const double half = metrics.horizontalAdvance(toQString(tick.label)) / 2.0 + 2;
        painter.drawText(QRectF(std::max(x - half, header() + 2.0), 0, 2 * half, ruler()), Qt::AlignCenter,
            toQString(tick.label));
    }
    painter.drawText(QRect(8, 0, header() - 16, ruler()), Qt::AlignVCenter | Qt::AlignLeft,
        m_mode == Mode::Difference
            ? tr("%1 moved (%2)").arg(m_result->moves.moved.size()).arg(toQString(ticks.unit))
            : tr("A above B (%1)").arg(toQString(ticks.unit)));
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 1, Qt::DotLine));
        painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
    }
}

std::optional<ComparedTimeline::Found> ComparedTimeline::findAt(QPoint position) const
{
    if (!m_result || position.x() < header() || position.y() < ruler())
        return {};
    const int content = position.y() - ruler() + verticalScrollBar()->value();
    const auto index = static_cast<std::size_t>(content / laneHeight());
    if (index >= m_lanes.size())
        return {};
    const ComparedLane &compared = m_lanes[index];
    const int within = content % laneHeight();
    const int middle = air() + strip() + half();
    if (within >= middle && within < middle + gap())
        return {}; // where the arrows are
    const bool ofB = within >= middle;
    const TrackPlace compute = placeOf(compared, ofB, QueueKind::Compute);
    const int stripTop = ofB ? compute.top + compute.height : air();
    const auto queue = within >= compute.top && within < compute.top + compute.height
        ? std::optional(QueueKind::Compute)
        : queueAt(compared.queues, within - stripTop, strip());
    const TimelineSceneSnapshot &scene = (ofB ? m_result->b : m_result->a)->scene;
    const std::int32_t lane = ofB ? compared.b : compared.a;
    if (!scene || lane < 0 || !queue)
        return {};
    const DeviceLane &device = scene->lanes[static_cast<std::size_t>(lane)];
    const LaneRows rows = device.rowsOf(*queue);
    const std::size_t row = spanAt(scene->timeline->spans, rows, axisOf(ofB).timeAt(position.x() - header()),
        2 * m_axis.nanosecondsPerPixel);
    if (row >= rows.end || row < rows.begin)
        return {};
    return Found{ofB, row};
}

QString ComparedTimeline::tooltipOf(const Found &found) const
{
    const TimelineScene &scene = *(found.ofB ? m_result->b : m_result->a)->scene;
    const auto place = [](const TimelineScene &of, std::size_t row) {
        const SpanColumns &spans = of.timeline->spans;
        return tr("device %1 at %2 for %3")
            .arg(spans.device[row])
            .arg(toQString(formatNanoseconds(spans.start[row])),
                toQString(formatNanoseconds(spans.duration[row])));
    };
    QString text = toQString(labelOf(scene, found.row))
        + tr(", micro-batch %1").arg(scene.timeline->spans.microBatch[found.row]);
    if (const QueueKind queue = scene.timeline->spans.queue[found.row]; queue != QueueKind::Compute)
        text += QStringLiteral(", ") + toQString(wordsOf(queue));
    const auto &moved = m_result->moves.moved;
    const auto pair = std::find_if(moved.begin(), moved.end(),
        [&](const SpanMove &move) { return (found.ofB ? move.b : move.a) == found.row; });
    if (pair != moved.end()) {
        return text + QLatin1Char('\n') + tr("A: %1").arg(place(*m_result->a->scene, pair->a))
            + QLatin1Char('\n') + tr("B: %1").arg(place(*m_result->b->scene, pair->b));
    }
    text += QLatin1Char('\n') + place(scene, found.row);
    const auto &only = found.ofB ? m_result->moves.onlyB : m_result->moves.onlyA;
    if (std::binary_search(only.begin(), only.end(), found.row))
        text += found.ofB ? tr("\nonly in B") : tr("\nonly in A");
    return text;
}

bool ComparedTimeline::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        auto *help = static_cast<QHelpEvent *>(event);
        if (const auto found = findAt(help->pos()))
            QToolTip::showText(help->globalPos(), tooltipOf(*found), viewport());
        else
            QToolTip::hideText();
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void ComparedTimeline::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    m_pressed = event->pos();
    m_axisPressed = m_axis;
    m_dragged = false;
}

void ComparedTimeline::mouseMoveEvent(QMouseEvent *event)
{
    if (!m_pressed)
        return;
    const int dx = event->pos().x() - m_pressed->x();
    if (!m_dragged && std::abs(dx) < 6)
        return;
    m_dragged = true;
    m_fitted = false;
    TimeAxis axis = m_axisPressed;
    axis.origin -= dx * axis.nanosecondsPerPixel;
    moveAxis(clamped(axis, extent(), canvasWidth()));
}

void ComparedTimeline::mouseReleaseEvent(QMouseEvent *event)
{
    const bool click = m_pressed && !m_dragged && event->button() == Qt::LeftButton;
    m_pressed.reset();
    if (!click)
        return;
    const auto found = findAt(event->pos());
    const OperatorId op =
        found ? (found->ofB ? m_result->b : m_result->a)->scene->operatorOf(found->row) : OperatorId{};
    if (!op.valid())
        m_selection->clear();
    else if (event->modifiers().testFlag(Qt::ControlModifier))
        m_selection->toggle({op});
    else
        m_selection->select({op});
}

void ComparedTimeline::wheelEvent(QWheelEvent *event)
{
    const QPoint delta = event->angleDelta();
    if (event->modifiers().testFlag(Qt::ControlModifier)) {
        m_fitted = false;
        moveAxis(zoomed(m_axis, std::pow(kZoomStep, delta.y() / 120.0), event->position().x() - header(),
            extent(), canvasWidth()));
    } else if (event->modifiers().testFlag(Qt::ShiftModifier) || delta.x() != 0) {
        m_fitted = false;
        TimeAxis axis = m_axis;
        axis.origin -= (delta.x() != 0 ? delta.x() : delta.y()) * axis.nanosecondsPerPixel;
        moveAxis(clamped(axis, extent(), canvasWidth()));
    } else {
        QAbstractScrollArea::wheelEvent(event);
        return;
    }
    event->accept();
}

void ComparedTimeline::keyPressEvent(QKeyEvent *event)
{
    const double shift = canvasWidth() * 0.15 * m_axis.nanosecondsPerPixel;
    TimeAxis axis = m_axis;
    switch (event->key()) {
    case Qt::Key_W:
        axis = zoomed(axis, kZoomStep, canvasWidth() / 2, extent(), canvasWidth());
        break;
    case Qt::Key_S:
        axis = zoomed(axis, 1 / kZoomStep, canvasWidth() / 2, extent(), canvasWidth());
        break;
    case Qt::Key_A:
    case Qt::Key_Left:
        axis.origin -= shift;
        break;
    case Qt::Key_D:
    case Qt::Key_Right:
        axis.origin += shift;
        break;
    case Qt::Key_Home:
        m_fitted = true;
        moveAxis(fitted(extent(), canvasWidth()));
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
        return;
    }
    m_fitted = false;
    moveAxis(clamped(axis, extent(), canvasWidth()));
}

void ComparedTimeline::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    if (m_fitted)
        m_axis = fitted(extent(), canvasWidth());
    relayout();
}

void ComparedTimeline::changeEvent(QEvent *event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::FontChange)
        relayout();
}

void ComparedTimeline::scrollContentsBy(int, int)
{
    viewport()->update();
}

} // namespace planloom

#include "moc_compared_timeline.cpp"
