#include "widgets/design/cluster_values.h"

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"

#include <charconv>
#include <filesystem>
#include <optional>
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
    const auto [path, framework] = splitFramework(nameOrPath);
    auto file = readClusterFile(path);
    if (!file)
        return {{"cluster", nameOrPath}};
    return {{"cluster", joinFramework(file->name, framework)}, {"cluster-json", std::move(file->json)}};
}

TargetChoice targetOf(const std::map<std::string, std::string> &values, const StoredCluster &stored,
    const TargetChoice &otherwise)
{
    const auto text = [&values](const char *name) {
        const auto found = values.find(name);
        return found == values.end() ? std::string() : found->second;
    };
    TargetChoice target = otherwise;
    if (std::string name = text("cluster"); !name.empty())
        target.cluster = std::move(name);
    target.clusterJson = text("cluster-json");
    // A profile of the same name is no file.
    if (target.clusterJson.empty() && target.cluster == stored.path
        && stored.path.find('/') != std::string::npos)
        target.clusterJson = stored.json;
    const std::string count = text("devices");
    std::int32_t devices = 0;
    const auto [end, failure] = std::from_chars(count.data(), count.data() + count.size(), devices);
    if (failure == std::errc{} && end == count.data() + count.size() && devices >= 1)
        target.deviceCount = devices;
    return target;
}

std::vector<ValueChange> targetChanges(
    const std::map<std::string, std::string> &values, const std::map<std::string, std::string> &wanted)
{
    const auto find = [](const std::map<std::string, std::string> &all, const char *name) {
        const auto found = all.find(name);
        return found == all.end() ? std::optional<std::string>() : found->second;
    };
    std::vector<ValueChange> changes;
    for (const char *name : {"cluster", "cluster-json", "devices"}) {
        ValueChange change{name, find(values, name), find(wanted, name)};
        if (change.before != change.after)
            changes.push_back(std::move(change));
    }
    return changes;
}

} // namespace planloom
