// Kinds that other frameworks have as many operators: rotary embeddings, attention, recurrences.

#include "engine/graph/operators/attention.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

// --- types

TypesOutcome inferRotary(const InferCall &call)
{
    for (const std::size_t slot : {1, 2}) {
        if (broadcast(call.in(0), call.in(slot)) != call.in(0))
            return call.misfit(slot, "a shape that broadcasts against input 0's " + toString(call.in(0)));
    }
    if (call.in(0).empty() || call.in(0).back() % 2 != 0)
        return call.misfit(0, "an even last dimension");
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferAttention(const InferCall &call)
{
    TRY_VOID(checkFloating(call, 3));
    const Shape &q = call.in(0);
    const Shape &k = call.in(1);
    const Shape &v = call.in(2);
    const std::size_t rank = q.size();
    if (rank < 3)
        return call.misfit(0, "at least three dimensions: heads, queries and the size of a head");
    const auto alike = [&](const Shape &a, const Shape &b, std::size_t count) {
        return a.size() == b.size()
            && std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
    };
    const std::int64_t heads = q[rank - 3];
    if (!alike(q, k, rank - 3) || k[rank - 3] < 1 || heads % k[rank - 3] != 0 || k[rank - 1] != q[rank - 1])
        return call.misfit(1, "keys for the queries " + toString(q) + ", of heads that divide theirs");
    if (!alike(k, v, rank - 1))
        return call.misfit(2, "values for the keys " + toString(k));
    Shape y(q.begin(), q.end() - 1);
    const TensorType sums{
        call.type(0).dataType == DataType::Float64 ? DataType::Float64 : DataType::Float32, y};
    Shape scores = y;
    scores.push_back(k[rank - 2]);
    y.push_back(v[rank - 1]);
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        if (call.type(slot).dataType != DataType::Bool && call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("bool, or the element type of input 0, ") + nameOf(call.type(0).dataType));
        if (broadcast(scores, call.in(slot)) != scores)
            return call.misfit(slot, "a shape that broadcasts against the scores " + toString(scores));
    }
    if (call.attributes.integer("window") < 0)
        return call.badAttribute("window", "0 or the number of keys that are seen");
    const double ratio = call.attributes.real("dropout");
    if (!(ratio >= 0 && ratio < 1))
        return call.badAttribute("dropout", "a ratio from 0 to below 1");
    if (const double cap = call.attributes.real("softcap"); !(cap >= 0) || !std::isfinite(cap))
        return call.badAttribute("softcap", "0 or the largest score");
    if (!std::isfinite(call.attributes.real("masked_score")))
        return call.badAttribute("masked_score", "a finite number");
    return std::vector<TensorType>{
        {call.type(0).dataType, std::move(y)}, sums, {call.type(0).dataType, std::move(scores)}};
}

TypesOutcome inferRecurrent(const InferCall &call)
{
    using enum OperatorKind;
    // Per ONNX: x [t b i], w [d g*h i], r [d g*h h], bias [d 2*g*h], lengths [b], first states [d b h], and
    // for Lstm the peephole weights [d 3*h]; with `layout` 1 the batch comes first in x, states and outputs.
    const std::int64_t gates = call.kind == Lstm ? 4 : call.kind == Gru ? 3 : 1;
    const bool batchFirst = call.attributes.integer("layout") == 1;
    // Without w, x is [t b d g*h].
    const Shape &x = call.in(0);
    const DataType type = call.type(0).dataType;
    const std::size_t rank = call.has(1) ? 3 : 4;
    if (x.size() != rank || !isFloating(type))
        return call.misfit(0, std::to_string(rank) + " dimensions of a floating element type");
    if (!call.has(2) || call.rank(2) != 3)
        return Error{ErrorCode::InvalidInput,
            std::string(nameOf(call.kind)) + "'s recurrent weights have not three dimensions", {}, "input:2"};
    const std::int64_t directions = call.in(2)[0];
    const std::int64_t hidden = call.in(2)[2];
    const std::int64_t time = x[batchFirst ? 1 : 0];
    const std::int64_t batch = x[batchFirst ? 0 : 1];
    const std::string direction = call.attributes.text("direction", "forward");
    if (directions != (direction == "bidirectional" ? 2 : 1) || call.in(2)[1] != gates * hidden)
        return call.misfit(2, "[directions " + std::to_string(gates) + "*hidden hidden]");
    if (call.has(1) && call.in(1) != Shape{directions, gates * hidden, x[2]})
        return call.misfit(1, toString(Shape{directions, gates * hidden, x[2]}));
    if (!call.has(1) && (x[2] != directions || x[3] != gates * hidden))
        return call.misfit(
            0, std::to_string(directions) + " directions of " + std::to_string(gates * hidden) + " elements");
    if (call.has(3) && call.in(3) != Shape{directions, 2 * gates * hidden})
        return call.misfit(3, toString(Shape{directions, 2 * gates * hidden}));
    if (call.has(4) && (call.in(4) != Shape{batch} || !isIndexType(call.type(4).dataType)))
        return call.misfit(4, "one int32 length per sequence, " + toString(Shape{batch}));
    const Shape state = batchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    for (const std::size_t slot : {5, 6}) {
        if (call.has(slot) && call.in(slot) != state)
            return call.misfit(slot, toString(state));
    }
    if (call.has(7) && call.in(7) != Shape{directions, 3 * hidden})
        return call.misfit(7, toString(Shape{directions, 3 * hidden}));
    std::vector<TensorType> types;
    types.push_back(
        {type, batchFirst ? Shape{batch, time, directions, hidden} : Shape{time, directions, batch, hidden}});
    types.push_back({type, state});
    if (call.kind == Lstm)
        types.push_back({type, state});
    return types;
}

// --- annotations

std::string annotateRotary(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::size_t rank = call.inRank(0);
    const DimensionList x =
        dimensionsWith(builder, call.in(0), kFrozen, [rank](std::size_t i) { return i + 1 == rank; });
    builder.input(0, x);
    builder.input(1, builder.broadcast(x, call.in(1)));
    builder.input(2, builder.broadcast(x, call.in(2)));
    builder.output(0, x);
    builder.linear({0});
    return {};
}

std::string annotateAttention(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::size_t rank = call.inRank(0);
    if (call.outputs.size() != 3 || rank < 3 || call.inRank(1) != rank || call.inRank(2) != rank)
        return missing(call);
    const std::int64_t heads = call.in(0)[rank - 3];
    const std::int64_t keyHeads = call.in(1)[rank - 3];
    if (keyHeads < 1 || heads % keyHeads != 0)
        return "Attention's " + std::to_string(heads) + " heads do not divide into groups for "
            + std::to_string(keyHeads) + " key heads";
    const bool grouped = keyHeads > 1 && heads > keyHeads;
    std::vector<Term> lead;
    for (std::size_t i = 0; i + 3 < rank; ++i)
        lead.push_back(Term{{builder.fresh(call.in(0)[i])}});
    // Query heads that share a key head stay together.
    const std::int32_t outer = builder.named(grouped ? "g" : "h", grouped ? keyHeads : heads);
    const Term queryHeads = grouped
        ? builder.compound({outer, builder.locked("r", heads / keyHeads, DimensionLock::SharedKeys)})
        : Term{{outer}};
    const Term ofKeys = keyHeads == 1 ? Term{{builder.literal(1)}} : Term{{outer}};
    const Term s{{builder.named("s", call.in(0)[rank - 2])}};
    // Parts of the keys make means that are weighed by their log-sum-exps. Scores of large negative numbers,
    // which hide keys, leave no digits in these to tell how many keys share the weight.
    bool partsOfKeys = !call.attributes.has("masked_score");
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot)
        partsOfKeys = partsOfKeys && (!call.has(slot) || call.inputs[slot].dataType == DataType::Bool);
    const std::int64_t keys = call.in(1)[rank - 2];
    const Term t{{partsOfKeys ? builder.named("t", keys, kReduce)
                              : builder.locked("t", keys, DimensionLock::MaskedKeys)}};
    const Term e{{builder.named("e", call.in(0)[rank - 1], kFrozen)}};
    const Term f{{builder.named("f", call.in(2)[rank - 1], kFrozen)}};
    const auto behind = [&lead](std::initializer_list<Term> more) {
        std::vector<Term> terms = lead;
        terms.insert(terms.end(), more);
        return terms;
    };
    const std::vector<Term> scores = behind({queryHeads, s, t});
    builder.input(0, behind({queryHeads, s, e}));
    builder.input(1, behind({ofKeys, t, e}));
    builder.input(2, behind({ofKeys, t, f}));
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        const Shape &mask = call.in(slot);
        if (mask.size() > rank)
            return "Attention's mask has more dimensions than its scores";
        std::vector<Term> terms;
        for (std::size_t i = 0; i < mask.size(); ++i)
            terms.push_back(mask[i] == 1 ? Term{{builder.literal(1)}} : scores[rank - mask.size() + i]);
        builder.input(slot, std::move(terms));
    }
    builder.output(0, behind({queryHeads, s, f}));
    builder.output(1, behind({queryHeads, s}));
    builder.output(2, scores);
    if (partsOfKeys) {
        builder.combines(0, Combination::Weighted);
        builder.combines(1, Combination::LogSumExp);
    }
    return {};
}

/// Sequences of a batch do not see one another, nor do the two directions. Every state depends on all states
/// of the step before, so that the hidden dimension stays whole.
std::string annotateRecurrent(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(2))
        return missing(call);
    if (call.inRank(0) != (call.has(1) ? 3 : 4) || call.inRank(2) != 3
        || (call.has(1) && call.inRank(1) != 3))
        return std::string(nameOf(call.kind)) + " needs an input and weights of three dimensions";
    const bool batchFirst = call.attributes.integer("layout") == 1;
    const std::size_t batchAxis = batchFirst ? 0 : 1;
    const std::int32_t b = builder.named("b", call.in(0)[batchAxis]);
    const std::int32_t d = builder.named("d", call.in(2)[0]);
    constexpr std::size_t kNone = ~std::size_t{0};
    const auto with = [&](const Shape &shape, std::size_t batch, std::size_t direction) {
        DimensionList list = builder.literals(shape);
        if (batch < list.size())
            list[batch] = b;
        if (direction < list.size())
            list[direction] = d;
        return list;
    };
    const std::size_t stateDirection = batchFirst ? 1 : 0;
    builder.input(0, with(call.in(0), batchAxis, call.has(1) ? kNone : 2));
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        if (slot == 4)
            builder.input(slot, DimensionList{b}); // lengths of the sequences
        else if (slot == 5 || slot == 6)
            builder.input(slot, with(call.in(slot), batchAxis, stateDirection)); // first states
        else
            builder.input(slot, with(call.in(slot), kNone, 0));
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        // An output that is not asked for has no shape, and stays opaque.
        if (call.outRank(slot) == 0)
            continue;
        if (slot == 0)
            builder.output(slot, with(call.out(slot), batchFirst ? 0 : 2, batchFirst ? 2 : 1));
        else
            builder.output(slot, with(call.out(slot), batchAxis, stateDirection));
    }
    return {};
}

// --- work

double recurrentFlops(const WorkShapes &shapes)
{
    using enum OperatorKind;
    const Shape *x = shapes.in(0);
    const Shape *w = shapes.in(1);
    const Shape *r = shapes.in(2);
    if (x == nullptr || r == nullptr || x->size() < 3)
        return 0;
    const double steps = static_cast<double>((*x)[0]) * static_cast<double>((*x)[1]);
    const double gates = shapes.op().kind == Lstm ? 4 : shapes.op().kind == Gru ? 3 : 1;
    return steps * (2 * ((w == nullptr ? 0 : countOf(*w)) + countOf(*r)) + 12 * gates * lastExtent(r, 0));
}

/// Two products of every query with the keys that it sees.
double attentionFlops(const WorkShapes &shapes)
{
    const Shape *y = shapes.out(0);
    const Shape *q = shapes.in(0);
    const Shape *k = shapes.in(1) != nullptr ? shapes.in(1) : shapes.in(2);
    const Shape *like = y != nullptr ? y : q;
    if (like == nullptr || like->empty() || k == nullptr)
        return 0;
    const double rows = countOf(Shape(like->begin(), like->end() - 1));
    const double valueWidth = lastExtent(y != nullptr ? y : shapes.in(2), 0);
    const double width = lastExtent(q != nullptr ? q : shapes.in(1), 0);
    return 2 * rows * attentionReach(shapes.attributes()).meanKeys(lastExtent(k, 1)) * (width + valueWidth);
}

/// Five products in place of two: the scores again, and two gradients of each product.
double attentionGradients(const WorkShapes & /*shapes*/, double forward)
{
    return 2.5 * forward;
}

double rotaryGradients(const WorkShapes &shapes, double /*forward*/)
{
    return shapes.outElements(0) * shapes.wantedCount();
}

// --- gradients, entries

NeedsOfInputs needsOfAttention(const Operator &op)
{
    NeedOfInput ofValues{{0, 1}, {1, 2}}; // asks neither for them nor for y
    for (std::size_t mask = 3; mask < op.inputs.size(); ++mask)
        ofValues.inputs.push_back(mask);
    NeedOfInput others = ofValues;
    others.inputs.push_back(2);
    others.outputs.push_back(0);
    NeedsOfInputs needs(std::max<std::size_t>(op.inputs.size(), 3), others);
    needs[2] = ofValues;
    return needs;
}

} // namespace

std::vector<KindEntry> compositeKinds()
{
    using enum OperatorKind;
    constexpr auto kRecurrent = OperatorCategory::Recurrent;
    const NeedOfInput all{{0, 1, 2, 3, 4, 5, 6, 7}}; // every sequence is run again
    const GradientNeeds recurrent{{all, all, all, all, std::nullopt, all, all, all}}; // not of their lengths
    const SplitRule stepByStep{annotateRecurrent, DimensionLock::Steps};
    const WorkRule steps{1, recurrentFlops};
    return {
        {Rotary, "Rotary", OperatorCategory::Elementwise, {3, 3}, inferRotary, {annotateRotary},
            {{NeedOfInput{{1, 2}}, NeedOfInput{{0}}, NeedOfInput{{0}}}}, {3, firstOutput, rotaryGradients}},
        // Output 1 has the log-sum-exp of each row of scores.
        {Attention, "Attention", OperatorCategory::Attention, {3, kAnyNumber}, inferAttention,
            {annotateAttention, DimensionLock::WithinHead, {}, "ghrstef"}, {{}, needsOfAttention},
            {1, attentionFlops, attentionGradients}, {.words = "attention", .statistics = {1}}},
        // The weights of the input may be absent.
        {Lstm, "Lstm", kRecurrent, {1, 8}, inferRecurrent, stepByStep, recurrent, steps},
        {Gru, "Gru", kRecurrent, {1, 6}, inferRecurrent, stepByStep, recurrent, steps},
        {Rnn, "Rnn", kRecurrent, {1, 6}, inferRecurrent, stepByStep, recurrent, steps},
    };
}

} // namespace planloom
