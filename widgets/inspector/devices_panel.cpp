#include "widgets/inspector/devices_panel.h"

#include "widgets/common/palette.h"
#include "widgets/inspector/devices_model.h"

#include <QtGui/QAction>
#include <QtGui/QPainter>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QStyledItemDelegate>

#include <algorithm>

namespace planloom {

namespace {

constexpr double kTight = 0.9; ///< Memory above this share is shown as tight.

/// Figures over a bar of their share. Colour repeats what the words say.
class ShareDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const double share = index.data(DevicesModel::ShareRole).toDouble();
        if (share > 0 && index.parent().isValid() && index.column() != DevicesModel::Name) {
            const Palette &palette = paletteFor(*option.widget);
            const QColor colour = index.column() == DevicesModel::Memory && share > 1 ? palette.error
                : index.column() == DevicesModel::Memory && share > kTight            ? palette.warning
                                                                                      : palette.success;
            QRectF bar = QRectF(option.rect).adjusted(2, option.rect.height() - 5, -2, -2);
            bar.setWidth(bar.width() * std::min(share, 1.0));
            painter->fillRect(bar, colour);
        }
        QStyledItemDelegate::paint(painter, option, index);
    }

    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        QSize hint = QStyledItemDelegate::sizeHint(option, index);
        hint.setHeight(option.fontMetrics.height() + 10); // room for the bar
        return hint;
    }
};

} // namespace

DevicesPanel::DevicesPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QTreeView(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_model(new DevicesModel(this))
    , m_placeAction(new QAction(tr("Place Selection on This Device"), this))
    , m_selectAction(new QAction(tr("Select Operators of This Device"), this))
    , m_freeAction(new QAction(tr("Free Selection"), this))
{
    setAccessibleName(tr("Devices"));
    setModel(m_model);
    setItemDelegate(new ShareDelegate(this));
    setFrameShape(QFrame::NoFrame);
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    setDragEnabled(true);
    setDragDropMode(QAbstractItemView::DragOnly);
    setUniformRowHeights(true);
    header()->setSectionResizeMode(DevicesModel::Name, QHeaderView::ResizeToContents);
    header()->setSectionResizeMode(DevicesModel::Memory, QHeaderView::Stretch);
    header()->setStretchLastSection(false);
    header()->setSectionResizeMode(DevicesModel::Busy, QHeaderView::ResizeToContents);
    m_placeAction->setObjectName(QStringLiteral("devices.place"));
    m_selectAction->setObjectName(QStringLiteral("devices.select"));
    m_freeAction->setObjectName(QStringLiteral("devices.free"));
    addActions({m_placeAction, m_selectAction, m_freeAction});
    setContextMenuPolicy(Qt::ActionsContextMenu);
    connect(m_placeAction, &QAction::triggered, this, [this] {
        const GestureContextSnapshot context = m_workspace->gestureContext();
        const std::vector<DeviceId> devices = chosenDevices();
        if (context && !devices.empty() && !m_selection->selected().empty())
            m_workspace->commit(proposePlace(*context, {m_selection->selected(), devices, {}, false}));
    });
    connect(m_freeAction, &QAction::triggered, this, [this] {
        if (const GestureContextSnapshot context = m_workspace->gestureContext();
            context && !m_selection->selected().empty())
            m_workspace->commit(proposeFree(*context, m_selection->selected()));
    });
    connect(m_selectAction, &QAction::triggered, this, [this] {
        const PlanUpdateSnapshot &good = m_workspace->lastGood();
        const std::vector<DeviceId> devices = chosenDevices();
        if (!good || !good->plan || devices.empty())
            return;
        std::vector<OperatorId> operators;
        for (std::size_t i = 0; i < good->plan->decisions.size(); ++i) {
            const auto &placed = good->plan->decisions[i].devices;
            const bool here = std::any_of(placed.begin(), placed.end(), [&devices](DeviceId device) {
                return std::find(devices.begin(), devices.end(), device) != devices.end();
            });
            if (here && good->plan->graph->operators[i].direction == Direction::Forward)
                operators.push_back(OperatorId{static_cast<std::int32_t>(i)});
        }
        m_selection->select(std::move(operators));
    });
    connect(this, &QTreeView::activated, m_placeAction, &QAction::trigger);
    connect(m_workspace, &Workspace::planChanged, this, &DevicesPanel::refresh);
    connect(m_workspace, &Workspace::clusterChanged, this, &DevicesPanel::refresh);
    connect(m_workspace, &Workspace::tableChanged, this, &DevicesPanel::refresh);
    connect(m_model, &QAbstractItemModel::modelReset, this, &QTreeView::expandAll);
    refresh();
}

std::vector<DeviceId> DevicesPanel::chosenDevices() const
{
    std::vector<DeviceId> devices;
    for (const QModelIndex &index : selectionModel()->selectedRows()) {
        if (const int device = index.data(DevicesModel::DeviceRole).toInt();
            device >= 0 && index.parent().isValid())
            devices.push_back(DeviceId{device});
    }
    if (devices.empty() && currentIndex().parent().isValid()) {
        if (const int device = currentIndex().data(DevicesModel::DeviceRole).toInt(); device >= 0)
            devices.push_back(DeviceId{device});
    }
    std::sort(devices.begin(), devices.end());
    return devices;
}

void DevicesPanel::refresh()
{
    const GestureContextSnapshot context = m_workspace->gestureContext();
    m_model->set(m_workspace->lastGood(), context ? context->mesh : std::vector<MeshAxis>{},
        context ? m_workspace->deviceCount() : 0);
}

} // namespace planloom

#include "moc_devices_panel.cpp"
