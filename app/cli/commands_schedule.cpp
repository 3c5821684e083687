#include "app/cli/commands.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/search/schedule/find_schedule.h"
#include "engine/search/schedule/placement_json.h"
#include "engine/search/schedule/schedule_picture.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>

namespace planloom::cli {

namespace {

void printSchedule(const std::string &name, const Placement &placement, const ScheduleAnswer &answer)
{
    std::printf("%s: %s, %s\n", name.c_str(),
        counted(static_cast<std::int64_t>(placement.blocks.size()), "block").c_str(),
        counted(placement.devices, "device").c_str());
    const PeriodAnswer &period = answer.period;
    if (period.none)
        std::printf("  period         none: no steady state keeps the memory limit\n");
    else if (!period.schedule)
        std::printf("  period         none found in time; none is below %lld\n",
            static_cast<long long>(period.bound));
    else if (period.proven())
        std::printf("  period         %lld, the shortest there is\n",
            static_cast<long long>(period.schedule->period));
    else
        std::printf("  period         %lld; none is below %lld\n",
            static_cast<long long>(period.schedule->period), static_cast<long long>(period.bound));
    const std::string batches = counted(answer.microBatches, "micro-batch");
    const MakespanAnswer &makespan = answer.makespan;
    if (makespan.starts.empty()) {
        std::printf("  %s: %s\n", batches.c_str(),
            makespan.none ? "no schedule keeps the memory limit" : "no schedule found in time");
    } else {
        std::printf("  %s take %lld%s\n", batches.c_str(), static_cast<long long>(makespan.makespan),
            makespan.proven() ? ", the shortest there is"
                              : ("; nothing is below " + std::to_string(makespan.bound)).c_str());
        std::printf("  in flight      %d\n", answer.figures.inFlight);
        for (std::size_t d = 0; d < answer.figures.busy.size(); ++d)
            std::printf("  device %-7zu peak memory %lld, idle %.1f%%\n", d,
                static_cast<long long>(answer.figures.peakMemory[d]),
                100
                    - 100.0 * static_cast<double>(answer.figures.busy[d])
                        / static_cast<double>(makespan.makespan));
    }
    std::printf("  searched in    %s\n", formatSeconds(answer.seconds).c_str());
}

} // namespace

Result<int> runSchedule(const Arguments &arguments)
{
    const std::string &path = arguments.positional();
    TRY(const std::string text, readFile(path));
    auto read = placementFromJson(text);
    if (!read) {
        Error error = std::move(read).error();
        error.where = path + ": " + error.where;
        return error;
    }
    Placement placement = *std::move(read);
    if (arguments.has("memory")) {
        TRY(const auto limit, arguments.integer("memory", 0, 0, kMostPlacementTime));
        placement.memoryLimit.assign(static_cast<std::size_t>(placement.devices), limit);
    }
    ScheduleRequest request;
    if (arguments.has("micro-batches")) {
        TRY(const auto count, arguments.integer("micro-batches", 1, 1, 1 << 20));
        request.microBatches = static_cast<std::int32_t>(count);
    }
    TRY(request.seconds, arguments.real("time-limit", request.seconds));
    if (request.seconds <= 0)
        return Error{ErrorCode::InvalidInput, "expected a number of seconds above 0", {}, "--time-limit"};
    TRY(const auto answer, findSchedule(placement, request));
    if (arguments.has("picture")) {
        const std::string file = arguments.text("picture");
        std::ofstream stream(file, std::ios::binary | std::ios::trunc);
        if (!stream || !(stream << scheduleToSvg(placement, answer.makespan.starts)) || !stream.flush())
            return Error{ErrorCode::Io, "the picture cannot be written",
                "check that the folder exists and has room", file};
    }
    if (arguments.has("json"))
        std::cout << toJson(placement, answer).dump() << "\n";
    else
        printSchedule(path, placement, answer);
    return answer.status == ScheduleStatus::Infeasible || answer.status == ScheduleStatus::Unknown ? 1 : 0;
}

} // namespace planloom::cli
