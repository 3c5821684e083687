#include "app/cli/trace_report.h"

#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kPrintedRanks = 8;
constexpr std::size_t kPrintedGroups = 6;
constexpr std::size_t kPrintedCollectives = 5;
constexpr std::size_t kPrintedNames = 6;

double secondsOf(std::int64_t nanoseconds)
{
    return static_cast<double>(nanoseconds) * 1e-9;
}

std::string shortened(const std::string &text, std::size_t most)
{
    return text.size() > most ? text.substr(0, most - 3) + "..." : text;
}

json remarksJson(const Trace &trace)
{
    json list = json::array();
    const auto add = [&](const TraceRemark &remark) {
        list.push_back({{"where", remark.where}, {"text", remark.text}, {"count", remark.count}});
    };
    std::for_each(trace.remarks.begin(), trace.remarks.end(), add);
    for (const RankTrace &rank : trace.ranks)
        std::for_each(rank.remarks.begin(), rank.remarks.end(), add);
    return list;
}

json rankJson(const RankTrace &rank, const RankTimes &times, const ClockAlignment &clocks, std::size_t index)
{
    json steps = json::array();
    for (const TraceStep &step : times.steps)
        steps.push_back({{"number", step.number}, {"seconds", secondsOf(step.end - step.begin)}});
    json idle = json::object();
    for (std::size_t i = 0; i < kTraceIdleCount; ++i) {
        std::string key = nameOf(static_cast<TraceIdle>(i));
        std::replace(key.begin(), key.end(), ' ', '_');
        idle[key + "_seconds"] = secondsOf(times.idle[i]);
    }
    return {{"rank", rank.rank}, {"file", rank.file}, {"events", rank.events.size()},
        {"lanes", rank.lanes.size()}, {"on_host", rank.isOnHost}, {"is_sample", rank.isSample},
        {"window_seconds", secondsOf(times.window)}, {"compute_seconds", secondsOf(times.compute)},
        {"exposed_communication_seconds", secondsOf(times.exposed)},
        {"hidden_communication_seconds", secondsOf(times.hidden)}, {"idle", idle},
        {"made_wait_seconds", secondsOf(times.madeWait)}, {"came_last", times.cameLast}, {"steps", steps},
        {"clock_offset_seconds", secondsOf(clocks.offset[index])}};
}

json groupJson(const JoinedGroup &group)
{
    return {{"name", group.name}, {"description", group.description}, {"ranks", group.ranks},
        {"size", group.size}};
}

const JoinedCollective &collectiveOf(const TraceAnalysis &analysis, const CollectiveTimes &times)
{
    return analysis.joined.collectives[times.collective];
}

json collectiveJson(const TraceAnalysis &analysis, const CollectiveTimes &times, std::int64_t begin)
{
    const JoinedCollective &each = collectiveOf(analysis, times);
    return {{"kind", nameOf(each.kind)}, {"group", each.group}, {"sequence", each.sequence},
        {"bytes", each.bytes}, {"members", each.end - each.begin},
        {"start_seconds", secondsOf(times.firstArrival - begin)}, {"seconds", secondsOf(times.duration())},
        {"transfer_seconds", secondsOf(times.transfer())}, {"waited_seconds", secondsOf(times.waited)},
        {"came_last", times.lastRank}};
}

std::int64_t beginOf(const TraceAnalysis &analysis)
{
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < analysis.ranks.size(); ++r) {
        const std::int64_t own = analysis.ranks[r].begin + analysis.clocks.offset[r];
        begin = r == 0 ? own : std::min(begin, own);
    }
    return begin;
}

/// The rank that came last most often, with how often: "rank 3 last 12 of 20 times".
std::string lastWords(const GroupTimes &group)
{
    const auto most = std::max_element(group.cameLast.begin(), group.cameLast.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    if (most == group.cameLast.end())
        return {};
    return "rank " + std::to_string(most->first) + " last " + std::to_string(most->second) + " of "
        + std::to_string(group.count);
}

void printRank(const RankTrace &rank, const RankTimes &times)
{
    const auto percent = [&](std::int64_t part) {
        return times.window > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(times.window) : 0.0;
    };
    std::printf("  %5d %10s %8.1f%% %8.1f%% %8.1f%% %8.1f%% %8.1f%% %8.1f%% %10s\n", rank.rank,
        formatNanoseconds(times.window).c_str(), percent(times.compute), percent(times.hidden),
        percent(times[TraceIdle::Communication]), percent(times[TraceIdle::LatePeer]),
        percent(times[TraceIdle::Host]), percent(times[TraceIdle::Other]),
        formatNanoseconds(times.madeWait).c_str());
}

void printRanks(const Trace &trace, const TraceAnalysis &analysis)
{
    std::printf("  %5s %10s %9s %9s %9s %9s %9s %9s %10s\n", "rank", "window", "compute", "hidden", "exposed",
        "late peer", "host", "other", "made wait");
    std::vector<std::size_t> order(trace.ranks.size());
    for (std::size_t r = 0; r < order.size(); ++r)
        order[r] = r;
    if (order.size() > kPrintedRanks)
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return analysis.ranks[a].madeWait > analysis.ranks[b].madeWait;
        });
    for (std::size_t i = 0; i < std::min(order.size(), kPrintedRanks); ++i)
        printRank(trace.ranks[order[i]], analysis.ranks[order[i]]);
    if (order.size() > kPrintedRanks)
        std::printf("  ... %zu more ranks, which make others wait less\n", order.size() - kPrintedRanks);
}

/// Groups, the slowest collectives, and what takes longest.
void printCollectives(const TraceAnalysis &analysis)
{
    for (std::size_t i = 0; i < std::min(kPrintedGroups, analysis.groups.size()); ++i) {
        const GroupTimes &each = analysis.groups[i];
        std::printf("  %-14s %s x %lld: %s, waited %s; %s\n", nameOf(each.kind),
            shortened(analysis.joined.groups[each.group].words(), 30).c_str(),
            static_cast<long long>(each.count), formatNanoseconds(each.transfer).c_str(),
            formatNanoseconds(each.waited).c_str(), lastWords(each).c_str());
    }
    if (!analysis.collectives.empty())
        std::printf("  slowest collectives:\n");
    const std::int64_t begin = beginOf(analysis);
    for (std::size_t i = 0; i < std::min(kPrintedCollectives, analysis.collectives.size()); ++i) {
        const CollectiveTimes &times = analysis.collectives[i];
        const JoinedCollective &each = collectiveOf(analysis, times);
        std::printf("    %-14s %s, %s at %s: %s, rank %d last by %s\n", nameOf(each.kind),
            shortened(analysis.joined.groups[each.group].words(), 24).c_str(),
            each.bytes >= 0 ? formatBytes(Bytes{each.bytes}).c_str() : "? B",
            formatNanoseconds(times.firstArrival - begin).c_str(),
            formatNanoseconds(times.duration()).c_str(), times.lastRank,
            formatNanoseconds(times.lastArrival - times.firstArrival).c_str());
    }
    if (!analysis.names.empty())
        std::printf("  longest by name, all ranks:\n");
    for (std::size_t i = 0; i < std::min(kPrintedNames, analysis.names.size()); ++i)
        std::printf("    %10s %8s  %s\n", formatNanoseconds(analysis.names[i].nanoseconds).c_str(),
            formatCount(analysis.names[i].count).c_str(), shortened(analysis.names[i].name, 70).c_str());
}

} // namespace

json traceToJson(const Trace &trace, const TraceAnalysis &analysis)
{
    json ranks = json::array();
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
        ranks.push_back(rankJson(trace.ranks[r], analysis.ranks[r], analysis.clocks, r));
    json groups = json::array();
    for (const JoinedGroup &group : analysis.joined.groups)
        groups.push_back(groupJson(group));
    json byGroup = json::array();
    for (const GroupTimes &each : analysis.groups) {
        json last = json::object();
        for (const auto &[rank, count] : each.cameLast)
            last[std::to_string(rank)] = count;
        byGroup.push_back({{"group", each.group}, {"kind", nameOf(each.kind)}, {"count", each.count},
            {"bytes", each.bytes}, {"transfer_seconds", secondsOf(each.transfer)},
            {"waited_seconds", secondsOf(each.waited)}, {"came_last", last}});
    }
    const std::int64_t begin = beginOf(analysis);
    json collectives = json::array();
    for (const CollectiveTimes &each : analysis.collectives)
        collectives.push_back(collectiveJson(analysis, each, begin));
    json names = json::array();
    for (const NameTimes &each : analysis.names)
        names.push_back({{"name", each.name}, {"kind", nameOf(each.kind)}, {"count", each.count},
            {"seconds", secondsOf(each.nanoseconds)}});
    const auto straggler = stragglerOf(analysis);
    return {{"ranks", ranks}, {"groups", groups}, {"by_group", byGroup}, {"collectives", collectives},
        {"names", names}, {"events", trace.eventCount()}, {"joined", analysis.collectives.size()},
        {"not_joined", analysis.joined.alone},
        {"clock_residual_seconds", secondsOf(analysis.clocks.residual)},
        {"clocks_adjusted", analysis.clocks.isAdjusted},
        {"straggler", straggler ? json(trace.ranks[*straggler].rank) : json(nullptr)},
        {"remarks", remarksJson(trace)}};
}

void printTrace(const Trace &trace, const TraceAnalysis &analysis, bool isBrief)
{
    std::printf("%s of %s, %s events\n",
        counted(static_cast<std::int64_t>(trace.ranks.size()), "rank").c_str(),
        trace.ranks.front().isOnHost ? "a run on CPUs" : "a run",
        formatCount(static_cast<std::int64_t>(trace.eventCount())).c_str());
    std::size_t steps = SIZE_MAX;
    std::int64_t stepSum = 0;
    for (const RankTimes &times : analysis.ranks) {
        steps = std::min(steps, times.steps.size());
        stepSum += times.steps.empty() ? 0 : times.window / static_cast<std::int64_t>(times.steps.size());
    }
    if (steps > 0)
        std::printf("  steps          %zu, %s in the mean\n", steps,
            formatNanoseconds(stepSum / static_cast<std::int64_t>(analysis.ranks.size())).c_str());
    if (!analysis.collectives.empty())
        std::printf("  collectives    %s joined over ranks, %s of one rank alone; their ends are %s apart in "
                    "the median%s\n",
            formatCount(static_cast<std::int64_t>(analysis.collectives.size())).c_str(),
            formatCount(analysis.joined.alone).c_str(), formatNanoseconds(analysis.clocks.residual).c_str(),
            analysis.clocks.isAdjusted ? ", clocks set against each other" : "");
    printRanks(trace, analysis);
    if (const auto straggler = stragglerOf(analysis))
        std::printf("  straggler      rank %d makes others wait %s\n", trace.ranks[*straggler].rank,
            formatNanoseconds(analysis.ranks[*straggler].madeWait).c_str());
    if (!isBrief)
        printCollectives(analysis);
}

std::string traceCsv(const Trace &trace, const TraceAnalysis &analysis)
{
    std::string text =
        "rank,window_seconds,compute_seconds,hidden_communication_seconds,exposed_communication_seconds,"
        "late_peer_seconds,host_seconds,other_seconds,made_wait_seconds,came_last,steps\n";
    char line[256];
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        const RankTimes &times = analysis.ranks[r];
        std::snprintf(line, sizeof line, "%d,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%lld,%zu\n",
            trace.ranks[r].rank, secondsOf(times.window), secondsOf(times.compute), secondsOf(times.hidden),
            secondsOf(times.exposed), secondsOf(times[TraceIdle::LatePeer]),
            secondsOf(times[TraceIdle::Host]), secondsOf(times[TraceIdle::Other]), secondsOf(times.madeWait),
            static_cast<long long>(times.cameLast), times.steps.size());
        text += line;
    }
    return text;
}

json differenceToJson(const TraceDifference &difference)
{
    const auto listOf = [](const std::vector<NameDifference> &all) {
        json list = json::array();
        for (const NameDifference &each : all) {
            list.push_back({{"kind", nameOf(each.kind)}, {"count_a", each.countA}, {"count_b", each.countB},
                {"a_seconds", each.a}, {"b_seconds", each.b}, {"difference_seconds", each.delta()}});
            if (!each.name.empty())
                list.back()["name"] = each.name;
        }
        return list;
    };
    json events = json::array();
    for (const EventDifference &each : difference.events)
        events.push_back({{"name", each.name}, {"kind", nameOf(each.kind)}, {"rank_a", each.rankA},
            {"rank_b", each.rankB}, {"ordinal", each.ordinal}, {"a_seconds", secondsOf(each.a)},
            {"b_seconds", secondsOf(each.b)}});
    return {{"per_step", difference.isPerStep}, {"kinds", listOf(difference.kinds)},
        {"names", listOf(difference.names)}, {"events", events}, {"aligned", difference.aligned},
        {"only_a", difference.onlyA}, {"only_b", difference.onlyB}};
}

void printDifference(const TraceDifference &difference)
{
    const auto line = [](const NameDifference &each, const std::string &title) {
        std::printf("  %10s %10s %11s %7lld %7lld  %s\n", formatSeconds(each.a).c_str(),
            formatSeconds(each.b).c_str(),
            ((each.delta() > 0 ? "+" : "") + formatSeconds(each.delta())).c_str(),
            static_cast<long long>(each.countA), static_cast<long long>(each.countB), title.c_str());
    };
    std::printf("  %10s %10s %11s %7s %7s  %s\n", "A", "B", "difference", "count", "count",
        difference.isPerStep ? "of a rank and step" : "of a rank");
    for (const NameDifference &each : difference.kinds)
        line(each, std::string("all ") + nameOf(each.kind));
    for (std::size_t i = 0; i < std::min<std::size_t>(12, difference.names.size()); ++i)
        line(difference.names[i], shortened(difference.names[i].name, 60));
    std::printf("  %s events have a counterpart of their name; %s only in A, %s only in B\n",
        formatCount(difference.aligned).c_str(), formatCount(difference.onlyA).c_str(),
        formatCount(difference.onlyB).c_str());
    for (std::size_t i = 0; i < std::min<std::size_t>(4, difference.events.size()); ++i) {
        const EventDifference &each = difference.events[i];
        std::printf("    %s, then %s: the %lldth of rank %d, %s\n", formatNanoseconds(each.a).c_str(),
            formatNanoseconds(each.b).c_str(), static_cast<long long>(each.ordinal), each.rankB,
            shortened(each.name, 60).c_str());
    }
}

void printRemarks(const Trace &trace)
{
    std::vector<TraceRemark> all = trace.remarks;
    for (const RankTrace &rank : trace.ranks)
        all.insert(all.end(), rank.remarks.begin(), rank.remarks.end());
    std::stable_sort(
        all.begin(), all.end(), [](const TraceRemark &a, const TraceRemark &b) { return a.count > b.count; });
    constexpr std::size_t kPrinted = 6;
    for (std::size_t i = 0; i < std::min(kPrinted, all.size()); ++i)
        std::fprintf(stderr, "not read: %s: %s (%s)\n", all[i].where.c_str(), all[i].text.c_str(),
            counted(all[i].count, "time").c_str());
    if (all.size() > kPrinted)
        std::fprintf(stderr, "not read: %zu more reasons; --json has them all\n", all.size() - kPrinted);
}

} // namespace planloom::cli
