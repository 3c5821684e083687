#include "engine/traces/reading/run_log_reader.h"

#include "engine/base/text.h"
#include "engine/runtime/processes/run_event.h"
#include "engine/traces/trace_builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kLogBlock = std::size_t{256} << 10;
constexpr std::size_t kMostLine = std::size_t{256} << 20;
constexpr std::size_t kMostDevices = 65'536;

/// Spans by device, of the newest step that has any.
struct NewestSpans {
    std::int32_t step = -1;
    std::map<std::size_t, std::vector<std::pair<LiveSpan, std::uint64_t>>> devices{}; ///< With their line.

    void take(const RunEvent &event, std::uint64_t line)
    {
        if (event.device >= kMostDevices)
            return;
        for (const LiveSpan &span : event.spans) {
            if (span.step < step)
                continue;
            if (span.step > step) {
                step = span.step;
                devices.clear();
            }
            devices[event.device].emplace_back(span, line);
        }
    }
};

/// Whether a line of JSON has a key, which is a name that a colon follows.
bool hasKey(std::string_view line, std::string_view key)
{
    for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1))
        if (trimmed(line.substr(at + key.size())).starts_with(':'))
            return true;
    return false;
}

RankTrace traceOf(std::size_t device, std::size_t world, const std::string &where,
    const std::vector<std::pair<LiveSpan, std::uint64_t>> &spans)
{
    RankTraceBuilder builder(where);
    const std::uint32_t lane = builder.lane("instructions", false);
    const std::uint32_t name = builder.name("instruction of the plan");
    for (const auto &[span, line] : spans) {
        TraceEvent event{.start = span.start, .duration = span.duration};
        event.name = name;
        event.lane = lane;
        event.kind = TraceKind::Instruction;
        if (span.duration < 0) {
            builder.remark("the duration is negative", line);
            continue;
        }
        event.link = builder.instruction({span.step, span.segment, span.instruction, span.microBatch});
        builder.add(event, line);
    }
    builder.trace().rank = static_cast<std::int32_t>(device);
    builder.trace().world = static_cast<std::int32_t>(world);
    return std::move(builder).finish();
}

} // namespace

bool isRunLog(std::string_view beginning)
{
    beginning = trimmed(beginning);
    const std::string_view line = beginning.substr(0, beginning.find('\n'));
    return line.starts_with('{') && hasKey(line, "\"v\"") && hasKey(line, "\"t\"");
}

Result<std::vector<RankTrace>> readRunLog(
    TraceBytes &bytes, const std::string &where, const std::stop_token &stop, bool isSample)
{
    NewestSpans newest;
    std::string rest;
    std::vector<char> block(kLogBlock);
    std::uint64_t line = 0;
    int spanLines = 0;
    std::optional<TraceRemark> remark;
    const auto take = [&](std::string_view text) {
        ++line;
        if (trimmed(text).empty())
            return;
        const bool isObject = trimmed(text).starts_with('{');
        // Other events say nothing of when instructions ran.
        if (isObject && text.find("\"live\"") == std::string_view::npos
            && text.find("\"spans\"") == std::string_view::npos)
            return;
        const RunEvent event = isObject ? readRunEvent(text) : RunEvent{};
        spanLines += event.spans.empty() ? 0 : 1;
        if (!event.type.empty())
            newest.take(event, line);
        else if (remark)
            ++remark->count;
        else
            remark = TraceRemark{where + ":line:" + std::to_string(line), "a line is no event of a run"};
    };
    bool isWhole = false;
    while (!isSample || spanLines < kSampleLines) {
        if (stop.stop_requested())
            return cancelled();
        const auto count = bytes.read(block);
        if (!count)
            return count.error();
        if (*count == 0) {
            isWhole = true;
            break;
        }
        std::string_view fresh(block.data(), *count);
        for (std::size_t end = fresh.find('\n'); end != std::string_view::npos; end = fresh.find('\n')) {
            rest += fresh.substr(0, end);
            take(rest);
            rest.clear();
            fresh.remove_prefix(end + 1);
        }
        rest += fresh;
        if (rest.size() > kMostLine)
            return Error{ErrorCode::ResourceLimit, "a line has more than 256 MiB", {},
                where + ":line:" + std::to_string(line + 1)};
    }
    if (isWhole)
        take(rest);
    std::vector<RankTrace> ranks;
    for (const auto &[device, spans] : newest.devices)
        ranks.push_back(traceOf(device, newest.devices.size(), where, spans));
    for (RankTrace &rank : ranks)
        rank.isSample = !isWhole;
    if (ranks.empty()
        || std::all_of(ranks.begin(), ranks.end(), [](const RankTrace &rank) { return rank.events.empty(); }))
        return Error{ErrorCode::InvalidInput, "the log of a run has no spans of instructions",
            "start train.py with --log-file FILE --spans", where};
    if (remark)
        ranks.front().remarks.push_back(std::move(*remark));
    return ranks;
}

} // namespace planloom
