#include "widgets/sweep/sweep_chart.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtWidgets/QToolTip>

#include "engine/base/words.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/scene/memory_colours.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr double kAboveBars = 1.3; ///< The highest bar leaves room for words.

} // namespace

SweepChart::SweepChart(const QString &title, QWidget *parent)
    : QWidget(parent)
    , m_title(title)
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(title);
    setMouseTracking(true);
    describe();
}

void SweepChart::setPoints(std::vector<SweepChoice> choices, std::vector<SweepPoint> points, Bytes memory)
{
    m_choices = std::move(choices);
    m_points = std::move(points);
    m_memory = memory;
    if (m_current >= static_cast<int>(m_choices.size()))
        m_current = -1;
    describe();
    update();
}

const SweepPoint *SweepChart::pointOf(std::size_t choice) const
{
    const auto found = std::find_if(m_points.begin(), m_points.end(),
        [&](const SweepPoint &point) { return point.choice == m_choices[choice]; });
    return found != m_points.end() ? &*found : nullptr;
}

QSize SweepChart::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 11};
}

QSize SweepChart::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 24, fontMetrics().height() * 7};
}

QRectF SweepChart::plot() const
{
    const double line = fontMetrics().height();
    return QRectF(rect()).adjusted(line * 0.6, line * 2.6, -line * 0.6, -line * 1.5);
}

QRectF SweepChart::columnRect(std::size_t choice) const
{
    const QRectF area = plot();
    const double width = area.width() / std::max<double>(static_cast<double>(m_choices.size()), 1);
    return {area.left() + width * static_cast<double>(choice), area.top(), width, area.height()};
}

QString SweepChart::wordsOf(std::size_t choice) const
{
    const SweepPoint *point = pointOf(choice);
    const SweepChoice &of = m_choices[choice];
    const QString what = toQString(
        of.axis == SweepAxis::MicroBatches ? counted(of.value, "micro-batch") : counted(of.value, "stage"));
    if (!point)
        return tr("%1: being worked out").arg(what);
    if (point->stepSeconds <= 0)
        return tr("%1: no plan: %2")
            .arg(what, point->problem ? toQString(point->problem->message) : QString());
    return tr("%1: step %2, peak %3%4, bubble %5%%6")
        .arg(what, toQString(formatSeconds(point->stepSeconds)), toQString(formatBytes(point->peak)),
            point->fits ? QString() : tr(" (too much)"))
        .arg(100 * point->bubble, 0, 'f', 1)
        .arg(of.now ? tr(" (now)") : tr(". Click opens it"));
}

void SweepChart::describe()
{
    setAccessibleDescription(m_choices.empty() ? tr("nothing to compare")
            : m_current >= 0                   ? wordsOf(static_cast<std::size_t>(m_current))
                             : tr("%1 plans").arg(static_cast<qsizetype>(m_choices.size())));
}

void SweepChart::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.surface);
    const QFontMetricsF metrics(font());
    QFont bold(font());
    bold.setBold(true);
    painter.setFont(bold);
    painter.setPen(palette.text);
    painter.drawText(QPointF(metrics.height() * 0.6, metrics.height() * 1.1), m_title);
    painter.setFont(font());
    if (m_choices.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter, tr("nothing to compare"));
        return;
    }
    double longest = 0;
    double fullest = 0;
    for (const SweepPoint &point : m_points) {
        longest = std::max(longest, point.stepSeconds);
        fullest = std::max(fullest, static_cast<double>(point.peak.count));
    }
    fullest *= kAboveBars;
    const QRectF area = plot();
    const QColor memory = memoryColour(palette, MemoryKind::Activation);
    painter.setRenderHint(QPainter::Antialiasing, true);
    if (static_cast<double>(m_memory.count) <= fullest) { // what there is
        const double y = area.bottom() - area.height() * static_cast<double>(m_memory.count) / fullest;
        painter.setPen(QPen(palette.error, 1, Qt::DashLine));
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    }
    QPainterPath line;
    std::vector<QPointF> dots;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        const QRectF column = columnRect(i);
        const SweepPoint *point = pointOf(i);
        if (m_choices[i].now)
            painter.fillRect(column, mixed(palette.surface, palette.accent, 0.12));
        painter.setPen(m_choices[i].now ? palette.text : palette.textMuted);
        painter.drawText(QRectF(column.left(), area.bottom() + 2, column.width(), metrics.height()),
            Qt::AlignCenter, QString::number(m_choices[i].value));
        if (!point || point->stepSeconds <= 0) {
            painter.drawText(column, Qt::AlignHCenter | Qt::AlignBottom,
                point ? QStringLiteral("✕") : QStringLiteral("…"));
            continue;
        }
        const double high = area.height() * static_cast<double>(point->peak.count) / std::max(fullest, 1.0);
        const QRectF bar(
            column.center().x() - column.width() * 0.3, area.bottom() - high, column.width() * 0.6, high);
        painter.fillRect(bar, mixed(palette.surface, point->fits ? memory : palette.error, 0.55));
        const double y = area.bottom() - area.height() * point->stepSeconds / std::max(longest, 1e-12) * 0.92;
        dots.emplace_back(column.center().x(), y);
        of.push_back(i);
        dots.size() == 1 ? line.moveTo(dots.back()) : line.lineTo(dots.back());
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette.text, 1.5));
    painter.drawPath(line);
    for (std::size_t d = 0; d < dots.size(); ++d) {
        const SweepPoint &point = *pointOf(of[d]);
        painter.setPen(QPen(palette.surface, 1.5));
        painter.setBrush(m_choices[of[d]].now ? palette.accent : palette.text);
        painter.drawEllipse(dots[d], 4, 4);
        const QString time = toQString(formatSeconds(point.stepSeconds));
        const double width = columnRect(of[d]).width();
        if (metrics.horizontalAdvance(time) + 2 > width)
            continue;
        painter.setPen(palette.text);
        painter.drawText(
            QRectF(dots[d].x() - width / 2, dots[d].y() - metrics.height() - 4, width, metrics.height()),
            Qt::AlignCenter, time);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    // What line and bars are.
    const QString words =
        tr("● step   ▮ peak memory, up to %1")
            .arg(toQString(formatBytes(Bytes{static_cast<std::int64_t>(fullest / kAboveBars)})));
    painter.setPen(palette.textMuted);
    const double room = width() - QFontMetricsF(bold).horizontalAdvance(m_title) - metrics.height() * 2;
    painter.drawText(
        QRectF(0, metrics.height() * 0.2, width() - metrics.height() * 0.6, metrics.height() * 1.2),
        Qt::AlignRight | Qt::AlignVCenter, metrics.elidedText(words, Qt::ElideRight, room));
    if (m_current >= 0 && hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(columnRect(static_cast<std::size_t>(m_current)).adjusted(1, 1, -1, -1));
    }
}

void SweepChart::choose(std::size_t choice)
{
    const SweepPoint *point = pointOf(choice);
    if (point && point->stepSeconds > 0 && !m_choices[choice].now)
        Q_EMIT chosen(m_choices[choice]);
}

void SweepChart::mousePressEvent(QMouseEvent *event)
{
    for (std::size_t i = 0; event->button() == Qt::LeftButton && i < m_choices.size(); ++i) {
        const QRectF column = columnRect(i);
        if (event->position().x() >= column.left() && event->position().x() < column.right()) {
            m_current = static_cast<int>(i);
            describe();
            update();
            choose(i);
            return;
        }
    }
}

void SweepChart::keyPressEvent(QKeyEvent *event)
{
    const int count = static_cast<int>(m_choices.size());
    switch (count > 0 ? event->key() : 0) {
    case Qt::Key_Left:
        m_current = std::max(m_current - 1, 0);
        break;
    case Qt::Key_Right:
        m_current = std::min(m_current + 1, count - 1);
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_current >= 0)
            choose(static_cast<std::size_t>(m_current));
        return;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    describe();
    update();
}

bool SweepChart::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        for (std::size_t i = 0; i < m_choices.size(); ++i) {
            const QRectF column = columnRect(i);
            if (help->pos().x() >= column.left() && help->pos().x() < column.right()) {
                QToolTip::showText(help->globalPos(), wordsOf(i), this);
                return true;
            }
        }
        QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

} // namespace planloom

#include "moc_sweep_chart.cpp"
