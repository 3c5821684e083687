#include "engine/simulate/link_traffic.h"

#include <algorithm>

namespace planloom {

namespace {

/// Adds up what every link carries outwards.
class LinkCounter
{
public:
    LinkCounter(const ExecutionPlan &plan, const Cluster &cluster)
        : m_plan(plan)
        , m_links(cluster.links)
    {
        add("device", 1);
        add("card", m_links.devicesPerNode / m_links.portsPerNode());
        add("node", m_links.devicesPerNode);
        for (std::size_t l = 0; l < m_links.outer.size(); ++l)
            add(m_links.outer[l].name, m_links.devicesPerNode * nodesOf(m_links, l));
    }

    void count(const Traffic &row, std::int32_t unit)
    {
        const ScaleUnits &units = m_plan.units;
        const std::int32_t from = units.deviceOf(unit, row.from).index;
        if (row.to.valid())
            return carry(from, units.deviceOf(unit, row.to).index, row.bytes.count);
        if (row.group < 0) // among what one device stands for in all units
            return carry(from, units.deviceOf((unit + 1) % units.count, row.from).index, row.bytes.count);
        const auto &members = m_plan.groups[static_cast<std::size_t>(row.group)];
        const auto own =
            static_cast<std::size_t>(std::find(members.begin(), members.end(), row.from) - members.begin());
        const auto others = row.kind == InstructionKind::AllToAll ? members.size() - 1 : std::size_t{1};
        for (std::size_t i = 1; i <= others && members.size() > 1; ++i)
            carry(from, units.deviceOf(unit, members[(own + i) % members.size()]).index,
                row.bytes.count / static_cast<std::int64_t>(others));
    }

    std::vector<LevelTraffic> most() &&
    {
        std::vector<LevelTraffic> levels;
        for (Level &level : m_levels) {
            const auto found = std::max_element(level.bytes.begin(), level.bytes.end());
            levels.push_back({std::move(level.name)});
            if (found != level.bytes.end()) {
                levels.back().most = Bytes{*found};
                levels.back().index = static_cast<std::int32_t>(found - level.bytes.begin());
            }
        }
        return levels;
    }

private:
    struct Level {
        std::string name{};
        std::int32_t devices = 1; ///< That share one of its links.
        std::vector<std::int64_t> bytes{}; ///< By link.
    };

    void add(const std::string &name, std::int32_t devices) { m_levels.push_back({name, devices, {}}); }

    void carry(std::int32_t from, std::int32_t to, std::int64_t bytes)
    {
        const bool leavesNode = from / m_links.devicesPerNode != to / m_links.devicesPerNode;
        for (std::size_t l = 0; l < m_levels.size(); ++l) {
            Level &level = m_levels[l];
            const bool crosses = l == 0 ? from != to && !leavesNode
                : l == 1                ? leavesNode
                                        : from / level.devices != to / level.devices;
            if (!crosses)
                continue;
            const auto link = static_cast<std::size_t>(from / level.devices);
            if (level.bytes.size() <= link)
                level.bytes.resize(link + 1, 0);
            level.bytes[link] += bytes;
        }
    }

    const ExecutionPlan &m_plan;
    const Interconnect &m_links;
    std::vector<Level> m_levels{};
};

} // namespace

std::vector<LevelTraffic> levelTraffic(
    const std::vector<Traffic> &traffic, const ExecutionPlan &plan, const Cluster &cluster)
{
    LinkCounter counter(plan, cluster);
    for (std::int32_t unit = 0; unit < plan.units.count; ++unit)
        for (const Traffic &row : traffic)
            counter.count(row, unit);
    return std::move(counter).most();
}

std::optional<Bytes> mostCarried(
    Bytes mostSent, const std::vector<LevelTraffic> &levels, std::string_view links)
{
    if (links.empty())
        return mostSent;
    std::optional<Bytes> most;
    for (const LevelTraffic &level : levels)
        if (links == "link" || links == level.links)
            most = std::max(most.value_or(Bytes{}), level.most);
    return most;
}

} // namespace planloom
