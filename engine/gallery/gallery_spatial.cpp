#include "engine/gallery/gallery_spatial.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::array<DimensionMeaning, 3> kSpace{
    DimensionMeaning::Depth, DimensionMeaning::Height, DimensionMeaning::Width};

/// Some forward operator can be cut along it.
bool isIn(const Model &model, DimensionMeaning meaning)
{
    const Graph &graph = *model.graph;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction == Direction::Forward
            && findMeant(model.index->dimensions(), graph, op, meaning).identifier >= 0)
            return true;
    }
    return false;
}

} // namespace

Result<SpatialParts> outermostInSpace(const Model &model, std::int32_t parts)
{
    if (isIn(model, DimensionMeaning::Depth))
        return SpatialParts{.depth = parts};
    if (isIn(model, DimensionMeaning::Height))
        return SpatialParts{.height = parts};
    return Error{ErrorCode::InvalidInput,
        "nothing in the model has a height or a depth: its inputs are no images or volumes",
        "use data-parallel, tensor-parallel or context-parallel", "gallery/spatial"};
}

Result<void> appendSpatial(
    const Model &model, std::int32_t deviceCount, const SpatialParts &parts, ConstraintTable &table)
{
    const RowSetting setting{model, deviceCount, planMeaning(model, deviceCount, table).mesh};
    const auto axes = parts.axes();
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto &[axis, count] = axes[i];
        if (count == 1 || appendMeaningSplit({setting, kSpace[i], axis}, table))
            continue;
        return Error{ErrorCode::InvalidInput,
            isIn(model, kSpace[i])
                ? "no operator has a " + std::string(axis) + " that " + std::to_string(count) + " divides"
                : "nothing in the model has a " + std::string(axis),
            "use other numbers", "gallery/spatial"};
    }
    return {};
}

} // namespace planloom
