#include "engine/table/mesh_axes.h"

#include "engine/base/nearest_name.h"

namespace planloom {

std::string noSuchAxisAdvice(const std::vector<MeshAxis> &mesh, std::string_view name)
{
    std::vector<std::string_view> known;
    for (const MeshAxis &axis : mesh)
        known.push_back(axis.name);
    const std::string meant = didYouMean(name, known);
    return meant.empty() ? "add it to the mesh row" : meant + " Else add it to the mesh row";
}

} // namespace planloom
