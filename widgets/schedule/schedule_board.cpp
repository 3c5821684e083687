#include "widgets/schedule/schedule_board.h"

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/design/workspace.h"
#include "widgets/schedule/schedule_chooser.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace planloom {

namespace {

enum Column : int {
    NameColumn,
    StepColumn,
    ChangeColumn,
    BubbleColumn,
    PeakColumn,
    FlightColumn,
    PictureColumn
};

constexpr QSize kTrialPicture{260, 40};
constexpr double kMostSeconds = 600;

QString secondsText(double seconds)
{
    return toQString(formatSeconds(seconds));
}

QString titleOf(const TriedSchedule &tried)
{
    if (tried.rule.kind != ScheduleKind::Listed)
        return toQString(tried.name);
    const QString best = splitsBackward(tried.rule.order) ? ScheduleBoard::tr("best, split backward")
                                                          : ScheduleBoard::tr("best");
    return tried.shape == StageShape::Wave ? ScheduleBoard::tr("%1, in a wave").arg(best) : best;
}

/// "With whole backward passes: %1", of the blocks that a search was for.
QString blocksOf(const ScheduleSearch &search)
{
    const QString passes = search.splits ? ScheduleBoard::tr("gradients of weights apart")
                                         : ScheduleBoard::tr("whole backward passes");
    return search.shape == StageShape::AsTheyAre
        ? ScheduleBoard::tr("With %1: %2").arg(passes)
        : ScheduleBoard::tr("With %1 and %2: %3").arg(passes, toQString(nameOf(search.shape)));
}

} // namespace

ScheduleBoard::ScheduleBoard(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QDialog(parent)
    , m_workspace(workspace)
{
    setObjectName(QStringLiteral("scheduleBoard"));
    setWindowTitle(tr("Schedules"));
    m_view = new TimelineView(selection, this);
    m_view->setEmptyText(tr("Choose a schedule to see its timeline."));
    m_view->setAccessibleName(tr("Timeline of the chosen schedule"));
    build();
    connect(&m_trials, &ScheduleTrials::reported, this, &ScheduleBoard::take);
    connect(&m_shower, &EngineService::planUpdated, this, [this](const PlanUpdateSnapshot &update) {
        if (update->scene)
            m_view->setScene(update->scene);
    });
    const auto changed = [this] {
        if (isWorking() && basis() != m_basis)
            stop();
        refresh();
    };
    connect(m_workspace, &Workspace::tableChanged, this, changed);
    connect(m_workspace, &Workspace::clusterChanged, this, changed);
    connect(m_workspace, &Workspace::modelChanged, this, changed);
    connect(m_workspace, &Workspace::planChanged, this, [this] {
        if (m_workspace->latest() && m_workspace->latest()->final)
            refresh();
    });
    refresh();
}

ScheduleBoard::~ScheduleBoard()
{
    m_workspace->disconnect(this);
    m_shower.disconnect(this);
}

void ScheduleBoard::build()
{
    auto *layout = new QVBoxLayout(this);
    auto *top = new QHBoxLayout;
    m_state = new QLabel(this);
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    top->addWidget(m_state, 1);
    m_seconds = new QDoubleSpinBox(this);
    m_seconds->setRange(0.1, kMostSeconds);
    m_seconds->setDecimals(1);
    m_seconds->setValue(kScheduleSeconds);
    m_seconds->setSuffix(tr(" s"));
    m_seconds->setToolTip(
        tr("How long each of the two searches may take: with whole backward passes, and with "
           "those of weights apart"));
    auto *limit = new QLabel(tr("&Time limit"), this);
    limit->setBuddy(m_seconds);
    m_best = new QPushButton(tr("Find &Best"), this);
    m_best->setToolTip(tr("Searches for the schedule with the shortest step; Apply takes it"));
    m_again = new QPushButton(tr("Try &Again"), this);
    m_stop = new QPushButton(tr("&Stop"), this);
    for (QWidget *widget : std::initializer_list<QWidget *>{limit, m_seconds, m_best, m_again, m_stop})
        top->addWidget(widget);
    layout->addLayout(top);
    m_proof = new QLabel(this);
    m_proof->setWordWrap(true);
    m_proof->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(m_proof);
    auto *splitter = new QSplitter(Qt::Vertical, this);
    splitter->setChildrenCollapsible(false);
    m_list = new QTableWidget(splitter);
    m_list->setObjectName(QStringLiteral("triedSchedules"));
    m_list->setAccessibleName(tr("Schedules"));
    m_list->setColumnCount(PictureColumn + 1);
    m_list->setHorizontalHeaderLabels({tr("Schedule"), tr("Step"), tr("Against now"), tr("Bubble"),
        tr("Peak"), tr("In flight"), tr("Timeline")});
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_list->verticalHeader()->hide();
    m_list->verticalHeader()->setDefaultSectionSize(kTrialPicture.height() + 6);
    m_list->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_list->horizontalHeader()->setSectionResizeMode(PictureColumn, QHeaderView::Stretch);
    splitter->addWidget(m_list);
    splitter->addWidget(m_view);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    layout->addWidget(splitter, 1);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    m_apply = buttons->addButton(tr("&Apply"), QDialogButtonBox::ActionRole);
    m_compare = buttons->addButton(tr("&Compare"), QDialogButtonBox::ActionRole);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_again, &QPushButton::clicked, this, &ScheduleBoard::tryAll);
    connect(m_best, &QPushButton::clicked, this, &ScheduleBoard::findBest);
    connect(m_stop, &QPushButton::clicked, this, &ScheduleBoard::stop);
    connect(m_apply, &QPushButton::clicked, this, &ScheduleBoard::apply);
    connect(m_compare, &QPushButton::clicked, this, &ScheduleBoard::compareChosen);
    connect(m_list, &QTableWidget::itemSelectionChanged, this, [this] {
        showChosen();
        refresh();
    });
    connect(m_list, &QTableWidget::cellDoubleClicked, this, &ScheduleBoard::apply);
    resize(QSize(fontMetrics().averageCharWidth() * 130, fontMetrics().height() * 46));
}

std::string ScheduleBoard::basis() const
{
    std::string text = m_workspace->cluster() + "\n" + std::to_string(m_workspace->deviceCount()) + "\n"
        + m_workspace->clusterJson() + "\n";
    for (const TableLineSnapshot &line : m_workspace->table().lines())
        if (!line->row || !line->row->enabled || !std::holds_alternative<ScheduleRule>(line->row->rule))
            text += line->text + "\n";
    return text;
}

void ScheduleBoard::tryAll()
{
    m_searches = false;
    start(0);
}

void ScheduleBoard::findBest()
{
    m_searches = true;
    start(m_seconds->value());
}

void ScheduleBoard::start(double seconds)
{
    auto request = m_workspace->planRequest();
    if (!request)
        return;
    request->explains = false; // rows that no schedule can carry out are an error as for each
    m_report.reset();
    m_stopped = false;
    m_basis = basis();
    m_view->setScene(nullptr);
    m_trials.start(*std::move(request), seconds, paletteFor(*this).theme, kTrialPicture, devicePixelRatioF());
    fill();
    refresh();
}

void ScheduleBoard::stop()
{
    if (!isWorking())
        return;
    m_trials.stop();
    m_stopped = true;
    refresh();
}

void ScheduleBoard::take(const TrialReportSnapshot &report)
{
    const std::size_t before = m_report ? m_report->rows.size() : 0;
    m_report = report;
    if (report->rows.size() != before)
        fill();
    refresh();
    if (report->done && m_searches)
        showBest();
}

const TriedSchedule *ScheduleBoard::triedAt(int line) const
{
    return m_report && line >= 0 && static_cast<std::size_t>(line) < m_order.size()
        ? &m_report->rows[m_order[static_cast<std::size_t>(line)]]->tried
        : nullptr;
}

const TriedSchedule *ScheduleBoard::best() const
{
    const TriedSchedule *first = triedAt(0);
    return first && !first->problem ? first : nullptr;
}

std::vector<const TriedSchedule *> ScheduleBoard::chosen() const
{
    std::vector<const TriedSchedule *> all;
    for (const QModelIndex &index : m_list->selectionModel()->selectedRows())
        if (const TriedSchedule *tried = triedAt(index.row()); tried && !tried->problem)
            all.push_back(tried);
    return all;
}

void ScheduleBoard::fill()
{
    std::vector<std::size_t> selected; // rows of the report
    for (const QModelIndex &index : m_list->selectionModel()->selectedRows())
        if (static_cast<std::size_t>(index.row()) < m_order.size())
            selected.push_back(m_order[static_cast<std::size_t>(index.row())]);
    const QSignalBlocker blocker(m_list);
    m_order.resize(m_report ? m_report->rows.size() : 0);
    std::iota(m_order.begin(), m_order.end(), std::size_t{0});
    const auto worth = [this](std::size_t row) {
        const TriedSchedule &tried = m_report->rows[row]->tried;
        return std::tuple(tried.problem.has_value(), !tried.fits, tried.stepSeconds);
    };
    std::stable_sort(
        m_order.begin(), m_order.end(), [&](std::size_t a, std::size_t b) { return worth(a) < worth(b); });
    m_list->clearSelection();
    m_list->setRowCount(static_cast<int>(m_order.size()));
    const PlanUpdateSnapshot now = m_workspace->lastGood();
    for (int line = 0; line < m_list->rowCount(); ++line) {
        const TrialRow &row = *m_report->rows[m_order[static_cast<std::size_t>(line)]];
        const TriedSchedule &tried = row.tried;
        const auto put = [&](int column, const QString &text) {
            auto *item = new QTableWidgetItem(text);
            if (column != NameColumn && column != PictureColumn && !tried.problem)
                item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            m_list->setItem(line, column, item);
            return item;
        };
        QTableWidgetItem *name = put(NameColumn, titleOf(tried));
        QString tip =
            tried.rule.kind != ScheduleKind::Listed ? ScheduleChooser::tipOf(tried.rule.kind) : QString();
        if (!tried.stageRows.empty())
            tip += tr("<p>Lays the stages out anew: %1.</p>").arg(toQString(nameOf(tried.shape)));
        name->setToolTip(tip);
        if (tried.problem) {
            for (int column = StepColumn; column < PictureColumn; ++column)
                put(column, QStringLiteral("–"))->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            put(PictureColumn, tr("not here: %1").arg(toQString(tried.problem->message)))
                ->setToolTip(toQString(describe(*tried.problem)));
            for (int column = 0; column <= PictureColumn; ++column) {
                QTableWidgetItem *item = m_list->item(line, column);
                item->setForeground(palette().color(QPalette::PlaceholderText));
                item->setFlags(item->flags() & ~Qt::ItemIsSelectable);
            }
            continue;
        }
        put(StepColumn, secondsText(tried.stepSeconds));
        QString change = QStringLiteral("–");
        if (now && now->isTimed() && now->summary.stepSeconds > 0) {
            const double share = tried.stepSeconds / now->summary.stepSeconds - 1;
            change = std::abs(share) < 5e-4 ? tr("same")
                                            : QStringLiteral("%1%2%")
                                                  .arg(share > 0 ? QStringLiteral("+") : QStringLiteral("−"))
                                                  .arg(100 * std::abs(share), 0, 'f', 1);
        }
        put(ChangeColumn, change);
        put(BubbleColumn, QStringLiteral("%1%").arg(100 * tried.bubble, 0, 'f', 1));
        QTableWidgetItem *peak = put(PeakColumn, toQString(formatBytes(tried.peak)));
        if (!tried.fits) {
            peak->setText(tr("%1, too much").arg(peak->text()));
            peak->setForeground(paletteFor(*this).error);
            peak->setToolTip(tr("Does not fit the devices' memory, or a limit of the rows"));
        }
        put(FlightColumn, QString::number(tried.inFlight))
            ->setToolTip(tr("The most micro-batches that a stage holds on a device"));
        put(PictureColumn, {})->setData(Qt::DecorationRole, row.picture);
        if (std::find(selected.begin(), selected.end(), m_order[static_cast<std::size_t>(line)])
            != selected.end())
            m_list->selectionModel()->select(
                m_list->model()->index(line, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
    }
}

QString ScheduleBoard::state() const
{
    return m_state->text();
}

QString ScheduleBoard::proof() const
{
    return m_proof->text();
}

void ScheduleBoard::refresh()
{
    const bool open = m_workspace->planRequest().has_value() && !m_workspace->isReadOnly();
    const auto all = chosen();
    m_apply->setEnabled(open && all.size() == 1);
    m_compare->setEnabled(open && (all.size() == 2 || all.size() == 1));
    m_compare->setToolTip(all.size() == 2
            ? tr("Holds the two against each other")
            : tr("Holds it against the plan as it is; choose two for those two"));
    m_best->setEnabled(open && !isWorking());
    m_again->setEnabled(open && !isWorking());
    m_stop->setEnabled(isWorking());
    QStringList said;
    if (m_report && m_report->error)
        said << toQString(describe(*m_report->error));
    const std::size_t count = m_report ? m_report->rows.size() : 0;
    if (isWorking())
        said << (m_report && !m_report->searches.empty()
                ? tr("Searching…")
                : tr("Trying schedules: %1 of %2 so far.").arg(count).arg(kAllSchedules.size()));
    else if (m_stopped)
        said << tr("Stopped.");
    if (m_report && !isWorking() && !m_report->error) {
        const auto fitting = std::count_if(m_report->rows.begin(), m_report->rows.end(),
            [](const auto &row) { return !row->tried.problem; });
        said << tr("%1 of %2 schedules are for these stages.").arg(fitting).arg(count);
    }
    if (const TriedSchedule *first = best())
        said << (isWorking() ? tr("Best so far: %1, %2 a step.") : tr("The best: %1, %2 a step."))
                    .arg(titleOf(*first), secondsText(first->stepSeconds));
    if (m_report && !isWorking()
        && std::any_of(
            m_report->searches.begin(), m_report->searches.end(), [](const ScheduleSearch &search) {
                return search.status == ScheduleStatus::Feasible || search.status == ScheduleStatus::Unknown;
            }))
        said << tr("Stopped at %1 each: longer may find a better one.").arg(secondsText(m_seconds->value()));
    if (m_report && basis() != m_basis)
        said << tr("The rows have changed since: try again.");
    m_state->setText(said.join(QLatin1Char(' ')));
    QStringList proofs;
    for (const ScheduleSearch &search : m_report ? m_report->searches : std::vector<ScheduleSearch>{})
        if (!search.proof.empty())
            proofs << blocksOf(search).arg(toQString(search.proof));
    if (m_report && !m_report->bentTo.empty()) {
        QStringList numbers;
        const std::vector<std::int32_t> lines = m_workspace->table().rowLines();
        for (const RowId row : m_report->bentTo)
            if (static_cast<std::size_t>(row.index) < lines.size())
                numbers << QString::number(lines[static_cast<std::size_t>(row.index)] + 1);
        proofs << (numbers.size() == 1
                ? tr("Row %1 is for one micro-batch or pairs blocks: the search leaves it out, and what it "
                     "finds "
                     "is bent to it.")
                : tr(
                    "Rows %1 are for one micro-batch or pair blocks: the search leaves them out, and what it "
                    "finds is bent to them."))
                      .arg(numbers.join(QStringLiteral(", ")));
    }
    m_proof->setText(proofs.join(QLatin1Char('\n')));
    m_proof->setVisible(!proofs.isEmpty());
}

void ScheduleBoard::showChosen()
{
    const auto all = chosen();
    auto request = m_workspace->planRequest();
    const GestureContextSnapshot context = m_workspace->gestureContext();
    if (all.empty() || !request || !context)
        return;
    if (!request->table.apply(
            proposeSchedule(*context, all.back()->rule, {}, all.back()->stageRows, all.back()->memoryRows)
                .edit))
        return;
    request->upTo = PlanGrade::Simulated;
    request->explains = false;
    m_shower.plan(*std::move(request));
}

bool ScheduleBoard::applyTried(const TriedSchedule &tried)
{
    const GestureContextSnapshot context = m_workspace->gestureContext();
    if (!context || m_workspace->isReadOnly())
        return false;
    const std::string words = tried.rule.kind == ScheduleKind::Listed
        ? tr("%1 schedule, %2 a step").arg(titleOf(tried), secondsText(tried.stepSeconds)).toStdString()
        : std::string{};
    return m_workspace->commit(
        proposeSchedule(*context, tried.rule, words, tried.stageRows, tried.memoryRows));
}

void ScheduleBoard::apply()
{
    const bool isOfTheseRows = m_report && basis() == m_basis;
    if (const auto all = chosen(); all.size() == 1)
        applyTried(*all.front());
    if (isOfTheseRows)
        m_basis = basis(); // what the schedule brought along is no other design
    refresh();
}

void ScheduleBoard::showBest()
{
    m_searches = false;
    const TriedSchedule *first = best();
    const GestureContextSnapshot context = m_workspace->gestureContext();
    if (!first || !context || basis() != m_basis)
        return;
    m_list->selectRow(0);
    const bool isThere =
        proposeSchedule(*context, first->rule, {}, first->stageRows, first->memoryRows).edit.empty();
    if (m_apply->isEnabled())
        m_apply->setFocus(Qt::OtherFocusReason);
    QString said = isThere ? tr("The schedule is the best already: %1, %2 a step.")
                           : tr("Best schedule: %1, %2 a step. Apply takes it.");
    Q_EMIT found(said.arg(titleOf(*first), secondsText(first->stepSeconds))); // how it is known stands here
}

std::vector<StepId> ScheduleBoard::stepsOf(const std::vector<const TriedSchedule *> &tried)
{
    const History &history = m_workspace->history();
    const StepId home = history.current();
    const std::int32_t branch = history.branch();
    std::vector<StepId> steps;
    bool beside = false;
    for (const TriedSchedule *each : tried) {
        const GestureContextSnapshot context = m_workspace->gestureContext();
        if (!context
            || proposeSchedule(*context, each->rule, {}, each->stageRows, each->memoryRows).edit.empty()) {
            steps.push_back(kCurrentPlan); // it is what the design has
            continue;
        }
        if (!std::exchange(beside, true))
            m_workspace->addBranch(tr("schedules"));
        if (!applyTried(*each))
            continue;
        steps.push_back(history.current());
        m_workspace->nameStep(tr("schedule %1").arg(titleOf(*each)), history.current());
        m_workspace->goTo(home);
    }
    // Back to where the person was, on the same branch.
    const auto own = std::find_if(history.branches().begin(), history.branches().end(),
        [branch](const Branch &each) { return each.id == branch; });
    if (beside && own != history.branches().end() && own->head == home)
        m_workspace->switchBranch(branch);
    return steps;
}

void ScheduleBoard::compareChosen()
{
    auto all = chosen();
    if (all.empty() || all.size() > 2)
        return;
    std::vector<StepId> steps = stepsOf(all);
    if (all.size() == 1)
        steps.insert(steps.begin(), kCurrentPlan);
    if (steps.size() == 2)
        Q_EMIT compareAsked(steps);
}

} // namespace planloom

#include "moc_schedule_board.cpp"
