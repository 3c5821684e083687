#include "engine/lowering/program/program_builder.h"

#include "engine/base/in_parallel.h"
#include "engine/lowering/program/bucket_launches.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace planloom {

ProgramBuilder::ProgramBuilder(std::int32_t deviceCount)
    : m_devices(at(deviceCount))
{
}

/// Devices are looked at on several threads: `visit` may change its own only.
template<typename Visit> void ProgramBuilder::forEachDevice(Visit visit)
{
    constexpr std::size_t kFew = 8; // not worth another thread
    inParallel(m_devices.size(), kFew, [&](std::size_t begin, std::size_t end) {
        for (std::size_t d = begin; d < end; ++d)
            visit(m_devices[d]);
    });
}

std::int32_t ProgramBuilder::addBlock(SegmentKind kind, StageId stage, double rank)
{
    m_blocks.push_back(BlockInfo{.kind = kind, .stage = stage, .rank = rank});
    return static_cast<std::int32_t>(m_blocks.size()) - 1;
}

void ProgramBuilder::reserve(DeviceId device, std::size_t buffers, std::size_t setup)
{
    DeviceProgram &program = m_devices[at(device)].program;
    program.buffers.edit().reserve(buffers);
    program.setup.edit().reserve(setup);
}

void ProgramBuilder::reserve(DeviceId device, std::int32_t block, std::size_t instructions)
{
    Device &target = m_devices[at(device)];
    if (target.byBlock.size() <= at(block))
        target.byBlock.resize(m_blocks.size());
    target.byBlock[at(block)].reserve(instructions);
}

std::int32_t ProgramBuilder::addBuffer(DeviceId device, BufferInfo buffer)
{
    auto &buffers = m_devices[at(device)].program.buffers.edit();
    buffers.push_back(std::move(buffer));
    return static_cast<std::int32_t>(buffers.size()) - 1;
}

std::int32_t ProgramBuilder::make(
    DeviceId device, std::int32_t block, BufferInfo buffer, Instruction instruction)
{
    const std::int32_t made = addBuffer(device, std::move(buffer));
    instruction.outputs = {made};
    emit(device, block, std::move(instruction));
    return made;
}

const BufferInfo &ProgramBuilder::buffer(DeviceId device, std::int32_t index) const
{
    return m_devices[at(device)].program.buffers[at(index)];
}

void ProgramBuilder::setSummands(DeviceId device, std::int32_t index, SummandSet summands)
{
    m_devices[at(device)].program.buffers.edit()[at(index)].summands = std::move(summands);
}

void ProgramBuilder::emit(DeviceId device, std::int32_t block, Instruction instruction)
{
    Device &target = m_devices[at(device)];
    if (target.byBlock.size() <= at(block))
        target.byBlock.resize(m_blocks.size());
    auto &instructions = target.byBlock[at(block)];
    if (instructions.empty())
        m_blocks[at(block)].devices.push_back(device);
    const bool message =
        instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
    if (isCommunication(instruction.kind) && runsOnce(block))
        instruction.queue = QueueKind::Data;
    else if (isCommunication(instruction.kind)) {
        m_communicated.insert(block);
        if (message) {
            if (const QueueKind queue = pipelineQueueOf(block); queue != queueOf(instruction))
                instruction.queue = queue;
        } else if (m_queue) {
            instruction.queue = m_queue;
            instruction.waits = m_waits;
        } else if (m_blocks[at(block)].kind == SegmentKind::Transfer) {
            // What a stage sends may be late: it must not hold up what operators of others wait for.
            instruction.queue = pipelineQueueOf(block);
        }
    }
    if (runsOnce(block)) {
        // What only brings reduced gradients, or gathered weights, into shape stays on the queue that they
        // came by: on that of computation it would hold up the rest of the backward pass, or the next
        // updates, until they are there.
        const auto came = [&](std::int32_t buffer) {
            return buffer >= 0 && at(buffer) < target.cameByData.size() && target.cameByData[at(buffer)];
        };
        if (!isCommunication(instruction.kind) && instruction.kind != InstructionKind::Kernel
            && std::any_of(instruction.inputs.begin(), instruction.inputs.end(), came))
            instruction.queue = QueueKind::Data;
        if (queueOf(instruction) == QueueKind::Data)
            for (const std::int32_t output : instruction.outputs)
                if (output >= 0) {
                    const auto o = at(output);
                    target.cameByData.resize(std::max(target.cameByData.size(), o + 1), false);
                    target.cameByData[o] = true;
                }
    }
    instructions.push_back(std::move(instruction));
}

QueueKind ProgramBuilder::pipelineQueueOf(std::int32_t block) const
{
    const BlockInfo &own = m_blocks[at(block)];
    const bool back =
        own.kind == SegmentKind::Transfer ? goesBack(own, m_blocks) : planloom::isBackward(own.kind);
    return back ? QueueKind::PipelineBack : QueueKind::Pipeline;
}

void ProgramBuilder::emitSetup(DeviceId device, Instruction instruction)
{
    m_devices[at(device)].program.setup.push_back(std::move(instruction));
}

bool ProgramBuilder::runsOnce(std::int32_t block) const
{
    const SegmentKind kind = m_blocks[at(block)].kind;
    return kind == SegmentKind::Prologue || kind == SegmentKind::Reduce || kind == SegmentKind::Optimizer;
}

std::optional<std::size_t> overlapPartner(
    const Graph &graph, const std::vector<Instruction> &instructions, std::size_t collective)
{
    constexpr std::size_t kReach = 8; // instructions between them, such as copies
    const auto isProduct = [&](const Instruction &instruction) {
        return instruction.kind == InstructionKind::Kernel
            && categoryOf(graph.at(instruction.op).kind) == OperatorCategory::Product;
    };
    const auto mentionsAny = [](const BufferList &a, const BufferList &b) {
        return std::any_of(a.begin(), a.end(), [&](std::int32_t buffer) {
            return buffer >= 0 && std::find(b.begin(), b.end(), buffer) != b.end();
        });
    };
    const Instruction &own = instructions[collective];
    for (std::size_t i = collective; i-- > 0 && collective - i <= kReach;)
        if (mentionsAny(own.inputs, instructions[i].outputs)) {
            if (isProduct(instructions[i]))
                return i;
            break;
        }
    for (std::size_t i = collective + 1; i < instructions.size() && i - collective <= kReach; ++i)
        if (mentionsAny(own.outputs, instructions[i].inputs))
            return isProduct(instructions[i]) ? std::optional(i) : std::nullopt;
    return std::nullopt;
}

std::int32_t ProgramBuilder::mark(std::int32_t block)
{
    m_markBlocks.push_back(block);
    auto &places = m_marks.emplace_back();
    for (const DeviceId device : m_blocks[at(block)].devices)
        places[device.index] = static_cast<std::int32_t>(m_devices[at(device)].byBlock[at(block)].size());
    return static_cast<std::int32_t>(m_marks.size()) - 1;
}

void ProgramBuilder::noteOperator(std::int32_t block, OperatorId op)
{
    const std::size_t cuts = m_blocks[at(block)].cuts.size();
    noteSlice(block);
    if (!m_keepsPlaces || !isPass(m_blocks[at(block)].kind))
        return;
    m_places.resize(m_blocks.size());
    const auto &now = m_blocks[at(block)].cuts;
    m_places[at(block)].push_back({op, now.size() > cuts ? now.back() : mark(block)});
}

/// Notes that `block` may be cut here, if it has communicated since it last might.
void ProgramBuilder::noteSlice(std::int32_t block)
{
    constexpr std::size_t kMostCuts = 64;
    auto &cuts = m_blocks[at(block)].cuts;
    if (cuts.size() < kMostCuts && m_communicated.erase(block) > 0)
        cuts.push_back(mark(block));
}

/// No mark parts what is launched together: it moves behind it. Between what is joined nothing is
/// communicated, so the cuts of all devices still keep one global order.
void ProgramBuilder::moveMarks()
{
    for (std::size_t mark = 0; mark < m_marks.size(); ++mark)
        for (auto &[device, place] : m_marks[mark]) {
            const auto &instructions = m_devices[at(device)].byBlock[at(m_markBlocks[mark])];
            while (at(place) < instructions.size() && instructions[at(place)].joined)
                ++place;
        }
}

/// What is launched together on any device is not parted: it has the place of the first of it.
void ProgramBuilder::joinPlaces()
{
    for (std::size_t block = 0; block < m_places.size(); ++block)
        for (std::size_t i = 1; i < m_places[block].size(); ++i) {
            const auto &marks = m_marks[at(m_places[block][i].mark)];
            if (std::any_of(marks.begin(), marks.end(), [&](const auto &place) {
                    const auto &instructions = m_devices[at(place.first)].byBlock[block];
                    const std::size_t next = at(place.second);
                    return next < instructions.size() && instructions[next].joined;
                }))
                m_places[block][i].mark = m_places[block][i - 1].mark;
        }
}

namespace {

/// Whether every framework computes `op` element by element in one kernel with its like.
bool isFusable(const Operator &op)
{
    switch (categoryOf(op.kind)) {
    case OperatorCategory::Elementwise:
    case OperatorCategory::Activation:
        return op.direction != Direction::Optimizer;
    default:
        return false;
    }
}

bool readsAny(const BufferList &inputs, const BufferList &outputs)
{
    return std::any_of(inputs.begin(), inputs.end(), [&](std::int32_t input) {
        return input >= 0 && std::find(outputs.begin(), outputs.end(), input) != outputs.end();
    });
}

} // namespace

void ProgramBuilder::join(const Graph &graph, CollectiveOverlap overlap)
{
    forEachDevice([&](Device &device) {
        const auto elements = [&](const Instruction &kernel) {
            std::int64_t most = 0;
            for (const std::int32_t output : kernel.outputs)
                if (output >= 0)
                    most = std::max(most, elementCount(shapeOf(device.program.buffers[at(output)].index)));
            return most;
        };
        for (std::size_t block = 0; block < device.byBlock.size(); ++block) {
            std::array<const Instruction *, kQueueCount> before{}; // by queue
            BucketLaunches launches;
            const Instruction *last = nullptr;
            for (Instruction &instruction : device.byBlock[block]) {
                const Instruction *&mate = before[static_cast<std::size_t>(queueOf(instruction))];
                if (instruction.kind == InstructionKind::Kernel && last == mate && mate
                    && mate->kind == InstructionKind::Kernel) {
                    const Operator &op = graph.at(instruction.op);
                    const Operator &other = graph.at(mate->op);
                    const bool updates = op.direction == Direction::Optimizer && op.kind == other.kind;
                    instruction.joined = updates
                        || (isFusable(op) && isFusable(other) && readsAny(instruction.inputs, mate->outputs)
                            && elements(instruction) == elements(*mate));
                } else if ((instruction.group >= 0 || instruction.acrossUnits)
                    && (runsOnce(static_cast<std::int32_t>(block))
                        || queueOf(instruction) == QueueKind::Data)) {
                    // Between the compute of a pass, only what is asked for at once is launched at once.
                    instruction.joined = launches.continues(instruction)
                        && (runsOnce(static_cast<std::int32_t>(block))
                            || (last == mate && mate->waits == instruction.waits));
                } else if (instruction.kind == InstructionKind::Accumulate && mate && last == mate) {
                    // Products add to what is there themselves; chains of such additions belong to one
                    // product. Gradients of activations, each made in a buffer of its own, they do not add
                    // up: no framework has them do that.
                    const bool product = mate->kind == InstructionKind::Kernel
                        && categoryOf(graph.at(mate->op).kind) == OperatorCategory::Product;
                    instruction.joined = (product && readsAny(instruction.inputs, mate->outputs))
                        || (mate->joined && mate->kind == InstructionKind::Accumulate);
                } else if (instruction.kind == InstructionKind::Cast
                    && m_blocks[block].kind == SegmentKind::Optimizer) {
                    // Updated weights are cast together, as in one multi-tensor copy.
                    instruction.joined = mate && mate->kind == InstructionKind::Cast;
                }
                // A new value that takes an old one's place is no launch.
                if (instruction.kind != InstructionKind::Update
                    || m_blocks[block].kind != SegmentKind::Optimizer)
                    mate = last = &instruction;
                launches.add(instruction);
            }
            auto &instructions = device.byBlock[block];
            for (std::size_t i = 0; overlap == CollectiveOverlap::Tensor && i < instructions.size(); ++i)
                instructions[i].overlaps = queueOf(instructions[i]) == QueueKind::Tensor
                    && instructions[i].kind != InstructionKind::Shift // which runs beside attentions already
                    && overlapPartner(graph, instructions, i).has_value();
        }
    });
}

std::int32_t ProgramBuilder::groupOf(const std::vector<DeviceId> &members)
{
    const auto [it, fresh] = m_groupIndex.try_emplace(members, static_cast<std::int32_t>(m_groups.size()));
    if (fresh)
        m_groups.push_back(members);
    return it->second;
}

std::vector<std::pair<std::int32_t, std::int32_t>> ProgramBuilder::sharedBufferDependencies()
{
    std::vector<std::int32_t> byRank(m_blocks.size());
    std::iota(byRank.begin(), byRank.end(), 0);
    std::stable_sort(byRank.begin(), byRank.end(),
        [this](std::int32_t a, std::int32_t b) { return m_blocks[at(a)].rank < m_blocks[at(b)].rank; });
    std::vector<std::set<std::pair<std::int32_t, std::int32_t>>> found(m_devices.size());
    forEachDevice([&](Device &device) {
        auto &dependencies = found[static_cast<std::size_t>(&device - m_devices.data())];
        device.lastBlock.assign(device.program.buffers.size(), -1);
        std::pair<std::int32_t, std::int32_t> latest{
            -1, -1}; // buffers of one block mostly share their last one
        for (const std::int32_t block : byRank) {
            if (at(block) >= device.byBlock.size())
                continue;
            const auto note = [&](std::int32_t buffer) {
                if (buffer < 0)
                    return;
                std::int32_t &last = device.lastBlock[at(buffer)];
                if (last >= 0 && last != block && latest != std::pair(last, block)
                    && device.program.buffers[at(buffer)].perMicroBatch) {
                    latest = {last, block};
                    dependencies.insert(latest);
                }
                last = block;
            };
            for (const Instruction &instruction : device.byBlock[at(block)]) {
                for (const std::int32_t buffer : instruction.inputs)
                    note(buffer);
                for (const std::int32_t buffer : instruction.outputs)
                    note(buffer);
            }
        }
    });
    std::set<std::pair<std::int32_t, std::int32_t>> dependencies;
    for (const auto &own : found)
        dependencies.insert(own.begin(), own.end());
    return {dependencies.begin(), dependencies.end()};
}

std::int32_t ProgramBuilder::bufferCount(DeviceId device) const
{
    return static_cast<std::int32_t>(m_devices[at(device)].program.buffers.size());
}

std::span<Instruction> ProgramBuilder::instructions(DeviceId device, std::int32_t block)
{
    Device &owner = m_devices[at(device)];
    if (owner.byBlock.size() <= at(block))
        return {};
    return owner.byBlock[at(block)];
}

void ProgramBuilder::moveToHost(DeviceId device, std::int32_t buffer)
{
    m_devices[at(device)].program.buffers.edit()[at(buffer)].place = MemoryPlace::Host;
}

void ProgramBuilder::insert(DeviceId device, std::int32_t block, std::vector<Insertion> insertions)
{
    if (insertions.empty())
        return;
    auto &old = m_devices[at(device)].byBlock[at(block)];
    for (std::size_t mark = 0; mark < m_marks.size(); ++mark) {
        const auto place = m_marks[mark].find(device.index);
        if (m_markBlocks[mark] != block || place == m_marks[mark].end())
            continue;
        const auto before = std::partition_point(insertions.begin(), insertions.end(),
            [&](const auto &each) { return each.position < at(place->second); });
        place->second += static_cast<std::int32_t>(before - insertions.begin());
    }
    std::vector<Instruction> all;
    all.reserve(old.size() + insertions.size());
    auto next = insertions.begin();
    for (std::size_t i = 0; i <= old.size(); ++i) {
        for (; next != insertions.end() && next->position == i; ++next)
            all.push_back(std::move(next->instruction));
        if (i < old.size())
            all.push_back(std::move(old[i]));
    }
    old = std::move(all);
}

void ProgramBuilder::markDeaths(Device &device) const
{
    // The last block by rank that touches a buffer, and in it the last instruction. Buffers of the step die
    // only in the blocks that run once: a block that is repeated cannot know its last run.
    std::vector<bool> dead(device.program.buffers.size(), false);
    for (std::size_t b = 0; b < device.byBlock.size(); ++b) {
        const bool once = runsOnce(static_cast<std::int32_t>(b));
        auto &instructions = device.byBlock[b];
        for (std::size_t i = instructions.size(); i-- > 0;) {
            Instruction &instruction = instructions[i];
            const auto consider = [&](std::int32_t index) {
                if (index < 0 || dead[at(index)])
                    return;
                const BufferInfo &buffer = device.program.buffers[at(index)];
                if (buffer.persistent || (!buffer.perMicroBatch && !once)
                    || device.lastBlock[at(index)] != static_cast<std::int32_t>(b))
                    return;
                dead[at(index)] = true;
                instruction.deaths.push_back(index);
            };
            for (const std::int32_t index : instruction.inputs)
                consider(index);
            for (const std::int32_t index : instruction.outputs)
                consider(index);
            if (instruction.deaths.size() > 1)
                std::sort(instruction.deaths.begin(), instruction.deaths.end());
        }
    }
}

void ProgramBuilder::finish(MaterializedPlan &plan)
{
    joinPlaces();
    moveMarks();
    plan.programs.groups = std::move(m_groups);
    forEachDevice([this](Device &device) { markDeaths(device); });
    for (Device &device : m_devices) {
        auto &segmentOf = plan.segmentOf.emplace_back(m_blocks.size(), -1);
        std::vector<Segment> segments;
        for (std::size_t b = 0; b < device.byBlock.size(); ++b) {
            if (device.byBlock[b].empty())
                continue;
            segmentOf[b] = static_cast<std::int32_t>(segments.size());
            segments.push_back(Segment{m_blocks[b].kind, m_blocks[b].stage, std::move(device.byBlock[b]),
                m_blocks[b].slice, m_blocks[b].lane});
        }
        device.program.segments = std::move(segments);
        plan.programs.devices.push_back(std::move(device.program));
    }
    plan.blocks = std::move(m_blocks);
    plan.marks = std::move(m_marks);
    plan.places = std::move(m_places);
}

} // namespace planloom
