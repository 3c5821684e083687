#pragma once

#include "engine/schedule/schedule.h"
#include "engine/table/table.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What one micro-batch takes of a stage's devices.
struct StageTime {
    double forward = 0; ///< Seconds.
    double backward = 0; ///< With what is computed again, without `weights`.
    double weights = 0; ///< Gradients of weights, where a schedule makes them in a pass of their own.
    /// The first forward pass is not over before: what it reads is gathered as the step begins.
    double ahead = 0;
    std::int64_t kept = 0; ///< Bytes that a micro-batch keeps for its backward pass.
    /// Bytes that it keeps instead between the parts of a backward pass that is split: what gradients of
    /// weights are made of.
    std::int64_t deferred = 0;
    std::int64_t gradients = 0; ///< Bytes of weights' gradients, from the first backward pass on.
};

/// Sending what one stage makes to a later one that reads it, of one micro-batch; beside computation.
struct StageSend {
    std::int32_t from = 0;
    std::int32_t to = 0;
    double forward = 0; ///< Seconds.
    double backward = 0; ///< Of the gradients, from `to` to `from`.
    /// From where it is sent on: until the block that reads it can begin and never waits. What it reads
    /// later may still be on its way.
    double forwardAhead = forward;
    double backwardAhead = backward;
    bool gradients = true; ///< Some come back.
};

/// Whether what is sent waits for other things that are.
enum class SendOrder : std::uint8_t {
    /// It does not: for bounds, which may leave out what makes a step longer.
    Any,
    /// A rank sends and receives one after the other each way, what can first first, as devices do
    /// (QueueKind::Pipeline and PipelineBack).
    Queued,
};

/// What a stage holds as its rank is fullest.
struct StageHeld {
    std::int32_t microBatches = 0; ///< Whose `StageTime::kept` is there.
    std::int32_t deferred = 0; ///< Likewise `StageTime::deferred`.
    bool gradients = false; ///< Of its weights.
};

/// How a pipeline's blocks run.
struct PipelineTime {
    double makespan = 0; ///< From the first block to the end of the last.
    std::vector<double> lastBackward{}; ///< By stage: when its last backward block begins.
    std::vector<double> begin{}; ///< By stage: when its first block begins.
    std::vector<double> lastInput{}; ///< By stage: when its last block that gives gradients of inputs begins.
    std::vector<double> end{}; ///< By stage: when its last block is over.
    /// By rank: the most that is held at once, `StageTime::kept`, `deferred` and `gradients` of its stages.
    /// In a stage's first backward pass gradients grow as what is kept shrinks.
    std::vector<std::int64_t> held{};
    std::vector<StageHeld> heldBy{}; ///< By stage.
};

/// A block as it was played, and for which other it waited.
struct PlayedBlock {
    ScheduledBlock block{};
    double start = 0;
    std::int32_t before = -1; ///< That ended last before it began, by number; -1: it waited for none.
    std::int32_t send = -1; ///< By which something came from there, by number; -1: by none.
    bool waitedAhead = false; ///< It ends when what it reads was gathered (`StageTime::ahead`).
};

/// How often the longest way to a block goes through blocks of each stage, and through sends.
struct StageVisits {
    double forward = 0;
    double backward = 0; ///< Of those that are split, gradients of inputs.
    double weights = 0;
    double ahead = 0; ///< In place of the first forward block.
};
struct SendVisits {
    double forward = 0;
    double backward = 0;
};
struct LongestWay {
    std::vector<StageVisits> stages{};
    std::vector<SendVisits> sends{}; ///< Before blocks on the way.
    std::int32_t into = -1; ///< The send, by number, before a block that is not on it itself; -1: none.
    bool intoBackward = false;
};
/// @param to  by number; @param including  that block itself, too
/// O(blocks on the way).
LongestWay longestWay(const std::vector<PlayedBlock> &blocks, std::int32_t to, bool including,
    std::size_t stages, std::size_t sends);

/// Plays a schedule of whole blocks: each rank in its order, each block when what it reads is there.
/// Stage s runs on rank s mod `ranks`; what others send it is waited for, and nothing else: a decoder begins
/// beside an encoder whose outputs later stages read.
/// @param sends  empty: each stage waits for the one before it, and gives gradients back
/// With sends of any order nothing is over later than with queued ones, nor where something takes less.
/// @param blocks  filled, in an order in which they can run, where it is not null
/// @return InvalidInput where the schedule cannot be made for the setting
/// O(n log n), n = (stages + sends) x micro-batches.
Result<PipelineTime> playPipeline(ScheduleKind schedule, const std::vector<StageTime> &stages,
    const std::vector<StageSend> &sends, SendOrder order, std::int32_t ranks, std::int32_t microBatches,
    bool backward, std::vector<PlayedBlock> *blocks = nullptr);

} // namespace planloom
