#pragma once

// Private to the kernels: what custom*.cpp share.

#include "engine/graph/operator_files/custom_operator.h"
#include "engine/kernels/custom/operator_library.h"
#include "engine/kernels/kernel_call.h"

#include <vector>

namespace planloom {

/// A definition that is to be computed on buffers: that of the call's operator, or of its gradient operator.
struct CustomCall {
    const KernelCall &call;
    const OperatorDefinition &definition;
    const Attributes &attributes;
    std::vector<const Buffer *> inputs{}; ///< By slot of the definition; null where absent.
    std::vector<const Buffer *> outputs{}; ///< Null where not wanted.

    std::vector<TensorType> inputTypes() const;
    std::vector<bool> present() const;
    /// Sizes of the definition's dimensions in this part, and in the whole operator.
    Result<DefinedSizes> partSizes() const;
    Result<DefinedSizes> wholeSizes() const;
};

/// Runs the steps of the definition's body.
Result<void> runBody(const CustomCall &custom);

/// Runs them, then their gradients back. `custom.outputs` are the gradients of its inputs.
/// @param gradients  of the outputs; null where nothing depends on one
Result<void> runBodyBackward(const CustomCall &custom, const std::vector<const Buffer *> &gradients);

/// Calls a library's function.
Result<void> callLibrary(const CustomCall &custom, planloom_operator_function function);

} // namespace planloom
