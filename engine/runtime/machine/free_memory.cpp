#include "engine/runtime/machine/free_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <sys/resource.h>

namespace planloom {

namespace {

/// The number behind `name` in a file of lines "name number"; of the whole file without a name.
std::optional<std::int64_t> numberIn(const std::string &path, const std::string &name = {})
{
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string word;
        std::int64_t number = 0;
        if (!name.empty() && (!(words >> word) || word != name))
            continue;
        if (words >> number)
            return number;
        if (name.empty())
            return std::nullopt; // "max"
    }
    return std::nullopt;
}

void lower(std::optional<std::int64_t> &least, std::int64_t value)
{
    least = std::min(least.value_or(value), std::max<std::int64_t>(value, 0));
}

/// What is left in one control group.
void lowerToGroup(std::optional<std::int64_t> &least, const std::string &folder, const char *limitFile,
    const char *usedFile, const char *cacheName)
{
    const auto limit = numberIn(folder + limitFile);
    const auto used = numberIn(folder + usedFile);
    if (!limit || !used)
        return;
    const std::int64_t cache = numberIn(folder + "/memory.stat", cacheName).value_or(0);
    lower(least, *limit - *used + cache);
}

std::string gibibytes(std::int64_t bytes)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 1073741824.0);
    return text;
}

} // namespace

std::optional<Bytes> freeMemory(const std::string &root)
{
    std::optional<std::int64_t> least;
    if (const auto available = numberIn(root + "/proc/meminfo", "MemAvailable:"))
        lower(least, *available * 1024);
    std::ifstream groups(root + "/proc/self/cgroup"); // "0::/a/b", or of version 1 "7:memory:/a/b"
    std::string line;
    while (std::getline(groups, line)) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos)
            continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool isSecond = controllers == ",,";
        if (!isSecond && controllers.find(",memory,") == std::string::npos)
            continue;
        std::string path = line.substr(second + 1);
        for (;;) { // limits of all groups around it hold, too
            if (path == "/")
                path.clear();
            if (isSecond)
                lowerToGroup(
                    least, root + "/sys/fs/cgroup" + path, "/memory.max", "/memory.current", "inactive_file");
            else
                lowerToGroup(least, root + "/sys/fs/cgroup/memory" + path, "/memory.limit_in_bytes",
                    "/memory.usage_in_bytes", "total_inactive_file");
            if (path.empty())
                break;
            path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
        }
    }
    if (const auto used = numberIn(root + "/proc/self/status", "VmSize:")) { // ulimit -v
        rlimit limit{};
        if (root.empty() && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            lower(least, static_cast<std::int64_t>(limit.rlim_cur) - *used * 1024);
    }
    if (!least)
        return std::nullopt;
    return Bytes{*least};
}

std::int64_t memoryKills(const std::string &root)
{
    std::ifstream groups(root + "/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
        if (!line.starts_with("0::"))
            continue;
        const std::string events = root + "/sys/fs/cgroup" + line.substr(3) + "/memory.events";
        if (const auto kills = numberIn(events, "oom_kill"))
            return *kills;
    }
    return numberIn(root + "/proc/vmstat", "oom_kill").value_or(0);
}

Result<void> requireMemory(const std::vector<MemoryNeed> &needs, const std::optional<Bytes> &free)
{
    std::int64_t total = 0;
    const MemoryNeed *most = nullptr;
    const auto sum = [](const MemoryNeed &need) { return need.own.count + need.host.count; };
    for (const MemoryNeed &need : needs) {
        total += sum(need);
        if (most == nullptr || sum(need) > sum(*most))
            most = &need;
    }
    if (!free || total <= free->count || most == nullptr)
        return {};
    std::string text = "device " + std::to_string(most->device) + " needs " + gibibytes(sum(*most));
    if (most->host.count > 0)
        text += " (" + gibibytes(most->host.count) + " of it on its host)";
    if (needs.size() > 1)
        text += ", all " + std::to_string(needs.size()) + " devices need " + gibibytes(total);
    text += "; this machine has " + gibibytes(free->count) + " of memory free";
    return Error{ErrorCode::ResourceLimit, std::move(text),
        needs.size() > 1 && sum(*most) <= free->count
            ? "run on fewer devices, or use a smaller batch, more micro-batches or recomputation: emulated "
              "devices share this machine's memory"
            : "use a smaller model or batch, more micro-batches or recomputation",
        "device:" + std::to_string(most->device)};
}

} // namespace planloom
