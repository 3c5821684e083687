#pragma once

#include <QtCore/QAbstractItemModel>
#include <QtCore/QString>

#include "engine/table/table.h"
#include "widgets/common/drag_types.h"
#include "widgets/design/plan_update.h"

#include <vector>

namespace planloom {

/// The cluster as a tree: the axes of the mesh, then hosts with their devices, what each one's memory and
/// time are used for. Axes and devices can be dragged onto the canvases.
class DevicesModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum Column { Name, Memory, Busy, ColumnCount };
    enum Role {
        DeviceRole = Qt::UserRole,
        AxisRole,
        ShareRole
    }; ///< int (-1: none), QString, double in [0, ...).

    using QAbstractItemModel::QAbstractItemModel;

    /// @param update  the plan; null shows devices without figures
    void set(const PlanUpdateSnapshot &update, std::vector<MeshAxis> mesh, std::int32_t deviceCount);

    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QStringList mimeTypes() const override;
    QMimeData *mimeData(const QModelIndexList &indexes) const override;
    Qt::DropActions supportedDragActions() const override { return Qt::CopyAction; }

private:
    struct Host {
        int first = 0;
        int count = 0;
        friend bool operator==(const Host &, const Host &) = default;
    };

    bool hasMesh() const { return !m_mesh.empty(); }
    /// Index of the host in a top row; -1 for the mesh.
    int hostOf(int row) const { return row - (hasMesh() ? 1 : 0); }

    PlanUpdateSnapshot m_update;
    std::vector<MeshAxis> m_mesh;
    std::vector<Host> m_hosts;
};

} // namespace planloom
