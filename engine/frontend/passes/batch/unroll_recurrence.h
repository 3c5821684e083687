#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <set>
#include <string>

namespace planloom {

/// Makes recurrences (Lstm, Gru, Rnn) the operators of their steps, so that their hidden dimension can be
/// cut.
///
/// As one operator they need the whole state in every step, where parts cannot exchange it. Step by step
///
///     x [t b g h], what W makes of the input        R [g h h]
///          Split along time
///     x_1 [1 b g h] -- Add --------- gates -- state [1 b h] -- Linear -- [1 b g h]
///     x_2 [1 b g h] -- Add <---------------------------------------------'
///     ...                                          states of all steps -- Concat -> y
///
/// R is a weight like any other: where its rows h are cut, so are gates, states and what W makes of the
/// input, and the state is put together before each product as the layouts of any two operators ask. Weights
/// [d g*h k] have the gates as a dimension of their own, [d*g h k] (`Tensor::fileShape`), where nobody else
/// reads them.
///
/// Both directions, biases, first states, peepholes, coupled gates and both forms of GRU are covered. For
/// forward graphs whose scopes are made; annotations, and which scopes are copies, are to be computed
/// afterwards. O(operators + steps).
///
/// What cannot be unrolled: sequences of different lengths, bounded gates (`clip`), activations other than
/// Sigmoid, Tanh, Relu, Softplus and Softsign. `Graph::recurrences` says of each whether it is, or why it
/// cannot be.
///
/// @param names  of recurrences; "*" means all that can be, with a note of the others
/// @return how many were unrolled; NotFound for a name that no recurrence has; NotSupported for one that
/// cannot be
Result<std::int32_t> unrollRecurrences(Graph &graph, const std::set<std::string> &names);

} // namespace planloom
