#pragma once

#include "engine/table/allowed.h"
#include "engine/table/kinds/meaning.h"

#include <functional>
#include <optional>
#include <vector>

namespace planloom {

/// An axis over which nobody has decided how an operator is split.
struct FreeAxis {
    Split byDefault{}; ///< Over the axis, into as many parts as it has devices.
    const Allowed<Split> *allowed = nullptr; ///< What rows allow; null is anything.
};

/// Splits over `free`, one each, with which `op` keeps to `bounds`: of its default as many as can be, those
/// of outer axes first.
/// @param taken  what is decided already
/// @param holds  whether all splits together may be; asked with `taken` and then those over `free`
/// @return nothing if there are none. O((dimensions + 2)^axes).
std::optional<std::vector<Split>> splitsKeepingTo(const Operator &op, const std::vector<PartsMeaning> &bounds,
    const std::vector<Split> &taken, const std::vector<FreeAxis> &free,
    const std::function<bool(const std::vector<Split> &)> &holds);

/// The devices of a list as axes without names, outermost first: one for each prime factor of their number.
std::vector<FreeAxis> axesOfList(std::int64_t devices);

/// Whether a batch that micro-batches cut into `cuts` can be cut by `splits`, too.
bool leavesBatchWhole(
    const Operator &op, std::int32_t batch, std::int64_t cuts, const std::vector<Split> &splits);

} // namespace planloom
