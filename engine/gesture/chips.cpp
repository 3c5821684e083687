#include "engine/gesture/split_refusal.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr std::size_t kMostCounts = 32;
constexpr std::int64_t kLargestCount = 1 << 16; ///< More parts than devices can ever be.

/// Divisors of `size` from 2, ascending; those that people use first where there are many.
std::vector<std::int32_t> countsOf(std::int64_t size, const std::vector<MeshAxis> &mesh)
{
    std::vector<std::int32_t> divisors;
    for (std::int64_t d = 1; d <= size / d && d <= kLargestCount; ++d) {
        if (size % d != 0)
            continue;
        if (d > 1)
            divisors.push_back(static_cast<std::int32_t>(d));
        if (size / d != d && size / d > 1 && size / d <= kLargestCount)
            divisors.push_back(static_cast<std::int32_t>(size / d));
    }
    std::sort(divisors.begin(), divisors.end());
    if (divisors.size() <= kMostCounts)
        return divisors;
    std::set<std::int32_t> chosen;
    const auto add = [&](auto wanted) {
        for (const std::int32_t d : divisors) {
            if (chosen.size() < kMostCounts && wanted(d))
                chosen.insert(d);
        }
    };
    add([&](std::int32_t d) {
        return std::any_of(mesh.begin(), mesh.end(), [&](const MeshAxis &axis) { return axis.size == d; });
    });
    add([](std::int32_t d) { return (d & (d - 1)) == 0; });
    add([](std::int32_t) { return true; });
    return {chosen.begin(), chosen.end()};
}

} // namespace

std::vector<DimensionChip> chipsOf(const GestureContext &context, OperatorId id)
{
    const Operator &op = context.graph().at(id);
    const Annotation &annotation = op.annotation;
    const std::int32_t batch = context.batch().operatorDimension[static_cast<std::size_t>(id.index)];
    const bool micro = context.plan && !context.plan->wholeBatches && context.plan->microBatches > 1
        && !context.batch().oncePerStep[static_cast<std::size_t>(id.index)];
    std::vector<DimensionChip> chips;
    for (const bool output : {false, true}) {
        const auto &tensors = output ? annotation.outputs : annotation.inputs;
        std::vector<char> seen(annotation.dimensions.size(), 0);
        for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
            for (const Term &term : tensors[slot].terms) {
                for (const std::int32_t d : term.factors) {
                    const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(d)];
                    if (std::exchange(seen[static_cast<std::size_t>(d)], 1) || dimension.name == "1")
                        continue;
                    DimensionChip chip;
                    chip.dimension = d;
                    chip.output = output;
                    chip.slot = static_cast<std::int32_t>(slot);
                    chip.label = labelOf(annotation, d);
                    chip.meaning = displayName(context.index().dimensions(), id, d);
                    chip.size = dimension.size;
                    chip.mark = dimension.mark;
                    chip.locked = lockOf(op, d);
                    if (chip.locked.empty()) {
                        const bool cutAlready =
                            micro && d == batch && dimension.size % context.plan->microBatches == 0;
                        chip.counts = countsOf(
                            cutAlready ? dimension.size / context.plan->microBatches : dimension.size,
                            context.mesh);
                        if (chip.counts.empty())
                            chip.locked = dimension.size == 1
                                ? "its only sample is the micro-batch"
                                : "its " + std::to_string(dimension.size) + " samples are the micro-batches";
                    }
                    chips.push_back(std::move(chip));
                }
            }
        }
    }
    return chips;
}

bool hasValueSplit(const GestureContext &context, OperatorId op)
{
    return !context.graph().at(op).annotation.linearInputs.empty();
}

} // namespace planloom
