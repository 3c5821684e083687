#include "widgets/design/cluster_values.h"

#include "engine/hardware/cluster_json.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace planloom {

namespace {

constexpr std::uintmax_t kMostBytes = 1u << 20; ///< Of a cluster file; those that come with Planloom have 2 KiB.

std::string contentOf(const std::string &path)
{
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure) || std::filesystem::file_size(path, failure) > kMostBytes || failure)
        return {};
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace

std::map<std::string, std::string> clusterValues(const std::string &nameOrPath, const std::string &json)
{
    if (!json.empty() && nameOrPath.find('/') == std::string::npos)
        return {{"cluster", nameOrPath}, {"cluster-json", json}};
    if (nameOrPath.find('/') == std::string::npos)
        return {{"cluster", nameOrPath}};
    std::string content = contentOf(nameOrPath);
    if (content.empty() || !clusterFromJson(content, 1))
        return {{"cluster", nameOrPath}};
    return {{"cluster", std::filesystem::path(nameOrPath).stem().string()}, {"cluster-json", std::move(content)}};
}

} // namespace planloom
