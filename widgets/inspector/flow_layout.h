#pragma once

#include <QtWidgets/QLayout>

#include <memory>
#include <vector>

namespace planloom {

/// Puts widgets side by side at their own widths, in as many lines as it takes.
class FlowLayout : public QLayout
{
public:
    explicit FlowLayout(QWidget *parent);
    ~FlowLayout() override;

    void addItem(QLayoutItem *item) override; ///< Takes it over.
    int count() const override { return static_cast<int>(m_items.size()); }
    QLayoutItem *itemAt(int index) const override;
    QLayoutItem *takeAt(int index) override;
    Qt::Orientations expandingDirections() const override { return {}; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override { return place({0, 0, width, 0}, false); }
    QSize sizeHint() const override { return minimumSize(); }
    QSize minimumSize() const override; ///< Of the widest widget.
    void setGeometry(const QRect &rect) override;

private:
    int place(const QRect &rect, bool move) const; ///< @return the height taken

    std::vector<std::unique_ptr<QLayoutItem>> m_items;
};

} // namespace planloom
