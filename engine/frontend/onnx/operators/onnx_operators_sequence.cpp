// Sequences of tensors exist at import alone: each is a list of the tensors it is made of, whose number and
// places have to be known.
#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Sequence = std::vector<TensorId>;

/// The sequence that input `slot` is. @return InvalidInput if it is none
Result<Sequence> sequenceAt(Context &context, std::size_t slot)
{
    const auto &names = context.node().inputs;
    const Sequence *found = slot < names.size() ? context.scope().findSequence(names[slot]) : nullptr;
    if (found == nullptr)
        return context.invalid("input " + std::to_string(slot) + " is no sequence of tensors");
    return *found;
}

/// Gives the node's output a sequence.
Result<void> bindSequence(Context &context, Sequence sequence)
{
    if (context.node().outputs.empty() || context.node().outputs.front().empty())
        return {};
    return context.scope().bindSequence(context.node().outputs.front(), std::move(sequence));
}

/// A known position in a sequence, counted from its end where negative; below `limit`.
Result<std::size_t> positionIn(Context &context, std::size_t slot, std::size_t size, std::size_t limit)
{
    TRY(const auto given, context.constantIntegers(slot, "position"));
    const auto count = static_cast<std::int64_t>(size);
    const std::int64_t position = given.size() != 1 ? count + 1 : given[0] < 0 ? given[0] + count : given[0];
    if (position < 0 || position >= static_cast<std::int64_t>(limit))
        return context.invalid("its position " + (given.empty() ? std::string() : std::to_string(given[0]))
            + " is not in a sequence of " + std::to_string(size) + " tensors");
    return static_cast<std::size_t>(position);
}

Result<void> importSequenceConstruct(Context &context)
{
    TRY_VOID(context.require(context.inputCount()));
    return bindSequence(context, context.inputs());
}

Result<void> importSequenceAt(Context &context)
{
    TRY(const Sequence sequence, sequenceAt(context, 0));
    TRY(const std::size_t position, positionIn(context, 1, sequence.size(), sequence.size()));
    return context.bind(0, sequence[position]);
}

Result<void> importSequenceInsert(Context &context)
{
    TRY(Sequence sequence, sequenceAt(context, 0));
    if (!context.has(1))
        return context.invalid("input 1 is missing");
    std::size_t position = sequence.size();
    if (context.has(2)) {
        TRY(position, positionIn(context, 2, sequence.size(), sequence.size() + 1));
    }
    sequence.insert(sequence.begin() + static_cast<std::ptrdiff_t>(position), context.input(1));
    return bindSequence(context, std::move(sequence));
}

Result<void> importSequenceErase(Context &context)
{
    TRY(Sequence sequence, sequenceAt(context, 0));
    if (sequence.empty())
        return context.invalid("it erases from a sequence without tensors");
    std::size_t position = sequence.size() - 1;
    if (context.has(1)) {
        TRY(position, positionIn(context, 1, sequence.size(), sequence.size()));
    }
    sequence.erase(sequence.begin() + static_cast<std::ptrdiff_t>(position));
    return bindSequence(context, std::move(sequence));
}

Result<void> importSequenceLength(Context &context)
{
    TRY(const Sequence sequence, sequenceAt(context, 0));
    return context.bind(
        0, context.graph().addConstant(integerTensor({static_cast<std::int64_t>(sequence.size())}, {})));
}

/// Extents of the parts of dimension `axis`: as given, of one size but for the last, or 1 each.
Result<std::vector<std::int64_t>> partSizes(Context &context, std::int64_t extent)
{
    std::vector<std::int64_t> sizes;
    std::int64_t each = 1;
    if (context.has(1)) {
        TRY(const auto given, context.constantIntegers(1, "split"));
        if (!context.shape(1).empty())
            return given;
        each = given.front();
    }
    if (each < 1)
        return context.invalid("it makes parts of " + std::to_string(each) + " elements");
    constexpr std::int64_t kMostParts = 1 << 16;
    if (extent / each > kMostParts)
        return context.unsupported("it makes more than " + std::to_string(kMostParts) + " parts");
    for (std::int64_t left = extent; left > 0; left -= each)
        sizes.push_back(std::min(each, left));
    return sizes;
}

Result<void> importSplitToSequence(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(0));
    TRY(const std::int64_t keep, context.integer("keepdims", 1));
    TRY(const auto sizes, partSizes(context, context.shape(0)[static_cast<std::size_t>(axis)]));
    Sequence parts{context.input(0)};
    if (sizes.size() != 1) {
        TRY(parts,
            context.makeMany(
                OperatorKind::Split, {context.input(0)}, attributesFrom({{"axis", axis}, {"sizes", sizes}})));
    }
    if (keep == 0 && !context.has(1)) {
        for (TensorId &part : parts) {
            Shape shape = context.graph().typeOf(part).shape;
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
            TRY(part, context.reshape(part, std::move(shape), "part"));
        }
    }
    return bindSequence(context, std::move(parts));
}

Result<void> importConcatFromSequence(Context &context)
{
    TRY(Sequence sequence, sequenceAt(context, 0));
    TRY(const std::int64_t fresh, context.integer("new_axis", 0));
    TRY(const std::int64_t written, context.integer("axis", 0));
    if (sequence.empty())
        return context.invalid("it joins a sequence without tensors");
    const auto rank = static_cast<std::int64_t>(context.graph().typeOf(sequence.front()).shape.size());
    TRY(const std::int64_t axis, context.axis(written, fresh != 0 ? rank + 1 : rank));
    for (TensorId &part : sequence) {
        Shape shape = context.graph().typeOf(part).shape;
        if (fresh != 0 && static_cast<std::int64_t>(shape.size()) == rank) {
            shape.insert(shape.begin() + axis, 1);
            TRY(part, context.reshape(part, std::move(shape), "part"));
        }
    }
    if (sequence.size() == 1)
        return context.bind(0, sequence.front());
    return context.finish(OperatorKind::Concat, std::move(sequence), attributesFrom({{"axis", axis}}));
}

} // namespace

const OnnxHandlers &onnxSequenceHandlers()
{
    static const OnnxHandlers kHandlers = {{"SequenceConstruct", importSequenceConstruct},
        {"SequenceEmpty", [](Context &context) { return bindSequence(context, {}); }},
        {"SequenceAt", importSequenceAt}, {"SequenceInsert", importSequenceInsert},
        {"SequenceErase", importSequenceErase}, {"SequenceLength", importSequenceLength},
        {"SplitToSequence", importSplitToSequence}, {"ConcatFromSequence", importConcatFromSequence}};
    return kHandlers;
}

} // namespace planloom
