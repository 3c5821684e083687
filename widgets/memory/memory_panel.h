#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QFutureWatcher>
#include <QtWidgets/QWidget>

#include "engine/analyse/memory_at.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"

#include <memory>
#include <stop_token>
#include <vector>

class QComboBox;
class QLabel;
class QTableView;

namespace planloom {

class MemoryCurveView;
class MemoryTreemap;

/// Memory of one device at one moment by kind, and at its peak.
class MemoryKindsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Kind, Now, Share, AtPeak, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void set(const std::array<std::int64_t, kMemoryKindCount> &now,
        const std::array<std::int64_t, kMemoryKindCount> &peak);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::array<std::int64_t, kMemoryKindCount> m_now{}; ///< The last line is the sum.
    std::array<std::int64_t, kMemoryKindCount> m_peak{};
};

/// The *Memory* dock: one device's memory over the step with the cap, and at a chosen moment every live
/// tensor, down to its operator (ux.md, F49, F50).
class MemoryPanel : public QWidget
{
    Q_OBJECT
public:
    MemoryPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);
    ~MemoryPanel() override;

    void setDevice(std::int32_t device);
    std::int32_t device() const;
    /// Nanoseconds of the step; outside, its peak.
    void setTime(std::int64_t time);
    std::int64_t time() const { return m_time; }
    const std::vector<BufferLifetime> &live() const { return m_live; }
    bool isSettled() const { return !m_watcher.isRunning(); }

Q_SIGNALS:
    void timeChosen(qint64 nanoseconds);
    void liveChanged();

private:
    using Lifetimes = std::shared_ptr<const std::vector<BufferLifetime>>;

    void refresh();
    void showMoment();

    Workspace *m_workspace;
    SelectionModel *m_selection;
    TimelineSceneSnapshot m_scene;
    QComboBox *m_devices;
    QLabel *m_moment;
    MemoryCurveView *m_curve;
    MemoryTreemap *m_treemap;
    MemoryKindsModel *m_kinds;
    QTableView *m_kindsView;
    QFutureWatcher<Lifetimes> m_watcher{this};
    std::stop_source m_stop;
    Lifetimes m_lifetimes;
    std::vector<BufferLifetime> m_live;
    std::int64_t m_time = -1;
};

} // namespace planloom
