#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace planloom {

/// How the learning rate goes on once it is warm.
enum class RateShape : std::uint8_t {
    Constant,
    Cosine, ///< Half a cosine down to the floor (Loshchilov and Hutter, SGDR, arXiv:1608.03983, section 3).
};

/// The learning rate by step, as a share of the full one:
///
///     1 |      ,----.             it rises with each of the `warmup` steps by as much, the last of which has
///       |    ,'      `.           all of it; then follows the shape; behind step `total` the floor stays
///       |  ,'          `._
/// floor |,'               `----
///       +------|-----------|---> step
///            warmup      total
struct RateSchedule {
    RateShape shape = RateShape::Constant;
    std::int64_t warmup = 0; ///< Steps.
    std::int64_t total = 0; ///< Cosine: steps; 0 for as many as the run ends with.
    double floor = 0; ///< Cosine: in [0, 1].
    friend bool operator==(const RateSchedule &, const RateSchedule &) = default;
};

/// "constant", "constant:warmup=10", "cosine:warmup=10,total=100,floor=0.1".
std::string print(const RateSchedule &schedule);

/// Inverse of `print`; what is left out is as in `RateSchedule{}`.
/// @return InvalidInput saying what was found and expected
Result<RateSchedule> parseRateSchedule(std::string_view text);

/// `schedule` of a run that ends with step `lastStep`: with its total.
/// @return InvalidInput if that leaves no step behind the warm-up of a cosine
Result<RateSchedule> resolved(RateSchedule schedule, std::int64_t lastStep);

/// What step `step` (0-based) has of the full rate, in [0, 1]. `schedule` has its total.
double rateShare(const RateSchedule &schedule, std::int64_t step);

/// What the steps of a run are fed.
enum class BatchSource : std::uint8_t {
    Same, ///< The run's inputs, the same ones in every step: what a check compares.
    Drawn, ///< Drawn anew for each step, from seed and step.
    Files, ///< Read, see step_data.h.
};

/// How a run of several steps trains, beside its plan.
struct TrainingRun {
    BatchSource batches = BatchSource::Same;
    std::string data{}; ///< Files: where they are.
    std::optional<double> learningRate{}; ///< In place of the plan's; at least 0.
    std::optional<RateSchedule> schedule{}; ///< Else that of what is resumed, else constant.
    std::string checkpoints{}; ///< Folder to write them to; none are written if empty.
    std::int32_t every = 0; ///< Steps from one to the next; 0: one at the end alone.
    std::string resume{}; ///< A checkpoint, or a folder of them, of which the last one is taken.
    friend bool operator==(const TrainingRun &, const TrainingRun &) = default;
};

/// `options` as users write them: "synthetic" data are drawn, none are the same in every step.
void setData(TrainingRun &training, const std::string &data);

/// @return InvalidInput for numbers out of range
Result<void> validate(const TrainingRun &training);

nlohmann::json toJson(const TrainingRun &training);
/// Inverse of `toJson`; throws what nlohmann::json throws for members of other types. @return InvalidInput
Result<TrainingRun> trainingRunFromJson(const nlohmann::json &json);

} // namespace planloom
