#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Small random choices.
class Dice
{
public:
    explicit Dice(std::uint32_t seed)
        : m_random(seed)
    {
    }
    /// 0 to n - 1; 0 if n is 0.
    std::size_t below(std::size_t n)
    {
        return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(m_random);
    }
    bool coin() { return below(2) == 0; }
    template<typename List> auto &of(List &list) { return list[below(list.size())]; }
    /// Another number near `value`, or a far one.
    template<typename T> T near(T value)
    {
        static constexpr std::array<std::int64_t, 8> kSteps{1, -1, 1, -1, 2, -2, 7, 1'000'000};
        return static_cast<T>(static_cast<std::int64_t>(value) + kSteps[below(kSteps.size())]);
    }
    /// An index below `count` that is not `value`; `value` itself if there is none.
    std::int32_t another(std::int32_t value, std::size_t count)
    {
        if (count < 2)
            return value;
        const auto step = static_cast<std::int32_t>(1 + below(count - 1));
        return static_cast<std::int32_t>((std::max(value, 0) + step) % static_cast<std::int32_t>(count));
    }
    /// Another enumerator below `count`.
    template<typename E> E otherKind(E value, std::size_t count)
    {
        return static_cast<E>(another(static_cast<std::int32_t>(value), count));
    }

private:
    std::mt19937 m_random;
};

/// One way to change a plan. `apply` returns false where the plan has nothing of the sort at the place the
/// dice chose.
struct Mutation {
    std::string name{};
    std::function<bool(ExecutionPlan &, Dice &)> apply{};
};

namespace mutations {

using Edit = std::function<bool(ExecutionPlan &, Dice &)>;

template<typename List> bool eraseOne(List &list, Dice &dice)
{
    if (list.empty())
        return false;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(dice.below(list.size())));
    return true;
}

template<typename List> bool repeatOne(List &list, Dice &dice)
{
    if (list.empty())
        return false;
    const typename List::value_type copy = list[dice.below(list.size())];
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(dice.below(list.size() + 1)), copy);
    return true;
}

template<typename List> bool swapTwo(List &list, Dice &dice)
{
    if (list.size() < 2)
        return false;
    const std::size_t a = dice.below(list.size());
    const std::size_t b = static_cast<std::size_t>(dice.another(static_cast<std::int32_t>(a), list.size()));
    std::swap(list[a], list[b]);
    return true;
}

/// An edit of the instructions of one segment, which has some.
inline Edit onList(
    const std::function<bool(ExecutionPlan &, DeviceProgram &, std::vector<Instruction> &, Dice &)> &edit)
{
    return [edit](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.segments.empty())
            return false;
        Segment &segment = dice.of(device.segments.edit());
        return !segment.instructions.empty() && edit(plan, device, segment.instructions, dice);
    };
}

inline Edit onInstruction(
    const std::function<bool(ExecutionPlan &, DeviceProgram &, Instruction &, Dice &)> &edit)
{
    return onList(
        [edit](ExecutionPlan &plan, DeviceProgram &device, std::vector<Instruction> &list, Dice &dice) {
            const std::size_t any = dice.below(list.size());
            if (dice.coin())
                return edit(plan, device, list[any], dice);
            // One of the kinds in turn, so that rare ones have their share.
            const InstructionKind kind = dice.otherKind(InstructionKind::Load, kInstructionKindCount);
            const auto at = std::find_if(
                list.begin(), list.end(), [kind](const Instruction &i) { return i.kind == kind; });
            return edit(plan, device, at == list.end() ? list[any] : *at, dice);
        });
}

inline Edit onBuffer(const std::function<bool(ExecutionPlan &, BufferInfo &, Dice &)> &edit)
{
    return [edit](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        return !device.buffers.empty() && edit(plan, dice.of(device.buffers.edit()), dice);
    };
}

inline Edit onPartition(
    const std::function<bool(ExecutionPlan &, std::size_t op, std::vector<Split> &, Dice &)> &edit)
{
    return [edit](ExecutionPlan &plan, Dice &dice) {
        // Another mutation may have left fewer of either.
        const std::size_t count =
            std::min({plan.partitions.size(), plan.placement.size(), plan.graph->operators.size()});
        const std::size_t op = dice.below(count);
        return count > 0 && !plan.placement[op].empty() && edit(plan, op, plan.partitions[op].splits, dice);
    };
}

inline Edit onSplit(const std::function<bool(ExecutionPlan &, std::size_t op, Split &, Dice &)> &edit)
{
    return onPartition([edit](ExecutionPlan &plan, std::size_t op, std::vector<Split> &splits, Dice &dice) {
        return !splits.empty() && edit(plan, op, dice.of(splits), dice);
    });
}

inline Edit onGraph(const std::function<bool(Graph &, Dice &)> &edit)
{
    return [edit](ExecutionPlan &plan, Dice &dice) {
        Graph graph = *plan.graph;
        if (!edit(graph, dice))
            return false;
        plan.graph = std::make_shared<const Graph>(std::move(graph));
        return true;
    };
}

inline Edit onOperator(const std::function<bool(Graph &, Operator &, Dice &)> &edit)
{
    return onGraph([edit](Graph &graph, Dice &dice) { return edit(graph, dice.of(graph.operators), dice); });
}

inline Edit onTensor(const std::function<bool(Graph &, Tensor &, Dice &)> &edit)
{
    return onGraph([edit](Graph &graph, Dice &dice) { return edit(graph, dice.of(graph.tensors), dice); });
}

/// One index of a list changed to another that exists, or to none.
inline bool redirect(BufferList &list, std::size_t count, Dice &dice)
{
    if (list.empty())
        return false;
    std::int32_t &index = dice.of(list);
    const std::int32_t before = index;
    index = dice.below(8) == 0 ? -1 : dice.another(index, count);
    return index != before;
}

inline bool rewire(std::vector<TensorId> &slots, std::size_t tensors, Dice &dice)
{
    if (slots.empty())
        return false;
    TensorId &slot = dice.of(slots);
    const TensorId before = slot;
    slot.index = dice.below(8) == 0 ? -1 : dice.another(slot.index, tensors);
    return slot != before;
}

/// One place for every part again, as far as there are not too many or none.
inline bool fitPlaces(ExecutionPlan &plan, std::size_t op)
{
    std::int64_t parts = 1;
    for (const Split &split : plan.partitions[op].splits)
        if ((parts *= split.parts) < 1 || parts > 64)
            return false;
    auto &places = plan.placement[op];
    places.resize(static_cast<std::size_t>(parts), places.empty() ? DeviceId{0} : places.front());
    return true;
}

/// A segment of one device cut in two; in one micro-batch its second half runs first.
inline bool cutSegment(ExecutionPlan &plan, Dice &dice)
{
    DeviceProgram &device = dice.of(plan.devices);
    const std::size_t s = dice.below(device.segments.size());
    if (plan.microBatches < 1 || device.segments.empty() || device.segments[s].instructions.size() < 2)
        return false;
    Segment &first = device.segments.edit()[s];
    Segment second = first;
    const auto half = static_cast<std::ptrdiff_t>(1 + dice.below(first.instructions.size() - 1));
    second.instructions.erase(second.instructions.begin(), second.instructions.begin() + half);
    first.instructions.erase(first.instructions.begin() + half, first.instructions.end());
    const auto added = static_cast<std::int32_t>(device.segments.size());
    device.segments.push_back(std::move(second));
    const bool swap = dice.coin();
    const auto turned = static_cast<std::int32_t>(dice.below(static_cast<std::size_t>(plan.microBatches)));
    std::vector<ScheduleEntry> schedule;
    for (const ScheduleEntry &entry : device.schedule) {
        schedule.push_back(entry);
        if (entry.segment != static_cast<std::int32_t>(s))
            continue;
        schedule.push_back({added, entry.microBatch});
        if (swap && entry.microBatch == turned)
            std::swap(schedule[schedule.size() - 1].segment, schedule[schedule.size() - 2].segment);
    }
    device.schedule = std::move(schedule);
    return true;
}

/// One micro-batch runs a copy of a segment.
inline bool copySegment(ExecutionPlan &plan, Dice &dice)
{
    DeviceProgram &device = dice.of(plan.devices);
    if (device.schedule.empty())
        return false;
    ScheduleEntry &entry = dice.of(device.schedule);
    if (entry.segment < 0 || static_cast<std::size_t>(entry.segment) >= device.segments.size())
        return false;
    device.segments.push_back(Segment{device.segments[static_cast<std::size_t>(entry.segment)]});
    entry.segment = static_cast<std::int32_t>(device.segments.size()) - 1;
    return true;
}

} // namespace mutations

/// Mutations of instructions, set-up, segments and schedules.
inline std::vector<Mutation> programMutations()
{
    using namespace mutations;
    std::vector<Mutation> list;
    const auto add = [&list](const char *name, Edit edit) { list.push_back({name, std::move(edit)}); };
    using List = std::vector<Instruction>;
    add("instruction deleted",
        onList([](ExecutionPlan &, DeviceProgram &, List &l, Dice &dice) { return eraseOne(l, dice); }));
    add("instruction repeated",
        onList([](ExecutionPlan &, DeviceProgram &, List &l, Dice &dice) { return repeatOne(l, dice); }));
    add("instruction moved", onList([](ExecutionPlan &, DeviceProgram &, List &l, Dice &dice) {
        const std::size_t from = dice.below(l.size());
        const std::size_t to = dice.below(l.size());
        const Instruction moved = l[from];
        l.erase(l.begin() + static_cast<std::ptrdiff_t>(from));
        l.insert(l.begin() + static_cast<std::ptrdiff_t>(to), moved);
        return from != to;
    }));
    add("instruction moved to another segment",
        onList([](ExecutionPlan &, DeviceProgram &device, List &l, Dice &dice) {
            Segment &other = dice.of(device.segments.edit());
            if (&other.instructions == &l)
                return false;
            const std::size_t from = dice.below(l.size());
            other.instructions.insert(
                dice.coin() ? other.instructions.begin() : other.instructions.end(), l[from]);
            l.erase(l.begin() + static_cast<std::ptrdiff_t>(from));
            return true;
        }));
    add("kind of instruction",
        onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
            i.kind = dice.otherKind(i.kind, kInstructionKindCount);
            return true;
        }));
    add("operator of instruction",
        onInstruction([](ExecutionPlan &plan, DeviceProgram &, Instruction &i, Dice &dice) {
            i.op.index = dice.another(i.op.index, plan.graph->operators.size());
            return true;
        }));
    add("part of instruction",
        onInstruction([](ExecutionPlan &plan, DeviceProgram &, Instruction &i, Dice &dice) {
            const std::size_t parts =
                i.op.valid() && static_cast<std::size_t>(i.op.index) < plan.placement.size()
                ? plan.placement[static_cast<std::size_t>(i.op.index)].size()
                : 0;
            i.part = parts > 1 && dice.coin() ? dice.another(i.part, parts) : dice.near(i.part);
            return true;
        }));
    add("recompute", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &) {
        i.recompute = !i.recompute;
        return i.kind == InstructionKind::Kernel;
    }));
    add("group of instruction",
        onInstruction([](ExecutionPlan &plan, DeviceProgram &, Instruction &i, Dice &dice) {
            const bool had = i.group >= 0;
            i.group = dice.coin() ? dice.another(i.group, plan.groups.size()) : dice.near(i.group);
            return had;
        }));
    add("peer", onInstruction([](ExecutionPlan &plan, DeviceProgram &, Instruction &i, Dice &dice) {
        const bool had = i.peer.valid();
        i.peer.index =
            dice.coin() ? dice.another(i.peer.index, plan.devices.size()) : dice.near(i.peer.index);
        return had;
    }));
    add("tag", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        const bool had = i.tag >= 0;
        i.tag = dice.near(i.tag);
        return had;
    }));
    add("dimension of collective",
        onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
            const bool had = isCommunication(i.kind) && i.peer.index < 0;
            (dice.coin() ? i.dimension : i.gatherDimension) = static_cast<std::int32_t>(dice.below(4)) - 1;
            return had;
        }));
    add("combination of instruction",
        onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
            i.combination = dice.otherKind(i.combination, kCombinationCount);
            return true;
        }));
    add("input", onInstruction([](ExecutionPlan &, DeviceProgram &device, Instruction &i, Dice &dice) {
        return redirect(i.inputs, device.buffers.size(), dice);
    }));
    add("output", onInstruction([](ExecutionPlan &, DeviceProgram &device, Instruction &i, Dice &dice) {
        return redirect(i.outputs, device.buffers.size(), dice);
    }));
    add("inputs swapped", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        return swapTwo(i.inputs, dice);
    }));
    add("outputs swapped", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        return swapTwo(i.outputs, dice);
    }));
    add("number of buffers", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        BufferList &l = dice.coin() ? i.inputs : i.outputs;
        return dice.coin() ? eraseOne(l, dice) : repeatOne(l, dice);
    }));
    add("waits", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &) {
        i.waits = !i.waits;
        return true;
    }));
    add("queue of instruction",
        onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
            const std::optional<QueueKind> before = i.queue;
            i.queue = i.queue && dice.coin() ? std::nullopt
                                             : std::optional(static_cast<QueueKind>(dice.below(kQueueCount)));
            return i.queue != before;
        }));
    add("joined", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &) {
        i.joined = !i.joined;
        return true;
    }));
    add("overlaps", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &) {
        i.overlaps = !i.overlaps;
        return true;
    }));
    add("across units", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        i.acrossUnits = !i.acrossUnits;
        if (dice.coin())
            i.group = i.acrossUnits ? -1 : 0;
        return true;
    }));
    add("death dropped", onInstruction([](ExecutionPlan &, DeviceProgram &, Instruction &i, Dice &dice) {
        return eraseOne(i.deaths, dice);
    }));
    add("death added", onInstruction([](ExecutionPlan &, DeviceProgram &device, Instruction &i, Dice &dice) {
        i.deaths.push_back(static_cast<std::int32_t>(dice.below(device.buffers.size())));
        return true;
    }));
    add("death moved", onList([](ExecutionPlan &, DeviceProgram &, List &l, Dice &dice) {
        Instruction &from = dice.of(l);
        Instruction &to = dice.of(l);
        if (&from == &to || from.deaths.empty())
            return false;
        to.deaths.push_back(from.deaths.back());
        from.deaths.pop_back();
        return true;
    }));
    add("set-up", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.setup.empty())
            return false;
        switch (dice.below(5)) {
        case 0:
            return eraseOne(device.setup.edit(), dice);
        case 1:
            return repeatOne(device.setup.edit(), dice);
        case 2: // done in the step instead
            if (device.segments.empty())
                return false;
            device.segments.edit().front().instructions.insert(
                device.segments.edit().front().instructions.begin(), device.setup.edit().front());
            device.setup.edit().erase(device.setup.edit().begin());
            return true;
        case 3:
            dice.of(device.setup.edit()).kind = InstructionKind::Kernel;
            return true;
        default:
            return redirect(dice.of(device.setup.edit()).outputs, device.buffers.size(), dice);
        }
    });
    add("kind of segment", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.segments.empty())
            return false;
        Segment &segment = dice.of(device.segments.edit());
        segment.kind = dice.otherKind(segment.kind, 8);
        return true;
    });
    add("stage of segment", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.segments.empty())
            return false;
        Segment &segment = dice.of(device.segments.edit());
        segment.stage.index = dice.near(segment.stage.index);
        return true;
    });
    add("slice of segment", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.segments.empty())
            return false;
        Segment &segment = dice.of(device.segments.edit());
        segment.slice = dice.near(segment.slice);
        return true;
    });
    add("lane of segment", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.segments.empty())
            return false;
        Segment &segment = dice.of(device.segments.edit());
        segment.lane = dice.near(segment.lane);
        return true;
    });
    add("segment deleted", [](ExecutionPlan &plan, Dice &dice) {
        return eraseOne(dice.of(plan.devices).segments.edit(), dice);
    });
    add("segments swapped",
        [](ExecutionPlan &plan, Dice &dice) { return swapTwo(dice.of(plan.devices).segments.edit(), dice); });
    add("segment cut in two", cutSegment);
    add("segment copied for a micro-batch", copySegment);
    add("schedule entry deleted",
        [](ExecutionPlan &plan, Dice &dice) { return eraseOne(dice.of(plan.devices).schedule, dice); });
    add("schedule entry repeated",
        [](ExecutionPlan &plan, Dice &dice) { return repeatOne(dice.of(plan.devices).schedule, dice); });
    add("schedule entries swapped",
        [](ExecutionPlan &plan, Dice &dice) { return swapTwo(dice.of(plan.devices).schedule, dice); });
    add("segment of schedule entry", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.schedule.empty())
            return false;
        std::int32_t &segment = dice.of(device.schedule).segment;
        segment = dice.coin() ? dice.another(segment, device.segments.size()) : dice.near(segment);
        return true;
    });
    add("slice of schedule entry", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.schedule.empty())
            return false;
        ScheduleEntry &entry = dice.of(device.schedule);
        (dice.coin() ? entry.begin : entry.end) = dice.coin() ? dice.near(entry.end) : dice.near(entry.begin);
        return true;
    });
    add("border of two slices", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        for (ScheduleEntry &entry : device.schedule)
            for (ScheduleEntry &next : device.schedule)
                if (entry.end > 0 && next.begin == entry.end && next.segment == entry.segment
                    && next.microBatch == entry.microBatch && dice.below(4) == 0) {
                    next.begin = entry.end = dice.near(entry.end);
                    return true;
                }
        return false;
    });
    add("micro-batch of schedule entry", [](ExecutionPlan &plan, Dice &dice) {
        DeviceProgram &device = dice.of(plan.devices);
        if (device.schedule.empty())
            return false;
        std::int32_t &microBatch = dice.of(device.schedule).microBatch;
        const bool within = plan.microBatches > 1 && dice.coin();
        microBatch = within ? dice.another(microBatch, static_cast<std::size_t>(plan.microBatches))
                            : dice.near(microBatch);
        return true;
    });
    return list;
}

/// Mutations of what is said about buffers.
inline std::vector<Mutation> bufferMutations()
{
    using namespace mutations;
    std::vector<Mutation> list;
    const auto add = [&list](const char *name, Edit edit) { list.push_back({name, std::move(edit)}); };
    add("tensor of buffer", onBuffer([](ExecutionPlan &plan, BufferInfo &b, Dice &dice) {
        b.tensor.index = dice.below(16) == 0 ? -1 : dice.another(b.tensor.index, plan.graph->tensors.size());
        return true;
    }));
    add("box of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        if (b.index.ranges.empty())
            return false;
        Range &range = dice.of(b.index.ranges);
        const std::int64_t step = range.size();
        switch (dice.below(4)) {
        case 0:
            range.begin = dice.near(range.begin);
            break;
        case 1:
            range.end = dice.near(range.end);
            break;
        case 2: // the neighbour
            range = {range.begin + step, range.end + step};
            break;
        default:
            range = {range.begin - step, range.end - step};
        }
        return true;
    }));
    add("rank of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        return dice.coin() ? eraseOne(b.index.ranges, dice) : repeatOne(b.index.ranges, dice);
    }));
    add("summands of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        if (!b.summands.empty() && dice.coin())
            return eraseOne(b.summands, dice);
        b.summands.push_back(static_cast<std::int32_t>(dice.below(4)));
        return true;
    }));
    add("value part of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.valuePart = {static_cast<std::int32_t>(dice.below(3)), static_cast<std::int32_t>(dice.below(4))};
        return true;
    }));
    add("per micro-batch", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &) {
        b.perMicroBatch = !b.perMicroBatch;
        return true;
    }));
    add("persistent", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.persistent = !b.persistent;
        if (dice.coin())
            b.perMicroBatch = !b.persistent;
        return true;
    }));
    add("type of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        static constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16};
        const DataType type = dice.of(kTypes);
        return std::exchange(b.dataType, type) != type;
    }));
    add("memory of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.memory = dice.otherKind(b.memory, kMemoryKindCount);
        return true;
    }));
    add("place of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &) {
        b.place = b.place == MemoryPlace::Host ? MemoryPlace::Device : MemoryPlace::Host;
        return true;
    }));
    add("staleness of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.staleness = static_cast<std::int16_t>(dice.near(b.staleness));
        return true;
    }));
    add("versions of buffer", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.versions = static_cast<std::int16_t>(dice.near(b.versions));
        return true;
    }));
    add("unweighed", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &) {
        b.unweighed = !b.unweighed;
        return true;
    }));
    add("share of units", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        b.share = dice.otherKind(b.share, 3);
        return true;
    }));
    add("shard of units", onBuffer([](ExecutionPlan &, BufferInfo &b, Dice &dice) {
        if (b.share != UnitShare::Shard)
            return false;
        if (dice.coin())
            b.shardDimension = static_cast<std::int8_t>(dice.near(static_cast<int>(b.shardDimension)) % 100);
        else
            b.shardEnd = dice.near(b.shardEnd);
        return true;
    }));
    add("buffer deleted", [](ExecutionPlan &plan, Dice &dice) {
        auto &buffers = dice.of(plan.devices).buffers.edit();
        if (buffers.empty())
            return false;
        buffers.pop_back();
        return true;
    });
    add("buffers swapped",
        [](ExecutionPlan &plan, Dice &dice) { return swapTwo(dice.of(plan.devices).buffers.edit(), dice); });
    return list;
}

} // namespace planloom
