#include "engine/runtime/communication/collective_work.h"

#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace planloom {

Error damagedPlan(std::string message)
{
    return {
        ErrorCode::InvalidInput, std::move(message), "this plan was not made by Planloom, or is damaged", {}};
}

Error noSuchDevice(DeviceId device)
{
    return {ErrorCode::InvalidInput, "there is no device " + std::to_string(device.index), {}, {}};
}

Result<std::size_t> memberOf(
    const std::vector<std::vector<DeviceId>> &groups, const CollectiveCall &call, DeviceId device)
{
    const std::string group = "group " + std::to_string(call.group);
    if (call.group < 0 || static_cast<std::size_t>(call.group) >= groups.size())
        return Error{ErrorCode::InvalidInput, "there is no " + group, {}, {}};
    const std::vector<DeviceId> &members = groups[static_cast<std::size_t>(call.group)];
    const auto found = std::find(members.begin(), members.end(), device);
    if (found == members.end())
        return Error{ErrorCode::InvalidInput,
            "device " + std::to_string(device.index) + " is not in " + group, {}, {}};
    return static_cast<std::size_t>(found - members.begin());
}

Result<void> checkLength(std::size_t bytes, const MessageCall &to)
{
    if (bytes == to.bytes)
        return {};
    return damagedPlan("expected " + std::to_string(to.bytes) + " bytes from device "
        + std::to_string(to.key.peer.index) + ", got " + std::to_string(bytes));
}

std::string misfit(const std::vector<CollectiveCall> &slots)
{
    const CollectiveCall &first = slots.front();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const CollectiveCall &slot = slots[i];
        if (slot.kind != first.kind)
            return std::string{nameOf(first.kind)} + " meets " + nameOf(slot.kind);
        if (slot.dimension != first.dimension || slot.gatherDimension != first.gatherDimension)
            return "members name different dimensions";
        if (slot.combination != first.combination)
            return "members combine in different ways";
    }
    // Along `along`, `whole` is as long as the members' parts together; elsewhere extents agree.
    const auto fits = [&](const Shape &whole, const auto &partOf, std::int32_t along) {
        std::int64_t total = 0;
        for (const CollectiveCall &slot : slots) {
            Shape part = partOf(slot);
            if (along < 0)
                return part == whole;
            const auto d = static_cast<std::size_t>(along);
            if (part.size() != whole.size() || d >= whole.size())
                return false;
            total += part[d];
            part[d] = whole[d];
            if (part != whole)
                return false;
        }
        return total == whole[static_cast<std::size_t>(along)];
    };
    const auto in = [](const CollectiveCall &slot) { return slot.in.shape; };
    const auto out = [](const CollectiveCall &slot) { return slot.out.shape; };
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const CollectiveCall &slot = slots[i];
        bool ok = true;
        switch (first.kind) {
        case InstructionKind::AllReduce:
            ok = slot.in.shape == first.in.shape && slot.out.shape == first.in.shape;
            break;
        case InstructionKind::AllGather:
            ok = fits(slot.out.shape, in, first.dimension);
            break;
        case InstructionKind::ReduceScatter:
            ok = fits(slot.in.shape, out, first.dimension);
            break;
        case InstructionKind::AllToAll: {
            // Chunks cut from `in` are the outs' extents; pieces joined in `out` are the ins' extents.
            const auto cut = static_cast<std::size_t>(first.dimension);
            const auto join = static_cast<std::size_t>(first.gatherDimension);
            const std::size_t rank = first.in.shape.size();
            ok = cut < rank && join < rank && cut != join && slot.in.shape.size() == rank
                && slot.out.shape.size() == rank;
            if (ok) {
                std::int64_t cuts = 0;
                std::int64_t joins = 0;
                for (const CollectiveCall &other : slots) {
                    if (other.in.shape.size() != rank || other.out.shape.size() != rank)
                        return "members' shapes do not fit";
                    cuts += other.out.shape[cut];
                    joins += other.in.shape[join];
                }
                Shape expected = slot.in.shape;
                expected[cut] = slot.out.shape[cut];
                expected[join] = joins;
                ok = slot.in.shape[cut] == cuts && slot.out.shape == expected;
            }
            break;
        }
        case InstructionKind::Broadcast:
            ok = first.in.data != nullptr && (slot.out.data == nullptr || slot.out.shape == first.in.shape)
                && (slot.out.data != nullptr || &slot == &first);
            break;
        case InstructionKind::Shift:
            ok = slot.in.data != nullptr && slot.out.data != nullptr && slot.in.data != slot.out.data
                && slot.out.shape == slots[(i + slots.size() - 1) % slots.size()].in.shape;
            break;
        default:
            ok = false; // no collective
        }
        const bool sums =
            first.kind == InstructionKind::AllReduce || first.kind == InstructionKind::ReduceScatter;
        const bool reads = first.kind != InstructionKind::Broadcast || &slot == &first;
        if (!ok)
            return "members' shapes do not fit: " + toString(slot.in.shape) + " to "
                + toString(slot.out.shape);
        if ((reads && slot.in.type != first.in.type)
            || (slot.out.data != nullptr && slot.out.type != first.in.type))
            return "members' data types differ";
        if (sums && !canCombine(first.in.type, first.combination))
            return std::string{"values of type "} + planloom::nameOf(first.in.type)
                + " cannot be combined by " + planloom::nameOf(first.combination);
    }
    return {};
}

namespace {

void allReduceChunk(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const DataType type = slots[0].in.type;
    const auto size = static_cast<std::size_t>(sizeOf(type));
    const auto count = static_cast<std::size_t>(elementCount(slots[0].in.shape));
    // Each member adds its own chunk and hands the result to all; short tensors are left to the first few.
    const std::size_t chunk =
        std::max<std::size_t>(1024, ((count + slots.size() - 1) / slots.size() + 63) / 64 * 64);
    const std::size_t begin = std::min(count, member * chunk);
    const std::size_t end = std::min(count, begin + chunk);
    std::vector<const std::byte *> from(slots.size());
    std::vector<std::byte *> others; // members may share their memory
    for (const CollectiveCall &slot : slots)
        if (slot.out.data != slots[member].out.data
            && std::find(others.begin(), others.end(), slot.out.data) == others.end())
            others.push_back(slot.out.data);
    constexpr std::size_t kBlock = 4096; // handed out while still in cache
    for (std::size_t at = begin; at < end; at += kBlock) {
        const std::size_t length = std::min(kBlock, end - at);
        for (std::size_t k = 0; k < slots.size(); ++k)
            from[k] = slots[k].in.data + at * size;
        std::byte *to = slots[member].out.data + at * size;
        combineInto(to, from, length, type, slots[0].combination);
        for (std::byte *const other : others)
            std::memcpy(other + at * size, to, length * size);
    }
}

/// Members may share their memory: the first one fills it.
bool isFilledBefore(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    return std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(member),
        [&](const CollectiveCall &slot) { return slot.out.data == slots[member].out.data; });
}

void gatherInto(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    if (isFilledBefore(slots, member))
        return;
    const auto d = static_cast<std::size_t>(slots[member].dimension);
    std::int64_t offset = 0;
    for (const CollectiveCall &slot : slots) {
        const IndexMask piece = wholeMask(slot.in.shape);
        IndexMask target = wholeMask(out.shape); // in the piece's coordinates
        target.ranges[d] = {-offset, out.shape[d] - offset};
        copyBox(slot.in.data, piece, out.data, target, piece, sizeOf(out.type));
        offset += slot.in.shape[d];
    }
}

void reduceInto(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots[member].in;
    const CollectiveBuffer &out = slots[member].out;
    const auto d = static_cast<std::size_t>(slots[member].dimension);
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < member; ++k)
        offset += slots[k].out.shape[d];
    std::int64_t outer = 1;
    for (std::size_t i = 0; i < d; ++i)
        outer *= in.shape[i];
    std::int64_t inner = sizeOf(in.type);
    for (std::size_t i = d + 1; i < in.shape.size(); ++i)
        inner *= in.shape[i];
    const std::int64_t run = out.shape[d] * inner;
    std::vector<const std::byte *> from(slots.size());
    for (std::int64_t o = 0; o < outer; ++o) {
        for (std::size_t k = 0; k < slots.size(); ++k)
            from[k] = slots[k].in.data + (o * in.shape[d] + offset) * inner;
        combineInto(out.data + o * run, from, static_cast<std::size_t>(run / sizeOf(in.type)), in.type,
            slots[0].combination);
    }
}

void exchangeInto(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &out = slots[member].out;
    const auto cut = static_cast<std::size_t>(slots[member].dimension);
    const auto join = static_cast<std::size_t>(slots[member].gatherDimension);
    std::int64_t cutBegin = 0;
    for (std::size_t k = 0; k < member; ++k)
        cutBegin += slots[k].out.shape[cut];
    std::int64_t joined = 0;
    for (const CollectiveCall &slot : slots) {
        const IndexMask whole = wholeMask(slot.in.shape);
        IndexMask region = whole;
        region.ranges[cut] = {cutBegin, cutBegin + out.shape[cut]};
        IndexMask target = wholeMask(out.shape); // in the sender's coordinates
        target.ranges[cut] = region.ranges[cut];
        target.ranges[join] = {-joined, out.shape[join] - joined};
        copyBox(slot.in.data, whole, out.data, target, region, sizeOf(out.type));
        joined += slot.in.shape[join];
    }
}

void copyFirst(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots.front().in;
    const CollectiveBuffer &out = slots[member].out;
    if (out.data != nullptr && out.data != in.data && !isFilledBefore(slots, member))
        std::memcpy(out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

void copyBefore(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    const CollectiveBuffer &in = slots[(member + slots.size() - 1) % slots.size()].in;
    std::memcpy(
        slots[member].out.data, in.data, static_cast<std::size_t>(elementCount(in.shape) * sizeOf(in.type)));
}

} // namespace

void memberPart(const std::vector<CollectiveCall> &slots, std::size_t member)
{
    switch (slots[member].kind) {
    case InstructionKind::AllReduce:
        return allReduceChunk(slots, member);
    case InstructionKind::AllGather:
        return gatherInto(slots, member);
    case InstructionKind::ReduceScatter:
        return reduceInto(slots, member);
    case InstructionKind::AllToAll:
        return exchangeInto(slots, member);
    case InstructionKind::Broadcast:
        return copyFirst(slots, member);
    case InstructionKind::Shift:
        return copyBefore(slots, member);
    default:
        assert(false); // refused before
    }
}

} // namespace planloom
