#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QByteArray>
#include <QtCore/QProcess>
#include <QtCore/QString>
#include <QtCore/QTimer>

#include "engine/hardware/cluster.h"
#include "engine/runtime/machine/probe.h"

#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// What this machine has to run plans on, found by a process of its own (`planloom-exec probe`), so that a
/// driver that hangs or crashes takes nothing with it. Lives on the GUI thread, never waits.
class MachineProbe : public QObject
{
    Q_OBJECT
public:
    static constexpr int kPatienceMilliseconds = 5000;

    explicit MachineProbe(QObject *parent = nullptr);
    ~MachineProbe() override;

    /// Looks, or looks again. @param program  planloom-exec
    void look(const QString &program);
    bool isLooking() const { return m_looking; }
    /// What was found last; null before.
    const std::optional<Probe> &found() const { return m_found; }
    /// Why nothing was found; empty if something was.
    const QString &problem() const { return m_problem; }
    /// True if a plan could use GPUs of what was found.
    bool hasGpus() const;
    /// What was found as a cluster to plan for, or why there is none; null before.
    const std::optional<Result<Cluster>> &cluster() const { return m_cluster; }

Q_SIGNALS:
    void changed();

private:
    void take(const QByteArray &text);
    void ended(const QString &problem);

    std::unique_ptr<QProcess> m_process;
    QTimer m_timer;
    bool m_looking = false;
    std::optional<Probe> m_found;
    std::optional<Result<Cluster>> m_cluster;
    QString m_problem;
};

/// The devices and libraries that were found, a line each, with why they cannot be used.
class MachineDevicesModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Device, Memory, Details, State, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    /// Before anything is found, or instead of it, one line says why.
    void setFound(const std::optional<Probe> &found, const QString &instead);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Line {
        QString device{};
        QString memory{};
        QString details{};
        QString state{};
    };
    std::vector<Line> m_lines;
};

} // namespace planloom
