#pragma once

#include "engine/base/result.h"
#include "engine/schedule/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Schedules of torch.distributed.pipelining as the CSV files of PyTorch's `_load_csv` and `_dump_csv`: a line
// for each rank, an action in each field, empty where a rank idles a step. "compute_only" files have
// computation alone, "compute_comms" what they communicate too.

/// What a rank does.
enum class TorchActionKind : std::uint8_t {
    Forward, ///< F
    InputGradient, ///< I
    WeightGradient, ///< W
    Backward, ///< B
    Unshard, ///< UNSHARD, without a micro-batch, as the next three.
    Reshard,
    ReduceGradients, ///< REDUCE_GRAD
    WaitReduceGradients,
    SendForward, ///< SEND_F
    ReceiveForward,
    SendBackward,
    ReceiveBackward,
    WaitSendForward,
    WaitSendBackward,
    Overlap, ///< (0F1;3B0)OVERLAP_F_B: its parts side by side.
};

/// "2F0": a stage, what it does, and of which micro-batch.
struct TorchAction {
    std::int32_t stage = -1; ///< -1 for Overlap.
    TorchActionKind kind = TorchActionKind::Forward;
    std::int32_t microBatch = -1; ///< -1 where there is none.
    std::vector<TorchAction> parts{}; ///< Of Overlap.
    friend bool operator==(const TorchAction &, const TorchAction &) = default;
};

std::string toString(const TorchAction &action);

struct TorchSchedule {
    std::vector<std::vector<std::optional<TorchAction>>> ranks{}; ///< Nothing where a rank idles.
    std::string lineEnd = "\r\n"; ///< Of its file; Python's csv writes this one.
    friend bool operator==(const TorchSchedule &, const TorchSchedule &) = default;
};

/// @return InvalidInput naming line and field ("line:2:5")
Result<TorchSchedule> readTorchSchedule(std::string_view text);
/// A file that PyTorch reads; what was read from one of its files, unchanged.
std::string writeTorchSchedule(const TorchSchedule &schedule);

/// It says what is communicated, as "compute_comms" files do.
bool communicates(const TorchSchedule &schedule);
/// Computation alone, without idle steps: what a "compute_only" file says.
TorchSchedule computationOf(const TorchSchedule &schedule);

/// What of a rank an action keeps busy: actions of one lane run one behind another, lanes run side by side.
enum class TorchLane : std::uint8_t {
    Compute,
    Transfers, ///< Sends and receives.
    Weights, ///< Gathered, let go, and their gradients reduced.
};
const char *nameOf(TorchLane lane); ///< "compute", "transfers", "weights"

/// When an action ran: an index into `TorchSchedule::ranks`, and steps since the begin.
struct TorchRun {
    std::int32_t rank = 0;
    std::int32_t field = 0;
    TorchLane lane = TorchLane::Compute;
    std::int64_t start = 0;
    std::int64_t end = 0; ///< As `start` where it waits for something, or lets weights go.
    friend bool operator==(const TorchRun &, const TorchRun &) = default;
};

/// Carries a schedule out as PyTorch's runtime does: each rank in its order, where sends, receives, gathers
/// and reductions let it go on at once; what is received has been sent, and is there before it is computed
/// with; gradients follow their forward block; weights of stages that gather them are there while they
/// compute, and their gradients are reduced behind the last. Forward blocks and each half of a backward block
/// take a step, so do a transfer, a gather and a reduction. O(actions log actions)
/// @return by start, then rank and field; InvalidInput naming the action that cannot run ("line:2:5"), and
///   what it waits for
Result<std::vector<TorchRun>> runTorchSchedule(const TorchSchedule &schedule);

/// Whether a schedule that communicates runs to its end: see `runTorchSchedule`. One that does not
/// communicate has nothing to check.
Result<void> checkCommunication(const TorchSchedule &schedule);

/// The order of computation, and how stages lie. Communication is left out.
struct ComputedSchedule {
    Schedule schedule{};
    ScheduleSetting setting{};
};
/// @return InvalidInput if a stage is computed on two ranks or missing, or its micro-batches are not all
/// there
Result<ComputedSchedule> computedSchedule(const TorchSchedule &schedule);

/// A schedule in PyTorch's terms, compute-only. Gradients of inputs with those of weights right behind them
/// are whole backward blocks (`_merge_bw`), also where they run beside a forward block.
/// @return NotSupported for lanes, slices and stages on several ranks, which PyTorch has not got
Result<TorchSchedule> torchSchedule(const Schedule &schedule);

/// With what has to be communicated, as PyTorch adds it to a compute-only schedule: `_add_unshard_reshard`
/// with `max_active_stages` of 3, `_add_reduce_grad`, `_add_send_recv` and `_add_wait_send`.
/// @return InvalidInput where ranks wait for one another, or if there is communication already
Result<TorchSchedule> withCommunication(const TorchSchedule &computeOnly);

} // namespace planloom
