#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>

#include "engine/gesture/gesture.h"
#include "engine/table/table_document.h"
#include "widgets/design/plan_update.h"
#include "widgets/table/constraint_table_model.h"

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace planloom {

/// What selectors of one model select, remembered. Belongs to one thread at a time.
class SelectionCache
{
public:
    explicit SelectionCache(std::shared_ptr<const SelectorIndex> index)
        : m_index(std::move(index))
    {
    }

    using Operators = std::shared_ptr<const std::vector<OperatorId>>;
    Operators select(const Selector &selector);
    const SelectorIndex &index() const { return *m_index; }

private:
    static constexpr std::size_t kMostOperators =
        16'000'000; ///< Together; beyond it nothing more is remembered.

    std::shared_ptr<const SelectorIndex> m_index;
    std::unordered_map<std::string, Operators> m_known;
    std::size_t m_operators = 0;
};

/// A row to look at, with its identity in the grid.
struct LinkedRow {
    std::uint64_t key = 0;
    TableLineSnapshot line{};
};

/// The operators that rows act on: the forward ones that their selectors name, or where there are none the
/// optimizer's; ascending, each once. Rows about the whole plan act on none in particular.
std::vector<OperatorId> operatorsOfRows(
    SelectionCache &cache, const std::vector<LinkedRow> &rows, const std::stop_token &stop);

/// Keys of the rows whose selectors name one of `operators`, or the forward operator that one of them belongs
/// to.
std::vector<std::uint64_t> rowsActingOn(SelectionCache &cache, const std::vector<LinkedRow> &rows,
    const std::vector<OperatorId> &operators, const std::stop_token &stop);

/// On how many devices the operators of each row run, by line. O(operators x rows of each).
std::vector<std::pair<std::int32_t, RowReach>> reachOfRows(
    const PlanUpdate &update, const std::stop_token &stop);

/// Finds what rows and operators have to do with each other, off the GUI thread; the newest question of each
/// kind wins.
class TableLinks : public QObject
{
    Q_OBJECT
public:
    explicit TableLinks(QObject *parent = nullptr);
    ~TableLinks() override;

    void setModel(const ModelSnapshot &model);

    /// `operatorsFound` follows.
    void findOperators(std::vector<LinkedRow> rows);
    /// As `findOperators`, for a row under the pointer: `previewFound` follows.
    void findPreview(std::vector<LinkedRow> rows);
    /// `actingFound` follows.
    void findActing(std::vector<LinkedRow> rows, std::vector<OperatorId> operators);
    /// `hoverFound` follows.
    void findHover(std::vector<LinkedRow> rows, OperatorId op);
    /// `reachFound` follows.
    void findReach(const PlanUpdateSnapshot &update);
    /// `conflictsFound` follows: for each line of rows that can't hold together, a sentence that names them.
    void findConflicts(const PlanUpdateSnapshot &update);
    /// No `operatorsFound` follows any more.
    void forgetOperators()
    {
        m_operators.stop.request_stop();
        ++m_operators.number;
    }

Q_SIGNALS:
    void operatorsFound(std::vector<planloom::OperatorId> operators);
    void previewFound(std::vector<planloom::OperatorId> operators);
    void actingFound(std::vector<std::uint64_t> keys);
    void hoverFound(std::vector<std::uint64_t> keys);
    void conflictsFound(quint64 revision, std::map<std::int32_t, QString> sentences);
    void reachFound(quint64 revision, std::vector<std::pair<std::int32_t, planloom::RowReach>> reach);

private:
    /// One kind of question.
    struct Question {
        std::stop_source stop{};
        std::uint64_t number = 0;
    };
    using Answer = std::function<void()>;
    /// Runs `work` on the worker; what it returns is called on this thread unless a newer question was asked.
    void ask(Question &question, std::function<Answer(SelectionCache *, const std::stop_token &)> work);

    QThreadPool m_pool; ///< One thread: it alone uses the cache.
    std::shared_ptr<SelectionCache> m_cache;
    Question m_operators;
    Question m_preview;
    Question m_acting;
    Question m_hover;
    Question m_reach;
    Question m_conflicts;
};

} // namespace planloom
