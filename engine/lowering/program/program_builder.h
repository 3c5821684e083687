#pragma once

#include "engine/lowering/order/order.h"
#include "engine/lowering/order/sequence.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/order/overlap.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace planloom {

/// The product that a collective of a segment can run chunk by chunk with: the one that makes its input, or
/// else the first that reads its output; an index into `instructions`.
std::optional<std::size_t> overlapPartner(
    const Graph &graph, const std::vector<Instruction> &instructions, std::size_t collective);

/// Collects instructions by block and device, and makes them programs: segments, and the deaths of buffers.
class ProgramBuilder
{
public:
    explicit ProgramBuilder(std::int32_t deviceCount);

    /// Adds a block: the only slice and lane of its stage, unless who adds it says otherwise. Blocks of one
    /// micro-batch run by `rank` wherever they share a buffer.
    std::int32_t addBlock(SegmentKind kind, StageId stage, double rank);
    const BlockInfo &block(std::int32_t index) const { return m_blocks[static_cast<std::size_t>(index)]; }
    std::vector<BlockInfo> &blocks() { return m_blocks; }

    /// Room for what is to come on `device`: so many buffers, and instructions that set up.
    void reserve(DeviceId device, std::size_t buffers, std::size_t setup);
    /// Room for so many instructions of `device` in `block`.
    void reserve(DeviceId device, std::int32_t block, std::size_t instructions);

    std::int32_t addBuffer(DeviceId device, BufferInfo buffer);
    /// Adds a buffer, and the instruction whose one output it is. @return the buffer
    std::int32_t make(DeviceId device, std::int32_t block, BufferInfo buffer, Instruction instruction);
    const BufferInfo &buffer(DeviceId device, std::int32_t index) const;
    void setSummands(DeviceId device, std::int32_t index, SummandSet summands);

    void emit(DeviceId device, std::int32_t block, Instruction instruction);
    /// What communications emitted from now on wait in, and whether they wait for the compute queue; nothing
    /// for what is usual. See `BesideCompute`.
    void setQueue(std::optional<QueueKind> queue, bool waits = false)
    {
        m_queue = queue;
        m_waits = waits;
    }
    void emitSetup(DeviceId device, Instruction instruction);

    /// Remembers where every device stands in `block` now: a place where the block may be cut. What is
    /// emitted later stands behind it, on all devices, so that cuts at one mark keep one global order.
    std::int32_t mark(std::int32_t block);

    /// Notes where operators of the blocks of passes run, from now on: see `MaterializedPlan::places`.
    void keepPlaces() { m_keepsPlaces = true; }
    /// Notes that `block` runs `op` from here on, and may be cut here, if it has communicated since it last
    /// might.
    void noteOperator(std::int32_t block, OperatorId op);

    /// Index of the communicator of these devices in this order.
    std::int32_t groupOf(const std::vector<DeviceId> &members);
    std::int32_t newTag() { return m_nextTag++; }

    /// Dependencies between blocks of one micro-batch that follow from shared buffers: (earlier, later).
    /// Also notes each buffer's last block; nothing may be emitted after it.
    std::vector<std::pair<std::int32_t, std::int32_t>> sharedBufferDependencies();

    /// Joins what is launched together: neighbouring collectives of one group in blocks that run once per
    /// step, element-wise kernels with the one before that they read, neighbouring updates.
    void join(const Graph &graph, CollectiveOverlap overlap);

    std::int32_t deviceCount() const { return static_cast<std::int32_t>(m_devices.size()); }
    std::int32_t bufferCount(DeviceId device) const;
    /// What `device` runs in `block` so far; to be changed in place.
    std::span<Instruction> instructions(DeviceId device, std::int32_t block);
    /// Says that a buffer is in host memory.
    void moveToHost(DeviceId device, std::int32_t buffer);
    /// An instruction that comes before the one at `position`, and behind those put there earlier.
    struct Insertion {
        std::size_t position = 0;
        Instruction instruction{};
    };
    /// Puts instructions between those of a block. What comes where a mark is stands behind it.
    /// @param insertions  ascending by position
    void insert(DeviceId device, std::int32_t block, std::vector<Insertion> insertions);

    /// Moves what was built into `plan`: blocks, marks, and the groups and devices of its programs, with the
    /// deaths of buffers.
    void finish(MaterializedPlan &plan);

private:
    struct Device {
        DeviceProgram program{};
        std::vector<std::vector<Instruction>> byBlock{};
        std::vector<std::int32_t> lastBlock{}; ///< Per buffer: the last block, by rank, that touches it.
        std::vector<bool> cameByData{}; ///< Per buffer: made on the data queue, in a block that runs once.
    };

    template<typename Visit> void forEachDevice(Visit visit);
    void markDeaths(Device &device) const;
    void noteSlice(std::int32_t block);
    /// That what `block` sends to other stages waits in.
    QueueKind pipelineQueueOf(std::int32_t block) const;
    void moveMarks();
    void joinPlaces();
    bool runsOnce(std::int32_t block) const;

    std::vector<Device> m_devices{};
    std::vector<BlockInfo> m_blocks{};
    std::set<std::int32_t> m_communicated{}; ///< Blocks that have, since they last might be cut.
    std::vector<std::vector<DeviceId>> m_groups{};
    std::map<std::vector<DeviceId>, std::int32_t> m_groupIndex{};
    std::int32_t m_nextTag = 0;
    std::optional<QueueKind> m_queue{};
    bool m_waits = false;
    std::vector<std::map<std::int32_t, std::int32_t>>
        m_marks{}; ///< By mark and device: instructions before it.
    std::vector<std::int32_t> m_markBlocks{}; ///< By mark.
    bool m_keepsPlaces = false;
    std::vector<std::vector<RunPlace>> m_places{}; ///< By block.
};

/// While it lives, communications of a builder wait in the data queue, beside computation.
class BesideCompute
{
public:
    /// @param waits  they start no earlier than the computation emitted behind them could
    BesideCompute(ProgramBuilder &builder, bool waits)
        : m_builder(builder)
    {
        m_builder.setQueue(QueueKind::Data, waits);
    }
    ~BesideCompute() { m_builder.setQueue(std::nullopt); }
    BesideCompute(const BesideCompute &) = delete;
    BesideCompute &operator=(const BesideCompute &) = delete;

private:
    ProgramBuilder &m_builder;
};

} // namespace planloom
