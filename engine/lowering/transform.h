#pragma once

#include "engine/base/result.h"
#include "engine/graph/batch.h"
#include "engine/graph/mask.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// One part of an operator, in micro-batch 0 of unit 0: where it runs and which views it reads and makes.
struct TransformedPart {
    DeviceId device{};
    std::vector<TensorView> inputs{}; ///< By slot; invalid tensors where absent.
    std::vector<TensorView> outputs{};
};

/// The first phase of lowering (SuperScaler, arXiv:2301.08984, section 3.2): every operator as its parts.
struct TransformedGraph {
    BatchInfo batch{};
    std::vector<std::vector<TransformedPart>> operators{}; ///< By operator index.
    /// Per operator and output slot: number of its first summand (see `BufferInfo`).
    std::vector<std::vector<std::int32_t>> summandBase{};
    std::vector<std::int32_t>
        summandCount{}; ///< By tensor: all summands that make its value; 0 if nobody makes it.
};

/// @return InvalidInput if the micro-batches do not divide the batch, or the plan is not valid for its graph
Result<TransformedGraph> transform(const Plan &plan);

} // namespace planloom
