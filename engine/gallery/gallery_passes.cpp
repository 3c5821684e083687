#include "engine/gallery/gallery_passes.h"

#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/gallery_rows.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

std::size_t placeOf(OperatorId op)
{
    return static_cast<std::size_t>(op.index);
}

/// Forward operators that read the weight, ascending.
std::vector<OperatorId> readersOf(const SelectorIndex &index, std::size_t weight)
{
    std::vector<OperatorId> readers = index.uses().consumers[weight];
    std::erase_if(
        readers, [&](OperatorId op) { return index.graph().at(op).direction != Direction::Forward; });
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    return readers;
}

/// Forward operators that make what `op` reads.
template<typename Use> void forProducers(const SelectorIndex &index, OperatorId op, Use use)
{
    for (const TensorId input : index.graph().at(op).inputs)
        if (input)
            for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)])
                if (index.graph().at(maker).direction == Direction::Forward)
                    use(maker);
}

/// What operators without a number have: the most of those that they read, else the least of their readers.
void spread(const SelectorIndex &index, std::vector<std::int32_t> &number,
    const std::function<bool(OperatorId, OperatorId)> &together)
{
    const Graph &graph = index.graph();
    for (std::size_t i = 0; i < number.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction == Direction::Forward && number[i] < 0)
            forProducers(index, op, [&](OperatorId maker) {
                if (together(op, maker))
                    number[i] = std::max(number[i], number[placeOf(maker)]);
            });
    }
    const std::vector<std::int32_t> known = number;
    for (std::size_t i = number.size(); i-- > 0;) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction == Direction::Forward && number[i] >= 0)
            forProducers(index, op, [&](OperatorId maker) {
                std::int32_t &theirs = number[placeOf(maker)];
                if (together(op, maker) && known[placeOf(maker)] < 0)
                    theirs = theirs < 0 ? number[i] : std::min(theirs, number[i]);
            });
    }
}

} // namespace

std::optional<Passes> findPasses(const SelectorIndex &index)
{
    const Graph &graph = index.graph();
    std::map<std::size_t, std::size_t> weights; // by how many read them
    std::size_t all = 0;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        if (const auto readers =
                graph.tensors[t].role == TensorRole::Weight ? readersOf(index, t) : std::vector<OperatorId>{};
            !readers.empty()) {
            ++weights[readers.size()];
            ++all;
        }
    const auto usual = std::max_element(
        weights.begin(), weights.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    if (usual == weights.end() || usual->first < 2 || 2 * usual->second < all)
        return std::nullopt;
    Passes passes;
    passes.count = static_cast<std::int32_t>(usual->first);
    passes.passOf.assign(graph.operators.size(), -1);
    passes.likeOf.assign(graph.operators.size(), OperatorId{});
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        if (graph.tensors[t].role != TensorRole::Weight)
            continue;
        const auto readers = readersOf(index, t);
        for (std::size_t k = 0; k < readers.size() && readers.size() <= usual->first; ++k) {
            passes.passOf[placeOf(readers[k])] = static_cast<std::int32_t>(usual->first - readers.size() + k);
            passes.likeOf[placeOf(readers[k])] = readers.back();
        }
    }
    spread(index, passes.passOf, [](OperatorId, OperatorId) { return true; });
    // One behind the other: nothing reads what a later pass makes.
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        bool behind = true;
        if (graph.operators[i].direction == Direction::Forward)
            forProducers(index, op, [&](OperatorId maker) {
                behind = behind && passes.passOf[placeOf(maker)] <= passes.passOf[i];
            });
        if (!behind)
            return std::nullopt;
        if (graph.operators[i].direction == Direction::Forward && passes.passOf[i] < 0)
            passes.passOf[i] = 0;
    }
    return passes;
}

Error noPasses()
{
    return {ErrorCode::InvalidInput,
        "the model does not run several times with the same weights: most of them are read once",
        "use pipeline", "gallery"};
}

Result<void> appendPasses(const SelectorIndex &index, const std::string &axis, std::int32_t ranks,
    const OperatorCosts &costs, ConstraintTable &table)
{
    const auto passes = findPasses(index);
    if (!passes)
        return noPasses();
    const Graph &graph = index.graph();
    const std::int32_t last = passes->count - 1;
    std::vector<std::int64_t> cost(graph.operators.size(), 0);
    std::vector<bool> outside(graph.operators.size(), true);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (graph.operators[i].direction != Direction::Forward)
            continue;
        const std::int64_t own = costs.nanosecondsOf(op);
        outside[i] = passes->passOf[i] != last;
        const OperatorId like = passes->likeOf[i];
        cost[outside[i] && like ? placeOf(like) : i] += own;
    }
    TRY(const auto stages, pipelineStages(index, ranks, StageMeasure{.nanoseconds = cost}, outside));
    std::vector<std::int32_t> position(graph.operators.size(), -1);
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (const OperatorId op : stages[s])
            position[placeOf(op)] = static_cast<std::int32_t>(s);
    for (std::size_t i = 0; i < position.size(); ++i)
        if (outside[i] && passes->likeOf[i])
            position[i] = position[placeOf(passes->likeOf[i])];
    spread(index, position,
        [&](OperatorId a, OperatorId b) { return passes->passOf[placeOf(a)] == passes->passOf[placeOf(b)]; });
    std::map<std::int32_t, std::vector<OperatorId>> members; // by stage
    for (std::size_t i = 0; i < position.size(); ++i)
        if (graph.operators[i].direction == Direction::Forward)
            members[passes->passOf[i] * ranks + std::max(position[i], 0)].push_back(
                {static_cast<std::int32_t>(i)});
    for (const auto &[stage, operators] : members) {
        const Selector selector = stageSelector(index, operators);
        table.rows.push_back(templateRow(selector, OpAssignRule{{}, {{axis, stage % ranks}}}));
        table.rows.push_back(templateRow(selector, StageRule{stage}));
    }
    return {};
}

} // namespace planloom
