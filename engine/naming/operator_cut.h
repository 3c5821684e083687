#pragma once

#include "engine/graph/dimensions/batch.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <string>
#include <tuple>

namespace planloom {

/// Over how many devices a plan cuts one forward operator, by what is cut; 1 for what is not. Parts that wait
/// for one another on one device are none of these: two parts of every sequence on each of four devices (the
/// zigzag of context parallelism) are a sequence over four.
struct OperatorCut {
    std::int32_t data = 1; ///< Of the batch, inside one unit.
    std::int32_t sequence = 1;
    std::int32_t experts = 1;
    std::int32_t space = 1; ///< Of height, width and depth together.
    std::int32_t tensor = 1; ///< Of all else: columns, rows, heads, vocabulary, summands.
    std::int32_t copies = 1; ///< That do the same work.
    std::int32_t lanes = 1;
    std::int32_t slices = 1;
    std::int32_t turns = 1; ///< Of a coshard region.
    bool columns = false; ///< What is cut of the rest is in an output.
    bool rows = false; ///< What is cut of the rest is summed over.
    bool zigzag = false; ///< Devices have several parts of the sequence.

    /// The degrees alone: what two operators that are cut alike have in common.
    auto degrees() const { return std::tuple(data, sequence, experts, space, tensor, copies, lanes, slices); }
};

/// @param op  a forward operator of the plan
/// @param index  of the plan's graph
/// O(parts x splits).
OperatorCut cutOf(const Plan &plan, const BatchInfo &batch, const SelectorIndex &index, OperatorId op);

/// "data parallel 2, tensor parallel 4"; "copied on 4"; "whole" where nothing is cut.
/// @param units  how many units do the same on other samples, which is data parallelism as well
/// @param isProduct  by weights; what is cut of other operators is no tensor parallelism: "cut in 4"
std::string toString(const OperatorCut &cut, std::int32_t units, bool isProduct = true);

} // namespace planloom
