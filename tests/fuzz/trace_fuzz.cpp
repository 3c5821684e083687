// Any bytes are refused with a place, or read as a trace whose events all are within bounds; what was read
// comes back from its index, and can be analysed.

#include "engine/traces/reading/kineto_reader.h"
#include "engine/traces/reading/run_log_reader.h"
#include "engine/traces/reading/trace_index.h"
#include "engine/traces/trace_analysis.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

void tryRanks(std::vector<RankTrace> ranks)
{
    const auto again = readTraceIndex(printTraceIndex(ranks, "key"), "key");
    require(again && *again == ranks);
    Trace trace;
    trace.ranks = std::move(ranks);
    const auto analysis = analyseTrace(trace);
    require(analysis.has_value());
    for (const RankTimes &times : analysis->ranks) {
        std::int64_t sum = times.compute;
        for (const std::int64_t part : times.idle)
            sum += part;
        require(sum == times.window);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    TraceBytes bytes(sourceOf(text), "trace.json");
    if (auto rank = readKineto(bytes, "trace.json"))
        tryRanks({*std::move(rank)});
    else
        require(rank.error().code != ErrorCode::Internal && !rank.error().message.empty());
    TraceBytes sampled(sourceOf(text), "trace.json");
    if (auto rank = sampleKineto(sampled, "trace.json"))
        require(rank->isSample && !rank->events.empty());
    TraceBytes logged(sourceOf(text), "log.jsonl");
    if (auto ranks = readRunLog(logged, "log.jsonl"))
        tryRanks(*std::move(ranks));
    require(!readTraceIndex(text, "key") || size > 20);
    return 0;
}
