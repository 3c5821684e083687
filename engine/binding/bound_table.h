#pragma once

#include "engine/base/result.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What became of one row.
struct RowReport {
    std::int32_t selected = 0; ///< Operators that the selector names, of all directions.
    /// Operators that the rule acts on. `bindTable` leaves it at 0 for rows that are off; see `boundAlone`.
    std::int32_t bound = 0;
    std::optional<Error> error{}; ///< Why the row can't hold; `where` is "row:5/rule".
    std::string warning{}; ///< "binds to no operator"; may be empty.
    bool leftOut = false; ///< A preference that does not hold with other rows: `warning` says with which.
    friend bool operator==(const RowReport &, const RowReport &) = default;
};

constexpr auto kNoRows = [] {
    std::array<std::int32_t, kAspectCount> rows{};
    rows.fill(-1);
    return rows;
}();

/// What all rows together allow of one operator, and which of them say so; row indices are -1 where none
/// does.
struct OperatorBinding {
    OperatorMeaning allowed{};
    /// By aspect, of `kAspects`: the last row that speaks of it.
    std::array<std::int32_t, kAspectCount> rows = kNoRows;
    std::vector<std::int32_t> axisRows{}; ///< By position in `allowed.axes`: the first row that speaks of it.
    std::int32_t withinRow = -1; ///< The first row that speaks of it.
    std::vector<std::int32_t> partsRows{}; ///< By position in `allowed.parts`.
    std::vector<std::int32_t> precisionRows{}; ///< Those that speak of its precision, ascending.
    /// By setting: the first row that gives it a value; undefined for those that `allowed.precision` leaves
    /// open.
    std::array<std::int32_t, kPrecisionSettingCount> precisionRowOf{};

    /// Of an aspect of `kAspects`.
    std::int32_t rowOf(Aspect aspect) const { return rows[static_cast<std::size_t>(aspect)]; }
    /// The last row about how it is split; -1 if there is none.
    std::int32_t splitRow() const
    {
        return withinRow >= 0 ? withinRow : axisRows.empty() ? -1 : axisRows.back();
    }
};

/// The first that is a row; -1 if none is.
inline std::int32_t firstRow(std::initializer_list<std::int32_t> rows)
{
    const auto found = std::find_if(rows.begin(), rows.end(), [](std::int32_t row) { return row >= 0; });
    return found == rows.end() ? -1 : *found;
}

/// Two rows that cannot both hold for one operator.
struct RowClash {
    Aspect aspect = Aspect::Split;
    std::int32_t other = -1; ///< The row that spoke before.
};

/// Adds what `row` says to what rows before it said of an operator; changes nothing where they clash.
std::optional<RowClash> join(OperatorBinding &binding, const OperatorMeaning &meaning, std::int32_t row,
    const std::vector<MeshAxis> &mesh);

/// A table read against a model: what its rows mean, row by row and operator by operator. Whoever completes
/// it to a plan decides within that, and reports what cannot hold.
struct BoundTable {
    RowSetting setting{};
    PlanMeaning plan{};
    std::vector<RowReport> reports{}; ///< By row.
    bool failed = false; ///< Some row has an error.
    std::vector<OperatorBinding> bindings{}; ///< By operator; backward ones are bound by their forwards.
    std::vector<std::string> batchAxes{}; ///< Mesh axes over which a row splits the batch.
    struct Pairs {
        std::int32_t row = -1;
        RuleSides sides{};
    };
    std::vector<Pairs> orders{};
    std::vector<Pairs> communications{};
    std::vector<Pairs> alikes{};
    /// By operator: the first of those that are cut alike with it (in the order of the graph), itself if it
    /// is that, and the last row that says so; invalid and -1 for others. Empty without such rows.
    struct AlikeWith {
        OperatorId leader{};
        std::int32_t row = -1;
    };
    std::vector<AlikeWith> alikeWith{};
    struct Sharing : Pairs {
        bool apart = false;
    };
    std::vector<Sharing> sharings{};

    /// With whom `op` is cut alike; its leader is invalid where no row says so.
    AlikeWith alikeOf(OperatorId op) const
    {
        return alikeWith.empty() ? AlikeWith{} : alikeWith[static_cast<std::size_t>(op.index)];
    }
    const OperatorBinding &of(OperatorId op) const { return bindings[static_cast<std::size_t>(op.index)]; }

    /// Keeps the first error of each row.
    void fail(std::int32_t row, Error error, const char *field = "rule");
    void fail(std::int32_t row, std::string message, std::string advice = {}, const char *field = "rule");
    /// For two rows that contradict each other: "this row and row:3 ('...') `what`". @param advice  what
    /// would help
    void failBoth(const ConstraintTable &table, std::int32_t row, std::int32_t other, const std::string &what,
        const std::string &advice);
};

/// Reads every enabled row; those switched off are only counted. O(rows x operators) at most; rows that name
/// operators cost their names.
/// @param deviceCount  at least 1
BoundTable bindTable(const Model &model, std::int32_t deviceCount, const ConstraintTable &table);

/// How many operators a row would act on if it were on, with nothing beside it but the rows about the whole
/// plan; 0 if it could not hold then. O(operators). Thread-safe.
/// @param setting  as the table's other rows are read against; @param microBatches  of the plan
std::int32_t boundAlone(const RowSetting &setting, std::int32_t microBatches, const Row &row);

} // namespace planloom
