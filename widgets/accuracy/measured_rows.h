#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A training run that others measured, and what is predicted for it.
struct MeasuredRow {
    std::string source{}; ///< The file whose run it is, without its ending: "dgxc-benchmarking".
    std::string model{};
    std::string device{};
    std::int64_t devices = 0;
    std::string framework{}; ///< Empty where none is assumed.
    std::optional<double> predictedSeconds{}; ///< Of a step.
    std::optional<double> measuredSeconds{}; ///< None where the run failed, or its source has no times.
    std::optional<double> predictedPeak{}; ///< Bytes, of the fullest device.
    std::optional<double> measuredPeak{};
    std::string skipped{}; ///< Why nothing is predicted; empty where something is.
    std::string as{}; ///< What was predicted in its place: "fp8 in place of nvfp4"; empty for the run itself.
    friend bool operator==(const MeasuredRow &, const MeasuredRow &) = default;

    /// Predicted over measured, less 1; none where either is missing, or it is not the run itself.
    std::optional<double> stepError() const { return errorOf(predictedSeconds, measuredSeconds); }
    std::optional<double> peakError() const { return errorOf(predictedPeak, measuredPeak); }

private:
    std::optional<double> errorOf(std::optional<double> predicted, std::optional<double> measured) const
    {
        return as.empty() && predicted && measured && *measured > 0
            ? std::optional(*predicted / *measured - 1)
            : std::nullopt;
    }
};

/// Reads a file of resources/runs, which tests/bench/measured_runs.sh writes: an object with rows, or they
/// alone.
/// @return InvalidInput with the JSON pointer of what is wrong
Result<std::vector<MeasuredRow>> measuredRows(std::string_view json);

/// How far predictions are off, whichever way.
struct ErrorSummary {
    std::size_t count = 0; ///< Of runs with a prediction and a measurement.
    double median = 0;
    double worst = 0;
    friend bool operator==(const ErrorSummary &, const ErrorSummary &) = default;
};

/// Of errors as `MeasuredRow` has them. O(n log n).
ErrorSummary summaryOf(std::vector<double> errors);

} // namespace planloom
