#pragma once

#include "engine/hardware/kernel_timings.h"

#include <array>
#include <string>
#include <vector>

namespace planloom {

/// How far predictions are from times: |predicted / measured - 1|.
struct FitError {
    std::string kind{}; ///< "products, bf16", "all_gather".
    std::size_t rows = 0;
    double median = 0;
    double worst = 0;
    friend bool operator==(const FitError &, const FitError &) = default;
};

/// What measuring itself added to the kernels of one format: found with the rates, and no part of a profile.
struct Overheads {
    double product = 0; ///< Seconds of a product; in 8 bits with the launches of rounding.
    double attention = 0; ///< Of an attention.
    double attentionPasses = 0; ///< How often its queries, keys, values and results were moved beside it.
    double experts = 0; ///< Of a layer of experts.
};

/// A cluster whose rates are those of timings.
struct FittedCluster {
    Cluster cluster{};
    std::array<Overheads, 2> overheads{}; ///< Of 16 bits and more, of 8 bits.
    std::vector<FitError> errors{};
};

/// `base` with the rates that the timings show: shares of peak by format and kind, links inside a node, and
/// between nodes where they were measured. What timings can't give (peaks, memory, multiprocessors ...) and
/// what nothing was measured of stays as it is. Each figure's source says of what times it is, and how far
/// off.
///
/// @return InvalidInput with the place of a row that is faster than the peak of `base` allows
Result<FittedCluster> fittedCluster(Cluster base, const KernelTimings &timings);

/// How far `cluster` is from the timings, by kind, with what measuring added.
std::vector<FitError> errorsBeside(
    const Cluster &cluster, const std::array<Overheads, 2> &overheads, const KernelTimings &timings);

/// "products, bf16: off by 3.0% in the median, 19.4% at worst, of 144 times"
std::string toString(const FitError &error);

} // namespace planloom
