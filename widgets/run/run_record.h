#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/machine/gpu_fit.h"
#include "engine/runtime/machine/throughput.h"
#include "engine/runtime/processes/run_event.h"
#include "engine/simulate/timeline.h"
#include "widgets/run/run_analysis.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// How a run is set up by a person.
struct RunSetup {
    std::int32_t steps = 3;
    bool check = true; ///< Compare with the unpartitioned model.
    bool live = true; ///< Show spans while it runs.
    std::int64_t seed = 1; ///< Of drawn inputs and dropout.
    std::int32_t ranks = 1; ///< Processes that hold the devices; at most one a device.
    TrainingRun training{}; ///< Data, learning rate, checkpoints.
    /// With Cuda and Torch there is a process for each device, whatever `ranks`.
    RunBackend backend = RunBackend::Cpu;
    std::string python{}; ///< With Torch: the interpreter,
    std::string pythonSaid{}; ///< and what it printed when it was asked (torch_probe.h); not stored.
    friend bool operator==(const RunSetup &, const RunSetup &) = default;
};

/// Where a run stands. In this order, but for the last four; interrupted ones were under way when the program
/// ended.
enum class RunState : std::uint8_t {
    Preparing,
    Loading,
    Running,
    Verifying,
    Done,
    Failed,
    Stopped,
    Interrupted
};
const char *nameOf(RunState state); ///< "preparing" ...; stored in sessions.
bool isOver(RunState state);

/// All spans and memory curves of the last step, as a run reports them in the end.
struct ReportedStep {
    std::vector<std::vector<LiveSpan>> spans{}; ///< By device.
    std::vector<MemoryCurve> memory{};
    std::int64_t stepNanoseconds = 0;
};
/// As a timeline of `plan`. O(spans + instructions): for a worker.
Timeline measuredTimelineOf(const ExecutionPlan &plan, const ReportedStep &reported);

/// Everything known of a run, from its events (engine/runtime/processes/event_json.h). Without Qt; a value.
class RunRecord
{
public:
    RunRecord() = default;
    RunRecord(std::shared_ptr<const ExecutionPlan> plan, RunSetup setup, double predictedStepSeconds);

    /// Takes one event; unknown ones are passed by. Quick, whatever its size.
    void apply(RunEvent event);
    /// The process ended; `error` if it ended badly without saying so.
    void end(const std::optional<Error> &error);
    static constexpr std::size_t kMostKeptSpans = 1'000'000; ///< Of all steps together.

    RunState state = RunState::Preparing;
    RunSetup setup{};
    double predictedStepSeconds = 0;
    std::vector<double> losses{}; ///< One a step done; NaN where it was.
    std::vector<double> stepSeconds{};
    std::vector<std::int64_t> peakBytes{}; ///< By device, from the first step on.
    std::vector<std::string> warnings{};
    std::optional<CheckReport> check{};
    std::optional<Error> error{};
    std::vector<RunDevice> devices{};
    std::string stalled{}; ///< Which device waits at what; empty while all goes on.
    bool cancelling = false;
    bool finishing = false; ///< Asked to end behind its step, with a checkpoint.
    std::int64_t firstStep = 0; ///< Steps that the checkpoint had which it was resumed from.
    std::string checkpoint{}; ///< The last one written; empty for none.
    std::int64_t checkpointStep = 0; ///< Steps done in it.
    StepWork work{}; ///< Of a step.
    double fastestRate = 0; ///< Of this machine as measured, in FLOP/s; 0 if unknown.

    const std::shared_ptr<const ExecutionPlan> &plan() const { return m_plan; }
    /// The step whose spans arrive.
    std::int32_t liveStep() const { return m_liveStep; }
    std::size_t liveSpans() const { return m_liveCount; }
    /// Spans of the step under way, by device: for `timelineOfSpans`, on a worker.
    const std::vector<std::vector<LiveSpan>> &live() const { return m_live; }
    /// Spans of all steps by number, as far as they came live and there is room for them; null for others.
    const std::vector<std::shared_ptr<const StepSpans>> &steps() const { return m_steps; }
    /// The last step as reported, handed over once, when all devices' parts have come.
    std::optional<ReportedStep> takeReported();
    /// The same of a run that is done and has reported nothing: of what came live.
    std::optional<ReportedStep> takeLive();
    /// The last step's timeline, once made of what was reported; null before.
    const std::shared_ptr<const Timeline> &measured() const { return m_measured; }
    void setMeasured(std::shared_ptr<const Timeline> measured) { m_measured = std::move(measured); }

    /// Mean of the steps after the first (the first one warms up), or of the only one; 0 without any.
    double measuredStepSeconds() const;
    /// Of what `measuredStepSeconds` is: "mean of steps 2-5", "step 1"; empty without any.
    std::string measuredOver() const;
    /// One sentence: "step 2 of 3", "failed on GPU 1 at all-reduce ...", for people.
    std::string sentence() const;

    /// For the session: everything but plan and spans. @return InvalidInput for other texts
    std::string toJson() const;
    static Result<RunRecord> fromJson(std::string_view text);

private:
    void keep(std::size_t device, const LiveSpan &span);

    std::shared_ptr<const ExecutionPlan> m_plan{};
    std::int32_t m_liveStep = 0;
    std::size_t m_liveCount = 0;
    std::vector<std::vector<LiveSpan>> m_live{};
    std::vector<std::shared_ptr<const StepSpans>> m_steps{};
    std::vector<std::shared_ptr<StepSpans>> m_growing{}; ///< The same, to write to.
    std::size_t m_keptSpans = 0;
    ReportedStep m_reported{}; ///< As "spans" events arrive.
    std::size_t m_reportedDevices = 0;
    std::shared_ptr<const Timeline> m_measured{};
};

/// A measured timeline as JSON for the session, and back for the same plan. O(spans): for a worker.
/// @return InvalidInput if it is not one of `plan`
std::string measuredJson(const Timeline &timeline);
Result<Timeline> measuredFromJson(std::string_view json, const ExecutionPlan &plan);

/// Predicted against measured, by operator: for the scatter and the DAG's colours.
struct OperatorStepTimes {
    std::vector<double> predicted{}; ///< Seconds of one step by operator index; 0 where it does not run.
    std::vector<double> measured{};
};
/// O(spans). Both timelines are of `plan`.
OperatorStepTimes operatorTimes(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured);

} // namespace planloom
