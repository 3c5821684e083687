#pragma once

#include "engine/kernels/kernel_call.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// For GatherElements and ScatterElements: the offset in x that each index names, along `axis` of the call's
/// operator and at its own place in the other dimensions. @return InvalidInput if an index is out of range
Result<std::vector<std::int64_t>> elementOffsets(
    const KernelCall &call, const Buffer &indices, const Shape &x);

/// For GatherND and ScatterND: the offset in x of the run of `run` elements that each index tuple names,
/// behind the first `batchDims` dimensions. @return InvalidInput if an index is out of range
Result<std::vector<std::int64_t>> sliceOffsets(
    const KernelCall &call, const Buffer &indices, const Shape &x, std::int64_t batchDims, std::int64_t &run);

} // namespace planloom
