#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtWidgets/QWidget>

#include "engine/base/place.h"
#include "sessions/history.h"
#include "widgets/design/plan_update.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

class QScrollArea;
class QTableView;

namespace planloom {

/// A way out that is not an edit of rows; tried, as all that are offered.
struct OtherWay {
    enum class Kind : std::uint8_t {
        Search, ///< *Find Best Plan*.
        Back, ///< To a step of the history.
    };
    Kind kind = Kind::Search;
    std::string words{};
    std::string effect{};
    StepId step = 0; ///< For `Back`.
    friend bool operator==(const OtherWay &, const OtherWay &) = default;
};

/// What is wrong, one problem a row.
class ProblemsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Where, What, Advice, ColumnCount };
    struct Problem {
        Error error{};
        int line = -1; ///< Line of the table's text, 0-based; -1 if it is not about one.
        std::vector<OperatorId> operators{}; ///< Where rows in conflict meet.
        std::vector<RowWayOut> waysOut{}; ///< What would end it, the best first.
        bool isInTheWay = false; ///< It keeps the plan from being made, or from fitting its devices.
        friend bool operator==(const Problem &, const Problem &) = default;
    };

    explicit ProblemsModel(QObject *parent = nullptr);
    void setProblems(std::vector<Problem> problems);
    const std::vector<Problem> &problems() const { return m_problems; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Problem> m_problems;
};

/// Everything that keeps a plan from being made, or that is wrong with it, with ways out.
/// @param within  as `waysWithinLimits` finds them for the update; empty where they are not known
std::vector<ProblemsModel::Problem> problemsOf(
    const PlanUpdate &update, const std::vector<RowWayOut> &within = {});

/// The list of problems; a click leads to the place. Conflicts between rows come with ways out: a button
/// each, and beside it what the plan would be.
class ProblemsPanel : public QWidget
{
    Q_OBJECT
public:
    explicit ProblemsPanel(QWidget *parent = nullptr);

    void setUpdate(const PlanUpdateSnapshot &update);
    /// What was found to bring a plan within its limits and memory, and what else ends what is in its way;
    /// passed by unless that is the one shown.
    void setWays(const PlanUpdateSnapshot &update, const std::vector<RowWayOut> &within,
        const std::vector<OtherWay> &others = {});
    /// A problem apart from plans: a file that does not open.
    void addProblem(const Error &error);
    void clearProblems(); ///< Those apart from plans.
    int count() const;
    QTableView *list() const { return m_table; }
    ProblemsModel *model() const { return m_model; }
    /// Leads to a problem of the list, counted from 0.
    void show(int problem);
    using QWidget::show;

Q_SIGNALS:
    void lineActivated(int line);
    /// A problem that is not about a line; `where` as in `Error`.
    void placeActivated(const planloom::Place &place);
    /// Where rows in conflict meet; never empty.
    void operatorsActivated(const std::vector<planloom::OperatorId> &operators);
    /// The person wants this edit, which ends a conflict.
    void wayOutChosen(const QString &words, const planloom::TableEdit &edit);
    void otherWayChosen(const planloom::OtherWay &way);
    void countChanged(int count);
    void shown(); ///< It came in sight.

protected:
    void showEvent(QShowEvent *event) override;

private:
    void refresh();
    void showWaysOut();
    void showButtons();

    ProblemsModel *m_model;
    QTableView *m_table;
    QScrollArea *m_waysOut; ///< Buttons for the problem that is selected, each with its effect.
    std::vector<RowWayOut> m_offered{}; ///< Those shown.
    std::vector<OtherWay> m_othersOffered{}; ///< Those shown, before them.
    std::vector<Error> m_apart;
    PlanUpdateSnapshot m_update;
    std::vector<RowWayOut> m_within; ///< Of `m_update`.
    std::vector<OtherWay> m_others; ///< Of `m_update`.
};

} // namespace planloom
