#include "engine/runtime/collective_fit.h"

#include "engine/runtime/box_copy.h"

namespace planloom {

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

} // namespace planloom
