#include "engine/simulate/symmetry.h"

#include "engine/base/in_parallel.h"
#include "engine/simulate/program_reading.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// Joins what devices use to channels, device by device.
class ChannelFinder
{
public:
    ChannelFinder(const Cluster &cluster, Symmetry &symmetry)
        : m_cluster(cluster)
        , m_symmetry(symmetry)
    {
    }

    Result<void> join(std::int32_t device, const std::vector<ChannelUse> &uses)
    {
        auto &slots = m_symmetry.slots[static_cast<std::size_t>(device)];
        slots.reserve(uses.size());
        for (const ChannelUse &use : uses) {
            TRY(const std::int32_t channel,
                use.tag >= 0 ? ofPair(device, use, static_cast<std::int32_t>(slots.size()))
                    : use.group >= 0
                    ? ofGroup(device, use, static_cast<std::int32_t>(slots.size()))
                    : Result<std::int32_t>(acrossUnits(device, static_cast<std::int32_t>(slots.size()))));
            slots.push_back(channel);
        }
        return {};
    }

private:
    Result<std::int32_t> ofGroup(std::int32_t device, const ChannelUse &use, std::int32_t slot)
    {
        // Groups are the first channels, in their order.
        Channel &channel = m_symmetry.channels[static_cast<std::size_t>(use.group)];
        const auto self = std::find_if(channel.members.begin(), channel.members.end(),
            [&](const Channel::Member &member) { return member.device == device; });
        if (self == channel.members.end())
            return wrongInstruction(
                device, use.segment, use.instruction, "the device is not in the group of its collective");
        self->slot = slot;
        return use.group;
    }

    /// All of a device's meetings with itself in other units are at one channel.
    std::int32_t acrossUnits(std::int32_t device, std::int32_t slot)
    {
        Channel channel{.shape = shapeAcrossUnits(m_cluster, DeviceId{device})};
        channel.members.push_back({device, slot});
        m_symmetry.channels.push_back(std::move(channel));
        return static_cast<std::int32_t>(m_symmetry.channels.size()) - 1;
    }

    Result<std::int32_t> ofPair(std::int32_t device, const ChannelUse &use, std::int32_t slot)
    {
        const auto [found, isNew] =
            m_channelOfTag.emplace(use.tag, static_cast<std::int32_t>(m_symmetry.channels.size()));
        if (isNew) {
            // Sender first, receiver second; whoever is missing never comes.
            m_symmetry.channels.push_back(
                {-1, use.tag, groupShape(m_cluster, {DeviceId{device}, DeviceId{use.peer}}),
                    {{use.sends ? device : use.peer, -1}, {use.sends ? use.peer : device, -1}}});
        }
        Channel &channel = m_symmetry.channels[static_cast<std::size_t>(found->second)];
        Channel::Member &self = channel.members[use.sends ? 0 : 1];
        const Channel::Member &peer = channel.members[use.sends ? 1 : 0];
        if (self.device != device || self.slot >= 0 || peer.device != use.peer)
            return wrongInstruction(device, use.segment, use.instruction,
                "the tag " + std::to_string(use.tag) + " does not join one sender and one receiver");
        self.slot = slot;
        return found->second;
    }

    const Cluster &m_cluster;
    Symmetry &m_symmetry;
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
            if (!isIndexOf(member.index, plan.devices.size()))
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

/// Reads the programs of all devices that are not known yet.
Result<void> readPrograms(const ExecutionPlan &plan, const Cluster &cluster, ProgramReadings &readings)
{
    readings.resize(plan.devices.size());
    std::vector<Result<void>> failed(plan.devices.size(), Result<void>{});
    constexpr std::size_t kFewDevices = 8; // not worth another thread
    inParallel(readings.size(), kFewDevices, [&](std::size_t begin, std::size_t end) {
        for (std::size_t d = begin; d < end; ++d) {
            if (readings[d])
                continue;
            auto reading = readProgram(plan, cluster, static_cast<std::int32_t>(d));
            if (reading)
                readings[d] = std::make_shared<const ProgramReading>(*std::move(reading));
            else
                failed[d] = std::move(reading).error();
        }
    });
    for (Result<void> &each : failed)
        TRY_VOID(std::move(each));
    return {};
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

Result<Symmetry> findSymmetry(
    const ExecutionPlan &plan, const Cluster &cluster, bool merge, ProgramReadings *known)
{
    Symmetry symmetry;
    TRY(symmetry.channels, channelsOfGroups(plan, cluster));
    symmetry.slots.resize(plan.devices.size());
    symmetry.hidesStores.resize(plan.devices.size(), false);
    ProgramReadings unknown;
    TRY_VOID(readPrograms(plan, cluster, known ? *known : unknown));
    const ProgramReadings &readings = known ? *known : unknown;
    ChannelFinder channels(cluster, symmetry);
    std::vector<Colour> colours;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const ProgramReading &reading = *readings[d];
        TRY(Colour colour, colourWithSchedule(plan, static_cast<std::int32_t>(d), reading));
        TRY_VOID(channels.join(static_cast<std::int32_t>(d), reading.uses));
        symmetry.hidesStores[d] = reading.hidesStores;
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
