#pragma once

#include <QtCore/QAbstractTableModel>

#include "widgets/compare/compare_choice.h"

#include <string>
#include <vector>

namespace planloom {

class PlanBook;
class Workspace;

/// A plan that the session lists.
struct ListedPlan {
    enum class Kind { Current, Beginning, Named, BranchHead };
    Kind kind = Kind::Current;
    StepId step = kCurrentPlan; ///< kCurrentPlan for the design as it is.
    std::string name{}; ///< Of the plan, or of the branch that ends there.
    std::int32_t branch = -1; ///< Of a branch head.
    friend bool operator==(const ListedPlan &, const ListedPlan &) = default;
};

/// The design as it is, the beginning, and every named step and head of a branch, by step.
std::vector<ListedPlan> listPlans(const History &history);

/// What a plan is called: "Current", "Beginning", a name, "end of main", "step 7".
QString titleOf(const History &history, StepId step);

/// The plans of a session with their figures, and which of them are compared.
class PlansModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Chosen, Name, Picture, Rows, StepTime, Peak, Bubble, Run, ColumnCount };
    enum Role { StepRole = Qt::UserRole + 1 };

    /// None is owned.
    PlansModel(Workspace *workspace, PlanBook *book, CompareChoice *choice, QObject *parent = nullptr);

    const std::vector<ListedPlan> &plans() const { return m_plans; }
    int rowOf(StepId step) const; ///< -1 if it is not listed.

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex &index, const QVariant &value, int role) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

Q_SIGNALS:
    /// Something that was tried can't be, in a sentence.
    void refused(const QString &sentence);

private:
    void relist();
    QVariant textOf(const ListedPlan &plan, int column) const;
    QString runOf(const ListedPlan &plan) const;
    bool rename(const ListedPlan &plan, const QString &name);

    Workspace *m_workspace;
    PlanBook *m_book;
    CompareChoice *m_choice;
    std::vector<ListedPlan> m_plans;
};

} // namespace planloom
