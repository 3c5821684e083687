#pragma once

#include "engine/base/ids.h"
#include "engine/base/inline_vector.h"
#include "engine/base/scale_units.h"
#include "engine/base/shared_vector.h"
#include "engine/base/units.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/graph/graph.h"
#include "engine/graph/operators/attention.h"
#include "engine/graph/operators/mask.h"
#include "engine/graph/precision.h"
#include "engine/table/kinds/order/lanes.h"
#include "engine/table/kinds/order/segment_kind.h"
#include "engine/table/kinds/order/weight_versions.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// What one instruction does. Views (tensor, box, summands) are those of its buffers; nothing is said twice.
enum class InstructionKind : std::uint8_t {
    Load, ///< () -> out: the box of a graph input (of this micro-batch), or of a weight or buffer at the
          ///< start.
    Kernel, ///< Runs part `part` of operator `op`; buffers by slot, -1 where absent or not wanted.
    Accumulate, ///< (in) -> out: out += in; the first time in a step, out = in.
    Select, ///< (in) -> out: the box of `out` cut from the box of `in`.
    Concat, ///< (in...) -> out: disjoint boxes that tile the box of `out`.
    Sum, ///< (in...) -> out: same box, disjoint summands, combined by `combination`.
    ValueSelect, ///< (in) -> out: part `out.valuePart` of what `in` holds, cut to the box of `out`: part 0 is
                 ///< all of it, others are 0.
    AllReduce, ///< (in) -> out: `combination` over `group`, same box.
    AllGather, ///< (in) -> out: concatenation along `dimension`, in the order of `group`.
    ReduceScatter, ///< (in) -> out: `combination` over `group`; member i keeps chunk i along `dimension`.
    AllToAll, ///< (in) -> out: cut along `dimension`, chunk i to member i; concatenated along
              ///< `gatherDimension`.
    Broadcast, ///< member 0 (in) -> every member (out); member 0's out may be -1.
    Send, ///< (in) to `peer`, matched with the Recv of the same `tag` and micro-batch.
    Recv, ///< -> out from `peer`.
    Store, ///< (in): a box of a graph output to the host; summed over micro-batches where its role is
           ///< Summand.
    Update, ///< (in) -> out: writes a new weight or optimizer state into its persistent buffer.
    Cast, ///< (in) -> out: the same box and summands in another type, rounded to the nearest, ties to even.
    Weigh, ///< (part, its log-sum-exp, that of all) -> out: part x exp(its log-sum-exp - that of all), row by
           ///< row: a summand of a value that is `Combination::Weighted`.
    Offload, ///< (in) -> out: the same in host memory. Into a persistent buffer it writes the new value.
    Fetch, ///< (in) -> out: what waits in host memory, back on the device.
    Shift, ///< (in) -> out: member i's to member i + 1 of `group`, the last one's to member 0: one step of a
           ///< ring.
    Merge, ///< (part, its log-sum-exp, another part, its log-sum-exp) -> (part, its log-sum-exp): of means
           ///< under a softmax over two sets of elements that over both (`Combination::Weighted`), row by
           ///< row.
};
constexpr std::size_t kInstructionKindCount = static_cast<std::size_t>(InstructionKind::Merge) + 1;

/// Copies between a device and its host.
inline bool isHostCopy(InstructionKind kind)
{
    return kind == InstructionKind::Offload || kind == InstructionKind::Fetch;
}

/// The queues of a device. Each runs what it is given in order, all of them side by side. An instruction
/// starts once it heads its queue and its input buffers are complete; a collective starts once all its
/// members have reached it.
enum class QueueKind : std::uint8_t {
    Compute,
    Tensor, ///< Collectives inside a block, whose result the next operators wait for.
    Data, ///< Collectives of gradients and weights, between blocks.
    /// Between stages, of what the forward pass makes: sends and receives of activations, and collectives of
    /// what is sent to several devices.
    Pipeline,
    /// The same of what the backward pass makes. Gradients go against the activations, and neither waits for
    /// the other: links carry both ways at once.
    PipelineBack,
    Copy, ///< Between a device and its host.
};
constexpr int kQueueCount = 6;
const char *nameOf(QueueKind queue); ///< "pipeline-back"
/// What goes between stages waits there, in either direction.
inline bool isBetweenStages(QueueKind queue)
{
    return queue == QueueKind::Pipeline || queue == QueueKind::PipelineBack;
}

bool isCommunication(InstructionKind kind);
/// Combines summands: Sum, AllReduce, ReduceScatter.
bool combinesSummands(InstructionKind kind);
const char *nameOf(InstructionKind kind); ///< "all-reduce"

/// What a buffer's memory counts as.
enum class MemoryKind : std::uint8_t { Weight, Gradient, OptimizerState, Activation, Input, Communication };
constexpr int kMemoryKindCount = 6;
const char *nameOf(MemoryKind kind);

/// Where a buffer's memory is. What is on the host can only be copied: no kernel reads it.
enum class MemoryPlace : std::uint8_t { Device, Host };
const char *nameOf(MemoryPlace place); ///< "host"

/// Summands of a pTensor's value, ascending; empty means the complete value. The parts of a value that is
/// combined otherwise than by summing are called so, too.
using SummandSet = InlineVector<std::int32_t, 4>;

/// What a buffer that is not a micro-batch's own holds of a value that all scale units make together.
enum class UnitShare : std::uint8_t {
    Same, ///< All of it, equal in every unit.
    Partial, ///< The sum over this unit's micro-batches.
    /// Unit u holds the box, shifted by u times its extent along `shardDimension`; the last one what is left
    /// of it before `shardEnd`.
    Shard,
};

const char *nameOf(UnitShare share); ///< "shard"

/// A vTensor in a device's memory.
///
/// Summands of a pTensor are numbered so: its producers in operator order each contribute as many numbers as
/// their `outputView(...).value.count`, and part p of a producer makes number base + value.index.
struct BufferInfo {
    TensorId tensor{};
    /// In memory. The pTensor's, or for a Float32 one that which the plan's precision asks for (precision.h).
    DataType dataType = DataType::Float32;
    IndexMask index{}; ///< For micro-batch 0; that of micro-batch i is shifted by `ExecutionPlan::boxOf`.
    SummandSet summands{};
    ValueMask valuePart{}; ///< Not {0, 1} only for the output of a ValueSelect.
    /// A part of a value that is `Combination::Weighted` as its operator made it, or several merged: no
    /// summand before a Weigh.
    bool unweighed = false;
    bool perMicroBatch = true; ///< One instance for each micro-batch; else one for the step (or for ever).
    bool persistent = false; ///< Lives across steps: weights, buffers, optimizer state.
    MemoryKind memory = MemoryKind::Activation;
    MemoryPlace place = MemoryPlace::Device;
    UnitShare share = UnitShare::Same;
    std::int8_t shardDimension = -1; ///< Of UnitShare::Shard.
    /// Of a weight: by how many updates its version is older than the newest one, seen from the update that
    /// the gradients of the step go into. 0 for all else.
    std::int16_t staleness = 0;
    /// Of a persistent weight: so many versions are kept at once, the newest and those before it, in buffers
    /// that follow one another by staleness. See `bufferOfVersion`.
    std::int16_t versions = 1;
    std::int64_t shardEnd = 0; ///< Of UnitShare::Shard: where the last unit's share ends.
    friend bool operator==(const BufferInfo &, const BufferInfo &) = default;
};

/// Indices into `DeviceProgram::buffers`.
using BufferList = InlineVector<std::int32_t, 4>;

/// One instruction of one device. Indices into `DeviceProgram::buffers`.
struct Instruction {
    InstructionKind kind = InstructionKind::Kernel;
    OperatorId op{}; ///< Kernel: what runs. Others: the operator they serve (its consumer, or producer), for
                     ///< display.
    std::int32_t part = 0; ///< Kernel: which part.
    bool recompute = false; ///< Kernel: runs a forward operator a second time.
    std::int32_t group = -1; ///< Collectives: index into `ExecutionPlan::groups`; -1 across units.
    /// Collectives: among this device of every scale unit, in their order, not among a group.
    bool acrossUnits = false;
    DeviceId peer{}; ///< Send, Recv.
    std::int32_t tag = -1; ///< Send, Recv: unique in the plan for one pair.
    std::int32_t dimension = -1;
    std::int32_t gatherDimension = -1;
    /// Sum, AllReduce, ReduceScatter: how summands make up the value; the tensor's.
    Combination combination = Combination::Sum;
    BufferList inputs{};
    BufferList outputs{};
    BufferList deaths{}; ///< Buffers nobody needs after this instruction (of this micro-batch).
    /// That it waits in, where it is not the usual one of its kind. The same for both ends of a message.
    std::optional<QueueKind> queue{};
    /// Launched together with the instruction before it in its queue and segment: collectives of one group as
    /// one (a bucket), element-wise kernels that read what that one made, updates of many weights, casts
    /// of what they made, and additions to what a product makes, which it does itself.
    bool joined = false;
    /// Collectives: run chunk by chunk with the product that makes their input, or reads their output
    /// (`overlapPartner`).
    bool overlaps = false;
    /// Of other queues than compute: starts only once all that stands before it in the compute queue is done,
    /// as where a stream waits for an event that another one records. So what is gathered or fetched ahead of
    /// its use takes memory no earlier than it is asked for.
    bool waits = false;
    friend bool operator==(const Instruction &, const Instruction &) = default;
};

/// "all-reduce (log-sum-exp)": the kind, and how summands are combined where they are not summed.
std::string textOf(const Instruction &instruction);

/// The queue that `instruction` waits in: its own, or else compute for what one device does alone, copy for
/// copies to and from the host, pipeline for sends and receives (of the forward pass, that is: those of the
/// backward pass say their own), tensor for collectives.
QueueKind queueOf(const Instruction &instruction);

/// It sends to another stage: what `Cluster::blockingSends` is about.
bool sendsToStage(const Instruction &instruction);

/// A run of instructions that is repeated for every micro-batch, or runs once per step.
struct Segment {
    SegmentKind kind = SegmentKind::Forward;
    StageId stage{};
    std::vector<Instruction> instructions{};
    std::int32_t slice = 0; ///< Of passes: of which slice of the stage (SplitOver::Slices).
    std::int32_t lane = 0; ///< Of passes: of which lane of the stage (SplitOver::Lanes).
    friend bool operator==(const Segment &, const Segment &) = default;
};

/// Instructions [begin, end) of `segment` for micro-batch `microBatch` (0 for the prologue, the first of its
/// micro-batches for an update's segment). Slices
/// of one run of a segment follow one another, with other segments' entries between them, and together are
/// all of it: so reductions start in the middle of a backward block, and two blocks interleave.
struct ScheduleEntry {
    std::int32_t segment = 0;
    std::int32_t microBatch = 0;
    std::int32_t begin = 0;
    std::int32_t end = -1; ///< -1: all that is left.
    friend bool operator==(const ScheduleEntry &, const ScheduleEntry &) = default;
};

/// What one device does in one training step: its segments in the order of `schedule`. All devices' orders
/// are restrictions of one global order, so they cannot deadlock.
///
/// All but `schedule` is shared by plans that differ in the order alone.
struct DeviceProgram {
    SharedVector<BufferInfo> buffers{};
    SharedVector<Segment> segments{};
    std::vector<ScheduleEntry> schedule{};
    /// Loads that fill persistent buffers before the first step.
    SharedVector<Instruction> setup{};
    friend bool operator==(const DeviceProgram &, const DeviceProgram &) = default;
};

/// A plan made explicit: per device an ordered list of instructions with tensor births and deaths. With its
/// graph it is all that the simulator, the verifier, the runner and the exporters need.
struct ExecutionPlan {
    GraphSnapshot graph{};
    BatchInfo batch{};
    ScaleUnits units{}; ///< All else is about one of them.
    std::int32_t microBatches = 1; ///< That a unit runs.
    /// Of the weights, in a step: the first with the gradients of the first `microBatches / updates`
    /// micro-batches, and so on. Each takes the mean over its micro-batches: `updates` times what their
    /// losses add to that of the step.
    std::int32_t updates = 1;
    std::int32_t stageCount = 1;
    std::vector<Partition> partitions{}; ///< By operator index.
    std::vector<std::vector<DeviceId>> placement{}; ///< By operator index, of each part within a unit.
    std::vector<Precision> precisions{}; ///< By operator index; empty where all work in Float32.
    std::vector<std::vector<DeviceId>>
        groups{}; ///< Communicators; the order of members is the order of chunks.
    /// By operator index: whether an Attention's probabilities are in memory. May be empty: none are.
    std::vector<AttentionMode> attention{};
    /// By operator index: how many versions of its weights there are, see `stalenessOf`. May be empty: one.
    std::vector<std::int32_t> weightVersions{};
    std::vector<DeviceProgram> devices{};
    /// Where the plan came from, for people and tools: "model", "cluster", import and training options.
    std::map<std::string, std::string> origin{};
};

/// How many versions of its weights `op` keeps.
std::int32_t weightVersionsOf(const ExecutionPlan &plan, OperatorId op);

/// By how many updates the version of input `slot` that `op` reads is older than the newest one. What a
/// forward or backward operator of N weight versions reads of a trained weight was the newest N - 1 updates
/// ago, so that w(t+1) = w(t) - f(gradient at w(t - (N - 1))): weight stashing, PipeDream (SOSP '19, section
/// 3.3); with two versions everywhere, PipeDream-2BW (arXiv:2006.09503, section 3.1). 0 for all else.
/// @param trained  by tensor: `trainedWeights`
std::int32_t stalenessOf(
    const Operator &op, std::size_t slot, std::int32_t weightVersions, const std::vector<bool> &trained);
/// By tensor: a weight that an optimizer operator updates.
std::vector<bool> trainedWeights(const Graph &graph);

/// The buffer that holds, when `update` updates have been made since the first step began, what `buffer`
/// stands for. The versions of a weight share their buffers out in a ring: each update writes over the
/// oldest, whose buffer is that of the newest from then on, and nothing is copied.
///
///     3 versions          w      1 old  2 old         update writes
///     before update 0     b0     b1     b2            b2
///     before update 1     b2     b0     b1            b1
///     before update 2     b1     b2     b0            b0
inline std::int32_t bufferOfVersion(
    std::int32_t staleness, std::int32_t versions, std::int32_t buffer, std::int64_t update)
{
    if (versions <= 1)
        return buffer;
    const auto place = static_cast<std::int32_t>((staleness - update) % versions);
    return buffer - staleness + (place < 0 ? place + versions : place);
}
inline std::int32_t bufferOfVersion(const BufferInfo &info, std::int32_t buffer, std::int64_t update)
{
    return bufferOfVersion(info.staleness, info.versions, buffer, update);
}

/// Fused for all operators that `ExecutionPlan::attention` does not reach.
AttentionMode attentionOf(const ExecutionPlan &plan, OperatorId op);

/// The instructions that `entry` of `program` runs: indices into its segment, [first, second).
std::pair<std::size_t, std::size_t> indicesOf(const DeviceProgram &program, const ScheduleEntry &entry);
/// The same, themselves.
std::span<const Instruction> instructionsOf(const DeviceProgram &program, const ScheduleEntry &entry);

/// How many micro-batches of a unit make the gradient of one update.
inline std::int32_t microBatchesPerUpdate(const ExecutionPlan &plan)
{
    return plan.microBatches / plan.updates;
}

/// Which of the step's updates takes the gradients of `microBatch`.
inline std::int32_t updateOf(const ExecutionPlan &plan, std::int32_t microBatch)
{
    return microBatch / microBatchesPerUpdate(plan);
}

/// Into how many pieces a step cuts the mini-batch: the micro-batches of all units.
inline std::int32_t batchCuts(const ExecutionPlan &plan)
{
    return plan.microBatches * plan.units.count;
}

/// The box of `buffer` for micro-batch `microBatch` of unit `unit`: its index mask, shifted along the batch
/// dimension of its tensor, or along the one that units share out.
IndexMask boxOf(
    const ExecutionPlan &plan, const BufferInfo &buffer, std::int32_t microBatch, std::int32_t unit = 0);

/// The precision that `op` works in.
Precision precisionOf(const ExecutionPlan &plan, OperatorId op);

/// Whether `instruction`, of an optimizer, reads the buffer `output`, which is not persistent, and leaves the
/// new value in it: so what was fetched from the host is updated where it lies.
bool updatesInPlace(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction,
    std::int32_t output);

/// Bytes of one instance of `buffer`.
Bytes sizeOf(const BufferInfo &buffer);

/// Number of instructions of one step, over all devices and micro-batches.
std::int64_t instructionCount(const ExecutionPlan &plan);

} // namespace planloom
