#include "engine/hardware/kernel_cost.h"

#include "engine/graph/operators/attention.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace planloom {

namespace {

/// A tile that one multiprocessor computes at a time, and the share of the largest one's rate that it
/// reaches.
///
/// These and the next constants are what fits the 984 times of bfloat16 products on A100 to GB300 in
/// aiconfigurator's tables best (cuBLAS below TensorRT-LLM; github.com/ai-dynamo/aiconfigurator,
/// systems/data), the same for all devices.
struct Tile {
    double m = 0;
    double n = 0;
    double share = 1;
};
constexpr std::array kTiles{Tile{256, 128, 1}, Tile{128, 256, 1}, Tile{128, 128, 1}, Tile{128, 64, 0.8},
    Tile{64, 128, 0.8}, Tile{64, 64, 0.6}};
constexpr double kWaveStart =
    1e-6; ///< Seconds until the first operands of a wave are there, and its last out.
constexpr double kSplitSeconds = 4e-6; ///< Of adding the parts of k up.
constexpr double kLeastK = 2048; ///< k is not cut finer than this,
constexpr double kMostWaves = 4; ///< nor where there are as many waves already.

/// From the figures of attention-throughput (FlashAttention-3, arXiv:2407.08608, figure 5; cuDNN, 16 bit,
/// forward): time per key is that of the products and that of the exponentials, which is as long with heads
/// this wide.
constexpr double kExponentialsAsWide = 124;
constexpr double kUsualHead = 128;
/// Keys that are lost on the diagonal of a causal mask, and at the ends of rows without one.
constexpr double kKeysLostCausal = 300; ///< Where the device has no figure of its own.
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
        return work.flops / (peak * efficiencyOf(device, KernelRate::Product, query.computeType).value);
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
        const double products = efficiencyOf(device, KernelRate::Product, query.computeType).value;
        return flops / (peak * products) + bytes / bytesRate(device)
            + (query.joined ? 0 : (kPlainLaunches + (drops ? 1 : 0)) * device.launchLatency.value);
    }
    // A part whose queries see all its keys runs as without a mask.
    const bool hides = reach.causal && (query.seenKeys < 0 || seen < keys);
    const double rate =
        peak * attentionShapeEfficiency(device, query.computeType, backward, hides, width, keys);
    if (usual > 0)
        work.flops *= seen / usual;
    return std::max(work.flops / rate, work.bytes / bytesRate(device));
}

} // namespace

double productSeconds(const DeviceModel &device, const MatrixProduct &product, DataType dataType)
{
    const double peak = matrixFlopsOf(device, dataType);
    const KernelRate rate = product.count > 1 ? KernelRate::Grouped : KernelRate::Product;
    const double flops = 2 * product.m * product.n * product.k * product.count;
    const double sustained = flops / (peak * efficiencyOf(device, rate, dataType).value);
    const double multiprocessors = device.multiprocessors.value;
    if (multiprocessors <= 0)
        return sustained;
    const double own = peak * efficiencyOf(device, KernelRate::Tile, dataType).value / multiprocessors;
    double best = std::numeric_limits<double>::infinity();
    for (const Tile &tile : kTiles) {
        const double tiles = std::ceil(product.m / tile.m) * std::ceil(product.n / tile.n) * product.count;
        const double whole = 2 * tile.m * tile.n * product.k / (own * tile.share);
        for (double parts = 1;; ++parts) {
            const double waves = std::ceil(tiles * parts / multiprocessors);
            best = std::min(best, waves * (whole / parts + kWaveStart) + (parts > 1 ? kSplitSeconds : 0));
            if (waves > kMostWaves || product.k / (parts + 1) < kLeastK)
                break;
        }
    }
    return std::max(sustained, best);
}

double overlapped(const DeviceModel &device, double computing, double moving)
{
    return device.multiprocessors.value > 0 ? std::hypot(computing, moving) : std::max(computing, moving);
}

double attentionShapeEfficiency(const DeviceModel &device, DataType dataType, bool backward, bool causal,
    double headDimension, double keys)
{
    const KernelRate rate = backward ? KernelRate::AttentionBackward : KernelRate::Attention;
    const Sourced &figure = efficiencyOf(device, rate, dataType);
    const Sourced &general = backward ? device.attentionBackwardEfficiency : device.attentionEfficiency;
    if (general.value <= 0 && &figure == &efficiencyOf(device, KernelRate::Product, dataType))
        return figure.value;
    const double narrow = (1 + kExponentialsAsWide / kUsualHead) / (1 + kExponentialsAsWide / headDimension);
    const double lostCausal =
        device.attentionKeysLost.value > 0 ? device.attentionKeysLost.value : kKeysLostCausal;
    const double lost = causal ? lostCausal : kKeysLost;
    const double share =
        figure.value * std::min(narrow, 1.2) * (causal ? kCausalShare : 1) * keys / (keys + lost);
    return std::clamp(share, 0.01, 1.0);
}

namespace {

/// Seconds of rounding to 8 bits what a product reads in a wider format. Of an operator's first factor alone:
/// the other one is a weight, which is rounded once for all micro-batches.
double roundingSeconds(
    const DeviceModel &device, const KernelQuery &query, const std::vector<MatrixProduct> &products)
{
    const bool eight = query.computeType == DataType::Float8E4M3 || query.computeType == DataType::Float8E5M2;
    if (!eight || device.float8Flops.value <= 0 || query.inputs.empty()
        || sizeOf(query.inputs.front().dataType) < 2)
        return 0;
    const MatrixProduct &first = products.front();
    return first.m * first.k * first.count * kRoundingBytes / bytesRate(device)
        + kRoundingLaunches * device.launchLatency.value;
}

} // namespace

namespace {

/// The kernels of an operator that a framework has no kernel of its own for; null: it is one.
const ComposedOperator *composedOf(const DeviceModel &device, const KernelQuery &query)
{
    if (query.op.direction == Direction::Optimizer)
        return nullptr;
    const auto found = std::find_if(device.composed.begin(), device.composed.end(),
        [&](const ComposedOperator &each) { return each.kind == query.op.kind; });
    return found == device.composed.end() ? nullptr : &*found;
}

/// Elements of the largest operand that is no number of something.
double largestOperand(const KernelQuery &query)
{
    double most = 0;
    for (const auto *list : {&query.inputs, &query.outputs})
        for (const TensorType &type : *list)
            if (isFloating(type.dataType))
                most = std::max(most, static_cast<double>(elementCount(type.shape)));
    return most;
}

/// As if kernels were launched in no time by the host.
double onTheDevice(const DeviceModel &device, const KernelQuery &query)
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
        work.bytes = largestOperand(query) * (backward ? kCrossEntropyBytesBackward : kCrossEntropyBytes);
    }
    const auto products = matrixProductsOf(query.op, query.inputs, query.outputs);
    if (products.empty())
        return operatorSeconds(device, categoryOf(query.op), work, query.computeType)
            - device.launchLatency.value + launch;
    double computing = 0;
    for (const MatrixProduct &product : products)
        computing += productSeconds(device, product, query.computeType);
    return overlapped(device, computing, work.bytes / bytesRate(device))
        + roundingSeconds(device, query, products) + launch * static_cast<double>(products.size());
}

/// Whether a framework that fuses nothing launches the operator by itself. Updates of weights are fused by
/// all of them (torch.optim's foreach and fused implementations).
bool isAlone(const DeviceModel &device, const Operator &op)
{
    const OperatorCategory category = categoryOf(op);
    return device.unfused.value > 0 && op.direction != Direction::Optimizer
        && category != OperatorCategory::Product && category != OperatorCategory::Attention;
}

} // namespace

double kernelSeconds(const DeviceModel &device, const KernelQuery &query)
{
    if (const ComposedOperator *const composed = composedOf(device, query)) {
        const bool backward = query.op.direction == Direction::Backward;
        const double kernels = (backward ? composed->backwardKernels : composed->forwardKernels).value;
        const double bytes =
            (backward ? composed->backward : composed->forward).value * largestOperand(query);
        return std::max(bytes / bytesRate(device) + kernels * device.launchLatency.value,
            kernels * device.hostTime.value);
    }
    KernelQuery asked = query;
    if (isAlone(device, query.op)) {
        asked.joined = false;
        asked.spared = {};
    }
    // The host is ahead of the device, unless that is done with a kernel before the next one is launched.
    return std::max(onTheDevice(device, asked), asked.joined ? 0 : device.hostTime.value);
}

double leastKernelSeconds(const DeviceModel &device, const KernelQuery &query)
{
    const OperatorCategory category = categoryOf(query.op);
    const Work work = workOf(query.op, query.inputs, query.outputs, query.attention);
    const double peak = matrixFlopsOf(device, query.computeType);
    const auto reached = [&](KernelRate rate) { return efficiencyOf(device, rate, query.computeType).value; };
    switch (category) {
    case OperatorCategory::Product:
    case OperatorCategory::Recurrent:
        return work.flops / (peak * std::max(reached(KernelRate::Product), reached(KernelRate::Grouped)));
    case OperatorCategory::Attention:
        return work.flops
            / (peak
                * std::max({reached(KernelRate::Product), 1.2 * reached(KernelRate::Attention),
                    1.2 * reached(KernelRate::AttentionBackward)}));
    case OperatorCategory::Elementwise:
    case OperatorCategory::Activation:
        return 0;
    default:
        return work.bytes / bytesRate(device);
    }
}

} // namespace planloom
