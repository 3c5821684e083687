#include "engine/interop/machines/system_file.h"

#include "engine/base/text.h"
#include "engine/interop/configs/tree_text.h"
#include "engine/interop/machines/number_text.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace planloom {

namespace {

constexpr double kMostFigure = 1e20;
constexpr double kMostDevicesOfNode = 16384;

/// The settings of a file by their keys.
class FigureReader
{
public:
    static Result<FigureReader> of(std::string_view text)
    {
        TRY(const SettingList list, readTree(text));
        FigureReader reader;
        for (const Setting &setting : list.settings)
            if (const auto [known, isNew] = reader.m_settings.emplace(setting.key, setting); !isNew)
                return atLine(setting.line,
                    "\"" + setting.key.substr(0, 60) + "\" stands twice, first in line "
                        + std::to_string(known->second.line));
        return reader;
    }

    bool has(const std::string &key) const { return m_settings.count(key) > 0; }

    std::string word(const std::string &key) const
    {
        const auto found = m_settings.find(key);
        return found == m_settings.end() || found->second.values.empty() ? std::string{}
                                                                         : found->second.values.front();
    }

    /// A figure above 0 and at most `most`; 0 where the file has none.
    Result<double> figure(const std::string &key, double most = kMostFigure) const
    {
        const auto found = m_settings.find(key);
        if (found == m_settings.end())
            return 0.0;
        const std::string said = word(key);
        const auto value = realNumber(said);
        if (!value || *value <= 0 || *value > most)
            return atLine(found->second.line,
                "\"" + key + "\" is \"" + said.substr(0, 40) + "\", where a number above 0"
                    + (most < kMostFigure ? ", at most " + leastDigits(most) + "," : std::string{})
                    + " was expected");
        return *value;
    }

private:
    static std::string leastDigits(double value)
    {
        char text[32];
        std::snprintf(text, sizeof text, "%g", value);
        return text;
    }

    std::map<std::string, Setting> m_settings{};
};

/// A bandwidth as SimuMax has it: GB/s and the share of it that is reached.
Result<double> reached(const FigureReader &file, const std::string &network)
{
    TRY(const double gigabytes, file.figure(network + ".bandwidth.gbps"));
    TRY(const double share, file.figure(network + ".bandwidth.efficient_factor", 1));
    return gigabytes * 1e9 * (share > 0 ? share : 1);
}

std::string spaced(std::string words)
{
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

} // namespace

Result<SystemFigures> readSimumaxSystem(std::string_view text)
{
    TRY(const FigureReader file, FigureReader::of(text));
    if (!file.has("num_per_node"))
        return atLine(1, "there is no \"num_per_node\" in the file", "a system file of SimuMax has one");
    SystemFigures figures{.source = "SimuMax system file", .device = spaced(file.word("sys_name"))};
    TRY(const double devices, file.figure("num_per_node", kMostDevicesOfNode));
    figures.devicesPerNode = static_cast<std::int32_t>(devices);
    TRY(const double gigabytes, file.figure("accelerator.mem_gbs"));
    figures.memory = gigabytes * 1e9;
    TRY(const double teraflops, file.figure("accelerator.op.default.tflops"));
    figures.float16Flops = teraflops * 1e12;
    TRY(figures.productEfficiency, file.figure("accelerator.op.matmul.efficient_factor", 1));
    TRY(figures.attentionEfficiency, file.figure("accelerator.op.sdp_fwd.efficient_factor", 1));
    TRY(figures.attentionBackwardEfficiency, file.figure("accelerator.op.sdp_bwd.efficient_factor", 1));
    const std::string memory = "accelerator.bandwidth";
    TRY(const double bandwidth, file.figure(memory + ".gbps"));
    figures.memoryBandwidth = bandwidth * 1e9;
    TRY(figures.memoryEfficiency, file.figure(memory + ".efficient_factor", 1));
    const std::string intra = file.has("networks.high_intra_node.bandwidth.gbps") ? "networks.high_intra_node"
                                                                                  : "networks.intra_node";
    TRY(figures.intraBandwidth, reached(file, intra));
    TRY(const double intraMicroseconds, file.figure(intra + ".bandwidth.latency_us"));
    figures.intraLatency = intraMicroseconds * 1e-6;
    TRY(figures.interBandwidth, reached(file, "networks.inter_node"));
    TRY(const double interMicroseconds, file.figure("networks.inter_node.bandwidth.latency_us"));
    figures.interLatency = interMicroseconds * 1e-6;
    return figures;
}

Result<SystemFigures> readAiconfiguratorSystem(std::string_view text)
{
    TRY(const FigureReader file, FigureReader::of(text));
    if (!file.has("node.num_gpus_per_node"))
        return atLine(1, "there is no \"num_gpus_per_node\" below \"node\" in the file",
            "AIConfigurator's systems/NAME.yaml has one");
    SystemFigures figures{.source = "AIConfigurator system file"};
    const std::string folder = file.word("data_dir");
    figures.device = spaced(folder.substr(folder.find_last_of('/') + 1));
    TRY(const double devices, file.figure("node.num_gpus_per_node", kMostDevicesOfNode));
    TRY(const double rack, file.figure("node.num_gpus_per_rack", kMostDevicesOfNode));
    TRY(figures.memory, file.figure("gpu.mem_capacity"));
    TRY(figures.memoryBandwidth, file.figure("gpu.mem_bw"));
    TRY(figures.memoryEfficiency, file.figure("gpu.mem_bw_empirical_scaling_factor", 1));
    TRY(figures.float16Flops, file.figure("gpu.bfloat16_tc_flops"));
    TRY(figures.float8Flops, file.figure("gpu.fp8_tc_flops"));
    TRY(figures.intraBandwidth, file.figure("node.intra_node_bw"));
    TRY(figures.interBandwidth, file.figure("node.inter_node_bw"));
    TRY(figures.intraLatency, file.figure("node.p2p_latency"));
    TRY(const double rackBandwidth, file.figure("node.inter_rack_bw"));
    figures.devicesPerNode = static_cast<std::int32_t>(devices);
    // Hosts whose links are as fast as those inside one are an NVLink domain, which is a node here.
    if (rack > devices && figures.interBandwidth >= figures.intraBandwidth) {
        figures.devicesPerNode = static_cast<std::int32_t>(rack);
        figures.interBandwidth = rackBandwidth;
    }
    return figures;
}

void applyFigures(Cluster &cluster, const SystemFigures &figures)
{
    const auto set = [&](Sourced &figure, double value) {
        if (value > 0)
            figure = {value, figures.source};
    };
    DeviceModel &device = cluster.device;
    Interconnect &links = cluster.links;
    set(device.float16Flops, figures.float16Flops);
    set(device.float8Flops, figures.float8Flops);
    if (figures.productEfficiency > 0) { // what a format or few multiprocessors reach was measured otherwise
        device.formats.clear();
        device.tileEfficiency = {};
        device.groupedEfficiency = {};
    }
    set(device.productEfficiency, figures.productEfficiency);
    set(device.attentionEfficiency, figures.attentionEfficiency);
    set(device.attentionBackwardEfficiency, figures.attentionBackwardEfficiency);
    set(device.memory, figures.memory);
    set(device.memoryBandwidth, figures.memoryBandwidth);
    set(device.memoryEfficiency, figures.memoryEfficiency);
    links.devicesPerNode = figures.devicesPerNode;
    if (figures.intraBandwidth > 0) {
        links.allToAllBandwidth = {};
        links.allToAllLatency = {};
        links.ownCopyBandwidth = {};
    }
    set(links.intraBandwidth, figures.intraBandwidth);
    if (figures.intraLatency > 0) {
        links.startLatency = {};
        links.hopLatency = {};
    }
    set(links.intraLatency, figures.intraLatency);
    set(links.interBandwidth, figures.interBandwidth * figures.devicesPerNode);
    set(links.interLatency, figures.interLatency);
}

} // namespace planloom
