#include "widgets/design/cluster_values.h"

#include "engine/hardware/cluster_json.h"

#include <filesystem>
#include <utility>

namespace planloom {

Result<ClusterFile> readClusterFile(const std::string &path)
{
    ClusterFile file{std::filesystem::path(path).stem().string(), {}, 0};
    TRY(file.json, clusterFileText(path));
    if (const auto sized = clusterFromJson(file.json)) {
        file.deviceCount = sized->deviceCount;
        return file;
    }
    if (auto unsized = clusterFromJson(file.json, 1); !unsized) { // the design says how many there are
        Error error = std::move(unsized).error();
        error.where = path + "#" + error.where;
        return error;
    }
    return file;
}

std::map<std::string, std::string> clusterValues(const std::string &nameOrPath, const std::string &json)
{
    if (!json.empty() && nameOrPath.find('/') == std::string::npos)
        return {{"cluster", nameOrPath}, {"cluster-json", json}};
    if (nameOrPath.find('/') == std::string::npos)
        return {{"cluster", nameOrPath}};
    auto file = readClusterFile(nameOrPath);
    if (!file)
        return {{"cluster", nameOrPath}};
    return {{"cluster", std::move(file->name)}, {"cluster-json", std::move(file->json)}};
}

} // namespace planloom
