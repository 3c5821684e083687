#pragma once

#include <string>

namespace planloom {

/// A host as NCCL writes it: eight H100s on NVSwitch with a card of 400 Gbit/s each, and one for management.
inline std::string hgxTopology(int devices = 8, int links = 18)
{
    std::string xml = "<system version=\"1\">\n  <cpu host_hash=\"0x16fe\" numaid=\"0\" arch=\"x86_64\">\n";
    const auto bus = [](int i) {
        return "0000:" + std::string(i < 6 ? "1" : "2") + std::to_string(i % 10) + ":00.0";
    };
    for (int i = 0; i < devices; ++i) {
        xml += "    <pci busid=\"0000:a" + std::to_string(i)
            + ":00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
              "link_width=\"16\">\n      <pci busid=\""
            + bus(i)
            + "\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" "
              "link_width=\"16\">\n        <gpu dev=\""
            + std::to_string(i) + "\" sm=\"90\" rank=\"" + std::to_string(i) + "\" gdr=\"1\">\n";
        for (int s = 0; s < 4; ++s)
            xml += "          <nvlink target=\"0000:0" + std::to_string(s + 5) + ":00.0\" count=\""
                + std::to_string(links / 4 + (s < links % 4 ? 1 : 0)) + "\" tclass=\"0x068000\"/>\n";
        xml += "        </gpu>\n      </pci>\n      <pci busid=\"0000:c" + std::to_string(i)
            + ":00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\">\n        <nic>\n          "
              "<net name=\"mlx5_"
            + std::to_string(i) + "\" dev=\"" + std::to_string(i)
            + "\" speed=\"400000\" port=\"1\" gdr=\"1\"/>\n        </nic>\n      </pci>\n    </pci>\n";
    }
    return xml
        + "    <nic>\n      <net name=\"eth0\" dev=\"8\" speed=\"25000\" port=\"0\"/>\n    </nic>\n  "
          "</cpu>\n</system>\n";
}

/// Four A100s that each reach each other over four links, without a switch.
inline std::string meshTopology()
{
    std::string xml = "<system version=\"1\">\n";
    for (int i = 0; i < 4; ++i) {
        xml += "<cpu numaid=\"" + std::to_string(i) + "\"><pci busid=\"0001:0" + std::to_string(i)
            + ":00.0\" vendor=\"0x10de\" device=\"0x20b0\" link_speed=\"16.0 GT/s PCIe\" "
              "link_width=\"16\"><gpu dev=\""
            + std::to_string(i) + "\" sm=\"80\">\n";
        for (int other = 0; other < 4; ++other)
            if (other != i)
                xml += "<nvlink target=\"0001:0" + std::to_string(other)
                    + ":00.0\" count=\"4\" tclass=\"0x030200\"/>\n";
        xml += "</gpu></pci></cpu>\n";
    }
    return xml + "</system>\n";
}

/// What `nvidia-smi topo -m` prints of `devices` devices with `way` between any two, and two cards.
inline std::string matrixText(int devices, const std::string &way)
{
    std::string text = "\t";
    for (int i = 0; i < devices; ++i)
        text += "\x1b[4mGPU" + std::to_string(i) + "\t";
    text += "NIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
    for (int i = 0; i < devices; ++i) {
        text += "GPU" + std::to_string(i) + "\t";
        for (int j = 0; j < devices; ++j)
            text += (i == j ? std::string(" X ") : way) + "\t";
        text += "PIX\tSYS\t0-51,104-155\t0\t\tN/A\n";
    }
    for (int c = 0; c < 2; ++c) {
        text += "NIC" + std::to_string(c) + "\t";
        for (int j = 0; j < devices; ++j)
            text += c == 0 ? "PIX\t" : "SYS\t";
        text += c == 0 ? " X \tSYS\n" : "SYS\t X \n";
    }
    return text
        + "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC "
          "Legend:\n\n"
          "  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
}

/// What `nvidia-smi -q` prints, as far as it counts.
inline std::string queryText(
    int devices, const std::string &product, int mebibytes, const std::string &uuid = {})
{
    std::string text =
        "\n==============NVSMI LOG==============\n\nTimestamp                                 : Mon Sep  1\n"
        "Driver Version                            : 570.86\n\nAttached GPUs                             : "
        + std::to_string(devices) + "\n";
    for (int i = 0; i < devices; ++i) {
        text += "GPU 00000000:" + std::to_string(10 + i)
            + ":00.0\n    Product Name                          : " + product
            + "\n    Product Architecture                  : Any\n    GPU Link Info\n            PCIe "
              "Generation\n"
              "                Max                       : 5\n                Current                   : 1\n"
              "            Link Width\n                Max                       : 16x\n                "
              "Current           "
              "        : 8x\n    FB Memory Usage\n        Total                             : "
            + std::to_string(mebibytes)
            + " MiB\n        Reserved                          : 600 MiB\n    BAR1 Memory Usage\n        "
              "Total            "
              "                 : 131072 MiB\n";
        if (!uuid.empty())
            text += "    Fabric\n        State                             : Completed\n        Status       "
                    "             "
                    "        : Success\n        CliqueId                          : 1\n        ClusterUUID   "
                    "                "
                    "    : "
                + uuid + "\n";
    }
    return text;
}

inline const char *const kTopologyConf = "# two leaves below a spine\n"
                                         "SwitchName=leaf1 Nodes=node[01-04] LinkSpeed=1\n"
                                         "switchname=leaf2 nodes=node[05-08]\n"
                                         "SwitchName=spine Switches=leaf[1-2]\n";

inline const char *const kTopologyYaml = "---\n"
                                         "- topology: flat\n"
                                         "  flat: true\n"
                                         "- topology: racks\n"
                                         "  cluster_default: true\n"
                                         "  tree:\n"
                                         "    switches:\n"
                                         "      - switch: spine\n"
                                         "        children: leaf[1-2]\n"
                                         "      - switch: leaf1\n"
                                         "        nodes: node[01-04]\n"
                                         "      - switch: leaf2\n"
                                         "        nodes: node[05-08]\n"
                                         "- topology: other\n"
                                         "  block:\n"
                                         "    block_sizes: [4, 8]\n"
                                         "    blocks:\n"
                                         "      - block: b1\n"
                                         "        nodes: node[01-08]\n";

inline const char *const kSimumaxSystem = R"({
    "sys_name": "a100_bf16",
    "num_per_node": 8,
    "accelerator": {
        "backend": "cuda",
        "mem_gbs": 80,
        "op": {"default": {"tflops": 312, "efficient_factor": 0.75},
               "matmul": {"tflops": 312, "efficient_factor": 0.7},
               "sdp_fwd": {"tflops": 312, "efficient_factor": 0.6}},
        "bandwidth": {"efficient_factor": 0.8, "gbps": 2039, "latency_us": 40}
    },
    "networks": {
        "high_intra_node": {"bandwidth": {"efficient_factor": 0.7, "gbps": 300, "latency_us": 10}},
        "inter_node": {"bandwidth": {"efficient_factor": 0.5, "gbps": 25, "latency_us": 20}}
    }
})";

inline const char *const kAiconfiguratorSystem = "data_dir: data/h100_sxm # relative\n"
                                                 "gpu:\n"
                                                 "  mem_bw: 3350000000000\n"
                                                 "  mem_bw_empirical_scaling_factor: 0.8\n"
                                                 "  mem_capacity: 85899345920\n"
                                                 "  bfloat16_tc_flops: 989000000000000\n"
                                                 "  fp8_tc_flops: 1979000000000000\n"
                                                 "node:\n"
                                                 "  num_gpus_per_node: 8\n"
                                                 "  inter_node_bw: 50000000000\n"
                                                 "  intra_node_bw: 450000000000\n"
                                                 "  p2p_latency: 0.00001\n";

} // namespace planloom
