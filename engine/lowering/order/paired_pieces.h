#pragma once

#include "engine/base/result.h"
#include "engine/lowering/order/order.h"

#include <vector>

namespace planloom {

/// A row's order of pieces of two runs that go side by side.
struct PieceOrder {
    bool ofFirst = true; ///< The piece that comes first is of the first run, the other of the second.
    std::int32_t behind = -1; ///< See `BlockDependency`.
    std::int32_t before = -1;
    RowId row{};
};

/// Two runs of whole blocks, piece by piece: cut where they have communicated, and where `orders` part what
/// they compute. Each goes at an even pace, from cut to cut, so that one computes while the other waits; of
/// pieces that end at the same pace, the first run's comes first. Rows bend that as little as they can:
///
///     no row                    a0 b0 a1 b1 a2 b2 a3 b3
///     a3 before b1              a0 b0 a1 a2 a3 b1 b2 b3
///     a2 before b1, b1 before a3   a0 b0 a1 a2 b1 b2 a3 b3
///
/// O(cuts + orders^2).
/// @return InvalidInput naming the rows if they run in a circle
Result<std::vector<BlockRun>> pairedPieces(const std::vector<BlockInfo> &blocks, const BlockRun &first,
    const BlockRun &second, const std::vector<PieceOrder> &orders = {});

} // namespace planloom
