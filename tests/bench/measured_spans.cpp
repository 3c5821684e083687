// The measured run of many ranks over its prediction, as Run > Open Measured Run… shows it: makes the log of
// a run of a plan for 1,024 devices, and says how long the first picture, the whole, and what was predicted
// take.
//
//     build/tests/bench/measured_spans FOLDER
//
// FOLDER is made and filled unless it is there.

#include "engine/design/make_plan.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/simulate/simulate.h"
#include "widgets/trace/trace_document.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using namespace planloom;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin)
{
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// About 2,000 spans on each device.
PlanAnswerSnapshot plannedAnswer()
{
    PlanRequest request;
    request.model =
        *openModel({"zoo:gpt?layers=16&hidden=1024&heads=16&seq=256&vocab=8192&batch=1024", {}, {}});
    request.gallery = "3d:dp=16,tp=8,pp=8,micro-batches=16,schedule=1f1b";
    request.target = {"dgx-h100:1024", {}, 1024};
    request.upTo = PlanGrade::Timed;
    const auto answer = planOf(request);
    if (answer)
        return *answer;
    std::fprintf(stderr, "%s\n", describe(answer.error()).c_str());
    return nullptr;
}

/// A run in which everything took a tenth longer.
bool writeLog(const fs::path &path, const ExecutionPlan &plan, const Cluster &cluster)
{
    const auto predicted = simulate(plan, cluster);
    std::ofstream stream(path);
    stream << event("hello").dump() << "\n";
    for (std::size_t d = 0; predicted && d < plan.devices.size(); ++d) {
        std::vector<LiveSpan> spans;
        for (std::size_t row = predicted->deviceBegin[d]; row < predicted->deviceBegin[d + 1]; ++row)
            spans.push_back({0, predicted->spans.segment[row], predicted->spans.instruction[row],
                predicted->spans.microBatch[row], predicted->spans.start[row] * 11 / 10,
                predicted->spans.duration[row] * 11 / 10});
        stream << liveEvent(static_cast<std::int32_t>(d), spans).dump() << "\n";
    }
    return predicted && stream;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "expected FOLDER\n");
        return 2;
    }
    const PlanAnswerSnapshot answer = plannedAnswer();
    if (!answer)
        return 1;
    const fs::path folder = argv[1];
    if (!fs::exists(folder)) {
        fs::create_directories(folder);
        if (!writeLog(folder / "log.jsonl", expandUnits(*answer->execution), answer->cluster))
            return 1;
    }
    fs::remove_all(folder / "cache"); // where what was read is kept for the next time
    ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
    TraceDocumentSnapshot whole;
    for (const bool isSample : {true, false}) {
        const auto begin = Clock::now();
        const auto document = openTraceDocument({folder / "log.jsonl"}, isSample, {});
        if (!document) {
            std::fprintf(stderr, "%s\n", describe(document.error()).c_str());
            return 1;
        }
        whole = *document;
        std::printf("%-14s %6.2f s, %zu ranks, %zu spans\n", isSample ? "first picture" : "whole",
            secondsSince(begin), whole->trace.ranks.size(), whole->trace.eventCount());
    }
    const auto begin = Clock::now();
    const auto match = matchTrace(*whole, *answer, {});
    if (!match) {
        std::fprintf(stderr, "%s\n", describe(match.error()).c_str());
        return 1;
    }
    std::int64_t left = 0;
    for (const MatchCount &count : (*match)->matched.counts)
        left += count.onlyPlan + count.onlyTrace;
    std::printf("%-14s %6.2f s, %lld spans unmatched\n", "over the plan", secondsSince(begin),
        static_cast<long long>(left));
    return left == 0 ? 0 : 1;
}
