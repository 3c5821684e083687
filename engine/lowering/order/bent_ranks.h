#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// The orders of a template's ranks, changed as little as rows and data flow ask for: each rank runs what
/// comes next in its order. Where no rank can, since what comes next everywhere waits for something that a
/// template runs later, one of those that are waited for goes first: the one nearest to the front of its
/// rank.
///
/// Unchanged where nothing runs against the orders. Where items wait for one another in a circle, they stay
/// in their order. O(items) steps, each over the ranks; O(items^2) where much has to change.
/// @param ranks  items by rank, each item in one place
/// @param next   by item: those that wait for it
std::vector<std::vector<std::size_t>> bentRanks(
    const std::vector<std::vector<std::size_t>> &ranks, const std::vector<std::vector<std::int32_t>> &next);

} // namespace planloom
