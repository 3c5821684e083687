#include "widgets/compare/plans_panel.h"

#include <QtCore/QEvent>
#include <QtGui/QAction>
#include <QtGui/QPainter>
#include <QtGui/QShortcut>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/palette.h"
#include "widgets/compare/pareto_view.h"
#include "widgets/compare/plan_book.h"
#include "widgets/compare/plans_model.h"
#include "widgets/design/workspace.h"

#include <algorithm>

namespace planloom {

namespace {

/// Check boxes with an outline that can be seen in every theme.
class ChosenDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        QStyledItemDelegate::paint(painter, option, index);
        QStyleOptionViewItem styled = option;
        initStyleOption(&styled, index);
        if (!styled.features.testFlag(QStyleOptionViewItem::HasCheckIndicator) || !option.widget)
            return;
        const QRect box = option.widget->style()->subElementRect(
            QStyle::SE_ItemViewItemCheckIndicator, &styled, option.widget);
        const bool selected = option.state.testFlag(QStyle::State_Selected);
        painter->setPen(
            selected ? option.palette.color(QPalette::HighlightedText) : paletteFor(*option.widget).border);
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(box.adjusted(0, 0, -1, -1));
    }
};

} // namespace

PlansPanel::PlansPanel(Workspace *workspace, CompareChoice *choice, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_choice(choice)
    , m_book(new PlanBook(workspace, this))
    , m_model(new PlansModel(workspace, m_book, choice, this))
    , m_list(new QTableView(this))
    , m_scatter(new ParetoView(this))
    , m_remark(new QLabel(this))
{
    setObjectName(QStringLiteral("plansPanel"));
    makeActions();
    m_list->setModel(m_model);
    m_list->setItemDelegateForColumn(PlansModel::Chosen, new ChosenDelegate(m_list));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setShowGrid(false);
    m_list->setWordWrap(false);
    m_list->setAlternatingRowColors(true);
    m_list->setTabKeyNavigation(false);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers); // F2 is the action "Rename"
    m_list->setAccessibleName(tr("Plans"));
    m_list->setAccessibleDescription(
        tr("Space compares the selected plan, Enter goes to it, F2 renames it."));
    m_list->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_list->verticalHeader()->hide();
    m_list->horizontalHeader()->setHighlightSections(false);
    m_list->horizontalHeader()->setSectionResizeMode(PlansModel::Name, QHeaderView::Stretch);
    m_list->QWidget::addActions(
        {m_name, m_rename, m_removeName, m_goTo, m_setA, m_setB, m_compare, m_previous, m_swap});

    auto *tools = new QHBoxLayout;
    tools->setContentsMargins(6, 3, 6, 3);
    for (QAction *action : {m_name, m_compare, m_previous, m_swap}) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setAccessibleName(action->text());
        tools->addWidget(button);
    }
    tools->addStretch(1);
    m_remark->setAccessibleName(tr("Remark"));
    m_remark->hide();
    tools->addWidget(m_remark);
    auto *left = new QWidget(this);
    auto *leftLayout = new QVBoxLayout(left);
    leftLayout->setContentsMargins(0, 0, 0, 0);
    leftLayout->setSpacing(0);
    leftLayout->addLayout(tools);
    leftLayout->addWidget(m_list, 1);
    auto *splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(left);
    splitter->addWidget(m_scatter);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(splitter);

    m_refreshTimer.setSingleShot(true);
    m_refreshTimer.setInterval(0);
    connect(&m_refreshTimer, &QTimer::timeout, this, &PlansPanel::refresh);
    const auto later = [this] { m_refreshTimer.start(); };
    connect(m_workspace, &Workspace::historyChanged, this, later);
    connect(m_workspace, &Workspace::sessionChanged, this, [this] {
        m_choice->setPlans({0, kCurrentPlan});
        m_refreshTimer.start();
    });
    connect(m_workspace, &Workspace::modelChanged, this, later);
    connect(m_book, &PlanBook::factsChanged, this, later);
    connect(m_choice, &CompareChoice::changed, this, later);
    connect(m_model, &PlansModel::refused, this, &PlansPanel::say);
    connect(m_list, &QTableView::doubleClicked, this, [this](const QModelIndex &index) {
        if (index.column() != PlansModel::Chosen)
            m_goTo->trigger();
    });
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, &PlansPanel::updateActions);
    connect(m_scatter, &ParetoView::activated, m_workspace, &Workspace::goTo);
    m_list->setCurrentIndex(m_model->index(0, PlansModel::Name));
    fitList();
    updateActions();
}

PlansPanel::~PlansPanel()
{
    delete m_list; // an editor that is open gives its text to what is still there
}

QAction *PlansPanel::addNewAction(const char *name, const QString &text, const QString &tip)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setToolTip(tip);
    addAction(action);
    return action;
}

void PlansPanel::makeActions()
{
    m_name = addNewAction("plans.name", tr("Name This Plan…"),
        tr("Gives the current design a name, so that it stays in this list"));
    connect(m_name, &QAction::triggered, this, &PlansPanel::namePlan);
    m_rename = addNewAction("plans.rename", tr("Rename"), tr("Renames the selected plan or branch (F2)"));
    m_rename->setShortcut(Qt::Key_F2);
    m_rename->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(m_rename, &QAction::triggered, this, [this] {
        const QModelIndex index = m_model->index(m_list->currentIndex().row(), PlansModel::Name);
        m_list->setCurrentIndex(index);
        m_list->edit(index);
    });
    m_removeName = addNewAction("plans.removeName", tr("Remove Name"),
        tr("Takes the selected plan off the list; its step stays in the history"));
    connect(m_removeName, &QAction::triggered, this, [this] {
        const int row = m_list->currentIndex().row();
        if (row >= 0)
            m_workspace->removeName(
                QString::fromStdString(m_model->plans()[static_cast<std::size_t>(row)].name));
    });
    m_goTo = addNewAction(
        "plans.goTo", tr("Go to This Plan"), tr("Makes the design what it was in this plan (Enter)"));
    connect(m_goTo, &QAction::triggered, this, [this] {
        if (selectedStep() != kCurrentPlan)
            m_workspace->goTo(selectedStep());
    });
    for (const Qt::Key key : {Qt::Key_Return, Qt::Key_Enter}) {
        auto *enter = new QShortcut(key, m_list, nullptr, nullptr, Qt::WidgetShortcut);
        connect(enter, &QShortcut::activated, m_goTo, &QAction::trigger);
    }
    m_setA =
        addNewAction("plans.setA", tr("Set as A"), tr("Measures the other plans against the selected one"));
    m_setA->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_1);
    connect(m_setA, &QAction::triggered, this, [this] { m_choice->setA(selectedStep()); });
    m_setB = addNewAction("plans.setB", tr("Set as B"), tr("Compares the selected plan with A"));
    m_setB->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_2);
    connect(m_setB, &QAction::triggered, this, [this] { m_choice->setB(selectedStep()); });
    m_compare = addNewAction("plans.compare", tr("Compare"), tr("Shows the chosen plans beside each other"));
    connect(m_compare, &QAction::triggered, this, &PlansPanel::compareRequested);
    m_previous = addNewAction("plans.compareWithPrevious", tr("Compare with Previous"),
        tr("Compares the design with what it was before the last step"));
    m_previous->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_D);
    connect(m_previous, &QAction::triggered, this, &PlansPanel::compareWithPrevious);
    m_swap = addNewAction("plans.swap", tr("Swap A and B"), tr("Exchanges A and B"));
    connect(m_swap, &QAction::triggered, m_choice, &CompareChoice::swap);
}

void PlansPanel::compareWithPrevious()
{
    const History &history = m_workspace->history();
    const HistoryStep *step = history.find(history.current());
    if (!step)
        return;
    m_choice->setPlans({step->parent, kCurrentPlan});
    Q_EMIT compareRequested();
}

void PlansPanel::namePlan()
{
    const QModelIndex index = m_model->index(0, PlansModel::Name);
    m_list->setCurrentIndex(index);
    m_list->scrollTo(index);
    m_list->edit(index);
}

StepId PlansPanel::selectedStep() const
{
    const int row = m_list->currentIndex().row();
    return row < 0 ? kCurrentPlan : m_model->plans()[static_cast<std::size_t>(row)].step;
}

QString PlansPanel::remark() const
{
    return m_remark->text();
}

void PlansPanel::say(const QString &sentence)
{
    QPalette colours = palette();
    colours.setColor(QPalette::WindowText, paletteFor(*this).error);
    m_remark->setPalette(colours);
    m_remark->setText(QStringLiteral("⚠ ") + sentence);
    m_remark->show();
}

void PlansPanel::updateActions()
{
    const int row = m_list->currentIndex().row();
    const bool valid = row >= 0 && row < m_model->rowCount();
    const ListedPlan plan = valid ? m_model->plans()[static_cast<std::size_t>(row)] : ListedPlan{};
    const bool isNamed = plan.kind == ListedPlan::Kind::Named;
    const bool begun = m_workspace->history().current() != 0;
    m_name->setEnabled(begun);
    m_rename->setEnabled(isNamed || plan.kind == ListedPlan::Kind::BranchHead
        || (plan.kind == ListedPlan::Kind::Current && begun));
    m_removeName->setEnabled(isNamed);
    m_goTo->setEnabled(plan.step != kCurrentPlan);
    m_compare->setEnabled(m_choice->isPair());
    m_swap->setEnabled(m_choice->isPair());
    m_previous->setEnabled(begun);
}

void PlansPanel::refresh()
{
    // Steps of another session are gone.
    std::vector<StepId> chosen = m_choice->plans();
    chosen.erase(std::remove_if(chosen.begin(), chosen.end(),
                     [this](StepId step) { return step > 0 && !m_workspace->history().find(step); }),
        chosen.end());
    m_choice->setPlans(std::move(chosen));
    if (m_list->currentIndex().row() < 0)
        m_list->setCurrentIndex(m_model->index(0, PlansModel::Name));
    updateActions();
    if (!isVisible())
        return;
    std::vector<StepId> wanted;
    for (const ListedPlan &plan : m_model->plans())
        wanted.push_back(plan.step);
    m_book->want(std::move(wanted));
    refreshScatter();
}

void PlansPanel::refreshScatter()
{
    const History &history = m_workspace->history();
    std::vector<ScatterPoint> points;
    const auto letterOf = [this, &history](StepId step) {
        int place = m_choice->indexOf(step);
        if (place < 0 && step == history.current())
            place = m_choice->indexOf(kCurrentPlan);
        return place < 0 ? QString() : QString(QChar('A' + place));
    };
    std::int64_t cap = 0;
    const auto add = [&](StepId step, const StepFigures &figures) {
        points.push_back({step, figures.stepSeconds, figures.peakBytes, {}, {}, letterOf(step)});
    };
    if (const PlanFacts *facts = m_book->find(0); facts && facts->why.isEmpty()) {
        add(0, facts->figures);
        points.back().label = tr("Beginning");
    }
    for (const HistoryStep &step : history.steps()) {
        if (step.figures) {
            add(step.id, *step.figures);
            points.back().words = QString::fromStdString(step.words);
        } else if (const PlanFacts *facts = m_book->find(step.id); facts && facts->why.isEmpty()) {
            add(step.id, facts->figures);
            points.back().words = QString::fromStdString(step.words);
        }
    }
    std::map<StepId, QString> labels;
    for (const auto &[name, step] : history.names())
        labels[step] = QString::fromStdString(name);
    for (ScatterPoint &point : points) {
        if (const auto label = labels.find(point.step); label != labels.end())
            point.label = label->second;
    }
    if (const PlanUpdateSnapshot &good = m_workspace->lastGood())
        cap = static_cast<std::int64_t>(leastMemory(good->cluster));
    m_scatter->setPoints(std::move(points), history.current(), cap);
}

void PlansPanel::fitList()
{
    const QFontMetrics metrics = m_list->fontMetrics();
    const int row = metrics.height() * 2;
    m_list->verticalHeader()->setDefaultSectionSize(row);
    const QSize picture(metrics.averageCharWidth() * 20, row - 6);
    m_list->setIconSize(picture);
    const auto width = [&metrics](const char *text) {
        return metrics.horizontalAdvance(QString::fromUtf8(text)) + metrics.averageCharWidth() * 3;
    };
    m_list->setColumnWidth(PlansModel::Chosen, width("Compare"));
    m_list->setColumnWidth(PlansModel::Picture, picture.width() + 8);
    m_list->setColumnWidth(PlansModel::Rows, width("8,888"));
    m_list->setColumnWidth(PlansModel::StepTime, width("Step time"));
    m_list->setColumnWidth(PlansModel::Peak, width("Peak memory"));
    m_list->setColumnWidth(PlansModel::Bubble, width("88.88%"));
    m_list->setColumnWidth(PlansModel::Run, width("not run"));
    m_book->setLooks(paletteFor(*this).theme, picture, devicePixelRatioF());
}

void PlansPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::PaletteChange
        || event->type() == QEvent::StyleChange)
        fitList();
}

void PlansPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    fitList();
    m_refreshTimer.start();
}

} // namespace planloom

#include "moc_plans_panel.cpp"
