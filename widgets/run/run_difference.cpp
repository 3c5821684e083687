#include "widgets/run/run_difference.h"

#include "engine/base/words.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"

#include <QtGui/QPainter>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace planloom {

namespace {

QString timeText(std::int64_t nanoseconds, bool signedText)
{
    const QString text = QString::fromStdString(formatNanoseconds(std::abs(nanoseconds)));
    if (!signedText || nanoseconds == 0)
        return text;
    return (nanoseconds < 0 ? QStringLiteral("−") : QStringLiteral("+")) + text;
}

QString capitalised(QString text)
{
    if (!text.isEmpty())
        text[0] = text[0].toUpper();
    return text;
}

} // namespace

RunDifference::RunDifference(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("From the predicted step to the measured one"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void RunDifference::setWaterfall(std::optional<Waterfall> waterfall)
{
    m_waterfall = waterfall;
    QString said;
    if (m_waterfall) {
        said = tr("predicted %1, measured %2")
                   .arg(timeText(m_waterfall->from.step(), false), timeText(m_waterfall->to.step(), false));
        for (std::size_t i = 0; i < kStepPartCount; ++i) {
            const auto part = static_cast<StepPart>(i);
            said += QStringLiteral(", %1 %2").arg(
                QString::fromLatin1(nameOf(part)), timeText(m_waterfall->delta[part], true));
        }
    }
    setAccessibleDescription(said);
    update();
}

QSize RunDifference::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 13};
}

QSize RunDifference::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 36, fontMetrics().height() * 9};
}

void RunDifference::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    if (!m_waterfall) {
        painter.setPen(palette.textMuted);
        painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap,
            tr("After a run, what makes the measured step longer or shorter than the predicted one appears "
               "here."));
        return;
    }
    struct Line {
        QString name;
        std::int64_t begin;
        std::int64_t end;
        bool isStep;
    };
    std::vector<Line> lines;
    std::int64_t at = m_waterfall->from.step();
    std::int64_t most = std::max({at, m_waterfall->to.step(), std::int64_t{1}});
    lines.push_back({tr("Predicted"), 0, at, true});
    for (std::size_t i = 0; i < kStepPartCount; ++i) {
        const auto part = static_cast<StepPart>(i);
        const std::int64_t next = at + m_waterfall->delta[part];
        lines.push_back({capitalised(QString::fromLatin1(nameOf(part))), at, next, false});
        most = std::max(most, next);
        at = next;
    }
    lines.push_back({tr("Measured"), 0, m_waterfall->to.step(), true});
    int names = 0;
    int texts = 0;
    for (const Line &line : lines) {
        names = std::max(names, metrics.horizontalAdvance(line.name));
        texts = std::max(texts, metrics.horizontalAdvance(timeText(line.end - line.begin, !line.isStep)));
    }
    const int gap = metrics.averageCharWidth();
    const QRectF area(
        names + 2 * gap, gap / 2.0, std::max(width() - names - texts - 5 * gap, 1), height() - gap);
    const double high = area.height() / static_cast<double>(lines.size());
    const double bar = std::min(high * 0.7, metrics.height() * 1.1);
    const auto x = [&](std::int64_t value) {
        return area.left() + static_cast<double>(value) / static_cast<double>(most) * area.width();
    };
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Line &line = lines[i];
        const double middle = area.top() + (static_cast<double>(i) + 0.5) * high;
        const auto [left, right] = std::minmax(line.begin, line.end);
        const QRectF box(x(left), middle - bar / 2, std::max(x(right) - x(left), 1.0), bar);
        const std::int64_t change = line.end - line.begin;
        painter.fillRect(box,
            line.isStep      ? palette.accent
                : change > 0 ? palette.error
                : change < 0 ? palette.success
                             : palette.edgeStrong);
        if (i + 1 < lines.size()) {
            painter.setPen(palette.edgeStrong);
            painter.drawLine(
                QPointF(x(line.end), box.bottom()), QPointF(x(line.end), middle + high - bar / 2));
        }
        painter.setPen(line.isStep ? palette.text : palette.textMuted);
        painter.drawText(QRectF(0, middle - metrics.height(), names + gap, 2 * metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, line.name);
        // The sign says what the colour says.
        painter.setPen(palette.text);
        painter.drawText(
            QRectF(box.right() + gap, middle - metrics.height(), texts + 2 * gap, 2 * metrics.height()),
            Qt::AlignLeft | Qt::AlignVCenter, timeText(change, !line.isStep));
    }
}

void CollectivesModel::setFigures(std::vector<CollectiveFigures> figures)
{
    if (figures == m_figures)
        return;
    beginResetModel();
    m_figures = std::move(figures);
    endResetModel();
}

int CollectivesModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_figures.size());
}

int CollectivesModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant CollectivesModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return index.column() == Kind ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                      : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const CollectiveFigures &each = m_figures[static_cast<std::size_t>(index.row())];
    const auto seconds = [](double value) {
        return value > 0 ? QString::fromStdString(formatSeconds(value)) : QString();
    };
    switch (index.column()) {
    case Kind:
        return QString::fromLatin1(nameOf(each.kind));
    case Size:
        return QString::fromStdString(formatBytes(Bytes{each.bytes}));
    case Members:
        return QString::number(each.members);
    case Count:
        return QString::number(each.count);
    case Predicted:
        return seconds(each.predicted);
    case Measured:
        return seconds(each.measured);
    case Bandwidth:
        return each.bandwidth() > 0 ? tr("%1/s").arg(
                   QString::fromStdString(formatBytes(Bytes{static_cast<std::int64_t>(each.bandwidth())})))
                                    : QString();
    default:
        return {};
    }
}

QVariant CollectivesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::ToolTipRole && section == Bandwidth)
        return tr("What left a device in a second, by the ring algorithm, while the shortest one ran");
    if (role == Qt::ToolTipRole && section == Measured)
        return tr("Mean of one, with the time it waits for the others");
    if (role != Qt::DisplayRole)
        return {};
    const std::array<QString, ColumnCount> titles{tr("Collective"), tr("Size"), tr("Devices"), tr("Spans"),
        tr("Predicted"), tr("Measured"), tr("Bandwidth")};
    return section >= 0 && section < ColumnCount ? titles[static_cast<std::size_t>(section)] : QVariant();
}

} // namespace planloom

#include "moc_run_difference.cpp"
