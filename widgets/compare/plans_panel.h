#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include "widgets/compare/compare_choice.h"

class QAction;
class QLabel;
class QTableView;

namespace planloom {

class ParetoView;
class PlanBook;
class PlansModel;
class Workspace;

/// The Plans dock: every named plan, end of a branch, the beginning and the current design, with their
/// figures; which of them are compared; and all plans of the session by step time and peak memory.
///
/// Actions (added to the widget): plans.name, plans.rename, plans.removeName, plans.goTo, plans.setA
/// (Ctrl+Shift+1), plans.setB (Ctrl+Shift+2), plans.compare, plans.compareWithPrevious (Ctrl+Shift+D),
/// plans.swap. The shortcuts hold in the whole window.
class PlansPanel : public QWidget
{
    Q_OBJECT
public:
    /// @param workspace  must outlive the panel
    /// @param choice  shared with the comparison; must outlive the panel
    PlansPanel(Workspace *workspace, CompareChoice *choice, QWidget *parent = nullptr);
    ~PlansPanel() override;

    PlansModel *model() const { return m_model; }
    PlanBook *book() const { return m_book; }
    QTableView *list() const { return m_list; }
    ParetoView *scatter() const { return m_scatter; }
    QString remark() const; ///< What was refused last.

public Q_SLOTS:
    /// A is the step before the current one, B the current design.
    void compareWithPrevious();
    void namePlan();

Q_SIGNALS:
    /// The comparison shall be shown.
    void compareRequested();

protected:
    void changeEvent(QEvent *event) override;
    void showEvent(QShowEvent *event) override;

private:
    void makeActions();
    QAction *addNewAction(const char *name, const QString &text, const QString &tip);
    void updateActions();
    void refresh();
    void refreshScatter();
    void fitList();
    StepId selectedStep() const;
    void say(const QString &sentence);

    Workspace *m_workspace;
    CompareChoice *m_choice;
    PlanBook *m_book;
    PlansModel *m_model;
    QTableView *m_list;
    ParetoView *m_scatter;
    QLabel *m_remark;
    QTimer m_refreshTimer; ///< Joins changes that come together.
    QAction *m_name = nullptr;
    QAction *m_rename = nullptr;
    QAction *m_removeName = nullptr;
    QAction *m_goTo = nullptr;
    QAction *m_setA = nullptr;
    QAction *m_setB = nullptr;
    QAction *m_compare = nullptr;
    QAction *m_previous = nullptr;
    QAction *m_swap = nullptr;
};

} // namespace planloom
