#include "widgets/problems/problems_panel.h"

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
#include "engine/design/explain/gallery_effect.h"
#include "widgets/design/row_sentences.h"

#include <algorithm>
#include <map>
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

/// Weights that a gallery's plan leaves whole though that takes much of the memory.
std::vector<UncutWeights> uncutOfGallery(const PlanUpdate &update)
{
    const ConstraintTable rows = update.table.table();
    const bool isOfGallery = std::any_of(rows.rows.begin(), rows.rows.end(), [](const Row &row) {
        return row.enabled && row.origin == RowOrigin::Template
            && std::holds_alternative<OpTransRule>(row.rule);
    });
    if (!update.final || !update.scene || !isOfGallery)
        return {};
    std::vector<UncutWeights> uncut = uncutWeights(*update.plan);
    std::erase_if(uncut, [](const UncutWeights &each) { return !each.matters; });
    return uncut;
}

/// One problem an axis.
void addUncut(const PlanUpdate &update, std::vector<ProblemsModel::Problem> &problems)
{
    std::map<std::string, ProblemsModel::Problem> byAxis;
    for (const UncutWeights &uncut : uncutOfGallery(update)) {
        ProblemsModel::Problem &problem = byAxis[uncut.axis];
        std::string &words = problem.error.message;
        words += (words.empty() ? "not cut: " : "; ") + wordsOf(uncut);
        problem.operators.insert(problem.operators.end(), uncut.operators.begin(), uncut.operators.end());
    }
    for (auto &[axis, problem] : byAxis) {
        problem.error.code = ErrorCode::NotSupported;
        problem.error.advice = "the gallery's plan keeps them whole on every device of " + axis
            + "; another size, or rows of your own, would cut them";
        problem.error.where = "gallery";
        std::sort(problem.operators.begin(), problem.operators.end());
        problems.push_back(std::move(problem));
    }
}

/// Work that replicas repeat.
void addCopied(const PlanUpdate &update, std::vector<ProblemsModel::Problem> &problems)
{
    if (!update.final || !update.scene || !update.execution || !update.copied.alongBatch)
        return;
    const std::string words = copiedWords(update.copied, *update.execution->graph);
    if (words.empty())
        return;
    ProblemsModel::Problem problem;
    problem.error = {ErrorCode::NotSupported, words,
        "share the work out along another axis, or change what needs the whole batch", "gallery"};
    for (const CopiedOperator &each : update.copied.operators)
        problem.operators.push_back(each.op);
    std::sort(problem.operators.begin(), problem.operators.end());
    problems.push_back(std::move(problem));
}

/// The best way out; the others are below the list.
std::string adviceOf(const std::vector<RowWayOut> &ways)
{
    if (ways.empty())
        return {};
    return ways.front().words
        + (ways.size() > 1 ? "; " + counted(static_cast<std::int64_t>(ways.size()) - 1, "more way") : "");
}

/// The best way out of what is in the way of a plan.
std::string adviceOf(const std::vector<OtherWay> &others, const std::vector<RowWayOut> &ways)
{
    if (others.empty())
        return adviceOf(ways);
    const std::size_t more = others.size() + ways.size() - 1;
    return others.front().words
        + (more > 0 ? "; " + counted(static_cast<std::int64_t>(more), "more way") : "");
}

/// Those that come nearer help nobody where others arrive.
std::vector<RowWayOut> worthOffering(std::vector<RowWayOut> ways, bool isEndedOtherwise)
{
    const auto holds = [](const RowWayOut &way) { return way.holds; };
    if (isEndedOtherwise || std::any_of(ways.begin(), ways.end(), holds))
        std::erase_if(ways, [&](const RowWayOut &way) { return !holds(way); });
    return ways;
}

/// Of rows that leave the search no plan a conflict says which they are, why, and what helps.
bool isToldByConflict(const Error &error, const PlanUpdate &update)
{
    return update.searchProblem && *update.searchProblem == error && !update.conflicts.empty();
}

} // namespace

std::vector<ProblemsModel::Problem> problemsOf(const PlanUpdate &update, const std::vector<RowWayOut> &within)
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
        problem.line = conflict.lines.empty() ? -1 : conflict.lines.back();
        problem.operators = conflict.operators;
        problem.waysOut = conflict.waysOut;
        problem.isInTheWay = true;
        if (conflict.reason.code
            == ErrorCode::ResourceLimit) // a limit; rows that help are ways out of it, too
            problem.waysOut.insert(problem.waysOut.end(), within.begin(), within.end());
        problem.error.advice = adviceOf(problem.waysOut);
        problems.push_back(std::move(problem));
    }
    const auto add = [&](Error error, std::int32_t line) {
        error.message = withLineNumbers(error.message, update);
        error.advice = withLineNumbers(error.advice, update);
        problems.push_back({std::move(error), line, {}, {}, true});
    };
    for (const RowLine &row : update.rows) {
        if (row.report.error && !told.contains(row.line))
            add(*row.report.error, row.line);
    }
    if (update.error && !isToldByConflict(*update.error, update))
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
        const std::string advice = adviceOf(within);
        problems.push_back({{ErrorCode::ResourceLimit,
                                std::to_string(over) + " of " + std::to_string(update.summary.devices.size())
                                    + " devices need more memory than they have",
                                advice.empty() ? "split weights over more devices (tp, pp), recompute "
                                                 "layers, or take more micro-batches"
                                               : advice,
                                "memory"},
            -1, {}, within, true});
    }
    addUncut(update, problems);
    addCopied(update, problems);
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
    // A click on one that has buttons shows them; Enter leads to its place.
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex &index) {
        const ProblemsModel::Problem &clicked = m_model->problems()[static_cast<std::size_t>(index.row())];
        if (clicked.waysOut.empty())
            show(index.row());
        else if (!clicked.operators.empty())
            Q_EMIT operatorsActivated(clicked.operators);
    });
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
    std::vector<OtherWay> others;
    if (row < count()) {
        const ProblemsModel::Problem &problem = m_model->problems()[static_cast<std::size_t>(row)];
        if (problem.isInTheWay)
            others = m_others;
        ways = problem.waysOut;
    }
    if (ways == m_offered && others == m_othersOffered)
        return; // a button that is about to be clicked stays where it is
    m_offered = std::move(ways);
    m_othersOffered = std::move(others);
    showButtons();
}

void ProblemsPanel::showButtons()
{
    m_waysOut->setVisible(!m_offered.empty() || !m_othersOffered.empty());
    auto *list = new QWidget;
    auto *grid = new QGridLayout(list);
    grid->setContentsMargins(8, 4, 8, 4);
    grid->setVerticalSpacing(2);
    grid->setColumnStretch(2, 1);
    int line = 0;
    const auto add = [&](const std::string &said, const std::string &effect, auto &&act) {
        const QString words = QString::fromStdString(said);
        auto *button = new QPushButton(fontMetrics().elidedText(words, Qt::ElideMiddle, kWidestWay), list);
        button->setToolTip(words);
        button->setAccessibleName(words);
        connect(button, &QPushButton::clicked, this, act);
        grid->addWidget(line == 0 ? new QLabel(tr("Ways out:"), list) : new QLabel(list), line, 0);
        grid->addWidget(button, line, 1);
        auto *label = new QLabel(QString::fromStdString(effect), list);
        label->setTextFormat(Qt::PlainText);
        grid->addWidget(label, line++, 2);
    };
    for (const OtherWay &way : m_othersOffered)
        add(way.words, way.effect, [this, way] { Q_EMIT otherWayChosen(way); });
    for (const RowWayOut &way : m_offered)
        add(way.words, effectOf(way), [this, words = QString::fromStdString(way.words), edit = way.edit] {
            Q_EMIT wayOutChosen(words, edit);
        });
    m_waysOut->setWidget(list);
    constexpr int kLinesInSight = 5;
    const int lines = std::clamp(line, 1, kLinesInSight);
    m_waysOut->setFixedHeight(list->sizeHint().height() * lines / std::max(line, 1) + 2);
}

void ProblemsPanel::setUpdate(const PlanUpdateSnapshot &update)
{
    if (m_update != update) {
        m_within.clear();
        m_others.clear();
    }
    m_update = update;
    refresh();
}

void ProblemsPanel::setWays(const PlanUpdateSnapshot &update, const std::vector<RowWayOut> &within,
    const std::vector<OtherWay> &others)
{
    if (update != m_update)
        return;
    m_within = within;
    m_others = others;
    refresh();
}

void ProblemsPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    Q_EMIT shown();
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
        if (!m_update || !isToldByConflict(error, *m_update))
            problems.push_back({error, -1, {}, {}});
    if (m_update) {
        auto more = problemsOf(*m_update, m_within);
        for (ProblemsModel::Problem &problem : more) {
            if (!problem.isInTheWay)
                continue;
            // Of a limit, what comes nearer counts beside giving it up; of rows in conflict each may need its
            // own way.
            if (problem.line < 0 && problem.error.code == ErrorCode::ResourceLimit)
                problem.waysOut = worthOffering(std::move(problem.waysOut), !m_others.empty());
            if (!m_others.empty() || !problem.waysOut.empty())
                problem.error.advice = adviceOf(m_others, problem.waysOut);
        }
        problems.insert(problems.end(), more.begin(), more.end());
    }
    m_model->setProblems(std::move(problems));
    m_table->resizeRowsToContents();
    showWaysOut();
    Q_EMIT countChanged(count());
}

} // namespace planloom

#include "moc_problems_panel.cpp"
