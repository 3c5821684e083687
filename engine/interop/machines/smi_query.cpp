#include "engine/base/text.h"
#include "engine/interop/machines/host_topology.h"
#include "engine/interop/machines/number_text.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::size_t kMostSections = 16; ///< In one another.

/// GT/s of a generation of PCI Express; 0 for none.
double gigatransfersOf(std::int64_t generation)
{
    constexpr std::int64_t kGenerations = 7;
    if (generation < 1 || generation > kGenerations)
        return 0;
    return generation == 1 ? 2.5
        : generation == 2  ? 5
                           : 8 * static_cast<double>(std::int64_t{1} << (generation - 3));
}

struct Line {
    std::size_t indent = 0;
    std::string_view key{};
    std::string_view value{};
    bool hasValue = false;
};

Line lineOf(std::string_view text)
{
    Line line;
    while (line.indent < text.size() && text[line.indent] == ' ')
        ++line.indent;
    const std::size_t colon = text.find(" : ");
    line.hasValue = colon != std::string_view::npos;
    line.key = trimmed(text.substr(0, colon));
    if (line.hasValue)
        line.value = trimmed(text.substr(colon + 3));
    return line;
}

class QueryReader
{
public:
    Result<HostTopology> read(std::string_view text)
    {
        m_host.source = "nvidia-smi -q";
        std::int32_t number = 0;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            ++number;
            TRY_VOID(readLine(text.substr(begin, end - begin), number));
            begin = end + 1;
        }
        TRY_VOID(endDevice());
        if (m_host.devices.empty())
            return atLine(
                1, "there is no device in the file", "nvidia-smi -q prints a section \"GPU ...\" for each");
        if (m_attached > 0 && m_attached != static_cast<std::int64_t>(m_host.devices.size()))
            return atLine(m_attachedLine,
                std::to_string(m_attached) + " devices are attached, and the file has "
                    + std::to_string(m_host.devices.size()),
                "the file may have been cut off");
        return std::move(m_host);
    }

private:
    Result<void> readLine(std::string_view text, std::int32_t number)
    {
        const Line line = lineOf(text);
        if (line.key.empty())
            return {};
        if (line.indent == 0 && line.key.substr(0, 4) == "GPU ") {
            TRY_VOID(endDevice());
            return beginDevice(std::string(trimmed(line.key.substr(4))), number);
        }
        if (line.key == "Attached GPUs") {
            const auto count = wholeNumber(line.value);
            if (!count || *count < 0)
                return atLine(number,
                    "the number of attached devices is \"" + std::string(line.value.substr(0, 40)) + "\"");
            m_attached = *count;
            m_attachedLine = number;
        }
        while (!m_sections.empty() && m_sections.back().first >= line.indent)
            m_sections.pop_back();
        if (!line.hasValue) {
            if (m_sections.size() >= kMostSections)
                return Error{ErrorCode::ResourceLimit,
                    "sections lie in sections more than " + std::to_string(kMostSections) + " deep", {},
                    "line:" + std::to_string(number) + ":1"};
            m_sections.emplace_back(line.indent, std::string(line.key));
            return {};
        }
        if (m_device)
            return take(line, number);
        return {};
    }

    Result<void> beginDevice(std::string name, std::int32_t number)
    {
        if (const auto [known, isNew] = m_lines.emplace(name, number); !isNew)
            return atLine(number,
                "the device " + name.substr(0, 40) + " stands twice, first in line "
                    + std::to_string(known->second));
        if (m_host.devices.size() >= kMostHostDevices)
            return Error{ErrorCode::ResourceLimit,
                "there are more than " + std::to_string(kMostHostDevices) + " devices", {},
                "line:" + std::to_string(number) + ":1"};
        m_device = HostDevice{.name = std::move(name), .line = number};
        m_sections.clear();
        m_uuid.clear();
        m_clique.clear();
        m_generation = 0;
        m_width = 0;
        return {};
    }

    bool isIn(std::string_view section) const
    {
        return std::any_of(
            m_sections.begin(), m_sections.end(), [&](const auto &each) { return each.second == section; });
    }

    /// Of "Max" where there is one: what a device waits with is no measure of what it can.
    Result<void> take(const Line &line, std::int32_t number)
    {
        const std::string value(line.value.substr(0, 200));
        if (line.key == "Product Name") {
            m_device->product = value;
        } else if (line.key == "Total" && !m_sections.empty()
            && m_sections.back().second == "FB Memory Usage") {
            const auto mebibytes = leadingNumber(value);
            if (!mebibytes || !value.ends_with("MiB") || *mebibytes > 1e8)
                return atLine(
                    number, "the memory is \"" + value.substr(0, 40) + "\", where MiB were expected");
            m_device->memory = *mebibytes * (1 << 20);
        } else if (isIn("PCIe Generation") && line.key == "Max") {
            m_generation = wholeNumber(value).value_or(0);
        } else if (isIn("Link Width") && line.key == "Max") {
            const auto lanes = leadingNumber(value);
            if (value.starts_with('-') || (lanes && *lanes > 64))
                return atLine(number,
                    "the width of the link is \"" + value.substr(0, 40)
                        + "\", where 1x to 64x were expected");
            m_width = static_cast<std::int32_t>(lanes.value_or(0));
        } else if (isIn("Fabric") && line.key == "CliqueId") {
            m_clique = value;
        } else if (isIn("Fabric") && line.key == "ClusterUUID") {
            m_uuid = value;
        }
        return {};
    }

    Result<void> endDevice()
    {
        if (!m_device)
            return {};
        m_device->pcieBandwidth = pcieBandwidth(gigatransfersOf(m_generation), m_width);
        // A host by itself has a cluster of zeros, or none.
        if (m_uuid.find_first_not_of("0-") != std::string::npos && m_uuid != "N/A")
            m_device->domain = m_uuid + " clique " + m_clique;
        m_host.devices.push_back(*std::move(m_device));
        m_device.reset();
        return {};
    }

    HostTopology m_host{};
    std::optional<HostDevice> m_device{}; ///< That is being read.
    std::map<std::string, std::int32_t> m_lines{}; ///< Of devices.
    std::vector<std::pair<std::size_t, std::string>>
        m_sections{}; ///< Around the line: how far in, and its name.
    std::string m_uuid{};
    std::string m_clique{};
    std::int64_t m_generation = 0;
    std::int32_t m_width = 0;
    std::int64_t m_attached = 0;
    std::int32_t m_attachedLine = 0;
};

} // namespace

Result<HostTopology> readSmiQuery(std::string_view text)
{
    return QueryReader().read(text);
}

} // namespace planloom
