#include "engine/runtime/training/training_progress.h"

#include "engine/base/words.h"

#include <chrono>
#include <filesystem>
#include <mutex>
#include <utility>

namespace planloom {

namespace {

/// Keeps the first thing that went wrong while a checkpoint was read from the devices.
class SaveListener final : public TaskListener
{
public:
    void finished(EventId /*event*/, const Result<void> &outcome, Clock::time_point /*start*/,
        Clock::time_point /*end*/) override
    {
        if (outcome)
            return;
        const std::lock_guard lock{m_mutex};
        if (!m_failure)
            m_failure = outcome.error();
    }
    const std::optional<Error> &failure() const { return m_failure; }

private:
    std::mutex m_mutex{};
    std::optional<Error> m_failure{};
};

} // namespace

TrainingProgress::TrainingProgress(
    const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events)
    : m_plan(plan)
    , m_options(options)
    , m_events(events)
{
}

Result<std::unique_ptr<TrainingProgress>> TrainingProgress::begin(
    const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events)
{
    std::unique_ptr<TrainingProgress> progress{new TrainingProgress{plan, options, events}};
    const TrainingRun &training = progress->m_options.training;
    TRY_VOID(validate(training));
    progress->m_begin.seed = options.seed;
    progress->m_begin.learningRate = training.learningRate;
    progress->m_begin.data = training.data;
    if (!training.resume.empty())
        TRY_VOID(progress->resume());
    TRY(progress->m_begin.schedule,
        resolved(
            training.schedule.value_or(progress->m_begin.schedule), progress->m_begin.step + options.steps));
    if (!training.checkpoints.empty()) {
        TRY(progress->m_save, planSave(plan));
    }
    if (training.batches == BatchSource::Files)
        TRY_VOID(progress->openData());
    return progress;
}

Result<void> TrainingProgress::resume()
{
    const TrainingRun &training = m_options.training;
    TRY(m_checkpoint, Checkpoint::open(training.resume));
    m_sources.checkpoint = &*m_checkpoint;
    m_sources.places = storedPlaces(m_plan);
    TRY_VOID(m_checkpoint->require(m_sources.places));
    m_begin = m_checkpoint->state();
    m_options.seed = m_begin.seed; // that of dropout goes on
    if (training.learningRate)
        m_begin.learningRate = training.learningRate;
    if (m_begin.data != training.data) { // other data begin with their first batch
        m_begin.data = training.data;
        m_begin.nextBatch = 0;
    }
    if (const std::size_t unused = m_checkpoint->unused(m_sources.places); unused > 0 && m_events.warning)
        m_events.warning("the checkpoint has " + counted(static_cast<std::int64_t>(unused), "tensor")
            + " that this plan does not use");
    if (m_events.resumed)
        m_events.resumed(m_begin.step, m_checkpoint->path());
    return {};
}

Result<void> TrainingProgress::openData()
{
    TRY(m_data, StepData::open(m_options.training.data, m_plan.graph));
    m_sources.streamed = m_data->names();
    m_stream = std::make_unique<BatchStream>(*m_data, m_begin.nextBatch);
    return {};
}

Result<void> TrainingProgress::beginStep(std::int32_t step, HostValues &values)
{
    std::vector<NamedArrays> batches;
    if (m_stream) {
        for (std::int64_t i = 0; i < batchesAStep(); ++i) {
            const bool another = step + 1 < m_options.steps || i + 1 < batchesAStep();
            TRY(auto batch, m_stream->take(another));
            batches.push_back(std::move(batch));
        }
        const std::int64_t taken = m_begin.nextBatch + (step + 1) * batchesAStep();
        if (!m_wrapped && taken > m_data->count() && m_events.warning)
            m_events.warning("there are " + std::to_string(m_data->count()) + " batches in "
                + m_options.training.data + ": step " + std::to_string(m_begin.step + step + 1)
                + " begins with the first again");
        m_wrapped = m_wrapped || taken > m_data->count();
    }
    values.beginStep(m_begin.step + step, std::move(batches));
    return {};
}

bool TrainingProgress::savesAfter(std::int32_t step, bool ends) const
{
    const TrainingRun &training = m_options.training;
    if (training.checkpoints.empty())
        return false;
    const std::int64_t done = m_begin.step + step + 1;
    return ends || step + 1 == m_options.steps || (training.every > 0 && done % training.every == 0);
}

Result<SavedCheckpoint> TrainingProgress::save(
    std::int32_t step, const std::vector<std::unique_ptr<DeviceExecutor>> &devices, RunPeers &peers) const
{
    const auto start = std::chrono::steady_clock::now();
    CheckpointState state = m_begin;
    state.step += step;
    state.nextBatch += m_data ? step * batchesAStep() : 0;
    SavedCheckpoint saved;
    saved.step = state.step;
    saved.path =
        (std::filesystem::path{m_options.training.checkpoints} / checkpointName(state.step)).string();
    std::optional<CheckpointWriter> made;
    if (peers.isFirst()) {
        TRY(auto writer, CheckpointWriter::create(saved.path, m_plan, m_save, state));
        made.emplace(std::move(writer));
    }
    TRY_VOID(peers.decidedByFirst(true)); // it is there; a first rank that cannot make it ends the run
    if (!peers.isFirst()) {
        TRY(auto writer, CheckpointWriter::join(saved.path, m_plan, m_save));
        made.emplace(std::move(writer));
    }
    CheckpointWriter &writer = *made;
    const auto take = [&writer](const SavedPiece &piece, const BufferInfo &info, const std::byte *data) {
        writer.put(info, piece.boxes, data);
    };
    const std::function<void(const SavedPiece &, const BufferInfo &, const std::byte *)> each = take;
    std::vector<SaveListener> listeners(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d)
        devices[d]->issueSave(
            step, m_save.devices[static_cast<std::size_t>(peers.first()) + d], each, listeners[d]);
    for (const auto &device : devices)
        device->finish();
    for (const SaveListener &listener : listeners)
        if (listener.failure())
            return *listener.failure();
    TRY_VOID(writer.finish());
    TRY_VOID(peers.sumAtFirst({})); // all have written
    if (peers.isFirst())
        TRY_VOID(writer.commit());
    saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return saved;
}

} // namespace planloom
