#pragma once

#include "engine/conflict/row_facts.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

/// The logic of a table's rows in Z3: one assumption literal a row, and what the rows and the graph's rules
/// say of them together.
///
///     wrong rows       a row that cannot hold in this mesh       not (row and mesh)
///     twins            two meshes, two schedules ...             not (row and row')
///     classes          minimal sets of rows that cannot all      not (row and row' and ... and mesh)
///                      hold for one class of operators
///                      (`canHold`), with the micro-batches
///     stages           stage k reaches a lower one               not (row and row')
///     orders           what the i-th micro-batch waits for       row and row' => t(n, i) < t(n', j)
///     learned          sets that completing a plan refuses       not (row and row' and ...)
///
/// Operators with the same bindings share a class, so the size follows from how many different things rows
/// say, not from the model's size. What is satisfiable here need not be for `completePlan`, which also
/// decides what rows leave open; what is not, never is. Not thread-safe.
class RowLogic
{
public:
    /// @param leavesMesh  without a mesh, rows are read with one that a search is to find: what they say of
    /// it is left to `learnConflict`
    RowLogic(const RowFacts &facts, const ConstraintTable &table, bool leavesMesh = false);
    ~RowLogic();
    RowLogic(const RowLogic &) = delete;
    RowLogic &operator=(const RowLogic &) = delete;

    enum class Verdict : std::uint8_t { Hold, Conflict, Unknown };
    struct Answer {
        Verdict verdict = Verdict::Unknown; ///< Unknown: out of time, or stopped.
        std::vector<std::int32_t> core{}; ///< Of a conflict: rows that cannot hold together, ascending.
    };
    /// Whether `rows` (ascending) can hold together, as far as the logic goes.
    Answer check(
        const std::vector<std::int32_t> &rows, const std::stop_token &stop, std::chrono::milliseconds limit);

    /// These rows cannot hold together: no set that `unexplored` gives has all of them.
    void learnConflict(const std::vector<std::int32_t> &rows);
    /// These rows hold together: every set that `unexplored` gives has another one.
    void learnHolding(const std::vector<std::int32_t> &rows);
    struct Seed {
        std::vector<std::int32_t>
            rows{}; ///< Ascending; of no meaning if there is `none`, or it is not `known`.
        bool none = false; ///< Every set is explored.
        bool known = false; ///< False: out of time, or stopped.
    };
    /// A set of rows, none of which more can be added to, of which neither of the two says what becomes of
    /// it.
    Seed unexplored(const std::stop_token &stop, std::chrono::milliseconds limit);

private:
    class Constraints;
    struct Solvers;
    void write(const Constraints &constraints, const RowFacts &facts, const ConstraintTable &table);
    std::unique_ptr<Solvers> m_solvers{};
};

} // namespace planloom
