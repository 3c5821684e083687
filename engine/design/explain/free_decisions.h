#pragma once

#include "engine/gesture/gesture.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What no row of a person's decides, of forward operators of one kind for which the same was chosen.
struct FreeDecision {
    std::string kind{}; ///< "Linear"
    std::vector<OperatorId> operators{}; ///< Ascending.
    std::string words{}; ///< "h.*.attn.c_attn (12 operators)"
    std::string chosen{}; ///< "n:2 over tp; devices 0-3; stage 1; computed again"
    bool bySearch = false; ///< Rows of the search say so; else the default rule decided.
    std::string why{}; ///< By what default, a sentence; may be empty.
};

/// By operator: a forward one that no row of `rows` decides but those that the search chose. A row that
/// orders an operator holds it as much as one that places it.
/// @param rows  those of the plan
std::vector<bool> leftFree(const Plan &plan, const ConstraintTable &rows);
std::int32_t countFree(const Plan &plan, const ConstraintTable &rows);

/// All that is free, the most operators first. O(operators x their parts).
std::vector<FreeDecision> freeDecisionsOf(const Model &model, const Plan &plan, const ConstraintTable &rows);

/// Lines of `document` whose rows a search chose, on or off.
std::vector<std::int32_t> linesOfSearch(const TableDocument &document);
/// The row of a person's, on, that gives the plan a schedule which no search chooses (blocks that are
/// listed, dualpipe ...), where rows of a search are on beside it: these lay out the stages that it is for,
/// so that they stay. Nothing where a search can choose again.
std::optional<RowId> scheduleThatHoldsSearch(const ConstraintTable &rows);

/// The edit that makes rows of the search on `lines` a person's own, which no search replaces, with the mesh
/// that they need; other lines are passed by.
TableEdit keepRows(const TableDocument &document, const std::vector<std::int32_t> &lines);

/// The edit that has rows say what was chosen for these operators: rows of the search become a person's own,
/// with those about the whole plan that they need (all of them, if nothing else is free), and where the
/// default rule decided, rows are written.
/// @param context  with the plan of its document
/// @return as `proposeHold`; empty where nothing changes
Result<TableEdit> keepDecisions(const GestureContext &context, const std::vector<OperatorId> &operators);

} // namespace planloom
