#pragma once

#include "engine/base/result.h"
#include "engine/runtime/devices/draw.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/checkpoint.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// What the values of a run come from beside its options.
struct HostSources {
    const Checkpoint *checkpoint = nullptr; ///< Weights and optimizer states; null for the model's own.
    std::map<TensorId, StoredPlace> places{}; ///< Of the checkpoint.
    std::set<std::string> streamed{}; ///< Inputs that `HostValues::beginStep` brings.
};

/// Where the Load instructions of a run take their values from. Changes between steps alone, so that device
/// threads share it.
class HostValues
{
public:
    /// Finds a source for every tensor that `plan` loads: `options.inputs`, the model's own values, a file
    /// beside the model, zeros for optimizer states, or drawn ones.
    ///
    /// @param sources  outlive the values
    /// @param warning  told, once, which inputs are drawn and which arrays are of no use; may be empty
    /// @return InvalidInput for an array of the wrong type or shape, and for weights without values unless
    ///   `options.randomWeights`
    static Result<HostValues> prepare(const ExecutionPlan &plan, const RunOptions &options,
        const HostSources &sources, const std::function<void(const std::string &)> &warning);

    /// Begins `step`, counted from the begin of training. Not while one runs.
    /// @param batches  the streamed inputs: one for all micro-batches, or one for each
    void beginStep(std::int64_t step, std::vector<NamedArrays> batches);

    /// Writes the values of `box` of `tensor` to `to`, dense, in `type`. The tensor must be one that the plan
    /// loads, `microBatch` the one that it is loaded for.
    /// @return Io or InvalidInput if a file beside the model cannot be read
    Result<void> load(TensorId tensor, const IndexMask &box, DataType type, std::byte *to,
        std::int32_t microBatch = 0) const;

private:
    Result<void> loadAs(
        DataType type, TensorId tensor, const IndexMask &box, std::byte *to, std::int32_t microBatch) const;
    Result<void> loadAsGiven(
        TensorId tensor, const IndexMask &box, std::byte *to, std::int32_t microBatch) const;
    enum class Source : std::uint8_t { None, Array, External, Zeros, Drawn, Streamed, Stored };
    struct Entry {
        Source source = Source::None;
        const TensorData *array = nullptr;
        DrawRule rule{};
    };

    GraphSnapshot m_graph{};
    std::vector<std::shared_ptr<const TensorData>> m_kept{};
    std::vector<Entry> m_entries{}; ///< By tensor.
    const HostSources *m_sources = nullptr;
    std::uint64_t m_seed = 0;
    std::uint64_t m_moved = 0; ///< `RunOptions::moved`.
    bool m_drawsAnew = false; ///< Inputs, in every step.
    bool m_wholeBatches = false; ///< Every micro-batch has a batch of its own.
    std::int32_t m_microBatches = 1;
    std::int64_t m_step = 0;
    std::vector<NamedArrays> m_batches{};
};

/// Reads all values of a tensor, or of the part it is of one, from the file beside its model. The file,
/// offset and length must fit the file's tensor.
/// @return NotFound, Io; InvalidInput if sizes do not match
Result<TensorData> loadExternal(const Tensor &tensor);

} // namespace planloom
