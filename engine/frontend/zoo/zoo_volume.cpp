// 3D U-Net (arXiv:1606.06650, padded as in MLPerf's, with batch norm) and CosmoFlow (arXiv:1808.04728, as in
// MLPerf HPC: five convolutions with leaky rectifiers, each pooled).
#include "engine/frontend/zoo/zoo_convolutions.h"

namespace planloom {

namespace {

/// Two convolutions, each normalised and rectified: the first makes `first` channels, the second `second`.
TensorId doubleConvolution(ZooBuilder &b, TensorId x, std::int64_t first, std::int64_t second)
{
    x = relu(b, batchNorm(b, convolution(b, x, first, 3, 1, "conv1", false), "bn1"), "relu1");
    return relu(b, batchNorm(b, convolution(b, x, second, 3, 1, "conv2", false), "bn2"), "relu2");
}

} // namespace

Result<Graph> buildUnet3d(const ZooValues &values)
{
    const std::int64_t batch = values.integer("batch");
    const std::int64_t size = values.integer("volume");
    const std::int64_t levels = values.integer("levels");
    const std::int64_t width = values.integer("width");
    if (size % (std::int64_t{1} << (levels - 1)) != 0)
        return values.wrong("volume",
            "The volume must be a multiple of " + std::to_string(std::int64_t{1} << (levels - 1))
                + " voxels, to be halved " + std::to_string(levels - 1) + " times.");
    ZooBuilder b("unet3d");
    TensorId x =
        b.input("volume", {DataType::Float32, {batch, values.integer("channels"), size, size, size}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, size, size, size}});
    std::vector<TensorId> skipped;
    for (std::int64_t level = 0; level < levels; ++level) {
        const auto inside = b.scope("down." + std::to_string(level));
        if (level > 0)
            x = maxPool(b, x, 2, 2, 0, "pool");
        x = doubleConvolution(b, x, width << level, width << (level + 1));
        skipped.push_back(x);
    }
    for (std::int64_t level = levels - 1; level-- > 0;) {
        const auto inside = b.scope("up." + std::to_string(level));
        const std::int64_t channels = width << (level + 1);
        x = upConvolution(b, x, 2 * channels, 2, "upconv");
        x = b.one(OperatorKind::Concat, {skipped[static_cast<std::size_t>(level)], x},
            attributesOf({{"axis", 1}}), "skip");
        x = doubleConvolution(b, x, channels, channels);
    }
    const TensorId logits = convolution(b, x, values.integer("classes"), 1, 1, "head", true);
    const TensorId loss = b.meanLoss(logits, labels, ZooBuilder::ClassesStand::Second);
    return b.finish({loss}, loss);
}

Result<Graph> buildCosmoFlow(const ZooValues &values)
{
    const std::int64_t batch = values.integer("batch");
    const std::int64_t size = values.integer("volume");
    const std::int64_t stages = values.integer("stages");
    if (size % (std::int64_t{1} << stages) != 0)
        return values.wrong("volume",
            "The volume must be a multiple of " + std::to_string(std::int64_t{1} << stages)
                + " voxels, to be halved by each of " + std::to_string(stages) + " stages.");
    ZooBuilder b("cosmoflow", values.real("dropout"));
    TensorId x =
        b.input("volume", {DataType::Float32, {batch, values.integer("channels"), size, size, size}});
    const std::int64_t wanted = values.integer("parameters");
    const TensorId targets = b.input("targets", {DataType::Float32, {batch, wanted}});
    const auto leaky = [&](TensorId from, std::string_view name) {
        return b.one(OperatorKind::LeakyRelu, {from}, attributesOf({{"alpha", 0.3}}), name);
    };
    for (std::int64_t stage = 0; stage < stages; ++stage) {
        const auto inside = b.scope("conv." + std::to_string(stage));
        x = leaky(convolution(b, x, values.integer("width") << stage, 3, 1, "conv", true), "activation");
        x = maxPool(b, x, 2, 2, 0, "pool");
    }
    x = b.reshape(x, {batch, elementCount(b.shape(x)) / batch}, "flatten");
    for (const auto &[name, share] : {std::pair{"dense1", 1}, {"dense2", 2}}) {
        const auto inside = b.scope(name);
        x = leaky(b.linear(x, values.integer("head") / share, "linear"), "activation");
        x = b.dropout(x, "dropout");
    }
    x = b.scaled(b.one(OperatorKind::Tanh, {b.linear(x, wanted, "output")}, {}, "tanh"), 1.2, "scaled");
    const auto inside = b.scope("loss");
    const TensorId loss = b.meanSquare(b.one(OperatorKind::Sub, {x, targets}, {}, "difference"), "error");
    return b.finish({loss}, loss);
}

} // namespace planloom
