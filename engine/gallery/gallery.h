#pragma once

#include "engine/base/result.h"
#include "engine/gallery/gallery_file.h"
#include "engine/gallery/gallery_pipeline.h"
#include "engine/graph/precision.h"
#include "engine/hardware/cost_model.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Entries of the gallery, by name; those of a user's folder stand in for those that come with Planloom.
struct Gallery {
    std::vector<GalleryEntry> entries{};
    std::vector<std::string> notes{}; ///< Files that were passed by, and why.

    const GalleryEntry *find(std::string_view name) const; ///< Null if there is none.
    std::string names() const; ///< "single, data-parallel, ..."
};

/// What comes with Planloom: resources/gallery. Read once. Thread-safe.
const Gallery &builtInGallery();

/// The rows of an entry for a model.
struct GalleryPlan {
    ConstraintTable table{};
    std::vector<std::string>
        solved{}; ///< Parameters that are left to the solver: it has something to decide.
};

/// What a spec asks for, as numbers and words: how a form is filled.
struct GalleryValue {
    std::string parameter{};
    std::string value{}; ///< "8"; "chosen" and "solver" as they are.
    bool isGiven = false; ///< The spec says it.
};

/// The values of an entry's parameters as far as the number of devices decides them.
/// @param spec  "3d:dp=2,tp=2,pp=2": a name, and values of its parameters
/// @return as `galleryPlan`
Result<std::vector<GalleryValue>> galleryValues(
    std::string_view spec, const Gallery &gallery, const Model &model, std::int32_t deviceCount);

/// The rows of a gallery plan for a model: "3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=4".
///
/// Entries are text files (gallery_file.h). All devices are used: the product of the axes of an entry's mesh
/// must be `deviceCount`. A value "solver" leaves a parameter to the search, where the entry lets it.
///
/// @param costs  what pipeline stages are balanced by, in the number formats of `precision`
///
/// The rows are checked: `completePlan` accepts them.
/// @return NotFound for unknown names, InvalidInput with the reason where the model can't be planned so (the
///   batch does not divide: by which operator; nothing can be split in so many parts: why; too few operators)
Result<GalleryPlan> galleryPlan(std::string_view spec, const Gallery &gallery, const Model &model,
    std::int32_t deviceCount, const CostModel &costs, PrecisionPreset precision = PrecisionPreset::Float32);

/// The rows alone, of the gallery that comes with Planloom.
Result<ConstraintTable> galleryTable(
    std::string_view spec, const Model &model, std::int32_t deviceCount, const CostModel &costs);

} // namespace planloom
