#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/interop/safetensors.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/training/training_run.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Where a run is, beside its tensors.
struct CheckpointState {
    std::int64_t step = 0; ///< Steps done: the next one's index.
    std::uint64_t seed = 1;
    std::int64_t nextBatch = 0; ///< Of the data.
    std::string data{}; ///< As `TrainingRun::data`.
    std::optional<double> learningRate{};
    RateSchedule schedule{};
    friend bool operator==(const CheckpointState &, const CheckpointState &) = default;
};

/// Where the values of a pTensor lie in a checkpoint.
struct StoredPlace {
    std::string name{}; ///< As in the model's files.
    TensorType type{}; ///< Of all that has the name.
    FileRuns runs{};
};

/// What a checkpoint of a run of `plan` holds: its weights and optimizer states, whole, whatever the plan
/// makes of them; so plans of one model read each other's. Not what comes with the model (buffers).
std::map<TensorId, StoredPlace> storedPlaces(const ExecutionPlan &plan);

/// "step-00000020.safetensors".
std::string checkpointName(std::int64_t step);

/// A checkpoint that is open to be resumed from.
class Checkpoint
{
public:
    /// @param path  a checkpoint, or a folder of them, of which the last one by name is taken
    /// @return NotFound, Io; InvalidInput for a file that is damaged, or is none of ours
    static Result<Checkpoint> open(const std::string &path);

    const std::string &path() const { return m_path; }
    const CheckpointState &state() const { return m_state; }

    /// That all of `places` are there. @return InvalidInput naming the tensor, and what was found and
    /// expected
    Result<void> require(const std::map<TensorId, StoredPlace> &places) const;
    /// How many of its tensors are none of `places`.
    std::size_t unused(const std::map<TensorId, StoredPlace> &places) const;

    /// Writes `box` of a tensor of shape `shape`, which lies at `place`, to `to`, dense. Thread-safe.
    Result<void> load(
        const StoredPlace &place, const Shape &shape, const IndexMask &box, std::byte *to) const;

private:
    std::string m_path{};
    SafetensorsFile m_file{};
    CheckpointState m_state{};
};

/// A piece of a persistent buffer that goes into a checkpoint.
struct SavedPiece {
    std::int32_t buffer = 0; ///< Of the device.
    std::vector<IndexMask> boxes{}; ///< Disjoint parts of it.
};

/// What of which device's buffers holds the newest values: each element of each tensor once, from the first
/// device that has it in the type of the model.
struct SavePlan {
    std::map<TensorId, StoredPlace> places{};
    std::vector<std::vector<SavedPiece>> devices{}; ///< By device.
};

/// @return Internal for a plan that keeps a tensor nowhere; NotSupported for one that keeps several versions
/// of its weights
Result<SavePlan> planSave(const ExecutionPlan &plan);

/// A checkpoint as it is written. Pieces come in any order, from any thread, and from any process that joins;
/// nobody holds more than one.
class CheckpointWriter
{
public:
    /// @return as `SafetensorsWriter::create`
    static Result<CheckpointWriter> create(const std::string &path, const ExecutionPlan &plan,
        const SavePlan &save, const CheckpointState &state);

    /// Joins another process's writer: see `SafetensorsWriter::join`.
    static Result<CheckpointWriter> join(
        const std::string &path, const ExecutionPlan &plan, const SavePlan &save);

    /// Writes `boxes` of what a buffer of `info`, at `data`, holds. Thread-safe. The first failure is told by
    /// `commit`.
    void put(const BufferInfo &info, const std::vector<IndexMask> &boxes, const std::byte *data);

    /// All pieces of this process are written. @return why one could not be
    Result<void> finish() const;
    /// @return as `finish`; as `SafetensorsWriter::commit`
    Result<void> commit();

private:
    CheckpointWriter(const ExecutionPlan &plan, const SavePlan &save, SafetensorsWriter file);
    Result<void> putBox(const BufferInfo &info, const IndexMask &box, const std::byte *data);

    const ExecutionPlan *m_plan;
    const SavePlan *m_save;
    SafetensorsWriter m_file;
    std::unique_ptr<std::mutex> m_mutex; ///< Of the failure.
    std::optional<Error> m_failure{};
};

} // namespace planloom
