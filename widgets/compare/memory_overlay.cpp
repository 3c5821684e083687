#include "widgets/compare/memory_overlay.h"

#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>

#include "widgets/common/delta.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

const MemoryCurve *curveOf(const TimelineSceneSnapshot &scene, std::int32_t lane)
{
    if (!scene || lane < 0)
        return nullptr;
    const auto device = static_cast<std::size_t>(scene->lanes[static_cast<std::size_t>(lane)].device.index);
    return device < scene->timeline->memory.size() ? &scene->timeline->memory[device] : nullptr;
}

} // namespace

MemoryOverlay::MemoryOverlay(QWidget *parent)
    : QAbstractScrollArea(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Memory of both plans"));
}

int MemoryOverlay::laneHeight() const
{
    return fontMetrics().height() * 5;
}

void MemoryOverlay::relayout()
{
    const int height = static_cast<int>(m_lanes.size()) * laneHeight();
    verticalScrollBar()->setRange(
        0, std::max(0, height - viewport()->height() + fontMetrics().height() * 3 / 2));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(laneHeight() / 3);
    viewport()->update();
}

void MemoryOverlay::setResult(CompareSnapshot result)
{
    m_result = std::move(result);
    m_lanes.clear();
    if (m_result && (m_result->a->scene || m_result->b->scene))
        m_lanes = comparedLanes(m_result->a->scene.get(), m_result->b->scene.get());
    QStringList sentences;
    for (const ComparedLane &lane : m_lanes)
        sentences << toQString(lane.title) + QStringLiteral(": ") + peakText(lane);
    setAccessibleDescription(sentences.join(QStringLiteral("; ")));
    relayout();
}

QString MemoryOverlay::peakText(const ComparedLane &lane) const
{
    const MemoryCurve *a = curveOf(m_result->a->scene, lane.a);
    const MemoryCurve *b = curveOf(m_result->b->scene, lane.b);
    if (!a || !b) {
        const MemoryCurve *one = a ? a : b;
        return one ? tr("peak %1, only in %2").arg(toQString(formatBytes(one->peak)), a ? tr("A") : tr("B"))
                   : QString();
    }
    return tr("peak %1 → %2 (%3)")
        .arg(toQString(formatBytes(a->peak)), toQString(formatBytes(b->peak)),
            toQString(percentText(static_cast<double>(a->peak.count), static_cast<double>(b->peak.count))));
}

void MemoryOverlay::paintEvent(QPaintEvent *)
{
    QPainter painter(viewport());
    const Palette &palette = paletteFor(*this);
    painter.fillRect(viewport()->rect(), palette.canvas);
    if (m_lanes.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(viewport()->rect().adjusted(30, 20, -30, -20), Qt::AlignCenter | Qt::TextWordWrap,
            tr("Memory over the step appears here once there is a timeline."));
        return;
    }
    const QFontMetrics metrics = fontMetrics();
    int header = metrics.averageCharWidth() * 16;
    for (const ComparedLane &lane : m_lanes)
        header = std::max(header, metrics.horizontalAdvance(peakText(lane)) + 20);
    header = std::min(header, viewport()->width() * 2 / 5);
    const double width = std::max(viewport()->width() - header - 12, 20);
    double step = 1;
    double most = 1;
    double cap = 0;
    for (const PlanUpdateSnapshot &plan : {m_result->a, m_result->b}) {
        if (!plan->scene)
            continue;
        step = std::max(step, static_cast<double>(plan->scene->timeline->step.count()));
        most = std::max(most, static_cast<double>(plan->scene->largestPeak));
        cap = std::max(cap, leastMemory(plan->scene->cluster));
    }
    const double scale = most > 0.6 * cap ? std::max(most, cap) * 1.05 : most * 1.08;
    const TimeAxis axis{0, step / width};
    const int legend = metrics.height() * 3 / 2;
    painter.setRenderHint(QPainter::Antialiasing);
    const QColor colourA = categoricalColour(palette, 0);
    const QColor colourB = categoricalColour(palette, 5);
    const QPen penA(colourA, 1.8, Qt::DashLine);
    const QPen penB(colourB, 1.8);
    for (std::size_t i = 0; i < m_lanes.size(); ++i) {
        const ComparedLane &lane = m_lanes[i];
        const int top = legend + static_cast<int>(i) * laneHeight() - verticalScrollBar()->value();
        if (top + laneHeight() < legend || top > viewport()->height())
            continue;
        const double bottom = top + laneHeight() - 6;
        const double height = laneHeight() - 12;
        painter.setPen(palette.text);
        painter.drawText(QRect(8, top, header - 12, laneHeight() / 2), Qt::AlignBottom | Qt::AlignLeft,
            metrics.elidedText(toQString(lane.title), Qt::ElideRight, header - 14));
        painter.setPen(palette.textMuted);
        painter.drawText(QRect(8, top + laneHeight() / 2, header - 12, laneHeight() / 2),
            Qt::AlignTop | Qt::AlignLeft, metrics.elidedText(peakText(lane), Qt::ElideRight, header - 14));
        painter.fillRect(QRectF(header, top + 6, width, height), palette.surface);
        if (cap <= scale) {
            painter.setPen(QPen(palette.error, 1, Qt::DotLine));
            const double y = bottom - cap / scale * height;
            painter.drawLine(QPointF(header, y), QPointF(header + width, y));
        }
        for (const bool ofB : {false, true}) {
            const TimelineSceneSnapshot &scene = (ofB ? m_result->b : m_result->a)->scene;
            const std::int32_t index = ofB ? lane.b : lane.a;
            const MemoryCurve *curve = curveOf(scene, index);
            if (!curve)
                continue;
            const PeakIndex &peaks = scene->lanes[static_cast<std::size_t>(index)].memory;
            const int columns = std::min(static_cast<int>(width),
                static_cast<int>(axis.xOf(static_cast<double>(scene->timeline->step.count()))));
            QPolygonF line;
            for (int column = 0; column <= columns; ++column) {
                const std::int64_t entry =
                    peaks.largestIn(*curve, axis.timeAt(column), axis.timeAt(column + 1));
                const double bytes =
                    entry < 0 ? 0 : static_cast<double>(peaks.total(static_cast<std::size_t>(entry)));
                const double y = bottom - bytes / scale * height;
                if (line.isEmpty() || line.back().y() != y) {
                    if (!line.isEmpty())
                        line << QPointF(header + column, line.back().y());
                    line << QPointF(header + column, y);
                }
            }
            if (!line.isEmpty())
                line << QPointF(header + columns, line.back().y());
            painter.setPen(ofB ? penB : penA);
            painter.drawPolyline(line);
        }
        painter.setPen(palette.grid);
        painter.drawLine(0, top + laneHeight(), viewport()->width(), top + laneHeight());
    }
    painter.fillRect(QRect(0, 0, viewport()->width(), legend), palette.surfaceRaised);
    int at = 10;
    const auto entry = [&](const QPen &pen, const QString &text) {
        painter.setPen(pen);
        painter.drawLine(at, legend / 2, at + metrics.height() * 2, legend / 2);
        at += metrics.height() * 2 + 6;
        painter.setPen(palette.text);
        painter.drawText(QRect(at, 0, viewport()->width(), legend), Qt::AlignVCenter | Qt::AlignLeft, text);
        at += metrics.horizontalAdvance(text) + 24;
    };
    entry(penA, tr("A"));
    entry(penB, tr("B"));
    painter.setPen(palette.textMuted);
    painter.drawText(QRect(0, 0, viewport()->width() - 12, legend), Qt::AlignVCenter | Qt::AlignRight,
        tr("0 to %1, up to %2")
            .arg(toQString(formatSeconds(step * 1e-9)),
                toQString(formatBytes({static_cast<std::int64_t>(scale)}))));
    if (cap <= scale)
        entry(QPen(palette.error, 1, Qt::DotLine),
            tr("a device's memory, %1").arg(toQString(formatBytes({static_cast<std::int64_t>(cap)}))));
}

void MemoryOverlay::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    relayout();
}

void MemoryOverlay::scrollContentsBy(int, int)
{
    viewport()->update();
}

} // namespace planloom

#include "moc_memory_overlay.cpp"
