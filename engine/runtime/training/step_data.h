#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/interop/npy.h"

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// An array that was given for a model's input, in the input's own type: wider floats are rounded to 16-bit
/// ones, which most tools' arrays cannot hold.
/// @param where  names it in errors. @return InvalidInput saying what was found and expected
Result<TensorData> fittedInput(const Tensor &tensor, TensorData array, const std::string &where);

/// Batches of a training run that lie in files, one for each step:
///
///     folder/0.npz, 1.npz, ... 10.npz        a file a step, in natural order: 2 before 10
///     folder/0/<input>.npy, 1/..., ...       or a folder a step
///     folder/0.npy, 1.npy, ...               or an array a step, for a model with one input
///     folder/<input>.npy                     arrays with one more dimension in front: steps
///     file.npz, file.npy                     the same
///
/// Behind the last batch comes the first again.
class StepData
{
public:
    /// Lists the batches and reads no more than heads of arrays, but all of an `.npz` that holds many steps.
    /// @return NotFound; InvalidInput with file and array in `where` for what cannot be the model's inputs;
    ///   errors of the readers
    static Result<StepData> open(const std::string &path, const GraphSnapshot &graph);

    /// How many batches there are.
    std::int64_t count() const { return m_count; }
    /// Of the inputs that every batch has.
    const std::set<std::string> &names() const { return m_names; }

    /// The batch of `step`, counted from 0 and on behind the last, in the types of the model. Thread-safe.
    /// @return InvalidInput with file and array in `where`; errors of the readers
    Result<NamedArrays> read(std::int64_t step) const;

private:
    /// An array of many steps in a `.npy` file.
    struct Stack {
        std::string path{};
        std::shared_ptr<const ByteSource> source{};
        NpyHead head{};
    };

    explicit StepData(GraphSnapshot graph);
    Result<NamedArrays> fitted(NamedArrays arrays, const std::string &where) const;
    Result<NamedArrays> readFile(const std::string &path) const;
    Result<void> addStack(const std::string &input, const std::string &path);
    Result<void> addMembers(const std::string &path);
    Result<void> noteSteps(const Tensor &tensor, const TensorType &found, const std::string &where);

    GraphSnapshot m_graph;
    std::map<std::string, TensorId> m_inputs{}; ///< Of the model.
    std::int64_t m_count = 0;
    std::set<std::string> m_names{};
    std::vector<std::string> m_files{}; ///< One a step; else:
    std::map<std::string, Stack> m_stacks{}; ///< By input.
    std::map<std::string, TensorData> m_members{}; ///< Of an archive that holds many steps, by input.
};

/// Reads each batch while the step before runs.
class BatchStream
{
public:
    /// @param first  batch to begin with. `data` outlives the stream
    BatchStream(const StepData &data, std::int64_t first);
    ~BatchStream();
    BatchStream(const BatchStream &) = delete;
    BatchStream &operator=(const BatchStream &) = delete;

    /// The next batch; waits until it has been read. @return as `StepData::read`
    Result<NamedArrays> take(bool another);

private:
    std::future<Result<NamedArrays>> reading(std::int64_t step);

    const StepData &m_data;
    std::int64_t m_next;
    std::future<Result<NamedArrays>> m_reading{};
};

} // namespace planloom
