#include "engine/runtime/devices/shared_values.h"

#include "engine/runtime/devices/value_number.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostRounds = 64; ///< Behind so many nothing is shared. Plans need two or three.

/// Memory of a device.
struct Place {
    std::int32_t device = -1;
    std::int32_t block = -1;
    friend auto operator<=>(const Place &, const Place &) = default;
};

class Sharing
{
public:
    Sharing(const ExecutionPlan &plan, const std::vector<MemoryPlan> &memory, JointOrder order)
        : m_plan(plan)
        , m_memory(memory)
        , m_order(std::move(order))
    {
        for (std::size_t d = 0; d < memory.size(); ++d) {
            const DeviceProgram &program = plan.devices[d];
            auto &deeds = m_deeds.emplace_back();
            for (const Segment &segment : program.segments) {
                auto &of = deeds.emplace_back();
                for (const Instruction &instruction : segment.instructions)
                    of.push_back(deedOf(plan, program, instruction));
            }
            auto &persists = m_persists.emplace_back(memory[d].blocks.size(), false);
            for (const std::int32_t block : memory[d].persistent)
                if (block >= 0)
                    persists[static_cast<std::size_t>(block)] = true;
        }
    }

    std::optional<SharedStep> run(std::int64_t alignment)
    {
        for (int round = 0; round < kMostRounds; ++round) {
            m_refused = false;
            walk();
            if (!m_refused)
                return m_shares ? std::optional{lay(alignment)} : std::nullopt;
        }
        return std::nullopt;
    }

private:
    /// What a device sees in one of its blocks.
    struct View {
        ValueNumber number{};
        Place place{}; ///< Where it lies.
        std::int32_t since = -1; ///< Of another device's: the turn that said so; -1: all the time.
    };
    struct DeviceState {
        std::vector<View> views{}; ///< By block.
        std::vector<ValueNumber> held{}; ///< By block: what lies there.
        std::unordered_map<ValueNumber, std::int32_t, ValueNumberHash> times{}; ///< How often it did what.
        std::vector<StepOperand> operands{}; ///< As `MemoryPlan::operands`: their uses,
        std::vector<Place> places{}; ///< and where they lie.
    };
    struct Turn {
        std::size_t device = 0;
        std::int32_t step = 0;
        const StepInstruction *at = nullptr;
        const Instruction *instruction = nullptr;
        const Deed *deed = nullptr;
        std::size_t inputs = 0; ///< Its first input among the device's operands.
        std::size_t outputs = 0;
        std::size_t end = 0;
    };

    Turn turnAt(const DeviceTurn &turn) const
    {
        Turn made;
        made.device = static_cast<std::size_t>(turn.device);
        made.step = turn.step;
        const MemoryPlan &memory = m_memory[made.device];
        made.at = &memory.instructions[static_cast<std::size_t>(turn.step)];
        const auto segment = static_cast<std::size_t>(made.at->segment);
        const auto index = static_cast<std::size_t>(made.at->instruction);
        made.instruction = &m_plan.devices[made.device].segments[segment].instructions[index];
        made.deed = &m_deeds[made.device][segment][index];
        made.inputs = memory.firstOperand[static_cast<std::size_t>(turn.step)];
        made.outputs = made.inputs + made.instruction->inputs.size();
        made.end = memory.firstOperand[static_cast<std::size_t>(turn.step) + 1];
        return made;
    }

    View &viewOf(std::size_t device, std::int32_t block)
    {
        return m_state[device].views[static_cast<std::size_t>(block)];
    }
    ValueNumber &heldAt(const Place &place)
    {
        return m_state[static_cast<std::size_t>(place.device)].held[static_cast<std::size_t>(place.block)];
    }
    bool persists(std::size_t device, std::int32_t block) const
    {
        return m_persists[device][static_cast<std::size_t>(block)];
    }
    const StepOperand &operand(std::size_t device, std::size_t at) const
    {
        return m_memory[device].operands[at];
    }

    /// `view` cannot be another device's.
    void refuse(std::size_t device, std::int32_t block)
    {
        const View &view = viewOf(device, block);
        m_refused = true;
        if (view.since >= 0)
            m_ownTurns.emplace(device, view.since);
        else
            m_ownBlocks.insert({static_cast<std::int32_t>(device), block});
    }

    void begin()
    {
        m_state.assign(m_memory.size(), {});
        m_makers.clear();
        m_setup.assign(m_memory.size(), {});
        m_shares = false;
        std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::pair<Place, DeviceEvent>>> loaded;
        for (std::size_t d = 0; d < m_memory.size(); ++d) {
            DeviceState &state = m_state[d];
            const MemoryPlan &memory = m_memory[d];
            const auto device = static_cast<std::int32_t>(d);
            state.operands.resize(memory.operands.size());
            state.places.resize(memory.operands.size());
            for (std::int32_t b = 0; b < static_cast<std::int32_t>(memory.blocks.size()); ++b) {
                const ValueNumber own = ValueNumber{}.with(-2).with(device).with(b);
                state.views.push_back({own, {device, b}, -1});
                state.held.push_back(own);
            }
            const DeviceProgram &program = m_plan.devices[d];
            m_setup[d].resize(program.setup.size());
            std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> times;
            for (std::size_t i = 0; i < program.setup.size(); ++i) {
                const Instruction &load = program.setup[i];
                for (const std::int32_t out : load.outputs) {
                    const std::int32_t block =
                        out < 0 ? -1 : memory.persistent[static_cast<std::size_t>(out)];
                    if (block < 0 || load.kind != InstructionKind::Load)
                        continue;
                    const BufferInfo &info = program.buffers[static_cast<std::size_t>(out)];
                    ValueNumber number;
                    number.add(info.tensor.index).add(info.dataType).add(info.place);
                    addBox(number, info.index);
                    const std::pair key{number.high, number.low};
                    auto &first = loaded[key];
                    const std::size_t time = times[key]++;
                    View &view = viewOf(d, block);
                    // What only begins alike is another value.
                    const bool isOwn = m_ownBlocks.contains(view.place);
                    view.number = isOwn ? number.with(-3).with(device).with(block)
                                        : number.with(static_cast<std::int64_t>(time));
                    if (!isOwn && time < first.size()) {
                        view.place = first[time].first;
                        m_setup[d][i].push_back(first[time].second);
                        m_shares = true;
                        continue;
                    }
                    heldAt(view.place) = view.number;
                    if (!isOwn)
                        first.emplace_back(view.place, DeviceEvent{device, static_cast<EventId>(i)});
                }
            }
        }
    }

    void walk()
    {
        begin();
        for (const auto &[first, last] : m_order.meetings) {
            if (last - first == 1 && !isCommunication(turnAt(m_order.turns[first]).instruction->kind))
                alone(turnAt(m_order.turns[first]));
            else
                meet(first, last);
        }
        for (std::size_t d = 0; d < m_memory.size(); ++d)
            for (std::int32_t b = 0; b < static_cast<std::int32_t>(m_memory[d].blocks.size()); ++b)
                if (persists(d, b))
                    if (const View &view = viewOf(d, b); !(heldAt(view.place) == view.number))
                        refuse(d, b);
    }

    /// The number of what `turn` does, of the values that it finds.
    ValueNumber deedWith(const Turn &turn)
    {
        ValueNumber number = turn.deed->number.with(turn.at->microBatch);
        for (std::size_t i = turn.inputs; i < turn.outputs; ++i)
            if (const std::int32_t block = operand(turn.device, i).block; block >= 0)
                number.add(viewOf(turn.device, block).number);
        for (std::size_t o = turn.outputs; o < turn.end; ++o)
            if (addsTo(turn, o))
                number.add(viewOf(turn.device, operand(turn.device, o).block).number);
        return number;
    }

    /// Output `output` is added to what is there.
    bool addsTo(const Turn &turn, std::size_t output) const
    {
        const OperandUse use = operand(turn.device, output).use;
        return use == OperandUse::Adds
            || (use == OperandUse::Changes && turn.instruction->kind == InstructionKind::Accumulate);
    }

    /// The number of output `output` of what `deed` is.
    ValueNumber made(const Turn &turn, const ValueNumber &deed, std::size_t output)
    {
        const bool isFirstSum = turn.instruction->kind == InstructionKind::Accumulate
            && operand(turn.device, turn.outputs).use != OperandUse::Changes
            && isOneType(turn.device, *turn.instruction);
        if (turn.deed->keepsBytes || isFirstSum)
            return viewOf(turn.device, operand(turn.device, turn.inputs).block).number;
        return deed.with(static_cast<std::int64_t>(output - turn.outputs));
    }

    bool isOneType(std::size_t device, const Instruction &instruction) const
    {
        const auto &buffers = m_plan.devices[device].buffers.values();
        return buffers[static_cast<std::size_t>(instruction.inputs[0])].dataType
            == buffers[static_cast<std::size_t>(instruction.outputs[0])].dataType;
    }

    void alone(const Turn &turn)
    {
        const ValueNumber deed = deedWith(turn);
        if (!turn.deed->mayBeShared) {
            execute(turn, deed);
            return;
        }
        const ValueNumber time = deed.with(m_state[turn.device].times[deed]++);
        const auto [maker, isFirst] = m_makers.try_emplace(time, turn);
        if (isFirst || !follow(turn, maker->second, deed))
            execute(turn, deed);
    }

    /// Uses what `maker` made, if it is there still.
    bool follow(const Turn &turn, const Turn &maker, const ValueNumber &deed)
    {
        if (m_ownTurns.contains({turn.device, turn.step}))
            return false;
        for (std::size_t o = turn.outputs; o < turn.end; ++o) {
            const std::int32_t block = operand(turn.device, o).block;
            const Place &place = m_state[maker.device].places[maker.outputs + (o - turn.outputs)];
            if ((block < 0) != (place.block < 0))
                return false;
            if (block < 0)
                continue;
            if (!(heldAt(place) == made(turn, deed, o))
                || (persists(turn.device, block) && viewOf(turn.device, block).place != place))
                return false;
        }
        // Those who collect values look at inputs, too: all must be there but what was changed in place.
        for (std::size_t i = turn.inputs; i < turn.outputs; ++i) {
            const std::int32_t block = operand(turn.device, i).block;
            if (block < 0)
                continue;
            const View &view = viewOf(turn.device, block);
            if (heldAt(view.place) == view.number)
                put(turn.device, i, OperandUse::Reads, view.place);
            else if (persists(turn.device, block) || writes(maker, view.place))
                put(turn.device, i, OperandUse::Absent, {});
            else
                return false;
        }
        std::vector<ValueNumber> numbers; // before views change
        for (std::size_t o = turn.outputs; o < turn.end; ++o)
            numbers.push_back(operand(turn.device, o).block < 0 ? ValueNumber{} : made(turn, deed, o));
        for (std::size_t o = turn.outputs; o < turn.end; ++o)
            if (operand(turn.device, o).block >= 0)
                share(turn, o, m_state[maker.device].places[maker.outputs + (o - turn.outputs)],
                    numbers[o - turn.outputs]);
        return true;
    }

    bool writes(const Turn &maker, const Place &place) const
    {
        const auto &places = m_state[maker.device].places;
        return std::find(places.begin() + static_cast<std::ptrdiff_t>(maker.outputs),
                   places.begin() + static_cast<std::ptrdiff_t>(maker.end), place)
            != places.begin() + static_cast<std::ptrdiff_t>(maker.end);
    }

    void put(std::size_t device, std::size_t at, OperandUse use, const Place &place)
    {
        m_state[device].operands[at].use = use;
        m_state[device].places[at] = place;
    }

    void share(const Turn &turn, std::size_t output, const Place &place, const ValueNumber &number)
    {
        const std::int32_t block = operand(turn.device, output).block;
        View &view = viewOf(turn.device, block);
        view.number = number;
        view.place = place;
        if (!persists(turn.device, block))
            view.since = turn.step;
        put(turn.device, output, OperandUse::Shared, place);
        m_shares = true;
    }

    void execute(const Turn &turn, const ValueNumber &deed)
    {
        read(turn);
        for (std::size_t o = turn.outputs; o < turn.end; ++o)
            if (addsTo(turn, o))
                if (const View &view = viewOf(turn.device, operand(turn.device, o).block);
                    !(heldAt(view.place) == view.number))
                    refuse(turn.device, operand(turn.device, o).block);
        for (std::size_t o = turn.outputs; o < turn.end; ++o)
            if (operand(turn.device, o).block >= 0)
                write(turn, o, made(turn, deed, o));
    }

    void read(const Turn &turn)
    {
        for (std::size_t i = turn.inputs; i < turn.outputs; ++i) {
            const std::int32_t block = operand(turn.device, i).block;
            if (block < 0)
                continue;
            const View &view = viewOf(turn.device, block);
            if (!(heldAt(view.place) == view.number))
                refuse(turn.device, block);
            put(turn.device, i, OperandUse::Reads, view.place);
        }
    }

    void write(const Turn &turn, std::size_t output, const ValueNumber &number)
    {
        const StepOperand &planned = operand(turn.device, output);
        const auto device = static_cast<std::int32_t>(turn.device);
        View &view = viewOf(turn.device, planned.block);
        const Place own{device, planned.block};
        OperandUse use = planned.use;
        if (!persists(turn.device, planned.block) && view.place != own) {
            // It goes on in memory of its own.
            if (addsTo(turn, output))
                refuse(turn.device, planned.block);
            if (use == OperandUse::Takes)
                use = OperandUse::Makes;
            view.place = own;
        }
        if (!persists(turn.device, planned.block))
            view.since = -1;
        view.number = number;
        heldAt(view.place) = number;
        put(turn.device, output, use, view.place);
    }

    /// A collective, or a send and its receive.
    void meet(std::size_t first, std::size_t last)
    {
        std::vector<Turn> turns;
        for (std::size_t at = first; at < last; ++at)
            turns.push_back(turnAt(m_order.turns[at]));
        const InstructionKind kind = turns.back().instruction->kind;
        ValueNumber deed = turns.back().deed->number;
        const bool isMessage = kind == InstructionKind::Recv;
        if (!isMessage)
            deed = ValueNumber{}
                       .with(static_cast<std::int64_t>(kind))
                       .add(turns.front().instruction->combination);
        deed.add(turns.front().instruction->dimension).add(turns.front().instruction->gatherDimension);
        deed.add(static_cast<std::int64_t>(turns.size()));
        for (const Turn &turn : turns) {
            read(turn);
            for (std::size_t i = turn.inputs; i < turn.outputs; ++i)
                if (const std::int32_t block = operand(turn.device, i).block; block >= 0)
                    deed.add(viewOf(turn.device, block).number);
            for (const std::int32_t out : turn.instruction->outputs)
                if (out >= 0)
                    addBox(deed, m_plan.devices[turn.device].buffers[static_cast<std::size_t>(out)].index);
        }
        const bool alike = kind == InstructionKind::AllReduce || kind == InstructionKind::AllGather
            || kind == InstructionKind::Broadcast;
        Place made; // what is the same for all
        ValueNumber number = deed;
        if (kind == InstructionKind::Broadcast && turns.front().inputs < turns.front().outputs) {
            const std::int32_t block = operand(turns.front().device, turns.front().inputs).block;
            made = viewOf(turns.front().device, block).place;
            number = viewOf(turns.front().device, block).number;
        }
        for (std::size_t m = 0; m < turns.size(); ++m) {
            const Turn &turn = turns[m];
            for (std::size_t o = turn.outputs; o < turn.end; ++o) {
                const StepOperand &planned = operand(turn.device, o);
                if (planned.block < 0)
                    continue;
                const ValueNumber each = alike ? number : deed.with(static_cast<std::int64_t>(m));
                if (alike && made.block >= 0 && planned.use != OperandUse::Changes
                    && !persists(turn.device, planned.block)
                    && !m_ownTurns.contains({turn.device, turn.step})) {
                    share(turn, o, made, each);
                    continue;
                }
                write(turn, o, each);
                const Place &place = m_state[turn.device].places[o];
                if (alike && made.block < 0)
                    made = place;
                keepFromReaders(turns, m, place);
            }
        }
    }

    /// Members write side by side with what others read: member `m` writes `place`.
    void keepFromReaders(const std::vector<Turn> &turns, std::size_t m, const Place &place)
    {
        for (std::size_t other = 0; other < turns.size(); ++other) {
            const Turn &turn = turns[other];
            for (std::size_t i = turn.inputs; other != m && i < turn.outputs; ++i)
                if (const std::int32_t block = operand(turn.device, i).block; block >= 0
                    && m_state[turn.device].places[i] == place && viewOf(turn.device, block).place == place)
                    refuse(turn.device, block);
        }
    }

    SharedStep lay(std::int64_t alignment)
    {
        SharedStep step;
        step.memory = m_memory;
        const auto last = static_cast<std::int32_t>(m_order.turns.size());
        for (std::size_t d = 0; d < step.memory.size(); ++d) {
            for (PlannedBlock &block : step.memory[d].blocks) {
                block.first = last;
                block.last = -1;
            }
        }
        for (const auto &[begin, end] : m_order.meetings) {
            for (std::size_t at = begin; at < end; ++at) {
                const Turn turn = turnAt(m_order.turns[at]);
                for (std::size_t i = turn.inputs; i < turn.end; ++i) {
                    const Place &place = m_state[turn.device].places[i];
                    if (place.block < 0)
                        continue;
                    PlannedBlock &block = step.memory[static_cast<std::size_t>(place.device)]
                                              .blocks[static_cast<std::size_t>(place.block)];
                    block.first = std::min(block.first, static_cast<std::int32_t>(begin));
                    block.last = std::max(block.last, static_cast<std::int32_t>(end) - 1);
                }
            }
        }
        for (std::size_t d = 0; d < step.memory.size(); ++d) {
            MemoryPlan &memory = step.memory[d];
            for (std::int32_t b = 0; b < static_cast<std::int32_t>(memory.blocks.size()); ++b) {
                PlannedBlock &block = memory.blocks[static_cast<std::size_t>(b)];
                const bool isOwn = viewOf(d, b).place == Place{static_cast<std::int32_t>(d), b};
                if (persists(d, b) && isOwn) {
                    block.first = 0;
                    block.last = last;
                } else if (block.last < 0) { // nobody needs it
                    block.first = 0;
                    block.last = 0;
                    block.bytes = 0;
                }
            }
            layOut(memory, alignment);
        }
        std::vector<std::vector<PlannedBlock>> own;
        for (const MemoryPlan &memory : step.memory)
            own.push_back(memory.blocks);
        for (std::size_t d = 0; d < step.memory.size(); ++d)
            refer(step.memory[d], d, own);
        step.waits = jointWaits(m_plan, step.memory, m_order);
        step.setupWaits = std::move(m_setup);
        return step;
    }

    /// Points the operands of a device to where they lie.
    void refer(MemoryPlan &memory, std::size_t device, const std::vector<std::vector<PlannedBlock>> &own)
    {
        const auto foreign = [&](const Place &place) {
            PlannedBlock block =
                own[static_cast<std::size_t>(place.device)][static_cast<std::size_t>(place.block)];
            block.owner = place.device;
            return block;
        };
        const auto isHere = [&](const Place &place) {
            return place.device == static_cast<std::int32_t>(device);
        };
        for (std::int32_t b = 0; b < static_cast<std::int32_t>(m_memory[device].blocks.size()); ++b)
            if (const Place &place = viewOf(device, b).place; persists(device, b) && !isHere(place))
                memory.blocks[static_cast<std::size_t>(b)] = foreign(place);
        std::map<Place, std::int32_t> index;
        const DeviceState &state = m_state[device];
        for (std::size_t i = 0; i < memory.operands.size(); ++i) {
            const Place &place = state.places[i];
            memory.operands[i] = {place.block, state.operands[i].use};
            if (place.block < 0 || isHere(place))
                continue;
            const auto [found, isNew] =
                index.try_emplace(place, static_cast<std::int32_t>(memory.blocks.size()));
            if (isNew)
                memory.blocks.push_back(foreign(place));
            memory.operands[i].block = found->second;
        }
    }

    const ExecutionPlan &m_plan;
    const std::vector<MemoryPlan> &m_memory;
    JointOrder m_order;
    std::vector<std::vector<std::vector<Deed>>> m_deeds{}; ///< By device, segment and instruction.
    std::vector<std::vector<bool>> m_persists{}; ///< By device and block.
    std::set<std::pair<std::size_t, std::int32_t>> m_ownTurns{}; ///< That devices have to do themselves.
    std::set<Place> m_ownBlocks{}; ///< That persist and cannot be another device's.

    // Of one round.
    bool m_refused = false;
    bool m_shares = false;
    std::vector<DeviceState> m_state{};
    std::unordered_map<ValueNumber, Turn, ValueNumberHash> m_makers{}; ///< Who did what first.
    std::vector<std::vector<std::vector<DeviceEvent>>> m_setup{};
};

} // namespace

std::optional<SharedStep> shareValues(
    const ExecutionPlan &plan, const std::vector<MemoryPlan> &memory, std::int64_t alignment)
{
    if (memory.size() < 2)
        return std::nullopt;
    auto order = jointOrder(plan, memory);
    if (!order)
        return std::nullopt;
    return Sharing{plan, memory, *std::move(order)}.run(alignment);
}

} // namespace planloom
