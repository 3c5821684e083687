#pragma once

#include "engine/base/result.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/layout/materialize.h"
#include "engine/lowering/order/sequence.h"
#include "engine/lowering/program/program_builder.h"
#include "engine/lowering/transform.h"
#include "engine/lowering/weight_versions.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// By operator; empty if all work in Float32.
std::vector<Precision> precisionsOf(const Plan &plan);

/// By operator: `OperatorDecision::coshardRegion`.
std::vector<std::int32_t> coshardRegionsOf(const Plan &plan);

/// The first half of lowering at work on one plan; used once. Between the parts of operators, on their
/// devices, it puts what the materializer finds (materialize.h), and sorts all of it by block.
class Lowering
{
public:
    Lowering(const VersionedPlan &versioned, const Cluster &cluster, const CostModel &costs,
        TransformedGraph transformed, std::shared_ptr<PathMemory> paths, std::stop_token stop)
        : m_plan(versioned.plan)
        , m_versions(versioned.versions)
        , m_graph(*m_plan.graph)
        , m_cluster(unitOf(cluster, m_plan.units))
        , m_costs(costs)
        , m_transformed(std::move(transformed))
        , m_stop(std::move(stop))
        , m_uses(usesOf(m_graph))
        , m_precisions(precisionsOf(m_plan))
        , m_types(typesOf(versioned, m_precisions))
        , m_builder(m_plan.deviceCount)
        , m_materializer(m_graph, m_transformed.batch, m_transformed.summands, m_types, m_cluster, costs,
              m_plan.units, batchCuts(m_plan), std::move(paths), m_builder)
        , m_persistent(m_graph.tensors.size())
        , m_gathered(m_graph.tensors.size())
        , m_persistentBoxes(m_graph.tensors.size())
        , m_blocksOf(m_graph.operators.size())
        , m_regionOf(coshardRegionsOf(m_plan))
        , m_accumulators(m_graph.tensors.size())
    {
        for (std::size_t v = 0; v < m_versions.size(); ++v)
            m_versionTensors.emplace(m_versions[v], static_cast<std::int32_t>(firstVersion() + v));
    }

    Result<MaterializedPlan> run();

private:
    Result<void> goesOn() const; ///< Cancelled, once it is told to stop.
    /// A buffer that lives across steps; of a weight with several versions, that of the newest.
    struct Persistent {
        DeviceId device{};
        IndexMask box{};
        std::int32_t buffer = -1;
        DataType dataType = DataType::Float32;
        std::int32_t staleness = 0; ///< Where it is a box that is read: of which version.
    };
    /// What units share out among them.
    struct UnitShard {
        std::int32_t dimension = -1; ///< Of the weight.
        std::int64_t extent = 0; ///< Of all units' shares together, along it.
    };

    /// A weight whose replicas share out more than its update: ZeRO's stages 2 and 3.
    struct ShardedWeight {
        OperatorId update{};
        WeightSharding sharding{};
        std::optional<UnitShard> shard{}; ///< Of the units; nothing where devices of the unit share.
        std::map<DeviceId, std::vector<IndexMask>> places{}; ///< By device: the boxes it updates.
    };
    /// A sharded weight, as one operator reads it.
    struct WeightGather {
        const ShardedWeight *sharded = nullptr;
        TensorId weight{};
        DataType type{};
        OperatorId op{};
        std::vector<Need> needs{}; ///< By part.
        std::vector<DeviceId> among{}; ///< That have something of what the first part reads.
    };
    /// Operators of a block whose sharded weights are gathered together.
    struct GatherGroup {
        std::size_t first = 0; ///< Places in the block's sequence.
        std::size_t last = 0;
        std::size_t due = 0; ///< Where the weights are gathered.
        bool waits = true; ///< For what is computed before that place.
        std::vector<OperatorId> operators{};
    };

    /// A shard of a micro-batch's gradient, to be added to that of the step.
    struct CutShard {
        TensorId gradient{};
        DeviceId device{};
        OperatorId update{};
        IndexMask box{};
        std::int32_t buffer = -1;
    };

    void makeBlocks();
    std::vector<bool> readByTurns(const std::vector<bool> &areOfWeights) const;
    void splitBackwardPasses();
    const Operator &shareOf(OperatorId id, std::int32_t block) const;
    std::int32_t weightBlockOf(OperatorId id) const;
    std::vector<OperatorId> forwardOperators(std::int32_t block) const;
    std::int32_t addBlockOf(SegmentKind kind, std::int32_t stage, std::int32_t cell, double rank);
    std::size_t cellOf(std::int32_t block) const;
    std::vector<std::size_t> cellsOf(OperatorId id) const;
    bool isInStage(OperatorId id, Direction direction, StageId stage) const;
    Result<void> assignBlocks();
    void collectPersistentBoxes();
    void reserveRoom();
    void reserveRoom(std::int32_t block, const std::vector<OperatorId> &operators);
    void estimateBlocks();
    void addSliceOrder(MaterializedPlan &materialized) const;

    Result<void> emitInOrder(const std::vector<OperatorId> &operators, std::int32_t block, bool recompute);
    Result<void> emitRegion(const std::vector<OperatorId> &members, std::int32_t block, bool recompute);
    Result<void> bringToRegion(const std::vector<OperatorId> &members, std::int32_t block);
    void chooseSums(const std::vector<OperatorId> &members);
    bool addToSum(const TensorView &view, DeviceId device, std::int32_t block, OperatorId op,
        std::size_t slot, std::int32_t summand, std::int32_t buffer);
    void handOutSums(std::int32_t block);
    void findTurns();
    std::size_t regionEnd(const std::vector<OperatorId> &operators, std::size_t begin) const;
    std::vector<OperatorId> readAgain(const std::vector<OperatorId> &members, std::int32_t block) const;
    Result<void> recomputeGroup(std::int32_t group, std::int32_t block);
    bool isDue(OperatorId id, std::int32_t part, std::int32_t block, bool recompute, std::int32_t turn) const;
    Result<void> emitOperator(OperatorId id, std::int32_t block, bool recompute, std::int32_t turn = -1);
    Result<std::vector<BufferList>> gatherInputs(OperatorId id, std::int32_t block,
        const std::vector<std::size_t> &parts, const std::vector<bool> &passed = {});
    /// Outputs of an operator whose parts have to be weighed (`Combination::Weighted`), by slot.
    struct Weighing {
        std::vector<std::int32_t> by{}; ///< The slot of the log-sum-exps; -1 where there is nothing to weigh.
        std::vector<bool> weighs{}; ///< Another output is weighed by it.
        std::vector<std::vector<Holding>> made{}; ///< What the parts made of both, in one order.
    };
    BufferList emitPart(OperatorId id, std::int32_t block, bool recompute, std::size_t number,
        const BufferList &inputs, const Weighing &weighing, const std::vector<SummandSet> &besides = {});
    void handOver(OperatorId id, std::int32_t block, std::size_t slot, std::int32_t summand, Holding made,
        std::size_t expected = 1);
    class RingTurns;
    Result<void> emitRing(OperatorId id, std::int32_t block, bool recompute);
    /// NotSupported where what is kept of one part would not be that of the whole.
    Result<Weighing> weighingOf(OperatorId id) const;
    Result<void> weighParts(OperatorId id, std::int32_t block, const Weighing &weighing);
    Result<std::vector<std::int32_t>> inputBuffers(
        TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);
    std::int32_t persistentBuffer(TensorId tensor, DeviceId device, const IndexMask &box, DataType type,
        const UnitShard *shard = nullptr);
    std::optional<std::int32_t> gatheredAhead(
        TensorId tensor, DeviceId device, const IndexMask &box, DataType type);
    std::int32_t castBuffer(
        DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer, DataType type);
    void accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op, const IndexMask &box,
        std::int32_t summand, std::int32_t buffer);
    bool joinsAccumulators(TensorId tensor);
    void noteCompletion(TensorId tensor, std::int32_t block);
    void fillBuckets();
    std::vector<DeviceId> addersOf(TensorId gradient) const;
    double gradientSeconds(TensorId tensor, Bytes bytes) const;
    void reduceAccumulators();
    void findSharded();
    /// Null where its replicas share out less than `stage` does.
    const ShardedWeight *shardedWeight(TensorId weight, std::int32_t stage) const;
    std::int32_t shardBuffer(
        const ShardedWeight &sharded, TensorId weight, DeviceId device, const IndexMask &box, DataType type);
    void gatherWeight(const ShardedWeight &sharded, TensorId weight, const std::vector<Need> &needs,
        DataType type, std::int32_t block, OperatorId op);
    void addGathers(OperatorId id, std::int32_t block, std::vector<WeightGather> &gathers) const;
    void findGatherGroups(std::int32_t block);
    Result<void> scheduleGathers(std::int32_t block);
    void gatherAhead(std::size_t place, std::int32_t block);
    bool isCutByMicroBatch(TensorId gradient);
    void addToShards(const ShardedWeight &sharded, TensorId gradient, DeviceId device, std::int32_t block,
        const IndexMask &box, std::int32_t summand, std::int32_t buffer);
    void noteCut(OperatorId id, std::int32_t block);
    Result<void> cutGradients(std::int32_t block);
    void cutAcrossUnits(const std::vector<TensorId> &gradients, std::int32_t block);
    void addShards(const std::vector<CutShard> &shards, std::int32_t block);
    void addShard(const CutShard &shard, std::int32_t block);
    IndexMask largestBox(TensorId tensor, DeviceId device, const IndexMask &box, DataType type) const;
    Result<void> emitBlock(std::int32_t block);
    std::int32_t optimizerBlockOf(const Operator &op) const;
    void markCompletions(OperatorId id, std::int32_t block);
    Result<void> recomputeFor(OperatorId backward, std::int32_t block);
    /// Sums of squares that a device has found, one per box of a gradient: of what units share out, a unit's
    /// own; of what all of them update, that of any.
    struct SummedSquares {
        struct Share {
            BufferList buffers{};
            SummandSet summands{};
        };
        Share ofUnit{};
        Share ofAll{};
    };
    /// A weight's update, of which its copies know nothing yet.
    struct WeightUpdate {
        OperatorId id{};
        std::int32_t block = -1;
        std::vector<std::pair<DeviceId, std::int32_t>> inPlace{}; ///< Buffers, ascending.
        std::vector<std::vector<Holding>> made{}; ///< By slot of its outputs.
    };
    void forgetPasses();
    Result<void> emitOptimizer();
    std::map<std::int32_t, std::map<std::int32_t, std::vector<OperatorId>>> byBlockAndBucket(
        bool (*wanted)(const Operator &)) const;
    Result<void> emitClipping();
    Result<void> emitSquares(OperatorId id, std::int32_t block, std::map<DeviceId, SummedSquares> &squares);
    Holding sumSquares(OperatorId op, TensorId sum, DeviceId device, BufferList buffers, SummandSet summands);
    Result<void> emitClipFactor(OperatorId id);
    std::vector<OperatorId> byReduction(std::vector<OperatorId> updates) const;
    Result<std::vector<WeightUpdate>> emitUpdates(const std::vector<OperatorId> &together);
    Result<WeightUpdate> emitUpdate(OperatorId id);
    struct Gathering {
        std::vector<DeviceId> sources{}; ///< Whose parts come together; none where nothing is to be brought.
        Bytes bytes{};
    };
    Gathering gatheringOf(const WeightUpdate &update) const;
    bool isWorthALaunch(const std::vector<DeviceId> &sources, Bytes bytes) const;
    Result<void> spreadUpdate(WeightUpdate update);
    void castShards(TensorId weight, DeviceId device, std::int32_t block, OperatorId op, std::int32_t made);
    Result<std::vector<std::int32_t>> wholeInput(
        OperatorId id, std::size_t slot, DataType type, std::int32_t block);
    Result<std::vector<std::int32_t>> gradientInUnit(OperatorId id, std::size_t slot);
    Result<std::vector<BufferList>> optimizerInputs(OperatorId id, std::int32_t block);
    std::optional<UnitShard> unitShardOf(OperatorId id) const;
    static IndexMask joinedUnits(IndexMask box, const UnitShard &shard);
    static void markShard(BufferInfo &info, const UnitShard &shard);
    void gatherAcrossUnits(OperatorId id, std::int32_t block, const Holding &own, const UnitShard &shard);
    Result<void> storeOutputs();
    Result<void> storeOutput(TensorId tensor);

    bool isPersistent(TensorId tensor) const;
    bool isWeightGradient(TensorId tensor) const;
    bool isWanted(TensorId tensor) const;
    /// Several summands make up the tensor's value.
    bool isInParts(TensorId tensor) const;
    /// True for probabilities that the plan does not keep: neither made nor read.
    bool isLeftOut(OperatorId op, bool output, std::size_t slot) const;
    MemoryKind memoryOf(TensorId tensor) const;

    /// The storage types of the graph without versions, and of these.
    static StorageTypes typesOf(const VersionedPlan &versioned, const std::vector<Precision> &precisions);
    std::size_t firstVersion() const { return m_graph.tensors.size() - m_versions.size(); }
    /// The weight that `tensor` is a version of; itself if it is none.
    WeightVersion versionOf(TensorId tensor) const;
    std::int32_t versionsOn(TensorId weight, DeviceId device, std::optional<DataType> type) const;
    std::int32_t addVersions(BufferInfo info, DeviceId device, std::int32_t versions, bool readInPlace);
    std::int32_t oldestVersion(DeviceId device, std::int32_t buffer) const;

    const Plan &m_plan; ///< With versions of weights as tensors, as its graph.
    const std::vector<WeightVersion> &m_versions; ///< The last tensors.
    std::map<WeightVersion, TensorId> m_versionTensors{};
    const Graph &m_graph;
    const Cluster m_cluster; ///< Of one unit.
    const CostModel &m_costs;
    TransformedGraph m_transformed;
    std::stop_token m_stop;
    Uses m_uses;
    std::vector<Precision> m_precisions;
    StorageTypes m_types;
    ProgramBuilder m_builder;
    Materializer m_materializer;

    std::int32_t m_prologue = -1;
    using BlocksByStage = std::vector<std::vector<std::int32_t>>; ///< And lane and slice: `cellOf`.
    BlocksByStage m_forward{};
    BlocksByStage m_backward{}; ///< Of a split pass: the blocks of input gradients.
    BlocksByStage m_weightGradient{}; ///< None where the backward pass is not split.
    std::vector<bool> m_inWeightGradient{}; ///< By operator: it runs there, or one half of it.
    /// By operator that runs in two halves: what it makes with the gradients of inputs, and of weights.
    std::map<std::int32_t, std::pair<Operator, Operator>> m_halves{};
    std::vector<std::int32_t> m_optimizer{}; ///< Block by stage, and one for weights of several stages.
    std::vector<double> m_seconds{}; ///< By operator: what one part of it takes.
    std::vector<std::vector<OperatorId>> m_sequence{}; ///< Operators by block, in order.

    std::vector<std::vector<Persistent>> m_persistent; ///< By tensor; of versions, under their weight.
    std::vector<std::vector<Persistent>> m_gathered; ///< By tensor: copies made anew in every step.
    std::vector<std::vector<Persistent>> m_persistentBoxes; ///< By tensor: every box that is read, per
                                                            ///< device; of versions, under their weight.
    /// By operator, in the order in which they run: one of the gradients of inputs where it runs in halves.
    std::vector<std::vector<std::int32_t>> m_blocksOf;
    std::vector<std::int32_t> m_regionOf; ///< By operator: its coshard region, or -1.
    std::vector<bool> m_takesTurns{}; ///< By recompute group: it is one coshard region.
    /// What the turns of the region at hand add up, by output: see `chooseSums`.
    std::map<std::pair<OperatorId, std::size_t>, std::size_t> m_sumOf{};
    struct TurnSum {
        TensorId tensor{};
        std::map<std::pair<DeviceId, IndexMask>, Holding> accumulators{}; ///< Buffer -1 until the first part.
        std::set<std::tuple<DeviceId, IndexMask, std::int32_t>> added{}; ///< Summands.
    };
    std::vector<TurnSum> m_sums{};
    /// Where a device adds a weight's gradient up.
    struct Accumulator {
        IndexMask box{};
        std::int32_t summand = -1; ///< The only one it holds; -1 where it holds them all.
        std::int32_t buffer = -1;
        SummandSet summands{};
        bool complete = false; ///< Whatever `summands` says: what is added to it is complete.
    };
    std::vector<std::map<DeviceId, std::vector<Accumulator>>> m_accumulators; ///< By tensor and device.
    std::map<std::int32_t, bool> m_joinsAccumulators{}; ///< By tensor, once asked.
    /// Where a weight's gradient is complete: behind these marks in the last micro-batch, one for each lane
    /// that adds to it.
    struct Completion {
        std::vector<BlockMark> marks{}; ///< None: several stages or passes add to it.
        bool atEnd() const { return marks.empty(); }
    };
    std::map<TensorId, Completion> m_complete{};
    /// Gradients that are reduced together, as soon as all are complete.
    struct Bucket {
        std::int32_t block = -1; ///< The reduction's own.
        Completion after{};
    };
    std::vector<Bucket> m_buckets{};
    std::map<TensorId, std::int32_t> m_bucketOf{};
    std::map<std::pair<OperatorId, std::size_t>, std::vector<std::int32_t>> m_gradientInUnit{};
    /// By device and buffer of a unit's own sum: that of all units, where several operators read it.
    std::map<std::pair<DeviceId, std::int32_t>, std::int32_t> m_gradientOfUnits{};
    std::map<TensorId, ShardedWeight> m_sharded{}; ///< By weight.
    std::vector<GatherGroup> m_gatherGroups{}; ///< Of the block at hand, in the order of their begins.
    bool m_gathersWait = true; ///< Gathers start no earlier than what was emitted before them is done.
    std::map<TensorId, bool> m_cut{}; ///< By gradient, once asked: `isCutByMicroBatch`.
    std::map<TensorId, std::int32_t> m_makersLeft{}; ///< By such a gradient: operators that add to it still.
    std::vector<TensorId> m_pending{}; ///< Such gradients, complete but not yet cut.
    std::vector<CutShard> m_cutShards{}; ///< Of the block at hand, not yet added up.
    /// (buffer, summand) of what a device made of such a gradient.
    std::map<std::pair<TensorId, DeviceId>, std::vector<std::pair<std::int32_t, std::int32_t>>>
        m_madeGradients{};
    std::vector<TensorId> m_fed{}; ///< Tensors that come from the host.
    std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> m_recomputed{}; ///< (group, stage, lane)
    std::vector<std::vector<OrderConstraint>> m_ordersInside{}; ///< By block, of rows.
};

} // namespace planloom
