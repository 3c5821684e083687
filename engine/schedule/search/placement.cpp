#include "engine/schedule/search/placement.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

Error refusedPlacement(std::string where, std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(where)};
}

Result<void> validateBlock(const Placement &placement, const PlacementBlock &block)
{
    const std::string where = "block:" + std::to_string(block.id);
    if (block.devices.empty())
        return refusedPlacement(where, "a block runs on at least one device, this one on none");
    for (std::size_t i = 0; i < block.devices.size(); ++i) {
        if (block.devices[i] < 0 || block.devices[i] >= placement.devices)
            return refusedPlacement(where,
                "expected devices from 0 to " + std::to_string(placement.devices - 1) + ", found "
                    + std::to_string(block.devices[i]));
        if (i > 0 && block.devices[i] <= block.devices[i - 1])
            return refusedPlacement(where, "the devices of a block are ascending, each once");
    }
    if (block.time < 1 || block.time > kMostPlacementTime)
        return refusedPlacement(where,
            "expected a time from 1 to " + std::to_string(kMostPlacementTime) + ", found "
                + std::to_string(block.time),
            "measure in a smaller unit, nanoseconds for one");
    if (block.memory < -kMostPlacementTime || block.memory > kMostPlacementTime)
        return refusedPlacement(where,
            "memory is at most " + std::to_string(kMostPlacementTime) + " either way, found "
                + std::to_string(block.memory));
    if (block.workspace < 0 || block.workspace > kMostPlacementTime)
        return refusedPlacement(where,
            "a workspace is from 0 to " + std::to_string(kMostPlacementTime) + ", found "
                + std::to_string(block.workspace));
    if (block.queue < 0)
        return refusedPlacement(where, "queues count from 0, found " + std::to_string(block.queue));
    return {};
}

/// Blocks without a place in a topological order; empty if there is one.
std::vector<std::int32_t> sortedBlocks(const Placement &placement, std::vector<std::int32_t> &order)
{
    std::vector<std::vector<std::int32_t>> next(placement.blocks.size());
    std::vector<std::int32_t> waiting(placement.blocks.size(), 0);
    for (const PlacementEdge &edge : placement.edges)
        if (edge.distance == 0) {
            next[at(edge.before)].push_back(edge.after);
            ++waiting[at(edge.after)];
        }
    std::set<std::int32_t> ready;
    for (std::size_t b = 0; b < waiting.size(); ++b)
        if (waiting[b] == 0)
            ready.insert(static_cast<std::int32_t>(b));
    while (!ready.empty()) {
        const std::int32_t block = *ready.begin();
        ready.erase(ready.begin());
        order.push_back(block);
        for (const std::int32_t each : next[at(block)])
            if (--waiting[at(each)] == 0)
                ready.insert(each);
    }
    std::vector<std::int32_t> left;
    for (std::size_t b = 0; b < waiting.size(); ++b)
        if (waiting[b] > 0)
            left.push_back(static_cast<std::int32_t>(b));
    return left;
}

/// Of a placement whose blocks and edges are valid.
Result<void> validateOptions(const Placement &placement)
{
    const auto count = static_cast<std::int32_t>(placement.blocks.size());
    std::vector<std::vector<std::int32_t>> next(placement.blocks.size());
    for (const PlacementEdge &edge : placement.edges)
        if (edge.distance == 0)
            next[at(edge.before)].push_back(edge.after);
    const auto reaches = [&](std::int32_t from, std::int32_t to) -> bool { // not a reference into `seen`
        std::vector<bool> seen(placement.blocks.size(), false);
        std::vector<std::int32_t> open{from};
        while (!open.empty()) {
            const std::int32_t block = open.back();
            open.pop_back();
            for (const std::int32_t after : next[at(block)])
                if (!seen[at(after)]) {
                    seen[at(after)] = true;
                    open.push_back(after);
                }
        }
        return seen[at(to)];
    };
    std::int64_t sum = 0;
    for (const PlacementBlock &block : placement.blocks)
        sum += block.time;
    std::vector<std::int32_t> untilOf(placement.blocks.size(), -1);
    for (const MemoryOption &option : placement.options) {
        if (option.block < 0 || option.block >= count || option.until < 0 || option.until >= count)
            return refusedPlacement("options", "an option is for two of the blocks");
        const PlacementBlock &block = placement.blocks[at(option.block)];
        const PlacementBlock &until = placement.blocks[at(option.until)];
        const std::string where = "block:" + std::to_string(block.id);
        const std::string kind = nameOf(option.kind);
        if (option.memory < 1 || option.memory > block.memory)
            return refusedPlacement(where,
                "its " + kind + " saves " + std::to_string(option.memory) + " of the "
                    + std::to_string(block.memory) + " that it takes",
                "at least 1, and no more than the block's memory");
        if (option.time < 1 || option.backTime < 1 || option.queue < 0 || option.backQueue < 0)
            return refusedPlacement(
                where, "its " + kind + " takes a time of at least 1, on a queue that counts from 0");
        if ((sum += option.time + option.backTime) > kMostPlacementTime || option.time > kMostPlacementTime)
            return refusedPlacement(where,
                "all blocks and options together take longer than " + std::to_string(kMostPlacementTime),
                "measure in a larger unit");
        if (until.devices != block.devices || !reaches(option.block, option.until))
            return refusedPlacement(where,
                wordsOf(until) + ", which needs what its " + kind
                    + " saves, does not wait for it, or runs on other devices",
                "name a later block on the same devices");
        if (untilOf[at(option.block)] >= 0 && untilOf[at(option.block)] != option.until)
            return refusedPlacement(where, "its options are for different later blocks",
                "all options of a block hold less until one block needs it again");
        untilOf[at(option.block)] = option.until;
    }
    return {};
}

} // namespace

const char *nameOf(OptionKind kind)
{
    return kind == OptionKind::Recompute ? "recompute" : "offload";
}

Result<void> validate(const Placement &placement)
{
    if (placement.devices < 1 || placement.devices > kMostPlacementBlocks)
        return refusedPlacement("devices",
            "expected from 1 to " + std::to_string(kMostPlacementBlocks) + " devices, found "
                + std::to_string(placement.devices));
    if (!placement.memoryLimit.empty()
        && placement.memoryLimit.size() != static_cast<std::size_t>(placement.devices))
        return refusedPlacement("memory_limit",
            "expected a limit for each of " + std::to_string(placement.devices) + " devices, found "
                + std::to_string(placement.memoryLimit.size()));
    for (const std::int64_t limit : placement.memoryLimit)
        if (limit < 0)
            return refusedPlacement("memory_limit", "a limit is at least 0, found " + std::to_string(limit));
    if (placement.blocks.empty() || placement.blocks.size() > at(kMostPlacementBlocks))
        return refusedPlacement("blocks",
            "expected from 1 to " + std::to_string(kMostPlacementBlocks) + " blocks, found "
                + std::to_string(placement.blocks.size()));
    std::set<std::int64_t> ids;
    std::int64_t sum = 0;
    for (const PlacementBlock &block : placement.blocks) {
        TRY_VOID(validateBlock(placement, block));
        if (!ids.insert(block.id).second)
            return refusedPlacement("block:" + std::to_string(block.id), "two blocks have this id",
                "give every block an id of its own");
        if ((sum += block.time) > kMostPlacementTime)
            return refusedPlacement("blocks",
                "all blocks together take longer than " + std::to_string(kMostPlacementTime),
                "measure in a larger unit");
    }
    const auto count = static_cast<std::int32_t>(placement.blocks.size());
    for (std::size_t i = 0; i < placement.edges.size(); ++i) {
        const PlacementEdge &edge = placement.edges[i];
        const std::string where = "edge:" + std::to_string(i);
        if (edge.before < 0 || edge.before >= count || edge.after < 0 || edge.after >= count)
            return refusedPlacement(where, "an edge joins two of the blocks");
        if (edge.distance < 0 || edge.distance > kMostPlacementBlocks)
            return refusedPlacement(where,
                "an edge leads from 0 to " + std::to_string(kMostPlacementBlocks)
                    + " micro-batches ahead, found " + std::to_string(edge.distance));
    }
    std::vector<std::int32_t> order;
    if (const auto left = sortedBlocks(placement, order); !left.empty()) {
        std::string names;
        for (std::size_t i = 0; i < left.size() && i < 4; ++i)
            names += (i == 0 ? "" : ", ") + std::to_string(placement.blocks[at(left[i])].id);
        return refusedPlacement("edges",
            "blocks " + names + (left.size() > 4 ? ", ..." : "")
                + " wait for one another, or for blocks that do",
            "the edges inside a micro-batch must not form a cycle");
    }
    TRY_VOID(validateOptions(placement));
    return validateOnce(placement);
}

std::vector<std::int32_t> topologicalOrder(const Placement &placement)
{
    std::vector<std::int32_t> order;
    sortedBlocks(placement, order);
    return order;
}

ChainLengths chainLengths(const Placement &placement)
{
    ChainLengths chains;
    for (const PlacementBlock &block : placement.blocks) {
        chains.upTo.push_back(block.time);
        chains.from.push_back(block.time);
    }
    std::vector<std::vector<std::int32_t>> next(placement.blocks.size());
    for (const PlacementEdge &edge : placement.edges)
        if (edge.distance == 0)
            next[at(edge.before)].push_back(edge.after);
    const auto order = topologicalOrder(placement);
    for (const std::int32_t block : order)
        for (const std::int32_t after : next[at(block)])
            chains.upTo[at(after)] =
                std::max(chains.upTo[at(after)], chains.upTo[at(block)] + placement.blocks[at(after)].time);
    for (auto block = order.rbegin(); block != order.rend(); ++block)
        for (const std::int32_t after : next[at(*block)])
            chains.from[at(*block)] =
                std::max(chains.from[at(*block)], chains.from[at(after)] + placement.blocks[at(*block)].time);
    return chains;
}

std::int64_t busiestQueue(const Placement &placement)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> busy;
    std::int64_t most = 0;
    for (const PlacementBlock &block : placement.blocks)
        for (const std::int32_t device : block.devices)
            if (!block.once)
                most = std::max(most, busy[{device, block.queue}] += block.time);
    return most;
}

bool shareQueue(const PlacementBlock &a, const PlacementBlock &b)
{
    if (a.queue != b.queue)
        return false;
    return std::find_first_of(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end())
        != a.devices.end();
}

std::string wordsOf(const PlacementBlock &block)
{
    return (block.kind.empty() ? std::string{} : block.kind + " ") + "block " + std::to_string(block.id);
}

} // namespace planloom
