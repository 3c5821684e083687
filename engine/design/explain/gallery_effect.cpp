#include "engine/design/explain/gallery_effect.h"

#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/design/gallery_folder.h"
#include "engine/graph/shape.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

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

/// What stands in the way of cutting an operator `parts` ways; where it is no number, that no row does.
std::pair<std::string, bool> whyWhole(const Operator &op, std::int32_t parts)
{
    std::string undivided;
    std::string divided;
    for (const std::int32_t identifier : splittableDimensions(op.annotation)) {
        const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(identifier)];
        if (dimension.size < 2)
            continue;
        const std::int64_t next = (dimension.size + parts - 1) / parts * parts;
        std::string &list = next == dimension.size ? divided : undivided;
        list += (list.empty() ? "" : ", ") + dimension.name + "=" + std::to_string(dimension.size);
        if (next != dimension.size)
            list += " (" + std::to_string(next) + " would do)";
    }
    if (!undivided.empty())
        return {std::to_string(parts) + " does not divide " + undivided, true};
    if (!divided.empty())
        return {"no row cuts " + divided + ", and it follows nothing that does", false};
    return {"it has no dimension that may be cut", false};
}

/// A name with a star in place of each number: operators of all layers share it.
std::string patternOf(const std::string &name)
{
    std::string pattern;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (!isDigit(name[i]) || (i > 0 && std::isalpha(static_cast<unsigned char>(name[i - 1])))) {
            pattern += name[i];
            continue;
        }
        pattern += '*';
        while (i + 1 < name.size() && isDigit(name[i + 1]))
            ++i;
    }
    return pattern;
}

/// Whether a split cuts a weight that the operator reads.
bool cutsWeight(const Graph &graph, const Operator &op, const Split &split)
{
    for (std::size_t i = 0; i < op.inputs.size() && split.kind == SplitKind::Dimension; ++i)
        if (const TensorId input = op.inputs[i]; input && graph.at(input).role == TensorRole::Weight
            && i < op.annotation.inputs.size() && mentions(op.annotation.inputs[i], split.dimension))
            return true;
    return false;
}

} // namespace

std::vector<UncutWeights> uncutWeights(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    std::int64_t all = 0;
    std::set<std::string> cutting; // axes that cut weights at all
    std::map<std::pair<std::string, std::string>, UncutWeights> groups; // by axis and pattern
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const std::int64_t bytes = op.direction == Direction::Forward ? weightBytes(graph, op) : 0;
        if (bytes == 0)
            continue;
        all += bytes;
        for (const Split &split : plan.decisions[i].partition.splits) {
            if (split.axis.empty())
                continue;
            if (cutsWeight(graph, op, split))
                cutting.insert(split.axis);
            if (split.kind != SplitKind::Replicate)
                continue;
            UncutWeights &group = groups[{split.axis, patternOf(op.name)}];
            if (group.operators.empty()) {
                group.axis = split.axis;
                std::tie(group.why, group.isIndivisible) = whyWhole(op, split.parts);
            }
            group.operators.push_back({static_cast<std::int32_t>(i)});
            group.bytes += Bytes{bytes};
        }
    }
    const std::int64_t share = all / std::max(plan.deviceCount, 1); // of weights, that a device would hold
    std::vector<UncutWeights> uncut;
    for (auto &[key, group] : groups) {
        if (!cutting.contains(key.first))
            continue;
        group.name = group.operators.size() == 1 ? graph.at(group.operators.front()).name
                                                 : std::to_string(group.operators.size()) + " " + key.second;
        group.matters = group.bytes.count >= share / (group.isIndivisible ? 20 : 2);
        uncut.push_back(std::move(group));
    }
    std::stable_sort(uncut.begin(), uncut.end(),
        [](const UncutWeights &a, const UncutWeights &b) { return a.bytes > b.bytes; });
    return uncut;
}

std::string wordsOf(const UncutWeights &uncut)
{
    return uncut.name + " over " + uncut.axis + " (" + formatBytes(uncut.bytes) + "): " + uncut.why;
}

std::vector<std::string> uncutWords(const Plan &plan)
{
    constexpr std::size_t kMostNamed = 3;
    std::vector<std::string> words;
    std::map<std::string, std::pair<std::int64_t, Bytes>> others; // by axis
    for (const UncutWeights &uncut : uncutWeights(plan)) {
        if (uncut.matters && words.size() < kMostNamed) {
            words.push_back(wordsOf(uncut));
        } else {
            auto &[count, bytes] = others[uncut.axis];
            count += static_cast<std::int64_t>(uncut.operators.size());
            bytes += uncut.bytes;
        }
    }
    for (const auto &[axis, rest] : others)
        words.push_back(counted(rest.first, words.empty() ? "operator" : "other") + " with weights over "
            + axis + " (" + formatBytes(rest.second) + " together)");
    return words;
}

Result<GalleryEffect> effectOf(const PlanRequest &request, const std::stop_token &stop)
{
    PlanRequest wanted = request;
    wanted.upTo = PlanGrade::Timed;
    wanted.allowsCopies = true; // a preview says what they are
    TRY(const PlanAnswerSnapshot answer, planOf(wanted, stop));
    GalleryEffect effect;
    effect.entry = request.gallery.substr(0, request.gallery.find(':'));
    TRY(effect.values, galleryValues(request.gallery, findGallery(), *request.model, answer->deviceCount));
    effect.rows = answer->table.table();
    effect.summary = answer->summary;
    effect.memory = Bytes{static_cast<std::int64_t>(leastMemory(answer->cluster))};
    effect.fits = effect.summary.largestPeak.count <= effect.memory.count;
    effect.uncut = uncutWords(*answer->plan);
    effect.copied = copiedWords(answer->copied, *answer->execution->graph);
    effect.isCopied = answer->copied.share > kMostCopies;
    return effect;
}

} // namespace planloom
