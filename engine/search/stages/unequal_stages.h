#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace planloom {

/// What a piece of the model takes of the devices of a group, with a partition that is good for it.
struct PieceCost {
    double seconds = 0; ///< Of a micro-batch, both passes.
    double fill = 0; ///< Of these, what other stages wait for as the pipeline fills and drains.
    double hiding = 0; ///< Of these, the backward pass: reductions are hidden behind the last one.
    double reduction = 0; ///< Seconds of a step in which its gradients are reduced,
    double update = 0; ///< and its weights updated.
    /// Seconds of a micro-batch, both ways, of sending what pieces up to this one make and later ones read.
    double sent = 0;
    double bytes = 0; ///< Of a device, held all the time: weights, gradients, states.
    double kept = 0; ///< Bytes that a micro-batch keeps for its backward pass.

    /// What several pieces take as one stage; `sent` is that of the last.
    PieceCost &operator+=(const PieceCost &next);
};

/// Groups of devices that are alike.
struct GroupKind {
    std::int32_t devices = 1;
    std::vector<PieceCost> pieces{}; ///< In the order of the model; of all kinds the same.
};

/// A chain of pieces that is to be cut into stages, each on a group of devices of its own.
struct UnequalSetting {
    std::vector<GroupKind> kinds{};
    /// By device: the kinds of groups that may begin with it. Groups do not reach beyond the last device.
    std::vector<std::vector<std::int32_t>> startsAt{};
    std::int32_t microBatches = 1;
    std::int32_t mostStages = std::numeric_limits<std::int32_t>::max();
    double room = std::numeric_limits<double>::infinity(); ///< Bytes of a device.
    double most = std::numeric_limits<double>::infinity(); ///< Seconds: only what takes less is of use.
    double tolerance = 0; ///< The answer takes at most so much more than the best, as a share.
};

/// A stage: the pieces from one on up to the next stage's first.
struct UnequalStage {
    std::int32_t firstPiece = 0;
    std::int32_t kind = 0;
    std::int32_t firstDevice = 0;
    friend bool operator==(const UnequalStage &, const UnequalStage &) = default;
};

/// Seconds of a step, about: each stage is busy with every micro-batch, and waits for one to pass through all
/// others; reductions and updates follow,
///
///     sum of (fill + sent) + max of (micro-batches x seconds - fill + what follows)
///
/// (Alpa, arXiv:2201.12023, equation 2, where `fill` is all of `seconds`). Infinite where a stage has no room
/// for its weights and what as many micro-batches keep as there are stages from it to the last.
double unequalSeconds(const UnequalSetting &setting, const std::vector<UnequalStage> &stages);

/// The stages that take least, on groups in the order of the devices, some of which may stay idle; empty
/// where none take less than `most`.
///
/// For a bound of the maximum, the least sum by dynamic programming over pieces and devices, from the last
/// stage on; bounds between those that are known are looked at while one of them may lead to less.
/// O(pieces^2 x devices x kinds that begin at one x stages) for each; without the stages where memory cannot
/// matter.
std::vector<UnequalStage> unequalStages(const UnequalSetting &setting);

} // namespace planloom
