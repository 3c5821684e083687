#include "widgets/inspector/chip_bar.h"

#include "widgets/common/format.h"
#include "widgets/common/themed_icon.h"
#include "widgets/inspector/flow_layout.h"

#include <algorithm>

#include <QtGui/QAction>
#include <QtGui/QScreen>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMenu>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

namespace {

constexpr std::size_t kMostCounts = 12; ///< In one menu: the smaller ones.

} // namespace

ChipBar::ChipBar(GestureHost *host, SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_host(host)
    , m_selection(selection)
    , m_hint(new QLabel(this))
    , m_flow(new QWidget(this))
{
    setAccessibleName(tr("Dimensions of the selected operator"));
    m_hint->setWordWrap(true);
    m_hint->setForegroundRole(QPalette::PlaceholderText);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 4, 8, 4);
    layout->setSpacing(4);
    layout->addWidget(m_hint);
    layout->addWidget(m_flow);
    connect(m_selection, &SelectionModel::selectionChanged, this, &ChipBar::refresh);
    connect(m_host, &GestureHost::contextChanged, this, &ChipBar::refresh);
    connect(m_host, &GestureHost::previewChanged, this, &ChipBar::showGhost);
    refresh();
}

void ChipBar::clear()
{
    m_buttons.clear();
    auto *fresh = new QWidget(this);
    layout()->replaceWidget(m_flow, fresh);
    m_flow->hide();
    m_flow->deleteLater(); // a button of it may be what brought us here
    m_flow = fresh;
    auto *flow = new FlowLayout(m_flow);
    flow->setSpacing(4);
}

QToolButton *ChipBar::addButton(const QString &text, const QString &name)
{
    auto *button = new QToolButton(m_flow);
    button->setText(text);
    button->setAccessibleName(name);
    button->setToolTip(name);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setPopupMode(QToolButton::InstantPopup);
    m_flow->layout()->addWidget(button);
    m_buttons.push_back(button);
    return button;
}

SplitGesture ChipBar::gestureFor(
    SplitKind kind, std::int32_t dimension, std::int32_t parts, const std::string &axis) const
{
    SplitGesture gesture;
    gesture.operators = m_operators;
    gesture.on = m_operators.front();
    gesture.kind = kind;
    gesture.dimension = dimension;
    gesture.parts = parts;
    gesture.axis = axis;
    return gesture;
}

void ChipBar::addChoice(QToolButton *button, const QString &text, const SplitGesture &gesture)
{
    if (!button->menu()) {
        button->setMenu(new QMenu(button));
        connect(button->menu(), &QMenu::aboutToHide, m_host, &GestureHost::endPreview);
    }
    QAction *action = button->menu()->addAction(text);
    connect(action, &QAction::hovered, this, [this, gesture, action, text] {
        m_hovered = action;
        m_hoveredText = text;
        if (const GestureContextSnapshot context = m_host->gestureContext())
            m_host->preview(proposeSplit(*context, gesture));
    });
    connect(action, &QAction::triggered, this, [this, gesture] {
        if (const GestureContextSnapshot context = m_host->gestureContext())
            m_host->commit(proposeSplit(*context, gesture));
    });
}

void ChipBar::showGhost()
{
    const PreviewSnapshot preview = m_host->currentPreview();
    if (!m_hovered || !preview || !preview->final)
        return;
    QString says = tr("would not hold");
    if (preview->proposal.refusal)
        says = QString::fromStdString(preview->proposal.refusal->message);
    else if (!preview->proposal.accepted())
        says = tr("as it is");
    else if (preview->feasible()) {
        says = QString::fromStdString(formatSeconds(preview->update->summary.stepSeconds));
        if (preview->baseline && preview->baseline->scene)
            says = QString::fromStdString(formatSeconds(preview->baseline->summary.stepSeconds))
                + QStringLiteral(" → ") + says;
    }
    m_hovered->setText(m_hoveredText + QLatin1Char('\t') + says);
    // The menu has grown by the figures: all of it stays on the screen.
    for (QObject *holder : m_hovered->associatedObjects()) {
        auto *menu = qobject_cast<QMenu *>(holder);
        if (!menu || !menu->isVisible())
            continue;
        menu->resize(menu->sizeHint());
        const QRect room = menu->screen()->availableGeometry();
        menu->move(std::max(room.left(), std::min(menu->x(), room.right() + 1 - menu->width())), menu->y());
    }
}

void ChipBar::refresh()
{
    clear();
    m_operators.clear();
    const GestureContextSnapshot context = m_host->gestureContext();
    if (context) {
        for (const OperatorId op : m_selection->selected()) {
            if (static_cast<std::size_t>(op.index) < context->graph().operators.size()
                && context->graph().at(op).direction == Direction::Forward)
                m_operators.push_back(op);
        }
    }
    m_hint->setVisible(m_operators.empty());
    m_flow->setVisible(!m_operators.empty());
    if (m_operators.empty()) {
        m_hint->setText(tr("Select an operator to split it along its dimensions."));
        return;
    }
    std::vector<std::int32_t> seen;
    for (const DimensionChip &chip : chipsOf(*context, m_operators.front())) {
        if (std::find(seen.begin(), seen.end(), chip.dimension) != seen.end())
            continue; // once, whatever edges it is on
        seen.push_back(chip.dimension);
        const QString label =
            QString::fromStdString(chip.meaning.empty() ? chip.label : chip.label + " " + chip.meaning);
        QToolButton *button = addButton(
            tr("%1 %2").arg(label).arg(chip.size), tr("dimension %1 of size %2").arg(label).arg(chip.size));
        if (chip.counts.empty()) {
            button->setEnabled(false);
            button->setToolTip(chip.locked.empty() ? tr("%1 can't be split").arg(label)
                                                   : QString::fromStdString(chip.locked));
            button->setIcon(themedIcon(QStringLiteral("lock")));
            button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
            continue;
        }
        for (std::size_t i = 0; i < chip.counts.size() && i < kMostCounts; ++i)
            addChoice(button, tr("split by %1").arg(chip.counts[i]),
                gestureFor(SplitKind::Dimension, chip.dimension, chip.counts[i], {}));
        for (const MeshAxis &axis : context->mesh) {
            if (axis.size > 1)
                addChoice(button,
                    tr("split over %1 (%2)").arg(QString::fromStdString(axis.name)).arg(axis.size),
                    gestureFor(SplitKind::Dimension, chip.dimension, axis.size, axis.name));
        }
    }
    QToolButton *copies = addButton(tr("replicate"), tr("The same work on several devices"));
    for (const std::int32_t count : {2, 4, 8})
        addChoice(copies, tr("%1 replicas").arg(count), gestureFor(SplitKind::Replicate, -1, count, {}));
    if (hasValueSplit(*context, m_operators.front())) {
        QToolButton *value = addButton(tr("value Σ"), tr("Parts of the value, summed up afterwards"));
        for (const std::int32_t count : {2, 4, 8})
            addChoice(value, tr("%1 summands").arg(count), gestureFor(SplitKind::Value, -1, count, {}));
    }
}

} // namespace planloom

#include "moc_chip_bar.cpp"
