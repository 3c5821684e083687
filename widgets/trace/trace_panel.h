#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QStringList>
#include <QtWidgets/QWidget>

#include "widgets/design/workspace.h"
#include "widgets/trace/trace_document.h"

#include <memory>
#include <optional>
#include <stop_token>

class QLabel;
class QTabWidget;
class QTableView;

namespace planloom {

class TraceTableModel;
class TraceView;

/// The *Trace* dock: what the ranks of a run did, as lanes; tables of where their time goes and of the
/// slowest collectives; and, where a plan is open, measured over predicted. Files are read by a worker: a
/// first picture, then the whole.
class TracePanel : public QWidget
{
    Q_OBJECT
public:
    explicit TracePanel(Workspace *workspace, QWidget *parent = nullptr);
    ~TracePanel() override;

    void open(const QStringList &paths);
    const TraceDocumentSnapshot &document() const { return m_document; }
    const TraceMatchSnapshot &match() const { return m_match; }
    /// Nothing is being read or matched.
    bool isSettled() const { return !m_opening.isRunning() && !m_matching.isRunning(); }
    TraceView *view() const { return m_view; }
    QTabWidget *tables() const { return m_tables; }
    QString text() const; ///< What the line above the lanes says.

Q_SIGNALS:
    void opened();
    void failed(planloom::Error error);

private:
    using Opened = std::shared_ptr<Result<TraceDocumentSnapshot>>;
    using Matched = std::shared_ptr<Result<TraceMatchSnapshot>>;

    void start(bool isSample);
    void showOpened();
    void startMatching();
    void showMatched();
    QTableView *addTable(TraceTableModel *model, const QString &title);

    Workspace *m_workspace;
    QLabel *m_said;
    TraceView *m_view;
    QTabWidget *m_tables;
    TraceTableModel *m_ranks;
    TraceTableModel *m_collectives;
    TraceTableModel *m_against;
    QStringList m_paths;
    TraceDocumentSnapshot m_document;
    TraceMatchSnapshot m_match;
    QFutureWatcher<Opened> m_opening{this};
    QFutureWatcher<Matched> m_matching{this};
    std::stop_source m_stop;
    std::stop_source m_stopMatching;
    bool m_isSampling = false; ///< What is being read is the first picture.
};

} // namespace planloom
