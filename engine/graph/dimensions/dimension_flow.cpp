#include "engine/graph/dimensions/dimension_flow.h"

#include "engine/graph/annotation/annotation_builder.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

using Node = DimensionUnifier::Node;

std::size_t place(TensorId id)
{
    return static_cast<std::size_t>(id.index);
}

/// A term that says nothing but a size; or of what windows lie over.
bool isLiteralTerm(const Annotation &annotation, const Term &term)
{
    if (term.reach != WindowReach::Own && term.reach != WindowReach::Met)
        return true;
    return term.factors.size() == 1
        && isLiteral(annotation.dimensions[static_cast<std::size_t>(term.factors[0])]);
}

/// Kinds whose output has a dimension wherever their first input has one, cut or shifted at most.
bool keepsPlaces(OperatorKind kind)
{
    using enum OperatorKind;
    constexpr std::array kThese{Conv, ConvTranspose, MaxPool, AveragePool, LpPool, Concat, Split, Slice, Pad,
        Resize, TopK, GatherElements, ScatterElements, ScatterND};
    return std::find(kThese.begin(), kThese.end(), kind) != kThese.end();
}

} // namespace

DimensionFlow::DimensionFlow(const Graph &of)
    : graph(of)
    , unifier(of)
    , tensors(of.tensors.size())
    , producer(of.tensors.size())
    , fed(of.tensors.size())
    , gathered(of.tensors.size())
{
    for (const TensorId input : graph.inputs)
        fed[place(input)] = true;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction == Direction::Backward && op.mirror)
            continue;
        if (op.direction == Direction::Forward) {
            const bool depends = std::any_of(
                op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && fed[place(id)]; });
            for (const TensorId output : op.outputs) {
                if (output) {
                    fed[place(output)] = depends;
                    producer[place(output)] = OperatorId{static_cast<std::int32_t>(i)};
                    gathered[place(output)] = depends && gathers(op);
                }
            }
        }
        follow(i);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i)
        nodesOf(TensorId{static_cast<std::int32_t>(i)});
}

bool DimensionFlow::gathers(const Operator &op) const
{
    if (op.inputs.empty() || !op.inputs[0])
        return false;
    if (op.kind == OperatorKind::GatherND || op.kind == OperatorKind::Gather)
        return !fed[place(op.inputs[0])] && graph.at(op.inputs[0]).type.shape.size() > 2;
    const bool moves = op.kind == OperatorKind::Transpose || op.kind == OperatorKind::Reshape
        || op.kind == OperatorKind::Cast || op.kind == OperatorKind::Identity;
    return moves && gathered[place(op.inputs[0])];
}

std::vector<Node> &DimensionFlow::nodesOf(TensorId tensor)
{
    std::vector<Node> &nodes = tensors[place(tensor)];
    const Tensor &itself = graph.at(tensor);
    if (!nodes.empty() || itself.type.shape.empty())
        return nodes;
    // Gradients, states and updated weights have the dimensions of what they belong to.
    if (itself.of && graph.at(itself.of).type.shape == itself.type.shape)
        nodes = nodesOf(itself.of);
    else
        nodes = unifier.freshAll(itself.type.shape);
    return nodes;
}

Node DimensionFlow::at(TensorId tensor, std::size_t dimension)
{
    return unifier.find(nodesOf(tensor)[dimension]);
}

Node DimensionFlow::of(OperatorId id, std::int32_t identifier)
{
    const Operator &op = graph.at(id);
    const OperatorId followed = op.direction == Direction::Backward && op.mirror ? op.mirror : id;
    return unifier.of(static_cast<std::size_t>(followed.index), identifier);
}

void DimensionFlow::follow(std::size_t op)
{
    if (graph.operators[op].kind == OperatorKind::Reshape && graph.operators[op].inputs[0]) {
        followReshape(op);
        return;
    }
    followInputs(op);
    followOutputs(op);
    followLiterals(op);
    if (categoryOf(graph.operators[op].kind) == OperatorCategory::Recurrent)
        followRecurrence(op);
}

/// The annotation knows only what may be split; the regrouping says it all.
void DimensionFlow::followReshape(std::size_t index)
{
    const Operator &op = graph.operators[index];
    const std::vector<Node> from = nodesOf(op.inputs[0]);
    const Shape &shape = graph.at(op.inputs[0]).type.shape;
    std::vector<Node> &to = tensors[place(op.outputs[0])];
    to = unifier.regroup(from, shape, graph.at(op.outputs[0]).type.shape);
    const auto bindTo = [&](const TensorTerms &terms, const std::vector<Node> &nodes) {
        for (std::size_t d = 0; d < terms.terms.size() && d < nodes.size(); ++d) {
            const std::int32_t leading = terms.terms[d].factors[0];
            const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(leading)];
            if (!isLiteral(dimension) && nodes[d] >= 0 && unifier.of(index, leading) < 0)
                unifier.bind(index, leading, unifier.prefix(nodes[d], dimension.size));
        }
    };
    bindTo(op.annotation.inputs[0], from);
    bindTo(op.annotation.outputs[0], to);
}

/// The class of what a term says: an identifier's, a product's; a new one for a literal.
Node DimensionFlow::nodeOf(std::size_t index, const Term &term)
{
    const Annotation &annotation = graph.operators[index].annotation;
    if (term.reach != WindowReach::Own && term.reach != WindowReach::Met)
        return unifier.fresh(findWindow(annotation, term.factors[0])->extent);
    std::vector<Node> factors;
    for (const std::int32_t factor : term.factors) {
        const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(factor)];
        if (isLiteral(dimension)) {
            factors.push_back(unifier.fresh(dimension.size));
            continue;
        }
        if (unifier.of(index, factor) < 0)
            unifier.bind(index, factor, unifier.fresh(dimension.size));
        factors.push_back(unifier.of(index, factor));
    }
    return unifier.product(factors);
}

void DimensionFlow::followInputs(std::size_t index)
{
    const Operator &op = graph.operators[index];
    for (std::size_t slot = 0; slot < op.inputs.size() && slot < op.annotation.inputs.size(); ++slot) {
        const TensorTerms &terms = op.annotation.inputs[slot];
        if (!op.inputs[slot] || terms.opaque)
            continue;
        const std::vector<Node> nodes = nodesOf(op.inputs[slot]);
        for (std::size_t d = 0; d < terms.terms.size() && d < nodes.size(); ++d) {
            const Term &term = terms.terms[d];
            if (nodes[d] < 0 || isLiteralTerm(op.annotation, term))
                continue;
            if (term.factors.size() == 1)
                unifier.bind(index, term.factors[0], nodes[d]);
            else
                unifier.unify(nodeOf(index, term), nodes[d]);
        }
    }
}

void DimensionFlow::followOutputs(std::size_t index)
{
    const Operator &op = graph.operators[index];
    for (std::size_t slot = 0; slot < op.outputs.size() && slot < op.annotation.outputs.size(); ++slot) {
        if (!op.outputs[slot])
            continue;
        const Tensor &tensor = graph.at(op.outputs[slot]);
        const TensorTerms &terms = op.annotation.outputs[slot];
        std::vector<Node> nodes;
        for (std::size_t d = 0; d < tensor.type.shape.size(); ++d) {
            const bool known = !terms.opaque && d < terms.terms.size();
            nodes.push_back(known ? nodeOf(index, terms.terms[d]) : unifier.fresh(tensor.type.shape[d]));
        }
        tensors[place(op.outputs[slot])] = std::move(nodes);
    }
}

void DimensionFlow::followLiterals(std::size_t index)
{
    const Operator &op = graph.operators[index];
    if (op.kind == OperatorKind::Gather && op.inputs[0] && op.inputs[1]
        && graph.at(op.inputs[1]).type.shape.size() == 1) {
        const auto axis = static_cast<std::size_t>(op.attributes.integer("axis"));
        return unifier.relate(at(op.outputs[0], axis), at(op.inputs[0], axis));
    }
    if (!keepsPlaces(op.kind))
        return;
    const std::size_t inputs = op.kind == OperatorKind::Concat ? op.inputs.size() : 1;
    for (std::size_t slot = 0; slot < inputs; ++slot) {
        if (!op.inputs[slot] || op.annotation.inputs[slot].opaque)
            continue;
        const TensorTerms &in = op.annotation.inputs[slot];
        for (std::size_t o = 0; o < op.outputs.size(); ++o) {
            if (!op.outputs[o] || op.annotation.outputs[o].opaque
                || op.annotation.outputs[o].terms.size() != in.terms.size())
                continue;
            // What a convolution or pool makes of dimensions that its windows tile is kin, too.
            for (std::size_t d = 0; d < in.terms.size(); ++d) {
                const Term &made = op.annotation.outputs[o].terms[d];
                const bool windows = in.terms[d].factors.size() > 1 || made.factors.size() > 1
                    || in.terms[d].reach != WindowReach::Own || made.reach != WindowReach::Own;
                const bool grouped =
                    d == 1 && (op.kind == OperatorKind::Conv || op.kind == OperatorKind::ConvTranspose);
                if (!grouped
                    && (windows
                        || (isLiteralTerm(op.annotation, in.terms[d]) && isLiteralTerm(op.annotation, made))))
                    unifier.relate(at(op.outputs[o], d), at(op.inputs[slot], d));
            }
        }
    }
}

/// Lstm, Gru, Rnn: (x [time batch in], ..) -> (y [time directions batch state], ..), or batch first.
void DimensionFlow::followRecurrence(std::size_t index)
{
    const Operator &op = graph.operators[index];
    const std::size_t time = op.attributes.integer("layout") == 1 ? 1 : 0;
    if (op.inputs[0] && op.outputs[0] && graph.at(op.outputs[0]).type.shape.size() == 4)
        unifier.unify(at(op.outputs[0], time), at(op.inputs[0], time));
}

} // namespace planloom
