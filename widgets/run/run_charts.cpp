#include "widgets/run/run_charts.h"

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

#include <QtCore/QEvent>
#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kRadius = 3.5;
constexpr double kReach = 9; ///< Pixels around a point that belong to it.
constexpr std::size_t kNamed = 3;

} // namespace

double placeBetween(double value, double least, double most, double extent)
{
    return most > least ? (value - least) / (most - least) * extent : extent / 2;
}

LossCurve::LossCurve(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Loss curve"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LossCurve::setLosses(std::vector<double> losses, int steps)
{
    m_losses = std::move(losses);
    m_steps = std::max(steps, 1);
    setAccessibleDescription(m_losses.empty()
            ? tr("no step is done yet")
            : tr("%1 steps done, the last loss is %2").arg(m_losses.size()).arg(m_losses.back(), 0, 'g', 5));
    update();
}

QSize LossCurve::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 36, fontMetrics().height() * 7};
}

QSize LossCurve::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 18, fontMetrics().height() * 4};
}

void LossCurve::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const double loss : m_losses) {
        if (std::isfinite(loss)) {
            least = std::min(least, loss);
            most = std::max(most, loss);
        }
    }
    painter.setPen(palette.textMuted);
    if (!(least <= most)) {
        painter.drawText(rect(), Qt::AlignCenter, tr("The loss of every step appears here."));
        return;
    }
    const QString top = QString::number(most, 'g', 4);
    const QString bottom = QString::number(least, 'g', 4);
    const int left = std::max(metrics.horizontalAdvance(top), metrics.horizontalAdvance(bottom))
        + metrics.averageCharWidth() * 2;
    const QRectF plot = QRectF(rect()).adjusted(
        left, metrics.height(), -metrics.averageCharWidth() * 2, -metrics.height() * 1.4);
    painter.drawText(
        QRectF(0, plot.top() - metrics.height() / 2.0, left - metrics.averageCharWidth(), metrics.height()),
        Qt::AlignRight | Qt::AlignVCenter, top);
    if (most > least)
        painter.drawText(QRectF(0, plot.bottom() - metrics.height() / 2.0, left - metrics.averageCharWidth(),
                             metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, bottom);
    painter.drawText(QRectF(plot.left(), plot.bottom() + 2, plot.width(), metrics.height()), Qt::AlignRight,
        tr("step %1 of %2").arg(m_losses.size()).arg(m_steps));
    painter.setPen(palette.grid);
    painter.drawLine(plot.bottomLeft(), plot.bottomRight());
    painter.drawLine(plot.topLeft(), plot.bottomLeft());
    painter.setPen(QPen(palette.accent, 2));
    painter.setBrush(palette.accent);
    QPainterPath path;
    bool drawing = false;
    for (std::size_t i = 0; i < m_losses.size(); ++i) {
        if (!std::isfinite(m_losses[i])) {
            drawing = false;
            continue;
        }
        const QPointF at(
            plot.left() + placeBetween(static_cast<double>(i), 0, std::max(m_steps - 1, 1), plot.width()),
            plot.bottom() - placeBetween(m_losses[i], least, most, plot.height()));
        drawing ? path.lineTo(at) : path.moveTo(at);
        drawing = true;
        painter.drawEllipse(at, 2, 2);
    }
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
}

OperatorScatter::OperatorScatter(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Operators, predicted and measured time"));
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

QSize OperatorScatter::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 40, fontMetrics().height() * 12};
}

QSize OperatorScatter::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 20, fontMetrics().height() * 5};
}

void OperatorScatter::setPoints(std::vector<OperatorPoint> points)
{
    std::erase_if(
        points, [](const OperatorPoint &point) { return !(point.predicted > 0) || !(point.measured > 0); });
    m_points = std::move(points);
    m_current = -1;
    m_least = 1e-6;
    m_most = 1e-5;
    if (!m_points.empty()) {
        m_least = m_points.front().predicted;
        m_most = m_least;
        for (const OperatorPoint &point : m_points) {
            m_least = std::min({m_least, point.predicted, point.measured});
            m_most = std::max({m_most, point.predicted, point.measured});
        }
        m_least /= 1.5;
        m_most *= 1.5;
    }
    setAccessibleDescription(tr("%1 operators").arg(m_points.size()));
    update();
}

std::vector<std::size_t> OperatorScatter::outliers(const std::vector<OperatorPoint> &points, std::size_t most)
{
    std::vector<std::size_t> order(points.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    const auto distance = [&points](std::size_t i) {
        return std::abs(std::log(points[i].measured / points[i].predicted));
    };
    const std::size_t count = std::min(most, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
        [&](std::size_t a, std::size_t b) {
            return distance(a) != distance(b) ? distance(a) > distance(b) : a < b;
        });
    order.resize(count);
    return order;
}

QRectF OperatorScatter::plot() const
{
    const QFontMetrics metrics = fontMetrics();
    return QRectF(rect()).adjusted(
        metrics.horizontalAdvance(QStringLiteral("0000 ms")) + metrics.height() * 1.3, metrics.height() * 0.7,
        -metrics.averageCharWidth() * 2, -metrics.height() * 2.4);
}

QPointF OperatorScatter::placeOf(const OperatorPoint &point) const
{
    const QRectF area = plot();
    const double least = std::log(m_least);
    const double most = std::log(m_most);
    return {area.left() + placeBetween(std::log(point.predicted), least, most, area.width()),
        area.bottom() - placeBetween(std::log(point.measured), least, most, area.height())};
}

int OperatorScatter::pointAt(QPointF at) const
{
    int best = -1;
    double nearest = kReach * kReach;
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const QPointF away = placeOf(m_points[i]) - at;
        const double distance = QPointF::dotProduct(away, away);
        if (distance < nearest) {
            nearest = distance;
            best = static_cast<int>(i);
        }
    }
    return best;
}

void OperatorScatter::choose(int point)
{
    m_current = point;
    update();
    if (point < 0)
        return;
    const OperatorPoint &chosenPoint = m_points[static_cast<std::size_t>(point)];
    setAccessibleDescription(tr("%1: predicted %2, measured %3")
                                 .arg(QString::fromStdString(chosenPoint.name),
                                     QString::fromStdString(formatSeconds(chosenPoint.predicted)),
                                     QString::fromStdString(formatSeconds(chosenPoint.measured))));
    Q_EMIT chosen(chosenPoint.op);
}

void OperatorScatter::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        choose(pointAt(event->position()));
}

void OperatorScatter::keyPressEvent(QKeyEvent *event)
{
    const int count = static_cast<int>(m_points.size());
    if (count > 0 && (event->key() == Qt::Key_Right || event->key() == Qt::Key_Down))
        choose((m_current + 1) % count);
    else if (count > 0 && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Up))
        choose((m_current + count - 1) % count);
    else
        QWidget::keyPressEvent(event);
}

bool OperatorScatter::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        if (const int point = pointAt(help->pos()); point >= 0) {
            const OperatorPoint &shown = m_points[static_cast<std::size_t>(point)];
            QToolTip::showText(help->globalPos(),
                tr("%1\npredicted %2\nmeasured %3")
                    .arg(QString::fromStdString(shown.name),
                        QString::fromStdString(formatSeconds(shown.predicted)),
                        QString::fromStdString(formatSeconds(shown.measured))),
                this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return QWidget::event(event);
}

void OperatorScatter::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    painter.setPen(palette.textMuted);
    if (m_points.empty()) {
        painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap,
            tr("After a run every operator's predicted and measured time appears here."));
        return;
    }
    const QRectF area = plot();
    for (double decade = std::pow(10, std::ceil(std::log10(m_least))); decade < m_most; decade *= 10) {
        const QPointF at = placeOf({{}, {}, decade, decade});
        painter.setPen(palette.grid);
        painter.drawLine(QPointF(at.x(), area.top()), QPointF(at.x(), area.bottom()));
        painter.drawLine(QPointF(area.left(), at.y()), QPointF(area.right(), at.y()));
        painter.setPen(palette.textMuted);
        const QString label = QString::fromStdString(formatSeconds(decade));
        painter.drawText(
            QRectF(at.x() - 60, area.bottom() + 2, 120, metrics.height()), Qt::AlignHCenter, label);
        painter.drawText(QRectF(0, at.y() - metrics.height() / 2.0, area.left() - 4, metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, label);
    }
    painter.drawText(
        QRectF(area.left(), area.bottom() + metrics.height() * 1.1, area.width(), metrics.height()),
        Qt::AlignHCenter, tr("predicted"));
    painter.save();
    painter.translate(metrics.height() * 0.2, area.center().y());
    painter.rotate(-90);
    painter.drawText(
        QRectF(-area.height() / 2, 0, area.height(), metrics.height()), Qt::AlignHCenter, tr("measured"));
    painter.restore();
    painter.setPen(QPen(palette.edgeStrong, 1, Qt::DashLine));
    painter.drawLine(area.bottomLeft(), area.topRight());
    QColor fill = palette.accent;
    fill.setAlphaF(0.65f);
    painter.setPen(Qt::NoPen);
    painter.setBrush(fill);
    painter.setClipRect(area);
    for (const OperatorPoint &point : m_points)
        painter.drawEllipse(placeOf(point), kRadius, kRadius);
    painter.setBrush(Qt::NoBrush);
    for (const std::size_t outlier : outliers(m_points, kNamed)) {
        const OperatorPoint &point = m_points[outlier];
        const QPointF at = placeOf(point);
        painter.setPen(palette.text);
        const QString name = QString::fromStdString(elided(point.name, 28));
        const double width = metrics.horizontalAdvance(name);
        const bool left = at.x() + 6 + width > area.right();
        painter.drawText(
            QPointF(left ? at.x() - 6 - width : at.x() + 6, at.y() + metrics.ascent() / 2.0), name);
    }
    if (m_current >= 0) {
        painter.setPen(QPen(palette.text, 2));
        painter.drawEllipse(placeOf(m_points[static_cast<std::size_t>(m_current)]), kRadius + 2, kRadius + 2);
    }
    painter.setClipping(false);
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

} // namespace planloom

#include "moc_run_charts.cpp"
