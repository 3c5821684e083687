#include "app/cli/commands.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/interop/torch_schedule.h"
#include "engine/schedule/search/find_schedule.h"
#include "engine/schedule/search/placement_json.h"
#include "engine/schedule/search/placement_stages.h"
#include "engine/schedule/search/schedule_picture.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <map>

namespace planloom::cli {

namespace {

/// Which blocks recompute or offload, where they may.
void printChoices(const Placement &placement, const OptionChoices &choices)
{
    if (placement.options.empty() || choices.empty())
        return;
    std::map<std::string, std::string> blocks; // by what is chosen
    for (const MemoryOption &option : placement.options) {
        const std::int32_t choice = choices[static_cast<std::size_t>(option.block)];
        const std::string name =
            choice < 0 ? "keep" : nameOf(placement.options[static_cast<std::size_t>(choice)].kind);
        const std::string id =
            std::to_string(placement.blocks[static_cast<std::size_t>(option.block)].id) + " ";
        if (std::string &ids = blocks[name]; !(" " + ids).ends_with(" " + id))
            ids += id;
    }
    for (const auto &[name, ids] : blocks)
        std::printf("  %-14s block %s\n", name.c_str(), ids.c_str());
}

void printSchedule(const std::string &name, const Placement &placement, const ScheduleAnswer &answer)
{
    std::printf("%s: %s, %s\n", name.c_str(),
        counted(static_cast<std::int64_t>(placement.blocks.size()), "block").c_str(),
        counted(placement.devices, "device").c_str());
    const PeriodAnswer &period = answer.period;
    if (period.none)
        std::printf("  period         none: no steady state keeps the memory limit\n");
    else if (!period.schedule)
        std::printf("  period         none is below %lld\n", static_cast<long long>(period.bound));
    else if (period.proven())
        std::printf("  period         %lld, the shortest there is\n",
            static_cast<long long>(period.schedule->period));
    else
        std::printf("  period         %lld; none is below %lld\n",
            static_cast<long long>(period.schedule->period), static_cast<long long>(period.bound));
    if (answer.unit)
        std::printf("  unit           %d micro-batches in %lld, %.4g each\n", answer.unit->microBatches,
            static_cast<long long>(answer.unit->period),
            static_cast<double>(answer.unit->period) / answer.unit->microBatches);
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
    printChoices(placement, makespan.choices);
    if (answer.seconds > 0)
        std::printf("  searched in    %s\n", formatSeconds(answer.seconds).c_str());
}

} // namespace

namespace {

/// A schedule that is given rather than searched for.
struct GivenSchedule {
    StagePlacement stages{};
    std::int32_t microBatches = 1;
    std::vector<BlockStart> starts{};
    std::optional<TorchSchedule> torch{}; ///< As it was read, with what it communicates.
    std::vector<TorchRun> runs{}; ///< Of its actions, where it communicates.
};

/// What a search would say of it: figures, and bounds that hold for every schedule.
ScheduleAnswer answerOf(const Placement &placement, GivenSchedule given)
{
    ScheduleAnswer answer{.microBatches = given.microBatches};
    answer.period.bound = busiestQueue(placement);
    answer.figures = figuresOf(placement, given.starts);
    answer.makespan.makespan = answer.figures.makespan;
    answer.makespan.bound = makespanBound(placement, given.microBatches);
    answer.makespan.starts = std::move(given.starts);
    answer.status = answer.makespan.proven() ? ScheduleStatus::Optimal : ScheduleStatus::Feasible;
    return answer;
}

/// A file of torch.distributed.pipelining: forward blocks and both halves of backward blocks take one step
/// each.
Result<GivenSchedule> readCsv(const std::string &path)
{
    TRY(const std::string text, readFile(path));
    const auto inFile = [&](Error error) {
        error.where = path + ":" + error.where;
        return error;
    };
    const auto torch = readTorchSchedule(text);
    if (!torch)
        return inFile(torch.error());
    const auto computed = computedSchedule(*torch);
    if (!computed)
        return inFile(computed.error());
    std::vector<TorchRun> runs;
    if (communicates(*torch)) {
        auto ran = runTorchSchedule(*torch);
        if (!ran)
            return inFile(ran.error());
        runs = *std::move(ran);
    }
    const ScheduleSetting &setting = computed->setting;
    bool splits = false;
    for (const auto &rank : computed->schedule.ranks)
        for (const ScheduledBlock &block : rank)
            splits = splits || block.block.pass == SegmentKind::WeightGradient;
    GivenSchedule given{
        .stages = placementOf(setting, std::vector<StageBlocks>(setting.rankOf.size()), splits),
        .microBatches = setting.microBatches};
    auto starts = playSchedule(given.stages, computed->schedule, setting.microBatches);
    if (!starts)
        return inFile(starts.error());
    given.starts = *std::move(starts);
    given.torch = *torch;
    given.runs = std::move(runs);
    return given;
}

Result<GivenSchedule> fromTemplate(
    const std::string &name, const Placement &placement, std::int32_t microBatches)
{
    const auto kind = scheduleNamed(name);
    if (!kind)
        return Error{ErrorCode::InvalidInput, "there is no schedule \"" + name.substr(0, 40) + "\"",
            "known: " + scheduleNames(), "--template"};
    GivenSchedule given{.microBatches = microBatches};
    given.stages.placement = placement;
    given.stages.placement.options.clear(); // a template keeps everything
    TRY(given.starts, templateStarts(placement, *kind, microBatches));
    const auto violations = violationsOf(placement, microBatches, given.starts);
    if (!violations.empty())
        return Error{ErrorCode::ResourceLimit, violations.front().text,
            "raise the memory limit, take fewer micro-batches, or let the search find a schedule",
            "--template"};
    return given;
}

/// The name of an action's kind, without its stage and micro-batch: "F", "SEND_F".
std::string kindOf(const TorchAction &action)
{
    if (action.kind == TorchActionKind::Overlap)
        return "OVERLAP_F_B";
    const std::string text = toString(TorchAction{0, action.kind, -1, {}});
    return text.substr(1); // behind the stage
}

/// A schedule with what it communicates: lanes for what each rank computes, sends and gathers.
std::string communicationToSvg(const TorchSchedule &torch, const std::vector<TorchRun> &runs)
{
    std::map<std::pair<std::int32_t, TorchLane>, std::size_t> lanes;
    for (const TorchRun &run : runs)
        lanes[{run.rank, run.lane}] = 0;
    std::vector<std::string> names;
    for (auto &[lane, index] : lanes) {
        index = names.size();
        names.push_back("rank " + std::to_string(lane.first)
            + (lane.second == TorchLane::Compute ? "" : std::string(" ") + nameOf(lane.second)));
    }
    std::vector<PictureBox> boxes;
    for (const TorchRun &run : runs) {
        const TorchAction &action =
            *torch.ranks[static_cast<std::size_t>(run.rank)][static_cast<std::size_t>(run.field)];
        boxes.push_back({lanes.at({run.rank, run.lane}), run.start, run.end, kindOf(action),
            action.microBatch < 0 ? "" : std::to_string(action.microBatch), toString(action)});
    }
    return lanesToSvg(names, boxes);
}

/// Of the steps that a schedule takes with what it communicates.
std::int64_t stepsOf(const std::vector<TorchRun> &runs)
{
    std::int64_t last = 0;
    for (const TorchRun &run : runs)
        last = std::max(last, run.end);
    return last;
}

nlohmann::json communicationJson(const TorchSchedule &torch, const std::vector<TorchRun> &runs)
{
    nlohmann::json actions = nlohmann::json::array();
    for (const TorchRun &run : runs)
        actions.push_back({{"rank", run.rank}, {"lane", nameOf(run.lane)}, {"start", run.start},
            {"end", run.end},
            {"action",
                toString(
                    *torch.ranks[static_cast<std::size_t>(run.rank)][static_cast<std::size_t>(run.field)])}});
    return {{"makespan", stepsOf(runs)}, {"actions", std::move(actions)}};
}

/// The order of a schedule for PyTorch. One that was read stays as it is, with what it communicates, unless
/// the other format is asked for.
Result<void> writeCsv(const Arguments &arguments, const std::optional<TorchSchedule> &read,
    const Placement &placement, const ScheduleAnswer &answer)
{
    const bool communicated = read && communicates(*read);
    const std::string format = arguments.text("csv-format", communicated ? "compute_comms" : "compute_only");
    if (format != "compute_only" && format != "compute_comms")
        return Error{ErrorCode::InvalidInput, "\"" + format + "\" is no format of PyTorch's schedules",
            "known: compute_only, compute_comms", "--csv-format"};
    const bool communicating = format == "compute_comms";
    TorchSchedule torch;
    if (read) {
        torch = communicated && !communicating ? computationOf(*read) : *read;
    } else {
        TRY(const PipelineOfPlacement pipeline, pipelineOf(placement, answer.microBatches));
        TRY(torch, torchSchedule(scheduleOf(pipeline.stages, answer.makespan.starts)));
    }
    if (communicating && !communicated) {
        TRY(torch, withCommunication(torch));
    }
    return writeFile(arguments.text("csv"), writeTorchSchedule(torch));
}

Result<Placement> readPlacement(const Arguments &arguments, const std::string &path)
{
    TRY(const std::string text, readFile(path));
    auto read = placementFromJson(text);
    if (!read) {
        Error error = std::move(read).error();
        error.where = path + ": " + error.where;
        return error;
    }
    if (arguments.has("memory")) {
        TRY(const auto limit, arguments.integer("memory", 0, 0, kMostPlacementTime));
        read->memoryLimit.assign(static_cast<std::size_t>(read->devices), limit);
    }
    return read;
}

} // namespace

Result<int> runSchedule(const Arguments &arguments)
{
    const std::string &path = arguments.positional();
    Placement placement;
    ScheduleAnswer answer;
    std::optional<TorchSchedule> torch; // where one is read
    std::vector<TorchRun> runs; // where it communicates
    if (path.ends_with(".csv")) {
        for (const char *option : {"micro-batches", "memory", "template", "time-limit"})
            if (arguments.has(option))
                return Error{ErrorCode::InvalidInput, "a CSV file is a schedule already", {},
                    std::string("--") + option};
        TRY(GivenSchedule given, readCsv(path));
        placement = given.stages.placement;
        torch = std::move(given.torch);
        runs = std::move(given.runs);
        answer = answerOf(placement, std::move(given));
    } else {
        TRY(placement, readPlacement(arguments, path));
        ScheduleRequest request;
        if (arguments.has("micro-batches")) {
            TRY(const auto count, arguments.integer("micro-batches", 1, 1, 1 << 20));
            request.microBatches = static_cast<std::int32_t>(count);
        }
        TRY(request.seconds, arguments.real("time-limit", request.seconds));
        if (request.seconds <= 0)
            return Error{ErrorCode::InvalidInput, "expected a number of seconds above 0", {}, "--time-limit"};
        if (arguments.has("template")) {
            TRY(GivenSchedule given,
                fromTemplate(arguments.text("template"), placement,
                    request.microBatches.value_or(2 * placement.devices)));
            answer = answerOf(placement, std::move(given));
        } else {
            TRY(answer, findSchedule(placement, request));
        }
    }
    const Placement chosen = withOptions(placement, answer.makespan.choices);
    if (arguments.has("picture"))
        TRY_VOID(writeFile(arguments.text("picture"),
            runs.empty() ? scheduleToSvg(chosen, answer.makespan.starts) : communicationToSvg(*torch, runs)));
    if (arguments.has("csv"))
        TRY_VOID(writeCsv(arguments, torch, chosen, answer));
    if (arguments.has("json")) {
        nlohmann::json json = toJson(placement, answer);
        if (!runs.empty())
            json["communication"] = communicationJson(*torch, runs);
        std::cout << json.dump() << "\n";
    } else {
        printSchedule(path, placement, answer);
        if (!runs.empty())
            std::printf("  communicating  %lld steps, where a transfer, a gather and a reduction take one\n",
                static_cast<long long>(stepsOf(runs)));
    }
    return answer.status == ScheduleStatus::Infeasible || answer.status == ScheduleStatus::Unknown ? 1 : 0;
}

} // namespace planloom::cli
