#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QStringList>
#include <QtWidgets/QWidget>

#include "engine/traces/calibration/span_fit.h"
#include "widgets/common/latest_job.h"
#include "widgets/design/workspace.h"
#include "widgets/trace/trace_document.h"

#include <memory>
#include <optional>
#include <stop_token>

class QAction;
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
    /// Nothing is being read, matched or fitted.
    bool isSettled() const
    {
        return !m_opening.isRunning() && !m_matching.isRunning() && !m_fitting.isBusy();
    }
    TraceView *view() const { return m_view; }
    QTabWidget *tables() const { return m_tables; }
    QString text() const; ///< What the line above the lanes says.

    /// Fits the figures of the plan's cluster to what the run measured: a table says how far off each kind
    /// was and is, and `calibrated` gives the cluster.
    void calibrate();

Q_SIGNALS:
    /// @param sentence  what came of it, for people
    void calibrated(const planloom::Cluster &cluster, const QString &sentence);
    void opened();
    void failed(planloom::Error error);

private:
    using Opened = std::shared_ptr<Result<TraceDocumentSnapshot>>;
    using Matched = std::shared_ptr<Result<TraceMatchSnapshot>>;
    using Fitted = Result<SpanFit>;

    void start(bool isSample);
    void showOpened();
    void startMatching();
    void showMatched();
    void showFitted(const Fitted &fitted);
    QTableView *addTable(TraceTableModel *model, const QString &title);

    Workspace *m_workspace;
    QLabel *m_said;
    TraceView *m_view;
    QTabWidget *m_tables;
    TraceTableModel *m_ranks;
    TraceTableModel *m_collectives;
    TraceTableModel *m_against;
    TraceTableModel *m_fitErrors;
    QAction *m_calibrate;
    QStringList m_paths;
    QString m_shown; ///< Of the trace alone.
    TraceDocumentSnapshot m_document;
    TraceMatchSnapshot m_match;
    QFutureWatcher<Opened> m_opening{this};
    QFutureWatcher<Matched> m_matching{this};
    std::stop_source m_stop;
    std::stop_source m_stopMatching;
    LatestJob<Fitted> m_fitting;
    bool m_isSampling = false; ///< What is being read is the first picture.
};

} // namespace planloom
