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
    std::string degrees{}; ///< "tp 4, pp 8"; empty for one device, and for replicas alone.
    std::string
        profile{}; ///< The cluster that it was predicted on, without its number of devices: "dgx-h100".
    double parameters = 0; ///< Of the model; 0 where nothing is predicted.
    bool isMixture = false; ///< The model has experts.
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

/// What makes one training run like another, as far as predictions are off alike.
struct RunLikeness {
    double parameters = 0;
    bool isMixture = false;
    std::string profile{}; ///< As `MeasuredRow::profile`.
    std::int64_t devices = 0;
    std::string framework{};
};

/// Numbers of the rows most like `run`, nearest first: of models with experts or without, as it is, of at
/// most 8 times its size and on at most 16 times its devices, or as much fewer; on its devices rather than on
/// others, trained by its framework rather than by another. Only rows with an error of the step.
std::vector<std::size_t> nearestRows(
    const std::vector<MeasuredRow> &rows, const RunLikeness &run, std::size_t most);

/// How far predictions are off, whichever way.
struct ErrorSummary {
    std::size_t count = 0; ///< Of runs with a prediction and a measurement.
    double median = 0; ///< Of an even number, the mean of the two in the middle.
    double worst = 0;
    friend bool operator==(const ErrorSummary &, const ErrorSummary &) = default;
};

/// Of errors as `MeasuredRow` has them. O(n log n).
ErrorSummary summaryOf(std::vector<double> errors);

} // namespace planloom
