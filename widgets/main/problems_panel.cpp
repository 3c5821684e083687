#include "widgets/main/problems_panel.h"

#include <QtWidgets/QGridLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include "engine/analyse/limits.h"
#include "engine/base/place.h"
#include "engine/base/words.h"
#include "widgets/design/row_sentences.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr int kWidestWay = 560; ///< Pixels of a button's words.

} // namespace

ProblemsModel::ProblemsModel(QObject *parent)
    : QAbstractTableModel(parent)
{
}

void ProblemsModel::setProblems(std::vector<Problem> problems)
{
    if (problems == m_problems)
        return;
    beginResetModel();
    m_problems = std::move(problems);
    endResetModel();
}

int ProblemsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_problems.size());
}

int ProblemsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ProblemsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    const Problem &problem = m_problems[static_cast<std::size_t>(index.row())];
    if (role == Qt::ToolTipRole)
        return sentences({problem.error.message, problem.error.advice});
    switch (index.column()) {
    case Where:
        return problem.line >= 0 ? tr("Row %1").arg(problem.line + 1)
                                 : QString::fromStdString(placeWords(placeOf(problem.error)));
    case What:
        return sentences({problem.error.message});
    case Advice:
        return sentences({problem.error.advice});
    default:
        return {};
    }
}

QVariant ProblemsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == Where ? tr("Where") : section == What ? tr("What") : tr("What helps");
}

namespace {

/// The line of the row that an error names as its place; -1 if it names none.
std::int32_t lineOf(const Error &error, const PlanUpdate &update)
{
    const Place place = placeOf(error);
    const auto *row = std::get_if<RowPlace>(&place);
    return row && static_cast<std::size_t>(row->row.index) < update.rows.size()
        ? update.rows[static_cast<std::size_t>(row->row.index)].line
        : -1;
}

} // namespace

std::vector<ProblemsModel::Problem> problemsOf(const PlanUpdate &update)
{
    std::vector<ProblemsModel::Problem> problems;
    for (const Error &error : update.textErrors) {
        const Place place = placeOf(error);
        const auto *text = std::get_if<TextPlace>(&place);
        problems.push_back({error, text ? text->line - 1 : -1, {}, {}});
    }
    // Rows that can't hold together are one problem, and not one more a row.
    std::set<std::int32_t> told;
    for (const RowConflict &conflict : update.conflicts) {
        ProblemsModel::Problem problem;
        std::string lines;
        for (const std::int32_t line : conflict.lines) {
            told.insert(line);
            lines += (lines.empty() ? "" : ", ") + std::to_string(line + 1);
        }
        problem.error = {ErrorCode::InvalidInput, conflict.words, {}, "rows " + lines};
        if (!conflict.waysOut.empty()) // the others are below
            problem.error.advice = conflict.waysOut.front().words
                + (conflict.waysOut.size() > 1
                        ? "; " + counted(static_cast<std::int64_t>(conflict.waysOut.size()) - 1, "more way")
                        : "");
        problem.line = conflict.lines.empty() ? -1 : conflict.lines.back();
        problem.operators = conflict.operators;
        problem.waysOut = conflict.waysOut;
        problems.push_back(std::move(problem));
    }
    const auto add = [&](Error error, std::int32_t line) {
        error.message = withLineNumbers(error.message, update);
        error.advice = withLineNumbers(error.advice, update);
        problems.push_back({std::move(error), line, {}, {}});
    };
    for (const RowLine &row : update.rows) {
        if (row.report.error && !told.contains(row.line))
            add(*row.report.error, row.line);
    }
    if (update.error)
        add(*update.error, lineOf(*update.error, update));
    if (update.verdict && !update.verdict->ok()) {
        const VerifyFailure &failure = *update.verdict->failure;
        std::string where = "device:" + std::to_string(failure.device.index);
        if (failure.segment >= 0)
            where += "/segment:" + std::to_string(failure.segment);
        if (failure.instruction >= 0)
            where += "/instruction:" + std::to_string(failure.instruction);
        problems.push_back({{ErrorCode::CheckFailed, "the plan does not compute the model: " + failure.reason,
                                "this is a fault of Planloom's; please report it with the session", where},
            -1, {}, {}});
    }
    const std::int32_t over =
        update.scene ? memoryUse(update.summary, update.cluster, update.scene->plan->units).over : 0;
    if (over > 0) {
        problems.push_back(
            {{ErrorCode::ResourceLimit,
                 std::to_string(over) + " of " + std::to_string(update.summary.devices.size())
                     + " devices need more memory than they have",
                 "split weights over more devices (tp, pp), recompute layers, or take more micro-batches",
                 "memory"},
                -1, {}, {}});
    }
    if (update.scene)
        if (auto overflow = hostOverflow(update.summary, update.cluster, update.scene->plan->units))
            problems.push_back({*std::move(overflow), -1, {}, {}});
    return problems;
}

ProblemsPanel::ProblemsPanel(QWidget *parent)
    : QWidget(parent)
    , m_model(new ProblemsModel(this))
    , m_table(new QTableView(this))
    , m_waysOut(new QScrollArea(this))
{
    m_table->setModel(m_model);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->setWordWrap(true);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAccessibleName(tr("Problems"));
    m_table->verticalHeader()->hide();
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->setTabKeyNavigation(false);
    m_table->setColumnWidth(ProblemsModel::Where, fontMetrics().averageCharWidth() * 22);
    m_table->setColumnWidth(ProblemsModel::What, fontMetrics().averageCharWidth() * 80);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_waysOut);
    m_waysOut->setFrameShape(QFrame::NoFrame);
    m_waysOut->setWidgetResizable(true);
    m_waysOut->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_waysOut->setAccessibleName(tr("Ways out"));
    m_waysOut->hide();
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
        &ProblemsPanel::showWaysOut);
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex &index) { show(index.row()); });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex &index) { show(index.row()); });
}

void ProblemsPanel::show(int problem)
{
    if (problem < 0 || problem >= count())
        return;
    m_table->selectRow(problem);
    const ProblemsModel::Problem &shown = m_model->problems()[static_cast<std::size_t>(problem)];
    if (!shown.operators.empty())
        Q_EMIT operatorsActivated(shown.operators);
    if (shown.line >= 0)
        Q_EMIT lineActivated(shown.line);
    else
        Q_EMIT placeActivated(placeOf(shown.error));
}

/// Buttons of the selected problem; of the first one if none is.
void ProblemsPanel::showWaysOut()
{
    const int row = std::max(0, m_table->currentIndex().row());
    std::vector<RowWayOut> ways;
    if (row < count())
        ways = m_model->problems()[static_cast<std::size_t>(row)].waysOut;
    if (ways == m_offered)
        return; // a button that is about to be clicked stays where it is
    m_offered = std::move(ways);
    m_waysOut->setVisible(!m_offered.empty());
    auto *list = new QWidget;
    auto *grid = new QGridLayout(list);
    grid->setContentsMargins(8, 4, 8, 4);
    grid->setVerticalSpacing(2);
    grid->setColumnStretch(2, 1);
    int line = 0;
    for (const RowWayOut &way : m_offered) {
        const QString words = QString::fromStdString(way.words);
        auto *button = new QPushButton(fontMetrics().elidedText(words, Qt::ElideMiddle, kWidestWay), list);
        button->setToolTip(words);
        button->setAccessibleName(words);
        connect(button, &QPushButton::clicked, this,
            [this, words, edit = way.edit] { Q_EMIT wayOutChosen(words, edit); });
        grid->addWidget(line == 0 ? new QLabel(tr("Ways out:"), list) : new QLabel(list), line, 0);
        grid->addWidget(button, line, 1);
        auto *effect = new QLabel(QString::fromStdString(effectOf(way)), list);
        effect->setTextFormat(Qt::PlainText);
        grid->addWidget(effect, line++, 2);
    }
    m_waysOut->setWidget(list);
    constexpr int kLinesInSight = 5;
    const int lines = std::clamp(line, 1, kLinesInSight);
    m_waysOut->setFixedHeight(list->sizeHint().height() * lines / std::max(line, 1) + 2);
}

void ProblemsPanel::setUpdate(const PlanUpdateSnapshot &update)
{
    m_update = update;
    refresh();
}

void ProblemsPanel::addProblem(const Error &error)
{
    m_apart.push_back(error);
    refresh();
}

void ProblemsPanel::clearProblems()
{
    m_apart.clear();
    refresh();
}

int ProblemsPanel::count() const
{
    return m_model->rowCount();
}

void ProblemsPanel::refresh()
{
    std::vector<ProblemsModel::Problem> problems;
    for (const Error &error : m_apart)
        problems.push_back({error, -1, {}, {}});
    if (m_update) {
        auto more = problemsOf(*m_update);
        problems.insert(problems.end(), more.begin(), more.end());
    }
    m_model->setProblems(std::move(problems));
    m_table->resizeRowsToContents();
    showWaysOut();
    Q_EMIT countChanged(count());
}

} // namespace planloom

#include "moc_problems_panel.cpp"
