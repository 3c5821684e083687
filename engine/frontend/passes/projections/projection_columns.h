#pragma once

#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// What becomes of the columns of a product, on their way to the operators that take them apart: what
/// `partProjections` and `divideProjections` both ask.

constexpr int kMostStepsToCut = 16; ///< Operators between a product and what takes its result apart.

/// True for kinds that make each element of their output from the same element of their input.
bool passesColumns(OperatorKind kind);

/// Where dimension `axis` of `in` is in `out`, a reshape of it: the dimension of the same extent with as many
/// elements before it.
std::optional<std::size_t> keptBy(const Shape &in, const Shape &out, std::size_t axis);

/// Where the elements of dimension `axis` of `in` begin in `out`, a reshape that divides it further.
std::optional<std::size_t> dividedBy(const Shape &in, const Shape &out, std::size_t axis);

/// The pieces that a Split, or a Slice, cuts a dimension of its input into, in the order of its outputs.
struct Cut {
    std::vector<std::int64_t> begins{};
    std::vector<std::int64_t> lengths{};
};

/// How `op` cuts dimension `axis` of its first input, and that one only; none if it does something else.
std::optional<Cut> cutOf(const Graph &graph, const Operator &op, std::size_t axis);

} // namespace planloom
