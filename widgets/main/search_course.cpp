#include "widgets/main/search_course.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include "widgets/common/format.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// The upper edge is at so many times the best step: the first plans are often far slower.
constexpr double kMostShown = 1.6;

QString courseSeconds(double seconds)
{
    return QString::fromStdString(formatSeconds(seconds));
}

} // namespace

SearchCourse::SearchCourse(std::shared_ptr<const SearchResult> result, QWidget *parent)
    : QWidget(parent)
    , m_result(std::move(result))
{
    setMouseTracking(true);
    setMinimumHeight(fontMetrics().height() * 10);
    setAccessibleName(tr("The best plan and the bound over the time of the search"));
    setAccessibleDescription(wordsAt(width()));
    double least = m_result->best.seconds;
    double most = std::max(m_result->best.seconds, m_result->best.simulatedSeconds);
    for (const SearchMoment &moment : m_result->course) {
        if (moment.bound > 0)
            least = std::min(least, moment.bound);
        most = std::max(most, moment.best);
        m_end = std::max(m_end, moment.at);
    }
    m_end = m_result->searchSeconds > 0 ? m_result->searchSeconds : m_end;
    m_most = std::min(most, kMostShown * std::max(m_result->best.seconds, m_result->best.simulatedSeconds));
    m_least = std::max(0.0, least - 0.1 * (m_most - least));
    if (m_most <= m_least)
        m_most = m_least + std::max(1e-9, 0.1 * m_least);
    m_most += 0.05 * (m_most - m_least);
}

QSize SearchCourse::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 14};
}

QRectF SearchCourse::area() const
{
    const double line = fontMetrics().height();
    const double left = fontMetrics().horizontalAdvance(QStringLiteral("000.00 ms")) + 12;
    const double top = 3.6 * line; // below what says which line is which
    return QRectF(left, top, width() - left - line, height() - top - 2.2 * line);
}

QPointF SearchCourse::placeOf(double at, double seconds) const
{
    const QRectF in = area();
    const double x = m_end > 0 ? std::clamp(at / m_end, 0.0, 1.0) : 0;
    const double y = std::clamp((seconds - m_least) / (m_most - m_least), 0.0, 1.0);
    return {in.left() + x * in.width(), in.bottom() - y * in.height()};
}

/// Steps: what was known holds until the next moment.
void SearchCourse::paintLine(QPainter &painter, const QColor &colour, Qt::PenStyle style, bool ofBound) const
{
    QPolygonF line;
    double last = 0;
    for (const SearchMoment &moment : m_result->course) {
        const double value = ofBound ? std::max(last, moment.bound) : moment.best;
        if (value <= 0)
            continue;
        if (!line.isEmpty())
            line << placeOf(moment.at, last);
        line << placeOf(moment.at, value);
        last = value;
    }
    const double end = ofBound ? m_result->bound : m_result->best.seconds;
    if (!line.isEmpty())
        line << placeOf(m_end, last);
    line << placeOf(m_end, end);
    painter.setPen(QPen(colour, 2, style));
    painter.drawPolyline(line);
}

void SearchCourse::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QPalette &colours = palette();
    const QRectF in = area();
    const double line = fontMetrics().height();
    QColor quiet = colours.color(QPalette::Text);
    quiet.setAlphaF(0.55F);
    QColor faint = quiet;
    faint.setAlphaF(0.25F);
    painter.setPen(faint);
    painter.drawLine(in.bottomLeft(), in.bottomRight());
    painter.drawLine(in.bottomLeft(), in.topLeft());
    painter.setPen(quiet);
    for (const double part : {0.0, 0.5, 1.0}) {
        const QString time = courseSeconds(part * m_end);
        const double wide = fontMetrics().horizontalAdvance(time);
        const double x = in.left() + part * in.width() - part * wide;
        painter.drawText(QPointF(x, in.bottom() + line), time);
        painter.drawText(QRectF(0, in.bottom() - part * in.height() - line / 2, in.left() - 6, line + 2),
            Qt::AlignRight | Qt::AlignVCenter, courseSeconds(m_least + part * (m_most - m_least)));
    }
    painter.drawText(QRectF(in.left(), in.bottom() + line, in.width(), line + 4), Qt::AlignHCenter,
        tr("time of the search"));
    const QColor accent = colours.color(QPalette::Highlight);
    paintLine(painter, quiet, Qt::DashLine, true);
    paintLine(painter, accent, Qt::SolidLine, false);
    painter.setPen(Qt::NoPen);
    painter.setBrush(accent);
    for (const SearchedPlan &plan : m_result->seen)
        if (plan.simulatedSeconds > 0)
            painter.drawEllipse(placeOf(plan.at, plan.simulatedSeconds), 3, 3);
    // What is what, above.
    const QString words[] = {
        tr("best so far, in the search's model"), tr("no plan is below"), tr("simulated")};
    double wide = 0;
    for (const QString &word : words)
        wide = std::max(wide, static_cast<double>(fontMetrics().horizontalAdvance(word)));
    const double left = std::max(in.left(), in.right() - wide - 4);
    for (int i = 0; i < 3; ++i) {
        const double y = (i + 0.9) * line;
        if (i < 2) {
            painter.setPen(QPen(i == 0 ? accent : quiet, 2, i == 0 ? Qt::SolidLine : Qt::DashLine));
            painter.drawLine(QPointF(left - 28, y - line / 3), QPointF(left - 8, y - line / 3));
        } else {
            painter.setPen(Qt::NoPen);
            painter.drawEllipse(QPointF(left - 18, y - line / 3), 3, 3);
        }
        painter.setPen(quiet);
        painter.drawText(QPointF(left, y), words[i]);
    }
}

QString SearchCourse::wordsAt(double x) const
{
    const QRectF in = area();
    const double at = in.width() > 0 ? std::clamp((x - in.left()) / in.width(), 0.0, 1.0) * m_end : m_end;
    SearchMoment known;
    for (const SearchMoment &moment : m_result->course)
        if (moment.at <= at)
            known = {moment.at, moment.best, std::max(known.bound, moment.bound)};
    const QString when = tr("after %1").arg(courseSeconds(at));
    if (known.best <= 0)
        return tr("no plan yet %1").arg(when);
    if (known.bound <= 0)
        return tr("best %1 %2; not all are bounded yet").arg(courseSeconds(known.best), when);
    return tr("best %1, bound %2 %3").arg(courseSeconds(known.best), courseSeconds(known.bound), when);
}

bool SearchCourse::event(QEvent *event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto *help = static_cast<QHelpEvent *>(event);
    QToolTip::showText(help->globalPos(), wordsAt(help->pos().x()), this);
    return true;
}

} // namespace planloom

#include "moc_search_course.cpp"
