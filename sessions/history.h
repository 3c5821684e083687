#pragma once

#include "engine/base/result.h"
#include "engine/table/table_document.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Everything a person decides in a session, and so everything undo covers: the rows, and named values.
/// Views, plans and runs follow from it or stand beside it.
struct DesignState {
    TableDocument table{};
    /// By name: "cluster", "devices" (a number), "nudge/<group path>" ("x y"), "bookmark/<1..9>", "note/<id>"
    /// (JSON) ...
    std::map<std::string, std::string> values{};
    friend bool operator==(const DesignState &, const DesignState &) = default;
};

/// A named value before and after; absent means there was, or will be, none.
struct ValueChange {
    std::string name{};
    std::optional<std::string> before{};
    std::optional<std::string> after{};
    friend bool operator==(const ValueChange &, const ValueChange &) = default;
};

/// One step between two states, both ways.
struct DesignChange {
    TableEdit table{};
    std::vector<ValueChange> values{};
    bool empty() const { return table.empty() && values.empty(); }
    friend bool operator==(const DesignChange &, const DesignChange &) = default;
};

/// What takes `before` to `after`.
DesignChange difference(const DesignState &before, const DesignState &after);
DesignChange inverse(const DesignChange &change);
/// @return InvalidInput if `state` is not what `change` starts from (nothing is changed)
Result<void> apply(DesignState &state, const DesignChange &change);

/// Number of a step in its session, from 1; `kRootStep` is the state the session began with.
using StepId = std::int64_t;

/// The step nothing leads to. A step like any other wherever one is gone to, planned, run or given figures;
/// it has no edit, no parent and no name of its own ("the beginning").
constexpr StepId kRootStep = 0;

/// Figures of a step's plan, once known.
struct StepFigures {
    double stepSeconds = 0;
    std::int64_t peakBytes = 0; ///< Largest over the devices.
    bool verified = false;
    friend bool operator==(const StepFigures &, const StepFigures &) = default;
};

/// One edit of the history.
struct HistoryStep {
    StepId id = 0;
    StepId parent = 0;
    std::string words{}; ///< "split k+ by 4 on fc1": for Undo and the History dock.
    std::int64_t created = 0; ///< Milliseconds since 1970, UTC.
    DesignChange change{}; ///< From the parent's state.
    std::optional<StepFigures> figures{};
    friend bool operator==(const HistoryStep &, const HistoryStep &) = default;
};

/// A line of work: where it ends, and so where Redo leads to.
struct Branch {
    std::int32_t id = 0; ///< From 0.
    std::string name{}; ///< "main", "branch 2", or what a person calls it.
    StepId head = 0;
    friend bool operator==(const Branch &, const Branch &) = default;
};

/// All states a session has been in: a tree of steps, never cut. Undo and redo move along the current branch;
/// an edit behind its head begins a new branch, so nothing is lost. In memory; `SessionStore` keeps it.
class History
{
public:
    History();
    explicit History(DesignState root);

    const DesignState &state() const { return m_state; } ///< At the current step.
    StepId current() const { return m_current; }
    std::int32_t branch() const { return m_branch; } ///< Id of the current one.
    const std::vector<Branch> &branches() const { return m_branches; }
    /// Steps by id: `steps()[i].id == i + 1`.
    const std::vector<HistoryStep> &steps() const { return m_steps; }
    const HistoryStep *find(StepId id) const; ///< Null for the root and unknown ones.
    bool holds(StepId id) const; ///< The root, or one of `steps()`.
    /// Figures of a step's plan, the root's too. @return null if there is no such step, or they are not known
    const StepFigures *figuresOf(StepId id) const;
    const DesignState &root() const { return m_root; }
    /// Named plans: checkpoints and snapshots. Name -> step.
    const std::map<std::string, StepId> &names() const { return m_names; }

    /// Adds a step behind the current one and goes there. Behind the head of the current branch it begins a
    /// new branch.
    /// @return the step; InvalidInput if the change does not start from the current state
    Result<StepId> record(std::string words, DesignChange change, std::int64_t created);
    /// Joins `change` into the current step, which must be its branch's head without children or names:
    /// repeated presses of a key. @return false if it can't be joined (then `record` it)
    Result<bool> amend(std::string words, const DesignChange &change);

    bool canUndo() const;
    bool canRedo() const;
    std::string undoWords() const; ///< Of the step that undo takes back; empty if none.
    std::string redoWords() const;
    void undo();
    void redo();
    /// Goes to any step, over whatever steps lie between; on a branch that holds it, the current one if
    /// possible.
    /// @return NotFound
    Result<void> goTo(StepId id);
    /// Steps from the root to `id`, without the root.
    std::vector<StepId> pathTo(StepId id) const;
    /// The state at `id`, without going there. O(steps between). @return NotFound
    Result<DesignState> stateAt(StepId id) const;

    /// Begins a branch at the current step and makes it current. @return its id
    std::int32_t addBranch(std::string name);
    Result<void> switchBranch(std::int32_t id); ///< To its head. @return NotFound
    Result<void> renameBranch(std::int32_t id, std::string name);
    /// Names the step. Names are unique: an older bearer loses it. The root takes no name: nothing happens.
    void setName(const std::string &name, StepId id);
    void removeName(const std::string &name);
    void setFigures(StepId id, const StepFigures &figures); ///< Of any step, the root too.

    /// Puts a stored history back together. @return InvalidInput naming the first thing that does not fit (a
    /// step whose parent is missing or whose change does not apply, a branch without its head)
    static Result<History> restore(DesignState root, std::vector<HistoryStep> steps,
        std::vector<Branch> branches, std::map<std::string, StepId> names, StepId current,
        std::int32_t branch);

private:
    DesignState m_root{};
    std::optional<StepFigures> m_rootFigures{};
    DesignState m_state{};
    std::vector<HistoryStep> m_steps{};
    std::vector<Branch> m_branches{};
    std::map<std::string, StepId> m_names{};
    StepId m_current = 0;
    std::int32_t m_branch = 0;
};

} // namespace planloom
