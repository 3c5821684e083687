#pragma once

#include "engine/base/result.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/layout/available.h"
#include "engine/lowering/layout/layout.h"
#include "engine/lowering/layout/path_finder.h"
#include "engine/lowering/program/program_builder.h"
#include "engine/lowering/transform.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace planloom {

/// A box of a tensor that a device must hold: complete, or as one of the parts of a Value split.
struct Need {
    DeviceId device{};
    IndexMask box{};
    ValueMask value{};
    friend bool operator==(const Need &, const Need &) = default;
};

/// The third phase of lowering: between the views that operators make and the views that operators read it
/// puts the communication that mends them (SuperScaler, arXiv:2301.08984, section 3.4).
///
/// Per tensor it keeps what was made (with which summands, in which block) and what is already complete
/// somewhere. A need is met, in this order, from a buffer that holds the box, from one that contains it
/// (Select), or by converting what was made:
/// - within one group of devices along the cheapest path of layouts (layout.h), the devices numbered so that
///   layouts are seen;
/// - between disjoint groups by a path on either side of a point-to-point crossing, all three chosen
/// together; what several consumers want alike may be sent to one of them that passes it on;
/// - from a group to some of its devices as if all of them wanted it, where summands are so many that this is
///   cheaper;
/// - one box for many by a broadcast from somebody who holds it, where that is cheapest;
/// - anything irregular by the general way: select, send, concat, sum. That way always works.
class Materializer
{
public:
    Materializer(const Graph &graph, const BatchInfo &batch, const SummandSets &summands,
        const StorageTypes &types, const Cluster &cluster, const CostModel &costs, ScaleUnits units,
        std::int32_t batchCuts, std::shared_ptr<PathMemory> paths, ProgramBuilder &builder);

    /// Registers that `block` makes `holding` of `tensor` (its summands numbered as in `BufferInfo`). All of
    /// a tensor's are of the type that `StorageTypes::accumulated` says.
    /// @param expected  how many `block` makes in all, as far as is known
    void made(TensorId tensor, std::int32_t block, Holding holding, std::size_t expected = 1);

    /// Buffers of `tensor` of type `type`, complete, one per need in their order, usable in `block`. Emits
    /// what is missing: casts stand before communication where they make it smaller, else behind it;
    /// gradients of weights travel in the type they are reduced in.
    /// @param op  the operator that needs them, for display
    Result<std::vector<std::int32_t>> ensure(
        TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);

    /// Buffers for the parts of a Value split of `op`, one per need in their order, whose values add up to
    /// `tensor` in every box: its own summands where they lie so, or can be brought to lie so. Asked twice
    /// for one operator (it is run again), it divides the value alike.
    /// @return nothing if complete values have to be divided: ask `ensure` for them
    std::optional<std::vector<std::int32_t>> ensureParts(
        TensorId tensor, const std::vector<Need> &needs, std::int32_t block, OperatorId op);

    /// Buffers of `tensor` of type `type`, one per need in their order, brought together in `block` from
    /// `pieces`: complete boxes of that type, persistent ones. Only `block` may read them; and, if `keep`,
    /// the backward pass of a forward block's stage.
    std::vector<std::int32_t> gather(TensorId tensor, std::vector<Holding> pieces,
        const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op, bool keep);
    /// The same, which whoever comes later may read, as long as it is there.
    std::vector<Holding> bring(TensorId tensor, std::vector<Holding> pieces, const std::vector<Need> &needs,
        DataType type, std::int32_t block, OperatorId op);
    /// The same as `gather` for a copy that was gathered by others.
    void gathered(TensorId tensor, Holding holding, std::int32_t block, bool keep);
    /// Whether `block` has all of `needs` at hand, in one buffer each.
    bool holds(TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block) const;

    /// Weighs what `block` made of a tensor whose parts are `Combination::Weighted`, each by the log-sum-exp
    /// that its operator made beside it (`weights`, of the tensor `by`) and that of all parts, which is
    /// brought to it. Both lists have the parts in one order, with their summands.
    /// @return summands of the tensor, in that order
    Result<std::vector<Holding>> weigh(TensorId tensor, const std::vector<Holding> &parts, TensorId by,
        const std::vector<Holding> &weights, std::int32_t block, OperatorId op);

    /// What `block` or any other made of `tensor`: one entry per device and box after local merging.
    const std::vector<Holding> *holdingsOf(TensorId tensor, std::int32_t block) const;
    /// Blocks that made something of `tensor`, in the order of first making.
    std::vector<std::int32_t> makersOf(TensorId tensor) const;

    /// Forgets what block `made` holds of `tensor`, also what its transfers to `reader` brought:
    /// recomputation makes it anew there. Copies that other blocks hold stay.
    void forget(TensorId tensor, std::int32_t made, std::int32_t reader);

    /// Forgets all of a tensor that nobody needs any more; of all of them.
    void forget(TensorId tensor);
    void forgetAll() { m_tensors.clear(); }

    /// From here on, until `endTurns`, what blocks make belongs to turn `turn` of a coshard region, which
    /// reads what it made itself and nothing that other turns did.
    void beginTurn(std::int32_t turn);

    /// Joins what all turns made in `block`. Of what they read, slices that can be cut again are forgotten,
    /// so that nothing holds them until then.
    /// @param read  tensors that the turns read and did not make
    void endTurns(std::int32_t block, const std::vector<TensorId> &read);

    /// Registers a complete buffer that exists already (a persistent one, or an input).
    void available(TensorId tensor, Holding holding, std::int32_t block);

private:
    struct Made {
        std::int32_t block = -1;
        std::int32_t turn = -1; ///< Of a coshard region; -1 outside, and once it is over.
        std::vector<Holding> raw{}; ///< As operators made them; of a version, cast where they are needed.
        std::vector<Holding> merged{}; ///< After local Sum and Concat; empty until merged.
    };
    struct PartOfValue {
        Need need{};
        std::int32_t buffer = -1;
        std::int32_t block = -1;
    };
    struct TensorState {
        std::vector<Made> made{};
        AvailableList available{};
        std::map<DataType, std::vector<Made>> versions{}; ///< What was made, cast to other types.
        std::vector<PartOfValue> parts{}; ///< What `ensureParts` found.
        bool gathered = false; ///< By every block anew: `gather`.
        bool kept = false; ///< By forward blocks for backward ones.
    };
    /// One conversion at work.
    struct Task {
        TensorId tensor{};
        OperatorId op{};
        std::int32_t block = -1; ///< Where instructions go.
        DataType dataType{};
        IndexMask whole{}; ///< Of the tensor, in micro-batch 0.
        SummandSet summands{}; ///< All that this conversion brings.
        Combination combination = Combination::Sum; ///< The tensor's.
    };
    struct CrossingChoice {
        LayoutPath before{};
        Layout from{};
        Layout to{};
        LayoutPath after{};
        /// Consumers that differ in these digits get the same: the first of them, which passes it on.
        std::vector<std::int8_t> broadcast{};
        double seconds = 0;
    };

    class Delivery;

    /// What is brought together without anything else: its boxes touch no others.
    struct Apart {
        std::vector<Holding> from{};
        std::vector<Need> needs{};
    };
    /// Nothing where all is one. O(different boxes^2 + holdings + needs).
    static std::vector<Apart> apartOf(const std::vector<Holding> &from, const std::vector<Need> &needs);
    std::vector<Holding> bringFrom(TensorId tensor, std::vector<Holding> pieces,
        const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);
    IndexMask wholeBox(TensorId tensor) const;
    bool perMicroBatch(std::int32_t block) const;
    std::int32_t newBuffer(const Task &task, DeviceId device, const IndexMask &box,
        const SummandSet &summands, MemoryKind memory, ValueMask valuePart = {});
    MemoryKind memoryOf(TensorId tensor) const;

    const std::vector<Holding> &merge(Made &made, Task task);
    std::vector<Holding> convert(Made &made, const std::vector<Need> &needs, const Task &task);
    std::vector<Holding> convertMerged(Made &made, const std::vector<Need> &needs, const Task &task);
    std::vector<Holding> convertApart(
        const std::vector<Holding> &from, std::vector<Need> &needs, const Task &task);
    std::optional<std::vector<Holding>> convertInRounds(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task, Made *raw);
    std::optional<std::vector<Holding>> convertByProducers(
        Made &made, const std::vector<Need> &needs, const Task &task);
    std::optional<std::vector<Holding>> convertWithin(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task);
    /// By way of all devices that hold something, where some of them want it: summands of many are joined
    /// where they are, in place of being sent one by one to everybody who wants their sum.
    std::optional<std::vector<Holding>> convertAmongHolders(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task);
    /// Seconds that the general way takes; nothing if it cannot give parts of a value.
    std::optional<double> generalSeconds(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task) const;
    std::optional<std::vector<Holding>> convertAcross(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task);
    /// Seconds of one broadcast to all who want the one box that somebody holds; nothing if that is not all.
    std::optional<double> spreadSeconds(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task) const;
    std::optional<std::vector<Holding>> spread(
        const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task);
    std::optional<CrossingChoice> chooseCrossing(const Layout &from, const Layout &to,
        const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers, const Task &task);
    std::optional<CrossingChoice> findCrossing(const Layout &from, const Layout &to,
        const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers,
        const Task &task) const;
    std::vector<Holding> along(
        const PathFinder::Found &found, const std::vector<Holding> &holdings, const Task &task);
    void walk(const LayoutPath &path, std::vector<Holding> &holdings, const std::vector<DeviceId> &group,
        const Task &task);
    void communicate(const Hop &hop, const std::vector<Holding> &holdings, std::vector<Holding> &next,
        const std::vector<DeviceId> &group, const Task &task);
    void broadcast(const Holding &from, const std::vector<DeviceId> &members, const Task &task,
        std::vector<Holding> &received);
    std::vector<Holding> fetch(
        const std::vector<const Holding *> &sources, const Need &need, const Task &task);
    Holding fetchGeneral(const std::vector<Holding> &sources, const Need &need, const Task &task);
    Holding assemble(const std::vector<Holding> &pieces, const Need &need, const Task &task);
    Holding select(const Holding &from, const IndexMask &box, const Task &task);
    Holding selectPart(const Holding &from, const IndexMask &box, ValueMask part, const Task &task);
    Holding move(const Holding &from, DeviceId to, const Task &task);
    Holding concat(const std::vector<Holding> &pieces, const IndexMask &box, const Task &task);
    Holding sum(const std::vector<Holding> &pieces, const Task &task);
    Result<std::vector<std::int32_t>> ensureSlices(
        TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);
    bool isBackwardOf(std::int32_t maker, std::int32_t reader) const;
    bool isGatheredAgain(TensorId tensor, const Available &copy, std::int32_t block) const;
    const Available *findLocal(TensorId tensor, const Need &need, DataType type, std::int32_t block) const;
    bool castLocally(const std::vector<Need> &needs, const Task &task, std::vector<std::int32_t> &buffers);
    DataType typeOf(const Holding &holding) const;
    DataType wireType(TensorId tensor, DataType wanted) const;
    Holding cast(const Holding &from, const Task &task);
    std::vector<Made> &versionsOf(const Task &task);
    const std::vector<Holding> &castRaw(Made &made, const Task &task);
    std::int32_t transferBlock(std::int32_t from, std::int32_t to);
    /// The set, empty if it is all there is of `box`.
    SummandSet canonical(TensorId tensor, SummandSet summands, const IndexMask &box) const;
    bool isOtherTurns(const Made &made) const { return made.turn >= 0 && made.turn != m_turn; }

    const Graph &m_graph;
    const BatchInfo &m_batch;
    const SummandSets &m_summands;
    const StorageTypes &m_types;
    const Cluster &m_cluster;
    const CostModel &m_costs;
    ScaleUnits m_units;
    std::int32_t m_batchCuts;
    ProgramBuilder &m_builder;
    std::vector<Combination> m_combinations; ///< By tensor.
    std::vector<TensorState> m_tensors;
    std::int32_t m_turn = -1;
    std::set<TensorId> m_turnTensors{}; ///< That turns have made so far.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> m_transfers{};
    std::vector<std::int64_t> m_sent{}; ///< Bytes sent so far by each device, to spread the load.
    PathFinder m_paths;
    /// By operator and tensor: whether `ensureParts` found something the first time.
    std::map<std::pair<OperatorId, TensorId>, bool> m_partsFound{};
    using CrossingKey = std::tuple<Layout, Layout, std::vector<std::int64_t>, DataType, Combination,
        std::vector<std::int32_t>, std::vector<std::int32_t>>;
    std::map<CrossingKey, std::optional<CrossingChoice>> m_crossings{};
};

} // namespace planloom
