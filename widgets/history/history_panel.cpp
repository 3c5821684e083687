#include "widgets/history/history_panel.h"

#include <QtCore/QEvent>
#include <QtGui/QAction>
#include <QtGui/QShortcut>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/qt_text.h"
#include "widgets/design/workspace.h"
#include "widgets/history/history_delegate.h"
#include "widgets/history/history_model.h"
#include "widgets/history/name_bar.h"

#include <algorithm>

namespace planloom {

HistoryPanel::HistoryPanel(Workspace *workspace, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_model(new HistoryModel(this))
    , m_filter(new HistoryFilter(this))
    , m_delegate(new HistoryDelegate(m_model, m_filter, this))
    , m_list(new QTableView(this))
    , m_branches(new QComboBox(this))
    , m_search(new QLineEdit(this))
    , m_nameBar(new NameBar(this))
{
    setObjectName(QStringLiteral("historyPanel"));
    makeActions();
    m_filter->setSourceModel(m_model);
    m_list->setModel(m_filter);
    m_list->setItemDelegate(m_delegate);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setShowGrid(false);
    m_list->setWordWrap(false);
    m_list->setTabKeyNavigation(false);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setAccessibleName(tr("History"));
    m_list->setAccessibleDescription(tr("Steps of the session. Enter goes to the selected step."));
    m_list->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_list->addActions({m_goTo, m_newBranch, m_renameBranch, m_nameCheckpoint, m_removeName});
    m_list->verticalHeader()->hide();
    m_list->horizontalHeader()->setHighlightSections(false);
    m_list->horizontalHeader()->setStretchLastSection(false);
    m_list->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    m_list->horizontalHeader()->setSectionResizeMode(HistoryModel::Words, QHeaderView::Stretch);

    m_branches->setAccessibleName(tr("Branch"));
    m_branches->setToolTip(tr("The branch you are on; choosing another goes to its end"));
    m_branches->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_search->setPlaceholderText(tr("Filter steps"));
    m_search->setClearButtonEnabled(true);
    m_search->setAccessibleName(tr("Filter steps"));
    m_search->setObjectName(QStringLiteral("history.filterLine"));
    auto *label = new QLabel(tr("Branch"), this);
    label->setBuddy(m_branches);
    auto *tools = new QHBoxLayout;
    tools->setContentsMargins(6, 3, 6, 3);
    tools->addWidget(label);
    tools->addWidget(m_branches);
    for (QAction *action : {m_newBranch, m_renameBranch, m_nameCheckpoint}) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setAccessibleName(action->text());
        tools->addWidget(button);
    }
    tools->addStretch(1);
    tools->addWidget(m_search, 2);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(tools);
    layout->addWidget(m_nameBar);
    layout->addWidget(m_list, 1);

    connect(m_search, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_filter->setText(text.trimmed());
        if (text.isEmpty())
            showCurrent();
    });
    connect(m_list, &QTableView::clicked, this, &HistoryPanel::goTo);
    connect(m_branches, &QComboBox::activated, this,
        [this](int index) { m_workspace->switchBranch(m_branches->itemData(index).toInt()); });
    connect(m_nameBar, &NameBar::closed, m_list, [this] { m_list->setFocus(); });
    connect(m_workspace, &Workspace::historyChanged, this, [this] { refresh(false); });
    connect(m_workspace, &Workspace::sessionChanged, this, [this] {
        m_root.reset();
        m_rootAsked = false;
        m_shown = -1;
        refresh(true);
    });
    connect(m_workspace, &Workspace::planChanged, this, &HistoryPanel::learnRootFigures);
    connect(m_workspace, &Workspace::planOfStepReady, this,
        [this](StepId step, const PlanUpdateSnapshot &update) {
            if (step == kRootStep)
                takeRootFigures(*update);
        });
    refresh(true);
}

QAction *HistoryPanel::addNewAction(const char *name, const QString &text, const QString &tip)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setToolTip(tip);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addAction(action);
    return action;
}

void HistoryPanel::makeActions()
{
    m_goTo = addNewAction(
        "history.goTo", tr("Go to This Step"), tr("Makes the design what it was after this step (Enter)"));
    // A shortcut of the list alone: Enter in the lines of this panel means something else.
    for (const Qt::Key key : {Qt::Key_Return, Qt::Key_Enter}) {
        auto *enter = new QShortcut(key, m_list, nullptr, nullptr, Qt::WidgetShortcut);
        connect(enter, &QShortcut::activated, m_goTo, &QAction::trigger);
    }
    connect(m_goTo, &QAction::triggered, this, [this] { goTo(m_list->currentIndex()); });
    m_newBranch =
        addNewAction("history.newBranch", tr("New Branch"), tr("Begins a branch at the step you are at"));
    connect(m_newBranch, &QAction::triggered, this, &HistoryPanel::addBranch);
    m_renameBranch = addNewAction(
        "history.renameBranch", tr("Rename Branch"), tr("Renames the branch of the selected step (F2)"));
    m_renameBranch->setShortcut(Qt::Key_F2);
    connect(m_renameBranch, &QAction::triggered, this, &HistoryPanel::renameBranch);
    m_switchBranch =
        addNewAction("history.switchBranch", tr("Switch Branch…"), tr("Chooses the branch to go to"));
    connect(m_switchBranch, &QAction::triggered, this, [this] {
        m_branches->setFocus(Qt::ShortcutFocusReason);
        m_branches->showPopup();
    });
    m_nameCheckpoint = addNewAction("history.nameCheckpoint", tr("Name Checkpoint…"),
        tr("Names the step you are at, so that it is listed under Plans"));
    connect(m_nameCheckpoint, &QAction::triggered, this, &HistoryPanel::nameCheckpoint);
    m_removeName = addNewAction(
        "history.removeName", tr("Remove Name"), tr("Takes the selected step's names away; the step stays"));
    connect(m_removeName, &QAction::triggered, this, [this] {
        const StepId step = selectedStep();
        const auto names = m_workspace->history().names();
        for (const auto &[name, id] : names) {
            if (id == step)
                m_workspace->removeName(toQString(name));
        }
    });
    m_find =
        addNewAction("history.filter", tr("Filter History"), tr("Shows only steps whose words hold a text"));
    connect(m_find, &QAction::triggered, this, [this] {
        m_search->setFocus(Qt::ShortcutFocusReason);
        m_search->selectAll();
    });
}

void HistoryPanel::refresh(bool everything)
{
    const History &history = m_workspace->history();
    const StepFigures *kept = history.figuresOf(kRootStep);
    const std::optional<StepFigures> root = kept ? std::optional(*kept) : m_root;
    if (everything)
        m_model->reset(history, root);
    else
        m_model->update(history, root);
    const QSignalBlocker blocker(m_branches);
    const auto count = static_cast<int>(history.branches().size());
    if (m_branches->count() > count)
        m_branches->clear();
    for (int i = 0; i < count; ++i) {
        const Branch &branch = history.branches()[static_cast<std::size_t>(i)];
        if (i < m_branches->count())
            m_branches->setItemText(i, toQString(branch.name));
        else
            m_branches->addItem(toQString(branch.name), branch.id);
    }
    m_branches->setCurrentIndex(history.branch());
    m_nameCheckpoint->setEnabled(history.current() != kRootStep); // the beginning is called that
    fitColumns();
    if (m_shown != history.current())
        showCurrent();
}

void HistoryPanel::learnRootFigures()
{
    // The history knows them once the beginning was planned. Else it is asked for once, when there is nothing
    // else to do.
    const PlanUpdateSnapshot &update = m_workspace->latest();
    const History &history = m_workspace->history();
    if (history.current() == kRootStep || history.figuresOf(kRootStep))
        return;
    if (m_rootAsked || m_root || !isVisible() || !update || !update->final)
        return;
    m_rootAsked = true;
    if (const PlanUpdateSnapshot known = m_workspace->planOfStep(kRootStep))
        takeRootFigures(*known);
}

void HistoryPanel::takeRootFigures(const PlanUpdate &update)
{
    if (!update.scene)
        return;
    const StepFigures figures{
        update.summary.stepSeconds, update.summary.largestPeak.count, update.verdict && update.verdict->ok()};
    if (m_root == figures)
        return;
    m_root = figures;
    refresh(false);
}

void HistoryPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    learnRootFigures();
}

void HistoryPanel::fitColumns()
{
    const QFontMetrics metrics = m_list->fontMetrics();
    m_list->verticalHeader()->setDefaultSectionSize(metrics.height() * 3 / 2);
    m_list->verticalHeader()->setMinimumSectionSize(metrics.height());
    m_list->setColumnWidth(HistoryModel::Tree, m_delegate->treeWidth(*m_list));
    const int pad = metrics.averageCharWidth() * 2;
    m_list->setColumnWidth(
        HistoryModel::StepTime, metrics.horizontalAdvance(QStringLiteral("Step time")) + 2 * pad);
    m_list->setColumnWidth(
        HistoryModel::TimeChange, metrics.horizontalAdvance(QStringLiteral("▼ −100.0%")) + pad);
    m_list->setColumnWidth(HistoryModel::Peak, metrics.horizontalAdvance(QStringLiteral("88.88 MiB")) + pad);
    m_list->setColumnWidth(
        HistoryModel::PeakChange, metrics.horizontalAdvance(QStringLiteral("▼ −88.88 MiB")) + pad);
    m_list->setColumnWidth(
        HistoryModel::When, metrics.horizontalAdvance(QStringLiteral("28 Nov 88:88")) + pad);
}

void HistoryPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        fitColumns();
}

void HistoryPanel::showCurrent()
{
    m_shown = m_workspace->history().current();
    const QModelIndex current =
        m_filter->mapFromSource(m_model->index(m_model->currentRow(), HistoryModel::Words));
    if (!current.isValid())
        return;
    m_list->setCurrentIndex(current);
    m_list->scrollTo(current);
}

void HistoryPanel::focusCurrent()
{
    showCurrent();
    m_list->setFocus(Qt::ShortcutFocusReason);
}

void HistoryPanel::goTo(const QModelIndex &index)
{
    if (!index.isValid())
        return;
    const StepId step = m_model->stepAt(m_filter->mapToSource(index).row());
    if (step != m_workspace->history().current())
        m_workspace->goTo(step);
}

StepId HistoryPanel::selectedStep() const
{
    const QModelIndex index = m_list->currentIndex();
    return index.isValid() ? m_model->stepAt(m_filter->mapToSource(index).row())
                           : m_workspace->history().current();
}

std::int32_t HistoryPanel::selectedBranch() const
{
    const History &history = m_workspace->history();
    const StepId step = selectedStep();
    // A branch that has no step of its own yet is meant where it stands.
    if (step == history.current())
        return history.branch();
    return m_model->branchAt(static_cast<int>(step));
}

void HistoryPanel::addBranch()
{
    m_workspace->addBranch({});
    renameBranch();
}

void HistoryPanel::renameBranch()
{
    const std::int32_t branch = selectedBranch();
    const QString name = toQString(m_workspace->history().branches()[static_cast<std::size_t>(branch)].name);
    const auto check = [this, branch](const QString &wish) {
        const auto &branches = m_workspace->history().branches();
        const bool taken = std::any_of(branches.begin(), branches.end(),
            [&](const Branch &each) { return each.id != branch && toQString(each.name) == wish; });
        return taken ? tr("⚠ another branch has this name") : QString();
    };
    m_nameBar->ask(tr("Name of the branch:"), name, check, [this, branch, name](const QString &wish) {
        if (wish != name)
            m_workspace->renameBranch(branch, wish);
    });
}

void HistoryPanel::nameCheckpoint()
{
    const History &history = m_workspace->history();
    const StepId step = history.current();
    QString name;
    for (const auto &[each, id] : history.names()) {
        if (id == step)
            name = toQString(each);
    }
    m_nameBar->ask(
        tr("Name of the step you are at:"), name,
        [this, step](const QString &wish) {
            const auto &names = m_workspace->history().names();
            const auto found = names.find(wish.toStdString());
            return found != names.end() && found->second != step ? tr("⚠ another step has this name")
                                                                 : QString();
        },
        [this, step](const QString &wish) { m_workspace->nameStep(wish, step); });
}

} // namespace planloom

#include "moc_history_panel.cpp"
