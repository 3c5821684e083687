#pragma once

#include "engine/base/result.h"
#include "engine/runtime/draw.h"
#include "engine/runtime/run.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace planloom {

/// Where the Load instructions of a run take their values from. Immutable after `prepare`, so that device
/// threads share it.
class HostValues
{
public:
    /// Finds a source for every tensor that `plan` loads: `options.inputs`, the model's own values, a file
    /// beside the model, zeros for optimizer states, or drawn ones.
    ///
    /// @param warning  told, once, which inputs are drawn and which arrays are of no use; may be empty
    /// @return InvalidInput for an array of the wrong type or shape, and for weights without values unless
    ///   `options.randomWeights`
    static Result<HostValues> prepare(const ExecutionPlan &plan, const RunOptions &options,
        const std::function<void(const std::string &)> &warning);

    /// Writes the values of `box` of `tensor` to `to`, dense, in `type`. The tensor must be one that the plan
    /// loads.
    /// @return Io or InvalidInput if a file beside the model cannot be read
    Result<void> load(TensorId tensor, const IndexMask &box, DataType type, std::byte *to) const;

private:
    Result<void> loadAsGiven(TensorId tensor, const IndexMask &box, std::byte *to) const;
    enum class Source : std::uint8_t { None, Array, External, Zeros, Drawn };
    struct Entry {
        Source source = Source::None;
        const TensorData *array = nullptr;
        DrawRule rule{};
    };

    GraphSnapshot m_graph{};
    std::vector<std::shared_ptr<const TensorData>> m_kept{};
    std::vector<Entry> m_entries{}; ///< By tensor.
    std::uint64_t m_seed = 0;
};

/// Reads all values of a tensor, or of the part it is of one, from the file beside its model. The file,
/// offset and length must fit the file's tensor.
/// @return NotFound, Io; InvalidInput if sizes do not match
Result<TensorData> loadExternal(const Tensor &tensor);

} // namespace planloom
