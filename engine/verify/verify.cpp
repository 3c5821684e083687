#include "engine/verify/verify.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/verify/batch_rules.h"
#include "engine/verify/graph_rules.h"
#include "engine/verify/instruction_rules.h"
#include "engine/verify/specification.h"
#include "engine/verify/structure_rules.h"
#include "engine/verify/type_rules.h"
#include "engine/verify/value_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace planloom {

namespace {

constexpr std::int32_t kOfStep = -1; ///< No update's own: what the prologue makes.
constexpr std::int32_t kMixed = -2; ///< Added up over several updates: nobody may read it.

/// Life of one instance of a buffer.
enum class Life : std::uint8_t { Unwritten, Alive, Dead };

/// Carries the step out on masks: every device in its own order, communication when all its members have
/// come.
class Interpreter
{
public:
    Interpreter(const ExecutionPlan &plan, std::stop_token stop)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_stop(std::move(stop))
        , m_spec(plan)
        , m_devices(plan.devices.size())
        , m_ofWeights(gradientsOfWeights(*plan.graph))
    {
    }

    Result<VerifyReport> run();

private:
    struct Device {
        std::vector<std::size_t> instanceBase{}; ///< Per buffer: its first instance in `life`.
        std::vector<Life> life{};
        /// Per buffer: how many of the step's updates what it holds has behind it; below 0 where it is older
        /// than the begin of the step.
        std::vector<std::int32_t> updates{};
        std::vector<std::vector<bool>> added{}; ///< Per accumulator: [summand position x micro-batch].
        std::vector<std::int64_t> missing{}; ///< Per instance of an accumulator: contributions still to come.
        std::vector<std::vector<std::int32_t>>
            checkedAt{}; ///< Per segment and instruction: epoch of its last check.
        std::int32_t epoch = 1; ///< Grows whenever a persistent buffer changes its tensor.
        std::vector<std::int32_t> madeIn{}; ///< Per buffer of the step: the update it was written for last.
        std::size_t entry = 0; ///< Position in the schedule.
        std::size_t instruction = 0;
        bool waiting = false; ///< At a communication that is not complete.
    };

    const DeviceProgram &program(std::int32_t device) const { return m_plan.devices[at(device)]; }
    const Instruction *current(std::int32_t device) const;
    bool fail(std::int32_t device, std::string reason, bool inSchedule = true);
    bool setUp(std::int32_t device);
    Side sideOf(std::int32_t device, const Instruction &instruction);
    bool readable(
        std::int32_t device, std::int32_t buffer, std::int32_t microBatch, const Instruction &instruction);
    bool begin(std::int32_t device);
    bool finish(std::int32_t device);
    void goOn(std::int32_t device);
    bool noteParts(std::int32_t device, const Side &side);
    bool noteKernel(std::int32_t device, const Instruction &instruction, std::int32_t microBatch);
    bool accumulate(std::int32_t device, const Instruction &instruction, std::int32_t microBatch);
    bool store(std::int32_t device, const Instruction &instruction, std::int32_t microBatch);
    bool update(std::int32_t device, std::int32_t buffer);
    /// The update that the segment at hand belongs to, or its micro-batch adds to.
    std::int32_t updateAt(std::int32_t device) const;
    /// What checks of an instruction depend on beside itself: contents, and which update it is for.
    std::int32_t epochAt(std::int32_t device) const;
    bool isOfStep(std::int32_t device, const BufferInfo &buffer) const;
    std::int32_t &updatesOf(std::int32_t device, std::int32_t buffer);
    /// The buffer holds what an update made, not what the step's operators were to read.
    bool isUpdated(std::int32_t device, std::int32_t buffer);
    bool advance(std::int32_t device, std::vector<std::int32_t> &runnable);
    bool communicate(std::int32_t device, std::vector<std::int32_t> &runnable);
    bool checkEnd();
    bool alreadyChecked(std::int32_t device);

    const ExecutionPlan &m_plan;
    const Graph &m_graph;
    std::stop_token m_stop;
    Specification m_spec;
    ValueParts m_valueParts{};
    std::vector<Device> m_devices;
    /// Per operator: [part x micro-batch] outputs it has made, a bit each; all of them if it makes none.
    std::vector<std::vector<std::uint64_t>> m_ran{};
    std::vector<bool> m_ofWeights; ///< By tensor.
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<IndexMask>>
        m_stored{}; ///< (tensor, micro-batch)
    std::vector<std::int32_t> m_arrived{}; ///< Per group: members that wait.
    /// Per (device, segment, instruction) of a communication's first member: device, segment, instruction and
    /// epoch of all its members when it was checked last.
    std::map<std::array<std::int32_t, 3>, std::vector<std::int32_t>> m_met{};
    VerifyReport m_report{};
    bool m_cancelled = false;
};

const Instruction *Interpreter::current(std::int32_t device) const
{
    const Device &state = m_devices[at(device)];
    const DeviceProgram &own = program(device);
    if (state.entry >= own.schedule.size())
        return nullptr;
    const Segment &segment = own.segments[at(own.schedule[state.entry].segment)];
    return &segment.instructions[state.instruction];
}

bool Interpreter::fail(std::int32_t device, std::string reason, bool inSchedule)
{
    if (m_report.failure)
        return false;
    VerifyFailure failure;
    failure.device = DeviceId{device};
    failure.reason = std::move(reason);
    if (inSchedule && device >= 0) {
        const Device &state = m_devices[at(device)];
        if (state.entry < program(device).schedule.size()) {
            failure.segment = program(device).schedule[state.entry].segment;
            failure.microBatch = program(device).schedule[state.entry].microBatch;
            failure.instruction = static_cast<std::int32_t>(state.instruction);
        }
    }
    m_report.failure = std::move(failure);
    return false;
}

bool Interpreter::setUp(std::int32_t device)
{
    Device &state = m_devices[at(device)];
    const DeviceProgram &own = program(device);
    std::size_t instances = 0;
    for (const BufferInfo &buffer : own.buffers) {
        state.instanceBase.push_back(instances);
        instances += buffer.perMicroBatch ? at(m_plan.microBatches) : 1;
        state.updates.push_back(-buffer.staleness);
        if (buffer.persistent && buffer.perMicroBatch)
            return fail(device, "a persistent buffer cannot belong to a micro-batch", false);
    }
    state.life.assign(instances, Life::Unwritten);
    state.added.resize(own.buffers.size());
    state.madeIn.assign(own.buffers.size(), kOfStep);
    state.missing.assign(instances, 0);
    for (const Segment &segment : own.segments)
        state.checkedAt.emplace_back(segment.instructions.size(), 0);
    for (const Instruction &instruction : own.setup) {
        if (instruction.kind != InstructionKind::Load)
            return fail(device, "set-up only loads persistent buffers", false);
        const Side side = sideOf(device, instruction);
        if (auto reason = checkLocal(m_plan, m_spec, side); !reason.empty())
            return fail(device, std::move(reason), false);
        if (auto reason = checkBufferTypes(m_plan, m_spec, side); !reason.empty())
            return fail(device, std::move(reason), false);
        const std::int32_t buffer = instruction.outputs[0];
        if (!own.buffers[at(buffer)].persistent)
            return fail(device, "set-up only loads persistent buffers", false);
        Life &life = state.life[state.instanceBase[at(buffer)]];
        if (life != Life::Unwritten)
            return fail(device, "a persistent buffer is loaded twice", false);
        life = Life::Alive;
    }
    // A version that this step does not read is read by one of the next.
    for (std::size_t b = 0; b < own.buffers.size(); ++b)
        if (own.buffers[b].persistent && own.buffers[b].versions > 1
            && state.life[state.instanceBase[b]] != Life::Alive)
            return fail(device,
                "the version of '" + m_graph.at(own.buffers[b].tensor).name + "' of "
                    + counted(own.buffers[b].staleness, "update") + " ago is never loaded",
                false);
    return true;
}

std::int32_t &Interpreter::updatesOf(std::int32_t device, std::int32_t buffer)
{
    const BufferInfo &info = program(device).buffers[at(buffer)];
    return m_devices[at(device)].updates[at(bufferOfVersion(info, buffer, updateAt(device)))];
}

std::int32_t Interpreter::updateAt(std::int32_t device) const
{
    const Device &state = m_devices[at(device)];
    const auto &schedule = program(device).schedule;
    return state.entry < schedule.size() ? updateOf(m_plan, schedule[state.entry].microBatch)
                                         : m_plan.updates - 1;
}

std::int32_t Interpreter::epochAt(std::int32_t device) const
{
    return m_devices[at(device)].epoch * m_plan.updates + updateAt(device);
}

/// What the prologue makes serves the whole step, but for weights, which change with every update.
bool Interpreter::isOfStep(std::int32_t device, const BufferInfo &buffer) const
{
    const Device &state = m_devices[at(device)];
    const DeviceProgram &own = program(device);
    return own.segments[at(own.schedule[state.entry].segment)].kind == SegmentKind::Prologue
        && !m_spec.updateOf(buffer.tensor);
}

bool Interpreter::isUpdated(std::int32_t device, std::int32_t buffer)
{
    return updatesOf(device, buffer) == updateAt(device) + 1;
}

Side Interpreter::sideOf(std::int32_t device, const Instruction &instruction)
{
    const DeviceProgram &own = program(device);
    const auto contentOf = [&](std::int32_t index, bool written) {
        Content content;
        if (index < 0)
            return content;
        const BufferInfo &buffer = own.buffers[at(index)];
        content.dataType = buffer.dataType;
        content.tensor = buffer.tensor;
        // What an update writes is the newest version of all.
        content.staleness = written && buffer.persistent ? 0 : buffer.staleness;
        if (!written && isUpdated(device, index)) {
            content.tensor = m_spec.updateOf(buffer.tensor);
            content.staleness = 0;
        }
        content.box = &buffer.index;
        content.summands = &buffer.summands;
        content.valuePart = buffer.valuePart;
        content.unweighed = buffer.unweighed;
        content.perMicroBatch = buffer.perMicroBatch;
        content.persistent = buffer.persistent;
        content.inPlace = written && updatesInPlace(m_plan, own, instruction, index);
        content.share = buffer.share;
        content.shardDimension = buffer.shardDimension;
        content.shardEnd = buffer.shardEnd;
        return content;
    };
    Side side;
    side.device = DeviceId{device};
    side.instruction = &instruction;
    for (const std::int32_t index : instruction.inputs)
        side.inputs.push_back(contentOf(index, false));
    for (const std::int32_t index : instruction.outputs)
        side.outputs.push_back(contentOf(index, true));
    return side;
}

bool Interpreter::readable(
    std::int32_t device, std::int32_t index, std::int32_t microBatch, const Instruction &instruction)
{
    Device &state = m_devices[at(device)];
    const BufferInfo &buffer = program(device).buffers[at(index)];
    const std::size_t instance = state.instanceBase[at(index)] + (buffer.perMicroBatch ? at(microBatch) : 0);
    const Life life = state.life[instance];
    if (life != Life::Alive)
        return fail(device,
            std::string(nameOf(instruction.kind)) + " reads '" + m_graph.at(buffer.tensor).name
                + (life == Life::Dead ? "' after it died" : "' before it is written"));
    if (buffer.persistent && m_spec.updateOf(buffer.tensor) && !isUpdated(device, index)
        && updatesOf(device, index) != updateAt(device) - buffer.staleness)
        return fail(device,
            std::string(nameOf(instruction.kind)) + " reads the version of '" + m_graph.at(buffer.tensor).name
                + "' of " + counted(buffer.staleness, "update") + " before number "
                + std::to_string(updateAt(device)) + ", found that of number "
                + std::to_string(updatesOf(device, index)));
    if (!buffer.persistent && !buffer.perMicroBatch && state.madeIn[at(index)] != kOfStep
        && state.madeIn[at(index)] != updateAt(device))
        return fail(device,
            std::string(nameOf(instruction.kind)) + " of update " + std::to_string(updateAt(device))
                + " reads the '" + m_graph.at(buffer.tensor).name + "' of "
                + (state.madeIn[at(index)] == kMixed ? std::string("several updates together")
                                                     : "update " + std::to_string(state.madeIn[at(index)])));
    if (state.missing[instance] > 0)
        return fail(device,
            "'" + m_graph.at(buffer.tensor).name + "' is read while "
                + std::to_string(state.missing[instance]) + " of its contributions are missing");
    return true;
}

bool Interpreter::alreadyChecked(std::int32_t device)
{
    Device &state = m_devices[at(device)];
    std::int32_t &checked =
        state.checkedAt[at(program(device).schedule[state.entry].segment)][state.instruction];
    if (checked == epochAt(device))
        return true;
    checked = epochAt(device);
    return false;
}

/// What holds before an instruction: its inputs are there, its outputs are free.
bool Interpreter::begin(std::int32_t device)
{
    Device &state = m_devices[at(device)];
    const Instruction &instruction = *current(device);
    const std::int32_t microBatch = program(device).schedule[state.entry].microBatch;
    for (const std::int32_t index : instruction.inputs)
        if (index >= 0 && !readable(device, index, microBatch, instruction))
            return false;
    for (const std::int32_t index : instruction.outputs) {
        if (index < 0)
            continue;
        const BufferInfo &buffer = program(device).buffers[at(index)];
        const Life life =
            state.life[state.instanceBase[at(index)] + (buffer.perMicroBatch ? at(microBatch) : 0)];
        if (buffer.persistent) {
            if (life != Life::Alive)
                return fail(device, "a persistent buffer is written before it is loaded");
        } else if (life == Life::Dead && !buffer.perMicroBatch && state.madeIn[at(index)] >= 0
            && state.madeIn[at(index)] < updateAt(device)) {
            // Every update makes its own.
        } else if (life != Life::Unwritten
            && !(instruction.kind == InstructionKind::Accumulate && life == Life::Alive)
            && !updatesInPlace(m_plan, program(device), instruction, index))
            return fail(device, "'" + m_graph.at(buffer.tensor).name + "' is written twice");
    }
    return true;
}

/// What an instruction leaves behind: outputs alive, deaths dead.
bool Interpreter::finish(std::int32_t device)
{
    Device &state = m_devices[at(device)];
    const Instruction &instruction = *current(device);
    const std::int32_t microBatch = program(device).schedule[state.entry].microBatch;
    const auto lifeOf = [&](std::int32_t index) -> Life & {
        const BufferInfo &buffer = program(device).buffers[at(index)];
        return state.life[state.instanceBase[at(index)] + (buffer.perMicroBatch ? at(microBatch) : 0)];
    };
    for (const std::int32_t index : instruction.outputs) {
        if (index < 0)
            continue;
        const BufferInfo &buffer = program(device).buffers[at(index)];
        const std::int32_t now = isOfStep(device, buffer) ? kOfStep : updateAt(device);
        std::int32_t &madeIn = state.madeIn[at(index)];
        const bool adds = instruction.kind == InstructionKind::Accumulate
            && std::exchange(lifeOf(index), Life::Alive) == Life::Alive;
        lifeOf(index) = Life::Alive;
        madeIn = adds && madeIn != now ? kMixed : now;
    }
    for (const std::int32_t index : instruction.deaths) {
        if (program(device).buffers[at(index)].persistent)
            return fail(device, "a persistent buffer cannot die");
        Life &life = lifeOf(index);
        if (life != Life::Alive)
            return fail(device,
                "'" + m_graph.at(program(device).buffers[at(index)].tensor).name
                    + "' dies without being alive");
        life = Life::Dead;
    }
    ++m_report.instructions;
    ++state.instruction;
    goOn(device);
    return true;
}

/// From the end of a schedule entry to the next one that holds an instruction.
void Interpreter::goOn(std::int32_t device)
{
    Device &state = m_devices[at(device)];
    const DeviceProgram &own = program(device);
    while (state.entry < own.schedule.size()
        && state.instruction >= indicesOf(own, own.schedule[state.entry]).second)
        if (++state.entry < own.schedule.size())
            state.instruction = indicesOf(own, own.schedule[state.entry]).first;
}

/// What a kernel, which was found right otherwise, reads of values that its operator divides.
bool Interpreter::noteParts(std::int32_t device, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const PartSpecification &part = m_spec.part(instruction.op, instruction.part);
    for (std::size_t slot = 0; slot < part.inputs.size(); ++slot) {
        if (!side.inputs[slot].box || part.inputs[slot].value.complete())
            continue;
        const Content &input = side.inputs[slot];
        if (auto reason = m_valueParts.note(m_plan, instruction.op, slot, *input.box, part.inputs[slot].value,
                *input.summands, input.valuePart);
            !reason.empty())
            return fail(device, std::move(reason));
    }
    return true;
}

bool Interpreter::noteKernel(std::int32_t device, const Instruction &instruction, std::int32_t microBatch)
{
    if (instruction.recompute)
        return true;
    const bool once = m_spec.oncePerStep(instruction.op);
    const bool updates = m_graph.at(instruction.op).direction == Direction::Optimizer;
    if (once && microBatch % (updates ? microBatchesPerUpdate(m_plan) : m_plan.microBatches) != 0)
        return fail(device,
            m_graph.at(instruction.op).name + " runs once per " + (updates ? "update" : "step")
                + ", not in micro-batch " + std::to_string(microBatch));
    const Operator &op = m_graph.at(instruction.op);
    std::uint64_t &made =
        m_ran[at(instruction.op.index)][at(instruction.part) * at(m_plan.microBatches) + at(microBatch)];
    const auto isAgain = [&](const char *what) {
        return fail(device,
            op.name + " part " + std::to_string(instruction.part) + what + " in micro-batch "
                + std::to_string(microBatch));
    };
    // A backward operator may run in two halves: gradients of inputs, then those of weights.
    std::uint64_t now = ~std::uint64_t{0};
    if (op.direction == Direction::Backward && op.outputs.size() < 64) {
        now = 0;
        bool ofWeights = true;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (op.outputs[slot] && instruction.outputs[slot] >= 0) {
                now |= std::uint64_t{1} << slot;
                ofWeights = ofWeights && m_ofWeights[at(op.outputs[slot].index)];
            }
        if (made != 0 && !ofWeights && (made & now) == 0)
            return isAgain(" makes gradients of inputs behind those of its weights");
    }
    if ((made & now) != 0)
        return isAgain(" runs twice");
    made |= now;
    return true;
}

bool Interpreter::accumulate(std::int32_t device, const Instruction &instruction, std::int32_t microBatch)
{
    Device &state = m_devices[at(device)];
    const BufferInfo &input = program(device).buffers[at(instruction.inputs[0])];
    const std::int32_t index = instruction.outputs[0];
    const BufferInfo &output = program(device).buffers[at(index)];
    const auto count =
        output.summands.empty() ? at(m_spec.summandCount(output.tensor)) : output.summands.size();
    const auto microBatches = at(m_plan.microBatches);
    // What belongs to a micro-batch adds up within it, part by part.
    const std::size_t instance = state.instanceBase[at(index)];
    const bool isAlive = !output.perMicroBatch && state.life[instance] == Life::Alive;
    if (isAlive && state.madeIn[at(index)] != updateAt(device))
        return true; // mixed
    const bool begins = !output.perMicroBatch && !isAlive; // with every update
    if (state.added[at(index)].empty() || begins) {
        state.added[at(index)].assign(count * microBatches, false);
        if (output.perMicroBatch)
            std::fill_n(state.missing.begin() + static_cast<std::ptrdiff_t>(instance), microBatches,
                static_cast<std::int64_t>(count));
        else
            state.missing[instance] = static_cast<std::int64_t>(count * at(microBatchesPerUpdate(m_plan)));
    }
    SummandSet summands = input.summands;
    for (std::size_t all = summands.empty() ? count : 0; all > 0; --all)
        summands.push_back(static_cast<std::int32_t>(summands.size()));
    for (const std::int32_t summand : summands) {
        std::size_t position = at(summand);
        if (!output.summands.empty())
            position = static_cast<std::size_t>(
                std::lower_bound(output.summands.begin(), output.summands.end(), summand)
                - output.summands.begin());
        if (position >= count)
            return fail(device, "accumulate adds a summand that its buffer does not hold");
        const std::size_t bit = position * microBatches + at(microBatch);
        if (state.added[at(index)][bit])
            return fail(device,
                "a summand of '" + m_graph.at(output.tensor).name + "' is added twice in micro-batch "
                    + std::to_string(microBatch));
        state.added[at(index)][bit] = true;
        --state.missing[instance + (output.perMicroBatch ? at(microBatch) : 0)];
    }
    return true;
}

bool Interpreter::store(std::int32_t device, const Instruction &instruction, std::int32_t microBatch)
{
    const std::int32_t index = instruction.inputs[0];
    const BufferInfo &input = program(device).buffers[at(index)];
    const bool ofStep = m_plan.batch.tensorRole[at(input.tensor.index)] == BatchRole::Step;
    if (ofStep && microBatch != 0)
        return fail(device, "an output of the step is stored in a later micro-batch");
    if (isUpdated(device, index))
        return fail(device, "'" + m_graph.at(input.tensor).name + "' is stored after its update");
    auto &boxes = m_stored[{input.tensor.index, microBatch}];
    const IndexMask box = boxOf(m_plan, input, microBatch);
    for (const IndexMask &other : boxes)
        if (const auto both = intersection(box, other); both && elementCount(shapeOf(*both)) > 0)
            return fail(device, "'" + m_graph.at(input.tensor).name + "' reaches the host twice");
    boxes.push_back(box);
    return true;
}

bool Interpreter::update(std::int32_t device, std::int32_t buffer)
{
    const BufferInfo &info = program(device).buffers[at(buffer)];
    if (isUpdated(device, buffer))
        return fail(device, "'" + m_graph.at(info.tensor).name + "' is updated twice");
    if (info.staleness + 1 != info.versions && info.persistent)
        return fail(device,
            "an update of '" + m_graph.at(info.tensor).name + "' writes over the version of "
                + counted(info.staleness, "update") + " ago, expected the oldest, of "
                + counted(info.versions - 1, "update") + " ago");
    std::int32_t &updates = updatesOf(device, buffer);
    if (updates != updateAt(device) + 1 - info.versions && info.persistent)
        return fail(device,
            "'" + m_graph.at(info.tensor).name + "' misses an update before number "
                + std::to_string(updateAt(device)));
    updates = updateAt(device) + 1;
    ++m_devices[at(device)].epoch;
    return true;
}

/// Runs a device until it waits or ends.
bool Interpreter::advance(std::int32_t device, std::vector<std::int32_t> &runnable)
{
    Device &state = m_devices[at(device)];
    while (const Instruction *instruction = current(device)) {
        if ((m_report.instructions & 0xfff) == 0 && m_stop.stop_requested()) {
            m_cancelled = true;
            return false;
        }
        if (isCommunication(instruction->kind))
            return communicate(device, runnable);
        const std::int32_t microBatch = program(device).schedule[state.entry].microBatch;
        if (!begin(device))
            return false;
        if (!alreadyChecked(device)) {
            const Side side = sideOf(device, *instruction);
            for (const auto check : {&checkLocal, &checkBufferTypes})
                if (auto reason = check(m_plan, m_spec, side); !reason.empty())
                    return fail(device, std::move(reason));
            if (instruction->kind == InstructionKind::Kernel && !noteParts(device, side))
                return false;
        }
        switch (instruction->kind) {
        case InstructionKind::Kernel:
            if (!noteKernel(device, *instruction, microBatch))
                return false;
            if (m_graph.at(instruction->op).direction == Direction::Optimizer)
                for (const std::int32_t index : instruction->outputs)
                    if (index >= 0
                        && (program(device).buffers[at(index)].persistent
                            || updatesInPlace(m_plan, program(device), *instruction, index))
                        && !update(device, index))
                        return false;
            break;
        case InstructionKind::Accumulate:
            if (!accumulate(device, *instruction, microBatch))
                return false;
            break;
        case InstructionKind::Store:
            if (!store(device, *instruction, microBatch))
                return false;
            break;
        case InstructionKind::Offload:
            if (!program(device).buffers[at(instruction->outputs[0])].persistent)
                break;
            [[fallthrough]];
        case InstructionKind::Update:
            if (!update(device, instruction->outputs[0]))
                return false;
            break;
        case InstructionKind::Load:
            if (program(device).buffers[at(instruction->outputs[0])].persistent)
                return fail(device, "a persistent buffer is loaded again");
            break;
        default:
            break;
        }
        if (!finish(device))
            return false;
    }
    return true;
}

/// `device` has come to a communication; carries it out if it is the last to come.
bool Interpreter::communicate(std::int32_t device, std::vector<std::int32_t> &runnable)
{
    Device &state = m_devices[at(device)];
    const Instruction &instruction = *current(device);
    std::vector<std::int32_t> members;
    if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv) {
        state.waiting = true;
        const std::int32_t peer = instruction.peer.index;
        if (!m_devices[at(peer)].waiting)
            return true;
        const Instruction &other = *current(peer);
        const bool isSend = instruction.kind == InstructionKind::Send;
        if (other.kind != (isSend ? InstructionKind::Recv : InstructionKind::Send)
            || other.peer.index != device)
            return true; // it waits for somebody else; if nobody comes, that is a deadlock
        const std::int32_t ownBatch = program(device).schedule[state.entry].microBatch;
        const Device &there = m_devices[at(peer)];
        if (other.tag != instruction.tag || program(peer).schedule[there.entry].microBatch != ownBatch)
            return fail(device,
                "send and receive between devices " + std::to_string(device) + " and " + std::to_string(peer)
                    + " do not belong together");
        members = isSend ? std::vector{device, peer} : std::vector{peer, device};
    } else if (instruction.acrossUnits) {
        members = {device}; // the other units stand at the same place of the same program
    } else {
        const auto &group = m_plan.groups[at(instruction.group)];
        if (std::find(group.begin(), group.end(), DeviceId{device}) == group.end())
            return fail(device,
                "device " + std::to_string(device) + " is not in the group of its "
                    + nameOf(instruction.kind));
        state.waiting = true;
        std::int32_t &arrived = m_arrived[at(instruction.group)];
        if (++arrived < static_cast<std::int32_t>(group.size()))
            return true;
        arrived = 0;
        for (const DeviceId member : group)
            members.push_back(member.index);
        const std::int32_t ownBatch = program(device).schedule[state.entry].microBatch;
        for (const std::int32_t member : members) {
            const Instruction *other = current(member);
            if (!m_devices[at(member)].waiting || !other || other->kind != instruction.kind
                || other->group != instruction.group)
                return fail(device,
                    std::string(nameOf(instruction.kind)) + " finds device " + std::to_string(member)
                        + " at something else");
            if (program(member).schedule[m_devices[at(member)].entry].microBatch != ownBatch)
                return fail(device, std::string(nameOf(instruction.kind)) + " mixes micro-batches");
        }
    }
    // Ends in different queues wait behind other things than each other's, and where a queue has a
    // communicator of its own they never meet.
    for (const std::int32_t member : members)
        if (const QueueKind queue = queueOf(*current(member)); queue != queueOf(instruction))
            return fail(device,
                std::string(nameOf(instruction.kind)) + " waits in the " + nameOf(queueOf(instruction))
                    + " queue, the other end, on device " + std::to_string(member) + ", in the "
                    + nameOf(queue) + " queue");
    // What one member's instruction is worth depends on those it meets: the same ones need no second check.
    std::vector<std::int32_t> meeting;
    for (const std::int32_t member : members) {
        if (!begin(member))
            return false;
        const Device &there = m_devices[at(member)];
        meeting.insert(meeting.end(),
            {member, program(member).schedule[there.entry].segment,
                static_cast<std::int32_t>(there.instruction), epochAt(member)});
    }
    std::vector<std::int32_t> &met = m_met[{meeting[0], meeting[1], meeting[2]}];
    if (met != meeting) {
        met = std::move(meeting);
        std::vector<Side> sides;
        for (const std::int32_t member : members)
            sides.push_back(sideOf(member, *current(member)));
        if (auto reason = checkCommunication(m_plan, m_spec, sides); !reason.empty())
            return fail(device, std::move(reason));
        if (auto reason = checkSentTypes(m_plan, m_spec, sides); !reason.empty())
            return fail(device, std::move(reason));
    }
    for (const std::int32_t member : members) {
        m_devices[at(member)].waiting = false;
        if (!finish(member))
            return false;
        runnable.push_back(member);
    }
    return true;
}

bool Interpreter::checkEnd()
{
    if (auto reason = m_valueParts.problem(m_plan, m_spec); !reason.empty())
        return fail(-1, std::move(reason), false);
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        const std::int32_t every = !m_spec.oncePerStep(id)           ? 1
            : m_graph.operators[o].direction == Direction::Optimizer ? microBatchesPerUpdate(m_plan)
                                                                     : m_plan.microBatches;
        for (std::int32_t part = 0; part < m_spec.partCount(id); ++part)
            for (std::int32_t i = 0; i < m_plan.microBatches; i += every)
                if (m_ran[o][at(part) * at(m_plan.microBatches) + at(i)] == 0 && !m_spec.needNotRun(id, part))
                    return fail(m_plan.placement[o][at(part)].index,
                        m_graph.operators[o].name + " part " + std::to_string(part)
                            + " does not run in micro-batch " + std::to_string(i),
                        false);
    }
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(m_plan.devices.size()); ++d) {
        const Device &state = m_devices[at(d)];
        for (std::size_t b = 0; b < program(d).buffers.size(); ++b) {
            const BufferInfo &buffer = program(d).buffers[b];
            const std::string name = "'" + m_graph.at(buffer.tensor).name + "'";
            if (buffer.persistent && m_spec.updateOf(buffer.tensor) && buffer.staleness + 1 == buffer.versions
                && !isUpdated(d, static_cast<std::int32_t>(b)))
                return fail(d, name + " is not updated on this device", false);
            if (!buffer.perMicroBatch)
                continue;
            for (std::int32_t i = 0; i < m_plan.microBatches; ++i)
                if (state.life[state.instanceBase[b] + at(i)] == Life::Alive)
                    return fail(d, name + " never dies in micro-batch " + std::to_string(i), false);
        }
    }
    for (const TensorId output : m_graph.outputs) {
        const BatchRole role = m_plan.batch.tensorRole[at(output.index)];
        const Shape &shape = m_graph.at(output).type.shape;
        // Values of the step are stored once; others in every micro-batch, which cut them only if they are
        // Split.
        const std::int32_t times = role == BatchRole::Step ? 1 : m_plan.microBatches;
        for (std::int32_t i = 0; i < times; ++i) {
            std::int64_t volume = 0;
            if (const auto it = m_stored.find({output.index, i}); it != m_stored.end())
                for (const IndexMask &box : it->second)
                    volume += elementCount(shapeOf(box));
            std::int64_t expected = elementCount(shape);
            if (role == BatchRole::Split)
                expected /= batchCuts(m_plan);
            if (volume != expected || m_stored.count({output.index, i}) == 0)
                return fail(-1,
                    "'" + m_graph.at(output).name + "' does not reach the host whole in micro-batch "
                        + std::to_string(i),
                    false);
        }
    }
    return true;
}

Result<VerifyReport> Interpreter::run()
{
    m_report.microBatches = m_plan.microBatches;
    m_report.wholeBatches = m_plan.batch.wholeBatches;
    if (!m_spec.problem().empty()) {
        fail(-1, m_spec.problem(), false);
        return m_report;
    }
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o)
        m_ran.emplace_back(m_plan.placement[o].size() * at(m_plan.microBatches), std::uint64_t{0});
    m_arrived.resize(m_plan.groups.size());
    std::vector<std::int32_t> runnable;
    for (std::int32_t d = static_cast<std::int32_t>(m_devices.size()); d-- > 0;) {
        if (!setUp(d))
            return m_report;
        goOn(d);
        runnable.push_back(d);
    }
    while (!runnable.empty()) {
        const std::int32_t device = runnable.back();
        runnable.pop_back();
        if (!advance(device, runnable)) {
            if (m_cancelled)
                return cancelled("verification was stopped");
            return m_report;
        }
    }
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(m_devices.size()); ++d)
        if (const Instruction *instruction = current(d)) {
            fail(d, std::string(nameOf(instruction->kind)) + " waits for ever: the devices' orders deadlock");
            return m_report;
        }
    checkEnd();
    return m_report;
}

} // namespace

Result<VerifyReport> verify(const ExecutionPlan &plan, std::stop_token stop)
{
    const auto notItsGraph = [](std::string what) {
        return Error{ErrorCode::InvalidInput, "the plan does not belong to its graph: " + std::move(what),
            "solve the model again", "plan"};
    };
    if (!plan.graph)
        return notItsGraph("it has none");
    const std::size_t operators = plan.graph->operators.size();
    if (plan.partitions.size() != operators || plan.placement.size() != operators || plan.devices.empty()
        || plan.microBatches < 1 || (!plan.precisions.empty() && plan.precisions.size() != operators))
        return notItsGraph("it has decisions for " + std::to_string(plan.partitions.size()) + " of "
            + std::to_string(operators) + " operators");
    VerifyReport report;
    for (const auto &check : {+[](const ExecutionPlan &p) { return checkGraph(*p.graph); }, &checkBatch})
        if (std::string reason = check(plan); !reason.empty()) {
            report.failure = VerifyFailure{.reason = std::move(reason)};
            return report;
        }
    report.failure = checkStructure(plan);
    if (report.failure)
        return report;
    return Interpreter(plan, std::move(stop)).run();
}

} // namespace planloom
