#pragma once

#include "engine/graph/attributes.h"

namespace planloom {

/// Which dimension of a loss's logits has the classes: the second, as ONNX has it, or the only one; of
/// ClassStatistics, that of its attribute "axis" where it has one, so that [batch sequence classes] need not
/// be made rows, which neither of the first two dimensions could be cut of.
inline std::size_t classAxis(const Attributes &attributes, std::size_t rank)
{
    return attributes.has("axis") ? static_cast<std::size_t>(attributes.integer("axis")) : rank == 1 ? 0 : 1;
}

} // namespace planloom
