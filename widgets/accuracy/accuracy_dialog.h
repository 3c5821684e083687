#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QSortFilterProxyModel>
#include <QtWidgets/QDialog>

#include "engine/base/result.h"
#include "widgets/accuracy/accuracy_model.h"

#include <memory>
#include <vector>

class QComboBox;
class QLabel;
class QLineEdit;
class QTreeView;

namespace planloom {

class ScatterChart;

/// How good predictions are: training runs that others measured beside what is predicted for them, as a table
/// by source and as a chart, which share their selection and a filter.
class AccuracyDialog : public QDialog
{
    Q_OBJECT
public:
    /// @param folder  of files as `measuredRows` reads them, read on a worker: those that the program has
    explicit AccuracyDialog(
        const QString &folder = QStringLiteral(":/planloom/runs"), QWidget *parent = nullptr);

    bool isReading() const { return m_watcher.isRunning(); }
    const AccuracyModel &model() const { return m_model; }
    ScatterChart *chart() const { return m_chart; }
    QTreeView *table() const { return m_table; }

protected:
    void changeEvent(QEvent *event) override; ///< Another theme.

private:
    using Rows = Result<std::vector<MeasuredRow>>;

    QWidget *newTable();
    QWidget *newChart();
    void takeRows();
    void showPoints();
    void showSums(const std::vector<int> &rows);
    void takeColours();
    std::vector<int> filteredRows() const;
    void pick(int row); ///< In the chart.

    AccuracyModel m_model;
    QSortFilterProxyModel m_proxy;
    QLabel *m_words = nullptr;
    QLineEdit *m_filter = nullptr;
    QTreeView *m_table = nullptr;
    QComboBox *m_figure = nullptr; ///< What the chart shows.
    ScatterChart *m_chart = nullptr;
    QFutureWatcher<std::shared_ptr<const Rows>> m_watcher{this};
};

} // namespace planloom
