#include "widgets/compare/span_moves.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace planloom {

namespace {

/// What makes a span the same in two plans; several of one key are paired in their order.
struct SpanKey {
    std::int32_t op = -1;
    std::int32_t microBatch = 0;
    std::int32_t part = 0;
    std::int32_t kind = 0; ///< Of the instruction, and whether it is a repetition.
    QueueKind queue = QueueKind::Compute;
    std::size_t row = 0;

    auto tied() const { return std::tie(op, microBatch, kind, part); }
    bool operator<(const SpanKey &other) const
    {
        return std::tie(op, microBatch, kind, part, queue, row)
            < std::tie(other.op, other.microBatch, other.kind, other.part, other.queue, other.row);
    }
};

/// For each operator of `a`, the number of its like in `b`; -1 without.
std::vector<std::int32_t> likesOf(const Graph &a, const Graph &b)
{
    std::unordered_map<std::string_view, std::vector<std::int32_t>> named;
    for (std::size_t i = b.operators.size(); i-- > 0;)
        named[b.operators[i].name].push_back(static_cast<std::int32_t>(i));
    std::vector<std::int32_t> likes(a.operators.size(), -1);
    for (std::size_t i = 0; i < likes.size(); ++i) {
        const auto found = named.find(a.operators[i].name);
        if (found == named.end() || found->second.empty())
            continue;
        likes[i] = found->second.back();
        found->second.pop_back();
    }
    return likes;
}

std::vector<SpanKey> keysOf(const TimelineScene &scene, const std::vector<std::int32_t> *likes)
{
    const SpanColumns &spans = scene.timeline->spans;
    std::vector<SpanKey> keys;
    keys.reserve(spans.size());
    for (std::size_t row = 0; row < spans.size(); ++row) {
        SpanKey key;
        key.microBatch = spans.microBatch[row];
        key.queue = spans.queue[row];
        key.row = row;
        if (const Instruction *instruction = scene.findInstruction(row)) {
            key.op = instruction->op.index;
            if (likes && instruction->op.valid()) // what only one plan has never matches
                key.op = (*likes)[static_cast<std::size_t>(key.op)] >= 0
                    ? (*likes)[static_cast<std::size_t>(key.op)]
                    : -2 - key.op;
            key.part = instruction->kind == InstructionKind::Kernel ? instruction->part : 0;
            key.kind = static_cast<std::int32_t>(instruction->kind) * 2 + (instruction->recompute ? 1 : 0);
        }
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

} // namespace

SpanSubset subsetOf(const Timeline &timeline, std::vector<std::size_t> rows)
{
    const SpanColumns &all = timeline.spans;
    SpanSubset subset;
    subset.rows = std::move(rows);
    SpanColumns &spans = subset.spans;
    const std::size_t devices = std::max<std::size_t>(timeline.deviceBegin.size(), 1) - 1;
    subset.queues.resize(devices);
    subset.before.resize(subset.rows.size() + 1);
    for (std::size_t i = 0; i < subset.rows.size(); ++i) {
        const std::size_t row = subset.rows[i];
        spans.device.push_back(all.device[row]);
        spans.queue.push_back(all.queue[row]);
        spans.segment.push_back(all.segment[row]);
        spans.instruction.push_back(all.instruction[row]);
        spans.microBatch.push_back(all.microBatch[row]);
        spans.start.push_back(all.start[row]);
        spans.duration.push_back(all.duration[row]);
        subset.before[i + 1] = subset.before[i];
        subset.before[i + 1].busy += all.duration[row];
        LaneRows &lane =
            subset
                .queues[static_cast<std::size_t>(all.device[row])][static_cast<std::size_t>(all.queue[row])];
        if (lane.begin == lane.end)
            lane.begin = i;
        lane.end = i + 1;
    }
    return subset;
}

namespace {

using KeyRange = std::span<const SpanKey>;

/// The keys from `begin` on that are those of one thing: the same operator, micro-batch, kind and part.
KeyRange alikeFrom(const std::vector<SpanKey> &keys, std::size_t begin)
{
    std::size_t end = begin;
    while (end < keys.size() && keys[end].tied() == keys[begin].tied())
        ++end;
    return KeyRange(keys).subspan(begin, end - begin);
}

/// Pairs the rows of one thing in two plans in their order, within each queue; what is left then, across
/// queues.
class AlikePairs
{
public:
    /// @param paired  what to do with two rows that belong together
    template<typename Paired> void pair(KeyRange a, KeyRange b, const Paired &paired)
    {
        leftA.clear();
        leftB.clear();
        std::size_t j = 0;
        for (const SpanKey &key : a) {
            while (j < b.size() && b[j].queue < key.queue)
                leftB.push_back(b[j++].row);
            if (j < b.size() && b[j].queue == key.queue)
                paired(key.row, b[j++].row);
            else
                leftA.push_back(key.row);
        }
        while (j < b.size())
            leftB.push_back(b[j++].row);
        const std::size_t both = std::min(leftA.size(), leftB.size());
        for (std::size_t i = 0; i < both; ++i)
            paired(leftA[i], leftB[i]);
        const auto rest = static_cast<std::ptrdiff_t>(both);
        leftA.erase(leftA.begin(), leftA.begin() + rest);
        leftB.erase(leftB.begin(), leftB.begin() + rest);
    }

    std::vector<std::size_t> leftA{}; ///< Rows without a mate in the other plan.
    std::vector<std::size_t> leftB{};
};

} // namespace

std::optional<SpanMoves> movesOf(
    const TimelineScene &a, const TimelineScene &b, std::int64_t tick, std::stop_token stop)
{
    const bool oneModel = a.plan->graph == b.plan->graph;
    const std::vector<std::int32_t> likes =
        oneModel ? std::vector<std::int32_t>{} : likesOf(a.graph(), b.graph());
    const std::vector<SpanKey> keysA = keysOf(a, oneModel ? nullptr : &likes);
    if (stop.stop_requested())
        return std::nullopt;
    const std::vector<SpanKey> keysB = keysOf(b, nullptr);
    if (stop.stop_requested())
        return std::nullopt;
    const SpanColumns &spansA = a.timeline->spans;
    const SpanColumns &spansB = b.timeline->spans;
    SpanMoves moves;
    std::vector<std::size_t> fromA;
    std::vector<std::size_t> toB;
    const auto paired = [&](std::size_t rowA, std::size_t rowB) {
        const bool stays = spansA.device[rowA] == spansB.device[rowB]
            && spansA.queue[rowA] == spansB.queue[rowB]
            && std::abs(spansA.start[rowA] - spansB.start[rowB]) <= tick
            && std::abs(spansA.duration[rowA] - spansB.duration[rowB]) <= tick;
        if (stays) {
            ++moves.same;
            return;
        }
        moves.moved.push_back({rowA, rowB});
        fromA.push_back(rowA);
        toB.push_back(rowB);
    };
    AlikePairs pairs;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < keysA.size() || j < keysB.size()) {
        const bool gone = j == keysB.size() || (i < keysA.size() && keysA[i].tied() < keysB[j].tied());
        const bool added = !gone && (i == keysA.size() || keysB[j].tied() < keysA[i].tied());
        const KeyRange a = added ? KeyRange{} : alikeFrom(keysA, i);
        const KeyRange b = gone ? KeyRange{} : alikeFrom(keysB, j);
        pairs.pair(a, b, paired);
        for (const std::size_t row : pairs.leftA) {
            moves.onlyA.push_back(row);
            fromA.push_back(row);
        }
        for (const std::size_t row : pairs.leftB) {
            moves.onlyB.push_back(row);
            toB.push_back(row);
        }
        i += a.size();
        j += b.size();
    }
    if (stop.stop_requested())
        return std::nullopt;
    const auto length = [&](const SpanMove &move) {
        return std::max(spansA.duration[move.a], spansB.duration[move.b]);
    };
    std::sort(moves.moved.begin(), moves.moved.end(), [&](const SpanMove &x, const SpanMove &y) {
        return length(x) != length(y) ? length(x) > length(y) : x.b < y.b;
    });
    for (std::vector<std::size_t> *rows : {&moves.onlyA, &moves.onlyB, &fromA, &toB})
        std::sort(rows->begin(), rows->end());
    moves.fromA = subsetOf(*a.timeline, std::move(fromA));
    moves.toB = subsetOf(*b.timeline, std::move(toB));
    return moves;
}

} // namespace planloom
