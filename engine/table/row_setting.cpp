#include "engine/table/row_setting.h"

#include "engine/base/words.h"
#include "engine/graph/annotation/inner_identifier.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace planloom {

namespace {

/// The leading identifier at a position of one tensor; -1 if the tensor has no such dimension.
Result<std::int32_t> leadingAt(const Operator &op, const std::vector<TensorTerms> &tensors,
    const DimensionRef &ref, const std::vector<TensorId> &ids, const Graph &graph)
{
    if (ref.slot >= static_cast<std::int32_t>(tensors.size()))
        return -1;
    const auto slot = static_cast<std::size_t>(ref.slot);
    const TensorTerms &terms = tensors[slot];
    const auto rank = static_cast<std::int32_t>(terms.terms.size());
    const std::int32_t dimension = ref.dimension < 0 ? ref.dimension + rank : ref.dimension;
    if (terms.opaque || slot >= ids.size() || !ids[slot].valid() || dimension < 0 || dimension >= rank)
        return -1;
    const auto factor = splittableFactor(op.annotation, terms.terms[static_cast<std::size_t>(dimension)]);
    if (factor)
        return *factor;
    std::string reason = op.annotationProblem;
    if (reason.empty()) {
        reason = graph.at(ids[slot]).type.shape[static_cast<std::size_t>(dimension)] == 1
            ? "it has size 1"
            : "the operator needs it whole: " + toString(op.annotation);
    }
    return Error{ErrorCode::InvalidInput,
        "operator '" + op.name + "' cannot be split at " + print(ref) + ": " + reason, "",
        "operator:" + op.name};
}

/// Whether the heads that `split` cuts of `id` are those of keys and values that several of its parts share:
/// an attention's query heads are cut into more parts than there are key heads.
bool sharesKeyHeads(const RowSetting &setting, OperatorId id, const Split &split)
{
    const DimensionClasses &classes = setting.index().dimensions();
    const auto headsOf = [&](OperatorId op, std::int32_t identifier) {
        return leadingWith(classes,
            classes.ofOperator[static_cast<std::size_t>(op.index)][static_cast<std::size_t>(identifier)],
            DimensionMeaning::Heads);
    };
    const DimensionClassId heads = headsOf(id, split.dimension);
    const Graph &graph = setting.graph();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.kind != OperatorKind::Attention || op.direction != Direction::Forward)
            continue;
        for (const std::int32_t identifier : splittableDimensions(op.annotation))
            if (innerOf(op.annotation, identifier) >= 0
                && headsOf({static_cast<std::int32_t>(i)}, identifier) == heads
                && dividesInto(op.annotation, identifier, split.parts))
                return true;
    }
    return false;
}

bool isProductByWeights(const Graph &graph, const Operator &op)
{
    return categoryOf(op.kind) == OperatorCategory::Product
        && std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id.valid() && graph.at(id).role == TensorRole::Weight; });
}

} // namespace

const MeshAxis *findAxis(const std::vector<MeshAxis> &mesh, std::string_view name)
{
    const std::size_t at = meshPosition(mesh, name);
    return at < mesh.size() ? &mesh[at] : nullptr;
}

std::size_t meshPosition(const std::vector<MeshAxis> &mesh, std::string_view axis)
{
    const auto found =
        std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis &each) { return each.name == axis; });
    return static_cast<std::size_t>(found - mesh.begin());
}

Result<std::int32_t> resolveDimension(const RowSetting &setting, OperatorId id, const DimensionRef &ref)
{
    const Operator &op = setting.graph().at(id);
    switch (ref.kind) {
    case DimensionRef::Kind::Identifier:
        return findDimension(op.annotation, ref.name).value_or(-1);
    case DimensionRef::Kind::Meaning:
        if (ref.meaning == DimensionMeaning::Batch)
            return setting.batchOf(id);
        return findMeant(setting.index().dimensions(), setting.graph(), id, ref.meaning).identifier;
    case DimensionRef::Kind::Input:
        return leadingAt(op, op.annotation.inputs, ref, op.inputs, setting.graph());
    case DimensionRef::Kind::Output:
        return leadingAt(op, op.annotation.outputs, ref, op.outputs, setting.graph());
    }
    return -1;
}

bool isBatch(const SplitStep &step)
{
    return step.kind == SplitKind::Dimension && step.dimension.kind == DimensionRef::Kind::Meaning
        && step.dimension.meaning == DimensionMeaning::Batch;
}

Result<bool> bindDimension(const RowSetting &setting, OperatorId id, const DimensionRef &ref, Split &split)
{
    TRY(split.dimension, resolveDimension(setting, id, ref));
    if (split.dimension < 0)
        return false;
    if (ref.kind != DimensionRef::Kind::Meaning)
        return true;
    const Operator &op = setting.graph().at(id);
    if (ref.meaning == DimensionMeaning::Batch) {
        // Behind an operator that needs the whole batch there may be fewer items than samples.
        const std::int64_t items = op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].size;
        return setting.batch().obstacles.empty() || !split.sizes.empty() || items % split.parts == 0;
    }
    const MeantDimension found = findMeant(setting.index().dimensions(), setting.graph(), id, ref.meaning);
    const std::int64_t meant = found.extent;
    const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(split.dimension)];
    const std::int64_t sum = std::accumulate(split.sizes.begin(), split.sizes.end(), std::int64_t{0});
    if (split.sizes.empty() && ref.meaning == DimensionMeaning::Heads && meant % split.parts != 0) {
        if (dividesInto(op.annotation, split.dimension, split.parts))
            return true;
        if (sharesKeyHeads(setting, id, split)) // what a head of keys is made by may be cut within it
            return isProductByWeights(setting.graph(), op) && dimension.size % split.parts == 0;
    }
    if (split.sizes.empty() ? meant % split.parts != 0 : sum != meant) {
        const Window *window = findWindow(op.annotation, split.dimension);
        if (found.piece || (window && window->kernel == 1 && window->stride == 1))
            return false; // the whole that it is cut out of may still be cut
        return Error{ErrorCode::InvalidInput,
            "operator '" + op.name + "' has a dimension of " + std::to_string(meant) + " ("
                + nameOf(ref.meaning) + "), which cannot be cut into "
                + (split.sizes.empty() ? std::to_string(split.parts) + " equal parts"
                                       : "parts of " + std::to_string(sum) + " in all"),
            "use a number of parts that divides it", "operator:" + op.name + "/" + dimension.name};
    }
    for (std::int64_t &size : split.sizes)
        size *= dimension.size / meant;
    return true;
}

Result<Split> splitOf(const RowSetting &setting, OperatorId op, const SplitStep &step)
{
    Split split{.kind = step.kind, .parts = step.parts, .sizes = step.sizes, .axis = step.axis};
    if (!step.sizes.empty())
        split.parts = static_cast<std::int32_t>(step.sizes.size());
    if (!step.axis.empty()) {
        const MeshAxis *axis = findAxis(setting.mesh, step.axis);
        if (!axis) {
            return Error{ErrorCode::InvalidInput,
                setting.mesh.empty() ? "there is no mesh with an axis '" + step.axis + "'"
                                     : "the mesh has no axis '" + step.axis + "'",
                noSuchAxisAdvice(setting.mesh, step.axis), "mesh"};
        }
        const std::int32_t parts = step.zigzag && axis->size > 1 ? 2 * axis->size : axis->size;
        if (split.parts == 0)
            split.parts = parts;
        if (split.parts != parts) {
            return Error{ErrorCode::InvalidInput,
                counted(split.parts, "part") + " over mesh axis '" + step.axis + "', which has "
                    + counted(axis->size, "device"),
                "leave the number of parts out", "mesh"};
        }
    }
    if (split.parts < 1)
        return Error{ErrorCode::InvalidInput, "expected a number of parts or a mesh axis", "", ""};
    if (step.kind == SplitKind::Dimension && op.valid()) {
        TRY(const bool has, bindDimension(setting, op, step.dimension, split));
        if (!has)
            split.parts = 0;
    }
    return split;
}

std::vector<OperatorId> actedOn(const Graph &graph, const std::vector<OperatorId> &selected)
{
    for (const Direction direction : {Direction::Forward, Direction::Optimizer}) {
        std::vector<OperatorId> acted;
        std::copy_if(selected.begin(), selected.end(), std::back_inserter(acted), [&](OperatorId op) {
            return graph.at(op).direction == direction
                && (direction != Direction::Optimizer || updatesWeight(graph.at(op)));
        });
        if (!acted.empty())
            return acted;
    }
    return {};
}

std::vector<OperatorId> ofOneDirection(const Graph &graph, const std::vector<OperatorId> &operators)
{
    for (const Direction direction : {Direction::Forward, Direction::Backward, Direction::Optimizer}) {
        std::vector<OperatorId> some;
        std::copy_if(operators.begin(), operators.end(), std::back_inserter(some), [&](OperatorId op) {
            return op.valid() && static_cast<std::size_t>(op.index) < graph.operators.size()
                && graph.at(op).direction == direction;
        });
        std::sort(some.begin(), some.end());
        some.erase(std::unique(some.begin(), some.end()), some.end());
        if (!some.empty())
            return some;
    }
    return {};
}

std::vector<OperatorId> optimizersOf(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const Graph &graph = index.graph();
    std::vector<OperatorId> found;
    for (const OperatorId op : operators) {
        if (graph.at(op).direction != Direction::Forward)
            continue;
        for (const TensorId input : graph.at(op).inputs) {
            if (!input.valid() || graph.at(input).role != TensorRole::Weight)
                continue;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(input.index)]) {
                if (graph.at(user).direction == Direction::Optimizer)
                    found.push_back(user);
            }
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

} // namespace planloom
