#include "widgets/timeline/timeline_painter.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include <algorithm>

namespace planloom {

namespace {

constexpr int kTooltipPadding = 9;
constexpr int kColumnGap = 14;
constexpr int kTooltipOffset = 16; ///< From the pointer.
constexpr int kSwatch = 14;

} // namespace

void paintFacts(QPainter &painter, const Palette &palette, const std::vector<FactLine> &facts,
    const QFont &font, QPoint at, const QRect &bounds)
{
    if (facts.empty())
        return;
    QFont bold = font;
    bold.setBold(true);
    const QFontMetrics metrics(font);
    const QFontMetrics boldMetrics(bold);
    const int line = metrics.height() + 2;
    int names = 0;
    int values = 0;
    int headings = 0;
    for (const FactLine &fact : facts) {
        const QString value = QString::fromStdString(fact.value);
        if (fact.name.empty()) {
            headings = std::max(headings, boldMetrics.horizontalAdvance(value));
            continue;
        }
        const int swatch = fact.memoryKind >= 0 ? kSwatch : 0;
        names = std::max(names, metrics.horizontalAdvance(QString::fromStdString(fact.name)) + swatch);
        values = std::max(values, metrics.horizontalAdvance(value));
    }
    const int width = std::max(headings, names + kColumnGap + values) + 2 * kTooltipPadding;
    const int height = line * static_cast<int>(facts.size()) + 2 * kTooltipPadding;
    QRect box(at + QPoint(kTooltipOffset, kTooltipOffset), QSize(width, height));
    if (box.right() > bounds.right())
        box.moveRight(std::max(at.x() - kTooltipOffset, bounds.left() + width));
    if (box.bottom() > bounds.bottom())
        box.moveBottom(std::max(at.y() - kTooltipOffset, bounds.top() + height));

    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    QPainterPath path;
    path.addRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    painter.fillPath(path, palette.surface);
    painter.setPen(palette.border);
    painter.drawPath(path);
    painter.setRenderHint(QPainter::Antialiasing, false);
    int y = box.top() + kTooltipPadding;
    bool first = true;
    for (const FactLine &fact : facts) {
        const QRect row(box.left() + kTooltipPadding, y, width - 2 * kTooltipPadding, line);
        const QString value = QString::fromStdString(fact.value);
        if (fact.name.empty()) {
            painter.setFont(first ? bold : font);
            painter.setPen(first ? palette.text : palette.textMuted);
            painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, value);
        } else {
            painter.setFont(font);
            const bool swatch = fact.memoryKind >= 0;
            if (swatch) {
                painter.fillRect(QRect(row.left(), row.top() + line / 2 - 5, 9, 9),
                    memoryColour(palette, static_cast<MemoryKind>(fact.memoryKind)));
            }
            painter.setPen(palette.textMuted);
            painter.drawText(row.adjusted(swatch ? kSwatch : 0, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                QString::fromStdString(fact.name));
            painter.setPen(palette.text);
            painter.drawText(
                row.adjusted(names + kColumnGap, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, value);
        }
        first = false;
        y += line;
    }
    painter.restore();
}

} // namespace planloom
