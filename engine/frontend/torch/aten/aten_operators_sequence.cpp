// Connectionist temporal classification (Graves et al., ICML 2006): the probability that frames say a text.
#include "engine/frontend/torch/aten/aten_formula.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Made = AtenFormula::Made;
using Axes = AtenFormula::Axes;

constexpr double kImpossible = -1e30; ///< The logarithm of no probability, which can be added up.

/// The states of a text y1 y2 ..: blank y1 blank y2 .. blank, 2 * longest + 1 of them.
struct States {
    TensorId frames{}; ///< Log-probabilities [t n c].
    TensorId labels{}; ///< Of the states, [n l].
    TensorId frameCounts{}; ///< [n]
    TensorId textLengths{}; ///< [n]
    std::int64_t time = 0;
    std::int64_t items = 0;
    std::int64_t states = 0;
};

/// Lengths, which are a list of numbers or a tensor, as [n].
Made lengthsOf(AtenContext &context, const char *name, std::int64_t items)
{
    AtenFormula f(context);
    TensorId lengths;
    if (std::holds_alternative<TensorId>(context.value(name))) {
        TRY(lengths, context.tensor(name));
        TRY(lengths, context.cast(lengths, DataType::Int64));
    } else {
        TRY(Axes numbers, context.integers(name));
        const auto count = static_cast<std::int64_t>(numbers.size());
        TRY(lengths, f.integers(std::move(numbers), {count}));
    }
    return f.reshape(lengths, {items});
}

/// The texts as [n longest], of which each has its length: texts one behind the other are taken apart.
Made textsOf(AtenContext &context, TensorId targets, TensorId lengths, std::int64_t items)
{
    AtenFormula f(context);
    TRY(const TensorId labels, context.cast(targets, DataType::Int64));
    const std::int64_t all = elementCount(context.shapeOf(labels));
    if (context.rankOf(labels) == 2)
        return labels;
    if (items == 1 || all == 0)
        return f.reshape(labels, {items, all / std::max<std::int64_t>(1, items)});
    std::int64_t longest = all; // as long as lengths are not known
    if (const auto values = context.graph().isKnown(lengths) ? context.graph().valuesOf(lengths) : nullptr) {
        const Axes known = integersOf(*values);
        longest = std::max<std::int64_t>(1, *std::max_element(known.begin(), known.end()));
    }
    Axes numbers(axisIndex(longest));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<std::int64_t>(i);
    const auto begins = f.reshape(f.sub(f.runningSum(lengths, 0), lengths), {items, 1});
    const auto places =
        f.clip(f.add(begins, f.integers(numbers, {1, longest})), 0.0, static_cast<double>(all - 1));
    return f.gather(labels, places, 0);
}

Result<States> statesOf(AtenContext &context)
{
    AtenFormula f(context);
    States states;
    TRY(states.frames, context.tensor("log_probs"));
    TRY(const TensorId targets, context.tensor("targets"));
    TRY(const std::int64_t blank, context.integer("blank", 0));
    Shape shape = context.shapeOf(states.frames);
    if (shape.size() == 2) { // one item without a batch
        shape.insert(shape.begin() + 1, 1);
        TRY(states.frames, f.reshape(states.frames, shape));
    }
    if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || blank < 0 || blank >= shape[2])
        return context.invalid("its log-probabilities have the shape " + toString(shape)
            + ", where [time batch classes] with class " + std::to_string(blank) + " was expected");
    states.time = shape[0];
    states.items = shape[1];
    TRY(states.frameCounts, lengthsOf(context, "input_lengths", states.items));
    TRY(states.textLengths, lengthsOf(context, "target_lengths", states.items));
    TRY(const TensorId texts, textsOf(context, targets, states.textLengths, states.items));
    const std::int64_t longest = context.shapeOf(texts)[1];
    states.states = 2 * longest + 1;
    // Each label behind a blank, and a blank behind all.
    TRY(const TensorId blanks, f.expand(f.integers({blank}, {1, 1, 1}), {states.items, longest, 1}));
    const auto pairs = f.reshape(f.concat({blanks, f.unsqueeze(texts, 2)}, 2), {states.items, 2 * longest});
    TRY(const TensorId last, f.expand(f.integers({blank}, {1, 1}), {states.items, 1}));
    TRY(states.labels, f.concat({pairs, last}, 1));
    return states;
}

/// For each state the logarithm of whether it may follow the one two before, the one before and itself,
/// [n l 3]: a blank is left out only between labels that differ.
Made transitions(AtenFormula &f, const States &states)
{
    const DataType type = f.typeOf(states.frames).dataType;
    const std::int64_t count = states.states;
    std::vector<double> steps(axisIndex(3 * count), 0.0);
    std::vector<double> odd(axisIndex(count), 0.0);
    for (std::int64_t s = 0; s < count; ++s) {
        steps[axisIndex(3 * s)] = s < 2 ? kImpossible : 0;
        steps[axisIndex(3 * s + 1)] = s < 1 ? kImpossible : 0;
        odd[axisIndex(s)] = static_cast<double>(s % 2);
    }
    const auto before = f.pad(f.slice(states.labels, 1, 0, std::max<std::int64_t>(0, count - 2)), 1,
        std::min<std::int64_t>(2, count), 0, -1);
    const auto same = f.equal(states.labels, before);
    const auto isBlank = f.equal(f.reals(type, odd, {1, count}), 0.0);
    TRY(const TensorId forbidden, f.make(OperatorKind::Or, {same, isBlank}));
    const auto jump = f.where(forbidden, f.number(type, kImpossible), f.number(type, 0));
    return f.add(f.pad(f.unsqueeze(jump, 2), 2, 0, 2, 0), f.reals(type, steps, {1, count, 3}));
}

/// Log-probabilities of all states after each frame, [t n l].
Made forwardPass(AtenContext &context, const States &states)
{
    AtenFormula f(context);
    const DataType type = context.typeOf(states.frames).dataType;
    const Shape shape{states.items, states.states};
    TRY(const TensorId labels,
        f.expand(f.unsqueeze(states.labels, 0), {states.time, states.items, states.states}));
    TRY(const TensorId emissions, f.pick(states.frames, labels, 2));
    TRY(const auto frames,
        context.makeMany(OperatorKind::Split, {emissions},
            attributesFrom({{"axis", std::int64_t{0}}, {"sizes", Axes(axisIndex(states.time), 1)}}),
            "frame"));
    TRY(const TensorId allowed, transitions(f, states));
    Axes sources;
    std::vector<double> first;
    for (std::int64_t s = 0; s < states.states; ++s) {
        for (const std::int64_t back : {2, 1, 0})
            sources.push_back(std::max<std::int64_t>(0, s - back));
        first.push_back(s < 2 ? 0 : kImpossible);
    }
    TRY(const TensorId from, f.integers(sources, {states.states, 3}));
    TRY(TensorId state, f.add(f.reshape(frames[0], shape), f.reals(type, first, {1, states.states})));
    std::vector<AtenTerm> all{f.unsqueeze(state, 0)};
    for (std::size_t t = 1; t < frames.size(); ++t) {
        const auto ways = f.add(f.gather(state, from, 1), allowed);
        TRY(state, f.add(f.reduce(OperatorKind::ReduceLogSumExp, ways, {2}), f.reshape(frames[t], shape)));
        all.push_back(f.unsqueeze(state, 0));
    }
    return f.concat(all, 0);
}

/// -log of the probability of each text, [n]: that of its last label and of the blank behind it, after the
/// item's last frame. The gradient that PyTorch has is this one for what a softmax made.
Made textLoss(AtenContext &context, const States &states, bool zeroInfinity)
{
    AtenFormula f(context);
    const DataType type = context.typeOf(states.frames).dataType;
    TRY(const TensorId all, forwardPass(context, states));
    TRY(const TensorId end, f.reshape(f.clip(f.sub(states.frameCounts, 1.0), 0.0), {1, states.items, 1}));
    TRY(const TensorId ends, f.expand(end, {1, states.items, states.states}));
    const auto last = f.reshape(f.pick(all, ends, 0), {states.items, states.states});
    TRY(const TensorId blank, f.reshape(f.mul(states.textLengths, 2.0), {states.items, 1}));
    const auto label = f.clip(f.sub(blank, 1.0), 0.0);
    TRY(const TensorId empty, f.equal(f.reshape(states.textLengths, {states.items, 1}), 0.0));
    TRY(const TensorId ofLabel, f.pick(last, label, 1));
    TRY(const TensorId without, f.where(empty, f.number(type, kImpossible), ofLabel));
    const auto both = f.concat({f.pick(last, blank, 1), without}, 1);
    TRY(const TensorId loss, f.of(OperatorKind::Neg, f.reduce(OperatorKind::ReduceLogSumExp, both, {1})));
    const double infinite = zeroInfinity ? 0 : std::numeric_limits<double>::infinity();
    return f.where(f.greater(loss, -kImpossible / 10), infinite, loss);
}

Result<void> ctcLoss(AtenContext &context, AtenFormula &f)
{
    TRY(const States states, statesOf(context));
    TRY(const bool zeroInfinity, context.flag("zero_infinity", false));
    if (context.wants(1) && context.target().starts_with("aten._ctc_loss"))
        return context.unsupported("the probabilities beside the loss are used, which Planloom does not make",
            "use torch.nn.functional.ctc_loss");
    TRY(const TensorId each, textLoss(context, states, zeroInfinity));
    if (context.target().starts_with("aten._ctc_loss"))
        return f.finish(each);
    const DataType type = context.typeOf(each).dataType;
    TRY(const std::int64_t reduction, context.integer("reduction", 1));
    if (reduction == 1) // the mean of losses per label
        return finishAtenLoss(context, f.div(each, f.clip(f.cast(states.textLengths, type), 1.0)));
    const bool single = context.rankOf(*context.tensor("log_probs")) == 2;
    return finishAtenLoss(context, single ? f.reshape(each, {}) : Made(each));
}

} // namespace

const AtenHandlers &atenSequenceHandlers()
{
    static const AtenHandlers kHandlers = {{"ctc_loss", formula<ctcLoss>}, {"_ctc_loss", formula<ctcLoss>}};
    return kHandlers;
}

} // namespace planloom
