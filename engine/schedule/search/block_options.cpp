#include "engine/schedule/search/block_options.h"

#include "engine/base/ids.h"

#include <algorithm>

namespace planloom {

namespace {

/// `amount` less is held from the end of `block` (from its start, where `atOnce`) to the start of `until`.
void holdLessBetween(PlacementBlock &block, PlacementBlock &until, std::int64_t amount, bool atOnce)
{
    block.memory -= amount;
    if (!atOnce)
        block.workspace += amount;
    // What `until` takes again it has while it runs, if it gives back at its end; else it is as good as
    // given.
    if (until.givesBackAtEnd && until.memory < 0) {
        const std::int64_t given = std::min(amount, -until.memory);
        until.workspace += given;
        until.memory += given;
        amount -= given;
    }
    if (amount > 0) { // given back by another block
        until.memory += amount;
        until.givesBackAtEnd = until.givesBackAtEnd && until.memory < 0;
    }
}

void addCopies(Placement &placement, const MemoryOption &option)
{
    const auto out = static_cast<std::int32_t>(placement.blocks.size());
    std::int64_t id = 0;
    for (const PlacementBlock &block : placement.blocks)
        id = std::max(id, block.id);
    const std::vector<std::int32_t> devices = placement.blocks[at(option.block)].devices;
    placement.blocks.push_back({.id = id + 1,
        .kind = nameOf(OptionKind::Offload),
        .devices = devices,
        .queue = option.queue,
        .time = option.time,
        .memory = -option.memory,
        .givesBackAtEnd = true});
    placement.blocks.push_back({.id = id + 2,
        .kind = "fetch",
        .devices = devices,
        .queue = option.backQueue,
        .time = option.backTime,
        .memory = option.memory});
    placement.edges.push_back({option.block, out, 0});
    placement.edges.push_back({out, out + 1, 0});
    placement.edges.push_back({out + 1, option.until, 0});
}

} // namespace

Placement withOptions(const Placement &placement, const OptionChoices &choices)
{
    Placement chosen = placement;
    chosen.options.clear();
    for (std::size_t b = 0; b < choices.size(); ++b) {
        if (choices[b] >= 0) {
            const MemoryOption &option = placement.options[at(choices[b])];
            if (option.kind == OptionKind::Offload) {
                addCopies(chosen, option);
                continue;
            }
            PlacementBlock &until = chosen.blocks[at(option.until)];
            holdLessBetween(chosen.blocks[b], until, option.memory, true);
            until.time += option.time;
        } else if (choices[b] == kOptionOpen) {
            std::int64_t most = 0;
            bool atOnce = false;
            std::int32_t until = -1;
            for (const MemoryOption &option : placement.options)
                if (at(option.block) == b) {
                    most = std::max(most, option.memory);
                    atOnce = atOnce || option.kind == OptionKind::Recompute;
                    until = option.until;
                }
            holdLessBetween(chosen.blocks[b], chosen.blocks[at(until)], most, atOnce);
        }
    }
    return chosen;
}

OptionChoices keptOptions(const Placement &placement)
{
    return OptionChoices(placement.blocks.size(), kOptionKept);
}

OptionChoices openOptions(const Placement &placement)
{
    OptionChoices choices = keptOptions(placement);
    for (const MemoryOption &option : placement.options)
        choices[at(option.block)] = kOptionOpen;
    return choices;
}

} // namespace planloom
