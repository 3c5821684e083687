#include "engine/hardware/cluster.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/embedded_profiles.h"

#include <charconv>

namespace planloom {

namespace {

constexpr std::uintmax_t kMostFileBytes = 1 << 20;

std::string listOfNames()
{
    std::string list;
    for (const EmbeddedProfile &profile : embeddedProfiles())
        list += (list.empty() ? "" : ", ") + std::string(profile.name);
    return list;
}

Result<Cluster> clusterFromFile(const std::string &path)
{
    TRY(const std::string text, clusterFileText(path));
    auto cluster = clusterFromJson(text);
    if (!cluster)
        cluster.error().where = path + "#" + cluster.error().where;
    return cluster;
}

} // namespace

Result<std::string> clusterFileText(const std::string &path)
{
    return readFile(path, {.what = "cluster file", .mostBytes = kMostFileBytes});
}

Result<Cluster> clusterNamed(std::string_view nameOrPath)
{
    if (nameOrPath.ends_with(".json"))
        return clusterFromFile(std::string(nameOrPath));

    const std::size_t colon = nameOrPath.find(':');
    const std::string_view name = nameOrPath.substr(0, colon);
    const std::string where = "cluster:" + std::string(nameOrPath.substr(0, 60));
    for (const EmbeddedProfile &profile : embeddedProfiles()) {
        if (profile.name != name)
            continue;
        const std::string advice = "write " + std::string(name) + ":8 for eight devices";
        if (colon == std::string_view::npos)
            return Error{ErrorCode::InvalidInput, "the cluster has no size", advice, where};
        const std::string_view digits = nameOrPath.substr(colon + 1);
        std::int32_t count = 0;
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (failure != std::errc{} || end != digits.data() + digits.size() || count < 1
            || count > kMostDevices)
            return Error{ErrorCode::InvalidInput,
                "expected a number of devices from 1 to " + std::to_string(kMostDevices) + ", found \""
                    + std::string(digits.substr(0, 60)) + "\"",
                advice, where};
        TRY(Cluster cluster, clusterFromJson(profile.json, count));
        cluster.name = std::string(name) + ":" + std::to_string(count);
        return cluster;
    }
    return Error{ErrorCode::NotFound,
        "there is no cluster profile \"" + std::string(name.substr(0, 60)) + "\"",
        "known are " + listOfNames() + "; or give a file that ends in .json", where};
}

Cluster unitOf(Cluster cluster, const ScaleUnits &units)
{
    cluster.deviceCount /= units.count;
    cluster.units = units;
    return cluster;
}

std::vector<std::string> clusterNames()
{
    std::vector<std::string> names;
    for (const EmbeddedProfile &profile : embeddedProfiles())
        names.emplace_back(profile.name);
    return names;
}

} // namespace planloom
