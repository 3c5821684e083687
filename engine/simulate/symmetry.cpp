#include "engine/simulate/symmetry.h"

#include "engine/lowering/instruction_cost.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// 128 bits, so that two programs that differ do not meet by accident.
struct Colour {
    std::uint64_t a = 0x243f6a8885a308d3; // Digits of pi.
    std::uint64_t b = 0x13198a2e03707344;
    friend auto operator<=>(const Colour &, const Colour &) = default;

    void add(std::uint64_t value)
    {
        a = (a ^ value) * 0x9e3779b97f4a7c15;
        a ^= a >> 29;
        b = ((b << 23) | (b >> 41)) + mixed(value ^ a);
    }
    void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
    void add(std::int32_t value) { add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))); }
    void add(const Colour &other)
    {
        add(other.a);
        add(other.b);
    }
    void add(const BufferList &values)
    {
        add(static_cast<std::uint64_t>(values.size()));
        for (const std::int32_t value : values)
            add(value);
    }

    static std::uint64_t mixed(std::uint64_t x) // splitmix64's finisher.
    {
        x += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }
};

Error wrong(std::int32_t device, std::int32_t segment, std::int32_t instruction, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), {}, placeOf(device, segment, instruction)};
}

bool inRange(std::int32_t index, std::size_t size)
{
    return index >= 0 && static_cast<std::size_t>(index) < size;
}

bool buffersInRange(const BufferList &buffers, std::size_t count, bool absentAllowed)
{
    return std::all_of(buffers.begin(), buffers.end(),
        [&](std::int32_t buffer) { return inRange(buffer, count) || (absentAllowed && buffer == -1); });
}

/// Looks at one device's program once: checks it, finds its channels, and colours it without names.
class ProgramReader
{
public:
    ProgramReader(const ExecutionPlan &plan, const Cluster &cluster, Symmetry &symmetry)
        : m_plan(plan)
        , m_cluster(cluster)
        , m_symmetry(symmetry)
        , m_slotOfGroup(plan.groups.size(), -1)
    {
    }

    Result<Colour> read(std::int32_t device)
    {
        const DeviceProgram &program = m_plan.devices[static_cast<std::size_t>(device)];
        m_slotOfTag.clear();
        m_slotOfUnits = -1;
        Colour colour;
        colour.add(m_cluster.classOf(DeviceId{device}));
        TRY_VOID(readBuffers(device, program, colour));
        std::vector<std::vector<std::int32_t>> hiddenOf;
        for (std::size_t s = 0; s < program.segments.size(); ++s) {
            const Segment &segment = program.segments[s];
            colour.add(static_cast<std::int32_t>(segment.kind));
            const std::vector<std::int32_t> hidden = hiddenStores(segment);
            if (!hidden.empty())
                m_symmetry.hidesStores[static_cast<std::size_t>(device)] = true;
            std::size_t nextHidden = 0;
            std::uint64_t deaths = 0; // Of one instruction and the stores hidden behind it, in any order.
            for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
                const Instruction &instruction = segment.instructions[i];
                TRY_VOID(check(device, static_cast<std::int32_t>(s), static_cast<std::int32_t>(i), program,
                    instruction));
                if (nextHidden < hidden.size() && static_cast<std::size_t>(hidden[nextHidden]) == i) {
                    ++nextHidden;
                } else {
                    colour.add(deaths);
                    deaths = 0;
                    TRY_VOID(colourInstruction(device, static_cast<std::int32_t>(s),
                        static_cast<std::int32_t>(i), instruction, colour));
                }
                for (const std::int32_t buffer : instruction.deaths)
                    deaths += Colour::mixed(static_cast<std::uint64_t>(buffer));
            }
            colour.add(deaths);
            colour.add(static_cast<std::uint64_t>(segment.instructions.size() - hidden.size()));
            hiddenOf.push_back(hidden);
        }
        for (const ScheduleEntry &entry : program.schedule) {
            if (!inRange(entry.segment, program.segments.size()) || entry.microBatch < 0
                || entry.microBatch >= m_plan.microBatches)
                return Error{ErrorCode::InvalidInput,
                    "the schedule names a segment or micro-batch that does not exist", {},
                    "device:" + std::to_string(device)};
            const auto all = program.segments[static_cast<std::size_t>(entry.segment)].instructions.size();
            if (entry.begin < 0 || entry.end < -1 || static_cast<std::size_t>(entry.begin) > all
                || (entry.end >= 0 && (entry.end < entry.begin || static_cast<std::size_t>(entry.end) > all)))
                return Error{ErrorCode::InvalidInput, "the schedule names instructions that do not exist", {},
                    "device:" + std::to_string(device)};
            colour.add(entry.segment);
            colour.add(entry.microBatch);
            if (entry.begin > 0 || entry.end >= 0) {
                // In instructions that are not hidden, so that a store makes no difference.
                const auto &hidden = hiddenOf[static_cast<std::size_t>(entry.segment)];
                const auto [begin, end] = indicesOf(program, entry);
                for (const std::size_t index : {begin, end})
                    colour.add(static_cast<std::uint64_t>(index)
                        - static_cast<std::uint64_t>(
                            std::lower_bound(hidden.begin(), hidden.end(), static_cast<std::int32_t>(index))
                            - hidden.begin()));
            }
        }
        for (const std::int32_t channel : m_symmetry.slots[static_cast<std::size_t>(device)]) {
            const std::int32_t group = m_symmetry.channels[static_cast<std::size_t>(channel)].group;
            if (group >= 0)
                m_slotOfGroup[static_cast<std::size_t>(group)] = -1;
        }
        return colour;
    }

private:
    Result<void> readBuffers(std::int32_t device, const DeviceProgram &program, Colour &colour)
    {
        const Graph &graph = *m_plan.graph;
        colour.add(static_cast<std::uint64_t>(program.buffers.size()));
        for (const BufferInfo &buffer : program.buffers) {
            if (!inRange(buffer.tensor.index, graph.tensors.size()))
                return Error{ErrorCode::InvalidInput, "a buffer is of a tensor that does not exist", {},
                    "device:" + std::to_string(device)};
            colour.add(static_cast<std::int32_t>(buffer.dataType) * 64
                + static_cast<std::int32_t>(buffer.memory) * 8 + (buffer.perMicroBatch ? 4 : 0)
                + (buffer.persistent ? 2 : 0) + (buffer.valuePart.index != 0 ? 1 : 0)
                + (buffer.place == MemoryPlace::Host ? 1 << 20 : 0));
            for (const Range &range : buffer.index.ranges)
                colour.add(range.size());
        }
        return {};
    }

    Result<void> check(std::int32_t device, std::int32_t s, std::int32_t i, const DeviceProgram &program,
        const Instruction &instruction) const
    {
        const std::size_t buffers = program.buffers.size();
        if (!buffersInRange(instruction.inputs, buffers, true)
            || !buffersInRange(instruction.outputs, buffers, true)
            || !buffersInRange(instruction.deaths, buffers, false))
            return wrong(device, s, i, "the instruction names a buffer that does not exist");
        if (instruction.kind == InstructionKind::Kernel
            && !inRange(instruction.op.index, m_plan.graph->operators.size()))
            return wrong(device, s, i, "the kernel runs an operator that does not exist");
        return {};
    }

    Result<void> colourInstruction(
        std::int32_t device, std::int32_t s, std::int32_t i, const Instruction &instruction, Colour &colour)
    {
        if (instruction.kind == InstructionKind::Kernel) {
            colour.add(instruction.op.index);
            // Parts of a causal attention take longer the more they see.
            colour.add(std::bit_cast<std::uint64_t>(seenKeysOf(m_plan, instruction)));
        }
        colour.add(static_cast<std::int32_t>(instruction.kind) * 128 + (instruction.waits ? 64 : 0)
            + (instruction.overlaps ? 32 : 0) + (instruction.acrossUnits ? 16 : 0)
            + static_cast<std::int32_t>(queueOf(instruction)) * 2 + (instruction.joined ? 1 : 0)
            + static_cast<std::int32_t>(instruction.combination) * 4096);
        colour.add(instruction.inputs);
        colour.add(instruction.outputs);
        if (!isCommunication(instruction.kind))
            return {};
        const bool paired =
            instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
        TRY(const std::int32_t slot,
            paired                        ? tagSlot(device, s, i, instruction)
                : instruction.acrossUnits ? unitSlot(device)
                                          : groupSlot(device, s, i, instruction));
        colour.add(slot);
        return {};
    }

    Result<std::int32_t> groupSlot(
        std::int32_t device, std::int32_t s, std::int32_t i, const Instruction &instruction)
    {
        if (!inRange(instruction.group, m_plan.groups.size()))
            return wrong(device, s, i, "the collective is of a group that does not exist");
        const auto group = static_cast<std::size_t>(instruction.group);
        if (m_slotOfGroup[group] >= 0)
            return m_slotOfGroup[group];
        Channel &channel = m_symmetry.channels[group]; // Groups are the first channels, in their order.
        const auto self = std::find_if(channel.members.begin(), channel.members.end(),
            [&](const Channel::Member &member) { return member.device == device; });
        if (self == channel.members.end())
            return wrong(device, s, i, "the device is not in the group of its collective");
        auto &slots = m_symmetry.slots[static_cast<std::size_t>(device)];
        self->slot = static_cast<std::int32_t>(slots.size());
        slots.push_back(instruction.group);
        m_slotOfGroup[group] = self->slot;
        return self->slot;
    }

    /// All of a device's meetings with itself in other units are at one channel.
    Result<std::int32_t> unitSlot(std::int32_t device)
    {
        if (m_slotOfUnits >= 0)
            return m_slotOfUnits;
        auto &slots = m_symmetry.slots[static_cast<std::size_t>(device)];
        m_slotOfUnits = static_cast<std::int32_t>(slots.size());
        slots.push_back(static_cast<std::int32_t>(m_symmetry.channels.size()));
        Channel channel{.shape = shapeAcrossUnits(m_cluster, DeviceId{device})};
        channel.members.push_back({device, m_slotOfUnits});
        m_symmetry.channels.push_back(std::move(channel));
        return m_slotOfUnits;
    }

    Result<std::int32_t> tagSlot(
        std::int32_t device, std::int32_t s, std::int32_t i, const Instruction &instruction)
    {
        if (instruction.tag < 0 || !inRange(instruction.peer.index, m_plan.devices.size()))
            return wrong(device, s, i, "the send or receive has no tag or no peer");
        const bool sends = instruction.kind == InstructionKind::Send;
        if (!m_slotOfTag.emplace(instruction.tag, 0).second)
            return wrong(
                device, s, i, "the tag " + std::to_string(instruction.tag) + " is used twice on one device");
        const auto [found, isNew] =
            m_channelOfTag.emplace(instruction.tag, static_cast<std::int32_t>(m_symmetry.channels.size()));
        if (isNew) {
            // Sender first, receiver second; whoever is missing never comes.
            m_symmetry.channels.push_back(
                {-1, instruction.tag, groupShape(m_cluster, {DeviceId{device}, instruction.peer}),
                    {{sends ? device : instruction.peer.index, -1},
                        {sends ? instruction.peer.index : device, -1}}});
        }
        Channel &channel = m_symmetry.channels[static_cast<std::size_t>(found->second)];
        Channel::Member &self = channel.members[sends ? 0 : 1];
        Channel::Member &peer = channel.members[sends ? 1 : 0];
        if (self.device != device || self.slot >= 0 || peer.device != instruction.peer.index)
            return wrong(device, s, i,
                "the tag " + std::to_string(instruction.tag) + " does not join one sender and one receiver");
        auto &slots = m_symmetry.slots[static_cast<std::size_t>(device)];
        self.slot = static_cast<std::int32_t>(slots.size());
        slots.push_back(found->second);
        return self.slot;
    }

    const ExecutionPlan &m_plan;
    const Cluster &m_cluster;
    Symmetry &m_symmetry;
    std::vector<std::int32_t> m_slotOfGroup;
    std::unordered_map<std::int32_t, std::int32_t> m_slotOfTag{};
    std::int32_t m_slotOfUnits = -1; ///< Of the device at hand.
    std::unordered_map<std::int32_t, std::int32_t> m_channelOfTag{};
};

Result<std::vector<Channel>> channelsOfGroups(const ExecutionPlan &plan, const Cluster &cluster)
{
    std::vector<Channel> channels;
    channels.reserve(plan.groups.size());
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
        Channel channel{.group = static_cast<std::int32_t>(g)};
        std::vector<std::int32_t> devices;
        for (const DeviceId member : plan.groups[g]) {
            if (!inRange(member.index, plan.devices.size()))
                return Error{ErrorCode::InvalidInput, "the group has a device that does not exist", {},
                    "group:" + std::to_string(g)};
            channel.members.push_back({member.index, -1});
            devices.push_back(member.index);
        }
        std::sort(devices.begin(), devices.end());
        if (std::adjacent_find(devices.begin(), devices.end()) != devices.end())
            return Error{
                ErrorCode::InvalidInput, "the group has a device twice", {}, "group:" + std::to_string(g)};
        channel.shape = groupShape(cluster, plan.groups[g]);
        channels.push_back(std::move(channel));
    }
    return channels;
}

/// Numbers colours in the order of their first appearance.
std::vector<std::int32_t> numbered(const std::vector<Colour> &colours, std::vector<std::int32_t> &firsts)
{
    std::map<Colour, std::int32_t> numbers;
    std::vector<std::int32_t> result;
    result.reserve(colours.size());
    firsts.clear();
    for (std::size_t i = 0; i < colours.size(); ++i) {
        const auto [found, isNew] = numbers.emplace(colours[i], static_cast<std::int32_t>(numbers.size()));
        if (isNew)
            firsts.push_back(static_cast<std::int32_t>(i));
        result.push_back(found->second);
    }
    return result;
}

std::vector<Colour> channelColours(const Symmetry &symmetry)
{
    std::vector<Colour> colours;
    colours.reserve(symmetry.channels.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> ends;
    for (const Channel &channel : symmetry.channels) {
        ends.clear();
        for (const Channel::Member &member : channel.members)
            ends.emplace_back(symmetry.deviceClass[static_cast<std::size_t>(member.device)], member.slot);
        if (channel.group >= 0) // Who is where in a communicator does not matter for time.
            std::sort(ends.begin(), ends.end());
        Colour colour;
        colour.add(channel.group >= 0 ? 1 : channel.tag >= 0 ? 0 : 2);
        colour.add(channel.shape.ranks);
        colour.add(channel.shape.nodes);
        for (const std::int32_t groups : channel.shape.outer)
            colour.add(groups);
        colour.add(static_cast<std::uint64_t>(channel.shape.classes));
        colour.add(static_cast<std::uint64_t>(ends.size()));
        for (const auto &[device, slot] : ends) {
            colour.add(device);
            colour.add(slot);
        }
        colours.push_back(colour);
    }
    return colours;
}

std::vector<Colour> linkColours(const SharedLevel &level, const std::vector<std::int32_t> &deviceClass)
{
    std::vector<Colour> colours;
    std::vector<std::int32_t> users;
    for (const std::vector<std::int32_t> &devices : level.users) {
        users.clear();
        for (const std::int32_t device : devices)
            users.push_back(deviceClass[static_cast<std::size_t>(device)]);
        std::sort(users.begin(), users.end());
        Colour colour;
        colour.add(static_cast<std::uint64_t>(level.level));
        for (const std::int32_t user : users)
            colour.add(user);
        colours.push_back(colour);
    }
    return colours;
}

} // namespace

std::vector<std::int32_t> hiddenStores(const Segment &segment)
{
    const auto isCompute = [&](std::int32_t i) {
        return queueOf(segment.instructions[static_cast<std::size_t>(i)]) == QueueKind::Compute;
    };
    std::vector<std::int32_t> hidden;
    std::int32_t before = -1; // The last instruction that is not hidden.
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(segment.instructions.size()); ++i) {
        const Instruction &instruction = segment.instructions[static_cast<std::size_t>(i)];
        bool hides = instruction.kind == InstructionKind::Store && before >= 0 && isCompute(before);
        for (const std::int32_t buffer : instruction.inputs) { // Each must have been computed just here.
            if (!hides)
                break;
            std::int32_t writer = before;
            const auto writes = [&](std::int32_t index) {
                const auto &outputs = segment.instructions[static_cast<std::size_t>(index)].outputs;
                return std::find(outputs.begin(), outputs.end(), buffer) != outputs.end();
            };
            while (writer >= 0 && !writes(writer))
                --writer;
            hides = writer >= 0 && isCompute(writer);
        }
        if (hides)
            hidden.push_back(i);
        else
            before = i;
    }
    return hidden;
}

std::string placeOf(std::int32_t device, std::int32_t segment, std::int32_t instruction)
{
    return "device:" + std::to_string(device) + "/segment:" + std::to_string(segment)
        + "/instruction:" + std::to_string(instruction);
}

Result<Symmetry> findSymmetry(const ExecutionPlan &plan, const Cluster &cluster, bool merge)
{
    Symmetry symmetry;
    TRY(symmetry.channels, channelsOfGroups(plan, cluster));
    symmetry.slots.resize(plan.devices.size());
    symmetry.hidesStores.resize(plan.devices.size(), false);
    ProgramReader reader(plan, cluster, symmetry);
    std::vector<Colour> colours;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        TRY(Colour colour, reader.read(static_cast<std::int32_t>(d)));
        if (!merge)
            colour.add(static_cast<std::uint64_t>(d));
        colours.push_back(colour);
    }
    symmetry.deviceClass = numbered(colours, symmetry.representative);
    symmetry.shared = sharedLevels(cluster, plan.devices.size());

    std::vector<std::int32_t> firsts;
    for (;;) {
        const std::size_t before = symmetry.representative.size();
        const std::vector<Colour> channels = channelColours(symmetry);
        std::vector<std::vector<Colour>> links;
        for (const SharedLevel &level : symmetry.shared)
            links.push_back(linkColours(level, symmetry.deviceClass));
        for (std::size_t d = 0; d < colours.size(); ++d) {
            Colour colour;
            colour.add(symmetry.deviceClass[d]);
            for (const std::int32_t channel : symmetry.slots[d])
                colour.add(channels[static_cast<std::size_t>(channel)]);
            for (std::size_t level = 0; level < links.size(); ++level)
                colour.add(links[level][static_cast<std::size_t>(symmetry.shared[level].linkOf[d])]);
            colours[d] = colour;
        }
        symmetry.deviceClass = numbered(colours, symmetry.representative);
        if (symmetry.representative.size() == before)
            break;
    }
    symmetry.channelClass = numbered(channelColours(symmetry), firsts);
    symmetry.channelClassCount = static_cast<std::int32_t>(firsts.size());
    for (const SharedLevel &level : symmetry.shared)
        symmetry.linkClass.push_back(numbered(linkColours(level, symmetry.deviceClass), firsts));
    return symmetry;
}

} // namespace planloom
