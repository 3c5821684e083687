// ResNet (arXiv:1512.03385, as in torchvision: stride in the 3x3 convolution) and VGG (arXiv:1409.1556).
#include "engine/frontend/zoo/zoo_convolutions.h"

#include <array>

namespace planloom {

namespace {

struct ResNetForm {
    std::int64_t depth = 0;
    std::array<std::int64_t, 4> blocks{};
    bool bottleneck = false;
};
constexpr ResNetForm kResNets[] = {{18, {2, 2, 2, 2}, false}, {34, {3, 4, 6, 3}, false},
    {50, {3, 4, 6, 3}, true}, {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true}};

TensorId residualBlock(ZooBuilder &b, TensorId x, std::int64_t width, std::int64_t stride, bool bottleneck)
{
    const Shape in = b.shape(x);
    const std::int64_t out = bottleneck ? 4 * width : width;
    TensorId y = x;
    if (bottleneck) {
        y = relu(b, batchNorm(b, convolution(b, y, width, 1, 1, "conv1", false), "bn1"), "relu1");
        y = relu(b, batchNorm(b, convolution(b, y, width, 3, stride, "conv2", false), "bn2"), "relu2");
        y = batchNorm(b, convolution(b, y, out, 1, 1, "conv3", false), "bn3");
    } else {
        y = relu(b, batchNorm(b, convolution(b, y, width, 3, stride, "conv1", false), "bn1"), "relu1");
        y = batchNorm(b, convolution(b, y, out, 3, 1, "conv2", false), "bn2");
    }
    if (stride != 1 || (in.size() == 4 && in[1] != out)) {
        const auto inside = b.scope("downsample");
        x = batchNorm(b, convolution(b, x, out, 1, stride, "0", false), "1");
    }
    return relu(b, b.one(OperatorKind::Add, {y, x}, {}, "residual"), "relu");
}

/// Channels of each stage in units of the first's, and convolutions per stage.
struct VggForm {
    std::int64_t depth = 0;
    std::array<std::int64_t, 5> convolutions{};
};
constexpr VggForm kVggs[] = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
constexpr std::array<std::int64_t, 5> kVggWidths{1, 2, 4, 8, 8};

template<typename Form, std::size_t n> const Form *formOf(const Form (&forms)[n], std::int64_t depth)
{
    for (const Form &form : forms) {
        if (form.depth == depth)
            return &form;
    }
    return nullptr;
}

} // namespace

Result<Graph> buildResNet(const ZooValues &values)
{
    const ResNetForm *form = formOf(kResNets, values.integer("depth"));
    if (form == nullptr)
        return values.wrong("depth", "The depth of a ResNet must be 18, 34, 50, 101 or 152.");
    const std::int64_t batch = values.integer("batch");
    const std::int64_t width = values.integer("width");
    const std::int64_t size = values.integer("image");
    ZooBuilder b("resnet");
    TensorId x = b.input("image", {DataType::Float32, {batch, 3, size, size}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch}});
    x = relu(b, batchNorm(b, convolution(b, x, width, 7, 2, "conv1", false), "bn1"), "relu");
    x = maxPool(b, x, 3, 2, 1, "maxpool");
    for (std::size_t stage = 0; stage < form->blocks.size(); ++stage) {
        const auto outer = b.scope("layer" + std::to_string(stage + 1));
        for (std::int64_t block = 0; block < form->blocks[stage]; ++block) {
            const auto inside = b.scope(std::to_string(block));
            x = residualBlock(b, x, width << stage, stage > 0 && block == 0 ? 2 : 1, form->bottleneck);
        }
    }
    x = b.linear(globalAverage(b, x, "avgpool"), values.integer("classes"), "fc");
    const TensorId loss = b.meanLoss(x, labels);
    return b.finish({loss}, loss);
}

Result<Graph> buildVgg(const ZooValues &values)
{
    const VggForm *form = formOf(kVggs, values.integer("depth"));
    if (form == nullptr)
        return values.wrong("depth", "The depth of a VGG must be 11, 13, 16 or 19.");
    const std::int64_t batch = values.integer("batch");
    const std::int64_t size = values.integer("image");
    if (size % 32 != 0)
        return values.wrong("image", "The image of a VGG must be a multiple of 32 pixels high.");
    ZooBuilder b("vgg", values.real("dropout"));
    TensorId x = b.input("image", {DataType::Float32, {batch, 3, size, size}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch}});
    for (std::size_t stage = 0; stage < form->convolutions.size(); ++stage) {
        const auto inside = b.scope("features." + std::to_string(stage));
        for (std::int64_t number = 0; number < form->convolutions[stage]; ++number) {
            const std::string suffix = std::to_string(number + 1);
            x = convolution(b, x, values.integer("width") * kVggWidths[stage], 3, 1, "conv" + suffix, true);
            x = relu(b, x, "relu" + suffix);
        }
        x = maxPool(b, x, 2, 2, 0, "pool");
    }
    {
        const auto inside = b.scope("classifier");
        x = b.reshape(x, {batch, elementCount(b.shape(x)) / batch}, "flatten");
        for (const char *number : {"1", "2"}) {
            x = relu(b, b.linear(x, values.integer("head"), std::string("fc") + number),
                std::string("relu") + number);
            x = b.dropout(x, std::string("dropout") + number);
        }
        x = b.linear(x, values.integer("classes"), "fc3");
    }
    const TensorId loss = b.meanLoss(x, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
