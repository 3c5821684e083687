#pragma once

#include "engine/kernels/kernel_call.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// For GatherElements and ScatterElements: the offset in x that each index names, along `axis` of the call's
/// operator and at its own place in the other dimensions. @return InvalidInput if an index is out of range
Result<std::vector<std::int64_t>> elementOffsets(
    const KernelCall &call, const Buffer &indices, const Shape &x);

/// Of an index tuple that names no place (engine/graph/operators/places.h).
constexpr std::int64_t kNoOffset = -1;

/// For GatherND and ScatterND: the offset in x of the run of `run` elements that each index tuple names,
/// behind the first `batchDims` dimensions; `kNoOffset` where it names none. @return InvalidInput if an index
/// is out of range
Result<std::vector<std::int64_t>> sliceOffsets(const KernelCall &call, const Buffer &indices, const Buffer &x,
    std::int64_t batchDims, std::int64_t &run);

/// The index as a position in the part of dimension `axis` that `x` is; `kNoOffset` where it may be, and is,
/// no place. @return InvalidInput if it is out of range
Result<std::int64_t> positionOf(
    const KernelCall &call, std::int64_t index, const Buffer &x, std::size_t axis);

} // namespace planloom
