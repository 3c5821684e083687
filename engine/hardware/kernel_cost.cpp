#include "engine/hardware/kernel_cost.h"

#include "engine/graph/operators/attention.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace planloom {

namespace {

/// A tile that one multiprocessor computes at a time, and the share of the largest one's rate that it reaches
/// (CUTLASS's default tiles for 16-bit products; the shares are those of its profiler's usual results).
struct Tile {
    double m = 0;
    double n = 0;
    double share = 1;
};
constexpr std::array kTiles{Tile{256, 128, 1}, Tile{128, 256, 1}, Tile{128, 128, 0.92}, Tile{128, 64, 0.75},
    Tile{64, 128, 0.75}, Tile{64, 64, 0.55}};
/// Steps of k that pass while a tile's loop fills its pipeline: some three stages of 64.
constexpr double kPipelineDepth = 192;
/// k is not cut finer than this.
constexpr double kLeastK = 1024;

/// From the figures of attention-throughput (FlashAttention-3, arXiv:2407.08608, figure 5; cuDNN, 16 bit,
/// forward): time per key is that of the products and that of the exponentials, which is as long with heads
/// this wide.
constexpr double kExponentialsAsWide = 124;
constexpr double kUsualHead = 128;
/// Keys that are lost on the diagonal of a causal mask, and at the ends of rows without one.
constexpr double kKeysLostCausal = 300;
constexpr double kKeysLost = 100;
/// What long causal sequences reach of the others' rate.
constexpr double kCausalShare = 0.89;

/// How often plain attention reads or writes its probabilities: the scores written, the softmax over them
/// (read, written), the product with the values (read); backward their gradient written, the softmax's
/// gradient (two read, one written), and three products that read one of them each.
constexpr double kPlainPasses = 4;
constexpr double kPlainPassesBackward = 7;
constexpr double kPlainLaunches = 3;
/// Where they are dropped out, frameworks do so in a kernel of its own, either way: read, written, and a mask
/// of one byte to each two of theirs, written forward and read backward.
constexpr double kDropoutPasses = 2.5;

/// Bytes that a cross-entropy moves for each logit, counted in Megatron-LM's
/// (core/tensor_parallel/cross_entropy.py), which computes in fp32: the cast (2 + 4), the maximum (4),
/// subtraction, exponential and division in place (8 each) and the sum (4); backward the product with the
/// loss's gradient (8) and the cast (4 + 2).
constexpr double kCrossEntropyBytes = 38;
constexpr double kCrossEntropyBytesBackward = 14;

double bytesRate(const DeviceModel &device)
{
    return device.memoryBandwidth.value * device.memoryEfficiency.value;
}

/// How many of a backward operator's inputs are its forward's inputs and outputs: those behind the gradients.
std::size_t savedOf(const Operator &backward)
{
    const std::size_t inputs = backward.outputs.size(); // one gradient each
    const std::size_t outputs = (backward.inputs.size() - std::min(backward.inputs.size(), inputs)) / 2;
    return inputs + outputs;
}

double attentionSeconds(const DeviceModel &device, const KernelQuery &query)
{
    const bool backward = query.op.direction == Direction::Backward;
    Work work = workOf(query.op, query.inputs, query.outputs, query.attention);
    const double peak = matrixFlopsOf(device, query.computeType);
    // Query and key stand first in the forward operator, behind the outputs' gradients in the backward one.
    const std::size_t first = backward ? query.op.inputs.size() - savedOf(query.op) : 0;
    if (first + 1 >= query.inputs.size() || query.inputs[first].shape.size() < 2
        || query.inputs[first + 1].shape.size() < 2)
        return work.flops / (peak * device.productEfficiency.value);
    const Shape *q = &query.inputs[first].shape;
    const Shape *k = &query.inputs[first + 1].shape;
    const double width = static_cast<double>(q->back());
    const double keys = static_cast<double>((*k)[k->size() - 2]);
    const AttentionReach reach = attentionReach(query.op.attributes);
    const double usual = reach.meanKeys(keys);
    const double seen = query.seenKeys < 0 ? usual : query.seenKeys;
    if (query.attention == AttentionMode::Plain) {
        // Every score is computed, hidden or not.
        const double flops = usual > 0 ? work.flops * keys / usual : work.flops;
        double scores = keys;
        for (std::size_t d = 0; d + 1 < q->size(); ++d)
            scores *= static_cast<double>((*q)[d]);
        const bool drops = query.op.attributes.real("dropout") > 0;
        const double passes = (backward ? kPlainPassesBackward : kPlainPasses) + (drops ? kDropoutPasses : 0);
        const double bytes = scores * static_cast<double>(sizeOf(query.inputs[0].dataType)) * passes;
        return flops / (peak * device.productEfficiency.value) + bytes / bytesRate(device)
            + (query.joined ? 0 : (kPlainLaunches + (drops ? 1 : 0)) * device.launchLatency.value);
    }
    // A part whose queries see all its keys runs as without a mask.
    const bool hides = reach.causal && (query.seenKeys < 0 || seen < keys);
    const double rate = peak * attentionShapeEfficiency(device, backward, hides, width, keys);
    if (usual > 0)
        work.flops *= seen / usual;
    return std::max(work.flops / rate, work.bytes / bytesRate(device));
}

} // namespace

double productShapeEfficiency(const MatrixProduct &product, double multiprocessors)
{
    if (multiprocessors <= 0)
        return 1;
    double best = 0;
    for (const Tile &tile : kTiles) {
        const double across = std::ceil(product.m / tile.m) * std::ceil(product.n / tile.n);
        const double filled = product.m * product.n / (across * tile.m * tile.n);
        for (double parts = 1; parts == 1 || product.k / parts >= kLeastK; parts *= 2) {
            const double waves = across * product.count * parts / multiprocessors;
            const double k = product.k / parts;
            const double share = tile.share * filled * waves / std::ceil(waves) * k / (k + kPipelineDepth);
            best = std::max(best, share);
            if (waves >= 1)
                break;
        }
    }
    return best;
}

double attentionShapeEfficiency(
    const DeviceModel &device, bool backward, bool causal, double headDimension, double keys)
{
    const Sourced &figure = backward ? device.attentionBackwardEfficiency : device.attentionEfficiency;
    if (figure.value <= 0)
        return device.productEfficiency.value;
    const double narrow = (1 + kExponentialsAsWide / kUsualHead) / (1 + kExponentialsAsWide / headDimension);
    const double lost = causal ? kKeysLostCausal : kKeysLost;
    const double share =
        figure.value * std::min(narrow, 1.2) * (causal ? kCausalShare : 1) * keys / (keys + lost);
    return std::clamp(share, 0.01, 1.0);
}

double kernelSeconds(const DeviceModel &device, const KernelQuery &query)
{
    const double launch = query.joined ? 0 : device.launchLatency.value;
    if (categoryOf(query.op.kind) == OperatorCategory::Attention)
        return attentionSeconds(device, query) + launch;
    Work work = workOf(query.op, query.inputs, query.outputs, query.attention);
    work.bytes = std::max(0.0, work.bytes - static_cast<double>(query.spared.count));
    const bool entropy =
        query.op.kind == OperatorKind::CrossEntropy || query.op.kind == OperatorKind::ClassStatistics;
    if (entropy && device.multiprocessors.value > 0) {
        const bool backward = query.op.direction == Direction::Backward;
        double logits = 0;
        for (const auto *list : {&query.inputs, &query.outputs})
            for (const TensorType &type : *list)
                if (isFloating(type.dataType))
                    logits = std::max(logits, static_cast<double>(elementCount(type.shape)));
        work.bytes = logits * (backward ? kCrossEntropyBytesBackward : kCrossEntropyBytes);
    }
    const auto products = matrixProductsOf(query.op, query.inputs, query.outputs);
    if (products.empty())
        return operatorSeconds(device, categoryOf(query.op), work, query.computeType)
            - device.launchLatency.value + launch;
    const double peak = matrixFlopsOf(device, query.computeType) * device.productEfficiency.value;
    double computing = 0;
    for (const MatrixProduct &product : products)
        computing += 2 * product.m * product.n * product.k * product.count
            / (peak * std::max(productShapeEfficiency(product, device.multiprocessors.value), 1e-3));
    return std::max(computing, work.bytes / bytesRate(device))
        + launch * static_cast<double>(products.size());
}

double leastKernelSeconds(const DeviceModel &device, const KernelQuery &query)
{
    const OperatorCategory category = categoryOf(query.op);
    const Work work = workOf(query.op, query.inputs, query.outputs, query.attention);
    switch (category) {
    case OperatorCategory::Product:
    case OperatorCategory::Recurrent:
        return work.flops / (matrixFlopsOf(device, query.computeType) * device.productEfficiency.value);
    case OperatorCategory::Attention:
        return work.flops
            / (matrixFlopsOf(device, query.computeType)
                * std::max({device.productEfficiency.value, 1.2 * device.attentionEfficiency.value}));
    case OperatorCategory::Elementwise:
    case OperatorCategory::Activation:
        return 0;
    default:
        return work.bytes / bytesRate(device);
    }
}

} // namespace planloom
