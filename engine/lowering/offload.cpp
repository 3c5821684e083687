#include "engine/lowering/offload.h"

#include "engine/hardware/full_bucket.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace planloom {

namespace {

bool names(const BufferList &list, std::int32_t buffer)
{
    return std::find(list.begin(), list.end(), buffer) != list.end();
}

/// Tensors by what may wait on the host.
struct Wanted {
    std::vector<bool> activation{};
    std::vector<bool> state{};

    explicit Wanted(const Plan &plan)
        : activation(plan.graph->tensors.size(), false)
        , state(plan.graph->tensors.size(), false)
    {
        for (std::size_t o = 0; o < plan.decisions.size(); ++o) {
            const Operator &op = plan.graph->operators[o];
            if (!plan.decisions[o].offloaded)
                continue;
            const bool updates = op.direction == Direction::Optimizer;
            for (const TensorId tensor : updates ? op.inputs : op.outputs)
                if (tensor)
                    (updates ? state : activation)[static_cast<std::size_t>(tensor.index)] = true;
        }
    }
    bool any() const
    {
        return std::find(activation.begin(), activation.end(), true) != activation.end()
            || std::find(state.begin(), state.end(), true) != state.end();
    }
};

/// The first and last instruction of a block that touches a buffer.
struct BufferUses {
    std::size_t first = 0;
    std::size_t last = 0;
    std::optional<std::size_t> lastWrite{};
    bool reads = false;
};

/// One copy that a block needs: a fetch before `at`, or an offload behind it.
struct Copy {
    std::size_t at = 0;
    Instruction instruction{};
    Bytes bytes{};
};

/// Moves buffers of one device.
class DeviceOffload
{
public:
    DeviceOffload(const Plan &plan, const CostModel &costs, const std::vector<double> &kernelSeconds,
        const Wanted &wanted, ProgramBuilder &builder, DeviceId device)
        : m_graph(*plan.graph)
        , m_costs(costs)
        , m_kernelSeconds(kernelSeconds)
        , m_wanted(wanted)
        , m_builder(builder)
        , m_device(device)
        , m_class(costs.classOf(plan.units.deviceOf(0, device)))
        , m_uses(static_cast<std::size_t>(builder.bufferCount(device)))
    {
    }

    void run()
    {
        collectUses();
        const std::int32_t count = m_builder.bufferCount(m_device);
        for (std::int32_t buffer = 0; buffer < count; ++buffer) {
            const BufferInfo &info = m_builder.buffer(m_device, buffer);
            const auto tensor = static_cast<std::size_t>(info.tensor.index);
            if (info.persistent) {
                // Versions take turns in their buffers: all are on the device, where the model reads them.
                if (m_wanted.state[tensor] && info.memory == MemoryKind::OptimizerState && info.versions == 1)
                    moveState(buffer);
            } else if (info.perMicroBatch && m_wanted.activation[tensor]) {
                moveActivation(buffer);
            }
        }
        for (std::size_t block = 0; block < m_builder.blocks().size(); ++block)
            place(static_cast<std::int32_t>(block));
    }

private:
    using UsesByBlock = std::map<std::int32_t, BufferUses>;

    SegmentKind kindOf(std::int32_t block) const { return m_builder.block(block).kind; }

    void collectUses()
    {
        for (std::size_t b = 0; b < m_builder.blocks().size(); ++b) {
            const auto block = static_cast<std::int32_t>(b);
            const auto instructions = m_builder.instructions(m_device, block);
            for (std::size_t i = 0; i < instructions.size(); ++i) {
                const auto note = [&](std::int32_t buffer, bool writes) {
                    if (buffer < 0)
                        return;
                    BufferUses &uses = m_uses[static_cast<std::size_t>(buffer)]
                                           .try_emplace(block, BufferUses{i, i})
                                           .first->second;
                    uses.last = i;
                    uses.reads = uses.reads || !writes;
                    if (writes)
                        uses.lastWrite = i;
                };
                for (const std::int32_t buffer : instructions[i].inputs)
                    note(buffer, false);
                for (const std::int32_t buffer : instructions[i].outputs)
                    note(buffer, true);
            }
        }
    }

    std::int32_t copyOf(std::int32_t buffer, MemoryPlace place)
    {
        BufferInfo info = m_builder.buffer(m_device, buffer);
        info.persistent = false;
        info.versions = 1;
        info.place = place;
        return m_builder.addBuffer(m_device, std::move(info));
    }

    Copy copy(InstructionKind kind, OperatorId op, std::int32_t from, std::int32_t to, std::size_t at) const
    {
        return {at, {.kind = kind, .op = op, .inputs = {from}, .outputs = {to}},
            sizeOf(m_builder.buffer(m_device, from))};
    }

    static void rename(BufferList &list, std::int32_t from, std::int32_t to)
    {
        std::replace(list.begin(), list.end(), from, to);
    }

    /// Whether every block reads the value of the step's begin, or what it wrote itself.
    bool canMoveState(std::int32_t buffer) const
    {
        const UsesByBlock &blocks = m_uses[static_cast<std::size_t>(buffer)];
        std::optional<double> written;
        for (const auto &[block, uses] : blocks) {
            const SegmentKind kind = kindOf(block);
            if (isPass(kind) || kind == SegmentKind::Transfer)
                return false;
            if (!uses.lastWrite)
                continue;
            const Instruction &writer = m_builder.instructions(m_device, block)[*uses.lastWrite];
            if (written || (writer.kind == InstructionKind::Update && uses.last > *uses.lastWrite)
                || (writer.kind != InstructionKind::Update && !names(writer.inputs, buffer)))
                return false;
            written = m_builder.block(block).rank;
        }
        return std::none_of(blocks.begin(), blocks.end(), [&](const auto &each) {
            return written && !each.second.lastWrite && m_builder.block(each.first).rank > *written;
        });
    }

    void moveState(std::int32_t buffer)
    {
        if (!canMoveState(buffer))
            return;
        m_builder.moveToHost(m_device, buffer);
        for (const auto &[block, uses] : m_uses[static_cast<std::size_t>(buffer)]) {
            const auto instructions = m_builder.instructions(m_device, block);
            if (uses.lastWrite && instructions[*uses.lastWrite].kind == InstructionKind::Update)
                instructions[*uses.lastWrite].kind = InstructionKind::Offload; // what came is the new value
            if (!uses.reads)
                continue;
            const std::int32_t staged = copyOf(buffer, MemoryPlace::Device);
            const OperatorId op = instructions[uses.first].op;
            for (std::size_t i = uses.first; i <= uses.last; ++i) {
                rename(instructions[i].inputs, buffer, staged);
                if (instructions[i].kind == InstructionKind::Kernel)
                    rename(instructions[i].outputs, buffer, staged);
            }
            m_fetches[block].push_back(copy(InstructionKind::Fetch, op, buffer, staged, uses.first));
            if (uses.lastWrite && instructions[*uses.lastWrite].kind == InstructionKind::Kernel)
                m_offloads[block].push_back(
                    copy(InstructionKind::Offload, op, staged, buffer, *uses.lastWrite));
        }
    }

    void moveActivation(std::int32_t buffer)
    {
        const UsesByBlock &blocks = m_uses[static_cast<std::size_t>(buffer)];
        const auto made = std::find_if(blocks.begin(), blocks.end(), [&](const auto &each) {
            return each.second.lastWrite && kindOf(each.first) == SegmentKind::Forward;
        });
        const bool readAgain = std::any_of(
            blocks.begin(), blocks.end(), [&](const auto &each) { return isBackward(kindOf(each.first)); });
        if (made == blocks.end() || !readAgain)
            return;
        const std::int32_t host = copyOf(buffer, MemoryPlace::Host);
        for (const auto &[block, uses] : blocks) {
            const auto instructions = m_builder.instructions(m_device, block);
            if (block == made->first) {
                const OperatorId op = instructions[*uses.lastWrite].op;
                m_offloads[block].push_back(copy(InstructionKind::Offload, op, buffer, host, uses.last));
            } else if (isBackward(kindOf(block))) {
                const std::int32_t staged = copyOf(buffer, MemoryPlace::Device);
                for (std::size_t i = uses.first; i <= uses.last; ++i)
                    rename(instructions[i].inputs, buffer, staged);
                m_fetches[block].push_back(
                    copy(InstructionKind::Fetch, instructions[uses.first].op, host, staged, uses.first));
            }
        }
    }

    /// Whether something may stand before instruction `i` of `block`: not where it is launched with what
    /// computes before it. A launch of updates may be cut.
    bool isFree(std::int32_t block, std::size_t i) const
    {
        const auto instructions = m_builder.instructions(m_device, block);
        return i >= instructions.size() || !instructions[i].joined
            || queueOf(instructions[i]) != QueueKind::Compute || isUpdate(instructions[i]);
    }

    bool isUpdate(const Instruction &instruction) const
    {
        return instruction.kind == InstructionKind::Kernel
            && m_graph.at(instruction.op).direction == Direction::Optimizer;
    }

    /// Copies launched together.
    struct Launch {
        std::size_t first = 0; ///< Where the first of them is needed, or made.
        std::size_t last = 0;
        Bytes bytes{};
        std::vector<Instruction> copies{};
    };

    std::vector<Launch> launchesOf(std::vector<Copy> copies) const
    {
        std::stable_sort(
            copies.begin(), copies.end(), [](const Copy &a, const Copy &b) { return a.at < b.at; });
        const double latency = hostCopySeconds(m_costs, Bytes{}, m_class);
        std::vector<Launch> launches;
        for (Copy &each : copies) {
            const bool open = !launches.empty()
                && (launches.back().last == each.at
                    || !isFullBucket(latency, hostCopySeconds(m_costs, launches.back().bytes, m_class)));
            if (!open)
                launches.push_back({each.at, each.at, {}, {}});
            Launch &launch = launches.back();
            launch.last = each.at;
            launch.bytes += each.bytes;
            each.instruction.joined = !launch.copies.empty();
            launch.copies.push_back(std::move(each.instruction));
        }
        return launches;
    }

    /// Where a fetch is issued: so far ahead of `launch` that what is computed meanwhile hides it, not before
    /// `limit`.
    std::size_t issueOf(std::int32_t block, const Launch &launch, std::size_t limit) const
    {
        const auto instructions = m_builder.instructions(m_device, block);
        const double seconds = hostCopySeconds(m_costs, launch.bytes, m_class);
        double computed = 0;
        std::size_t at = launch.first;
        while (at > limit && (computed < seconds || !isFree(block, at))) {
            --at;
            if (instructions[at].kind == InstructionKind::Kernel)
                computed += m_kernelSeconds[static_cast<std::size_t>(instructions[at].op.index)];
        }
        while (at > 0 && !isFree(block, at))
            --at;
        return at;
    }

    /// Puts the copies of a block where they belong.
    void place(std::int32_t block)
    {
        std::vector<ProgramBuilder::Insertion> insertions;
        const auto add = [&](std::size_t at, std::vector<Instruction> &copies) {
            const auto instructions = m_builder.instructions(m_device, block);
            if (at < instructions.size() && isUpdate(instructions[at]))
                instructions[at].joined = false;
            for (Instruction &each : copies)
                insertions.push_back({at, std::move(each)});
        };
        // What goes makes room for what comes: it stands first where both do.
        for (Launch &launch : launchesOf(std::move(m_offloads[block]))) {
            std::size_t at = launch.last + 1;
            while (!isFree(block, at))
                ++at;
            add(at, launch.copies);
        }
        std::size_t limit = 0;
        for (Launch &launch : launchesOf(std::move(m_fetches[block]))) {
            for (Instruction &each : launch.copies)
                each.waits = true;
            const std::size_t at = issueOf(block, launch, limit);
            limit = launch.first;
            add(at, launch.copies);
        }
        std::stable_sort(insertions.begin(), insertions.end(),
            [](const auto &a, const auto &b) { return a.position < b.position; });
        m_builder.insert(m_device, block, std::move(insertions));
    }

    const Graph &m_graph;
    const CostModel &m_costs;
    const std::vector<double> &m_kernelSeconds;
    const Wanted &m_wanted;
    ProgramBuilder &m_builder;
    DeviceId m_device;
    std::int32_t m_class; ///< Of it.
    std::vector<UsesByBlock> m_uses; ///< By buffer.
    std::map<std::int32_t, std::vector<Copy>> m_fetches{}; ///< By block.
    std::map<std::int32_t, std::vector<Copy>> m_offloads{};
};

} // namespace

void offload(const Plan &plan, const CostModel &costs, const std::vector<double> &kernelSeconds,
    ProgramBuilder &builder)
{
    const Wanted wanted(plan);
    if (!wanted.any())
        return;
    for (std::int32_t device = 0; device < builder.deviceCount(); ++device)
        DeviceOffload(plan, costs, kernelSeconds, wanted, builder, DeviceId{device}).run();
}

} // namespace planloom
