#pragma once

#include "engine/gallery/gallery.h"

namespace planloom {

/// A gallery plan whose stages are balanced by the figures of an H100.
inline Result<ConstraintTable> galleryTable(
    std::string_view spec, const Model &model, std::int32_t deviceCount)
{
    TRY(const Cluster cluster, clusterNamed("dgx-h100:1"));
    return galleryTable(spec, model, deviceCount, costModelOf(cluster));
}

} // namespace planloom
