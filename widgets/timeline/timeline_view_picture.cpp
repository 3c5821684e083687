#include "widgets/timeline/timeline_view.h"

#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>

#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_ghost_painter.h"
#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_overlay_painter.h"
#include "widgets/timeline/timeline_tag.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr double kPartMargin = 0.02; ///< To either side of a part of the step, of its length.

} // namespace

TimelinePicture TimelineView::picture() const
{
    TimelinePicture picture;
    picture.scene = shown().get();
    picture.outlines = m_measured ? m_scene.get() : nullptr;
    picture.rows = &m_rows;
    picture.metrics = m_metrics;
    picture.axis = m_axis;
    picture.size = viewport()->size();
    picture.scroll = verticalScrollBar()->value();
    picture.font = font();
    picture.colouring = m_colouring;
    picture.selected = &m_selected;
    picture.focus = m_focus;
    picture.focused = hasFocus();
    picture.pointer =
        m_pointer.x() >= m_metrics.header && m_hand != Hand::Pan ? m_pointer.x() - m_metrics.header : -1;
    picture.marked = m_shownTime ? static_cast<double>(m_shownTime->count()) : -1;
    picture.stale = m_stale;
    picture.conflicts = &m_conflicts;
    picture.phases = phasesHeight();
    picture.unitPinned = m_gestures.pinnedUnit() > 0;
    picture.rowOfDevice = &m_rowOfDevice;
    picture.filter = QString::fromStdString(m_arrangement.filter);
    return picture;
}

TimelineCanvas TimelineView::canvas() const
{
    return {shown().get(), &m_rows, m_axis, canvasWidth()};
}

std::optional<QRect> TimelineView::onScreen(std::int32_t device, double begin, double end,
    const std::function<std::optional<TrackPlace>(const TimelineRow &)> &placeIn) const
{
    const TimelinePicture shownPicture = picture();
    for (const TimelineRow &row : m_rows) {
        if (row.kind != TimelineRow::Kind::Device || row.lane != device)
            continue;
        const auto place = placeIn(row);
        if (!place || place->height == 0)
            continue;
        const double x0 = m_axis.xOf(begin);
        const double x1 = m_axis.xOf(end);
        const QRect area = shownPicture.canvas();
        const QRectF rect(
            area.left() + x0, shownPicture.top(row, place->top), std::max(x1 - x0, 1.0), place->height);
        const QRect visible = rect.toAlignedRect() & area;
        return visible.isEmpty() ? std::nullopt : std::optional(visible);
    }
    return {};
}

std::optional<QRect> TimelineView::rectOf(std::size_t row) const
{
    if (!m_scene || row >= shown()->timeline->spans.size())
        return {};
    const SpanColumns &spans = shown()->timeline->spans;
    const QueueKind queue = spans.queue[row];
    const auto begin = static_cast<double>(spans.start[row]);
    return onScreen(spans.device[row], begin, begin + static_cast<double>(spans.duration[row]),
        [queue](const TimelineRow &shownRow) { return shownRow.placeOf(queue); });
}

std::optional<QRect> TimelineView::rectOfBlock(std::int32_t lane, std::size_t block) const
{
    if (!m_scene || lane < 0 || static_cast<std::size_t>(lane) >= shown()->lanes.size())
        return {};
    const auto &blocks = shown()->lanes[static_cast<std::size_t>(lane)].blocks;
    if (block >= blocks.size())
        return {};
    return onScreen(lane, static_cast<double>(blocks[block].begin), static_cast<double>(blocks[block].end),
        [](const TimelineRow &row) {
            return TrackPlace{row.computeTop(), row.blocks};
        });
}

std::optional<QRect> TimelineView::rectOfBracketEnd(std::int32_t lane) const
{
    if (!m_scene || lane < 0 || static_cast<std::size_t>(lane) >= shown()->lanes.size())
        return {};
    const double end = static_cast<double>(shown()->lanes[static_cast<std::size_t>(lane)].warmUp.end);
    const double grip = 4 * m_axis.nanosecondsPerPixel;
    return onScreen(lane, end - grip, end, [](const TimelineRow &row) {
        return TrackPlace{row.bracketTop(), row.bracket};
    });
}

TimelineLanesKey TimelineView::lanesKey(
    const TimelinePicture &picture, const Palette &palette, const PlanUpdateSnapshot &would) const
{
    TimelineLanesKey key;
    key.scene = m_scene;
    key.outlines = m_measured;
    key.would = would;
    key.rows = m_rowsVersion;
    key.selected = m_selectedVersion;
    key.taken = m_gestures.taken();
    key.axis = picture.axis;
    key.size = picture.size;
    key.scroll = picture.scroll;
    key.phases = picture.phases;
    key.font = picture.font;
    key.colouring = picture.colouring;
    key.focus = picture.focus;
    key.focused = picture.focused;
    key.stale = picture.stale;
    key.ghost = picture.behindGhost;
    key.palette = &palette;
    key.ratio = viewport()->devicePixelRatioF();
    return key;
}

void TimelineView::paintEvent(QPaintEvent *)
{
    QPainter painter(viewport());
    const Palette &palette = paletteFor(*this);
    if (!m_scene) {
        painter.fillRect(viewport()->rect(), palette.canvas);
        painter.setPen(palette.textMuted);
        painter.drawText(viewport()->rect().adjusted(40, 20, -40, -20), Qt::AlignCenter | Qt::TextWordWrap,
            m_emptyText.isEmpty() ? tr("The timeline of a step appears here once there is a plan.")
                                  : m_emptyText);
        return;
    }
    TimelinePicture shownPicture = picture();
    const bool dragging = m_gestures.dragging();
    const PreviewSnapshot preview =
        dragging && m_gestures.host() ? m_gestures.host()->currentPreview() : nullptr;
    const auto &proposal = m_gestures.proposal();
    // A preview of another step of the gesture says nothing of this one.
    const bool current =
        preview && proposal && preview->proposal.edit == proposal->edit && !proposal->refusal;
    const TimelineScene *would = current && preview->update ? preview->update->scene.get() : nullptr;
    shownPicture.behindGhost = would != nullptr;
    shownPicture.would = would;
    m_lanes.paint(
        painter, lanesKey(shownPicture, palette, would ? preview->update : nullptr), [&](QPainter &lanes) {
            paintLanes(lanes, palette, shownPicture);
            paintWouldLanes(lanes, palette, shownPicture, m_gestures.ghost());
        });
    if (m_plays && m_shownTime)
        paintToCome(painter, palette, shownPicture);
    // What is selected has its outline already.
    if (m_hover.hit.span >= 0 && m_hand == Hand::None
        && !std::binary_search(
            m_selected.begin(), m_selected.end(), static_cast<std::size_t>(m_hover.hit.span)))
        paintHovered(painter, palette, shownPicture, static_cast<std::size_t>(m_hover.hit.span));
    if (m_criticalPath && m_analyst->deep() && !would)
        paintCriticalPath(painter, palette, shownPicture, *m_analyst->deep());
    if (m_chain.device >= 0 && !dragging)
        paintIdleChain(painter, palette, shownPicture, m_chain);
    const std::int64_t explained = m_hover.hit.span >= 0 ? m_hover.hit.span : hasFocus() ? m_focus.span : -1;
    if (m_analyst->deep() && explained >= 0 && !dragging && m_hand == Hand::None)
        paintArrows(painter, palette, shownPicture, *m_analyst->deep(), static_cast<std::size_t>(explained));
    const std::string refusal = proposal && proposal->refusal ? proposal->refusal->message : std::string{};
    if (dragging)
        paintGhost(
            painter, palette, shownPicture, m_gestures.ghost(), refusal, isBlocked(proposal, preview.get()));
    paintFrame(painter, palette, shownPicture);
    if (shownPicture.phases > 0) {
        const auto &analysis = m_analyst->analysis();
        paintPhases(
            painter, palette, shownPicture, analysis && analysis->steady ? &*analysis->steady : nullptr);
    }
    if (m_hover.hit.part == HitPart::LaneEdge && m_hand == Hand::None && m_gestures.host())
        paintLaneEdge(painter, palette, shownPicture, m_hover.hit.row);
    if (m_wouldEnd && !dragging)
        paintWouldEnd(painter, palette, shownPicture, *m_wouldEnd);
    if (dragging)
        paintGhostEnd(painter, palette, shownPicture, m_gestures.ghost());
    if (m_hand == Hand::Box || m_hand == Hand::ZoomBox)
        paintBox(painter, palette, shownPicture, handBox(), m_hand == Hand::ZoomBox);
    if (m_measuredTimes)
        paintMeasure(painter, palette, shownPicture, m_measuredTimes->first, m_measuredTimes->second);
    if (!m_badge.isEmpty())
        paintBadge(painter, palette, shownPicture, m_badge);
    if (dragging) {
        const bool typed = m_gestures.ghost().drag == TimelineDrag::Line;
        paintTag(painter, palette,
            tagFor(m_gestures.ghost(), proposal, preview.get(), &m_gestures.rowsInTheWay()), font(),
            typed ? m_line->geometry().bottomLeft() - QPoint(18, 12) : m_dragged, viewport()->rect());
    } else if (!m_hover.facts.empty() && m_hand == Hand::None) {
        paintFacts(painter, palette, m_hover.facts, font(), m_pointer, viewport()->rect());
    }
}

namespace {

/// What of a picture lands on the device that it is painted on.
QRect exposedBy(const QPainter &painter)
{
    const QRectF device(0, 0, painter.device()->width(), painter.device()->height());
    return painter.deviceTransform().inverted().mapRect(device).toAlignedRect();
}

} // namespace

std::optional<TimelinePart> TimelineView::partOfSelection() const
{
    if (!m_scene)
        return {};
    // A large selection is gathered on a worker, which may not be done yet.
    const bool pending = m_selected.empty() && rowCountOf(*shown(), m_selection->selected()) > 0;
    const std::vector<std::size_t> gathered =
        pending ? rowsOf(*shown(), m_selection->selected()) : std::vector<std::size_t>{};
    const std::vector<std::size_t> &rows = pending ? gathered : m_selected;
    const SpanColumns &spans = shown()->timeline->spans;
    TimelinePart part;
    for (const DeviceLane &lane : shown()->lanes) {
        bool any = false;
        for (int queue = 0; queue < kQueueCount; ++queue) {
            // In a queue, rows are in order of time: the first and the last of them say it.
            const LaneRows own = lane.rowsOf(static_cast<QueueKind>(queue));
            const auto first = std::lower_bound(rows.begin(), rows.end(), own.begin);
            const auto behind = std::lower_bound(first, rows.end(), own.end);
            if (first == behind)
                continue;
            const std::size_t last = *std::prev(behind);
            const auto begin = static_cast<double>(spans.start[*first]);
            const auto end = static_cast<double>(spans.start[last] + spans.duration[last]);
            part.begin = any || !part.devices.empty() ? std::min(part.begin, begin) : begin;
            part.end = any || !part.devices.empty() ? std::max(part.end, end) : end;
            any = true;
        }
        if (any)
            part.devices.push_back(lane.device);
    }
    return part.devices.empty() ? std::nullopt : std::optional(part);
}

TimelinePart TimelineView::wholePart() const
{
    TimelinePart part{0, extent(), {}};
    for (const TimelineRow &row : m_rows) {
        if (row.kind == TimelineRow::Kind::Device)
            part.devices.insert(part.devices.end(), row.devices.begin(), row.devices.end());
    }
    std::sort(part.devices.begin(), part.devices.end());
    return part;
}

std::vector<TimelineRow> TimelineView::rowsOfPart(const TimelinePart *part, int height) const
{
    const TimelineScene *beside = m_measured ? m_scene.get() : nullptr;
    if (!part)
        return layoutRows(*shown(), m_arrangement, height, m_metrics, beside);
    return rowsOfDevices(
        layoutRows(*shown(), m_arrangement, 0, m_metrics, beside), part->devices, height, m_metrics);
}

QSize TimelineView::pictureSize(int width, const TimelinePart *part) const
{
    const int frame = m_metrics.ruler + phasesHeight() + m_metrics.legend;
    return {width, frame + (m_scene ? heightOf(rowsOfPart(part, 0)) : 0)};
}

void TimelineView::render(
    QPainter &painter, const QSize &size, const Palette &palette, const TimelinePart *part) const
{
    if (!m_scene) {
        painter.fillRect(QRect(QPoint(), size), palette.canvas);
        return;
    }
    TimelinePicture whole = picture();
    const auto rows = rowsOfPart(part, size.height() - m_metrics.ruler - phasesHeight() - m_metrics.legend);
    whole.rows = &rows;
    whole.size = size;
    whole.scroll = 0;
    whole.focused = false;
    whole.pointer = -1;
    whole.marked = -1;
    whole.exposed = exposedBy(painter);
    const double width = std::max(size.width() - m_metrics.header, 1);
    if (part) {
        const double margin =
            part->begin <= 0 && part->end >= extent() ? 0 : kPartMargin * (part->end - part->begin);
        whole.axis.origin = part->begin - margin;
        whole.axis.nanosecondsPerPixel = std::max(part->end - part->begin + 2 * margin, 1.0) / width;
    } else {
        whole.axis.nanosecondsPerPixel =
            m_axis.nanosecondsPerPixel * canvasWidth() / width; // the same stretch of time
    }
    std::vector<std::int32_t> rowOfDevice(shown()->lanes.size(), -1);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row].kind == TimelineRow::Kind::Device) {
            for (const DeviceId device : rows[row].devices)
                rowOfDevice[static_cast<std::size_t>(device.index)] = static_cast<std::int32_t>(row);
        }
    }
    whole.rowOfDevice = &rowOfDevice;
    paintLanes(painter, palette, whole);
    if (m_criticalPath && m_analyst->deep())
        paintCriticalPath(painter, palette, whole, *m_analyst->deep());
    paintFrame(painter, palette, whole);
    if (whole.phases > 0) {
        const auto &analysis = m_analyst->analysis();
        paintPhases(painter, palette, whole, analysis && analysis->steady ? &*analysis->steady : nullptr);
    }
    if (!m_badge.isEmpty())
        paintBadge(painter, palette, whole, m_badge);
}

} // namespace planloom
