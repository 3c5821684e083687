#include "widgets/main/advice_dialog.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "engine/table/table_text.h"
#include "widgets/common/delta.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr double kMostSecondsOfAdvice = 10; ///< Of simulations.
constexpr int kMostKindsListed = 500; ///< Kinds of decisions.

void addCell(QTableWidget *table, int row, int column, const QString &text, bool isFigure = false)
{
    auto *item = new QTableWidgetItem(text);
    item->setToolTip(text);
    if (isFigure)
        item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    table->setItem(row, column, item);
}

QTableWidget *newList(const QString &name, const QStringList &columns, QWidget *parent)
{
    auto *list = new QTableWidget(0, static_cast<int>(columns.size()), parent);
    list->setObjectName(name);
    list->setHorizontalHeaderLabels(columns);
    list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    list->setSelectionBehavior(QAbstractItemView::SelectRows);
    list->verticalHeader()->hide();
    list->setAlternatingRowColors(true);
    list->setWordWrap(false);
    list->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    return list;
}

/// "-12%"
QString changeText(double before, double after)
{
    return QString::fromStdString(percentText(before, after));
}

} // namespace

AdviceDialog::AdviceDialog(QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(tr("Free Decisions and Suggestions"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto *layout = new QVBoxLayout(this);
    m_pages = new QTabWidget(this);
    m_pages->addTab(newFreePage(), tr("&Free Decisions"));
    m_pages->addTab(newSuggestionPage(), tr("&Suggestions"));
    layout->addWidget(m_pages, 1);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(&m_watcher, &QFutureWatcherBase::resultReadyAt, this,
        [this](int result) { present(m_watcher.resultAt(result)); });
    enable();
    resize(sizeHint().expandedTo({fontMetrics().averageCharWidth() * 160, fontMetrics().height() * 30}));
}

AdviceDialog::~AdviceDialog()
{
    m_stop.request_stop();
}

QWidget *AdviceDialog::newFreePage()
{
    auto *page = new QWidget(this);
    auto *layout = new QVBoxLayout(page);
    m_freeWords = new QLabel(page);
    m_freeWords->setWordWrap(true);
    layout->addWidget(m_freeWords);
    m_free =
        newList(QStringLiteral("freeDecisions"), {tr("Kind"), tr("Operators"), tr("Chosen"), tr("By")}, page);
    m_free->setAccessibleName(tr("What no row decides"));
    layout->addWidget(m_free, 1);
    auto *row = new QHBoxLayout;
    row->addStretch();
    m_keepSelected = new QPushButton(tr("Keep Se&lected"), page);
    m_keepSelected->setToolTip(
        tr("Writes rows that say what was chosen for these operators (one undo step)"));
    m_keepAll = new QPushButton(tr("Keep &All"), page);
    m_keepAll->setToolTip(tr("Writes rows for all of them: the plan stays as it is shown"));
    row->addWidget(m_keepSelected);
    row->addWidget(m_keepAll);
    layout->addLayout(row);
    connect(m_keepSelected, &QPushButton::clicked, this, [this] { keep(false); });
    connect(m_keepAll, &QPushButton::clicked, this, [this] { keep(true); });
    connect(m_free, &QTableWidget::itemSelectionChanged, this, &AdviceDialog::enable);
    return page;
}

QWidget *AdviceDialog::newSuggestionPage()
{
    auto *page = new QWidget(this);
    auto *layout = new QVBoxLayout(page);
    m_limits = new QLabel(page);
    m_limits->setWordWrap(true);
    layout->addWidget(m_limits);
    m_rows = newList(QStringLiteral("suggestions"),
        {tr("Row"), tr("Step"), tr("Change"), tr("Peak"), tr("What it does")}, page);
    m_rows->setSelectionMode(QAbstractItemView::SingleSelection);
    m_rows->setAccessibleName(tr("Rows that would help"));
    layout->addWidget(m_rows, 1);
    auto *row = new QHBoxLayout;
    row->addStretch();
    m_take = new QPushButton(tr("&Take Row"), page);
    m_take->setToolTip(tr("Adds the row to the table, in place of what the search chose there"));
    row->addWidget(m_take);
    layout->addLayout(row);
    connect(m_take, &QPushButton::clicked, this, &AdviceDialog::take);
    connect(m_rows, &QTableWidget::cellDoubleClicked, this, &AdviceDialog::take);
    connect(m_rows, &QTableWidget::itemSelectionChanged, this, &AdviceDialog::enable);
    return page;
}

void AdviceDialog::showPage(Page page)
{
    m_pages->setCurrentIndex(page);
}

void AdviceDialog::advise(QPromise<AdviceSnapshot> &promise, const PlanUpdateSnapshot &update,
    const PlanRequest &request, const std::stop_token &stop)
{
    Advice advice;
    advice.free = freeDecisionsOf(*update->model, *update->plan, update->table.table());
    advice.limits = limitsOf(*update);
    advice.shrinking = shrinkingRows(*update);
    promise.addResult(std::make_shared<const Advice>(advice));
    auto helpful = helpfulRows(request, *update, kMostSecondsOfAdvice, stop);
    if (!helpful)
        return;
    advice.helpful = *std::move(helpful);
    advice.whole = true;
    promise.addResult(std::make_shared<const Advice>(std::move(advice)));
}

void AdviceDialog::setPlan(PlanUpdateSnapshot update, PlanRequest request)
{
    if (update == m_update)
        return;
    m_stop.request_stop();
    m_stop = {};
    m_update = std::move(update);
    m_request = std::move(request);
    m_advice.reset();
    m_free->setRowCount(0);
    m_rows->setRowCount(0);
    m_freeWords->setText(tr("Looking at the plan …"));
    m_limits->clear();
    enable();
    m_watcher.setFuture(QtConcurrent::run(
        [update = m_update, request = m_request, stop = m_stop.get_token()](
            QPromise<AdviceSnapshot> &promise) { advise(promise, update, request, stop); }));
}

void AdviceDialog::present(const AdviceSnapshot &advice)
{
    const bool isFirst = !m_advice;
    m_advice = advice;
    if (isFirst)
        fillFree();
    fillSuggestions();
    enable();
}

void AdviceDialog::fillFree()
{
    std::size_t operators = 0;
    for (const FreeDecision &each : m_advice->free)
        operators += each.operators.size();
    m_freeWords->setText(operators == 0
            ? tr("Rows of yours decide every operator.")
            : tr("No row of yours decides %1. This is what was chosen; keep what is to stay as it is.")
                  .arg(QString::fromStdString(counted(static_cast<std::int64_t>(operators), "operator"))));
    const int rows = std::min(kMostKindsListed, static_cast<int>(m_advice->free.size()));
    m_free->setRowCount(rows);
    for (int row = 0; row < rows; ++row) {
        const FreeDecision &each = m_advice->free[static_cast<std::size_t>(row)];
        addCell(m_free, row, 0, QString::fromStdString(each.kind));
        addCell(m_free, row, 1, QString::fromStdString(each.words));
        addCell(m_free, row, 2, QString::fromStdString(each.chosen));
        addCell(m_free, row, 3,
            each.bySearch          ? tr("the search")
                : each.why.empty() ? tr("default")
                                   : tr("default: %1").arg(QString::fromStdString(each.why)));
    }
    m_free->resizeColumnsToContents();
    m_free->horizontalHeader()->setStretchLastSection(true);
}

void AdviceDialog::fillSuggestions()
{
    const double step = m_update->summary.stepSeconds;
    QString words = QString::fromStdString(wordsOf(m_advice->limits)) + QLatin1Char('.');
    words[0] = words[0].toUpper();
    if (!m_advice->whole)
        words += tr(" Simulating rows that may help …");
    else if (m_advice->helpful.empty())
        words += m_advice->limits.memory ? tr(" No single row that was tried makes it smaller.")
                                         : tr(" No single row that was tried makes it faster and fits.");
    m_limits->setText(words);
    m_rows->setRowCount(static_cast<int>(m_advice->helpful.size() + m_advice->shrinking.size()));
    int row = 0;
    for (const HelpfulRow &each : m_advice->helpful) {
        addCell(m_rows, row, 0, QString::fromStdString(each.row));
        addCell(m_rows, row, 1, QString::fromStdString(formatSeconds(each.stepSeconds)), true);
        addCell(m_rows, row, 2, changeText(step, each.stepSeconds), true);
        addCell(m_rows, row, 3, QString::fromStdString(formatBytes(Bytes{each.peakBytes})), true);
        addCell(m_rows, row++, 4,
            m_advice->limits.memory ? each.fits ? tr("makes it fit") : tr("needs less memory")
                                    : tr("makes it faster"));
    }
    for (const ShrinkingRow &each : m_advice->shrinking) {
        addCell(m_rows, row, 0, QString::fromStdString(each.row));
        addCell(m_rows, row, 1, QStringLiteral("–"), true);
        addCell(m_rows, row, 2, QStringLiteral("–"), true);
        addCell(m_rows, row, 3, QStringLiteral("–"), true);
        addCell(m_rows, row++, 4,
            tr("keeps what was found: %1 of %2 configurations left to search").arg(each.left).arg(each.of));
    }
    m_rows->resizeColumnsToContents();
    m_rows->horizontalHeader()->setStretchLastSection(true);
}

void AdviceDialog::keep(bool all)
{
    if (!m_advice)
        return;
    std::vector<OperatorId> operators;
    for (std::size_t i = 0; i < m_advice->free.size(); ++i) {
        const bool isSelected = static_cast<int>(i) < m_free->rowCount()
            && m_free->selectionModel()->isRowSelected(static_cast<int>(i), {});
        if (all || isSelected)
            operators.insert(
                operators.end(), m_advice->free[i].operators.begin(), m_advice->free[i].operators.end());
    }
    std::sort(operators.begin(), operators.end());
    GestureContext context = gestureContextOf(*m_update->model, m_update->table, m_update->deviceCount);
    context.plan = m_update->plan;
    context.cluster = m_update->cluster;
    using Kept = Result<TableEdit>;
    auto *watcher = new QFutureWatcher<Kept>(this);
    connect(watcher, &QFutureWatcherBase::finished, this,
        [this, watcher, table = m_update->table, count = operators.size()] {
            const Kept edit = watcher->result();
            watcher->deleteLater();
            if (!edit)
                m_freeWords->setText(QString::fromStdString(describe(edit.error())));
            else
                Q_EMIT taken(
                    tr("keep what was chosen for %1")
                        .arg(QString::fromStdString(counted(static_cast<std::int64_t>(count), "operator"))),
                    *edit, table);
        });
    watcher->setFuture(
        QtConcurrent::run([context = std::move(context), operators = std::move(operators)]() -> Kept {
            return keepDecisions(context, operators);
        }));
}

void AdviceDialog::take()
{
    const int row = m_rows->currentRow();
    if (!m_advice || row < 0)
        return;
    const auto index = static_cast<std::size_t>(row);
    if (index < m_advice->helpful.size()) {
        const HelpfulRow &each = m_advice->helpful[index];
        Q_EMIT taken(QString::fromStdString(each.row), each.edit, m_update->table);
        return;
    }
    const std::size_t shrinking = index - m_advice->helpful.size();
    if (shrinking >= m_advice->shrinking.size())
        return;
    const std::string &text = m_advice->shrinking[shrinking].row;
    if (const auto own = parseRow(text))
        Q_EMIT taken(QString::fromStdString(text), appendRows(m_update->table, {*own}), m_update->table);
}

void AdviceDialog::enable()
{
    m_keepSelected->setEnabled(
        m_advice && m_free->selectionModel() && m_free->selectionModel()->hasSelection());
    m_keepAll->setEnabled(m_advice && !m_advice->free.empty());
    m_take->setEnabled(m_advice && m_rows->currentRow() >= 0);
}

} // namespace planloom
