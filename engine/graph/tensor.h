#pragma once

#include "engine/base/ids.h"
#include "engine/graph/shape.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What a pTensor is in the training step.
enum class TensorRole : std::uint8_t {
    Input, ///< Fed anew for every mini-batch.
    Weight, ///< Trainable parameter; persists and is updated by the optimizer.
    Buffer, ///< Persists, is not trained (running statistics, masks, folded constants).
    Activation, ///< Made by a forward operator.
    Gradient, ///< Made by backward operators; several producers each make one summand.
    OptimizerState, ///< Persists, read and written by optimizer operators only.
};

/// Values in host memory, row-major, little-endian.
struct TensorData {
    TensorType type{};
    std::vector<std::byte> bytes{};
};

/// Where a weight's values lie beside the model file.
struct ExternalData {
    std::string path{}; ///< Absolute, already checked to lie inside the model's folder.
    std::int64_t offset = 0; ///< In bytes.
    std::int64_t length = 0; ///< In bytes.
    bool present = false; ///< The file existed and was long enough when the model was read.
    friend bool operator==(const ExternalData &, const ExternalData &) = default;
};

/// Which part of a tensor of the model's files a pTensor is: the places along one dimension from `begin` on,
/// as many as it has itself.
struct FilePart {
    std::string name{}; ///< Of the file's tensor.
    Shape shape{}; ///< Of the file's tensor.
    std::int32_t axis = 0;
    std::int64_t begin = 0;
    friend bool operator==(const FilePart &, const FilePart &) = default;
};

/// What a stored tensor of a model's file is to the model.
enum class StoredAs : std::uint8_t {
    Parameter, ///< Trained.
    Buffer, ///< State of a module that is not trained: running statistics, frequencies.
    Constant, ///< A number, mask or table that was worked out when the model was written.
};

/// "parameter", "buffer", "constant".
constexpr const char *nameOf(StoredAs as)
{
    return as == StoredAs::Parameter ? "parameter" : as == StoredAs::Buffer ? "buffer" : "constant";
}

/// What an importer took a stored tensor as.
struct Classification {
    StoredAs as = StoredAs::Parameter;
    std::string why{}; ///< Half a sentence for people: "the exporter says so".
    bool byHand = false; ///< A person decided.
    bool folded =
        false; ///< It was worked out from others when the model was written, not stored by a module.
    /// The module's parameters that the model lost, because whoever wrote it worked them into this tensor: it
    /// is trained in their place, which does not train them as the module would.
    std::vector<std::string> insteadOf{};
    friend bool operator==(const Classification &, const Classification &) = default;
};

/// The paper's pTensor: a logical tensor of the model, whole, whatever plan is made.
struct Tensor {
    std::string name{};
    TensorType type{};
    /// False in models that are open to be looked at alone (`Graph::obstacles`): nothing is known of the
    /// type, and `type` says nothing.
    bool typeKnown = true;
    /// Of a weight or buffer whose dimensions were regrouped at import: the shape by which files know it,
    /// with the same elements in the same order. Empty: that of `type`.
    Shape fileShape{};
    /// Of a weight or buffer that was divided at import, along the one of its dimensions (in files) that is
    /// `axis` there. `data` are the values of this part, `external` says where all of the file's tensor lies.
    /// Also of one that files know whole, but by another name.
    std::optional<FilePart> filePart{};
    TensorRole role = TensorRole::Activation;
    /// Weight -> nothing; Gradient -> the tensor it is the gradient of; OptimizerState -> its weight; the
    /// Buffer that the backward pass begins with (the loss's gradient, 1) -> the loss.
    TensorId of{};
    std::shared_ptr<const TensorData> data{}; ///< Values of a weight or buffer, where the model has them.
    std::optional<ExternalData> external{};
    /// Of a weight or buffer that a file stored, unless it was left to no doubt (a number of a Constant
    /// node).
    std::shared_ptr<const Classification> classification{};
};

} // namespace planloom
