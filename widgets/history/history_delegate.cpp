#include "widgets/history/history_delegate.h"

#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtWidgets/QApplication>

#include "widgets/common/palette.h"
#include "widgets/history/history_model.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kMostLanes = 12; ///< Drawn; lanes further right share the last one.

StepPlace placeOf(const QModelIndex &index)
{
    return static_cast<StepPlace>(index.data(HistoryModel::PlaceRole).toInt());
}

int laneWidth(const QFontMetrics &metrics)
{
    return std::max(metrics.height() * 3 / 4, 10);
}

} // namespace

HistoryDelegate::HistoryDelegate(const HistoryModel *model, const HistoryFilter *filter, QObject *parent)
    : QStyledItemDelegate(parent)
    , m_model(model)
    , m_filter(filter)
{
}

int HistoryDelegate::treeWidth(const QWidget &widget) const
{
    const int lane = laneWidth(widget.fontMetrics());
    return (std::min(m_model->lanes().laneCount(), kMostLanes) + 1) * lane;
}

QSize HistoryDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    QSize size = QStyledItemDelegate::sizeHint(option, index);
    size.setHeight(option.fontMetrics.height() * 3 / 2);
    if (index.column() == HistoryModel::Tree && option.widget)
        size.setWidth(treeWidth(*option.widget));
    return size;
}

void HistoryDelegate::initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const
{
    QStyledItemDelegate::initStyleOption(option, index);
    if (!option->widget)
        return;
    const Palette &palette = paletteFor(*option->widget);
    const StepPlace place = placeOf(index);
    if (place == StepPlace::Current)
        option->font.setBold(true);
    QColor text =
        place == StepPlace::Redo || place == StepPlace::Elsewhere ? palette.textMuted : palette.text;
    const QVariant change = index.data(HistoryModel::ChangeRole);
    if (change.isValid()) {
        switch (static_cast<Change>(change.toInt())) {
        case Change::Better:
            text = palette.success;
            break;
        case Change::Worse:
            text = palette.error;
            break;
        case Change::Same:
        case Change::Other:
            text = palette.textMuted;
            break;
        }
    }
    option->palette.setColor(QPalette::Text, text);
}

void HistoryDelegate::paint(
    QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    if (index.column() != HistoryModel::Tree && index.column() != HistoryModel::Words) {
        QStyledItemDelegate::paint(painter, option, index);
        return;
    }
    QStyleOptionViewItem plain = option;
    initStyleOption(&plain, index);
    plain.text.clear();
    const QWidget *widget = option.widget;
    QStyle *style = widget ? widget->style() : QApplication::style();
    style->drawControl(QStyle::CE_ItemViewItem, &plain, painter, widget); // background, selection, focus
    painter->save();
    painter->setClipRect(option.rect);
    if (index.column() == HistoryModel::Tree)
        paintTree(*painter, option, m_filter->mapToSource(index).row());
    else
        paintWords(*painter, option, index);
    painter->restore();
}

void HistoryDelegate::paintTree(QPainter &painter, const QStyleOptionViewItem &option, int row) const
{
    const Palette &palette = paletteFor(*option.widget);
    const LaneRow lanes = m_model->lanes().row(static_cast<std::size_t>(row));
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    const QColor background = selected ? option.palette.color(QPalette::Highlight) : palette.surface;
    const int width = laneWidth(option.fontMetrics);
    const double top = option.rect.top();
    const double bottom = option.rect.bottom() + 1.0;
    const double middle = (top + bottom) / 2;
    const auto x = [&](std::int32_t lane) {
        return option.rect.left() + width * (std::min(lane, kMostLanes - 1) + 1.0);
    };
    const auto penOf = [&](std::int32_t branch) {
        QColor colour = categoricalColour(palette, branch);
        if (contrastRatio(colour, background) < 3)
            colour = mixed(colour, readableOn(background), 0.45);
        return QPen(colour, std::max(width / 6.0, 1.5));
    };
    painter.setRenderHint(QPainter::Antialiasing);
    const bool whole = !m_filter->isFiltering(); // rows between are missing otherwise
    if (whole) {
        for (const BranchLine &line : lanes.through) {
            painter.setPen(penOf(line.branch));
            painter.drawLine(QPointF(x(line.lane), top), QPointF(x(line.lane), bottom));
        }
        for (const BranchLine &line : lanes.forks) {
            painter.setPen(penOf(line.branch));
            QPainterPath path(QPointF(x(lanes.lane), middle));
            path.cubicTo(
                QPointF(x(line.lane), middle), QPointF(x(line.lane), middle), QPointF(x(line.lane), bottom));
            painter.drawPath(path);
        }
        painter.setPen(penOf(lanes.branch));
        if (lanes.above)
            painter.drawLine(QPointF(x(lanes.lane), top), QPointF(x(lanes.lane), middle));
        if (lanes.below)
            painter.drawLine(QPointF(x(lanes.lane), middle), QPointF(x(lanes.lane), bottom));
    }
    // The step: filled when it is in the design, hollow when it isn't, with a ring where one is.
    const StepPlace place = m_model->lanes().placeOf(static_cast<std::size_t>(row));
    const QPen pen = penOf(lanes.branch);
    const double radius = width * 0.27;
    const QPointF centre(x(lanes.lane), middle);
    painter.setPen(pen);
    if (place == StepPlace::Current) {
        painter.setBrush(background);
        painter.drawEllipse(centre, radius * 1.75, radius * 1.75);
        painter.setBrush(pen.color());
        painter.drawEllipse(centre, radius * 0.75, radius * 0.75);
    } else {
        painter.setBrush(place == StepPlace::Past ? pen.color() : background);
        painter.drawEllipse(centre, radius, radius);
    }
}

void HistoryDelegate::paintWords(
    QPainter &painter, const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    const Palette &palette = paletteFor(*option.widget);
    QStyleOptionViewItem styled = option;
    initStyleOption(&styled, index);
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    const QColor text = styled.palette.color(selected ? QPalette::HighlightedText : QPalette::Text);
    QRect rest = option.rect.adjusted(4, 0, -4, 0);
    QFont small = styled.font;
    small.setBold(false);
    small.setPointSizeF(std::max(styled.font.pointSizeF() * 0.88, 6.5));
    const QFontMetrics metrics(small);
    const int height = std::min(metrics.height() + 4, rest.height() - 2);
    const auto tag = [&](const QString &name, bool isName) {
        const QString shown = metrics.elidedText(name, Qt::ElideMiddle, metrics.averageCharWidth() * 22);
        const int icon = height / 2;
        QRect box(rest.left(), rest.center().y() - height / 2, metrics.horizontalAdvance(shown) + icon + 14,
            height);
        if (box.right() > rest.right() - metrics.averageCharWidth() * 6)
            return; // the words come first
        painter.setRenderHint(QPainter::Antialiasing);
        const QColor ink = isName ? readableOn(palette.accent) : selected ? text : palette.text;
        painter.setPen(QPen(isName ? palette.accent : selected ? text : palette.border, 1));
        if (isName && selected)
            painter.setPen(QPen(text, 1));
        painter.setBrush(isName ? QBrush(palette.accent) : QBrush(Qt::NoBrush));
        painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
        // A flag for a name, a fork for a branch.
        const QRectF mark(box.left() + 5, box.center().y() - icon / 2.0 + 0.5, icon, icon);
        painter.setPen(QPen(ink, 1.3));
        if (isName) {
            painter.drawLine(mark.bottomLeft(), mark.topLeft());
            painter.setBrush(ink);
            painter.drawPolygon(QPolygonF{mark.topLeft(), QPointF(mark.right(), mark.top() + icon * 0.28),
                QPointF(mark.left(), mark.top() + icon * 0.56)});
        } else {
            painter.setBrush(Qt::NoBrush);
            painter.drawLine(mark.topLeft(), mark.bottomLeft());
            QPainterPath path(QPointF(mark.left(), mark.top() + icon * 0.7));
            path.quadTo(QPointF(mark.right(), mark.top() + icon * 0.7), mark.topRight());
            painter.drawPath(path);
        }
        painter.setFont(small);
        painter.setPen(ink);
        painter.drawText(box.adjusted(icon + 8, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, shown);
        rest.setLeft(box.right() + 6);
    };
    for (const QString &name : index.data(HistoryModel::NamesRole).toStringList())
        tag(name, true);
    for (const QString &branch : index.data(HistoryModel::BranchesRole).toStringList())
        tag(branch, false);
    painter.setFont(styled.font);
    painter.setPen(text);
    painter.drawText(rest, Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine,
        QFontMetrics(styled.font).elidedText(index.data().toString(), Qt::ElideRight, rest.width()));
}

} // namespace planloom

#include "moc_history_delegate.cpp"
