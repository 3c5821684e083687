#include "engine/table/mesh_axes.h"

#include "engine/base/nearest_name.h"
#include "engine/table/table_mesh.h"

#include <algorithm>
#include <initializer_list>

namespace planloom {

std::string noSuchAxisAdvice(const std::vector<MeshAxis> &mesh, std::string_view name)
{
    std::vector<std::string_view> known;
    for (const MeshAxis &axis : mesh)
        known.push_back(axis.name);
    const std::string meant = didYouMean(name, known);
    return meant.empty() ? "add it to the mesh row" : meant + " Else add it to the mesh row";
}

AxisRole roleOf(const MeshAxis &axis)
{
    const auto isAmong = [&](std::initializer_list<const char *> words) {
        return std::any_of(words.begin(), words.end(), [&](const char *word) { return axis.name == word; });
    };
    if (isAmong({"dp", "data", "batch", "replica", "replicas"}))
        return AxisRole::Replicas;
    if (isAmong({"pp", "pipe", "pipeline", "stage", "stages"}))
        return AxisRole::Ranks;
    return AxisRole::Shards;
}

std::optional<AxisRole> roleOf(Degree degree)
{
    switch (degree) {
    case Degree::Data:
        return AxisRole::Replicas;
    case Degree::Tensor:
        return AxisRole::Shards;
    case Degree::Pipeline:
        return AxisRole::Ranks;
    default:
        return std::nullopt;
    }
}

std::int64_t sizeOfRole(const std::vector<MeshAxis> &mesh, AxisRole role)
{
    std::int64_t size = 1;
    for (const MeshAxis &axis : mesh)
        if (roleOf(axis) == role)
            size *= axis.size;
    return size;
}

std::vector<MeshAxis> meshOf(const ConstraintTable &table)
{
    for (const Row &row : table.rows)
        if (const auto *mesh = std::get_if<MeshRule>(&row.rule); mesh && row.enabled)
            return mesh->axes;
    return {};
}

} // namespace planloom
