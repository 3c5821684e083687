#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// A part of a pTensor, and the devices that have it: all vTensors with the same index mask and value mask.
struct ShardCell {
    IndexMask index{};
    ValueMask value{};
    std::vector<DeviceId> devices{}; ///< Ascending, each once: more than one are replicas.
    friend bool operator==(const ShardCell &, const ShardCell &) = default;
};

/// How a pTensor lies over the devices on one side of an operator.
struct ShardedTensor {
    std::vector<ShardCell> cells{}; ///< By (index, value).
    std::vector<std::int32_t>
        cutDimensions{}; ///< Dimensions of the tensor that some cell does not span, ascending.
    std::int32_t valueParts = 1; ///< Largest number of summands.
    std::int32_t leftOut = 0; ///< Cells beyond the limit of a picture.
    friend bool operator==(const ShardedTensor &, const ShardedTensor &) = default;
};

/// What stands between the two sides: "all-reduce", how often in a step, and how many bytes all devices send
/// for it.
struct ShardingJoin {
    InstructionKind kind{};
    Combination combination = Combination::Sum; ///< Of a reduction.
    std::int64_t count = 0; ///< Groups or pairs of devices, each once a micro-batch.
    std::vector<std::int32_t> members{}; ///< Sizes of its groups, ascending, each once.
    Bytes bytes{}; ///< Of one instance on one device, the largest.
    friend bool operator==(const ShardingJoin &, const ShardingJoin &) = default;
};

/// One tensor of an operator: as it is made, as it is used, and what takes it from the one to the other.
struct ShardingPicture {
    TensorId tensor{};
    std::string name{};
    Shape shape{};
    Shape fileShape{}; ///< By which files know its values, where that is another (`Tensor::fileShape`).
    std::optional<FilePart> filePart{}; ///< What it is a part of in files.
    bool output = false; ///< Made here; else used here.
    std::int32_t slot = 0;
    std::optional<ShardedTensor>
        before{}; ///< As its producers make it; none for inputs and weights, which are loaded as used.
    std::optional<ShardedTensor>
        after{}; ///< As this operator (an input) or its consumers (an output) use it.
    std::vector<ShardingJoin> joins{};
    friend bool operator==(const ShardingPicture &, const ShardingPicture &) = default;
};

/// Pictures of all tensors that `op` reads and makes, in the coordinates of the whole mini-batch
/// (micro-batches cut each cell further along the batch). Index masks and value masks of every vTensor are
/// those that lowering works with (SuperScaler, arXiv:2301.08984, section 3).
///
/// At most 4096 cells a tensor are given. O(parts of the operators around + instructions); for a worker.
/// @param execution  the lowered plan, for the joins; may be null
std::vector<ShardingPicture> shardingOf(
    const Plan &plan, const ExecutionPlan *execution, OperatorId op, std::stop_token stop = {});

/// "4 × 2 × 3, in files 4 × 6:12": the shape of a tensor and, where that differs, the one by which files know
/// it, with the range that a part of a file's tensor has there.
std::string shapeInWords(const ShardingPicture &picture);

/// "[0:512, all of 768] summand 1 of 2 on 0, 4": a cell in words.
std::string wordsOf(const ShardCell &cell, const Shape &shape);
/// "all-reduce of 4 devices × 2, 32 MiB each"
std::string wordsOf(const ShardingJoin &join);

} // namespace planloom
