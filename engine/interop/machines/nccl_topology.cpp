#include "engine/base/text.h"
#include "engine/interop/machines/host_topology.h"
#include "engine/interop/machines/number_text.h"
#include "engine/interop/machines/xml_text.h"

#include <map>

namespace planloom {

namespace {

constexpr std::int64_t kMostLinks = 1024; ///< That an element may count.
constexpr double kMostSpeed = 1e8; ///< Mbit/s of a card.
constexpr std::int64_t kSwitchClass = 0x068000; ///< PCI's class of NVSwitch.

/// A link as an element has it.
struct SaidLink {
    std::size_t from = 0;
    std::string target{}; ///< With its host before it.
    std::int64_t count = 0;
    bool isToSwitch = false;
    std::int32_t line = 0;
};

class NcclReader
{
public:
    explicit NcclReader(std::vector<XmlElement> elements)
        : m_elements(std::move(elements))
    {
    }

    Result<HostTopology> read()
    {
        const XmlElement &root = m_elements.front();
        if (root.name != "system")
            return atLine(root.line, "the root is <" + root.name + ">, where <system> was expected",
                "NCCL writes such a file where NCCL_TOPO_DUMP_FILE says");
        TRY(const std::int64_t version, whole(root, "version", 1, 1, 2));
        m_host.isAmd = version == 2;
        m_host.source = version == 2 ? "RCCL topology" : "NCCL topology";
        TRY_VOID(visit(root, nullptr, {}));
        if (m_host.devices.empty())
            return atLine(root.line, "there is no <gpu> in the file",
                "NCCL writes a host's devices when a communicator is made");
        m_host.links.assign(m_host.devices.size() * m_host.devices.size(), 0);
        for (const SaidLink &link : m_links)
            TRY_VOID(join(link));
        TRY_VOID(checkMirror());
        return std::move(m_host);
    }

private:
    static const std::string &text(const XmlElement &element, std::string_view attribute)
    {
        static const std::string kNone;
        const auto found = element.attributes.find(attribute);
        return found == element.attributes.end() ? kNone : found->second;
    }

    /// A whole number in its range; `missing` where the attribute is not there, or empty.
    static Result<std::int64_t> whole(const XmlElement &element, std::string_view attribute,
        std::int64_t missing, std::int64_t least, std::int64_t most)
    {
        const std::string &said = text(element, attribute);
        if (said.empty())
            return missing;
        const auto value = wholeNumber(said);
        if (!value || *value < least || *value > most)
            return atLine(element.line,
                "\"" + std::string(attribute) + "\" of <" + element.name + "> is \"" + said.substr(0, 40)
                    + "\", where a whole number from " + std::to_string(least) + " to " + std::to_string(most)
                    + " was expected");
        return *value;
    }

    /// @param pci  the element of the device's or card's place on the bus; null outside of one
    /// @param host  a file of an NVLink domain has several, whose places on the bus are called alike
    Result<void> visit(const XmlElement &element, const XmlElement *pci, const std::string &host)
    {
        for (const std::size_t index : element.children) {
            const XmlElement &child = m_elements[index];
            if (child.name == "gpu") {
                TRY_VOID(addDevice(child, pci, host));
            } else if (child.name == "net") {
                TRY_VOID(addNic(child, host));
            } else {
                TRY_VOID(visit(child, child.name == "pci" ? &child : pci,
                    child.name == "cpu" ? text(child, "host_hash").substr(0, 64) : host));
            }
        }
        return {};
    }

    Result<void> addDevice(const XmlElement &gpu, const XmlElement *pci, const std::string &host)
    {
        if (!pci || text(*pci, "busid").empty())
            return atLine(gpu.line, "<gpu> lies in no <pci> with a \"busid\"");
        HostDevice device{.name = lowerCase(text(*pci, "busid"))};
        device.line = gpu.line;
        if (const auto [known, isNew] = m_byName.emplace(host + " " + device.name, m_host.devices.size());
            !isNew)
            return atLine(gpu.line,
                "the device " + device.name + " stands twice, first in line "
                    + std::to_string(m_host.devices[known->second].line));
        if (m_host.devices.size() >= kMostHostDevices)
            return Error{ErrorCode::ResourceLimit,
                "there are more than " + std::to_string(kMostHostDevices) + " devices", {},
                "line:" + std::to_string(gpu.line) + ":1"};
        TRY_VOID(whole(gpu, "dev", 0, 0, 1 << 20));
        TRY(const std::int64_t sm, whole(gpu, "sm", 0, 0, 1'000'000));
        device.architecture = !text(gpu, "gcn").empty() ? "gfx " + text(gpu, "gcn").substr(0, 16)
            : sm > 0                                    ? "sm " + std::to_string(sm)
                                                        : std::string{};
        device.product = deviceOfPci(text(*pci, "vendor"), text(*pci, "device"));
        TRY(const std::int64_t lanes, whole(*pci, "link_width", 0, 0, 64));
        const double speed = leadingNumber(text(*pci, "link_speed")).value_or(0);
        if (speed < 0 || speed > 1000)
            return atLine(pci->line, "\"link_speed\" is more than 1000 GT/s");
        device.pcieBandwidth = pcieBandwidth(speed, static_cast<std::int32_t>(lanes));
        const std::size_t index = m_host.devices.size();
        m_host.devices.push_back(std::move(device));
        for (const std::size_t each : gpu.children) {
            const XmlElement &link = m_elements[each];
            if (link.name != "nvlink" && link.name != "xgmi")
                continue; // c2c joins a device with its processor
            TRY(const std::int64_t count, whole(link, "count", 1, 1, kMostLinks));
            TRY(const std::int64_t kind, whole(link, "tclass", 0, 0, 0xffffff));
            if (text(link, "target").empty())
                return atLine(link.line, "<" + link.name + "> has no \"target\"");
            m_links.push_back({index, host + " " + lowerCase(text(link, "target")), count,
                kind == kSwitchClass, link.line});
        }
        return {};
    }

    Result<void> addNic(const XmlElement &net, const std::string &host)
    {
        TRY(const std::int64_t speed, whole(net, "speed", 0, 0, static_cast<std::int64_t>(kMostSpeed)));
        HostNic nic{text(net, "name").substr(0, 64), static_cast<double>(speed) * 1e6 / 8};
        if (nic.name.empty())
            nic.name = "card " + std::to_string(m_host.nics.size());
        if (const auto [known, isNew] =
                m_nicLines.emplace(host + " " + nic.name + " port " + text(net, "port"), net.line);
            !isNew)
            return atLine(net.line,
                "the card " + nic.name + " stands twice, first in line " + std::to_string(known->second));
        m_host.nics.push_back(std::move(nic));
        return {};
    }

    static std::string placeIn(const std::string &target) { return target.substr(target.find(' ') + 1, 40); }

    Result<void> join(const SaidLink &link)
    {
        if (link.isToSwitch) {
            m_host.devices[link.from].switchLinks += static_cast<std::int32_t>(link.count);
            return {};
        }
        const auto found = m_byName.find(link.target);
        if (found == m_byName.end())
            return atLine(link.line,
                "the link leads to " + placeIn(link.target) + ", which is no device of the file",
                "a switch is marked by tclass=\"0x068000\"");
        if (found->second == link.from)
            return atLine(link.line, "the link leads from " + placeIn(link.target) + " to itself");
        std::int32_t &count = m_host.links[link.from * m_host.devices.size() + found->second];
        if (count > 0)
            return atLine(link.line, "a second link leads from the device to " + placeIn(link.target));
        count = static_cast<std::int32_t>(link.count);
        m_lineOf[{link.from, found->second}] = link.line;
        return {};
    }

    Result<void> checkMirror() const
    {
        for (const auto &[ends, line] : m_lineOf) {
            const std::int32_t there = m_host.linksBetween(ends.first, ends.second);
            const std::int32_t back = m_host.linksBetween(ends.second, ends.first);
            if (there != back)
                return atLine(line,
                    m_host.devices[ends.first].name + " has " + std::to_string(there) + " links to "
                        + m_host.devices[ends.second].name + ", which has " + std::to_string(back) + " back");
        }
        return {};
    }

    std::vector<XmlElement> m_elements{};
    HostTopology m_host{};
    std::map<std::string, std::size_t> m_byName{};
    std::map<std::string, std::int32_t> m_nicLines{};
    std::vector<SaidLink> m_links{};
    std::map<std::pair<std::size_t, std::size_t>, std::int32_t> m_lineOf{}; ///< Of links between devices.
};

} // namespace

Result<HostTopology> readNcclTopology(std::string_view text)
{
    TRY(std::vector<XmlElement> elements, readXml(text));
    return NcclReader(std::move(elements)).read();
}

} // namespace planloom
