#include "widgets/dag/dag_accessible.h"

#include "engine/base/ids.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

#include <QtGui/QAccessible>
#include <QtWidgets/QAccessibleWidget>

#include <map>
#include <utility>

namespace planloom {

namespace {

class CanvasInterface;

/// One box in sight. Lives as long as the picture it is of; then it is invalid.
class BoxInterface : public QAccessibleInterface, public QAccessibleActionInterface
{
public:
    BoxInterface(DagView *view, DagPictureSnapshot picture, std::int32_t box)
        : m_view(view)
        , m_picture(std::move(picture))
        , m_box(box)
    {
    }

    bool isValid() const override { return m_view && m_view->picture() == m_picture; }
    QObject *object() const override { return nullptr; }
    QWindow *window() const override { return isValid() ? m_view->window()->windowHandle() : nullptr; }
    std::int32_t box() const { return m_box; }

    QAccessibleInterface *parent() const override
    {
        return isValid() ? QAccessible::queryAccessibleInterface(m_view) : nullptr;
    }
    QAccessibleInterface *child(int /*index*/) const override { return nullptr; }
    QAccessibleInterface *childAt(int /*x*/, int /*y*/) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface * /*child*/) const override { return -1; }

    QAccessible::Role role() const override
    {
        return isValid() && isGroup() ? QAccessible::Grouping : QAccessible::Graphic;
    }
    QAccessible::State state() const override
    {
        QAccessible::State state;
        state.invalid = !isValid();
        if (state.invalid)
            return state;
        const auto &marks = m_view->marks();
        state.selectable = state.focusable = true;
        state.selected = at(m_box) < marks.size() && (marks[at(m_box)] & kMarkSelected) != 0;
        state.focused = m_view->hasFocus() && m_view->focusedBox() == m_box;
        state.expandable = isGroup();
        state.expanded = m_picture->visible.at(m_box).frame;
        state.collapsed = state.expandable && !state.expanded;
        state.offscreen = !m_view->viewRect(m_box).intersects(QRectF(m_view->rect()));
        return state;
    }
    QRect rect() const override
    {
        if (!isValid())
            return {};
        const QRect rect = m_view->viewRect(m_box).toAlignedRect();
        return {m_view->mapToGlobal(rect.topLeft()), rect.size()};
    }
    QString text(QAccessible::Text kind) const override
    {
        if (!isValid())
            return {};
        if (kind == QAccessible::Name)
            return QString::fromStdString(m_picture->outline->at(m_picture->visible.at(m_box).item).label);
        return kind == QAccessible::Description ? m_view->describe(m_box) : QString();
    }
    void setText(QAccessible::Text /*kind*/, const QString & /*text*/) override { }

    /// Neighbours: nodes it gets data from label it, nodes that get its data are labelled by it.
    QList<std::pair<QAccessibleInterface *, QAccessible::Relation>> relations(
        QAccessible::Relation match) const override
    {
        QList<std::pair<QAccessibleInterface *, QAccessible::Relation>> result;
        if (!isValid())
            return result;
        auto *canvas = parent();
        for (const auto &edge : m_picture->visible.edges) {
            const auto add = [&](std::int32_t box, QAccessible::Relation relation) {
                if ((match & relation) != 0)
                    result.append({canvas->child(box - 1), relation});
            };
            if (edge.to == m_box)
                add(edge.from, QAccessible::Controlled);
            if (edge.from == m_box)
                add(edge.to, QAccessible::Controller);
        }
        return result;
    }

    void *interface_cast(QAccessible::InterfaceType type) override
    {
        return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface *>(this)
                                                    : nullptr;
    }
    QStringList actionNames() const override
    {
        QStringList names{pressAction(), setFocusAction()};
        if (isValid() && isGroup())
            names.append(toggleAction());
        return names;
    }
    void doAction(const QString &name) override
    {
        if (!isValid())
            return;
        if (name == pressAction())
            m_view->selectionModel()->select(
                planloom::operatorsOf(*m_picture->outline, m_picture->visible, m_box));
        else if (name == setFocusAction())
            m_view->focusBox(m_box);
        else if (name == toggleAction())
            m_view->toggleItem(m_picture->visible.at(m_box).item);
    }
    QStringList keyBindingsForAction(const QString & /*name*/) const override { return {}; }

private:
    bool isGroup() const
    {
        return m_picture->outline->at(m_picture->visible.at(m_box).item).kind != OutlineItem::Kind::Operator;
    }

    QPointer<DagView> m_view;
    DagPictureSnapshot m_picture;
    std::int32_t m_box;
};

class CanvasInterface : public QAccessibleWidget
{
public:
    explicit CanvasInterface(DagView *view)
        : QAccessibleWidget(view, QAccessible::Canvas)
    {
    }
    ~CanvasInterface() override { forget(); }

    int childCount() const override
    {
        const auto picture = view()->picture();
        return picture ? static_cast<int>(picture->visible.boxes.size()) - 1 : 0;
    }
    QAccessibleInterface *child(int index) const override
    {
        if (index < 0 || index >= childCount())
            return nullptr;
        if (view()->picture() != m_picture) {
            forget();
            m_picture = view()->picture();
        }
        auto found = m_ids.find(index + 1);
        if (found == m_ids.end()) {
            auto *made = new BoxInterface(view(), m_picture, index + 1); // owned by Qt from here on
            found = m_ids.emplace(index + 1, QAccessible::registerAccessibleInterface(made)).first;
        }
        return QAccessible::accessibleInterface(found->second);
    }
    int indexOfChild(const QAccessibleInterface *child) const override
    {
        const auto *box = dynamic_cast<const BoxInterface *>(child); // may be a child widget's
        return box != nullptr ? box->box() - 1 : -1;
    }
    QAccessibleInterface *childAt(int x, int y) const override
    {
        const std::int32_t box = view()->boxAt(QPointF(view()->mapFromGlobal(QPoint(x, y))));
        return box > 0 ? child(box - 1) : nullptr;
    }
    QAccessibleInterface *focusChild() const override
    {
        return view()->focusedBox() > 0 ? child(view()->focusedBox() - 1) : QAccessibleWidget::focusChild();
    }

private:
    DagView *view() const { return static_cast<DagView *>(widget()); } // made for one alone
    void forget() const
    {
        for (const auto &[box, id] : m_ids)
            QAccessible::deleteAccessibleInterface(id);
        m_ids.clear();
    }

    mutable DagPictureSnapshot m_picture;
    mutable std::map<std::int32_t, QAccessible::Id> m_ids;
};

QAccessibleInterface *makeInterface(const QString & /*className*/, QObject *object)
{
    auto *view = qobject_cast<DagView *>(object);
    return view != nullptr ? new CanvasInterface(view) : nullptr;
}

} // namespace

void installDagAccessibility()
{
    static const bool kOnce = (QAccessible::installFactory(makeInterface), true);
    static_cast<void>(kOnce);
}

QString DagView::describe(std::int32_t box) const
{
    if (!m_picture || box <= 0 || at(box) >= m_picture->visible.boxes.size())
        return {};
    const auto &item = m_outline->at(m_picture->visible.at(box).item);
    const auto &text = m_picture->scene.texts[at(box)];
    QStringList parts{QString::fromStdString(text.title), QString::fromStdString(text.subtitle)};
    if (const BoxFacts facts = boxFacts(box); facts.planned) {
        parts.append(tr("devices %1").arg(facts.devices));
        parts.append(
            facts.rows == 0 ? tr("no row acts here") : tr("%n row(s) act here", nullptr, facts.rows));
    }
    if (item.kind == OutlineItem::Kind::Operator && m_picture->visible.at(box).copies > 1)
        parts.append(tr("stands for %1 copies").arg(m_picture->visible.at(box).copies));
    if (m_decor && m_decor->colours.boxes[at(box)].deviating > 0)
        parts.append(
            tr("%n of them planned differently", nullptr, m_decor->colours.boxes[at(box)].deviating));
    return parts.join(QStringLiteral(", "));
}

} // namespace planloom
