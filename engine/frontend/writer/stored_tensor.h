#pragma once

#include "engine/base/result.h"
#include "engine/graph/tensor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace planloom {

/// A tensor whose values a model file holds: a parameter, a buffer, a constant.
struct StoredTensor {
    std::string name{};
    TensorType type{};
    std::shared_ptr<const TensorData> data{}; ///< Missing if the values lie beside the file.
    std::optional<ExternalData> external{};
    bool hasNonFinite =
        false; ///< A floating tensor with values in the file, of which one is NaN or infinite.
};

/// The values of a weight or buffer, from the model or from its file beside it.
/// @return NotFound if there are none, InvalidInput if the file is too short, Io
Result<TensorData> loadTensorData(const Tensor &tensor);
/// The same; null where there are none, or they lie in a file and take more than `mostBytes`.
std::shared_ptr<const TensorData> valuesUpTo(const Tensor &tensor, std::int64_t mostBytes);

} // namespace planloom
