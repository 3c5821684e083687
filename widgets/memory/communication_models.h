#pragma once

#include <QtCore/QAbstractTableModel>

#include "engine/analyse/communication.h"

#include <vector>

namespace planloom {

/// Who sends what to whom: the flows of a chosen pair of devices, or of all of them summed by kind.
class FlowsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Kind, From, To, Sent, Time, Count, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void set(std::vector<Flow> flows);
    const Flow *flowAt(int row) const; ///< Null if there is none.
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<Flow> m_flows;
};

/// Links of the cluster with what they carry.
class LinksModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Link, Sent, Share, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void set(std::vector<LinkLoad> links);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<LinkLoad> m_links;
};

} // namespace planloom
