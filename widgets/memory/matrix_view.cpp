#include "widgets/memory/matrix_view.h"

#include "widgets/common/palette.h"
#include "widgets/common/quantity_text.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>

namespace planloom {

MatrixView::MatrixView(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Bytes from device to device"));
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

QSize MatrixView::sizeHint() const
{
    return {fontMetrics().height() * 14, fontMetrics().height() * 11};
}

QSize MatrixView::minimumSizeHint() const
{
    return {fontMetrics().height() * 6, fontMetrics().height() * 5};
}

void MatrixView::setMatrix(
    std::shared_ptr<const CommunicationMatrix> matrix, std::optional<InstructionKind> kind, bool byTime)
{
    show(std::move(matrix), nullptr, kind, byTime);
}

void MatrixView::setDifference(std::shared_ptr<const CommunicationMatrix> a,
    std::shared_ptr<const CommunicationMatrix> b, std::optional<InstructionKind> kind, bool byTime)
{
    const bool both = a && b;
    show(both ? std::move(b) : nullptr, both ? std::move(a) : nullptr, kind, byTime);
}

void MatrixView::show(std::shared_ptr<const CommunicationMatrix> matrix,
    std::shared_ptr<const CommunicationMatrix> takenOff, std::optional<InstructionKind> kind, bool byTime)
{
    m_matrix = std::move(matrix);
    m_takenOff = std::move(takenOff);
    m_kind = kind;
    m_byTime = byTime;
    m_count = std::max(m_matrix ? m_matrix->deviceCount : 0, m_takenOff ? m_takenOff->deviceCount : 0);
    m_values.assign(static_cast<std::size_t>(m_count) * static_cast<std::size_t>(m_count), 0);
    if (m_matrix)
        sumUp(*m_matrix, 1);
    if (m_takenOff)
        sumUp(*m_takenOff, -1);
    m_most = 0;
    for (const double value : m_values)
        m_most = std::max(m_most, std::abs(value));
    if (m_current.first >= m_count || m_current.second >= m_count)
        m_current = {-1, -1};
    update();
}

void MatrixView::setLargest(double value)
{
    m_most = value;
    update();
}

void MatrixView::sumUp(const CommunicationMatrix &matrix, double sign)
{
    for (const Flow &flow : matrix.flows) {
        if (m_kind && flow.kind != *m_kind)
            continue;
        m_values[static_cast<std::size_t>(flow.from.index) * static_cast<std::size_t>(m_count)
            + static_cast<std::size_t>(flow.to.index)] += sign
            * (m_byTime ? static_cast<double>(flow.time.count()) * 1e-9
                        : static_cast<double>(flow.bytes.count));
    }
}

void MatrixView::setCurrent(std::pair<int, int> cell)
{
    m_current = cell.first < m_count && cell.second < m_count ? cell : std::pair{-1, -1};
    setAccessibleDescription(m_current.first >= 0 ? factOf(m_current.first, m_current.second) : QString());
    update();
}

double MatrixView::valueOf(int from, int to) const
{
    if (from < 0 || to < 0 || from >= m_count || to >= m_count)
        return 0;
    return m_values[static_cast<std::size_t>(from) * static_cast<std::size_t>(m_count)
        + static_cast<std::size_t>(to)];
}

QRectF MatrixView::plot() const
{
    const double label = fontMetrics().horizontalAdvance(QStringLiteral("0000"));
    const double line = fontMetrics().height();
    // Below it there is the scale.
    const QRectF inside = QRectF(rect()).adjusted(label + line * 1.2, line * 2.2, -line, -line * 1.5);
    const double side = std::max(0.0, std::min(inside.width(), inside.height() * 3.0));
    return {inside.left(), inside.top(), side, std::min(inside.height(), side)};
}

QRectF MatrixView::cellRect(int from, int to) const
{
    const QRectF area = plot();
    const double count = std::max(m_count, 1);
    return {area.left() + to * area.width() / count, area.top() + from * area.height() / count,
        area.width() / count, area.height() / count};
}

std::pair<int, int> MatrixView::cellAt(QPointF at) const
{
    const QRectF area = plot();
    if (!m_matrix || m_count < 1 || !area.contains(at))
        return {-1, -1};
    const int count = m_count;
    return {std::clamp(static_cast<int>((at.y() - area.top()) / area.height() * count), 0, count - 1),
        std::clamp(static_cast<int>((at.x() - area.left()) / area.width() * count), 0, count - 1)};
}

QString MatrixView::factOf(int from, int to) const
{
    if (m_takenOff) {
        const auto of = [&](const CommunicationMatrix &matrix) {
            return m_byTime ? timeText(matrix.timeBetween({from}, {to}, m_kind))
                            : bytesText(matrix.bytesBetween({from}, {to}, m_kind));
        };
        return tr("device %1 to %2: %3 → %4").arg(from).arg(to).arg(of(*m_takenOff), of(*m_matrix));
    }
    return tr("device %1 to %2: %3 in %4")
        .arg(from)
        .arg(to)
        .arg(bytesText(m_matrix->bytesBetween({from}, {to}, m_kind)),
            timeText(m_matrix->timeBetween({from}, {to}, m_kind)));
}

void MatrixView::choose(std::pair<int, int> cell)
{
    m_current = cell;
    if (cell.first >= 0)
        setAccessibleDescription(factOf(cell.first, cell.second));
    update();
    Q_EMIT cellChosen(cell.first, cell.second);
}

void MatrixView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        choose(cellAt(event->position()));
}

void MatrixView::keyPressEvent(QKeyEvent *event)
{
    const int count = m_matrix ? m_count : 0;
    auto [from, to] = m_current;
    switch (count > 0 ? event->key() : 0) {
    case Qt::Key_Left:
        --to;
        break;
    case Qt::Key_Right:
        ++to;
        break;
    case Qt::Key_Up:
        --from;
        break;
    case Qt::Key_Down:
        ++from;
        break;
    case Qt::Key_Escape:
        choose({-1, -1});
        return;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    choose({std::clamp(from, 0, count - 1), std::clamp(to, 0, count - 1)});
}

bool MatrixView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        const auto [from, to] = cellAt(help->pos());
        from < 0 ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), factOf(from, to), this);
        return true;
    }
    return QWidget::event(event);
}

QColor MatrixView::colourOf(const Palette &palette, double value) const
{
    const double share = m_most > 0 ? std::abs(value) / m_most : 0;
    if (value == 0)
        return palette.canvas;
    return m_takenOff
        ? mixed(palette.surface, value > 0 ? palette.error : palette.success, 0.35 + 0.65 * share)
        : heatColour(palette, share); // more is worse
}

/// From the least to the most, or of a difference from less to more.
void MatrixView::paintScale(QPainter &painter, const Palette &palette) const
{
    constexpr int kSteps = 24;
    if (m_most <= 0)
        return;
    const QFontMetrics metrics = fontMetrics();
    const auto text = [this](double value) {
        return m_byTime ? QString::fromStdString(formatSeconds(value))
                        : bytesText({static_cast<std::int64_t>(value)});
    };
    const QRectF area = plot();
    const QString least = m_takenOff ? QChar(0x2212) + text(m_most) : QStringLiteral("0");
    const QString most = (m_takenOff ? QStringLiteral("+") : QString()) + text(m_most);
    const double top = area.bottom() + metrics.height() * 0.35;
    const double left = area.left() + metrics.horizontalAdvance(least) + 6;
    const double width =
        std::min(area.right() - metrics.horizontalAdvance(most) - 6 - left, metrics.height() * 12.0);
    if (width < kSteps)
        return;
    painter.setPen(palette.textMuted);
    painter.drawText(QPointF(area.left(), top + metrics.ascent() - 1), least);
    for (int i = 0; i < kSteps; ++i) {
        const double share = (i + 1.0) / kSteps;
        painter.fillRect(QRectF(left + width * i / kSteps, top, width / kSteps + 0.5, metrics.height() * 0.7),
            colourOf(palette, m_takenOff ? (2 * share - 1) * m_most : share * m_most));
    }
    painter.setPen(palette.textMuted);
    painter.drawText(QPointF(left + width + 6, top + metrics.ascent() - 1), most);
}

void MatrixView::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    if (!m_matrix || m_count < 1) {
        painter.setPen(palette.textMuted);
        painter.drawText(
            rect(), Qt::AlignCenter | Qt::TextWordWrap, tr("What devices send to one another appears here."));
        return;
    }
    const QRectF area = plot();
    const int count = m_count;
    const double cellWidth = area.width() / count;
    const double cellHeight = area.height() / count;
    const int everyColumn = std::max(1,
        static_cast<int>(
            std::ceil(metrics.horizontalAdvance(QStringLiteral("000 ")) / std::max(cellWidth, 0.01))));
    const int everyRow =
        std::max(1, static_cast<int>(std::ceil(metrics.height() / std::max(cellHeight, 0.01))));
    painter.setPen(palette.textMuted);
    painter.drawText(QRectF(area.left(), 0, area.width(), metrics.height()), Qt::AlignHCenter, tr("to"));
    painter.save();
    painter.translate(2, area.center().y());
    painter.rotate(-90);
    painter.drawText(
        QRectF(-area.height() / 2, 0, area.height(), metrics.height()), Qt::AlignHCenter, tr("from"));
    painter.restore();
    for (int i = 0; i < count; ++i) {
        if (i % everyColumn == 0)
            painter.drawText(QRectF(area.left() + i * cellWidth, area.top() - metrics.height() - 1,
                                 std::max(cellWidth, metrics.averageCharWidth() * 4.0), metrics.height()),
                cellWidth > metrics.averageCharWidth() * 3 ? Qt::AlignHCenter : Qt::AlignLeft,
                QString::number(i));
        if (i % everyRow == 0)
            painter.drawText(QRectF(0, area.top() + i * cellHeight, area.left() - 4,
                                 std::max(cellHeight, static_cast<double>(metrics.height()))),
                Qt::AlignRight | (cellHeight > metrics.height() ? Qt::AlignVCenter : Qt::AlignTop),
                QString::number(i));
    }
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            const QRectF cell = cellRect(from, to);
            const double value = valueOf(from, to);
            const QColor colour = colourOf(palette, value);
            painter.fillRect(cell.adjusted(0.5, 0.5, -0.5, -0.5), colour);
            if (value == 0 || cell.height() < metrics.height())
                continue;
            const double size = std::abs(value);
            QString text = m_byTime ? QString::fromStdString(formatSeconds(size))
                                    : bytesText({static_cast<std::int64_t>(size)});
            if (m_takenOff)
                text.prepend(value > 0 ? QLatin1Char('+') : QChar(0x2212));
            if (metrics.horizontalAdvance(text) + 4 <= cell.width()) {
                painter.setPen(readableOn(colour));
                painter.drawText(cell, Qt::AlignCenter, text);
            }
        }
    }
    paintScale(painter, palette);
    if (m_current.first >= 0) {
        painter.setPen(QPen(palette.text, 2));
        painter.drawRect(cellRect(m_current.first, m_current.second).adjusted(1, 1, -1, -1));
    }
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

} // namespace planloom

#include "moc_matrix_view.cpp"
