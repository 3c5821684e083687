#include "widgets/inspector/devices_model.h"

#include "widgets/common/format.h"

#include <QtCore/QMimeData>

#include <algorithm>

namespace planloom {

namespace {

const DeviceModel &modelOf(const PlanUpdate &update, int device)
{
    const DeviceId id{device};
    return update.scene ? update.scene->deviceModel(id) : update.cluster.deviceAt(id);
}

} // namespace

void DevicesModel::set(const PlanUpdateSnapshot &update, std::vector<MeshAxis> mesh, std::int32_t deviceCount)
{
    const int perNode = update ? std::max(update->cluster.links.devicesPerNode, 1) : std::max(deviceCount, 1);
    std::vector<Host> hosts;
    for (int first = 0; first < deviceCount; first += perNode)
        hosts.push_back({first, std::min(perNode, deviceCount - first)});
    if (mesh == m_mesh && hosts == m_hosts) {
        m_update = update;
        for (int top = 0; top < rowCount(); ++top) {
            const QModelIndex parent = index(top, 0);
            if (const int rows = rowCount(parent); rows > 0)
                Q_EMIT dataChanged(index(0, 0, parent), index(rows - 1, ColumnCount - 1, parent));
        }
        return;
    }
    beginResetModel();
    m_update = update;
    m_mesh = std::move(mesh);
    m_hosts = std::move(hosts);
    endResetModel();
}

QModelIndex DevicesModel::index(int row, int column, const QModelIndex &parent) const
{
    if (row < 0 || column < 0 || column >= ColumnCount || row >= rowCount(parent))
        return {};
    // 0 for top rows, else 1 + the top row.
    return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : quintptr{0});
}

QModelIndex DevicesModel::parent(const QModelIndex &child) const
{
    if (!child.isValid() || child.internalId() == 0)
        return {};
    return createIndex(static_cast<int>(child.internalId()) - 1, 0, quintptr{0});
}

int DevicesModel::rowCount(const QModelIndex &parent) const
{
    if (!parent.isValid())
        return static_cast<int>(m_hosts.size()) + (hasMesh() ? 1 : 0);
    if (parent.internalId() != 0 || parent.column() != 0)
        return 0;
    const int host = hostOf(parent.row());
    return host < 0 ? static_cast<int>(m_mesh.size()) : m_hosts[static_cast<std::size_t>(host)].count;
}

int DevicesModel::columnCount(const QModelIndex &) const
{
    return ColumnCount;
}

QVariant DevicesModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const bool top = index.internalId() == 0;
    const int host = hostOf(top ? index.row() : static_cast<int>(index.internalId()) - 1);
    if (top) {
        if (index.column() != Name || (role != Qt::DisplayRole && role != Qt::AccessibleTextRole))
            return role == DeviceRole ? QVariant(-1) : QVariant();
        return host < 0 ? tr("Mesh") : tr("Host %1").arg(host);
    }
    if (host < 0) {
        const MeshAxis &axis = m_mesh[static_cast<std::size_t>(index.row())];
        if (role == AxisRole)
            return QString::fromStdString(axis.name);
        if (role == DeviceRole)
            return -1;
        if (role == Qt::ToolTipRole)
            return tr("Drag onto a dimension chip: splits over this axis and places the parts on it.");
        if (index.column() == Name && (role == Qt::DisplayRole || role == Qt::AccessibleTextRole))
            return tr("%1 : %2").arg(QString::fromStdString(axis.name)).arg(axis.size);
        return {};
    }
    const int device = m_hosts[static_cast<std::size_t>(host)].first + index.row();
    const DeviceSummary *summary =
        m_update && m_update->scene && static_cast<std::size_t>(device) < m_update->summary.devices.size()
        ? &m_update->summary.devices[static_cast<std::size_t>(device)]
        : nullptr;
    const double capacity = m_update ? modelOf(*m_update, device).memory.value : 0;
    if (role == DeviceRole)
        return device;
    if (role == ShareRole) {
        if (!summary)
            return 0.0;
        return index.column() == Memory && capacity > 0 ? static_cast<double>(summary->peak.count) / capacity
                                                        : 1 - summary->bubble;
    }
    if (role == Qt::TextAlignmentRole && index.column() != Name)
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    switch (index.column()) {
    case Name:
        if (m_update && !m_update->cluster.otherClasses.empty())
            return tr("Device %1 · %2")
                .arg(device)
                .arg(QString::fromStdString(modelOf(*m_update, device).name));
        return tr("Device %1").arg(device);
    case Memory:
        return summary ? QString::fromStdString(formatBytes(summary->peak))
                + (capacity > 0 ? QStringLiteral(" / ")
                            + QString::fromStdString(formatBytes({static_cast<std::int64_t>(capacity)}))
                                : QString())
                       : QString();
    default:
        return summary ? QString::number(100 * (1 - summary->bubble), 'f', 0) + QLatin1Char('%') : QString();
    }
}

QVariant DevicesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Name:
        return tr("Device");
    case Memory:
        return tr("Peak memory");
    default:
        return tr("Busy");
    }
}

Qt::ItemFlags DevicesModel::flags(const QModelIndex &index) const
{
    Qt::ItemFlags flags = QAbstractItemModel::flags(index);
    if (index.isValid() && index.internalId() != 0)
        flags |= Qt::ItemIsDragEnabled;
    return flags;
}

QStringList DevicesModel::mimeTypes() const
{
    return {QLatin1String(kAxisMimeType), QLatin1String(kDeviceMimeType)};
}

QMimeData *DevicesModel::mimeData(const QModelIndexList &indexes) const
{
    QStringList devices;
    QString axis;
    for (const QModelIndex &index : indexes) {
        if (index.column() != Name)
            continue;
        if (const int device = index.data(DeviceRole).toInt(); device >= 0)
            devices << QString::number(device);
        else if (axis.isEmpty())
            axis = index.data(AxisRole).toString();
    }
    if (devices.isEmpty() && axis.isEmpty())
        return nullptr;
    auto *data = new QMimeData;
    if (!axis.isEmpty())
        data->setData(QLatin1String(kAxisMimeType), axis.toUtf8());
    else
        data->setData(QLatin1String(kDeviceMimeType), devices.join(QLatin1Char(',')).toUtf8());
    data->setText(axis.isEmpty() ? devices.join(QLatin1Char(',')) : axis);
    return data;
}

} // namespace planloom

#include "moc_devices_model.cpp"
