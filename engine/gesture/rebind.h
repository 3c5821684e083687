#pragma once

#include "engine/plan/graph_match.h"
#include "engine/table/table_document.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// A table's rows bound to a changed model.
struct Rebinding {
    std::int32_t fresh = 0; ///< Forward operators that are new.
    std::int32_t gone = 0; ///< Forward operators that are no more.
    std::int32_t bound = 0; ///< Rows that selected operators of the model before.
    TableEdit edit{}; ///< Rewrites rows whose selectors would select others than before; often empty.
    std::vector<std::int32_t> rewritten{}; ///< Their lines, ascending.
    std::vector<std::int32_t>
        fewer{}; ///< Lines of rows that select fewer operators: some of theirs are gone.
    std::vector<std::int32_t>
        lost{}; ///< Lines of rows that selected operators, all of which are gone; left as they are.
};

/// Binds the rows of `document`, written for the model `before`, to the model `after`.
///
/// Operators are recognised as `matchOperators` says. A row whose selector selects the counterparts of what
/// it selected (and at most operators that are new, besides) stays as it is written; any other gets the
/// shortest of: its selector with the new names in it, its selector with what it lacks added and what it has
/// too much taken out, and a selector as a gesture would write it. Rows that are off are bound, too; order
/// rows on both sides. O(operators log operators + rows x operators), rows that name operators cost their
/// names. Stops early with an empty edit if asked to. Thread-safe.
Rebinding rebind(const SelectorIndex &before, const SelectorIndex &after, const TableDocument &document,
    std::stop_token stop = {});

} // namespace planloom
