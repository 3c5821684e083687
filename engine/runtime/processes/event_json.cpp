#include "engine/runtime/processes/event_json.h"

#include <array>
#include <limits>

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::array<const char *, 9> kCodeNames{"invalid-input", "not-supported", "not-found", "conflict",
    "resource-limit", "cancelled", "io", "check-failed", "internal"};

template<typename T> Json slice(const std::vector<T> &values, std::size_t begin, std::size_t end)
{
    Json array = Json::array();
    for (std::size_t i = begin; i < end; ++i)
        array.push_back(values[i]);
    return array;
}

} // namespace

const char *nameOf(ErrorCode code)
{
    return kCodeNames[static_cast<std::size_t>(code)];
}

ErrorCode errorCodeNamed(std::string_view name)
{
    for (std::size_t i = 0; i < kCodeNames.size(); ++i)
        if (name == kCodeNames[i])
            return static_cast<ErrorCode>(i);
    return ErrorCode::Internal;
}

std::optional<QueueKind> findQueue(std::string_view name)
{
    for (int q = 0; q < kQueueCount; ++q) {
        if (name == nameOf(static_cast<QueueKind>(q)))
            return static_cast<QueueKind>(q);
    }
    return {};
}

Json event(std::string_view type)
{
    return {{"v", 1}, {"t", std::string{type}}};
}

Json errorJson(const Error &error)
{
    return {{"code", nameOf(error.code)}, {"message", error.message}, {"advice", error.advice},
        {"where", error.where}};
}

Json errorEvent(const Error &error)
{
    Json made = event("error");
    made.update(errorJson(error));
    return made;
}

Error errorIn(const Json &event)
{
    return {errorCodeNamed(event.value("code", std::string{})), event.value("message", std::string{}),
        event.value("advice", std::string{}), event.value("where", std::string{})};
}

Json checkEvent(const CheckReport &report)
{
    Json made = event("check");
    made["ok"] = report.ok;
    made["worst"] = {
        {"tensor", report.worstTensor}, {"error", report.worstError}, {"allowed", report.allowed}};
    made["in_double"] = report.inDouble ? Json(*report.inDouble) : Json(nullptr);
    made["first_difference"] = report.firstDifference;
    return made;
}

CheckReport checkIn(const Json &event)
{
    const auto number = [](const Json &of, const char *member) -> std::optional<double> {
        const auto found = of.find(member);
        return found != of.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    const Json &worst = event.at("worst");
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN(); // which JSON does not have
    return {event.value("ok", false), worst.value("tensor", std::string{}),
        number(worst, "error").value_or(kNone), event.value("first_difference", std::string{}),
        number(worst, "allowed").value_or(0), number(event, "in_double")};
}

Json checkpointEvent(const SavedCheckpoint &saved)
{
    Json made = event("checkpoint");
    made["step"] = saved.step;
    made["path"] = saved.path;
    made["seconds"] = saved.seconds;
    return made;
}

Json spansEvent(const Timeline &timeline, std::int32_t device)
{
    const auto d = static_cast<std::size_t>(device);
    const std::size_t begin = timeline.deviceBegin[d];
    const std::size_t end = timeline.deviceBegin[d + 1];
    const SpanColumns &spans = timeline.spans;
    Json made = event("spans");
    made["device"] = device;
    made["step_nanoseconds"] = timeline.step.count();
    Json queues = Json::array();
    for (std::size_t i = begin; i < end; ++i)
        queues.push_back(nameOf(spans.queue[i]));
    made["queue"] = std::move(queues);
    made["segment"] = slice(spans.segment, begin, end);
    made["instruction"] = slice(spans.instruction, begin, end);
    made["micro_batch"] = slice(spans.microBatch, begin, end);
    made["start"] = slice(spans.start, begin, end);
    made["duration"] = slice(spans.duration, begin, end);
    const MemoryCurve &memory = timeline.memory[d];
    made["memory"] = {
        {"time", memory.time.values()}, {"bytes", memory.bytes.values()}, {"peak", memory.peak.count}};
    return made;
}

Json liveEvent(std::int32_t device, const std::vector<LiveSpan> &spans)
{
    Json made = event("live");
    made["device"] = device;
    const auto column = [&](const char *name, auto LiveSpan::*member) {
        Json values = Json::array();
        for (const LiveSpan &span : spans)
            values.push_back(span.*member);
        made[name] = std::move(values);
    };
    column("step", &LiveSpan::step);
    column("segment", &LiveSpan::segment);
    column("instruction", &LiveSpan::instruction);
    column("micro_batch", &LiveSpan::microBatch);
    column("start", &LiveSpan::start);
    column("duration", &LiveSpan::duration);
    return made;
}

Json deviceState(const ExecutionPlan &plan, std::int32_t device, std::int64_t issued, std::int64_t finished)
{
    Json state{{"device", device}, {"issued", issued}, {"finished", finished}};
    const auto place = placeOf(plan, device, issued);
    if (!place)
        return state;
    const Instruction &instruction = plan.devices[static_cast<std::size_t>(device)]
                                         .segments[static_cast<std::size_t>(place->segment)]
                                         .instructions[static_cast<std::size_t>(place->instruction)];
    state["step"] = place->step;
    state["segment"] = place->segment;
    state["instruction"] = place->instruction;
    state["micro_batch"] = place->microBatch;
    state["kind"] = nameOf(instruction.kind);
    state["operator"] = instruction.op.valid() ? plan.graph->at(instruction.op).name : std::string{};
    return state;
}

} // namespace planloom
