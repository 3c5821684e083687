#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cost_model.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// One plan of the gallery, as shown to people.
struct GalleryEntry {
    std::string name{}; ///< "tensor-parallel"
    std::string meaning{}; ///< One line for a person.
    std::vector<std::string> parameters{}; ///< "schedule=gpipe|1f1b|sequential"
};

const std::vector<GalleryEntry> &galleryEntries();

/// The rows of a gallery plan for a model: "3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=4".
///
/// Names: `single` (all on device 0), `data-parallel`, `tensor-parallel`, `context-parallel`,
/// `expert-parallel`, `pipeline`, `zero1`, and `3d`, their product; the mesh is dp x pp x ep x cp x tp, tp
/// innermost. All devices are used: dp * pp * ep * cp * tp must be `deviceCount`. `spatial` cuts images and
/// volumes over the axes depth, height and width of a mesh behind dp: along the outermost of these, if it is
/// not said. `pipedream` and
/// `pipedream-2bw` are pipelines that update within the step, with older versions of the weights;
/// `bidirectional` runs two in opposite directions. A pipeline without `micro-batches` takes as many as
/// divide the batch, at most 4 per stage.
///
/// @param costs  what pipeline stages are balanced by
///
/// The rows are checked: `completePlan` accepts them.
/// @return NotFound for unknown names, InvalidInput with the reason where the model can't be planned so (the
///   batch does not divide: by which operator; nothing can be split in so many parts: why; too few operators)
Result<ConstraintTable> galleryTable(
    std::string_view spec, const Model &model, std::int32_t deviceCount, const CostModel &costs);

} // namespace planloom
