#include "widgets/lesson/lesson_arrows.h"

#include <QtCore/QEvent>
#include <QtCore/QLineF>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include "widgets/common/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom {

namespace {

constexpr int kFollowMilliseconds = 60;
constexpr int kDistance = 34; ///< Pixels between a box and what it is about.
constexpr int kPadding = 8;
constexpr int kAround = 4; ///< Of the outline of a target.
constexpr int kMostLetters = 36; ///< In a line of a box.
constexpr double kArrowHead = 9;

QPointF nearestOf(const QRectF &box, const QPointF &to)
{
    return {std::clamp(to.x(), box.left(), box.right()), std::clamp(to.y(), box.top(), box.bottom())};
}

/// From the edge of one box to that of the other.
QLineF between(const QRectF &box, const QRectF &target)
{
    const QPointF from = nearestOf(box, target.center());
    const QPointF to = nearestOf(target, from);
    return {nearestOf(box, to), to};
}

} // namespace

LessonArrows::LessonArrows(QWidget *window)
    : QWidget(window)
{
    setObjectName(QStringLiteral("lessonArrows"));
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    setGeometry(window->rect());
    window->installEventFilter(this);
    m_timer.setInterval(kFollowMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, &LessonArrows::follow);
    hide();
}

void LessonArrows::setTargets(std::vector<Target> targets)
{
    m_targets = std::move(targets);
    m_places.clear();
    m_boxes.clear();
    takePlaces();
    if (m_targets.empty()) {
        m_timer.stop();
        return;
    }
    raise();
    follow();
    m_timer.start();
}

bool LessonArrows::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parent() && event->type() == QEvent::Resize)
        setGeometry(parentWidget()->rect());
    return QWidget::eventFilter(watched, event);
}

void LessonArrows::follow()
{
    std::vector<std::optional<QRect>> places;
    for (const Target &target : m_targets) {
        std::optional<QRect> place = target.place();
        if (place)
            *place = place->intersected(rect());
        places.push_back(place && !place->isEmpty() ? place : std::nullopt);
    }
    if (places == m_places)
        return;
    m_places = std::move(places);
    m_boxes.clear();
    std::vector<QRect> taken;
    for (const auto &place : m_places) {
        if (place)
            taken.push_back(*place);
    }
    for (std::size_t i = 0; i < m_targets.size(); ++i) {
        if (!m_places[i])
            continue;
        m_boxes.push_back(boxFor(m_targets[i].words, *m_places[i], taken));
        taken.push_back(m_boxes.back());
    }
    takePlaces();
}

/// Beside the target, where it covers neither another target nor another box, inside the window.
QRect LessonArrows::boxFor(const QString &words, const QRect &target, const std::vector<QRect> &taken) const
{
    const int width = fontMetrics().averageCharWidth() * kMostLetters;
    const QSize size =
        fontMetrics().boundingRect(QRect(0, 0, width, height()), Qt::TextWordWrap, words).size()
        + QSize(2 * kPadding, 2 * kPadding);
    // Of a large target, near its middle.
    const int x = target.center().x() - size.width() / 2;
    const int y = target.center().y() - size.height() / 2;
    const std::array<QPoint, 9> corners{QPoint(x, target.bottom() + kDistance),
        QPoint(x, target.top() - kDistance - size.height()), QPoint(target.right() + kDistance, y),
        QPoint(target.left() - kDistance - size.width(), y),
        QPoint(target.right() + kDistance, target.bottom() + kDistance),
        QPoint(target.left() - kDistance - size.width(), target.bottom() + kDistance),
        QPoint(target.right() + kDistance, target.top() - kDistance - size.height()),
        QPoint(target.left() - kDistance - size.width(), target.top() - kDistance - size.height()),
        QPoint(x, y)};
    const QRect inside = rect().adjusted(kPadding, kPadding, -kPadding, -kPadding);
    QRect best;
    std::int64_t least = -1;
    for (const QPoint &corner : corners) {
        QRect box(corner, size);
        box.moveLeft(
            std::clamp(box.left(), inside.left(), std::max(inside.left(), inside.right() - box.width())));
        box.moveTop(
            std::clamp(box.top(), inside.top(), std::max(inside.top(), inside.bottom() - box.height())));
        std::int64_t covered = 0;
        for (const QRect &other : taken) {
            const QRect common = other.intersected(box);
            covered += static_cast<std::int64_t>(common.width()) * common.height();
        }
        if (least < 0 || covered < least) {
            least = covered;
            best = box;
        }
    }
    return best;
}

/// What is painted, and no more: what lies below is painted again with it.
QRegion LessonArrows::coveredRegion() const
{
    QRegion region;
    std::size_t shown = 0;
    for (const auto &place : m_places) {
        if (!place || shown >= m_boxes.size())
            continue;
        const QRect frame = place->adjusted(-2 * kAround, -2 * kAround, 2 * kAround, 2 * kAround);
        region += QRegion(frame) - place->adjusted(kAround, kAround, -kAround, -kAround);
        const QRect box = m_boxes[shown++];
        region += box.adjusted(-2, -2, 2, 2);
        const QLineF line = between(box, *place);
        const auto head = static_cast<int>(kArrowHead) + 2;
        region +=
            QRectF(line.p1(), line.p2()).normalized().toAlignedRect().adjusted(-head, -head, head, head);
    }
    return region & rect();
}

void LessonArrows::takePlaces()
{
    const QRegion region = coveredRegion();
    setVisible(!region.isEmpty());
    if (!region.isEmpty())
        setMask(region);
    update();
}

void LessonArrows::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Palette &palette = paletteFor(*this);
    std::size_t shown = 0;
    for (std::size_t i = 0; i < m_targets.size() && i < m_places.size(); ++i) {
        if (!m_places[i] || shown >= m_boxes.size())
            continue;
        const QRectF box = m_boxes[shown++];
        const QRectF target =
            QRectF(*m_places[i]).adjusted(-kAround, -kAround, kAround, kAround).intersected(rect());
        painter.setPen(QPen(palette.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(target, kAround, kAround);
        const QLineF line = between(box, target);
        if (line.length() > kArrowHead) {
            painter.drawLine(line);
            const double angle = std::atan2(-line.dy(), -line.dx());
            QPainterPath head(line.p2());
            for (const double turn : {-0.45, 0.45})
                head.lineTo(line.p2() + kArrowHead * QPointF(std::cos(angle + turn), std::sin(angle + turn)));
            head.closeSubpath();
            painter.fillPath(head, palette.accent);
        }
        painter.setBrush(palette.surfaceRaised);
        painter.drawRoundedRect(box, kPadding, kPadding);
        painter.setPen(palette.text);
        painter.drawText(
            box.adjusted(kPadding, kPadding, -kPadding, -kPadding), Qt::TextWordWrap, m_targets[i].words);
    }
}

} // namespace planloom

#include "moc_lesson_arrows.cpp"
