#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// A box of the topology map, in pixels from its top left corner.
struct TopologyBox {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;

    bool contains(double atX, double atY) const
    {
        return atX >= x && atX < x + width && atY >= y && atY < y + height;
    }
};

/// Sizes that follow the font.
struct TopologyMetrics {
    double tileWidth = 40; ///< Of a device.
    double tileHeight = 32;
    double lineHeight = 16; ///< Of text.
    double linkHeight =
        18; ///< Of the gauge between a device and its node's switch, and of that between node and network.
};

/// Where devices, their links, the nodes and their links to the network are drawn: nodes in rows as wide as
/// there is room, each hanging by its link from the network line of its row, devices in a node by theirs from
/// its switch.
class TopologyLayout
{
public:
    TopologyLayout() = default;
    /// Devices 0 to `deviceCount` - 1, `devicesPerNode` to a node (both at least 1), in `width` pixels. O(1).
    TopologyLayout(
        std::int32_t deviceCount, std::int32_t devicesPerNode, double width, const TopologyMetrics &metrics);

    std::int32_t deviceCount() const { return m_devices; }
    std::int32_t nodeCount() const { return m_nodes; }
    bool hasNetwork() const { return m_nodes > 1; }
    double height() const; ///< Of the whole map.

    TopologyBox device(std::int32_t device) const;
    TopologyBox deviceLink(std::int32_t device) const;
    TopologyBox node(std::int32_t node) const;
    TopologyBox nodeSwitch(std::int32_t node) const; ///< The bar that its devices' links hang from.
    TopologyBox nodeLink(std::int32_t node) const; ///< Empty without a network.
    /// The nodes whose boxes reach into [top, bottom): first, and one past the last.
    std::pair<std::int32_t, std::int32_t> nodesBetween(double top, double bottom) const;

    /// -1 if there is none. A device's tile and its link count alike, as do the head of a node and its link.
    std::int32_t deviceAt(double x, double y) const;
    std::int32_t nodeHeadAt(double x, double y) const;

private:
    std::int32_t nodeAt(double x, double y) const;
    std::int32_t devicesOf(std::int32_t node) const;

    TopologyMetrics m_metrics{};
    std::int32_t m_devices = 0;
    std::int32_t m_perNode = 1;
    std::int32_t m_nodes = 0;
    std::int32_t m_columns = 1; ///< Devices side by side in a node.
    std::int32_t m_perRow = 1; ///< Nodes side by side.
    double m_nodeWidth = 0;
    double m_nodeHeight = 0;
    double m_rowHeight = 0;
};

} // namespace planloom
