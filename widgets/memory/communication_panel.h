#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QWidget>

#include "engine/analyse/communication.h"
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

class CommunicationLinesView;
class FlowsModel;
class LinksModel;
class MatrixView;
class TopologyView;

/// The *Communication* dock: the matrix, the flows behind a cell with the operators and rows they serve,
/// collectives one by one, the load of links (ux.md, F51).
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
    CommunicationLinesView *m_lines;
    TopologyView *m_map;
    std::optional<LinkLoad> m_link; ///< Whose flows are shown alone.
    QTableView *m_flowsView;
    QFutureWatcher<MatrixSnapshot> m_watcher{this};
    std::stop_source m_stop;
};

} // namespace planloom
