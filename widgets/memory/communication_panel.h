#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QFutureWatcher>
#include <QtWidgets/QWidget>

#include "engine/simulate/communication.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

class QComboBox;
class QLabel;
class QTableView;
class QTabWidget;

namespace planloom {

class TopologyView;

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

/// Device x device as a picture: rows send, columns receive, colour by bytes or time with the number in the cell where there is room.
class MatrixView : public QWidget
{
    Q_OBJECT
public:
    explicit MatrixView(QWidget *parent = nullptr);
    /// Null shows nothing. @param kind  none means all
    void setMatrix(std::shared_ptr<const CommunicationMatrix> matrix, std::optional<InstructionKind> kind, bool byTime);
    /// What `b` has more than `a`, or less: for comparing plans. Either may have more devices. Null shows nothing.
    void setDifference(std::shared_ptr<const CommunicationMatrix> a, std::shared_ptr<const CommunicationMatrix> b,
        std::optional<InstructionKind> kind, bool byTime);
    /// (-1, -1) is no cell.
    std::pair<int, int> current() const { return m_current; }
    /// Marks a cell without saying so.
    void setCurrent(std::pair<int, int> cell);
    double valueOf(int from, int to) const; ///< Bytes, or seconds; negative where `b` has less.
    QRectF cellRect(int from, int to) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    /// -1, -1: all pairs.
    void cellChosen(int from, int to);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF plot() const;
    std::pair<int, int> cellAt(QPointF at) const;
    void choose(std::pair<int, int> cell);
    QString factOf(int from, int to) const;
    void sumUp(const CommunicationMatrix &matrix, double sign);
    void show(std::shared_ptr<const CommunicationMatrix> matrix, std::shared_ptr<const CommunicationMatrix> takenOff,
        std::optional<InstructionKind> kind, bool byTime);

    std::shared_ptr<const CommunicationMatrix> m_matrix;
    std::shared_ptr<const CommunicationMatrix> m_takenOff; ///< Of a difference; else null.
    std::int32_t m_count = 0; ///< Devices.
    std::vector<double> m_values; ///< By from * devices + to.
    double m_most = 0; ///< Of their sizes.
    std::optional<InstructionKind> m_kind;
    bool m_byTime = false;
    std::pair<int, int> m_current{-1, -1};
};

/// The *Communication* dock: the matrix, the flows behind a cell with the operators and rows they serve, the load of links
/// (ux.md, F51).
class CommunicationPanel : public QWidget
{
    Q_OBJECT
public:
    CommunicationPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);
    ~CommunicationPanel() override;

    const std::shared_ptr<const CommunicationMatrix> &matrix() const { return m_matrix; }
    bool isSettled() const { return !m_watcher.isRunning(); }

Q_SIGNALS:
    /// Lines of the table that are behind the chosen flow.
    void linesChosen(std::vector<std::int32_t> lines);
    void matrixChanged();

private:
    using MatrixSnapshot = std::shared_ptr<const CommunicationMatrix>;

    void refresh();
    void showMatrix();
    void showFlows();
    void chooseLink(const LinkLoad *link);
    void chooseFlow(int row);

    Workspace *m_workspace;
    SelectionModel *m_selection;
    PlanUpdateSnapshot m_update;
    TimelineSceneSnapshot m_scene;
    MatrixSnapshot m_matrix;
    QComboBox *m_kinds;
    QComboBox *m_measure;
    QLabel *m_sum;
    QLabel *m_rows;
    MatrixView *m_view;
    FlowsModel *m_flows;
    LinksModel *m_links;
    TopologyView *m_map;
    std::optional<LinkLoad> m_link; ///< Whose flows are shown alone.
    QTableView *m_flowsView;
    QFutureWatcher<MatrixSnapshot> m_watcher;
    std::stop_source m_stop;
};

} // namespace planloom
