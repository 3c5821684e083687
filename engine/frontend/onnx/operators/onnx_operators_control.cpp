// Graphs in graphs: branches that are known, and iterations that are, are imported in place.
#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kMostIterations = 1024; ///< Of a Loop or Scan that is unrolled.

/// The values beside one another along a new dimension `axis`.
Result<TensorId> stacked(Context &context, const std::vector<TensorId> &values, std::int64_t axis)
{
    std::vector<TensorId> rows;
    for (const TensorId value : values) {
        Shape shape = context.graph().typeOf(value).shape;
        shape.insert(shape.begin() + axis, 1);
        TRY(const TensorId row, context.reshape(value, std::move(shape), "row"));
        rows.push_back(row);
    }
    if (rows.size() == 1)
        return rows.front();
    return context.make(OperatorKind::Concat, std::move(rows), attributesFrom({{"axis", axis}}), {}, "rows");
}

/// The single truth value of a tensor, if it is known.
std::optional<bool> knownTruth(Context &context, TensorId id)
{
    const auto data = context.graph().valuesOf(id);
    if (!data || elementCount(data->type.shape) != 1)
        return std::nullopt;
    return readNumber(data->type.dataType, data->bytes.data(), 0).asReal() != 0;
}

Result<void> importIf(Context &context)
{
    const auto condition = knownTruth(context, context.input(0));
    if (!condition)
        return context.keepUnknown("its condition is not known before a run");
    TRY(const auto branch, context.subgraph(*condition ? "then_branch" : "else_branch"));
    TRY(const auto outputs, context.scope().inlineGraph(*branch, {}));
    if (outputs.size() != context.node().outputs.size())
        return context.invalid("its branch returns " + std::to_string(outputs.size()) + " values, where "
            + std::to_string(context.node().outputs.size()) + " were expected");
    return context.finishMany(outputs);
}

/// Unrolls a loop whose number of iterations is known.
Result<void> importLoop(Context &context)
{
    TRY(const auto body, context.subgraph("body"));
    std::int64_t most = kMostIterations + 1;
    if (context.has(0)) {
        const auto data = context.graph().valuesOf(context.input(0));
        if (!data || elementCount(data->type.shape) != 1)
            return context.keepUnknown("its number of iterations is not known before a run");
        most = integersOf(*data).front();
    }
    std::optional<bool> goesOn = true;
    if (context.has(1))
        goesOn = knownTruth(context, context.input(1));
    const std::size_t carried = context.inputCount() < 2 ? 0 : context.inputCount() - 2;
    std::vector<TensorId> state;
    for (std::size_t i = 0; i < carried; ++i) {
        if (!context.has(2 + i))
            return context.unsupported(
                "its input " + std::to_string(2 + i) + " is absent or no tensor, where a value was expected");
        state.push_back(context.input(2 + i));
    }
    if (body->outputs.size() < 1 + carried || context.node().outputs.size() > body->outputs.size() - 1)
        return context.invalid(
            "its body returns " + std::to_string(body->outputs.size()) + " values, fewer than the loop");
    std::vector<std::vector<TensorId>> scanned(body->outputs.size() - 1 - carried);
    for (std::int64_t iteration = 0; iteration < most; ++iteration) {
        if (!goesOn)
            return context.keepUnknown("its condition is not known before a run");
        if (!*goesOn)
            break;
        if (iteration == kMostIterations)
            return context.keepUnknown(
                "it runs for more than " + std::to_string(kMostIterations) + " iterations");
        std::vector<TensorId> inputs{context.graph().addConstant(integerTensor({iteration}, {})),
            context.graph().addConstant(scalarTensor(DataType::Bool, 1))};
        inputs.insert(inputs.end(), state.begin(), state.end());
        TRY(const auto outputs, context.scope().inlineGraph(*body, inputs));
        goesOn = knownTruth(context, outputs.front());
        for (std::size_t i = 0; i < carried; ++i)
            state[i] = outputs[1 + i];
        for (std::size_t i = 0; i < scanned.size(); ++i) {
            scanned[i].push_back(outputs[1 + carried + i]);
        }
    }
    for (std::size_t i = 0; i < carried; ++i)
        TRY_VOID(context.bind(i, state[i]));
    for (std::size_t i = 0; i < scanned.size(); ++i) {
        if (!context.wants(carried + i))
            continue;
        if (scanned[i].empty())
            return context.unsupported("it runs for no iteration, and so returns a value without elements");
        TRY(const TensorId all, stacked(context, scanned[i], 0));
        TRY_VOID(context.bind(carried + i, all));
    }
    return {};
}

/// A list with one number for each of `count` scanned values, from an attribute that may be missing (zeros).
Result<Integers> perScan(Context &context, std::string_view name, std::size_t count)
{
    TRY(const auto given, context.integers(name));
    Integers list = given.value_or(Integers(count, 0));
    if (list.size() != count)
        return context.invalid("attribute '" + std::string(name) + "' has " + std::to_string(list.size())
            + " numbers, where " + std::to_string(count) + " were expected");
    return list;
}

/// Slice `t` of x along `axis`, without that dimension.
Result<TensorId> stepOf(Context &context, TensorId x, std::int64_t axis, std::int64_t t)
{
    const TensorType type = context.graph().typeOf(x);
    const auto at = static_cast<std::size_t>(axis);
    Integers starts(type.shape.size(), 0);
    starts[at] = t;
    Shape shape = type.shape;
    shape[at] = 1;
    TRY(const TensorId slice,
        context.make(OperatorKind::Slice, {x},
            attributesFrom({{"starts", starts}, {"steps", Integers(type.shape.size(), 1)}}),
            TensorType{type.dataType, shape}, "step"));
    shape.erase(shape.begin() + axis);
    return context.reshape(slice, std::move(shape), "value");
}

/// Unrolls a Scan over as many steps as its inputs are long.
Result<void> importScan(Context &context)
{
    if (context.opset() < 9)
        return context.unsupported("Scan of operator sets before 9 has a batch of sequences",
            "export the model with operator set 17");
    TRY(const auto body, context.subgraph("body"));
    TRY(const std::int64_t scans, context.integer("num_scan_inputs", 0));
    TRY_VOID(context.require(context.inputCount()));
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(scans, 0));
    if (count == 0 || count > context.inputCount())
        return context.invalid("it scans " + std::to_string(scans) + " of its "
            + std::to_string(context.inputCount()) + " inputs, where at least one was expected");
    const std::size_t carried = context.inputCount() - count;
    if (body->outputs.size() < carried || context.node().outputs.size() > body->outputs.size())
        return context.invalid(
            "its body returns " + std::to_string(body->outputs.size()) + " values, fewer than the scan");
    const std::size_t made = body->outputs.size() - carried;
    TRY(Integers axes, perScan(context, "scan_input_axes", count));
    TRY(const Integers backward, perScan(context, "scan_input_directions", count));
    TRY(const Integers outputAxes, perScan(context, "scan_output_axes", made));
    TRY(const Integers outputBackward, perScan(context, "scan_output_directions", made));
    std::int64_t steps = -1;
    for (std::size_t i = 0; i < count; ++i) {
        TRY(axes[i], context.axis(axes[i], context.rank(carried + i)));
        const std::int64_t extent = context.shape(carried + i)[static_cast<std::size_t>(axes[i])];
        if (steps >= 0 && extent != steps)
            return context.invalid("its scanned inputs are " + std::to_string(steps) + " and "
                + std::to_string(extent) + " long");
        steps = extent;
    }
    if (steps < 1 || steps > kMostIterations)
        return context.keepUnknown("it runs for " + std::to_string(steps) + " steps, where 1 to "
            + std::to_string(kMostIterations) + " are unrolled");
    std::vector<TensorId> state(
        context.inputs().begin(), context.inputs().begin() + static_cast<std::ptrdiff_t>(carried));
    std::vector<std::vector<TensorId>> scanned(made);
    for (std::int64_t t = 0; t < steps; ++t) {
        std::vector<TensorId> inputs = state;
        for (std::size_t i = 0; i < count; ++i) {
            TRY(const TensorId step,
                stepOf(context, context.input(carried + i), axes[i], backward[i] != 0 ? steps - 1 - t : t));
            inputs.push_back(step);
        }
        TRY(const auto outputs, context.scope().inlineGraph(*body, inputs));
        std::copy_n(outputs.begin(), carried, state.begin());
        for (std::size_t i = 0; i < made; ++i)
            scanned[i].push_back(outputs[carried + i]);
    }
    for (std::size_t i = 0; i < carried; ++i)
        TRY_VOID(context.bind(i, state[i]));
    for (std::size_t i = 0; i < made; ++i) {
        if (!context.wants(carried + i))
            continue;
        const auto rank = static_cast<std::int64_t>(context.graph().typeOf(scanned[i].front()).shape.size());
        TRY(const std::int64_t axis, context.axis(outputAxes[i], rank + 1));
        if (outputBackward[i] != 0)
            std::reverse(scanned[i].begin(), scanned[i].end());
        TRY(const TensorId all, stacked(context, scanned[i], axis));
        TRY_VOID(context.bind(carried + i, all));
    }
    return {};
}

} // namespace

const OnnxHandlers &onnxControlHandlers()
{
    static const OnnxHandlers kHandlers = {
        {"If", needs<1, importIf>}, {"Loop", importLoop}, {"Scan", importScan}};
    return kHandlers;
}

} // namespace planloom
