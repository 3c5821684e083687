#include "engine/design/gallery_effect.h"

#include "engine/base/words.h"
#include "engine/design/gallery_folder.h"
#include "engine/graph/shape.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

/// Bytes of the weights that a forward operator reads.
std::int64_t weightBytes(const Graph &graph, const Operator &op)
{
    std::int64_t bytes = 0;
    for (const TensorId input : op.inputs)
        if (input && graph.at(input).role == TensorRole::Weight)
            bytes += elementCount(graph.at(input).type.shape) * sizeOf(graph.at(input).type.dataType);
    return bytes;
}

/// Why an operator is not cut `parts` ways.
std::string whyWhole(const Operator &op, std::int32_t parts)
{
    std::string undivided;
    std::string divided;
    for (const std::int32_t identifier : splittableDimensions(op.annotation)) {
        const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(identifier)];
        if (dimension.size < 2)
            continue;
        std::string &list = dimension.size % parts == 0 ? divided : undivided;
        list += (list.empty() ? "" : ", ") + dimension.name + "=" + std::to_string(dimension.size);
    }
    std::string why;
    if (!undivided.empty())
        why = std::to_string(parts) + " does not divide " + undivided;
    if (!divided.empty())
        why += (why.empty() ? "" : "; ") + ("no row cuts " + divided + ", and it follows nothing that does");
    return why.empty() ? "it has no dimension that may be cut" : why;
}

struct Whole {
    std::int32_t parts = 0;
    std::int32_t operators = 0;
    std::int32_t all = 0;
    std::int64_t bytes = 0; ///< Of the largest.
    const Operator *largest = nullptr;
};

} // namespace

std::vector<std::string> uncutWords(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    std::map<std::string, Whole> byAxis;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        const std::int64_t bytes = weightBytes(graph, op);
        if (bytes == 0)
            continue;
        for (const Split &split : plan.decisions[i].partition.splits) {
            if (split.axis.empty())
                continue;
            Whole &whole = byAxis[split.axis];
            ++whole.all;
            if (split.kind != SplitKind::Replicate)
                continue;
            whole.parts = split.parts;
            ++whole.operators;
            if (bytes > whole.bytes) {
                whole.bytes = bytes;
                whole.largest = &op;
            }
        }
    }
    std::vector<std::string> words;
    for (const auto &[axis, whole] : byAxis)
        if (whole.operators > 0)
            words.push_back("over " + axis + ": " + std::to_string(whole.operators) + " of "
                + counted(whole.all, "operator") + " with weights " + (whole.operators == 1 ? "is" : "are")
                + " not cut, the largest '" + whole.largest->name + "' (" + formatBytes(Bytes{whole.bytes})
                + "): " + whyWhole(*whole.largest, whole.parts));
    return words;
}

Result<GalleryEffect> effectOf(const PlanRequest &request, const std::stop_token &stop)
{
    PlanRequest wanted = request;
    wanted.upTo = PlanGrade::Timed;
    TRY(const PlanAnswerSnapshot answer, planOf(wanted, stop));
    GalleryEffect effect;
    effect.entry = request.gallery.substr(0, request.gallery.find(':'));
    TRY(effect.values, galleryValues(request.gallery, findGallery(), *request.model, answer->deviceCount));
    effect.rows = answer->table.table();
    effect.summary = answer->summary;
    effect.memory = Bytes{static_cast<std::int64_t>(leastMemory(answer->cluster))};
    effect.fits = effect.summary.largestPeak.count <= effect.memory.count;
    effect.uncut = uncutWords(*answer->plan);
    return effect;
}

} // namespace planloom
