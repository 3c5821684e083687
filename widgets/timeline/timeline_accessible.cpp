#include "widgets/timeline/timeline_accessible.h"

#include <QtGui/QAccessible>
#include <QtWidgets/QAccessibleWidget>

#include "widgets/timeline/timeline_view.h"

#include <map>
#include <vector>

namespace planloom {

namespace {

class TimelineAccessible;

/// A lane, or the one thing in it that the keyboard is at.
class LaneAccessible : public QAccessibleInterface
{
public:
    LaneAccessible(const TimelineAccessible *timeline, std::int32_t lane, const LaneAccessible *itemOf)
        : m_timeline(timeline)
        , m_lane(lane)
        , m_itemOf(itemOf)
    {
    }

    bool isValid() const override;
    QObject *object() const override { return nullptr; }
    QAccessibleInterface *parent() const override;
    QAccessibleInterface *child(int index) const override;
    QAccessibleInterface *childAt(int x, int y) const override;
    int childCount() const override;
    int indexOfChild(const QAccessibleInterface *child) const override;
    QString text(QAccessible::Text kind) const override;
    void setText(QAccessible::Text, const QString &) override { } // names of lanes follow from the plan
    QRect rect() const override;
    QAccessible::Role role() const override { return m_itemOf ? QAccessible::ListItem : QAccessible::Row; }
    QAccessible::State state() const override;

    LaneAccessible *item = nullptr; ///< Of a lane: owned by Qt's registry, as the lane is.
    QAccessible::Id id = 0;

private:
    bool hasFocus() const;

    const TimelineAccessible *m_timeline;
    std::int32_t m_lane;
    const LaneAccessible *m_itemOf;
};

class TimelineAccessible : public QAccessibleWidget
{
public:
    explicit TimelineAccessible(TimelineView *view)
        : QAccessibleWidget(view, QAccessible::Chart)
    {
    }
    ~TimelineAccessible() override
    {
        for (const auto &[lane, each] : m_lanes) {
            QAccessible::deleteAccessibleInterface(each->item->id);
            QAccessible::deleteAccessibleInterface(each->id);
        }
    }

    TimelineView *view() const { return static_cast<TimelineView *>(object()); }

    int childCount() const override
    {
        return static_cast<int>(lanes().size()) + QAccessibleWidget::childCount();
    }
    QAccessibleInterface *child(int index) const override
    {
        const auto all = lanes();
        if (index >= 0 && static_cast<std::size_t>(index) < all.size())
            return laneOf(all[static_cast<std::size_t>(index)]);
        return QAccessibleWidget::child(index - static_cast<int>(all.size()));
    }
    int indexOfChild(const QAccessibleInterface *child) const override
    {
        const auto all = lanes();
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto known = m_lanes.find(all[i]);
            if (known != m_lanes.end() && known->second == child)
                return static_cast<int>(i);
        }
        const int index = QAccessibleWidget::indexOfChild(child);
        return index < 0 ? -1 : index + static_cast<int>(all.size());
    }
    QAccessibleInterface *childAt(int x, int y) const override
    {
        for (const std::int32_t lane : lanes()) {
            if (QAccessibleInterface *each = laneOf(lane); each->rect().contains(x, y))
                return each;
        }
        return QAccessibleWidget::childAt(x, y);
    }
    QAccessibleInterface *focusChild() const override
    {
        if (!view()->hasFocus() || !view()->focus().valid())
            return QAccessibleWidget::focusChild();
        return laneOf(view()->focus().lane)->item;
    }
    QString text(QAccessible::Text kind) const override
    {
        return kind == QAccessible::Description ? view()->focusText() : QAccessibleWidget::text(kind);
    }

    /// The lanes that are shown: their first devices.
    std::vector<std::int32_t> lanes() const
    {
        std::vector<std::int32_t> shown;
        for (const TimelineRow &row : view()->rows()) {
            if (row.kind == TimelineRow::Kind::Device)
                shown.push_back(row.lane);
        }
        return shown;
    }

    LaneAccessible *laneOf(std::int32_t lane) const
    {
        LaneAccessible *&known = m_lanes[lane];
        if (!known) {
            known = new LaneAccessible(this, lane, nullptr);
            known->item = new LaneAccessible(this, lane, known);
            known->id = QAccessible::registerAccessibleInterface(known);
            known->item->id = QAccessible::registerAccessibleInterface(known->item);
        }
        return known;
    }

private:
    mutable std::map<std::int32_t, LaneAccessible *> m_lanes; ///< Made when they are asked for.
};

bool LaneAccessible::isValid() const
{
    return m_timeline->isValid();
}

bool LaneAccessible::hasFocus() const
{
    return m_timeline->view()->focus().lane == m_lane;
}

QAccessibleInterface *LaneAccessible::parent() const
{
    if (m_itemOf)
        return const_cast<LaneAccessible *>(m_itemOf); // Qt's interface asks for it without const
    return const_cast<TimelineAccessible *>(m_timeline);
}

int LaneAccessible::childCount() const
{
    return !m_itemOf && hasFocus() ? 1 : 0;
}

QAccessibleInterface *LaneAccessible::child(int index) const
{
    return index == 0 && childCount() == 1 ? item : nullptr;
}

QAccessibleInterface *LaneAccessible::childAt(int x, int y) const
{
    QAccessibleInterface *only = child(0);
    return only && only->rect().contains(x, y) ? only : nullptr;
}

int LaneAccessible::indexOfChild(const QAccessibleInterface *child) const
{
    return childCount() == 1 && child == item ? 0 : -1;
}

QString LaneAccessible::text(QAccessible::Text kind) const
{
    if (kind != QAccessible::Name)
        return {};
    return m_itemOf ? m_timeline->view()->focusText() : m_timeline->view()->laneText(m_lane);
}

QRect LaneAccessible::rect() const
{
    const QRect inside = m_itemOf ? m_timeline->view()->focusRect() : m_timeline->view()->laneRect(m_lane);
    return inside.isEmpty() ? QRect()
                            : inside.translated(m_timeline->view()->viewport()->mapToGlobal(QPoint()));
}

QAccessible::State LaneAccessible::state() const
{
    QAccessible::State state;
    state.focusable = true;
    state.focused = m_itemOf && hasFocus() && m_timeline->view()->hasFocus();
    state.offscreen = rect().isEmpty();
    return state;
}

QAccessibleInterface *makeInterface(const QString &, QObject *object)
{
    auto *view = qobject_cast<TimelineView *>(object);
    return view ? new TimelineAccessible(view) : nullptr;
}

} // namespace

void installTimelineAccessibility()
{
    static const bool kInstalled = [] {
        QAccessible::installFactory(makeInterface);
        return true;
    }();
    static_cast<void>(kInstalled);
}

} // namespace planloom
