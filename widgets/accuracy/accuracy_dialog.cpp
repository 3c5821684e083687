#include "widgets/accuracy/accuracy_dialog.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QEvent>
#include <QtGui/QScreen>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/units.h"
#include "widgets/accuracy/nearest_runs.h"
#include "widgets/accuracy/scatter_chart.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace planloom {

namespace {

QString figureWords(double value, ScatterUnit unit)
{
    return toQString(
        unit == ScatterUnit::Seconds ? formatSeconds(value) : formatBytes(Bytes{std::llround(value)}));
}

/// The point of a run; none without both figures.
std::optional<RunPoint> pointOf(const MeasuredRow &row, ScatterUnit unit)
{
    const bool isStep = unit == ScatterUnit::Seconds;
    const auto error = isStep ? row.stepError() : row.peakError();
    const auto predicted = isStep ? row.predictedSeconds : row.predictedPeak;
    const auto measured = isStep ? row.measuredSeconds : row.measuredPeak;
    if (!error || *predicted <= 0)
        return std::nullopt;
    RunPoint point{*measured, *predicted, 0, 0, {}};
    point.words = AccuracyDialog::tr("%1: predicted %2, measured %3 (%4%)")
                      .arg(nameOfRun(row), figureWords(*predicted, unit), figureWords(*measured, unit))
                      .arg(100 * *error, 0, 'f', 1);
    return point;
}

} // namespace

AccuracyDialog::AccuracyDialog(const QString &folder, QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(tr("How Good Are These Numbers?"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto *layout = new QVBoxLayout(this);
    m_words = new QLabel(tr("Reading…"), this);
    m_words->setObjectName(QStringLiteral("words"));
    m_words->setWordWrap(true);
    layout->addWidget(m_words);
    auto *parts = new QSplitter(Qt::Horizontal, this);
    parts->addWidget(newTable());
    parts->addWidget(newChart());
    parts->setStretchFactor(0, 1);
    parts->setSizes({fontMetrics().averageCharWidth() * 125, fontMetrics().height() * 34});
    layout->addWidget(parts, 1);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &AccuracyDialog::takeRows);
    m_watcher.setFuture(
        QtConcurrent::run([folder] { return std::make_shared<const Rows>(rowsOfFolder(folder)); }));
    resize(QSize(fontMetrics().averageCharWidth() * 225, fontMetrics().height() * 42)
               .boundedTo(screen()->availableSize()));
}

QWidget *AccuracyDialog::newTable()
{
    auto *side = new QWidget(this);
    auto *layout = new QVBoxLayout(side);
    layout->setContentsMargins({});
    m_filter = new QLineEdit(side);
    m_filter->setObjectName(QStringLiteral("filter"));
    m_filter->setPlaceholderText(tr("Filter: a source, model, device or framework"));
    m_filter->setAccessibleName(tr("Filter"));
    m_filter->setClearButtonEnabled(true);
    layout->addWidget(m_filter);
    m_proxy.setSourceModel(&m_model);
    m_proxy.setSortRole(AccuracyModel::kSortRole);
    m_proxy.setSortCaseSensitivity(Qt::CaseInsensitive);
    m_proxy.setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_proxy.setFilterKeyColumn(-1);
    m_proxy.setRecursiveFilteringEnabled(true);
    m_proxy.setAutoAcceptChildRows(true);
    m_table = new QTreeView(side);
    m_table->setModel(&m_proxy);
    m_table->setAccessibleName(tr("Measured runs by source"));
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(AccuracyModel::Run, Qt::AscendingOrder);
    m_table->setUniformRowHeights(true);
    m_table->setAlternatingRowColors(true);
    m_table->header()->setStretchLastSection(true);
    layout->addWidget(m_table, 1);
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_proxy.setFilterFixedString(text);
        if (!text.isEmpty())
            m_table->expandAll();
        showPoints();
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
        [this](const QModelIndex &current) {
            m_chart->setCurrent(m_model.rowOf(m_proxy.mapToSource(current)).value_or(-1));
        });
    return side;
}

QWidget *AccuracyDialog::newChart()
{
    auto *side = new QWidget(this);
    auto *layout = new QVBoxLayout(side);
    layout->setContentsMargins({});
    m_figure = new QComboBox(side);
    m_figure->setObjectName(QStringLiteral("figure"));
    m_figure->setAccessibleName(tr("What the chart shows"));
    m_figure->addItem(tr("Step time"), static_cast<int>(ScatterUnit::Seconds));
    m_figure->addItem(tr("Peak memory"), static_cast<int>(ScatterUnit::Bytes));
    layout->addWidget(m_figure, 0, Qt::AlignLeft);
    m_chart = new ScatterChart(side);
    layout->addWidget(m_chart, 1);
    connect(m_figure, &QComboBox::activated, this, &AccuracyDialog::showPoints);
    connect(m_chart, &ScatterChart::picked, this, &AccuracyDialog::pick);
    return side;
}

void AccuracyDialog::takeRows()
{
    const std::shared_ptr<const Rows> rows = m_watcher.result();
    if (!*rows) {
        m_words->setText(toQString(describe(rows->error())));
        return;
    }
    m_model.setRows(**rows);
    takeColours();
    m_table->expandAll();
    for (int column = 0; column < AccuracyModel::Remark; ++column)
        m_table->resizeColumnToContents(column);
    const auto &all = m_model.rows();
    m_table->setColumnHidden(AccuracyModel::Framework,
        std::all_of(all.begin(), all.end(), [](const MeasuredRow &row) { return row.framework.empty(); }));
    m_table->setFocus(Qt::OtherFocusReason);
    showPoints();
}

void AccuracyDialog::takeColours()
{
    std::vector<QColor> colours;
    for (int group = 0; group < m_model.groupCount(); ++group)
        colours.push_back(categoricalColour(paletteFor(*this), group));
    m_model.setColours(std::move(colours));
}

void AccuracyDialog::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange)
        takeColours();
    QDialog::changeEvent(event);
}

std::vector<int> AccuracyDialog::filteredRows() const
{
    std::vector<int> rows;
    for (int group = 0; group < m_proxy.rowCount(); ++group) {
        const QModelIndex parent = m_proxy.index(group, 0);
        for (int child = 0; child < m_proxy.rowCount(parent); ++child)
            if (const auto row = m_model.rowOf(m_proxy.mapToSource(m_proxy.index(child, 0, parent))))
                rows.push_back(*row);
    }
    return rows;
}

void AccuracyDialog::showPoints()
{
    const auto unit = static_cast<ScatterUnit>(m_figure->currentData().toInt());
    const std::vector<int> rows = filteredRows();
    std::vector<RunPoint> points;
    for (const int row : rows)
        if (auto point = pointOf(m_model.rows()[static_cast<std::size_t>(row)], unit)) {
            point->group = m_model.groupOf(row);
            point->row = row;
            points.push_back(*std::move(point));
        }
    m_chart->setPoints(std::move(points), unit);
    showSums(rows);
}

/// What all runs that pass the filter say together.
void AccuracyDialog::showSums(const std::vector<int> &rows)
{
    std::vector<double> steps;
    std::vector<double> peaks;
    std::size_t skipped = 0;
    for (const int number : rows) {
        const MeasuredRow &row = m_model.rows()[static_cast<std::size_t>(number)];
        if (const auto error = row.stepError())
            steps.push_back(*error);
        if (const auto error = row.peakError())
            peaks.push_back(*error);
        skipped += row.skipped.empty() ? 0 : 1;
    }
    const auto words = [](const QString &what, const ErrorSummary &sum) {
        return sum.count == 0 ? QString()
                              : tr(" %1: off by %2% in the median and %3% at worst, of %4 runs.")
                                    .arg(what)
                                    .arg(100 * sum.median, 0, 'f', 1)
                                    .arg(100 * sum.worst, 0, 'f', 1)
                                    .arg(sum.count);
    };
    QString text = tr("Training runs that others measured and published, and what Planloom predicts for them "
                      "from kernels and links alone: no figure was fitted to a run.")
        + words(tr("Step time"), summaryOf(std::move(steps)))
        + words(tr("Peak memory"), summaryOf(std::move(peaks)));
    if (skipped > 0)
        text += tr(" Not predicted: %1 of %2; the remark says why.").arg(skipped).arg(rows.size());
    if (m_model.rows().empty())
        text = tr("There are no measured runs in this build.");
    m_words->setText(text);
}

void AccuracyDialog::pick(int row)
{
    const QModelIndex index = m_proxy.mapFromSource(m_model.indexOf(row));
    m_table->expand(index.parent());
    m_table->setCurrentIndex(index);
    m_table->scrollTo(index, QAbstractItemView::PositionAtCenter);
}

} // namespace planloom

#include "moc_accuracy_dialog.cpp"
