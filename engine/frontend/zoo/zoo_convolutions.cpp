#include "engine/frontend/zoo/zoo_convolutions.h"

#include <numeric>
#include <vector>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// `value` for every dimension behind the channels, `times` over.
Integers everywhere(const Shape &x, std::int64_t value, std::size_t times = 1)
{
    return Integers(x.size() < 2 ? 0 : times * (x.size() - 2), value);
}

Attributes windowAttributes(const Shape &x, std::int64_t stride, std::int64_t pad)
{
    return attributesOf({{"strides", everywhere(x, stride)}, {"pads", everywhere(x, pad, 2)},
        {"dilations", everywhere(x, 1)}});
}

Shape kernelShape(const Shape &x, std::int64_t outer, std::int64_t inner, std::int64_t kernel)
{
    Shape shape{outer, inner};
    const Integers extents = everywhere(x, kernel);
    shape.insert(shape.end(), extents.begin(), extents.end());
    return shape;
}

std::int64_t channelsOf(const Shape &x)
{
    return x.size() > 2 ? x[1] : 1; // else an earlier failure, which finish() reports
}

} // namespace

TensorId convolution(ZooBuilder &b, TensorId x, std::int64_t channels, std::int64_t kernel,
    std::int64_t stride, std::string_view name, bool bias)
{
    const Shape in = b.shape(x);
    const std::string own(name);
    std::vector<TensorId> inputs{
        x, b.weight(own + ".weight", kernelShape(in, channels, channelsOf(in), kernel))};
    if (bias)
        inputs.push_back(b.weight(own + ".bias", {channels}));
    Attributes attributes = windowAttributes(in, stride, kernel / 2);
    attributes.set("group", std::int64_t{1});
    return b.one(OperatorKind::Conv, std::move(inputs), std::move(attributes), name);
}

TensorId upConvolution(
    ZooBuilder &b, TensorId x, std::int64_t channels, std::int64_t factor, std::string_view name)
{
    const Shape in = b.shape(x);
    const std::string own(name);
    Attributes attributes = windowAttributes(in, factor, 0);
    attributes.set("group", std::int64_t{1});
    return b.one(OperatorKind::ConvTranspose,
        {x, b.weight(own + ".weight", kernelShape(in, channelsOf(in), channels, factor)),
            b.weight(own + ".bias", {channels})},
        std::move(attributes), name);
}

TensorId batchNorm(ZooBuilder &b, TensorId x, std::string_view name)
{
    const Shape in = b.shape(x);
    if (in.size() < 3)
        return x;
    const auto count = attributesOf({{"count", elementCount(in) / in[1]}});
    const std::string own(name);
    const TensorId mean = b.one(OperatorKind::BatchMean, {x}, count, own + ".mean");
    const TensorId variance = b.one(OperatorKind::BatchVariance, {x, mean}, count, own + ".variance");
    return b.one(OperatorKind::BatchNormalize,
        {x, mean, variance, b.weight(own + ".weight", {in[1]}), b.weight(own + ".bias", {in[1]})},
        attributesOf({{"epsilon", 1e-5}}), name);
}

TensorId relu(ZooBuilder &b, TensorId x, std::string_view name)
{
    return b.one(OperatorKind::Relu, {x}, {}, name);
}

TensorId maxPool(ZooBuilder &b, TensorId x, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
    std::string_view name)
{
    const Shape in = b.shape(x);
    Attributes attributes = windowAttributes(in, stride, pad);
    attributes.set("kernel_shape", everywhere(in, kernel));
    attributes.set("ceil_mode", std::int64_t{0});
    return b.one(OperatorKind::MaxPool, {x}, std::move(attributes), name);
}

TensorId globalAverage(ZooBuilder &b, TensorId x, std::string_view name)
{
    const Shape in = b.shape(x);
    Integers axes = everywhere(in, 0);
    std::iota(axes.begin(), axes.end(), 2);
    const std::int64_t count = in.size() > 2 ? elementCount(in) / (in[0] * in[1]) : 1;
    return b.one(OperatorKind::ReduceMean, {x},
        attributesOf({{"axes", axes}, {"keepdims", 0}, {"count", count}}), name);
}

} // namespace planloom
