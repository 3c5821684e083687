#include "engine/schedule/search/schedule_picture.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

namespace planloom {

namespace {

constexpr double kWidth = 1200; ///< Of the lanes, in pixels, as all below.
constexpr double kLabel = 90;
constexpr double kLane = 26;
constexpr double kGap = 4;
constexpr double kTextRoom = 16; ///< A box narrower than this has no number.

/// Told apart also without colour vision (Okabe and Ito's palette, lightened for dark text).
constexpr std::array<const char *, 7> kColours{
    "#8ecdf0", "#f4c06a", "#7fd1b5", "#e6a4c8", "#f0e27a", "#e89a6c", "#b9b9c9"};

std::string escapedXml(const std::string &text)
{
    std::string escaped;
    for (const char c : text) {
        switch (c) {
        case '&':
            escaped += "&amp;";
            break;
        case '<':
            escaped += "&lt;";
            break;
        case '>':
            escaped += "&gt;";
            break;
        case '"':
            escaped += "&quot;";
            break;
        default:
            escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return escaped;
}

} // namespace

std::string lanesToSvg(const std::vector<std::string> &lanes, const std::vector<PictureBox> &boxes)
{
    std::map<std::string, const char *> colours; // by kind
    for (const PictureBox &box : boxes)
        if (colours.try_emplace(box.kind, nullptr).second)
            colours[box.kind] = kColours[(colours.size() - 1) % kColours.size()];
    std::int64_t first = boxes.empty() ? 0 : boxes.front().start;
    std::int64_t last = first + 1;
    for (const PictureBox &box : boxes) {
        first = std::min(first, box.start);
        last = std::max(last, box.end);
    }
    const double scale = kWidth / static_cast<double>(last - first);
    const auto topOf = [](std::size_t lane) { return kGap + static_cast<double>(lane) * (kLane + kGap); };
    const double bottom = topOf(lanes.size());
    std::ostringstream svg;
    svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kLabel + kWidth + kGap << "\" height=\""
        << bottom + kLane << "\" font-family=\"sans-serif\" font-size=\"11\">\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
        svg << "<text x=\"4\" y=\"" << topOf(lane) + kLane * 0.65 << "\">" << escapedXml(lanes[lane])
            << "</text>\n<rect x=\"" << kLabel << "\" y=\"" << topOf(lane) << "\" width=\"" << kWidth
            << "\" height=\"" << kLane << "\" fill=\"#f2f2f4\"/>\n";
    for (const PictureBox &box : boxes) {
        if (box.end == box.start)
            continue;
        const double x = kLabel + static_cast<double>(box.start - first) * scale;
        const double width = static_cast<double>(box.end - box.start) * scale;
        svg << "<g><title>" << escapedXml(box.title) << ": " << box.start << " to " << box.end
            << "</title><rect x=\"" << x << "\" y=\"" << topOf(box.lane) << "\" width=\"" << width
            << "\" height=\"" << kLane << "\" fill=\"" << colours.at(box.kind)
            << "\" stroke=\"#444\" stroke-width=\"0.5\"/>";
        if (width >= kTextRoom)
            svg << "<text x=\"" << x + width / 2 << "\" y=\"" << topOf(box.lane) + kLane * 0.65
                << "\" text-anchor=\"middle\">" << escapedXml(box.label) << "</text>";
        svg << "</g>\n";
    }
    double x = kLabel;
    for (const auto &[kind, colour] : colours) {
        const std::string words = kind.empty() ? "block" : kind;
        svg << "<rect x=\"" << x << "\" y=\"" << bottom + 4 << "\" width=\"12\" height=\"12\" fill=\""
            << colour << "\"/><text x=\"" << x + 16 << "\" y=\"" << bottom + 14 << "\">" << escapedXml(words)
            << "</text>\n";
        x += 40 + 7 * static_cast<double>(words.size());
    }
    svg << "</svg>\n";
    return svg.str();
}

std::string scheduleToSvg(const Placement &placement, const std::vector<BlockStart> &starts)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> lanes; // by device and queue
    for (const PlacementBlock &block : placement.blocks)
        for (const std::int32_t device : block.devices)
            lanes[{device, block.queue}] = 0;
    std::vector<std::string> names;
    for (auto &[lane, index] : lanes) {
        index = names.size();
        names.push_back("device " + std::to_string(lane.first)
            + (lane.second != 0 ? " / " + std::to_string(lane.second) : ""));
    }
    std::vector<PictureBox> boxes;
    for (const BlockStart &run : starts) {
        const PlacementBlock &block = placement.blocks[at(run.block)];
        const std::string microBatch = block.once ? "" : std::to_string(run.microBatch);
        for (const std::int32_t device : block.devices)
            boxes.push_back({lanes.at({device, block.queue}), run.start, run.start + block.time, block.kind,
                microBatch, wordsOf(block) + (block.once ? "" : ", micro-batch " + microBatch)});
    }
    return lanesToSvg(names, boxes);
}

} // namespace planloom
