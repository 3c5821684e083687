#include "engine/lowering/order/paired_pieces.h"

#include "engine/base/words.h"
#include "engine/table/table.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

/// What one of the runs is cut into.
struct Piece {
    BlockRun run{};
    double end = 0; ///< Of the block's pace, in (0, 1]: that of the stretch between cuts which it is of.
    bool isFirst = true; ///< Of its stretch.
    std::size_t needs = 0; ///< So many of the other run's pieces come before it.
    RowId row{}; ///< That says so.
};

std::vector<Piece> cutAt(
    const std::vector<std::int32_t> &cuts, const BlockRun &whole, const std::vector<std::int32_t> &marks)
{
    std::vector<Piece> pieces;
    std::int32_t from = whole.from;
    auto mark = marks.begin();
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
        const std::int32_t to = i < cuts.size() ? cuts[i] : whole.to;
        const double end = static_cast<double>(i + 1) / static_cast<double>(cuts.size() + 1);
        bool isFirst = true;
        const auto add = [&](std::int32_t until) {
            pieces.push_back({{whole.block, whole.microBatch, from, until}, end, isFirst, 0, {}});
            isFirst = false;
            from = until;
        };
        for (; mark != marks.end() && (i == cuts.size() || *mark < to); ++mark)
            add(*mark);
        if (mark != marks.end() && *mark == to)
            ++mark; // it is cut there anyway
        add(to);
    }
    return pieces;
}

/// How many pieces stand before a mark.
std::size_t countBefore(const std::vector<Piece> &pieces, std::int32_t mark)
{
    return static_cast<std::size_t>(std::find_if(pieces.begin(), pieces.end(), [&](const Piece &piece) {
        return piece.run.from >= mark;
    }) - pieces.begin());
}

Error circle(RowId one, RowId other)
{
    const std::string rows = one == other
        ? "this order of two blocks that run side by side runs in a circle"
        : "this order of two blocks that run side by side runs against that of " + rowWords(other.index);
    return {ErrorCode::InvalidInput,
        rows + ": the pieces of each block keep their own order, and those in between cannot",
        "remove one of the rows, or turn it around", placeOf(one, "rule")};
}

} // namespace

Result<std::vector<BlockRun>> pairedPieces(const std::vector<BlockInfo> &blocks, const BlockRun &first,
    const BlockRun &second, const std::vector<PieceOrder> &orders)
{
    std::array<std::vector<std::int32_t>, 2> marks;
    for (const PieceOrder &order : orders) {
        if (order.behind >= 0)
            marks[order.ofFirst ? 0 : 1].push_back(order.behind);
        if (order.before >= 0)
            marks[order.ofFirst ? 1 : 0].push_back(order.before);
    }
    std::array<std::vector<Piece>, 2> pieces;
    for (const std::size_t side : {0U, 1U}) {
        auto &own = marks[side];
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        const BlockRun &run = side == 0 ? first : second;
        pieces[side] = cutAt(blocks[static_cast<std::size_t>(run.block)].cuts, run, own);
    }
    for (const PieceOrder &order : orders) {
        const auto &mine = pieces[order.ofFirst ? 0 : 1];
        auto &theirs = pieces[order.ofFirst ? 1 : 0];
        const std::size_t needs = order.behind < 0 ? mine.size() : countBefore(mine, order.behind);
        Piece &held = theirs[order.before < 0 ? 0 : countBefore(theirs, order.before)];
        if (held.needs < needs) {
            held.needs = needs;
            held.row = order.row;
        }
    }
    std::vector<BlockRun> runs;
    runs.reserve(pieces[0].size() + pieces[1].size());
    std::array<std::size_t, 2> at{};
    std::size_t last = 2; // the side of the run before
    while (at[0] < pieces[0].size() || at[1] < pieces[1].size()) {
        std::size_t best = 2;
        for (const std::size_t side : {0U, 1U})
            if (at[side] < pieces[side].size() && pieces[side][at[side]].needs <= at[1 - side]
                && (best == 2 || pieces[side][at[side]].end < pieces[best][at[best]].end))
                best = side;
        if (best == 2) // then neither is at its end: both wait for rows
            return circle(pieces[0][at[0]].row, pieces[1][at[1]].row);
        const Piece &piece = pieces[best][at[best]++];
        if (best == last && !piece.isFirst)
            runs.back().to = piece.run.to; // nothing has come between
        else
            runs.push_back(piece.run);
        last = best;
    }
    return runs;
}

} // namespace planloom
