#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <array>
#include <cstdint>

namespace planloom {

/// Into how many parts images or volumes are cut along depth, height and width.
struct SpatialParts {
    std::int32_t depth = 1;
    std::int32_t height = 1;
    std::int32_t width = 1;

    std::int64_t count() const { return std::int64_t{depth} * height * width; }
    /// Mesh axes, outermost first: name and parts.
    std::array<std::pair<const char *, std::int32_t>, 3> axes() const
    {
        return {{{"depth", depth}, {"height", height}, {"width", width}}};
    }
};

/// `parts` along the first dimension of space that the model has: depth of volumes, height of images.
/// @return InvalidInput if it has none
Result<SpatialParts> outermostInSpace(const Model &model, std::int32_t parts);

/// Appends to `table` (which has the mesh) the rows of spatial parallelism: all that has a depth, height or
/// width which its parts divide is split along it, so that devices exchange halos; what comes behind is
/// whole.
/// @return InvalidInput if nothing has such a dimension
Result<void> appendSpatial(
    const Model &model, std::int32_t deviceCount, const SpatialParts &parts, ConstraintTable &table);

} // namespace planloom
