#pragma once

#include "engine/conflict/row_facts.h"
#include "engine/plan/complete.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace planloom {

/// What is asked of rows beside whether a plan can be made of them, where a search is to make it: whether its
/// space has one. It is asked of rows whose completion does not keep to what they say of degrees
/// (`brokenDegrees`), and of those that it refuses and a mesh that they leave to the search may help. Empty
/// where no search is asked for.
struct SpaceQuestion {
    /// @param isOver  asked now and then: time is over
    /// @return why there is none, at an operator if it is about one; Cancelled if time was over before that
    /// was known
    std::function<Result<void>(const ConstraintTable &rows, const std::function<bool()> &isOver)> holds{};
    /// What plans can have of a degree if no row is in the way, ascending; empty if that is not known.
    std::function<std::vector<std::int32_t>(Degree degree)> valuesOf{};
};

/// Whether rows of a table hold together, decided by carrying them out: `completePlan`, and the orders
/// (order_cycle.h); and, of rows about degrees that a search is to keep to, by its space (`SpaceQuestion`).
///
/// A set of rows holds if it, or the set and further rows of the table, can be carried out. So what a row
/// needs of others (the mesh of the axes it names, the stage it limits, the split of a ring) is never missed
/// because those others are left out; and what contains a conflict is one. A set without the table's mesh may
/// have any: the smallest one that has its axes and places is tried, too.
///
/// Which further rows are tried is a choice: the mesh, the micro-batches, the rows about the same operators
/// as those that were refused. Remembers what it found. Not thread-safe.
class RowOracle
{
public:
    /// All arguments are kept.
    /// @param isOver  time is over: no further rows are tried
    RowOracle(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
        const CompletionOptions &options, const SpaceQuestion &space, const RowFacts &facts,
        std::function<bool()> isOver);

    /// @param rows  of `facts.rows`, ascending
    bool holds(const std::vector<std::int32_t> &rows);
    /// `holds`, for a table that differs from the one at hand in one row; nothing is remembered.
    /// @return why not, of the first row that is refused; nothing if it can be carried out
    std::optional<Error> refusal(const ConstraintTable &table);
    /// Whether the last refusal was that no plan of the search's space is left.
    bool refusedBySpace() const { return m_refusedBySpace; }

    /// After a set that does not hold: the rows that were refused, that stand on a cycle of orders, or that
    /// say what is in the search's space.
    const std::vector<std::int32_t> &blamed() const { return m_last.blamed; }
    /// And why, of the first of them.
    const Error &reason() const { return m_last.reason; }
    /// Whether the reason was the orders alone: then what is blamed is all that takes part in it.
    bool blamesOrders() const { return m_last.by == Refuser::Orders; }
    /// Whether it was that no plan of the search's space is left: then rows about the operators of those
    /// blamed may take part in it.
    bool blamesSpace() const { return m_last.by == Refuser::Space; }

    /// Why a set that does not hold is refused.
    Error reasonFor(const std::vector<std::int32_t> &rows);

    /// How many tables were carried out.
    int completions() const { return m_completions; }

private:
    using RowSet = std::vector<std::int32_t>;
    enum class Refuser : std::uint8_t { Completion, Orders, Space };
    struct Trial {
        bool holds = false; ///< Or time was over before it was known that it does not.
        Refuser by = Refuser::Completion;
        std::vector<std::int32_t> blamed{};
        Error reason{};
    };

    struct Naming {
        RowSet rows{};
        bool smallestMesh = false;
    };

    Trial carryOut(const ConstraintTable &table);
    /// Whether the search's space has a plan of these rows.
    Trial askSpace(const ConstraintTable &table);
    /// @param smallestMesh  in place of one of the table's
    Trial tryRows(const RowSet &rows, bool smallestMesh);
    std::optional<MeshRule> smallestMesh(const RowSet &rows) const;
    std::vector<Naming> namingsOf(const RowSet &rows) const;
    RowSet supportOf(const RowSet &rows, const std::vector<std::int32_t> &blamed) const;
    std::optional<RowSet> withSupport(const RowSet &rows, RowSet support);
    bool knownToHold(const RowSet &rows) const;
    struct Refused {
        RowSet rows{};
        std::vector<std::int32_t> blamed{};
        Error reason{};
        Refuser by = Refuser::Completion;
    };
    const Refused *knownNotTo(const RowSet &rows) const;
    /// @return why they do not hold; nothing if they do
    std::optional<Refused> findHolding(const RowSet &rows);

    const Model &m_model;
    std::int32_t m_deviceCount = 1;
    const ConstraintTable &m_table;
    const CompletionOptions &m_options;
    const SpaceQuestion &m_space;
    const RowFacts &m_facts;
    std::function<bool()> m_isOver{};
    std::vector<RowSet> m_holding{};
    std::vector<Refused> m_refused{};
    Refused m_last{}; ///< Of the last set that does not hold.
    bool m_refusedBySpace = false;
    int m_completions = 0;
};

} // namespace planloom
