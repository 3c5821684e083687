#include "widgets/inspector/flow_layout.h"

#include <algorithm>

namespace planloom {

FlowLayout::FlowLayout(QWidget *parent)
    : QLayout(parent)
{
    setContentsMargins(0, 0, 0, 0);
}

FlowLayout::~FlowLayout() = default;

void FlowLayout::addItem(QLayoutItem *item)
{
    m_items.emplace_back(item);
}

QLayoutItem *FlowLayout::itemAt(int index) const
{
    return index >= 0 && index < count() ? m_items[static_cast<std::size_t>(index)].get() : nullptr;
}

QLayoutItem *FlowLayout::takeAt(int index)
{
    if (index < 0 || index >= count())
        return nullptr;
    QLayoutItem *item = m_items[static_cast<std::size_t>(index)].release();
    m_items.erase(m_items.begin() + index);
    return item;
}

QSize FlowLayout::minimumSize() const
{
    QSize size;
    for (const auto &item : m_items)
        size = size.expandedTo(item->sizeHint());
    return size;
}

void FlowLayout::setGeometry(const QRect &rect)
{
    QLayout::setGeometry(rect);
    place(rect, true);
}

int FlowLayout::place(const QRect &rect, bool move) const
{
    const int gap = std::max(spacing(), 0);
    int x = rect.left();
    int y = rect.top();
    int high = 0;
    for (const auto &item : m_items) {
        const QSize size = item->sizeHint();
        if (x > rect.left() && x + size.width() > rect.left() + rect.width()) {
            x = rect.left();
            y += high + gap;
            high = 0;
        }
        if (move)
            item->setGeometry({QPoint(x, y), size});
        x += size.width() + gap;
        high = std::max(high, size.height());
    }
    return y + high - rect.top();
}

} // namespace planloom
