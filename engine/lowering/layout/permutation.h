#pragma once

#include "engine/lowering/layout/layout.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// From whom every position gets the cell that it wants, if those of `held` only change places: itself
/// wherever it has it already, else a position of its own node where there is one (`nodes`, by position).
/// Summands are paired so that as many as possible stay.
/// @return by position; nothing if `wanted` are not the same cells
std::optional<std::vector<std::int32_t>> permutationBetween(
    const std::vector<Cell> &held, const std::vector<Cell> &wanted, const std::vector<std::int32_t> &nodes);

/// The messages (sender, receiver) of a permutation in an order in which they meet best: along each cycle
/// every second one, then the others, since a device takes part in one message at a time.
///
///     cycle 0 -> 1 -> 2 -> 3 -> 0:   0->1  2->3  |  1->2  3->0
std::vector<std::pair<std::int32_t, std::int32_t>> messagesOf(const std::vector<std::int32_t> &sources);

/// Seconds until all messages are through, sent in this order, each occupying both of its ends.
double secondsOf(const std::vector<std::pair<std::int32_t, std::int32_t>> &messages, std::size_t positions,
    const std::function<double(std::int32_t sender, std::int32_t receiver)> &seconds);

} // namespace planloom
