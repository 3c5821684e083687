#pragma once

#include "engine/base/result.h"
#include "engine/check/examples.h"
#include "engine/kernels/custom/operator_library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// One way of splitting an operator that was tried out.
struct SplitTrial {
    bool backward = false; ///< Of the operator that makes the gradients.
    std::string partition{}; ///< "k+:2"
    std::string tensor{}; ///< The output that differs most: "y0", "d x1".
    /// Largest difference of its elements from the whole operator's, over 1 + their largest magnitude.
    double error = 0;
    std::string problem{}; ///< Why it could not be held against the whole; empty where it could.
};

/// "backward, k+:2: 'y0' differs by 0.25"
std::string describe(const SplitTrial &trial);

/// What splitting one operator on some values has shown.
struct AnnotationTrial {
    std::string annotation{};
    std::string whole{}; ///< Why the operator is kept whole; empty where it is annotated.
    std::int64_t splits = 0; ///< Ways that were tried, forward and backward.
    double worst = 0; ///< Largest error of those that hold.
    std::vector<SplitTrial> failures{};
};

struct TrialOptions {
    std::uint64_t seed = 1;
    double tolerance = 1e-10;
    const OperatorLibraries *libraries = nullptr;
};

/// Runs an operator whole, and its backward operator if it has one, then under every partition worth trying,
/// and compares: each dimension in 2 to 4 equal parts and unevenly, replicas, values where it is linear, and
/// pairs of these.
/// @return InvalidInput for an example that does not fit its kind; errors of the whole operator's kernel;
/// CheckFailed if it makes NaN, which says nothing
Result<AnnotationTrial> tryAnnotation(const OperatorExample &example, const TrialOptions &options = {});

} // namespace planloom
