#include "engine/runtime/processes/run_event.h"

#include "engine/runtime/processes/event_json.h"

#include <algorithm>
#include <array>
#include <limits>

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

using Json = nlohmann::json;

double numberOrNaN(const Json &value)
{
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// Columns of a "live" or "spans" event as spans.
std::vector<LiveSpan> spansOf(const Json &event)
{
    const auto column = [&event](const char *name) -> const Json & { return event.at(name); };
    const Json &starts = column("start");
    const std::size_t count = starts.size();
    for (const char *name : {"segment", "instruction", "micro_batch", "duration"}) {
        if (column(name).size() != count)
            throw Json::other_error::create(
                500, std::string("columns of different length: ") + name, nullptr);
    }
    std::vector<LiveSpan> spans(count);
    for (std::size_t i = 0; i < count; ++i) {
        spans[i].segment = column("segment").at(i).get<std::int32_t>();
        spans[i].instruction = column("instruction").at(i).get<std::int32_t>();
        spans[i].microBatch = column("micro_batch").at(i).get<std::int32_t>();
        spans[i].start = starts.at(i).get<std::int64_t>();
        spans[i].duration = column("duration").at(i).get<std::int64_t>();
    }
    // The plan says which queue an instruction waits in; a column that could not have been written by a
    // runner says that the event is damaged. Records of older runs have none.
    if (const auto queues = event.find("queue"); queues != event.end()) {
        const bool known = queues->size() == count
            && std::all_of(queues->begin(), queues->end(),
                [](const Json &queue) { return findQueue(queue.get<std::string>()).has_value(); });
        if (!known)
            throw Json::other_error::create(500, "queues that there are not", nullptr);
    }
    if (const auto steps = event.find("step"); steps != event.end() && steps->size() == count) {
        for (std::size_t i = 0; i < count; ++i)
            spans[i].step = steps->at(i).get<std::int32_t>();
    }
    return spans;
}

MemoryCurve curveOf(const Json &memory)
{
    MemoryCurve curve;
    curve.time = memory.at("time").get<std::vector<std::int64_t>>();
    curve.bytes = memory.at("bytes").get<std::vector<std::array<std::int64_t, kMemoryKindCount>>>();
    if (curve.bytes.size() != curve.time.size() || !std::is_sorted(curve.time.begin(), curve.time.end()))
        throw Json::other_error::create(501, "a memory curve that does not fit itself", nullptr);
    for (const auto &kinds : curve.bytes) {
        std::int64_t total = 0;
        for (const std::int64_t bytes : kinds)
            total += bytes;
        if (total > curve.peak.count) {
            curve.peak.count = total;
            curve.atPeak = kinds;
        }
    }
    return curve;
}

std::vector<std::pair<std::size_t, RunDevice>> devicesOf(const Json &devices)
{
    std::vector<std::pair<std::size_t, RunDevice>> all;
    for (const Json &from : devices) {
        const auto device = from.value("device", std::int64_t{-1});
        if (device >= 0)
            all.push_back({static_cast<std::size_t>(device),
                {from.value("issued", std::int64_t{0}), from.value("finished", std::int64_t{0}),
                    from.value("step", 0), from.value("micro_batch", 0), from.value("kind", std::string{}),
                    from.value("operator", std::string{})}});
    }
    return all;
}

RunOutcome outcomeOf(const Json &event)
{
    RunOutcome outcome;
    outcome.firstStep = event.value("first_step", std::int64_t{0});
    outcome.checkpoint = event.value("checkpoint", std::string{});
    outcome.stopped = event.value("stopped", false);
    for (const Json &loss : event.value("losses", Json::array()))
        outcome.losses.push_back(numberOrNaN(loss));
    outcome.stepSeconds = event.value("step_seconds", std::vector<double>{});
    outcome.dropped = event.value("dropped", std::vector<std::int64_t>{});
    for (const Json &peak : event.at("peak_bytes"))
        outcome.peak.push_back({peak.get<std::int64_t>()});
    return outcome;
}

RunEvent eventOf(const Json &event)
{
    RunEvent read;
    read.type = event.value("t", std::string{});
    if (read.type == "step") {
        read.step = event.value("n", std::int64_t{0});
        read.loss = numberOrNaN(event.value("loss", Json(nullptr)));
        read.seconds = event.value("seconds", 0.0);
    } else if (read.type == "progress" || read.type == "stalled") {
        read.devices = devicesOf(event.at("devices"));
        read.seconds = event.value("seconds", 0.0);
        read.text = event.value("text", std::string{});
    } else if (read.type == "live" || read.type == "spans") {
        read.device = event.at("device").get<std::size_t>();
        read.spans = spansOf(event);
        if (read.type == "spans") {
            read.memory = curveOf(event.at("memory"));
            read.stepNanoseconds = event.value("step_nanoseconds", std::int64_t{0});
        }
    } else if (read.type == "check") {
        read.check = checkIn(event);
    } else if (read.type == "rank") {
        read.text = event.value("digest", std::string{});
    } else if (read.type == "warn") {
        read.text = event.value("text", std::string{});
    } else if (read.type == "error") {
        read.error = errorIn(event);
        read.devices = devicesOf(event.value("devices", Json::array()));
    } else if (read.type == "checkpoint" || read.type == "resumed") {
        read.step = event.value("step", std::int64_t{0});
        read.path = event.value("path", std::string{});
    } else if (read.type == "ready") {
        read.peakBytes = event.value("peak_bytes", std::vector<std::int64_t>{});
    } else if (read.type == "done") {
        read.outcome = outcomeOf(event);
        read.peakBytes = event.at("peak_bytes").get<std::vector<std::int64_t>>();
    }
    return read;
}

} // namespace

Result<RunEvent> runEventIn(const Json &event)
{
    try {
        return eventOf(event);
    } catch (const Json::exception &failure) {
        return Error{ErrorCode::InvalidInput, failure.what(), {}, {}};
    }
}

RunEvent readRunEvent(std::string_view line)
{
    RunEvent broken;
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) {
        broken.text = "the runner wrote a line that is no event: " + std::string(line.substr(0, 80));
        return broken;
    }
    auto read = runEventIn(event);
    if (read)
        return *std::move(read);
    broken.text = "an event of the runner is damaged: " + read.error().message;
    return broken;
}

} // namespace planloom
