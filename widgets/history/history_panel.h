#pragma once

#include <QtWidgets/QWidget>

#include "sessions/history.h"

#include <optional>

class QAction;
class QComboBox;
class QLineEdit;
class QModelIndex;
class QTableView;

namespace planloom {

class HistoryDelegate;
class HistoryFilter;
class HistoryModel;
class NameBar;
class Workspace;
struct PlanUpdate;

/// The History dock: every step of the session in words, with what it changed in step time and memory, and
/// the tree of branches beside it. A click or Enter goes to a step; nothing is ever lost by that.
///
/// Actions (added to the widget): history.goTo, history.newBranch, history.renameBranch (F2),
/// history.switchBranch, history.nameCheckpoint, history.removeName, history.filter.
class HistoryPanel : public QWidget
{
    Q_OBJECT
public:
    /// @param workspace  must outlive the panel
    explicit HistoryPanel(Workspace *workspace, QWidget *parent = nullptr);

    HistoryModel *model() const { return m_model; }
    QTableView *list() const { return m_list; }
    NameBar *nameBar() const { return m_nameBar; }
    /// Puts the keyboard on the current step.
    void focusCurrent();

public Q_SLOTS:
    void nameCheckpoint();
    void addBranch();
    void renameBranch();

protected:
    void changeEvent(QEvent *event) override;
    void showEvent(QShowEvent *event) override;

private:
    void makeActions();
    void refresh(bool everything);
    void learnRootFigures();
    void takeRootFigures(const PlanUpdate &update);
    void fitColumns();
    void showCurrent();
    void goTo(const QModelIndex &index);
    StepId selectedStep() const; ///< The current one if none is selected.
    std::int32_t selectedBranch() const;
    QAction *addNewAction(const char *name, const QString &text, const QString &tip);

    Workspace *m_workspace;
    HistoryModel *m_model;
    HistoryFilter *m_filter;
    HistoryDelegate *m_delegate;
    QTableView *m_list;
    QComboBox *m_branches;
    QLineEdit *m_search;
    NameBar *m_nameBar;
    QAction *m_goTo = nullptr;
    QAction *m_newBranch = nullptr;
    QAction *m_renameBranch = nullptr;
    QAction *m_switchBranch = nullptr;
    QAction *m_nameCheckpoint = nullptr;
    QAction *m_removeName = nullptr;
    QAction *m_find = nullptr;
    std::optional<StepFigures> m_root; ///< Of the state the session began with.
    bool m_rootAsked = false;
    StepId m_shown = -1; ///< The step last moved into sight.
};

} // namespace planloom
