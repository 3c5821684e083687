#include "engine/frontend/writer/emit_windows.h"

#include <algorithm>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kLargestWindow = std::int64_t{1} << 31; ///< Of a kernel, stride, dilation or padding.

/// Windows over `kernel.size()` dimensions, with a number for each of them.
struct PaddedWindow {
    Integers kernel{};
    Integers strides{};
    Integers dilations{};
    Integers pads{}; ///< Begins, then ends.
    std::string autoPad{};

    bool isSame() const { return autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER"; }
};

/// One number of at least `least` per dimension; `least` each where none are given.
Result<Integers> perDimension(const NodeWriter &writer, const char *name,
    const std::optional<Integers> &given, std::size_t count, std::int64_t least)
{
    if (!given)
        return Integers(count, least);
    const bool fine = given->size() == count
        && std::all_of(given->begin(), given->end(),
            [&](std::int64_t value) { return value >= least && value <= kLargestWindow; });
    if (!fine)
        return writer.invalid("attribute '" + std::string(name) + "' is " + toString(*given) + ", where "
            + std::to_string(count) + " numbers of at least " + std::to_string(least) + " were expected");
    return *given;
}

/// @param kernel  the fallback of the windows' own; empty if they must say it
Result<PaddedWindow> readWindow(
    const NodeWriter &writer, TensorId x, const WrittenWindows &written, const Integers &kernel)
{
    const Shape &shape = writer.shapeOf(x);
    if (shape.size() < 3)
        return writer.invalid("its input has the shape " + toString(shape)
            + ", where [n c ..] with spatial dimensions was expected");
    const std::size_t count = shape.size() - 2;
    PaddedWindow window;
    window.kernel = kernel;
    if (written.kernel || kernel.empty()) {
        if (!written.kernel)
            return writer.invalid("attribute 'kernel_shape' is missing");
        TRY(window.kernel, perDimension(writer, "kernel_shape", written.kernel, count, 1));
        if (!kernel.empty() && window.kernel != kernel)
            return writer.invalid("its kernel_shape " + toString(window.kernel)
                + " is not that of its weight, " + toString(kernel));
    }
    TRY(window.strides, perDimension(writer, "strides", written.strides, count, 1));
    TRY(window.dilations, perDimension(writer, "dilations", written.dilations, count, 1));
    TRY(window.pads, perDimension(writer, "pads", written.pads, 2 * count, 0));
    window.autoPad = written.autoPad;
    if (window.autoPad != "NOTSET")
        window.pads.assign(2 * count, 0);
    return window;
}

/// Divides `total` between begin and end of spatial dimension `i`; the begin has the larger half if `lower`.
void setPads(PaddedWindow &window, std::size_t i, std::int64_t total, bool lower)
{
    const std::int64_t small = total / 2;
    window.pads[i] = lower ? total - small : small;
    window.pads[window.kernel.size() + i] = lower ? small : total - small;
}

/// Replaces SAME by numbers such that the output has ceil(input / stride) elements.
void resolveSamePads(PaddedWindow &window, const Shape &input)
{
    for (std::size_t i = 0; window.isSame() && i < window.kernel.size(); ++i) {
        const std::int64_t extent = input[i + 2];
        const std::int64_t outputs = (extent + window.strides[i] - 1) / window.strides[i];
        const std::int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1;
        setPads(window, i, std::max<std::int64_t>(0, (outputs - 1) * window.strides[i] + span - extent),
            window.autoPad == "SAME_LOWER");
    }
}

/// The spatial extents of a convolution's weight [o c/g ..].
Result<Integers> kernelOf(const NodeWriter &writer, const ConvolutionInputs &inputs)
{
    const Shape &weight = writer.shapeOf(inputs.weight);
    if (weight.size() != writer.shapeOf(inputs.x).size() || weight.size() < 3)
        return writer.invalid("its weight has the shape " + toString(weight) + " and its input "
            + toString(writer.shapeOf(inputs.x))
            + ", where equal numbers of dimensions, at least 3, were expected");
    return Integers(weight.begin() + 2, weight.end());
}

Result<TensorId> convolve(NodeWriter &writer, OperatorKind kind, const ConvolutionInputs &inputs,
    const PaddedWindow &window, std::int64_t groups, Attributes attributes)
{
    std::vector<TensorId> tensors{inputs.x, inputs.weight};
    if (inputs.bias)
        tensors.push_back(inputs.bias);
    attributes.set("strides", window.strides);
    attributes.set("pads", window.pads);
    attributes.set("dilations", window.dilations);
    attributes.set("group", groups);
    return writer.make(kind, std::move(tensors), std::move(attributes));
}

/// Pads of a transposed convolution, and what is added at the end, by how many elements it is to make.
Result<void> fitOutputs(const NodeWriter &writer, const Shape &input,
    const std::optional<Integers> &outputShape, PaddedWindow &window, Integers &extra)
{
    const std::size_t count = window.kernel.size();
    const auto wrongShape = [&](const std::string &why) {
        return writer.invalid("attribute 'output_shape' is " + toString(*outputShape) + why);
    };
    if (outputShape && outputShape->size() < count)
        return wrongShape("");
    for (std::size_t i = 0; (outputShape || window.isSame()) && i < count; ++i) {
        if (input[i + 2] > kLargestWindow)
            return writer.invalid("its input is too large");
        const std::int64_t wanted =
            outputShape ? (*outputShape)[outputShape->size() - count + i] : input[i + 2] * window.strides[i];
        const std::int64_t full = window.strides[i] * (input[i + 2] - 1) + extra[i]
            + (window.kernel[i] - 1) * window.dilations[i] + 1;
        if (wanted < 1 || wanted > kLargestWindow * kLargestWindow / 2)
            return wrongShape("");
        if (!outputShape && wanted > full)
            return writer.unsupported("attribute 'auto_pad' is '" + window.autoPad
                    + "', which ONNX does not define where strides are longer than the window",
                "say 'pads' or 'output_shape' instead");
        if (wanted - full >= window.strides[i])
            return wrongShape(", which is further than its windows and strides reach");
        // What the window does not reach is added at the end.
        setPads(window, i, std::max<std::int64_t>(0, full - wanted), window.autoPad != "SAME_UPPER");
        extra[i] += std::max<std::int64_t>(0, wanted - full);
    }
    return {};
}

} // namespace

Result<TensorId> emitConv(
    NodeWriter &writer, const ConvolutionInputs &inputs, const WrittenWindows &windows, std::int64_t groups)
{
    TRY(const Integers kernel, kernelOf(writer, inputs));
    TRY(PaddedWindow window, readWindow(writer, inputs.x, windows, kernel));
    resolveSamePads(window, writer.shapeOf(inputs.x));
    return convolve(writer, OperatorKind::Conv, inputs, window, groups, {});
}

Result<TensorId> emitConvTranspose(NodeWriter &writer, const ConvolutionInputs &inputs,
    const WrittenWindows &windows, std::int64_t groups, const std::optional<Integers> &written,
    const std::optional<Integers> &outputShape)
{
    TRY(const Integers kernel, kernelOf(writer, inputs));
    TRY(PaddedWindow window, readWindow(writer, inputs.x, windows, kernel));
    TRY(Integers extra, perDimension(writer, "output_padding", written, kernel.size(), 0));
    TRY_VOID(fitOutputs(writer, writer.shapeOf(inputs.x), outputShape, window, extra));
    return convolve(writer, OperatorKind::ConvTranspose, inputs, window, groups,
        attributesFrom({{"output_padding", extra}}));
}

Result<Attributes> poolAttributes(
    NodeWriter &writer, TensorId x, const WrittenWindows &windows, bool roundsUp)
{
    TRY(PaddedWindow window, readWindow(writer, x, windows, {}));
    const bool dilates = std::any_of(window.dilations.begin(), window.dilations.end(),
        [](std::int64_t dilation) { return dilation != 1; });
    if (dilates && window.isSame())
        return writer.unsupported("attribute 'auto_pad' is '" + window.autoPad
                + "' of a dilated window, which ONNX's implementations pad differently",
            "say 'pads' instead");
    resolveSamePads(window, writer.shapeOf(x));
    return attributesFrom(
        {{"kernel_shape", window.kernel}, {"strides", window.strides}, {"pads", window.pads},
            {"dilations", window.dilations}, {"ceil_mode", std::int64_t{roundsUp ? 1 : 0}}});
}

} // namespace planloom
