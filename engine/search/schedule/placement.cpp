#include "engine/search/schedule/placement.h"

#include "engine/base/ids.h"

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

} // namespace

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
    return {};
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
