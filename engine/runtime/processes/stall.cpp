#include "engine/runtime/processes/stall.h"

#include "engine/runtime/processes/place.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// What a device has begun last; null before its first instruction.
const Instruction *instructionOf(
    const ExecutionPlan &plan, std::int32_t device, const std::optional<InstructionPlace> &place)
{
    if (!place)
        return nullptr;
    return &plan.devices[static_cast<std::size_t>(device)]
                .segments[static_cast<std::size_t>(place->segment)]
                .instructions[static_cast<std::size_t>(place->instruction)];
}

std::string whereIs(
    const ExecutionPlan &plan, std::int32_t device, const std::optional<InstructionPlace> &place)
{
    return "device " + std::to_string(device)
        + (place ? " is at " + describe(plan, device, *place) : std::string{" is still loading"});
}

} // namespace

double stallLimit(double least, double predictedStepSeconds)
{
    constexpr double kSteps = 20; // predictions are not so far from what is measured
    return std::max(least, kSteps * predictedStepSeconds);
}

std::string nameOfRank(const RankLayout &layout, std::int32_t rank)
{
    const std::int32_t first = layout.first(rank);
    const std::int32_t count = layout.end(rank) - first;
    std::string devices = count == 1 ? "device " + std::to_string(first) : "devices " + std::to_string(first);
    if (count > 1)
        devices += (count == 2 ? " and " : " to ") + std::to_string(first + count - 1);
    return layout.ranks == 1 ? "the rank process" : "rank " + std::to_string(rank) + " (" + devices + ")";
}

Stall findStall(const ExecutionPlan &plan, const RankLayout &layout, const std::vector<std::int64_t> &issued,
    const std::vector<bool> &silent)
{
    std::vector<std::optional<InstructionPlace>> places;
    for (std::size_t d = 0; d < issued.size(); ++d)
        places.push_back(placeOf(plan, static_cast<std::int32_t>(d), issued[d]));
    const auto placeAt = [&](std::int32_t device) { return places[static_cast<std::size_t>(device)]; };
    Stall stall;
    if (const auto found = std::find(silent.begin(), silent.end(), true); found != silent.end()) {
        stall.rank = static_cast<std::int32_t>(found - silent.begin());
        stall.device = layout.first(stall.rank);
        stall.text = nameOfRank(layout, stall.rank) + " does not answer any more";
        for (std::int32_t d = layout.first(stall.rank); d < layout.end(stall.rank); ++d)
            stall.text += "; " + whereIs(plan, d, placeAt(d));
        return stall;
    }
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(places.size()); ++d) {
        const Instruction *const waiting = instructionOf(plan, d, placeAt(d));
        if (waiting == nullptr || !isCommunication(waiting->kind) || waiting->kind == InstructionKind::Send)
            continue;
        std::vector<DeviceId> others{waiting->peer};
        if (waiting->kind != InstructionKind::Recv)
            others = plan.groups[static_cast<std::size_t>(waiting->group)];
        for (const DeviceId other : others) {
            const Instruction *const theirs = instructionOf(plan, other.index, placeAt(other.index));
            const bool waitsToo = theirs != nullptr && theirs->kind == waiting->kind
                && (theirs->group == waiting->group || waiting->kind == InstructionKind::Recv);
            if (other.index == d || waitsToo)
                continue;
            stall.device = other.index;
            stall.text = "device " + std::to_string(d) + " waits at " + describe(plan, d, *placeAt(d))
                + " for device " + std::to_string(other.index) + ": "
                + whereIs(plan, other.index, placeAt(other.index));
            return stall;
        }
    }
    const auto least = std::min_element(issued.begin(), issued.end());
    stall.device = static_cast<std::int32_t>(least - issued.begin());
    stall.text = whereIs(plan, stall.device, placeAt(stall.device));
    return stall;
}

} // namespace planloom
