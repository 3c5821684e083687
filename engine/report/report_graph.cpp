#include "engine/report/report_graph.h"

#include "engine/base/words.h"
#include "engine/layered/layered_layout.h"
#include "engine/report/html_text.h"
#include "engine/table/layers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace planloom {

namespace {

constexpr double kLetterWidth = 6.1; ///< Pixels of a letter of 11 pixels, on average and a little more.
constexpr double kBoxHeight = 30;
constexpr double kLeastWidth = 64;
constexpr std::size_t kMostLetters = 30;
constexpr double kMargin = 14;

/// An operator, or all of a layer.
struct Box {
    std::string label{};
    std::string kind{};
    std::vector<OperatorId> operators{};
    bool isLayer = false;
};

struct Picture {
    std::vector<Box> boxes{};
    std::set<std::pair<std::int32_t, std::int32_t>> edges{};
};

/// The end of a long name says more than its begin.
std::string shortened(const std::string &text)
{
    if (text.size() <= kMostLetters)
        return text;
    std::size_t begin = text.size() - kMostLetters + 3;
    while (begin < text.size()
        && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80) // within a character
        ++begin;
    return "..." + text.substr(begin);
}

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

Picture pictureOf(const Graph &graph)
{
    std::size_t forward = 0;
    while (forward < graph.operators.size() && graph.operators[forward].direction == Direction::Forward)
        ++forward;
    const Layers layers = findLayers(graph);
    const bool folds = forward > kMostDrawnOperators;
    Picture picture;
    std::vector<std::int32_t> boxOf(forward, -1);
    std::map<std::int32_t, std::int32_t> boxOfLayer;
    for (std::size_t i = 0; i < forward; ++i) {
        const Operator &op = graph.operators[i];
        const std::int32_t layer = op.scope ? layers.ofScope[at(op.scope)] : -1;
        auto box = static_cast<std::int32_t>(picture.boxes.size());
        if (folds && layer > 0) {
            const auto [found, isNew] = boxOfLayer.try_emplace(layer, box);
            if (isNew)
                picture.boxes.push_back({.label = pathOf(graph, layers.scopes[at(layer)]), .isLayer = true});
            box = found->second;
        } else {
            picture.boxes.push_back({.label = op.name, .kind = typeNameOf(op)});
        }
        boxOf[i] = box;
        picture.boxes[at(box)].operators.push_back({static_cast<std::int32_t>(i)});
    }
    std::vector<std::int32_t> makers(graph.tensors.size(), -1);
    for (std::size_t i = 0; i < forward; ++i) {
        for (const TensorId input : graph.operators[i].inputs)
            if (input && makers[at(input)] >= 0 && makers[at(input)] != boxOf[i])
                picture.edges.emplace(makers[at(input)], boxOf[i]);
        for (const TensorId output : graph.operators[i].outputs)
            if (output)
                makers[at(output)] = boxOf[i];
    }
    return picture;
}

/// By operator: the stage whose segments run it; invalid where none does.
std::vector<StageId> stagesOf(const ExecutionPlan &plan)
{
    std::vector<StageId> stages(plan.graph->operators.size());
    for (const DeviceProgram &program : plan.devices)
        for (const Segment &segment : program.segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.kind == InstructionKind::Kernel && instruction.op)
                    stages[at(instruction.op)] = segment.stage;
    return stages;
}

/// "stage 1, devices 2-3"
std::string runsOn(const ExecutionPlan &plan, const std::vector<StageId> &stages, const Box &box)
{
    std::set<std::int32_t> devices;
    std::set<std::int32_t> found;
    for (const OperatorId op : box.operators) {
        if (at(op) < plan.placement.size())
            for (const DeviceId device : plan.placement[at(op)])
                devices.insert(plan.units.deviceOf(0, device).index);
        if (stages[at(op)])
            found.insert(stages[at(op)].index);
    }
    const auto ranges = [](const std::set<std::int32_t> &set) {
        return rangesOf(std::vector<std::int32_t>(set.begin(), set.end()), 3);
    };
    std::string words;
    if (plan.stageCount > 1 && !found.empty())
        words = "stage " + ranges(found) + ", ";
    return devices.empty() ? words + "no device"
                           : words + (devices.size() == 1 ? "device " : "devices ") + ranges(devices);
}

LayeredGraph layeredOf(const Picture &picture, const std::vector<std::string> &places)
{
    LayeredGraph graph;
    for (std::size_t b = 0; b < picture.boxes.size(); ++b) {
        const double letters =
            static_cast<double>(std::max(shortened(picture.boxes[b].label).size(), places[b].size()));
        graph.nodes.push_back(
            {.width = std::max(kLeastWidth, letters * kLetterWidth + 14), .height = kBoxHeight});
    }
    for (const auto &[from, to] : picture.edges)
        graph.edges.push_back({.from = from, .to = to});
    graph.wrapAspect = 2.2; // of a page
    graph.wrapHeight = 900;
    return graph;
}

/// Straight where it passes a rank, a curve between ranks.
std::string pathOf(const LayeredRoute &route)
{
    const auto point = [](const LayoutPoint &p) { return number(p.x) + " " + number(p.y); };
    std::string path = "M" + point(route.points.front());
    for (std::size_t i = 1; i < route.points.size(); ++i) {
        const LayoutPoint &from = route.points[i - 1];
        const LayoutPoint &to = route.points[i];
        const double middle = (from.y + to.y) / 2;
        path += i % 2 == 1 && from.x == to.x
            ? "L" + point(to)
            : "C" + point({from.x, middle}) + " " + point({to.x, middle}) + " " + point(to);
    }
    return path;
}

/// Both ends of an edge that is not drawn whole.
std::string stubOf(const LayeredLayout &layout, const LayeredEdge &edge)
{
    const LayoutPoint &from = layout.centres[at(edge.from)];
    const LayoutPoint &to = layout.centres[at(edge.to)];
    return "M" + number(from.x + edge.fromOffset) + " " + number(from.y + kBoxHeight / 2) + "v9M"
        + number(to.x + edge.toOffset) + " " + number(to.y - kBoxHeight / 2) + "v-9";
}

std::string edgesSvg(const LayeredGraph &graph, const LayeredLayout &layout)
{
    std::string svg;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const LayeredRoute &route = layout.routes[e];
        if (route.kind == EdgeRoute::Loop)
            continue;
        const bool isWhole = route.kind == EdgeRoute::Routed && route.points.size() >= 2;
        svg += isWhole ? "<path d=\"" + pathOf(route) + "\"/>\n"
                       : "<path class=\"stub\" d=\"" + stubOf(layout, graph.edges[e]) + "\"/>\n";
    }
    return svg;
}

} // namespace

std::string graphSvg(const ExecutionPlan &plan, const std::set<OperatorId> &marked)
{
    const Picture picture = pictureOf(*plan.graph);
    if (picture.boxes.empty() || picture.boxes.size() > kMostDrawnBoxes)
        return {};
    const std::vector<StageId> stages = stagesOf(plan);
    std::vector<std::string> places;
    for (const Box &box : picture.boxes)
        places.push_back(runsOn(plan, stages, box));
    const LayeredGraph graph = layeredOf(picture, places);
    const LayeredLayout layout = wrapped(graph, layeredLayout(graph));
    std::string svg =
        "<svg class=\"graph\" tabindex=\"0\" role=\"img\" aria-label=\"operators of the model\" viewBox=\""
        + number(-kMargin) + " " + number(-kMargin) + " " + number(layout.width + 2 * kMargin) + " "
        + number(layout.height + 2 * kMargin) + "\" preserveAspectRatio=\"xMidYMid meet\">\n";
    svg += edgesSvg(graph, layout);
    for (std::size_t b = 0; b < picture.boxes.size(); ++b) {
        const Box &box = picture.boxes[b];
        const bool differs = std::any_of(
            box.operators.begin(), box.operators.end(), [&](OperatorId op) { return marked.count(op) > 0; });
        const LayoutPoint &centre = layout.centres[b];
        const double width = graph.nodes[b].width;
        const std::string what =
            box.isLayer ? counted(static_cast<std::int64_t>(box.operators.size()), "operator") : box.kind;
        svg += std::string("<g class=\"node") + (box.isLayer ? " layer" : "") + (differs ? " differs" : "")
            + "\" data-tip=\"" + htmlText(box.label + "\n" + what + "\n" + places[b]) + "\"><rect x=\""
            + number(centre.x - width / 2) + "\" y=\"" + number(centre.y - kBoxHeight / 2) + "\" width=\""
            + number(width) + "\" height=\"" + number(kBoxHeight) + "\" rx=\"5\"/><text x=\""
            + number(centre.x) + "\" y=\"" + number(centre.y - 2) + "\">" + htmlText(shortened(box.label))
            + "</text><text class=\"under\" x=\"" + number(centre.x) + "\" y=\"" + number(centre.y + 10)
            + "\">" + htmlText(places[b]) + "</text></g>\n";
    }
    return svg + "</svg>\n";
}

} // namespace planloom
