#pragma once

#include "engine/base/result.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/devices/host_values.h"
#include "engine/runtime/processes/run_peers.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/checkpoint.h"
#include "engine/runtime/training/step_data.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// What of a run goes on from step to step beside its devices: where it began, its data, and its checkpoints.
class TrainingProgress
{
public:
    /// Opens what is resumed, and the data; finds out what checkpoints will hold.
    /// @return what is wrong with them; InvalidInput for options out of range
    static Result<std::unique_ptr<TrainingProgress>> begin(
        const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events);

    /// Those that were asked for, with what the checkpoint says in their place.
    const RunOptions &options() const { return m_options; }
    const CheckpointState &begin() const { return m_begin; }
    const HostSources &sources() const { return m_sources; }

    /// Brings the batch of `step` (of this run) to `values`. @return as `StepData::read`
    Result<void> beginStep(std::int32_t step, HostValues &values);

    /// Whether a checkpoint is due behind `step`, if the run ends there or not.
    bool savesAfter(std::int32_t step, bool ends) const;

    /// Writes what the devices of this rank have before `step`, of which none runs, to the checkpoint that
    /// all ranks write together: the first one makes it, and moves it to its place once all have written.
    /// @return as `CheckpointWriter`, `RunPeers`
    Result<SavedCheckpoint> save(std::int32_t step,
        const std::vector<std::unique_ptr<DeviceExecutor>> &devices, RunPeers &peers) const;

private:
    TrainingProgress(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events);
    Result<void> resume();
    Result<void> openData();
    std::int64_t batchesAStep() const { return m_plan.batch.wholeBatches ? m_plan.microBatches : 1; }

    const ExecutionPlan &m_plan;
    RunOptions m_options;
    const RunEvents &m_events;
    std::optional<Checkpoint> m_checkpoint{};
    CheckpointState m_begin{};
    HostSources m_sources{};
    SavePlan m_save{};
    std::optional<StepData> m_data{};
    std::unique_ptr<BatchStream> m_stream{};
    bool m_wrapped = false;
};

} // namespace planloom
