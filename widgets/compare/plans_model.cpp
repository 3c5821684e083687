#include "widgets/compare/plans_model.h"

#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/compare/plan_book.h"
#include "widgets/design/workspace.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace planloom {

namespace {

QString percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%", share * 100);
    return QString::fromLatin1(text);
}

} // namespace

std::vector<ListedPlan> listPlans(const History &history)
{
    std::vector<ListedPlan> plans;
    plans.push_back({ListedPlan::Kind::Current, kCurrentPlan, {}, -1});
    plans.push_back({ListedPlan::Kind::Beginning, 0, {}, -1});
    for (const auto &[name, step] : history.names())
        plans.push_back({ListedPlan::Kind::Named, step, name, -1});
    for (const Branch &branch : history.branches()) {
        // The head of the branch one works on is the current design, mostly; it is listed once there is
        // another.
        if (branch.head != 0 && (history.branches().size() > 1 || branch.head != history.current()))
            plans.push_back({ListedPlan::Kind::BranchHead, branch.head, branch.name, branch.id});
    }
    std::stable_sort(plans.begin() + 2, plans.end(), [](const ListedPlan &a, const ListedPlan &b) {
        return std::tie(a.step, a.kind, a.branch) < std::tie(b.step, b.kind, b.branch);
    });
    return plans;
}

QString titleOf(const History &history, StepId step)
{
    if (step == kCurrentPlan)
        return PlansModel::tr("Current");
    if (step == 0)
        return PlansModel::tr("Beginning");
    for (const auto &[name, id] : history.names()) {
        if (id == step)
            return toQString(name);
    }
    for (const Branch &branch : history.branches()) {
        if (branch.head == step)
            return PlansModel::tr("end of %1").arg(toQString(branch.name));
    }
    return PlansModel::tr("step %1").arg(step);
}

PlansModel::PlansModel(Workspace *workspace, PlanBook *book, CompareChoice *choice, QObject *parent)
    : QAbstractTableModel(parent)
    , m_workspace(workspace)
    , m_book(book)
    , m_choice(choice)
{
    m_plans = listPlans(workspace->history());
    connect(workspace, &Workspace::historyChanged, this, &PlansModel::relist);
    connect(workspace, &Workspace::sessionChanged, this, &PlansModel::relist);
    connect(workspace, &Workspace::runsChanged, this,
        [this] { Q_EMIT dataChanged(index(0, Run), index(rowCount() - 1, Run)); });
    connect(book, &PlanBook::factsChanged, this, [this](StepId step) {
        for (int row = 0; row < rowCount(); ++row) {
            if (m_plans[static_cast<std::size_t>(row)].step == step)
                Q_EMIT dataChanged(index(row, Picture), index(row, Bubble));
        }
    });
    connect(choice, &CompareChoice::changed, this,
        [this] { Q_EMIT dataChanged(index(0, Chosen), index(rowCount() - 1, Chosen)); });
}

void PlansModel::relist()
{
    std::vector<ListedPlan> plans = listPlans(m_workspace->history());
    if (plans != m_plans) {
        // Rows in front and behind that stay keep their selection and editors.
        std::size_t front = 0;
        while (front < plans.size() && front < m_plans.size() && plans[front] == m_plans[front])
            ++front;
        std::size_t behind = 0;
        while (behind < plans.size() - front && behind < m_plans.size() - front
            && plans[plans.size() - 1 - behind] == m_plans[m_plans.size() - 1 - behind])
            ++behind;
        const int begin = static_cast<int>(front);
        const int oldEnd = static_cast<int>(m_plans.size() - behind);
        if (oldEnd > begin) {
            beginRemoveRows({}, begin, oldEnd - 1);
            m_plans.erase(m_plans.begin() + begin, m_plans.begin() + oldEnd);
            endRemoveRows();
        }
        const int newEnd = static_cast<int>(plans.size() - behind);
        if (newEnd > begin) {
            beginInsertRows({}, begin, newEnd - 1);
            m_plans = std::move(plans);
            endInsertRows();
        }
    }
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int PlansModel::rowOf(StepId step) const
{
    const auto found = std::find_if(
        m_plans.begin(), m_plans.end(), [step](const ListedPlan &plan) { return plan.step == step; });
    return found == m_plans.end() ? -1 : static_cast<int>(found - m_plans.begin());
}

int PlansModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_plans.size());
}

int PlansModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString PlansModel::runOf(const ListedPlan &plan) const
{
    const StepId step = plan.step == kCurrentPlan ? m_workspace->history().current() : plan.step;
    QString text;
    for (const SessionRun &run : m_workspace->runs()) {
        if (run.step == step)
            text = toQString(run.state); // the newest counts
    }
    return text.isEmpty() ? tr("not run") : text;
}

QVariant PlansModel::textOf(const ListedPlan &plan, int column) const
{
    const PlanFacts *facts = m_book->find(plan.step);
    // The history knows the figures of most plans at once.
    std::optional<StepFigures> figures;
    if (facts && facts->why.isEmpty())
        figures = facts->figures;
    else if (const StepFigures *kept = facts ? nullptr : m_workspace->history().figuresOf(plan.step))
        figures = *kept;
    const QString unknown = facts ? tr("no plan") : QStringLiteral("…");
    switch (column) {
    case Chosen: {
        const int place = m_choice->indexOf(plan.step);
        return place < 0 ? QString() : QString(QChar('A' + place));
    }
    case Name:
        switch (plan.kind) {
        case ListedPlan::Kind::Current: {
            const StepId current = m_workspace->history().current();
            for (const auto &[name, id] : m_workspace->history().names()) {
                if (id == current)
                    return tr("Current (%1)").arg(toQString(name));
            }
            return tr("Current");
        }
        case ListedPlan::Kind::Beginning:
            return tr("Beginning");
        case ListedPlan::Kind::Named:
            return toQString(plan.name);
        case ListedPlan::Kind::BranchHead:
            return tr("end of %1").arg(toQString(plan.name));
        }
        return {};
    case Rows:
        return facts ? toQString(formatCount(facts->rows)) : QStringLiteral("…");
    case StepTime:
        return figures ? toQString(formatSeconds(figures->stepSeconds)) : unknown;
    case Peak:
        return figures ? toQString(formatBytes({figures->peakBytes})) : unknown;
    case Bubble:
        return facts && facts->why.isEmpty() ? percent(facts->bubble) : unknown;
    case Run:
        return runOf(plan);
    default:
        return {};
    }
}

QVariant PlansModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const ListedPlan &plan = m_plans[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return textOf(plan, index.column());
    case Qt::EditRole:
        if (index.column() == Name)
            return toQString(plan.name);
        return textOf(plan, index.column());
    case Qt::CheckStateRole:
        if (index.column() == Chosen)
            return m_choice->indexOf(plan.step) >= 0 ? Qt::Checked : Qt::Unchecked;
        return {};
    case Qt::DecorationRole:
        if (index.column() == Picture) {
            const PlanFacts *facts = m_book->find(plan.step);
            if (facts && !facts->picture.isNull())
                return facts->picture;
        }
        return {};
    case Qt::AccessibleTextRole:
        if (index.column() == Chosen) {
            const int place = m_choice->indexOf(plan.step);
            return place < 0 ? tr("not compared") : tr("compared as %1").arg(QChar('A' + place));
        }
        if (index.column() == Picture)
            return tr("Picture of its timeline");
        return textOf(plan, index.column());
    case Qt::ToolTipRole: {
        const PlanFacts *facts = m_book->find(plan.step);
        if (facts && !facts->why.isEmpty())
            return facts->why;
        if (index.column() == Chosen)
            return tr("Compare this plan: the first is A, the second B, at most six");
        const HistoryStep *step = m_workspace->history().find(
            plan.step == kCurrentPlan ? m_workspace->history().current() : plan.step);
        const QString made = step ? toQString(step->words) : tr("Where the session began");
        return facts && !facts->name.isEmpty() ? facts->name + QLatin1Char('\n') + made : made;
    }
    case Qt::TextAlignmentRole:
        if (index.column() >= Rows && index.column() <= Bubble)
            return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
        return {};
    case StepRole:
        return QVariant::fromValue(static_cast<qlonglong>(plan.step));
    default:
        return {};
    }
}

Qt::ItemFlags PlansModel::flags(const QModelIndex &index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (!index.isValid())
        return flags;
    if (index.column() == Chosen)
        flags |= Qt::ItemIsUserCheckable;
    if (index.column() == Name) {
        const ListedPlan &plan = m_plans[static_cast<std::size_t>(index.row())];
        const bool nameless = plan.kind == ListedPlan::Kind::Beginning
            || (plan.kind == ListedPlan::Kind::Current && m_workspace->history().current() == 0);
        if (!nameless)
            flags |= Qt::ItemIsEditable;
    }
    return flags;
}

bool PlansModel::rename(const ListedPlan &plan, const QString &name)
{
    const History &history = m_workspace->history();
    if (name.isEmpty() || name == toQString(plan.name))
        return false;
    if (plan.kind == ListedPlan::Kind::BranchHead) {
        const bool taken = std::any_of(history.branches().begin(), history.branches().end(),
            [&](const Branch &branch) { return branch.id != plan.branch && toQString(branch.name) == name; });
        if (taken) {
            Q_EMIT refused(tr("Another branch is called \"%1\".").arg(name));
            return false;
        }
        QMetaObject::invokeMethod(
            this, [this, branch = plan.branch, name] { m_workspace->renameBranch(branch, name); },
            Qt::QueuedConnection);
        return true;
    }
    const StepId step = plan.step == kCurrentPlan ? history.current() : plan.step;
    if (step == kRootStep) {
        Q_EMIT refused(tr("The beginning keeps its name; any later step takes one."));
        return false;
    }
    const auto taken = history.names().find(name.toStdString());
    if (taken != history.names().end() && taken->second != step) {
        Q_EMIT refused(tr("Another plan is called \"%1\".").arg(name));
        return false;
    }
    // Not while the editor is open: renaming moves the row it stands in.
    QMetaObject::invokeMethod(
        this,
        [this, name, step, old = toQString(plan.name)] {
            m_workspace->nameStep(name, step);
            if (!old.isEmpty() && old != name)
                m_workspace->removeName(old);
        },
        Qt::QueuedConnection);
    return true;
}

bool PlansModel::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (!index.isValid())
        return false;
    const ListedPlan plan = m_plans[static_cast<std::size_t>(index.row())]; // the list changes below
    if (index.column() == Chosen && role == Qt::CheckStateRole) {
        const bool chosen = value.toInt() == Qt::Checked;
        if (!m_choice->setChosen(plan.step, chosen)) {
            Q_EMIT refused(tr("At most six plans are compared at once; take one away first."));
            return false;
        }
        return true;
    }
    if (index.column() == Name && role == Qt::EditRole)
        return rename(plan, value.toString().trimmed().left(80));
    return false;
}

QVariant PlansModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Chosen:
        return tr("Compare");
    case Name:
        return tr("Plan");
    case Picture:
        return tr("Timeline");
    case Rows:
        return tr("Rows");
    case StepTime:
        return tr("Step time");
    case Peak:
        return tr("Peak memory");
    case Bubble:
        return tr("Bubble");
    case Run:
        return tr("Run");
    default:
        return {};
    }
}

} // namespace planloom

#include "moc_plans_model.cpp"
