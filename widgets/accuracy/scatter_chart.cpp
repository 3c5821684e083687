#include "widgets/accuracy/scatter_chart.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include "engine/base/units.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

namespace planloom {

namespace {

constexpr double kDot = 4; ///< Pixels, its radius.
constexpr double kReach = 10; ///< Pixels from a dot that are still it.
constexpr double kAround = 1.25; ///< The axes go so much beyond the outermost points.
constexpr double kNear = 0.1; ///< The lines beside the diagonal.
constexpr std::size_t kMostTicks = 9;

} // namespace

ScatterChart::ScatterChart(QWidget *parent)
    : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Predicted over measured"));
    setMouseTracking(true);
    describe();
}

void ScatterChart::setPoints(std::vector<RunPoint> points, ScatterUnit unit)
{
    m_points = std::move(points);
    m_unit = unit;
    m_least = m_points.empty() ? 1 : std::numeric_limits<double>::max();
    m_most = m_points.empty() ? 10 : 0;
    for (const RunPoint &point : m_points) {
        m_least = std::min({m_least, point.measured, point.predicted});
        m_most = std::max({m_most, point.measured, point.predicted});
    }
    m_least /= kAround;
    m_most *= kAround;
    describe();
    update();
}

void ScatterChart::setCurrent(int row)
{
    if (m_current == row)
        return;
    m_current = row;
    describe();
    update();
}

QSize ScatterChart::sizeHint() const
{
    const int side = fontMetrics().height() * 24;
    return {side, side};
}

QSize ScatterChart::minimumSizeHint() const
{
    const int side = fontMetrics().height() * 12;
    return {side, side};
}

/// A square, so that the diagonal is one.
QRectF ScatterChart::plot() const
{
    const QFontMetricsF metrics(font());
    const double line = metrics.height();
    const QRectF room = QRectF(rect()).adjusted(
        metrics.horizontalAdvance(QStringLiteral("000.0 GiB")) + line * 1.6, line, -line, -line * 3);
    const double side = std::max(1.0, std::min(room.width(), room.height()));
    return {room.left() + (room.width() - side) / 2, room.top() + (room.height() - side) / 2, side, side};
}

double ScatterChart::along(double value) const
{
    return std::log(value / m_least) / std::log(m_most / m_least);
}

QPointF ScatterChart::placeOf(const RunPoint &point) const
{
    const QRectF area = plot();
    return {area.left() + area.width() * along(point.measured),
        area.bottom() - area.height() * along(point.predicted)};
}

/// Round figures: 1, 2 and 5 times powers of ten, or powers of two of bytes; fewer where there are many.
std::vector<double> ScatterChart::ticks() const
{
    std::vector<double> all;
    if (m_unit == ScatterUnit::Bytes) {
        for (int power = static_cast<int>(std::ceil(std::log2(m_least))); std::exp2(power) <= m_most; ++power)
            all.push_back(std::exp2(power));
    } else {
        const auto decades = [&](std::initializer_list<double> digits) {
            all.clear();
            for (double decade = std::pow(10, std::floor(std::log10(m_least))); decade <= m_most;
                 decade *= 10)
                for (const double digit : digits)
                    if (digit * decade >= m_least && digit * decade <= m_most)
                        all.push_back(digit * decade);
        };
        decades({1, 2, 5});
        if (all.size() > kMostTicks)
            decades({1});
    }
    const std::size_t every = (all.size() + kMostTicks - 1) / kMostTicks;
    std::vector<double> some;
    for (std::size_t i = 0; i < all.size(); i += std::max<std::size_t>(every, 1))
        some.push_back(all[i]);
    return some;
}

QString ScatterChart::wordsOfTick(double value) const
{
    return toQString(m_unit == ScatterUnit::Bytes ? formatBytes(Bytes{std::llround(value)})
            : value >= 1                          ? QStringLiteral("%1 s").arg(value).toStdString()
                                                  : formatSeconds(value));
}

void ScatterChart::describe()
{
    const auto found = std::find_if(
        m_points.begin(), m_points.end(), [this](const RunPoint &point) { return point.row == m_current; });
    setAccessibleDescription(found != m_points.end()
            ? found->words
            : tr("%1 runs; arrow keys go through them").arg(m_points.size()));
}

void ScatterChart::paintAxes(QPainter &painter) const
{
    const Palette &palette = paletteFor(*this);
    const QFontMetricsF metrics(font());
    const QRectF area = plot();
    for (const double value : ticks()) {
        const double x = area.left() + area.width() * along(value);
        const double y = area.bottom() - area.height() * along(value);
        painter.setPen(palette.grid);
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.setPen(palette.textMuted);
        const QString words = wordsOfTick(value);
        const double wide = metrics.horizontalAdvance(words);
        painter.drawText(QPointF(x - wide / 2, area.bottom() + metrics.height()), words);
        painter.drawText(
            QPointF(area.left() - wide - metrics.height() * 0.4, y + metrics.ascent() * 0.4), words);
    }
    painter.setPen(palette.border);
    painter.drawRect(area);
    painter.setPen(palette.text);
    const bool isBytes = m_unit == ScatterUnit::Bytes;
    painter.drawText(
        QRectF(area.left(), area.bottom() + metrics.height() * 1.3, area.width(), metrics.height()),
        Qt::AlignCenter,
        isBytes ? tr("measured peak memory (dashed: off by 10%)") : tr("measured step (dashed: off by 10%)"));
    painter.save();
    painter.translate(metrics.height(), area.center().y());
    painter.rotate(-90);
    painter.drawText(QRectF(-area.height() / 2, -metrics.height(), area.height(), metrics.height()),
        Qt::AlignCenter, isBytes ? tr("predicted peak memory") : tr("predicted step"));
    painter.restore();
}

void ScatterChart::paintLines(QPainter &painter) const
{
    const Palette &palette = paletteFor(*this);
    const QFontMetricsF metrics(font());
    const bool isBytes = m_unit == ScatterUnit::Bytes;
    const QRectF area = plot();
    painter.save();
    painter.setClipRect(area);
    for (const double factor : {1.0, 1 + kNear, 1 - kNear}) {
        const double shift = area.height() * std::log(factor) / std::log(m_most / m_least);
        const bool isEqual = factor == 1;
        painter.setPen(
            QPen(isEqual ? palette.textMuted : palette.edge, 1, isEqual ? Qt::SolidLine : Qt::DashLine));
        painter.drawLine(
            QPointF(area.left(), area.bottom() - shift), QPointF(area.right(), area.top() - shift));
    }
    painter.setPen(palette.textMuted);
    painter.drawText(area.adjusted(metrics.height() * 0.4, metrics.height() * 0.3, 0, 0),
        Qt::AlignLeft | Qt::AlignTop, isBytes ? tr("more than measured") : tr("slower than measured"));
    painter.drawText(area.adjusted(0, 0, -metrics.height() * 0.4, -metrics.height() * 0.3),
        Qt::AlignRight | Qt::AlignBottom, isBytes ? tr("less than measured") : tr("faster than measured"));
    painter.restore();
}

void ScatterChart::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.surface);
    if (m_points.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter, tr("no run with both figures"));
        return;
    }
    paintAxes(painter);
    painter.setRenderHint(QPainter::Antialiasing, true);
    paintLines(painter);
    const RunPoint *current = nullptr;
    for (const RunPoint &point : m_points) {
        painter.setPen(QPen(palette.surface, 1));
        painter.setBrush(categoricalColour(palette, point.group));
        painter.drawEllipse(placeOf(point), kDot, kDot);
        if (point.row == m_current)
            current = &point;
    }
    if (current) { // above its neighbours
        painter.setBrush(categoricalColour(palette, current->group));
        painter.setPen(QPen(palette.accent, 2));
        painter.drawEllipse(placeOf(*current), kDot * 1.8, kDot * 1.8);
    }
    if (hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(palette.accent, 1));
        painter.drawRect(plot());
    }
}

/// The nearest one within reach.
const RunPoint *ScatterChart::pointAt(const QPointF &place) const
{
    const RunPoint *nearest = nullptr;
    double least = kReach;
    for (const RunPoint &point : m_points) {
        const QPointF way = placeOf(point) - place;
        const double distance = std::hypot(way.x(), way.y());
        if (distance <= least) {
            least = distance;
            nearest = &point;
        }
    }
    return nearest;
}

void ScatterChart::mousePressEvent(QMouseEvent *event)
{
    const RunPoint *point = event->button() == Qt::LeftButton ? pointAt(event->position()) : nullptr;
    if (!point)
        return;
    const int row = point->row;
    setCurrent(row);
    Q_EMIT picked(row);
}

/// Left and right go through the runs, from the shortest measured one to the longest.
void ScatterChart::keyPressEvent(QKeyEvent *event)
{
    const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
    if (step == 0 || m_points.empty()) {
        QWidget::keyPressEvent(event);
        return;
    }
    std::vector<const RunPoint *> order;
    for (const RunPoint &point : m_points)
        order.push_back(&point);
    std::stable_sort(order.begin(), order.end(),
        [](const RunPoint *a, const RunPoint *b) { return a->measured < b->measured; });
    const auto found = std::find_if(
        order.begin(), order.end(), [this](const RunPoint *point) { return point->row == m_current; });
    const auto last = static_cast<std::ptrdiff_t>(order.size()) - 1;
    const std::ptrdiff_t next =
        found == order.end() ? 0 : std::clamp<std::ptrdiff_t>(found - order.begin() + step, 0, last);
    const int row = order[static_cast<std::size_t>(next)]->row;
    setCurrent(row);
    Q_EMIT picked(row);
}

bool ScatterChart::event(QEvent *event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto *help = static_cast<QHelpEvent *>(event); // the type says so
    if (const RunPoint *point = pointAt(help->pos()))
        QToolTip::showText(help->globalPos(), point->words, this);
    else
        QToolTip::hideText();
    return true;
}

} // namespace planloom

#include "moc_scatter_chart.cpp"
