#include "engine/search/schedule/schedule_picture.h"

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

std::string scheduleToSvg(const Placement &placement, const std::vector<BlockStart> &starts)
{
    std::map<std::pair<std::int32_t, std::int32_t>, double> lanes; // by device and queue: their tops
    std::map<std::string, const char *> colours; // by kind
    for (const PlacementBlock &block : placement.blocks) {
        for (const std::int32_t device : block.devices)
            lanes[{device, block.queue}] = 0;
        if (colours.try_emplace(block.kind, nullptr).second)
            colours[block.kind] = kColours[(colours.size() - 1) % kColours.size()];
    }
    double top = kGap;
    for (auto &[lane, y] : lanes) {
        y = top;
        top += kLane + kGap;
    }
    const double scale =
        kWidth / static_cast<double>(std::max<std::int64_t>(figuresOf(placement, starts).makespan, 1));
    std::int64_t first = starts.empty() ? 0 : starts.front().start;
    for (const BlockStart &run : starts)
        first = std::min(first, run.start);
    std::ostringstream svg;
    svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kLabel + kWidth + kGap << "\" height=\""
        << top + kLane << "\" font-family=\"sans-serif\" font-size=\"11\">\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    for (const auto &[lane, y] : lanes) {
        svg << "<text x=\"4\" y=\"" << y + kLane * 0.65 << "\">device " << lane.first;
        if (lane.second != 0)
            svg << " / " << lane.second;
        svg << "</text>\n<rect x=\"" << kLabel << "\" y=\"" << y << "\" width=\"" << kWidth << "\" height=\""
            << kLane << "\" fill=\"#f2f2f4\"/>\n";
    }
    for (const BlockStart &run : starts) {
        const PlacementBlock &block = placement.blocks[at(run.block)];
        const double x = kLabel + static_cast<double>(run.start - first) * scale;
        const double width = static_cast<double>(block.time) * scale;
        for (const std::int32_t device : block.devices) {
            const double y = lanes.at({device, block.queue});
            svg << "<g><title>" << escapedXml(wordsOf(block)) << ", micro-batch " << run.microBatch << ": "
                << run.start << " to " << run.start + block.time << "</title><rect x=\"" << x << "\" y=\""
                << y << "\" width=\"" << width << "\" height=\"" << kLane << "\" fill=\""
                << colours.at(block.kind) << "\" stroke=\"#444\" stroke-width=\"0.5\"/>";
            if (width >= kTextRoom)
                svg << "<text x=\"" << x + width / 2 << "\" y=\"" << y + kLane * 0.65
                    << "\" text-anchor=\"middle\">" << run.microBatch << "</text>";
            svg << "</g>\n";
        }
    }
    double x = kLabel;
    for (const auto &[kind, colour] : colours) {
        const std::string words = kind.empty() ? "block" : kind;
        svg << "<rect x=\"" << x << "\" y=\"" << top + 4 << "\" width=\"12\" height=\"12\" fill=\"" << colour
            << "\"/><text x=\"" << x + 16 << "\" y=\"" << top + 14 << "\">" << escapedXml(words)
            << "</text>\n";
        x += 40 + 7 * static_cast<double>(words.size());
    }
    svg << "</svg>\n";
    return svg.str();
}

} // namespace planloom
