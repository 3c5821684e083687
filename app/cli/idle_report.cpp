#include "app/cli/idle_report.h"

#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

namespace planloom::cli {

namespace {

using nlohmann::json;

json idlePartsToJson(const IdleParts &parts)
{
    json object = json::object();
    for (std::size_t r = 0; r < kIdleReasonCount; ++r) {
        std::string key = nameOf(static_cast<IdleReason>(r));
        std::replace(key.begin(), key.end(), ' ', '_');
        object[key + "_seconds"] = static_cast<double>(parts[r]) * 1e-9;
    }
    return object;
}

} // namespace

json idleToJson(const IdleTimes &idle)
{
    json devices = json::array();
    for (const IdleParts &parts : idle.devices)
        devices.push_back(idlePartsToJson(parts));
    return {{"total", idlePartsToJson(idle.total)}, {"devices", devices}};
}

void printIdle(const IdleTimes &idle)
{
    const std::int64_t all = std::accumulate(idle.total.begin(), idle.total.end(), std::int64_t{0});
    std::printf("  idle on all devices, by what is waited for:\n");
    for (std::size_t r = 0; r < kIdleReasonCount; ++r)
        if (idle.total[r] > 0)
            std::printf("    %-14s %12s %8.1f%%\n", nameOf(static_cast<IdleReason>(r)),
                formatNanoseconds(idle.total[r]).c_str(),
                100.0 * static_cast<double>(idle.total[r]) / static_cast<double>(all));
}

} // namespace planloom::cli
