#include "engine/interop/machines/slurm_topology.h"

#include "engine/base/place.h"
#include "engine/base/text.h"
#include "engine/hardware/cluster.h"
#include "engine/interop/configs/tree_text.h"
#include "engine/interop/machines/host_names.h"
#include "engine/interop/machines/number_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace planloom {

namespace {

constexpr std::size_t kMostSwitches = 16384;

/// A switch, or a block, as a file has it.
struct SaidSwitch {
    std::string name{};
    std::string hosts{}; ///< An expression; may be empty.
    std::string switches{};
    std::int32_t line = 0;
};

Error placed(Error error, std::int32_t line)
{
    error.where = "line:" + std::to_string(line) + ":1";
    return error;
}

/// "SwitchName=s1 Nodes=node[1-4]": words behind one another, names in letters of either case.
Result<std::map<std::string, std::string>> wordsOf(std::string_view line, std::int32_t number)
{
    std::map<std::string, std::string> words;
    for (std::size_t at = 0; at < line.size();) {
        if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
            ++at;
            continue;
        }
        const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
        const std::string_view word = line.substr(at, end - at);
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size())
            return atLine(number,
                "\"" + std::string(word.substr(0, 40)) + "\" is no setting: NAME=VALUE was expected",
                "the line may have been cut off");
        const std::string key = lowerCase(word.substr(0, equals));
        if (!words.emplace(key, std::string(word.substr(equals + 1))).second)
            return atLine(number, "\"" + key.substr(0, 40) + "\" stands twice in the line");
        at = end;
    }
    return words;
}

class TreeReader
{
public:
    Result<void> add(SaidSwitch said)
    {
        if (said.name.empty())
            return atLine(said.line, "a switch has no name");
        if (m_switches.size() >= kMostSwitches)
            return placed({ErrorCode::ResourceLimit,
                              "there are more than " + std::to_string(kMostSwitches) + " switches", {}, {}},
                said.line);
        if (const auto [known, isNew] = m_byName.emplace(said.name, m_switches.size()); !isNew)
            return atLine(said.line,
                "the switch " + said.name.substr(0, 40) + " stands twice, first in line "
                    + std::to_string(m_switches[known->second].line));
        if (said.hosts.empty() == said.switches.empty())
            return atLine(said.line,
                "the switch " + said.name.substr(0, 40)
                    + (said.hosts.empty() ? " has neither hosts nor switches below it"
                                          : " has hosts and switches below it"));
        m_switches.push_back(std::move(said));
        return {};
    }

    Result<SwitchTree> finish(const char *leaf)
    {
        if (m_switches.empty())
            return atLine(1, "there is no switch and no block in the file");
        TRY_VOID(findChildren());
        const std::vector<std::size_t> roots = rootsOf();
        if (roots.empty())
            return atLine(
                m_switches.front().line, "every switch lies below another one: they go round in a circle");
        const bool areBlocks = std::string_view(leaf) == "block";
        if (roots.size() > 1 && !areBlocks)
            return atLine(m_switches[roots[1]].line,
                "the switches " + m_switches[roots[0]].name.substr(0, 40) + " and "
                    + m_switches[roots[1]].name.substr(0, 40) + " are joined by no other",
                "name a switch above both");
        for (const std::size_t root : roots)
            TRY_VOID(visit(root, 0));
        if (m_visited != m_switches.size())
            return atLine(m_switches[firstUnvisited()].line,
                "the switch " + m_switches[firstUnvisited()].name.substr(0, 40) + " lies below itself");
        if (areBlocks)
            m_sizes.insert(m_sizes.begin(), {static_cast<std::int32_t>(roots.size())});
        return treeOf(leaf);
    }

private:
    Result<void> findChildren()
    {
        m_children.resize(m_switches.size());
        m_parent.assign(m_switches.size(), std::nullopt);
        for (std::size_t s = 0; s < m_switches.size(); ++s) {
            const SaidSwitch &said = m_switches[s];
            if (said.switches.empty())
                continue;
            auto names = hostNames(said.switches);
            if (!names)
                return placed(std::move(names).error(), said.line);
            for (const std::string &name : *names) {
                const auto found = m_byName.find(name);
                if (found == m_byName.end())
                    return atLine(said.line,
                        "the switch " + name.substr(0, 40) + " below " + said.name.substr(0, 40)
                            + " is not in the file");
                if (m_parent[found->second])
                    return atLine(said.line,
                        "the switch " + name.substr(0, 40) + " lies below "
                            + m_switches[*m_parent[found->second]].name + " and below "
                            + said.name.substr(0, 40));
                m_parent[found->second] = s;
                m_children[s].push_back(found->second);
            }
        }
        return {};
    }

    std::vector<std::size_t> rootsOf() const
    {
        std::vector<std::size_t> roots;
        for (std::size_t s = 0; s < m_switches.size(); ++s)
            if (!m_parent[s])
                roots.push_back(s);
        return roots;
    }

    std::size_t firstUnvisited() const
    {
        std::size_t s = 0;
        while (m_seen.count(s) > 0)
            ++s;
        return s;
    }

    /// Each switch has one parent, so that what is reached from a root has no circle.
    Result<void> visit(std::size_t index, std::size_t depth)
    {
        if (depth > kMostOuterLevels)
            return placed(
                {ErrorCode::NotSupported,
                    "there are more than " + std::to_string(kMostOuterLevels) + " levels of switches", {},
                    {}},
                m_switches[index].line);
        ++m_visited;
        m_seen.insert(index);
        const SaidSwitch &said = m_switches[index];
        if (m_sizes.size() <= depth)
            m_sizes.resize(depth + 1);
        if (!said.hosts.empty()) {
            auto names = hostNames(said.hosts);
            if (!names)
                return placed(std::move(names).error(), said.line);
            if (m_leafDepth.value_or(depth) != depth)
                return placed({ErrorCode::NotSupported,
                                  "the hosts of " + said.name.substr(0, 40)
                                      + " lie below more or fewer switches than others",
                                  {}, {}},
                    said.line);
            m_leafDepth = depth;
            for (const std::string &name : *names) {
                if (!m_hosts.insert(name).second)
                    return atLine(said.line, "the host " + name.substr(0, 40) + " stands twice");
                if (m_tree.hosts.size() >= kMostHosts)
                    return placed({ErrorCode::ResourceLimit,
                                      "there are more than " + std::to_string(kMostHosts) + " hosts", {}, {}},
                        said.line);
                m_tree.hosts.push_back(name);
            }
            m_sizes[depth].push_back(static_cast<std::int32_t>(names->size()));
            return {};
        }
        m_sizes[depth].push_back(static_cast<std::int32_t>(m_children[index].size()));
        for (const std::size_t child : m_children[index])
            TRY_VOID(visit(child, depth + 1));
        return {};
    }

    /// Levels from the inside out; the outermost group has all, and joins nothing.
    SwitchTree treeOf(const char *leaf)
    {
        for (std::size_t depth = m_sizes.size(); depth-- > 1;) {
            const std::vector<std::int32_t> &sizes = m_sizes[depth];
            std::map<std::int32_t, std::int32_t> times;
            for (const std::int32_t size : sizes)
                ++times[size];
            const auto most = std::max_element(
                times.begin(), times.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
            const std::size_t level = m_tree.levels.size();
            m_tree.levels.push_back({level == 0 ? leaf : "level-" + std::to_string(level + 1) + " switch",
                most->first, times.size() == 1});
        }
        return std::move(m_tree);
    }

    std::vector<SaidSwitch> m_switches{};
    std::map<std::string, std::size_t> m_byName{};
    std::vector<std::vector<std::size_t>> m_children{};
    std::vector<std::optional<std::size_t>> m_parent{};
    std::vector<std::vector<std::int32_t>> m_sizes{}; ///< By depth: what each switch has below it.
    std::optional<std::size_t> m_leafDepth{};
    std::set<std::string> m_hosts{};
    std::set<std::size_t> m_seen{};
    std::size_t m_visited = 0;
    SwitchTree m_tree{};
};

std::string textAt(const std::map<std::string, std::string> &words, const char *key)
{
    const auto found = words.find(key);
    return found == words.end() ? std::string{} : found->second;
}

/// One topology of topology.yaml.
struct YamlTopology {
    bool isDefault = false;
    bool isBlocks = false;
    std::map<std::string, SaidSwitch> switches{}; ///< By their keys, which have their number.
};

/// The number of a list's entry in a key: "12" of "t.12.tree". Entries stand in the order of their numbers.
std::string ordered(const std::string &number)
{
    return std::string(number.size() < 8 ? 8 - number.size() : 0, '0') + number;
}

std::string joinedValues(const Setting &setting)
{
    std::string text;
    for (const std::string &value : setting.values)
        text += (text.empty() ? "" : ",") + value;
    return text;
}

} // namespace

Result<SwitchTree> readTopologyConf(std::string_view text)
{
    TreeReader reader;
    std::int32_t number = 0;
    std::optional<bool> areBlocks;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        ++number;
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty())
            continue;
        TRY(const auto words, wordsOf(line, number));
        const std::string block = textAt(words, "blockname");
        const std::string name = textAt(words, "switchname");
        if (block.empty() && name.empty()) {
            if (words.count("blocksizes") > 0)
                continue;
            return atLine(number, "the line names neither a switch nor a block",
                "SwitchName=... Switches=... or Nodes=..., or BlockName=... Nodes=...");
        }
        if (areBlocks.value_or(!block.empty()) != !block.empty() || (!block.empty() && !name.empty()))
            return atLine(number, "switches and blocks stand in one file");
        areBlocks = !block.empty();
        TRY_VOID(reader.add(
            {block.empty() ? name : block, textAt(words, "nodes"), textAt(words, "switches"), number}));
    }
    return reader.finish(areBlocks.value_or(false) ? "block" : "switch");
}

Result<SwitchTree> readTopologyYaml(std::string_view text)
{
    // A list becomes the value of a key, so that the file is a map as all that `readTree` reads.
    std::string map = "t:\n" + std::string(text);
    if (const std::size_t dashes = map.find("\n---"); dashes != std::string::npos && dashes < 2000)
        map.replace(dashes + 1, 3, "#--");
    const auto tree = readTree(map);
    if (!tree) {
        Error error = tree.error();
        if (const Place place = placeOf(error); std::holds_alternative<TextPlace>(place))
            error.where = toString(TextPlace{
                std::max(1, std::get<TextPlace>(place).line - 1), std::get<TextPlace>(place).column});
        return error;
    }
    std::map<std::string, YamlTopology> topologies;
    for (const Setting &setting : tree->settings) {
        std::vector<std::string> keys;
        for (std::size_t begin = 0; begin <= setting.key.size();) {
            const std::size_t end = std::min(setting.key.find('.', begin), setting.key.size());
            keys.push_back(setting.key.substr(begin, end - begin));
            begin = end + 1;
        }
        if (keys.size() < 3 || keys[0] != "t")
            continue;
        YamlTopology &topology = topologies[ordered(keys[1])];
        if (keys[2] == "cluster_default")
            topology.isDefault = setting.values == std::vector<std::string>{"true"};
        if (keys.size() < 6 || (keys[2] != "tree" && keys[2] != "block"))
            continue;
        topology.isBlocks = keys[2] == "block";
        SaidSwitch &said = topology.switches[ordered(keys[4])];
        if (said.line == 0)
            said.line = setting.line - 1;
        if (keys[5] == "switch" || keys[5] == "block")
            said.name = joinedValues(setting);
        else if (keys[5] == "children")
            said.switches = joinedValues(setting);
        else if (keys[5] == "nodes")
            said.hosts = joinedValues(setting);
    }
    const YamlTopology *chosen = nullptr;
    for (const auto &[number, topology] : topologies)
        if (!topology.switches.empty() && (chosen == nullptr || (topology.isDefault && !chosen->isDefault)))
            chosen = &topology;
    if (!chosen)
        return atLine(1, "there is no topology with a tree or with blocks in the file");
    TreeReader reader;
    for (const auto &[number, said] : chosen->switches)
        TRY_VOID(reader.add(said));
    return reader.finish(chosen->isBlocks ? "block" : "switch");
}

} // namespace planloom
