#include "widgets/memory/topology_layout.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr std::int32_t kMostColumns = 8; ///< Devices side by side in a node.
constexpr double kGap = 6; ///< Pixels between tiles, and around them.
constexpr double kNodeGap = 12;
constexpr double kSwitchHeight = 5;
constexpr double kGauge = 10; ///< Width of a link's gauge.

} // namespace

TopologyLayout::TopologyLayout(
    std::int32_t deviceCount, std::int32_t devicesPerNode, double width, const TopologyMetrics &metrics)
    : m_metrics(metrics)
    , m_devices(std::max(deviceCount, 0))
    , m_perNode(std::max(devicesPerNode, 1))
{
    m_nodes = (m_devices + m_perNode - 1) / m_perNode;
    m_columns = std::max(1, std::min({m_perNode, m_devices, kMostColumns}));
    const std::int32_t most = std::min(m_perNode, m_devices);
    const std::int32_t rows = std::max(1, (most + m_columns - 1) / m_columns);
    m_nodeWidth = m_columns * (m_metrics.tileWidth + kGap) + kGap;
    m_nodeHeight = m_metrics.lineHeight + kSwitchHeight
        + rows * (m_metrics.linkHeight + m_metrics.tileHeight + kGap) + kGap;
    m_perRow = std::max(1, static_cast<std::int32_t>((width - kNodeGap) / (m_nodeWidth + kNodeGap)));
    m_rowHeight = m_nodeHeight + kNodeGap + (hasNetwork() ? m_metrics.linkHeight + kSwitchHeight : 0);
}

double TopologyLayout::height() const
{
    return (m_nodes + m_perRow - 1) / m_perRow * m_rowHeight + kNodeGap;
}

std::int32_t TopologyLayout::devicesOf(std::int32_t node) const
{
    return std::min(m_perNode, m_devices - node * m_perNode);
}

TopologyBox TopologyLayout::node(std::int32_t node) const
{
    const double top =
        node / m_perRow * m_rowHeight + kNodeGap + (hasNetwork() ? m_metrics.linkHeight + kSwitchHeight : 0);
    return {kNodeGap + node % m_perRow * (m_nodeWidth + kNodeGap), top, m_nodeWidth, m_nodeHeight};
}

TopologyBox TopologyLayout::nodeSwitch(std::int32_t node) const
{
    const TopologyBox box = this->node(node);
    return {box.x + kGap, box.y + m_metrics.lineHeight, box.width - 2 * kGap, kSwitchHeight};
}

TopologyBox TopologyLayout::nodeLink(std::int32_t node) const
{
    if (!hasNetwork())
        return {};
    const TopologyBox box = this->node(node);
    return {box.x + (box.width - kGauge) / 2, box.y - m_metrics.linkHeight, kGauge, m_metrics.linkHeight};
}

TopologyBox TopologyLayout::deviceLink(std::int32_t device) const
{
    const TopologyBox tile = this->device(device);
    return {tile.x + (tile.width - kGauge) / 2, tile.y - m_metrics.linkHeight, kGauge, m_metrics.linkHeight};
}

TopologyBox TopologyLayout::device(std::int32_t device) const
{
    const TopologyBox bar = nodeSwitch(device / m_perNode);
    const std::int32_t place = device % m_perNode;
    const double step = m_metrics.linkHeight + m_metrics.tileHeight + kGap;
    return {bar.x + place % m_columns * (m_metrics.tileWidth + kGap),
        bar.y + bar.height + place / m_columns * step + m_metrics.linkHeight, m_metrics.tileWidth,
        m_metrics.tileHeight};
}

std::pair<std::int32_t, std::int32_t> TopologyLayout::nodesBetween(double top, double bottom) const
{
    const auto rowAt = [this](double y) {
        return static_cast<std::int32_t>(std::floor((y - kNodeGap) / m_rowHeight));
    };
    const std::int32_t first = std::max(rowAt(top), 0) * m_perRow;
    const std::int32_t last = (rowAt(bottom) + 1) * m_perRow;
    return {std::min(first, m_nodes), std::clamp(last, 0, m_nodes)};
}

std::int32_t TopologyLayout::nodeAt(double x, double y) const
{
    const auto [first, last] = nodesBetween(y, y);
    for (std::int32_t node = first; node < last; ++node) {
        const TopologyBox box = this->node(node);
        if (x >= box.x && x < box.x + box.width)
            return node;
    }
    return -1;
}

std::int32_t TopologyLayout::deviceAt(double x, double y) const
{
    const std::int32_t node = nodeAt(x, y);
    if (node < 0)
        return -1;
    for (std::int32_t place = 0; place < devicesOf(node); ++place) {
        const TopologyBox tile = device(node * m_perNode + place);
        const TopologyBox both{
            tile.x, tile.y - m_metrics.linkHeight, tile.width, tile.height + m_metrics.linkHeight};
        if (both.contains(x, y))
            return node * m_perNode + place;
    }
    return -1;
}

std::int32_t TopologyLayout::nodeHeadAt(double x, double y) const
{
    const std::int32_t node = hasNetwork() ? nodeAt(x, y) : -1;
    if (node < 0)
        return -1;
    const TopologyBox box = this->node(node);
    const TopologyBox head{box.x, box.y - m_metrics.linkHeight, box.width,
        m_metrics.linkHeight + m_metrics.lineHeight + kSwitchHeight};
    return head.contains(x, y) ? node : -1;
}

} // namespace planloom
