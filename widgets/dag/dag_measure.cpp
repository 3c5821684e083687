#include "widgets/dag/dag_measure.h"

#include "engine/base/ids.h"
#include "widgets/common/format.h"
#include "widgets/scene/timeline_scene.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::vector<std::int32_t> shortestPath(const DagOutline &outline, const std::vector<std::int32_t> &from,
    const std::vector<std::int32_t> &to, const std::stop_token &stop)
{
    std::vector<std::int32_t> before(outline.units.size(), -2);
    std::vector<char> isEnd(outline.units.size(), 0);
    for (const auto unit : to)
        isEnd[at(unit)] = 1;
    std::vector<std::int32_t> open;
    for (const auto unit : from) {
        if (before[at(unit)] == -2) {
            before[at(unit)] = -1;
            open.push_back(unit);
        }
    }
    std::int32_t found = -1;
    for (std::size_t i = 0; i < open.size() && found < 0 && !stop.stop_requested(); ++i) {
        const auto first = std::lower_bound(outline.edges.begin(), outline.edges.end(), open[i],
            [](const OutlineEdge &edge, std::int32_t wanted) { return edge.from < wanted; });
        for (auto edge = first; edge != outline.edges.end() && edge->from == open[i] && found < 0; ++edge) {
            if (before[at(edge->to)] != -2)
                continue;
            before[at(edge->to)] = open[i];
            open.push_back(edge->to);
            if (isEnd[at(edge->to)] != 0)
                found = edge->to;
        }
    }
    std::vector<std::int32_t> path;
    for (std::int32_t unit = found; unit >= 0; unit = before[at(unit)])
        path.push_back(unit);
    std::reverse(path.begin(), path.end());
    return path;
}

/// Tensors that flow from one unit's operator to the next one's.
std::vector<TensorId> tensorsAlong(const DagOutline &outline, const std::vector<std::int32_t> &path)
{
    std::vector<TensorId> tensors;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        const auto &outputs = outline.graph->at(outline.units[at(path[i])].op).outputs;
        for (const auto input : outline.graph->at(outline.units[at(path[i + 1])].op).inputs) {
            if (input.valid() && std::find(outputs.begin(), outputs.end(), input) != outputs.end())
                tensors.push_back(input);
        }
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    return tensors;
}

void addCosts(DagMeasure &measure, const DagOutline &outline, const TimelineScene &scene)
{
    const auto tensors = tensorsAlong(outline, measure.path);
    std::vector<OperatorId> operators;
    for (const auto unit : measure.path)
        operators.push_back(outline.units[at(unit)].op);
    std::sort(operators.begin(), operators.end());
    // By operator or tensor, device: a step's time.
    std::map<std::tuple<bool, std::int32_t, std::int32_t>, std::int64_t> times;
    const auto &spans = scene.timeline->spans;
    for (const auto row : rowsOf(scene, operators)) {
        const Instruction *instruction = scene.findInstruction(row);
        if (instruction == nullptr)
            continue;
        const std::int32_t device = spans.device[row];
        if (instruction->kind == InstructionKind::Kernel) {
            times[{false, instruction->op.index, device}] += spans.duration[row];
            continue;
        }
        const auto &buffers = scene.plan->devices[at(device)].buffers;
        const auto &used = instruction->inputs.empty() ? instruction->outputs : instruction->inputs;
        if (!isCommunication(instruction->kind) || used.empty() || used.front() < 0)
            continue;
        const auto &buffer = buffers[at(used.front())];
        if (!std::binary_search(tensors.begin(), tensors.end(), buffer.tensor))
            continue;
        times[{true, buffer.tensor.index, device}] += spans.duration[row];
        if (instruction->kind != InstructionKind::Recv) // counted where it is sent
            measure.moved.count += sizeOf(buffer).count;
    }
    std::map<std::pair<bool, std::int32_t>, std::int64_t> longest;
    for (const auto &[key, time] : times) {
        auto &most = longest[{std::get<0>(key), std::get<1>(key)}];
        most = std::max(most, time);
    }
    for (const auto &entry : longest)
        measure.seconds += static_cast<double>(entry.second) * 1e-9;
    measure.planned = true;
}

} // namespace

DagMeasure measurePath(const DagOutline &outline, const TimelineScene *scene,
    const std::vector<std::int32_t> &from, const std::vector<std::int32_t> &to, const std::stop_token &stop)
{
    DagMeasure measure;
    measure.path = shortestPath(outline, from, to, stop);
    if (measure.path.empty()) {
        measure.path = shortestPath(outline, to, from, stop);
        measure.backwards = !measure.path.empty();
    }
    if (!measure.path.empty() && scene != nullptr && scene->plan->graph == outline.graph
        && !stop.stop_requested())
        addCosts(measure, outline, *scene);
    return measure;
}

QString textOf(const DagMeasure &measure)
{
    const auto tr = [](const char *text, int count = -1) {
        return QCoreApplication::translate("DagView", text, nullptr, count);
    };
    if (measure.path.empty())
        return tr("no data flows between them");
    QString text = measure.hops() == 1 ? tr("1 hop") : tr("%1 hops").arg(measure.hops());
    if (measure.backwards)
        text += QStringLiteral(" ") + tr("the other way");
    if (measure.planned) {
        text +=
            QStringLiteral(" · ") + tr("%1 moved").arg(QString::fromStdString(formatBytes(measure.moved)));
        text += QStringLiteral(" · ")
            + tr("%1 a step").arg(QString::fromStdString(formatSeconds(measure.seconds)));
    }
    return text;
}

} // namespace planloom
