#include "widgets/compare/waterfall_view.h"

#include <QtGui/QPainter>

#include "widgets/common/delta.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace planloom {

namespace {

QString nameOfPart(StepPart part)
{
    switch (part) {
    case StepPart::Compute:
        return WaterfallView::tr("compute");
    case StepPart::ExposedCommunication:
        return WaterfallView::tr("exposed communication");
    case StepPart::Idle:
        return WaterfallView::tr("idle");
    case StepPart::Recompute:
        return WaterfallView::tr("recompute");
    case StepPart::Optimizer:
        return WaterfallView::tr("optimizer");
    case StepPart::Other:
        break;
    }
    return WaterfallView::tr("other");
}

} // namespace

std::vector<WaterfallBar> barsOf(const Waterfall &waterfall)
{
    std::vector<WaterfallBar> bars;
    std::int64_t at = waterfall.from.step();
    bars.push_back({WaterfallBar::Kind::From, StepPart::Compute, 0, at, false});
    for (std::size_t i = 0; i < kStepPartCount; ++i) {
        const std::int64_t delta = waterfall.delta.nanoseconds[i];
        const bool noise = judged(static_cast<double>(waterfall.from.nanoseconds[i]),
                               static_cast<double>(waterfall.to.nanoseconds[i]), 1)
            == Change::Same;
        bars.push_back({WaterfallBar::Kind::Part, static_cast<StepPart>(i), at, at + delta, noise});
        at += delta;
    }
    bars.push_back({WaterfallBar::Kind::To, StepPart::Compute, 0, waterfall.to.step(), false});
    return bars;
}

WaterfallView::WaterfallView(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Why the steps differ"));
}

QSize WaterfallView::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 80, fontMetrics().height() * 15};
}

QSize WaterfallView::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 48, fontMetrics().height() * 11};
}

void WaterfallView::setWaterfall(
    const std::optional<Waterfall> &waterfall, const QString &nameOfA, const QString &nameOfB)
{
    m_bars = waterfall ? barsOf(*waterfall) : std::vector<WaterfallBar>{};
    m_nameOfA = nameOfA;
    m_nameOfB = nameOfB;
    QStringList sentences;
    for (const WaterfallBar &bar : m_bars)
        sentences << labelOf(bar) + QLatin1Char(' ') + valueOf(bar);
    setAccessibleDescription(sentences.join(QStringLiteral(", ")));
    setToolTip(tr("Averages over devices; the parts add up to the difference of the two steps exactly. Idle "
                  "and exposed "
                  "communication together are the bubble."));
    update();
}

QString WaterfallView::labelOf(const WaterfallBar &bar) const
{
    switch (bar.kind) {
    case WaterfallBar::Kind::From:
        return tr("A: %1").arg(m_nameOfA);
    case WaterfallBar::Kind::To:
        return tr("B: %1").arg(m_nameOfB);
    case WaterfallBar::Kind::Part:
        break;
    }
    return nameOfPart(bar.part);
}

QString WaterfallView::valueOf(const WaterfallBar &bar) const
{
    const double seconds = static_cast<double>(std::abs(bar.delta())) * 1e-9;
    if (bar.kind != WaterfallBar::Kind::Part)
        return toQString(formatSeconds(seconds));
    if (bar.delta() == 0)
        return QStringLiteral("= 0 s");
    return (bar.noise                ? QStringLiteral("= ")
                   : bar.delta() < 0 ? QStringLiteral("▼ ")
                                     : QStringLiteral("▲ "))
        + (bar.delta() < 0 ? QStringLiteral("−") : QStringLiteral("+")) + toQString(formatSeconds(seconds));
}

void WaterfallView::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    const Palette &palette = paletteFor(*this);
    painter.fillRect(rect(), palette.canvas);
    if (m_bars.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap,
            tr("Where the time goes appears here once both plans have a timeline."));
        return;
    }
    const QFontMetricsF metrics(font());
    double labels = 0;
    double values = 0;
    for (const WaterfallBar &bar : m_bars) {
        labels = std::max(labels, metrics.horizontalAdvance(labelOf(bar)));
        values = std::max(values, metrics.horizontalAdvance(valueOf(bar)));
    }
    labels = std::min(labels, width() * 0.32) + 16;
    values += 14;
    std::int64_t low = m_bars.front().end;
    std::int64_t high = low;
    for (const WaterfallBar &bar : m_bars) {
        low = std::min(low, bar.end);
        high = std::max(high, bar.end);
    }
    // From zero, unless what differs would be too small to see.
    const double span = static_cast<double>(high - low);
    const bool torn = static_cast<double>(low) > 0.75 * static_cast<double>(high);
    const double from = torn
        ? std::max(0.0, static_cast<double>(low) - std::max(span * 0.5, static_cast<double>(high) * 0.01))
        : 0;
    const double to = std::max(static_cast<double>(high), from + 1);
    const QRectF area(labels, 6, std::max(width() - labels - values, 20.0), height() - 12);
    const double row = area.height() / static_cast<double>(m_bars.size());
    const auto x = [&](std::int64_t time) {
        return area.left()
            + std::clamp((static_cast<double>(time) - from) / (to - from), 0.0, 1.0) * area.width();
    };
    painter.setPen(palette.grid);
    painter.drawLine(area.topLeft(), area.bottomLeft());
    for (std::size_t i = 0; i < m_bars.size(); ++i) {
        const WaterfallBar &bar = m_bars[i];
        const double y = area.top() + row * static_cast<double>(i);
        const bool isPart = bar.kind == WaterfallBar::Kind::Part;
        const double left = std::min(x(bar.begin), x(bar.end));
        const double right = std::max(x(bar.begin), x(bar.end));
        const QColor colour = !isPart ? palette.edge
            : bar.noise               ? palette.neutral
            : bar.delta() < 0         ? palette.success
                                      : palette.error;
        const QRectF box(left, y + row * 0.15, std::max(right - left, 2.0), row * 0.7);
        painter.fillRect(box, colour);
        if (torn && !isPart) { // the bar begins further left than what is shown
            painter.setPen(QPen(palette.canvas, 2));
            for (int tear = 0; tear < 2; ++tear)
                painter.drawLine(QPointF(area.left() + 8 + tear * 5, box.bottom() + 1),
                    QPointF(area.left() + 13 + tear * 5, box.top() - 1));
        }
        if (i + 1 < m_bars.size()) { // to where the next one hangs
            painter.setPen(QPen(palette.border, 1, Qt::DotLine));
            painter.drawLine(QPointF(x(bar.end), box.bottom()), QPointF(x(bar.end), y + row * 1.15));
        }
        painter.setPen(isPart ? palette.text : palette.textMuted);
        painter.drawText(QRectF(8, y, labels - 14, row), Qt::AlignVCenter | Qt::AlignRight,
            metrics.elidedText(labelOf(bar), Qt::ElideMiddle, labels - 14));
        painter.setPen(!isPart ? palette.text : bar.noise ? palette.textMuted : colour);
        painter.drawText(
            QRectF(area.right() + 6, y, values, row), Qt::AlignVCenter | Qt::AlignLeft, valueOf(bar));
    }
}

} // namespace planloom

#include "moc_waterfall_view.cpp"
