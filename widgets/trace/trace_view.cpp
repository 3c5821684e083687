#include "widgets/trace/trace_view.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QToolTip>

#include "engine/analyse/span_errors.h"
#include "engine/base/words.h"
#include "engine/traces/trace_cells.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/scene/communication_colour.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kWheelZoom = 1.25;
constexpr double kNotch = 120; ///< Of a wheel, in eighths of a degree.
constexpr double kKeyZoom = 1.5;
constexpr double kMostScroll = 1e6; ///< Steps of the horizontal scroll bar.
constexpr int kOutlinePixels = 3; ///< That a predicted box has to be wide for an outline,
constexpr double kPredictedShare = 0.35; ///< and what of its colour it is filled with.
constexpr int kTextPixels = 40; ///< That a box has to be wide for its name.

} // namespace

TraceView::TraceView(QWidget *parent)
    : QAbstractScrollArea(parent)
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Lanes of the trace"));
    viewport()->setMouseTracking(true);
    verticalScrollBar()->setSingleStep(rowHeight());
    connect(verticalScrollBar(), &QScrollBar::valueChanged, viewport(), qOverload<>(&QWidget::update));
    connect(horizontalScrollBar(), &QScrollBar::valueChanged, this, [this](int value) {
        if (m_scrolling || horizontalScrollBar()->maximum() == 0)
            return;
        TimeAxis axis = m_axis;
        const double hidden = extent() - canvasWidth() * m_axis.nanosecondsPerPixel;
        axis.origin = hidden * value / horizontalScrollBar()->maximum();
        setAxis(axis);
    });
}

double TraceView::extent() const
{
    if (!m_document)
        return 1;
    const std::int64_t end = std::max(m_document->end, m_match ? m_match->end : m_document->end);
    return static_cast<double>(std::max<std::int64_t>(1, end - m_document->begin));
}

int TraceView::headerWidth() const
{
    return fontMetrics().averageCharWidth() * 24;
}

int TraceView::rulerHeight() const
{
    return fontMetrics().height() + 6;
}

int TraceView::rowHeight() const
{
    return fontMetrics().height() + 4;
}

double TraceView::canvasWidth() const
{
    return std::max(viewport()->width() - headerWidth(), 1);
}

void TraceView::setDocument(TraceDocumentSnapshot document)
{
    const bool goesOn =
        document && m_document && document->trace.ranks.size() == m_document->trace.ranks.size();
    const double moved = goesOn ? static_cast<double>(m_document->begin - document->begin) : 0;
    m_document = std::move(document);
    m_selected.reset(); // a sample's events have other places
    m_match.reset();
    makeRows();
    if (goesOn && !m_fitted) {
        m_axis.origin += moved;
        setAxis(clamped(m_axis, extent(), canvasWidth()));
    } else {
        fit();
    }
}

void TraceView::setMatch(TraceMatchSnapshot match)
{
    m_match = std::move(match);
    makeRows();
    if (m_fitted)
        fit();
    else
        setAxis(clamped(m_axis, extent(), canvasWidth()));
}

void TraceView::makeRows()
{
    m_rows.clear();
    if (!m_document)
        return;
    const auto add = [this](std::size_t r, const RankTrace &rank, bool isPredicted) {
        for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane)
            if (rank.laneBegin[lane] < rank.laneBegin[lane + 1])
                m_rows.push_back(
                    {static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(lane), isPredicted});
    };
    for (std::size_t r = 0; r < m_document->trace.ranks.size(); ++r) {
        add(r, m_document->trace.ranks[r], false);
        if (m_match && r < m_match->predicted.size())
            add(r, m_match->predicted[r], true);
    }
}

const RankTrace &TraceView::traceOf(const Row &row) const
{
    return row.isPredicted ? m_match->predicted[row.rank] : m_document->trace.ranks[row.rank];
}

/// What times of the row's own clock are later than those of the axis.
std::int64_t TraceView::shiftOf(const Row &row) const
{
    return m_document->begin - (row.isPredicted ? 0 : m_document->analysis.clocks.offset[row.rank]);
}

QString TraceView::nameAt(const RankTrace &rank, const TraceEvent &event) const
{
    const Instruction *instruction = m_match ? instructionOf(*m_match, rank, event) : nullptr;
    if (!instruction)
        return toQString(rank.nameOfEvent(event).substr(0, 200));
    return toQString(spanWords(*m_match->plan, *instruction, rank.instructions[event.link].microBatch));
}

void TraceView::fit()
{
    m_fitted = true;
    setAxis(fitted(extent(), canvasWidth()));
}

void TraceView::setAxis(const TimeAxis &axis)
{
    m_axis = axis;
    updateScrollBars();
    viewport()->update();
}

void TraceView::updateScrollBars()
{
    m_scrolling = true;
    const int height = static_cast<int>(m_rows.size()) * rowHeight();
    const int shown = std::max(1, viewport()->height() - rulerHeight());
    verticalScrollBar()->setRange(0, std::max(0, height - shown));
    verticalScrollBar()->setPageStep(shown);
    const double page = canvasWidth() * m_axis.nanosecondsPerPixel;
    const double hidden = extent() - page;
    const int steps =
        hidden > 0 ? static_cast<int>(std::min(kMostScroll, hidden / m_axis.nanosecondsPerPixel) + 1) : 0;
    horizontalScrollBar()->setRange(0, steps);
    horizontalScrollBar()->setPageStep(
        hidden > 0 ? std::max(1, static_cast<int>(std::min(kMostScroll, page / hidden * steps))) : 1);
    if (hidden > 0)
        horizontalScrollBar()->setValue(
            static_cast<int>(std::clamp(m_axis.origin / hidden, 0.0, 1.0) * steps));
    m_scrolling = false;
}

void TraceView::zoom(double factor, double x)
{
    m_fitted = false;
    setAxis(clamped(zoomed(m_axis, factor, x, extent(), canvasWidth()), extent(), canvasWidth()));
}

void TraceView::reveal(TracePlace place)
{
    if (!m_document || place.first >= m_document->trace.ranks.size()
        || place.second >= m_document->trace.ranks[place.first].events.size())
        return;
    m_selected = place;
    const TraceEvent &event = m_document->trace.ranks[place.first].events[place.second];
    const double start = static_cast<double>(
        event.start + m_document->analysis.clocks.offset[place.first] - m_document->begin);
    const double duration = std::max(1000.0, static_cast<double>(event.duration));
    m_fitted = false;
    TimeAxis axis;
    axis.nanosecondsPerPixel = std::max(0.5, 3 * duration / canvasWidth());
    axis.origin = start - duration;
    setAxis(axis);
    for (std::size_t row = 0; row < m_rows.size(); ++row)
        if (m_rows[row].rank == place.first && m_rows[row].lane == event.lane && !m_rows[row].isPredicted) {
            const int y = static_cast<int>(row) * rowHeight();
            const int page = verticalScrollBar()->pageStep();
            if (y < verticalScrollBar()->value() || y + rowHeight() > verticalScrollBar()->value() + page)
                verticalScrollBar()->setValue(y - page / 2);
        }
    setAccessibleDescription(textOf(place));
}

QString TraceView::textOf(TracePlace place) const
{
    return textOf(
        Hit{{place.first, m_document->trace.ranks[place.first].events[place.second].lane}, place.second});
}

QString TraceView::textOf(const Hit &hit) const
{
    const RankTrace &rank = traceOf(hit.row);
    const TraceEvent &event = rank.events[hit.event];
    QString text =
        tr("%1\n%2 of rank %3, %4\n%5 at %6")
            .arg(nameAt(rank, event), QLatin1String(nameOf(event.kind)), QString::number(rank.rank),
                toQString(rank.lanes[event.lane].name), toQString(formatNanoseconds(event.duration)),
                toQString(formatNanoseconds(event.start - shiftOf(hit.row))));
    if (m_match && !hit.row.isPredicted && event.kind == TraceKind::Instruction) {
        const auto predicted = predictedFor(*m_match, hit.row.rank, rank.instructions[event.link]);
        text += QLatin1Char('\n');
        if (!predicted)
            text += tr("the plan has no such instruction");
        else if (*predicted > 0)
            text += tr("predicted %1: measured is %2 of it")
                        .arg(toQString(formatNanoseconds(*predicted)),
                            QString::number(
                                100.0 * static_cast<double>(event.duration) / static_cast<double>(*predicted),
                                'f', 0)
                                + QLatin1Char('%'));
        else
            text += tr("predicted to take no time");
    }
    if (isCommunication(event.kind) && event.link != kNoLink) {
        const TraceCollective &collective = rank.collectives[event.link];
        if (const std::int64_t bytes = std::max(collective.inBytes, collective.outBytes); bytes >= 0)
            text += QLatin1Char('\n') + toQString(formatBytes(Bytes{bytes}));
        if (collective.group != kNoLink) {
            const TraceGroup &group = rank.groups[collective.group];
            text += QLatin1Char('\n')
                + toQString(JoinedGroup{group.name, group.description, group.ranks, group.size}.words());
        }
    }
    if (event.launch != kNoTime)
        text += QLatin1Char('\n')
            + tr("launched %1 before").arg(toQString(formatNanoseconds(event.start - event.launch)));
    return text;
}

std::optional<TracePlace> TraceView::placeAt(QPoint point) const
{
    const auto hit = hitAt(point);
    return hit && !hit->row.isPredicted ? std::optional(TracePlace{hit->row.rank, hit->event}) : std::nullopt;
}

std::optional<TraceView::Hit> TraceView::hitAt(QPoint point) const
{
    const int y = point.y() - rulerHeight() + verticalScrollBar()->value();
    const double x = point.x() - headerWidth();
    if (!m_document || point.y() < rulerHeight() || x < 0
        || y / rowHeight() >= static_cast<int>(m_rows.size()))
        return {};
    const Row &row = m_rows[static_cast<std::size_t>(y / rowHeight())];
    const RankTrace &rank = traceOf(row);
    const std::int64_t shift = shiftOf(row);
    const auto time = static_cast<std::int64_t>(m_axis.timeAt(x)) + shift;
    if (const auto event = eventAt(rank, row.lane, time))
        return Hit{row, *event};
    // What is narrower than a pixel is hit by its cell.
    const auto begin = static_cast<std::int64_t>(m_axis.timeAt(std::floor(x))) + shift;
    const auto cells = cellsOf(rank, row.lane, begin, m_axis.nanosecondsPerPixel, 1);
    return cells.empty() ? std::optional<Hit>() : Hit{row, cells.front().event};
}

QColor TraceView::colourOf(const Row &row, const TraceEvent &event) const
{
    const Palette &palette = paletteFor(*this);
    if (const Instruction *is = m_match ? instructionOf(*m_match, traceOf(row), event) : nullptr) {
        if (isCommunication(is->kind))
            return communicationColour(palette, is->kind);
        const bool isKernel = is->kind == InstructionKind::Kernel && is->op.valid();
        return categoryColour(
            palette, isKernel ? categoryOf(m_match->plan->graph->at(is->op)) : OperatorCategory::Movement);
    }
    if (row.isPredicted)
        return palette.neutral;
    if (event.kind == TraceKind::Compute || event.kind == TraceKind::Instruction)
        return categoryColour(palette, m_document->categories[row.rank][event.name]);
    if (event.kind == TraceKind::Annotation || event.kind == TraceKind::Step)
        return mixed(palette.surface, palette.textMuted, event.kind == TraceKind::Step ? 0.45 : 0.25);
    if (event.kind == TraceKind::Copy)
        return categoryColour(palette, OperatorCategory::Movement);
    const auto kind = instructionKindOf(event.kind);
    return kind ? communicationColour(palette, *kind) : palette.neutral;
}

void TraceView::paintRuler(QPainter &painter) const
{
    const Palette &palette = paletteFor(*this);
    painter.fillRect(0, 0, viewport()->width(), rulerHeight(), palette.surfaceRaised);
    const TimeTicks ticks = ticksOf(m_axis, canvasWidth());
    painter.setPen(palette.textMuted);
    painter.drawText(QRect(4, 0, headerWidth() - 8, rulerHeight()), Qt::AlignLeft | Qt::AlignVCenter,
        m_document && m_document->isSample ? tr("first picture, %1").arg(toQString(ticks.unit))
                                           : toQString(ticks.unit));
    painter.setClipRect(headerWidth(), 0, viewport()->width(), viewport()->height());
    for (const TimeTick &tick : ticks.ticks) {
        const int x = headerWidth() + static_cast<int>(m_axis.xOf(tick.nanoseconds));
        painter.setPen(palette.grid);
        painter.drawLine(x, tick.label.empty() ? rulerHeight() - 3 : 0, x,
            tick.label.empty() ? rulerHeight() : viewport()->height());
        painter.setPen(palette.textMuted);
        painter.drawText(x + 3, rulerHeight() - 6, toQString(tick.label));
    }
    painter.setClipping(false);
}

void TraceView::paintRow(QPainter &painter, const Row &row, int y) const
{
    const Palette &palette = paletteFor(*this);
    const RankTrace &rank = traceOf(row);
    const int height = rowHeight();
    const auto begin = static_cast<std::int64_t>(m_axis.origin) + shiftOf(row);
    const int left = headerWidth();
    painter.setClipRect(left, std::max(y, rulerHeight()), viewport()->width() - left, height);
    for (const TraceCell &cell :
        cellsOf(rank, row.lane, begin, m_axis.nanosecondsPerPixel, static_cast<int>(canvasWidth()))) {
        const TraceEvent &event = rank.events[cell.event];
        const QColor whole = colourOf(row, event);
        const QColor colour = row.isPredicted ? mixed(palette.canvas, whole, kPredictedShare) : whole;
        const QRectF box(left + static_cast<double>(cell.left), y + 1,
            std::max(
                1.0, static_cast<double>(cell.right - cell.left) - (cell.right - cell.left > 3 ? 0.5 : 0)),
            height - 2);
        painter.fillRect(box, colour);
        if (row.isPredicted && box.width() > kOutlinePixels) { // an outline, as on the timeline
            painter.setPen(whole);
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
        }
        if (!row.isPredicted && m_selected == TracePlace{row.rank, cell.event} && !cell.isRun) {
            painter.setPen(QPen(palette.accent, 2));
            painter.drawRect(box.adjusted(1, 1, -1, -1));
        }
        if (box.width() > kTextPixels) {
            painter.setPen(readableOn(colour));
            const QRectF inside =
                box.intersected(QRectF(left, y, canvasWidth(), height)).adjusted(3, 0, -3, 0);
            painter.drawText(inside, Qt::AlignLeft | Qt::AlignVCenter,
                fontMetrics().elidedText(
                    nameAt(rank, event), Qt::ElideRight, static_cast<int>(inside.width())));
        }
    }
    painter.setClipping(false);
}

void TraceView::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), palette.canvas);
    if (!m_document) {
        painter.setPen(palette.textMuted);
        painter.drawText(viewport()->rect().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap,
            tr("File > Open Trace… and Run > Open Measured Run… show what the ranks of a run did: files of "
               "torch.profiler, of Nsight Systems, or the log of an exported program."));
        return;
    }
    paintRuler(painter);
    const int height = rowHeight();
    const int top = rulerHeight() - verticalScrollBar()->value();
    const int first = std::max(0, (rulerHeight() - top) / height);
    for (int i = first; i < static_cast<int>(m_rows.size()); ++i) {
        const int y = top + i * height;
        if (y > viewport()->height())
            break;
        const Row &row = m_rows[static_cast<std::size_t>(i)];
        paintRow(painter, row, y);
        const RankTrace &rank = traceOf(row);
        painter.setClipRect(0, rulerHeight(), headerWidth(), viewport()->height());
        painter.fillRect(0, y, headerWidth(), height, palette.surface);
        const bool isFirst = i == 0 || m_rows[static_cast<std::size_t>(i) - 1].rank != row.rank;
        painter.setPen(palette.grid);
        if (isFirst)
            painter.drawLine(0, y, headerWidth(), y);
        painter.setPen(isFirst ? palette.text : palette.textMuted);
        const QString lane = toQString(rank.lanes[row.lane].name);
        painter.drawText(QRect(6, y, headerWidth() - 10, height), Qt::AlignLeft | Qt::AlignVCenter,
            fontMetrics().elidedText(
                isFirst ? tr("rank %1 · %2").arg(QString::number(rank.rank), lane) : lane, Qt::ElideRight,
                headerWidth() - 10));
        painter.setClipping(false);
    }
}

void TraceView::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    if (m_fitted)
        fit();
    else
        updateScrollBars();
}

void TraceView::wheelEvent(QWheelEvent *event)
{
    const QPointF delta = event->angleDelta();
    const double along = delta.y() != 0 ? delta.y() : delta.x();
    if (event->modifiers() & Qt::ControlModifier) {
        zoom(std::pow(kWheelZoom, along / kNotch), std::max(0.0, event->position().x() - headerWidth()));
    } else if ((event->modifiers() & Qt::ShiftModifier) || delta.y() == 0) {
        TimeAxis axis = m_axis;
        axis.origin -= along * m_axis.nanosecondsPerPixel;
        m_fitted = false;
        setAxis(clamped(axis, extent(), canvasWidth()));
    } else {
        verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(delta.y() / 2));
    }
    event->accept();
}

void TraceView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton)
        return;
    m_pressed = event->position().toPoint();
    m_dragged = false;
}

void TraceView::mouseMoveEvent(QMouseEvent *event)
{
    const QPoint at = event->position().toPoint();
    if (!m_pressed)
        return;
    const QPoint moved = at - *m_pressed;
    if (!m_dragged && moved.manhattanLength() < 5)
        return;
    m_dragged = true;
    m_fitted = false;
    TimeAxis axis = m_axis;
    axis.origin -= moved.x() * m_axis.nanosecondsPerPixel;
    verticalScrollBar()->setValue(verticalScrollBar()->value() - moved.y());
    m_pressed = at;
    setAxis(clamped(axis, extent(), canvasWidth()));
}

void TraceView::mouseReleaseEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton || !m_pressed)
        return;
    m_pressed.reset();
    if (m_dragged)
        return;
    m_selected = placeAt(event->position().toPoint());
    setAccessibleDescription(m_selected ? textOf(*m_selected) : QString());
    viewport()->update();
    if (m_selected)
        Q_EMIT chosen(*m_selected);
}

void TraceView::keyPressEvent(QKeyEvent *event)
{
    const double middle = canvasWidth() / 2;
    TimeAxis axis = m_axis;
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoom(kKeyZoom, middle);
        return;
    case Qt::Key_Minus:
        zoom(1 / kKeyZoom, middle);
        return;
    case Qt::Key_Home:
        fit();
        return;
    case Qt::Key_Left:
    case Qt::Key_Right:
        axis.origin += (event->key() == Qt::Key_Left ? -1 : 1) * canvasWidth() / 8 * axis.nanosecondsPerPixel;
        m_fitted = false;
        setAxis(clamped(axis, extent(), canvasWidth()));
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
    }
}

bool TraceView::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event);
        if (const auto hit = hitAt(help->pos()))
            QToolTip::showText(help->globalPos(), textOf(*hit), viewport());
        else
            QToolTip::hideText();
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

} // namespace planloom

#include "moc_trace_view.cpp"
