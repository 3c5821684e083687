#include "engine/interop/machines/machine_cluster.h"

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/hardware/cluster_json.h"
#include "engine/interop/machines/host_links.h"
#include "engine/interop/machines/number_text.h"
#include "engine/interop/machines/slurm_topology.h"
#include "engine/interop/machines/system_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace planloom {

namespace {

constexpr std::size_t kMostFiles = 1024;
constexpr double kSwitchLatency = 1e-6; ///< Seconds, of a further switch on the way.

/// What all files said, by what they are.
struct Said {
    std::vector<HostTopology> links{}; ///< Of hosts whose links are known.
    std::vector<HostTopology> queries{};
    std::optional<SwitchTree> tree{};
    std::optional<SystemFigures> system{};
};

/// Hosts that are one node: one by itself, or those of an NVLink domain.
struct SaidNode {
    HostTopology host{};
    std::vector<std::string> profiles{}; ///< By device.
};

/// What a file holds may be shown on a terminal, which control characters would move.
std::string shown(std::string text)
{
    for (char &c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            c = '?';
    return text;
}

Error inFile(Error error, const std::string &name)
{
    error.message = shown(std::move(error.message));
    error.where = error.where.empty() ? name : name + ":" + error.where;
    return error;
}

template<typename T> Result<T> inFile(Result<T> result, const std::string &name)
{
    return result ? std::move(result) : Result<T>(inFile(std::move(result).error(), name));
}

std::string sentenceOf(const HostTopology &host)
{
    std::string text = counted(static_cast<std::int64_t>(host.devices.size()), "device");
    if (!host.nics.empty())
        text += ", " + counted(static_cast<std::int64_t>(host.nics.size()), "network card");
    return text;
}

std::string sentenceOf(const SwitchTree &tree)
{
    std::string text = counted(static_cast<std::int64_t>(tree.hosts.size()), "host");
    for (const SwitchLevel &level : tree.levels)
        text += ", " + std::to_string(level.size) + " in a " + level.name;
    return text;
}

Result<void> readOne(const NamedText &file, Said &said, std::vector<std::string> &read)
{
    const auto kind = machineFileOf(file.text);
    if (!kind)
        return Error{ErrorCode::InvalidInput, "this is no description of a machine that Planloom knows",
            "known: NCCL's topology (NCCL_TOPO_DUMP_FILE), what nvidia-smi topo -m and nvidia-smi -q print, "
            "Slurm's "
            "topology.conf and topology.yaml, system files of SimuMax and AIConfigurator",
            file.name};
    std::string sentence;
    const auto addHost = [&](Result<HostTopology> host, std::vector<HostTopology> &hosts) -> Result<void> {
        if (!host)
            return std::move(host).error();
        host->source += " (" + file.name + ")";
        for (HostDevice &device : host->devices)
            device.file = file.name;
        sentence = sentenceOf(*host);
        hosts.push_back(*std::move(host));
        return {};
    };
    switch (*kind) {
    case MachineFile::NcclTopology:
        TRY_VOID(inFile(addHost(readNcclTopology(file.text), said.links), file.name));
        break;
    case MachineFile::SmiTopology:
        TRY_VOID(inFile(addHost(readSmiTopology(file.text), said.links), file.name));
        break;
    case MachineFile::SmiQuery:
        TRY_VOID(inFile(addHost(readSmiQuery(file.text), said.queries), file.name));
        break;
    case MachineFile::SlurmConf:
    case MachineFile::SlurmYaml: {
        if (said.tree)
            return Error{
                ErrorCode::InvalidInput, "this is a second topology of switches", "name one", file.name};
        TRY(said.tree,
            inFile(
                *kind == MachineFile::SlurmConf ? readTopologyConf(file.text) : readTopologyYaml(file.text),
                file.name));
        sentence = sentenceOf(*said.tree);
        break;
    }
    case MachineFile::SimumaxSystem:
    case MachineFile::AiconfiguratorSystem: {
        if (said.system)
            return Error{
                ErrorCode::InvalidInput, "this is a second file of a whole machine", "name one", file.name};
        TRY(said.system,
            inFile(*kind == MachineFile::SimumaxSystem ? readSimumaxSystem(file.text)
                                                       : readAiconfiguratorSystem(file.text),
                file.name));
        said.system->source += " (" + file.name + ")";
        sentence = counted(said.system->devicesPerNode, "device") + " a node";
        break;
    }
    }
    read.push_back(file.name + ": " + nameOf(*kind) + ", " + sentence);
    return {};
}

/// A profile by its own name, or by words that name its device.
std::optional<std::string> profileNamed(const std::string &words)
{
    const std::vector<std::string> names = clusterNames();
    if (std::find(names.begin(), names.end(), words) != names.end())
        return words;
    return words.empty() ? std::nullopt : profileOfDevice(words);
}

Error unknownDevice(std::string what)
{
    what = shown(std::move(what));
    std::string known;
    for (const std::string &name : clusterNames())
        known += (known.empty() ? "" : ", ") + name;
    return {ErrorCode::NotFound, what, "--device names one, by its product or by a profile: " + known,
        "--device"};
}

Result<std::string> profileOf(const HostDevice &device, const std::string &source, const std::string &wanted)
{
    const std::string &words = wanted.empty() ? device.product : wanted;
    if (auto profile = profileNamed(words))
        return *std::move(profile);
    if (!wanted.empty())
        return unknownDevice("there is no profile of the device \"" + wanted.substr(0, 80) + "\"");
    const std::string name = source + ", " + device.name;
    if (!device.product.empty())
        return unknownDevice(
            name + ": there is no profile of the device \"" + device.product.substr(0, 80) + "\"");
    return unknownDevice(name
        + (device.architecture.empty()
                ? ": nothing says which device this is"
                : ": all that is known of the device is " + device.architecture + ", which several have"));
}

/// The query's products and domains at the devices of the host with links.
Result<HostTopology> joined(HostTopology host, const HostTopology &query)
{
    if (host.devices.size() != query.devices.size())
        return Error{ErrorCode::InvalidInput,
            host.source + " has " + counted(static_cast<std::int64_t>(host.devices.size()), "device") + ", "
                + query.source + " has " + std::to_string(query.devices.size()),
            "both must be of the same host", "--topology"};
    for (std::size_t d = 0; d < host.devices.size(); ++d) {
        HostDevice &device = host.devices[d];
        const HostDevice &asked = query.devices[d];
        device.product = asked.product;
        device.memory = asked.memory;
        device.domain = asked.domain;
        device.pcieBandwidth = device.pcieBandwidth > 0 ? device.pcieBandwidth : asked.pcieBandwidth;
    }
    return host;
}

/// Hosts with all that is known of them.
Result<std::vector<HostTopology>> hostsOf(Said &said)
{
    if (said.queries.empty())
        return std::move(said.links);
    if (said.links.empty())
        return std::move(said.queries);
    const std::size_t count = std::max(said.links.size(), said.queries.size());
    for (const auto *list : {&said.links, &said.queries})
        if (list->size() != count && list->size() != 1)
            return Error{ErrorCode::InvalidInput,
                "there are " + std::to_string(said.links.size()) + " files of links and "
                    + std::to_string(said.queries.size()) + " of nvidia-smi -q",
                "name one query for each host, or one for all", "--topology"};
    std::vector<HostTopology> hosts;
    for (std::size_t h = 0; h < count; ++h) {
        TRY(HostTopology host,
            joined(
                said.links[said.links.size() == 1 ? 0 : h], said.queries[said.queries.size() == 1 ? 0 : h]));
        hosts.push_back(std::move(host));
    }
    return hosts;
}

Result<std::string> domainOf(const HostTopology &host)
{
    for (const HostDevice &device : host.devices)
        if (device.domain != host.devices.front().domain)
            return atDevice(device, "the host's devices are of different NVLink domains");
    return host.devices.front().domain;
}

/// As many hosts as there are, of one that stands for all.
Result<std::int32_t> hostCount(const MachineRequest &request, const Said &said, std::size_t known)
{
    const auto inTree = said.tree ? static_cast<std::int32_t>(said.tree->hosts.size()) : 0;
    if (request.hosts > 0 && inTree > 0 && request.hosts != inTree)
        return Error{ErrorCode::InvalidInput,
            "the switches join " + std::to_string(inTree) + " hosts, and --hosts says "
                + std::to_string(request.hosts),
            "leave --hosts out", "--hosts"};
    const std::int32_t wanted = std::max(request.hosts, inTree);
    if (wanted > 0 && known > 1 && static_cast<std::size_t>(wanted) != known)
        return Error{ErrorCode::InvalidInput,
            "there are files of " + std::to_string(known) + " hosts, where " + std::to_string(wanted)
                + " were expected",
            "name one that stands for all, or one for each", "--topology"};
    return wanted > 0 ? wanted : static_cast<std::int32_t>(known);
}

/// All hosts of an NVLink domain as one: every device reaches the others through switches.
HostTopology united(const std::vector<HostTopology> &hosts)
{
    HostTopology all = hosts.front();
    if (hosts.size() == 1)
        return all;
    all.devices.clear();
    all.nics.clear();
    all.links.clear();
    bool hasLinks = true;
    for (const HostTopology &host : hosts) {
        const std::size_t count = host.devices.size();
        for (std::size_t d = 0; d < count; ++d) {
            HostDevice device = host.devices[d];
            for (std::size_t other = 0; !host.links.empty() && other < count; ++other)
                device.switchLinks = std::max(device.switchLinks, host.linksBetween(d, other));
            hasLinks = hasLinks && device.switchLinks > 0;
            all.devices.push_back(std::move(device));
        }
        all.nics.insert(all.nics.end(), host.nics.begin(), host.nics.end());
    }
    if (hasLinks)
        all.links.assign(all.devices.size() * all.devices.size(), 0);
    return all;
}

class ClusterMaker
{
public:
    ClusterMaker(const MachineRequest &request, Said said, MachineCluster &made)
        : m_request(request)
        , m_said(std::move(said))
        , m_made(made)
    {
    }

    Result<void> make()
    {
        if (m_said.system) {
            TRY_VOID(fromSystem());
        } else {
            TRY_VOID(fromHosts());
        }
        if (m_made.cluster.deviceCount > kMostDevices)
            return Error{ErrorCode::ResourceLimit,
                "the cluster would have " + std::to_string(m_made.cluster.deviceCount)
                    + " devices, more than " + std::to_string(kMostDevices),
                "name fewer hosts", "--topology"};
        addLevels();
        // What is made must be a cluster that a file may hold.
        auto checked = clusterFromJson(toJson(m_made.cluster));
        if (!checked)
            return std::move(checked).error();
        return {};
    }

private:
    Result<void> fromSystem()
    {
        if (!m_said.links.empty() || !m_said.queries.empty())
            return Error{ErrorCode::InvalidInput,
                "a file of a whole machine stands beside topologies of hosts", "name one or the other",
                "--topology"};
        const SystemFigures &system = *m_said.system;
        const std::string &words = m_request.device.empty() ? system.device : m_request.device;
        const auto profile = profileNamed(words);
        if (!profile)
            return unknownDevice("there is no profile of the device \"" + words.substr(0, 80) + "\"");
        TRY(m_made.cluster, clusterNamed(*profile + ":1"));
        applyFigures(m_made.cluster, system);
        m_made.assumed.push_back("what the file does not say is that of the profile " + *profile);
        TRY(const std::int32_t hosts, hostCount(m_request, m_said, 1));
        m_hosts = hosts;
        return setCount(
            static_cast<std::int64_t>(hosts) * system.devicesPerNode, system.devicesPerNode, words);
    }

    Result<void> setCount(std::int64_t devices, std::int32_t perNode, const std::string &name)
    {
        if (devices > kMostDevices)
            return Error{ErrorCode::ResourceLimit,
                "the cluster would have " + std::to_string(devices) + " devices, more than "
                    + std::to_string(kMostDevices),
                "name fewer hosts", "--topology"};
        m_made.cluster.deviceCount = static_cast<std::int32_t>(devices);
        m_made.cluster.links.devicesPerNode = perNode;
        m_made.cluster.name = asName(name);
        return {};
    }

    Result<void> fromHosts()
    {
        TRY(std::vector<HostTopology> hosts, hostsOf(m_said));
        if (hosts.empty())
            return Error{ErrorCode::InvalidInput, "no file says what devices a host has",
                "beside the switches, name a topology of NCCL, or what nvidia-smi topo -m or -q print",
                "--topology"};
        TRY(m_hosts, hostCount(m_request, m_said, hosts.size()));
        TRY_VOID(findNodes(hosts));
        const std::size_t perNode = m_nodes.front().host.devices.size();
        for (const SaidNode &node : m_nodes)
            if (node.host.devices.size() != perNode)
                return Error{ErrorCode::InvalidInput,
                    m_nodes.front().host.source + " has "
                        + counted(static_cast<std::int64_t>(perNode), "device") + ", " + node.host.source
                        + " has " + std::to_string(node.host.devices.size()),
                    "all nodes of a cluster have equally many", "--topology"};
        return addClasses(static_cast<std::int32_t>(perNode));
    }

    /// `profileOf`, once for each product: it looks through all profiles.
    Result<std::string> knownProfile(const HostDevice &device, const std::string &source)
    {
        const auto found = m_profiles.find(device.product);
        if (found != m_profiles.end())
            return found->second;
        TRY(const std::string profile, profileOf(device, source, m_request.device));
        m_profiles.emplace(device.product, profile);
        return profile;
    }

    /// Nodes of the hosts: those of a domain together.
    Result<void> findNodes(const std::vector<HostTopology> &hosts)
    {
        std::vector<std::vector<HostTopology>> groups;
        std::map<std::string, std::size_t> byDomain;
        for (const HostTopology &host : hosts) {
            TRY(const std::string domain, domainOf(host));
            if (domain.empty()) {
                groups.push_back({host});
                continue;
            }
            const auto [found, isNew] = byDomain.try_emplace(domain, groups.size());
            if (isNew)
                groups.emplace_back();
            groups[found->second].push_back(host);
        }
        if (hosts.size() == 1 && m_hosts > 1)
            TRY_VOID(repeatOne(groups));
        for (const auto &group : groups) {
            SaidNode node{united(group), {}};
            for (const HostDevice &device : node.host.devices) {
                TRY(const std::string profile, knownProfile(device, node.host.source));
                node.profiles.push_back(profile);
            }
            m_nodes.push_back(std::move(node));
        }
        return {};
    }

    /// One host stands for all: as many of them are a node as an NVLink domain of its kind has.
    Result<void> repeatOne(std::vector<std::vector<HostTopology>> &groups)
    {
        const HostTopology host = groups.front().front();
        const auto devices = static_cast<std::int32_t>(host.devices.size());
        m_made.assumed.push_back("all " + std::to_string(m_hosts) + " hosts are like that of " + host.source);
        m_repeats = m_hosts;
        if (host.devices.front().domain.empty())
            return {};
        TRY(const std::string name, knownProfile(host.devices.front(), host.source));
        TRY(const Cluster profile, clusterNamed(name + ":1"));
        const std::int32_t together = std::min(m_hosts, std::max(1, profile.links.devicesPerNode / devices));
        if (m_hosts % together != 0)
            return Error{ErrorCode::InvalidInput,
                std::to_string(m_hosts) + " hosts are no whole number of NVLink domains of "
                    + std::to_string(together),
                "name a query of each host", "--hosts"};
        groups.front().assign(static_cast<std::size_t>(together), host);
        m_repeats = m_hosts / together;
        m_made.assumed.push_back(
            counted(together, "host") + " are an NVLink domain, as in the profile " + name);
        return {};
    }

    /// The kinds of devices, and where they are.
    Result<void> addClasses(std::int32_t perNode)
    {
        std::map<std::string, std::size_t> classes;
        Cluster &cluster = m_made.cluster;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const SaidNode &node = m_nodes[n];
            for (std::size_t d = 0; d < node.profiles.size(); ++d) {
                const auto [found, isNew] = classes.try_emplace(node.profiles[d], classes.size());
                if (isNew)
                    TRY_VOID(addClass(node, d));
                if (found->second == 0)
                    continue;
                const auto index = static_cast<std::int32_t>(n) * perNode + static_cast<std::int32_t>(d);
                std::vector<DeviceRange> &where = cluster.otherClasses[found->second - 1].where;
                if (!where.empty() && where.back().first + where.back().count == index)
                    ++where.back().count;
                else
                    where.push_back({index, 1, m_repeats > 1 ? perNode : 0});
            }
        }
        checkAlike();
        const std::int64_t nodes = static_cast<std::int64_t>(m_nodes.size()) * m_repeats;
        TRY_VOID(setCount(nodes * perNode, perNode, m_nodes.front().profiles.front() + "-topology"));
        for (DeviceClass &other : cluster.otherClasses)
            other.links.devicesPerNode = perNode;
        return {};
    }

    Result<void> addClass(const SaidNode &node, std::size_t device)
    {
        Cluster &cluster = m_made.cluster;
        TRY(Cluster profile, clusterNamed(node.profiles[device] + ":1"));
        profile.name = node.profiles[device];
        TRY(Interconnect links, linksOfHost(node.host, profile, m_made.assumed));
        addNetwork(links, node.host, m_made.assumed);
        m_made.assumed.push_back(
            "rates of " + profile.device.name + " are those of the profile " + profile.name);
        checkMemory(node.host.devices[device], profile.device);
        if (!m_hasClass) {
            cluster = std::move(profile);
            cluster.links = std::move(links);
            m_hasClass = true;
            return {};
        }
        if (cluster.otherClasses.size() + 1 >= kMostDeviceClasses)
            return Error{ErrorCode::ResourceLimit,
                "there are more than " + std::to_string(kMostDeviceClasses) + " kinds of devices", {},
                "--topology"};
        cluster.otherClasses.push_back({std::move(profile.device), std::move(links), {}});
        return {};
    }

    /// A profile's memory stays, unless the device has another one by a tenth.
    void checkMemory(const HostDevice &device, DeviceModel &model)
    {
        if (device.memory <= 0 || std::abs(device.memory - model.memory.value) <= model.memory.value / 10)
            return;
        m_made.assumed.push_back("the device's memory is that of the file, "
            + formatBytes({static_cast<std::int64_t>(device.memory)}) + ", not the profile's "
            + formatBytes({static_cast<std::int64_t>(model.memory.value)}));
        model.memory = {device.memory, "nvidia-smi -q"};
    }

    /// Links of nodes of one kind are those of the first; others that differ are said.
    void checkAlike()
    {
        for (const SaidNode &node : m_nodes)
            if (node.host.links != m_nodes.front().host.links && node.profiles == m_nodes.front().profiles) {
                m_made.assumed.push_back("nodes of one kind have the links of " + m_nodes.front().host.source
                    + ", although " + node.host.source + " has others");
                return;
            }
    }

    /// Switches above nodes. What joins hosts of one NVLink domain joins nothing here.
    void addLevels()
    {
        if (!m_said.tree)
            return;
        Interconnect &links = m_made.cluster.links;
        const std::int32_t nodes =
            (m_made.cluster.deviceCount + links.devicesPerNode - 1) / links.devicesPerNode;
        const std::int32_t hostsPerNode = std::max(1, m_hosts / std::max(1, nodes));
        double nodesBelow = 1;
        for (std::size_t l = 0; l < m_said.tree->levels.size(); ++l) {
            const SwitchLevel &level = m_said.tree->levels[l];
            std::int32_t size = level.size;
            if (l == 0)
                size = (size + hostsPerNode - 1) / hostsPerNode;
            if (!level.isEven)
                m_made.assumed.push_back("a " + level.name + " has " + std::to_string(level.size)
                    + " below it, as most have: the file has others, too");
            if (size < 2)
                continue;
            nodesBelow *= size;
            links.outer.push_back({level.name, size,
                {nodesBelow * links.interBandwidth.value, "not said: as much as all of its nodes send"},
                {links.interLatency.value + kSwitchLatency * static_cast<double>(links.outer.size() + 1),
                    "not said: 1 us for each further switch"}});
            m_made.assumed.push_back(
                "links above a " + level.name + " carry all that its nodes send, 1 us later");
        }
        for (DeviceClass &other : m_made.cluster.otherClasses)
            other.links.outer = links.outer;
    }

    const MachineRequest &m_request;
    Said m_said{};
    MachineCluster &m_made;
    std::vector<SaidNode> m_nodes{};
    std::map<std::string, std::string> m_profiles{}; ///< By product.
    std::int32_t m_hosts = 1;
    std::int32_t m_repeats = 1; ///< Of the nodes: so often in the cluster.
    bool m_hasClass = false;
};

bool hasLine(std::string_view text, std::string_view begin)
{
    return text.substr(0, begin.size()) == begin
        || text.find("\n" + std::string(begin)) != std::string_view::npos;
}

} // namespace

const char *nameOf(MachineFile kind)
{
    constexpr std::array<const char *, 7> kNames{"NCCL topology", "nvidia-smi topo -m", "nvidia-smi -q",
        "Slurm topology.conf", "Slurm topology.yaml", "SimuMax system file", "AIConfigurator system file"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::optional<MachineFile> machineFileOf(std::string_view text)
{
    const std::string_view begin = trimmed(text.substr(0, 3) == "\xEF\xBB\xBF" ? text.substr(3) : text);
    if (begin.starts_with('<'))
        return MachineFile::NcclTopology;
    if (begin.starts_with('{'))
        return text.find("\"num_per_node\"") != std::string_view::npos
            ? std::optional(MachineFile::SimumaxSystem)
            : std::nullopt;
    if (hasLine(text, "gpu:") && hasLine(text, "node:"))
        return MachineFile::AiconfiguratorSystem;
    if (containsLetters(text, "SwitchName=") || containsLetters(text, "BlockName="))
        return MachineFile::SlurmConf;
    if (hasLine(text, "- topology:"))
        return MachineFile::SlurmYaml;
    if (text.find("NVSMI LOG") != std::string_view::npos
        || text.find("Product Name  ") != std::string_view::npos)
        return MachineFile::SmiQuery;
    if (text.find("GPU0") != std::string_view::npos)
        return MachineFile::SmiTopology;
    return std::nullopt;
}

Result<MachineCluster> machineCluster(const MachineRequest &request)
{
    if (request.files.empty() || request.files.size() > kMostFiles)
        return Error{ErrorCode::InvalidInput,
            request.files.empty() ? "there is no file to make a cluster of"
                                  : "there are more than " + std::to_string(kMostFiles) + " files",
            {}, "--topology"};
    Said said;
    MachineCluster made;
    for (const NamedText &file : request.files)
        TRY_VOID(readOne(file, said, made.read));
    TRY_VOID(ClusterMaker(request, std::move(said), made).make());
    std::vector<std::string> once;
    for (std::string &sentence : made.assumed)
        if (std::find(once.begin(), once.end(), sentence) == once.end())
            once.push_back(std::move(sentence));
    made.assumed = std::move(once);
    return made;
}

Result<MachineCluster> machineClusterOf(
    const std::vector<std::string> &paths, const std::string &device, std::int32_t hosts)
{
    MachineRequest request{.device = device, .hosts = hosts};
    for (const std::string &path : paths) {
        TRY(std::string text, readFile(path, {.what = "topology file", .mostBytes = kMostTopologyBytes}));
        request.files.push_back({path, std::move(text)});
    }
    return machineCluster(request);
}

} // namespace planloom
