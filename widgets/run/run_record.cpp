#include "widgets/run/run_record.h"

#include "engine/kernels/kernel.h"
#include "engine/runtime/live_timeline.h"
#include "engine/runtime/processes/event_json.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

using Json = nlohmann::json;

constexpr std::array<const char *, 8> kStates{
    "preparing", "loading", "running", "verifying", "done", "failed", "stopped", "interrupted"};

Json numberOrNull(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

double numberOf(const Json &value)
{
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

const char *nameOf(RunState state)
{
    return kStates[static_cast<std::size_t>(state)];
}

bool isOver(RunState state)
{
    return state >= RunState::Done;
}

Timeline measuredTimelineOf(const ExecutionPlan &plan, const ReportedStep &reported)
{
    Timeline timeline = timelineOfSpans(plan, reported.spans, Nanoseconds{reported.stepNanoseconds});
    for (std::size_t d = 0; d < timeline.memory.size() && d < reported.memory.size(); ++d)
        timeline.memory[d] = reported.memory[d];
    return timeline;
}

RunRecord::RunRecord(std::shared_ptr<const ExecutionPlan> plan, RunSetup chosen, double predicted)
    : setup(chosen)
    , predictedStepSeconds(predicted)
    , devices(plan ? plan->devices.size() : 0)
    , m_plan(std::move(plan))
    , m_live(devices.size())
    , m_reported{
          std::vector<std::vector<LiveSpan>>(devices.size()), std::vector<MemoryCurve>(devices.size()), 0}
{
}

void RunRecord::apply(RunEvent event)
{
    for (auto &[device, last] : event.devices) {
        if (device < devices.size())
            devices[device] = std::move(last);
    }
    if (event.type.empty()) {
        warnings.push_back(std::move(event.text));
    } else if (event.type == "load" || (event.type == "hello" && state == RunState::Preparing)) {
        state = RunState::Loading;
    } else if (event.type == "ready") {
        state = RunState::Running;
        peakBytes = std::move(event.peakBytes);
    } else if (event.type == "resumed") {
        firstStep = event.step;
    } else if (event.type == "checkpoint") {
        checkpoint = std::move(event.path);
        checkpointStep = event.step;
    } else if (event.type == "finishing") {
        finishing = true;
    } else if (event.type == "step") {
        losses.push_back(event.loss);
        stepSeconds.push_back(event.seconds);
        if (static_cast<std::int32_t>(losses.size()) >= setup.steps && setup.check)
            state = RunState::Verifying;
    } else if (event.type == "progress") {
        stalled.clear();
    } else if (event.type == "live") {
        if (event.device >= devices.size())
            return;
        for (const LiveSpan &span : event.spans) {
            keep(event.device, span);
            if (span.step > m_liveStep) { // the next step has begun: the last one makes room
                m_liveStep = span.step;
                m_liveCount = 0;
                for (auto &spans : m_live)
                    spans.clear();
            }
            if (span.step == m_liveStep) {
                m_live[event.device].push_back(span);
                ++m_liveCount;
            }
        }
    } else if (event.type == "spans") {
        if (event.device >= devices.size())
            return;
        m_reported.spans[event.device] = std::move(event.spans);
        m_reported.memory[event.device] = std::move(event.memory);
        m_reported.stepNanoseconds = event.stepNanoseconds;
        ++m_reportedDevices;
    } else if (event.type == "check") {
        check = event.check;
    } else if (event.type == "warn") {
        warnings.push_back(std::move(event.text));
    } else if (event.type == "stalled") {
        stalled = "no progress for " + std::to_string(static_cast<int>(event.seconds)) + " s: " + event.text
            + ". Stop the run if it does not go on.";
    } else if (event.type == "cancelling") {
        cancelling = true;
    } else if (event.type == "error") {
        error = event.error;
        state = error->code == ErrorCode::Cancelled ? RunState::Stopped : RunState::Failed;
    } else if (event.type == "done") {
        peakBytes = std::move(event.peakBytes);
        state = event.outcome.stopped ? RunState::Stopped : RunState::Done;
    }
}

/// Devices don't go on to the next step together: spans of the last one still arrive.
void RunRecord::keep(std::size_t device, const LiveSpan &span)
{
    if (span.step < 0 || span.step >= setup.steps || m_keptSpans >= kMostKeptSpans)
        return;
    const auto step = static_cast<std::size_t>(span.step);
    if (step >= m_steps.size()) {
        m_steps.resize(step + 1);
        m_growing.resize(step + 1);
    }
    std::shared_ptr<StepSpans> &spans = m_growing[step];
    if (!spans || spans.use_count() > 2) { // someone reads it
        spans = spans ? std::make_shared<StepSpans>(*spans) : std::make_shared<StepSpans>(devices.size());
        m_steps[step] = spans;
    }
    (*spans)[device].push_back(span);
    ++m_keptSpans;
}

std::optional<ReportedStep> RunRecord::takeReported()
{
    if (devices.empty() || m_reportedDevices < devices.size())
        return {};
    m_reportedDevices = 0;
    return std::exchange(m_reported, {});
}

std::optional<ReportedStep> RunRecord::takeLive()
{
    if (state != RunState::Done || m_measured || m_liveCount == 0)
        return {};
    m_liveCount = 0;
    return ReportedStep{std::exchange(m_live, {}), {}, 0};
}

void RunRecord::end(const std::optional<Error> &problem)
{
    stalled.clear();
    if (isOver(state))
        return;
    if (cancelling) {
        state = RunState::Stopped;
        return;
    }
    state = RunState::Failed;
    error = problem ? *problem : Error{ErrorCode::Internal, "the runner ended without a word", {}, {}};
}

double RunRecord::measuredStepSeconds() const
{
    if (stepSeconds.empty())
        return 0;
    const std::size_t first = stepSeconds.size() > 1 ? 1 : 0;
    double sum = 0;
    for (std::size_t i = first; i < stepSeconds.size(); ++i)
        sum += stepSeconds[i];
    return sum / static_cast<double>(stepSeconds.size() - first);
}

std::string RunRecord::measuredOver() const
{
    if (stepSeconds.empty())
        return {};
    const auto last = firstStep + static_cast<std::int64_t>(stepSeconds.size());
    const std::int64_t first = firstStep + (stepSeconds.size() > 1 ? 2 : 1);
    return first == last ? "step " + std::to_string(last)
                         : "mean of steps " + std::to_string(first) + "-" + std::to_string(last);
}

std::string RunRecord::sentence() const
{
    switch (state) {
    case RunState::Preparing:
        return setup.backend == RunBackend::Torch ? "exporting the plan, starting PyTorch"
                                                  : "writing the plan for the runner";
    case RunState::Loading:
        return "loading weights";
    case RunState::Running:
        if (cancelling)
            return "stopping";
        if (!stalled.empty())
            return stalled;
        if (finishing)
            return "ends behind this step, with a checkpoint; Stop again ends it now";
        return "step "
            + std::to_string(
                firstStep + std::min<std::int64_t>(static_cast<std::int64_t>(losses.size()) + 1, setup.steps))
            + " of " + std::to_string(firstStep + setup.steps);
    case RunState::Verifying:
        return cancelling ? "stopping" : "comparing with the unpartitioned model";
    case RunState::Done:
        if (check)
            return check->ok ? "done, equal to the unpartitioned model"
                             : "done, but " + check->worstTensor + " differs from the unpartitioned model";
        return "done";
    case RunState::Failed:
        return error ? "failed: " + error->message : "failed";
    case RunState::Interrupted:
        return "interrupted: Planloom ended while this run went on";
    case RunState::Stopped:
        return "stopped after " + counted(static_cast<std::int64_t>(losses.size()), "step")
            + (checkpoint.empty()
                    ? std::string{}
                    : "; Continue goes on from the checkpoint of step " + std::to_string(checkpointStep));
    }
    return {};
}

std::string RunRecord::toJson() const
{
    Json all{{"state", nameOf(state)}, {"steps", setup.steps}, {"check_wanted", setup.check},
        {"live", setup.live}, {"seed", setup.seed}, {"ranks", setup.ranks},
        {"backend", planloom::nameOf(setup.backend)}, {"python", setup.python},
        {"predicted_step_seconds", predictedStepSeconds}, {"step_seconds", stepSeconds},
        {"peak_bytes", peakBytes}, {"warnings", warnings}, {"devices", devices.size()},
        {"training", planloom::toJson(setup.training)}, {"first_step", firstStep}, {"checkpoint", checkpoint},
        {"checkpoint_step", checkpointStep}};
    all["losses"] = Json::array();
    for (const double loss : losses)
        all["losses"].push_back(numberOrNull(loss));
    if (check) {
        all["check"] = {{"ok", check->ok}, {"tensor", check->worstTensor},
            {"error", numberOrNull(check->worstError)}, {"first_difference", check->firstDifference}};
    }
    if (error)
        all["error"] = errorJson(*error);
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RunRecord> RunRecord::fromJson(std::string_view text)
{
    const Json all = Json::parse(text, nullptr, false);
    if (!all.is_object())
        return Error{
            ErrorCode::InvalidInput, "the record of this run is damaged: it is no JSON object", {}, "run"};
    try {
        RunRecord record;
        const std::string name = all.at("state").get<std::string>();
        const auto found = std::find(kStates.begin(), kStates.end(), name);
        if (found == kStates.end())
            return Error{ErrorCode::InvalidInput,
                "the record of this run has an unknown state \"" + name + "\"", {}, "run"};
        record.state = static_cast<RunState>(found - kStates.begin());
        record.setup = {all.value("steps", 1), all.value("check_wanted", false), all.value("live", true),
            all.value("seed", std::int64_t{1}), all.value("ranks", 1), {}};
        record.setup.backend =
            backendNamed(all.value("backend", std::string{"cpu"})).value_or(RunBackend::Cpu);
        record.setup.python = all.value("python", std::string{});
        if (const auto training = all.find("training"); training != all.end()) {
            TRY(record.setup.training, trainingRunFromJson(*training));
        }
        record.firstStep = all.value("first_step", std::int64_t{0});
        record.checkpoint = all.value("checkpoint", std::string{});
        record.checkpointStep = all.value("checkpoint_step", std::int64_t{0});
        record.predictedStepSeconds = all.value("predicted_step_seconds", 0.0);
        record.stepSeconds = all.at("step_seconds").get<std::vector<double>>();
        record.peakBytes = all.at("peak_bytes").get<std::vector<std::int64_t>>();
        record.warnings = all.at("warnings").get<std::vector<std::string>>();
        const auto devices = all.value("devices", std::int64_t{0});
        if (devices < 0 || devices > 65536)
            return Error{ErrorCode::InvalidInput,
                "the record of this run has an impossible number of devices", {}, "run"};
        record.devices.resize(static_cast<std::size_t>(devices));
        for (const Json &loss : all.at("losses"))
            record.losses.push_back(numberOf(loss));
        if (const auto check = all.find("check"); check != all.end()) {
            record.check = CheckReport{check->value("ok", false), check->value("tensor", std::string{}),
                numberOf(check->value("error", Json(nullptr))),
                check->value("first_difference", std::string{})};
        }
        if (const auto error = all.find("error"); error != all.end())
            record.error = errorIn(*error);
        return record;
    } catch (const Json::exception &failure) {
        return Error{ErrorCode::InvalidInput,
            std::string("the record of this run is damaged: ") + failure.what(), {}, "run"};
    }
}

std::string measuredJson(const Timeline &timeline)
{
    Json all = Json::array();
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d)
        all.push_back(spansEvent(timeline, static_cast<std::int32_t>(d)));
    return all.dump();
}

Result<Timeline> measuredFromJson(std::string_view json, const ExecutionPlan &plan)
{
    const Json all = Json::parse(json, nullptr, false);
    if (!all.is_array() || all.size() != plan.devices.size())
        return Error{ErrorCode::InvalidInput, "the spans of this run do not belong to the plan of its rows",
            {}, "run"};
    ReportedStep reported{
        std::vector<std::vector<LiveSpan>>(all.size()), std::vector<MemoryCurve>(all.size()), 0};
    for (const Json &one : all) {
        auto event = runEventIn(one);
        if (!event || event->type != "spans" || event->device >= all.size())
            return Error{ErrorCode::InvalidInput,
                "the spans of this run are damaged: "
                    + (event ? std::string{} : "an event of the runner is damaged: " + event.error().message),
                {}, "run"};
        reported.stepNanoseconds = event->stepNanoseconds;
        reported.spans[event->device] = std::move(event->spans);
        reported.memory[event->device] = std::move(event->memory);
    }
    return measuredTimelineOf(plan, reported);
}

OperatorStepTimes operatorTimes(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured)
{
    OperatorStepTimes times;
    const auto sum = [&plan](const Timeline &timeline) {
        std::vector<double> seconds(plan.graph->operators.size(), 0);
        const SpanColumns &spans = timeline.spans;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            const DeviceProgram &program = plan.devices[static_cast<std::size_t>(spans.device[row])];
            const Instruction &instruction =
                program.segments[static_cast<std::size_t>(spans.segment[row])]
                    .instructions[static_cast<std::size_t>(spans.instruction[row])];
            if (instruction.kind == InstructionKind::Kernel && instruction.op.valid())
                seconds[static_cast<std::size_t>(instruction.op.index)] +=
                    static_cast<double>(spans.duration[row]) * 1e-9;
        }
        return seconds;
    };
    times.predicted = sum(predicted);
    times.measured = sum(measured);
    return times;
}

} // namespace planloom
