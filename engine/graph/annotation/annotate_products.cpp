#include "engine/graph/annotation/annotation_builder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace planloom {

namespace {

std::int64_t valueAt(const std::vector<std::int64_t> &values, std::size_t position, std::int64_t fallback)
{
    return position < values.size() ? values[position] : fallback;
}

/// The stride along spatial dimension `i` of `count` if windows of extent `kernel` meet every element at most
/// once and tile the dimension, so that it may be cut between windows; else 0. `wide` is the side that
/// windows lie on, `narrow` the one with an element per window.
std::int64_t tileOf(const Attributes &attributes, std::size_t i, std::size_t count, std::int64_t kernel,
    std::int64_t wide, std::int64_t narrow)
{
    const auto pads = attributes.integers("pads");
    const std::int64_t stride = valueAt(attributes.integers("strides"), i, 1);
    std::int64_t span = 0;
    if (kernel < 1 || stride < 1
        || __builtin_mul_overflow(valueAt(attributes.integers("dilations"), i, 1), kernel - 1, &span))
        return 0;
    const bool tiles = span < stride && valueAt(pads, i, 0) == 0 && valueAt(pads, i + count, 0) == 0
        && wide % stride == 0 && wide / stride == narrow;
    return tiles ? stride : 0;
}

/// The terms of the dimensions behind the first two of input and output. Where windows tile the input, as in
/// "(h 2)" -> "h", whole windows are cut; where they overlap, leave gaps or reach over the border, parts read
/// what their windows read.
std::pair<std::vector<Term>, std::vector<Term>> windowTerms(
    const AnnotateCall &call, AnnotationBuilder &builder, const std::vector<std::int64_t> &kernel)
{
    std::vector<Term> in;
    std::vector<Term> out;
    const bool transposed = call.kind == OperatorKind::ConvTranspose;
    const std::size_t count = call.inRank(0) - 2;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t extent = call.in(0)[i + 2];
        const std::int64_t made = call.out(0)[i + 2];
        const std::int64_t wide = transposed ? made : extent;
        const std::int64_t narrow = transposed ? extent : made;
        const std::string_view name = count <= 3 ? kSpatialNames[count][i] : std::string_view{};
        const std::int64_t stride = tileOf(call.attributes, i, count, valueAt(kernel, i, 0), wide, narrow);
        if (stride == 0) {
            auto terms = builder.windows(name, narrow,
                {.extent = wide,
                    .kernel = valueAt(kernel, i, 0),
                    .stride = valueAt(call.attributes.integers("strides"), i, 1),
                    .dilation = valueAt(call.attributes.integers("dilations"), i, 1),
                    .pad = valueAt(call.attributes.integers("pads"), i, 0)});
            if (transposed && terms.elements.reach == WindowReach::Windows) {
                terms.elements.reach = WindowReach::Share;
                terms.windows.reach = WindowReach::Met;
            }
            in.push_back(transposed ? std::move(terms.windows) : terms.elements);
            out.push_back(transposed ? std::move(terms.elements) : std::move(terms.windows));
            continue;
        }
        const std::int32_t windows = name.empty() ? builder.fresh(narrow) : builder.named(name, narrow);
        const Term tiled = builder.compound({windows, builder.literal(stride)});
        in.push_back(transposed ? Term{{windows}} : tiled);
        out.push_back(transposed ? tiled : Term{{windows}});
    }
    return {std::move(in), std::move(out)};
}

void appendTerms(std::vector<Term> &terms, const DimensionList &dimensions)
{
    for (const std::int32_t dimension : dimensions)
        terms.push_back(Term{{dimension}});
}

} // namespace

std::string annotateMatMul(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(0) || !call.has(1) || call.outputs.empty())
        return missing(call);
    const Shape &a = call.in(0);
    const Shape &b = call.in(1);
    if (a.empty() || b.empty())
        return "MatMul needs two inputs with dimensions";
    const std::size_t batch = std::max(a.size(), b.size()) < 2 ? 0 : std::max(a.size(), b.size()) - 2;
    const std::size_t rows = a.size() > 1 ? 1 : 0;
    const std::size_t columns = b.size() > 1 ? 1 : 0;
    if (call.outRank(0) != batch + rows + columns)
        return "MatMul's output has " + std::to_string(call.outRank(0)) + " dimensions, but its inputs make "
            + std::to_string(batch + rows + columns);
    DimensionList y(batch);
    for (std::size_t i = 0; i < batch; ++i)
        y[i] = builder.fresh(call.out(0)[i]);
    const std::int32_t k = builder.named("k", a.back(), kReduce);
    DimensionList left =
        builder.broadcast(y, Shape(a.begin(), a.end() - static_cast<std::ptrdiff_t>(rows) - 1));
    DimensionList right =
        builder.broadcast(y, Shape(b.begin(), b.end() - static_cast<std::ptrdiff_t>(columns) - 1));
    if (rows != 0) {
        left.push_back(builder.named("m", a[a.size() - 2]));
        y.push_back(left.back());
    }
    left.push_back(k);
    right.push_back(k);
    if (columns != 0) {
        right.push_back(builder.named("n", b.back()));
        y.push_back(right.back());
    }
    builder.input(0, left);
    builder.input(1, right);
    builder.output(0, y);
    builder.linear({0});
    return {};
}

std::string annotateLinear(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(0) || !call.has(1) || call.outputs.empty())
        return missing(call);
    if (call.in(0).empty() || call.inRank(1) < 2 || call.inRank(1) > 3)
        return "Linear needs an input with dimensions and a weight of two, or three";
    const bool transposed = call.attributes.integer("transposed") != 0;
    DimensionList x;
    for (std::size_t i = 0; i + 1 < call.inRank(0); ++i)
        x.push_back(builder.fresh(call.in(0)[i]));
    DimensionList y = x;
    const std::int32_t k = builder.named("k", call.in(0).back(), kReduce);
    DimensionList columns;
    if (call.inRank(1) == 3)
        columns.push_back(builder.named("p", call.in(1)[transposed ? 0 : 1]));
    columns.push_back(builder.named("n", call.in(1)[call.inRank(1) - (transposed ? 2 : 1)]));
    x.push_back(k);
    y.insert(y.end(), columns.begin(), columns.end());
    builder.input(0, x);
    DimensionList weight = columns;
    weight.insert(transposed ? weight.end() : weight.begin(), k);
    builder.input(1, weight);
    if (call.has(2))
        builder.input(2, builder.broadcast(columns, call.in(2)));
    builder.output(0, y);
    builder.linear({0});
    return {};
}

std::string annotateEinsum(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.inputs.empty() || call.outputs.empty())
        return missing(call);
    std::string equation;
    for (const char c : call.attributes.text("equation")) {
        if (c != ' ')
            equation += c;
    }
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos)
        return "Einsum's equation '" + equation + "' has no '->'";
    std::vector<std::string> operands{""};
    for (const char c : equation.substr(0, arrow)) {
        if (c == ',')
            operands.emplace_back();
        else
            operands.back() += c;
    }
    const std::string result = equation.substr(arrow + 2);
    if (operands.size() != call.inputs.size() || result.size() != call.outRank(0))
        return "Einsum's equation '" + equation + "' does not fit its inputs and output";

    // The extent of a letter is the largest any operand gives it: operands of extent 1 broadcast.
    std::int64_t sizes[128] = {};
    bool frozen[128] = {};
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        const std::string &letters = operands[slot];
        if (!call.has(slot) || letters.size() != call.inRank(slot))
            return "Einsum's equation '" + equation + "' does not fit input " + std::to_string(slot);
        for (std::size_t i = 0; i < letters.size(); ++i) {
            const auto letter = static_cast<unsigned char>(letters[i]);
            if (letter >= 128 || !((letter | 32) >= 'a' && (letter | 32) <= 'z'))
                return "Einsum's equation '" + equation + "' has something other than letters in it";
            sizes[letter] = std::max(sizes[letter], call.in(slot)[i]);
            frozen[letter] |= letters.find(letters[i]) != i || letters.rfind(letters[i]) != i;
        }
    }
    const auto identifier = [&](char letter) {
        const auto index = static_cast<unsigned char>(letter);
        const auto mark = frozen[index]                ? kFrozen
            : result.find(letter) == std::string::npos ? kReduce
                                                       : DimensionMark::Spatial;
        return builder.named(std::string_view(&letter, 1), sizes[index], mark);
    };
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        DimensionList list;
        for (std::size_t i = 0; i < operands[slot].size(); ++i) {
            const std::int32_t dimension = identifier(operands[slot][i]);
            list.push_back(builder.sizeOf(dimension) == call.in(slot)[i] ? dimension
                                                                         : builder.literal(call.in(slot)[i]));
        }
        builder.input(slot, list);
    }
    DimensionList y;
    for (std::size_t i = 0; i < result.size(); ++i) {
        const auto letter = static_cast<unsigned char>(result[i]);
        if (letter >= 128 || sizes[letter] == 0 || result.find(result[i]) != i)
            return "Einsum's equation '" + equation + "' has an output letter that is in no input, or twice";
        y.push_back(identifier(result[i]));
    }
    builder.output(0, y);
    if (isFloating(call.outputs[0].dataType))
        builder.linear({0});
    return {};
}

std::string annotateConvolution(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(0) || !call.has(1) || call.outputs.empty())
        return missing(call);
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    const Shape &y = call.out(0);
    if (x.size() < 3 || w.size() != x.size() || y.size() != x.size())
        return std::string(nameOf(call.kind)) + " needs input, weight and output of equal rank, at least 3";
    const std::int64_t groups = call.attributes.integer("group", 1);
    if (groups < 1 || x[1] % groups != 0 || y[1] % groups != 0)
        return std::string(nameOf(call.kind)) + "'s channels do not divide into its groups";

    const std::vector<std::int64_t> kernel(w.begin() + 2, w.end());
    const auto [spatialIn, spatialOut] = windowTerms(call, builder, kernel);
    const std::int32_t n = builder.named("n", x[0]);
    const bool grouped = groups > 1;
    const std::int32_t g = grouped ? builder.named("g", groups) : builder.literal(1);
    const std::int32_t c = builder.named("c", x[1] / groups, grouped ? kFrozen : kReduce);
    const std::int32_t o = builder.named("o", y[1] / groups, grouped ? kFrozen : DimensionMark::Spatial);
    const Term channelsIn = builder.compound({g, c});
    const Term channelsOut = builder.compound({g, o});

    std::vector<Term> input{Term{{n}}, channelsIn};
    input.insert(input.end(), spatialIn.begin(), spatialIn.end());
    std::vector<Term> weight = call.kind == OperatorKind::Conv ? std::vector<Term>{channelsOut, Term{{c}}}
                                                               : std::vector<Term>{channelsIn, Term{{o}}};
    appendTerms(weight, builder.literals(kernel));
    std::vector<Term> output{Term{{n}}, channelsOut};
    output.insert(output.end(), spatialOut.begin(), spatialOut.end());
    builder.input(0, std::move(input));
    builder.input(1, std::move(weight));
    if (call.has(2))
        builder.input(2, std::vector<Term>{channelsOut});
    builder.output(0, std::move(output));
    builder.linear({0});
    return {};
}

std::string annotatePooling(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(0) || call.outputs.empty())
        return missing(call);
    const Shape &x = call.in(0);
    if (x.size() < 3 || call.outRank(0) != x.size())
        return std::string(nameOf(call.kind)) + " needs input and output of equal rank, at least 3";
    const auto [spatialIn, spatialOut] = windowTerms(call, builder, call.attributes.integers("kernel_shape"));
    std::vector<Term> in;
    appendTerms(in, {builder.named("n", x[0]), builder.named("c", x[1])});
    std::vector<Term> out = in;
    in.insert(in.end(), spatialIn.begin(), spatialIn.end());
    out.insert(out.end(), spatialOut.begin(), spatialOut.end());
    builder.input(0, std::move(in));
    builder.output(0, std::move(out));
    if (call.kind == OperatorKind::AveragePool)
        builder.linear({0});
    return {};
}

std::string annotateAttention(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::size_t rank = call.has(0) ? call.inRank(0) : 0;
    if (!call.has(1) || !call.has(2) || call.outputs.size() != 3 || rank < 3 || call.inRank(1) != rank
        || call.inRank(2) != rank)
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
    const Term queryHeads =
        grouped ? builder.compound({outer, builder.named("r", heads / keyHeads, kFrozen)}) : Term{{outer}};
    const Term ofKeys = keyHeads == 1 ? Term{{builder.literal(1)}} : Term{{outer}};
    const Term s{{builder.named("s", call.in(0)[rank - 2])}};
    // Parts of the keys make means that are weighed by their log-sum-exps. Scores of large negative numbers,
    // which hide keys, leave no digits in these to tell how many keys share the weight.
    bool partsOfKeys = !call.attributes.has("masked_score");
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot)
        partsOfKeys = partsOfKeys && (!call.has(slot) || call.inputs[slot].dataType == DataType::Bool);
    const Term t{{builder.named("t", call.in(1)[rank - 2], partsOfKeys ? kReduce : kFrozen)}};
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
    if (!call.has(0) || !call.has(2) || call.outputs.empty())
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

} // namespace planloom
