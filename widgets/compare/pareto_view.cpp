#include "widgets/compare/pareto_view.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/compare/pareto.h"
#include "widgets/scene/time_axis.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace planloom {

namespace {

/// A step of 1, 2 or 4 times a power of two, so that labels of bytes are round in their own units.
double byteStep(double extent, int most)
{
    double step = 1;
    while (extent / step > most)
        step *= 2;
    return step;
}

} // namespace

ParetoView::ParetoView(QWidget *parent)
    : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Step time and peak memory of every plan"));
    describe();
}

QSize ParetoView::sizeHint() const
{
    const int em = fontMetrics().height();
    return {em * 24, em * 14};
}

QSize ParetoView::minimumSizeHint() const
{
    const int em = fontMetrics().height();
    return {em * 12, em * 7};
}

void ParetoView::setPoints(std::vector<ScatterPoint> points, StepId current, std::int64_t cap)
{
    std::stable_sort(points.begin(), points.end(), [](const ScatterPoint &a, const ScatterPoint &b) {
        if (a.seconds != b.seconds)
            return a.seconds < b.seconds;
        if (a.bytes != b.bytes)
            return a.bytes < b.bytes;
        if (a.letter.isEmpty() != b.letter.isEmpty())
            return b.letter.isEmpty();
        if (a.label.isEmpty() != b.label.isEmpty())
            return b.label.isEmpty();
        return a.step > b.step;
    });
    points.erase(std::unique(points.begin(), points.end(),
                     [](const ScatterPoint &a, const ScatterPoint &b) {
                         return a.seconds == b.seconds && a.bytes == b.bytes;
                     }),
        points.end());
    if (points == m_points && current == m_current && cap == m_cap)
        return;
    const StepId focused = m_focused >= 0 ? m_points[static_cast<std::size_t>(m_focused)].step : -1;
    m_points = std::move(points);
    m_current = current;
    m_cap = cap;
    m_hovered = -1;
    m_focused = -1;
    std::vector<ParetoPoint> prices;
    prices.reserve(m_points.size());
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        prices.push_back({m_points[i].seconds, static_cast<double>(m_points[i].bytes)});
        if (m_points[i].step == focused)
            m_focused = static_cast<int>(i);
    }
    m_front = paretoFront(prices);
    m_onFront.assign(m_points.size(), false);
    for (const std::size_t i : m_front)
        m_onFront[i] = true;
    m_fromX = m_fromY = 0;
    m_toX = m_toY = 1;
    if (!m_points.empty()) {
        const auto [lowest, highest] = std::minmax_element(m_points.begin(), m_points.end(),
            [](const ScatterPoint &a, const ScatterPoint &b) { return a.bytes < b.bytes; });
        const double slow = m_points.back().seconds * 1e9;
        const double fast = m_points.front().seconds * 1e9;
        const double low = static_cast<double>(lowest->bytes);
        const double high = static_cast<double>(highest->bytes);
        // From zero, unless all plans are so alike that they would lie in one spot.
        m_fromX = fast > 0.7 * slow ? std::max(0.0, fast - std::max((slow - fast) * 0.4, slow * 0.02)) : 0;
        m_toX = slow + std::max((slow - m_fromX) * 0.12, 1.0);
        m_fromY = low > 0.7 * high ? std::max(0.0, low - std::max((high - low) * 0.4, high * 0.02)) : 0;
        m_toY = high + std::max((high - m_fromY) * 0.15, 1.0);
        const auto limit = static_cast<double>(m_cap);
        if (limit > m_fromY && limit < m_toY * 1.3)
            m_toY = std::max(m_toY, limit * 1.04);
    }
    describe();
    update();
}

QRectF ParetoView::plot() const
{
    const QFontMetricsF metrics(font());
    const double left = metrics.horizontalAdvance(QStringLiteral("888.8 MiB")) + 10;
    return QRectF(rect()).adjusted(left, metrics.height() * 0.8, -12, -metrics.height() * 2.6);
}

QPointF ParetoView::positionOf(std::size_t point) const
{
    const QRectF area = plot();
    const ScatterPoint &p = m_points[point];
    return {area.left() + (p.seconds * 1e9 - m_fromX) / (m_toX - m_fromX) * area.width(),
        area.bottom() - (static_cast<double>(p.bytes) - m_fromY) / (m_toY - m_fromY) * area.height()};
}

int ParetoView::pointAt(QPointF position) const
{
    int nearest = -1;
    double least = std::pow(std::max(fontMetrics().height() * 0.7, 8.0), 2);
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const QPointF away = positionOf(i) - position;
        const double distance = away.x() * away.x() + away.y() * away.y();
        if (distance < least) {
            least = distance;
            nearest = static_cast<int>(i);
        }
    }
    return nearest;
}

QString ParetoView::tooltipOf(std::size_t point) const
{
    const ScatterPoint &p = m_points[point];
    QString text = p.label.isEmpty() ? p.words : p.label;
    text +=
        tr("\nstep %1, peak %2").arg(toQString(formatSeconds(p.seconds)), toQString(formatBytes({p.bytes})));
    text += m_onFront[point] ? tr("\non the front: no plan is better in both") : QString();
    return text;
}

void ParetoView::describe()
{
    if (m_focused >= 0) {
        setAccessibleDescription(tooltipOf(static_cast<std::size_t>(m_focused)));
        return;
    }
    setAccessibleDescription(
        tr("%1 plans, %2 of them on the Pareto front. Arrows go from plan to plan, Enter opens.")
            .arg(m_points.size())
            .arg(m_front.size()));
}

void ParetoView::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    const Palette &palette = paletteFor(*this);
    painter.fillRect(rect(), palette.canvas);
    if (m_points.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap,
            tr("Step time and peak memory of every plan appear here once there is one."));
        return;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF area = plot();
    QFont small = font();
    small.setPointSizeF(std::max(font().pointSizeF() * 0.88, 6.5));
    painter.setFont(small);
    const QFontMetricsF metrics(small);

    const TimeAxis axis{m_fromX, (m_toX - m_fromX) / std::max(area.width(), 1.0)};
    const TimeTicks ticks =
        ticksOf(axis, area.width(), metrics.horizontalAdvance(QStringLiteral("888.88")) * 2);
    for (const TimeTick &tick : ticks.ticks) {
        if (tick.label.empty())
            continue;
        const double x = area.left() + axis.xOf(tick.nanoseconds);
        painter.setPen(palette.grid);
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        painter.setPen(palette.textMuted);
        painter.drawText(
            QRectF(x - 60, area.bottom() + 2, 120, metrics.height()), Qt::AlignCenter, toQString(tick.label));
    }
    painter.drawText(
        QRectF(area.left(), area.bottom() + metrics.height() + 3, area.width(), metrics.height()),
        Qt::AlignCenter, tr("step time, %1").arg(toQString(ticks.unit)));
    const double step =
        byteStep(m_toY - m_fromY, std::max(2, static_cast<int>(area.height() / (metrics.height() * 2.4))));
    for (double bytes = std::ceil(m_fromY / step) * step; bytes <= m_toY; bytes += step) {
        const double y = area.bottom() - (bytes - m_fromY) / (m_toY - m_fromY) * area.height();
        painter.setPen(palette.grid);
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.setPen(palette.textMuted);
        painter.drawText(QRectF(0, y - metrics.height() / 2, area.left() - 6, metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, toQString(formatBytes({static_cast<std::int64_t>(bytes)})));
    }
    painter.setPen(palette.border);
    painter.drawLine(area.bottomLeft(), area.bottomRight());
    painter.drawLine(area.bottomLeft(), area.topLeft());
    const auto cap = static_cast<double>(m_cap);
    if (cap > m_fromY && cap < m_toY) {
        const double y = area.bottom() - (cap - m_fromY) / (m_toY - m_fromY) * area.height();
        painter.setPen(QPen(palette.error, 1.2, Qt::DashLine));
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.drawText(
            QRectF(area.left() + 6, y - metrics.height() - 1, area.width() - 12, metrics.height()),
            Qt::AlignLeft, tr("a device's memory"));
    }

    // The front as the staircase it is: between two of its plans there is nothing better than the worse of
    // both.
    painter.setPen(QPen(palette.accent, 1.6));
    for (std::size_t i = 0; i + 1 < m_front.size(); ++i) {
        const QPointF from = positionOf(m_front[i]);
        const QPointF to = positionOf(m_front[i + 1]);
        painter.drawLine(from, QPointF(to.x(), from.y()));
        painter.drawLine(QPointF(to.x(), from.y()), to);
    }
    const double radius = std::max(metrics.height() * 0.26, 3.0);
    std::set<std::pair<int, int>> taken; // thousands of plans in one spot are one mark
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const ScatterPoint &p = m_points[i];
        const QPointF at = positionOf(i);
        const bool plain = p.label.isEmpty() && p.letter.isEmpty() && !m_onFront[i] && p.step != m_current;
        if (plain && !taken.emplace(static_cast<int>(at.x() / 2), static_cast<int>(at.y() / 2)).second)
            continue;
        const QColor colour = m_onFront[i] ? palette.accent : palette.edge;
        painter.setPen(QPen(colour, 1.4));
        painter.setBrush(m_onFront[i] ? colour : palette.canvas);
        painter.drawEllipse(at, radius, radius);
        if (p.step == m_current) {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(QPen(palette.text, 1.6));
            painter.drawEllipse(at, radius + 3.5, radius + 3.5);
        }
        if (static_cast<int>(i) == m_hovered || (static_cast<int>(i) == m_focused && hasFocus())) {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(QPen(palette.hover, 2));
            painter.drawEllipse(at, radius + 6, radius + 6);
        }
    }
    std::vector<QRectF> labels;
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const ScatterPoint &p = m_points[i];
        QString text = p.letter;
        const QString name = p.label.isEmpty() && p.step == m_current ? tr("current") : p.label;
        if (!name.isEmpty())
            text += (text.isEmpty() ? QString() : QStringLiteral(": "))
                + metrics.elidedText(name, Qt::ElideMiddle, 160);
        if (text.isEmpty())
            continue;
        const QSizeF size(metrics.horizontalAdvance(text) + 4, metrics.height());
        const QPointF at = positionOf(i);
        for (const QPointF offset : {QPointF(radius + 5, -size.height() - 1), QPointF(radius + 5, 2.0),
                 QPointF(-radius - 5 - size.width(), -size.height() - 1),
                 QPointF(-radius - 5 - size.width(), 2.0)}) {
            const QRectF box(at + offset, size);
            if (!area.adjusted(0, -metrics.height(), 8, 0).contains(box)
                || std::any_of(labels.begin(), labels.end(),
                    [&box](const QRectF &other) { return other.intersects(box); }))
                continue;
            labels.push_back(box);
            painter.setPen(palette.text);
            painter.drawText(box, Qt::AlignCenter, text);
            break;
        }
    }
    if (hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(palette.accent, 1, Qt::DotLine));
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -1.5, -1.5));
    }
}

bool ParetoView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        auto *help = static_cast<QHelpEvent *>(event);
        const int point = pointAt(help->pos());
        if (point >= 0)
            QToolTip::showText(help->globalPos(), tooltipOf(static_cast<std::size_t>(point)), this);
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

void ParetoView::mousePressEvent(QMouseEvent *event)
{
    const int point = event->button() == Qt::LeftButton ? pointAt(event->position()) : -1;
    if (point < 0) {
        QWidget::mousePressEvent(event);
        return;
    }
    m_focused = point;
    describe();
    update();
    Q_EMIT activated(m_points[static_cast<std::size_t>(point)].step);
}

void ParetoView::mouseMoveEvent(QMouseEvent *event)
{
    const int point = pointAt(event->position());
    if (point == m_hovered)
        return;
    m_hovered = point;
    setCursor(point >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
    update();
}

void ParetoView::leaveEvent(QEvent *)
{
    m_hovered = -1;
    update();
}

void ParetoView::keyPressEvent(QKeyEvent *event)
{
    const int count = static_cast<int>(m_points.size());
    const auto focus = [this](int point) {
        m_focused = point;
        describe();
        update();
    };
    switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
        if (count > 0)
            focus(std::min(m_focused + 1, count - 1));
        return;
    case Qt::Key_Left:
    case Qt::Key_Up:
        if (count > 0)
            focus(std::max(m_focused - 1, 0));
        return;
    case Qt::Key_Home:
    case Qt::Key_End:
        if (count > 0)
            focus(event->key() == Qt::Key_Home ? 0 : count - 1);
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_focused >= 0)
            Q_EMIT activated(m_points[static_cast<std::size_t>(m_focused)].step);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void ParetoView::focusInEvent(QFocusEvent *event)
{
    QWidget::focusInEvent(event);
    update();
}

void ParetoView::focusOutEvent(QFocusEvent *event)
{
    QWidget::focusOutEvent(event);
    update();
}

} // namespace planloom

#include "moc_pareto_view.cpp"
