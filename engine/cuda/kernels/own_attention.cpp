// Attention on the device; what its slots and attributes mean is in engine/graph/operators/attention.h.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/graph/operators/attention.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

std::int64_t tilesOf(std::int64_t rows, std::int64_t each = kCudaTileRows)
{
    return (rows + each - 1) / each;
}

/// Of each head, counted over all leading dimensions, where it begins in a tensor with these strides of them.
std::optional<Nest<1>> headsOf(const Shape &q, const Shape &strides)
{
    return nestOf<1>(Shape(q.begin(), q.end() - 2), {Shape(strides.begin(), strides.end() - 2)});
}

/// Nothing where kernels of the device do not take it.
std::optional<AttentionScores> scoresOf(
    const DeviceCall &device, const Buffer &q, const Buffer &k, const std::vector<const Buffer *> &masks)
{
    AttentionScores s;
    const std::size_t rank = q.shape.size();
    const Attributes &attributes = device.call.op->attributes;
    s.q = device.of(&q);
    s.k = device.of(&k);
    s.compute = device.compute();
    s.queries = q.shape[rank - 2];
    s.keys = k.shape[rank - 2];
    s.width = q.shape[rank - 1];
    if (s.compute == DataType::Float8E4M3 || s.compute == DataType::Float8E5M2 || s.width > kMostHeadWidth
        || k.shape[rank - 3] == 0 || masks.size() > kMostMasks)
        return std::nullopt;
    s.group = q.shape[rank - 3] / k.shape[rank - 3];
    s.firstQuery = firstOf(q, rank - 2);
    s.firstKey = firstOf(k, rank - 2);
    s.allKeys = wholeExtent(k, rank - 2);
    const AttentionReach reach = attentionReach(attributes);
    s.causal = reach.causal;
    s.offset = reach.offset;
    s.window = reach.window;
    s.scale = static_cast<float>(attributes.real("scale", 1));
    s.softcap = static_cast<float>(attributes.real("softcap"));
    s.maskedScore = attributes.has("masked_score") ? static_cast<float>(attributes.real("masked_score"))
                                                   : -std::numeric_limits<float>::infinity();
    Shape scores(q.shape.begin(), q.shape.end() - 1);
    scores.push_back(s.keys);
    Shape whole;
    for (std::size_t d = 0; d + 1 < rank; ++d)
        whole.push_back(wholeExtent(q, d));
    whole.push_back(s.allKeys);
    const Shape drawStrides = denseStrides(whole);
    for (std::size_t d = 0; d + 2 < rank; ++d) {
        s.heads *= q.shape[d];
        s.firstDrawn += firstOf(q, d) * drawStrides[d];
    }
    const auto drawn = headsOf(q.shape, drawStrides);
    if (!drawn)
        return std::nullopt;
    s.drawn = *drawn;
    const double ratio = attributes.real("dropout");
    const DropoutDraw draw(device.call.seed, attributes.integer("seed"), ratio);
    s.drops = ratio > 0;
    s.dropKey = draw.key;
    s.dropBound = draw.bound;
    s.enlarged = static_cast<float>(1 / (1 - ratio));
    for (std::size_t i = 0; i < masks.size(); ++i) {
        if (masks[i] == nullptr)
            continue;
        const Shape strides = broadcastStrides(masks[i]->shape, scores);
        const auto heads = headsOf(q.shape, strides);
        if (!heads)
            return std::nullopt;
        s.masks[i] = {device.of(masks[i]), strides[rank - 2], strides[rank - 1], *heads};
    }
    return s;
}

/// Whether tensor cores make it: they read elements of 16 bits, 16 bytes at a time.
/// @param kernel  its arguments @param made  what it writes
template<typename Kernel>
Result<bool> suitsMatrices(const DeviceCall &device, const Kernel &kernel, const AttentionScores &scores,
    std::int64_t valueWidth, const std::vector<Elements> &operands, const std::vector<Elements> &made)
{
    const DataType type = scores.compute;
    const auto isAligned = [](const Elements &elements) {
        return reinterpret_cast<std::uintptr_t>(elements.data) % 16 == 0; // absent ones are, too
    };
    const bool isTaken = (type == DataType::BFloat16 || type == DataType::Float16) && scores.width % 8 == 0
        && valueWidth % 8 == 0 && valueWidth <= kMostHeadWidth
        && std::all_of(operands.begin(), operands.end(), isAligned)
        && std::all_of(made.begin(), made.end(), [&](const Elements &elements) {
               return isAligned(elements) && (elements.type == type || elements.type == DataType::Float32);
           });
    if (!isTaken)
        return false;
    TRY(const std::int32_t architecture, device.queue.codeArchitecture());
    return architecture >= matrixArchitecture(type)
        && matrixSharedBytes(kernel) <= mostSharedBytes(architecture);
}

Result<bool> launchForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *q = findInput(call, 0);
    const Buffer *k = findInput(call, 1);
    const Buffer *v = findInput(call, 2);
    if (q == nullptr || k == nullptr || v == nullptr || findOutput(call, 2) != nullptr) // probabilities
        return false;
    std::vector<const Buffer *> masks;
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot)
        masks.push_back(findInput(call, slot));
    const auto scores = scoresOf(device, *q, *k, masks);
    if (!scores || v->shape.back() > kMostHeadWidth)
        return false;
    const MatrixAttentionKernel matrices{
        *scores, device.of(v), device.output(0), device.output(1), v->shape.back()};
    TRY(const bool suits,
        suitsMatrices(device, matrices, *scores, matrices.valueWidth, {scores->q, scores->k, matrices.v},
            {matrices.y, matrices.logSum}));
    if (suits) {
        TRY_VOID(device.queue.launch(
            matrices, scores->heads * tilesOf(scores->queries, MatrixAttentionKernel::kQueries)));
        return true;
    }
    TRY_VOID(device.queue.launch(
        AttentionKernel{*scores, device.of(v), device.output(0), device.output(1), v->shape.back()},
        scores->heads * tilesOf(scores->queries)));
    return true;
}

Result<bool> launchBackward(const DeviceCall &device)
{
    const BackwardCall back(device.call);
    std::vector<const Buffer *> masks;
    for (std::size_t slot = 3; slot < back.forwardInputs(); ++slot) {
        if (back.wanted(slot) != nullptr)
            return false; // a mask's gradient may be a sum over all heads
        masks.push_back(back.input(slot));
    }
    const Buffer *dq = back.wanted(0);
    const Buffer *dk = back.wanted(1);
    const Buffer *dv = back.wanted(2);
    const bool slope = dq != nullptr || dk != nullptr;
    if (!slope && dv == nullptr)
        return true;
    if (back.gradient() == nullptr || back.input(0) == nullptr || back.input(1) == nullptr
        || back.output(1) == nullptr || back.output(2) != nullptr
        || (slope && (back.input(2) == nullptr || back.output(0) == nullptr)))
        return false;
    const auto scores = scoresOf(device, *back.input(0), *back.input(1), masks);
    const std::int64_t valueWidth = back.gradient()->shape.back();
    if (!scores || valueWidth > kMostHeadWidth)
        return false;
    const AttentionReach reach = attentionReach(device.call.op->attributes);
    AttentionRowsKernel rows;
    rows.scores = *scores;
    rows.dy = device.of(back.gradient());
    rows.y = slope ? device.of(back.output(0)) : Elements{};
    rows.logSum = device.of(back.output(1));
    rows.valueWidth = valueWidth;
    const std::int64_t last = scores->firstQuery + scores->queries - 1;
    rows.allKeys = scores->queries > 0
        && scores->firstKey <= reach.keysOf(scores->firstQuery, scores->allKeys).begin
        && reach.keysOf(last, scores->allKeys).end <= scores->firstKey + scores->keys;
    TRY(rows.rows, device.scratch<float>(3 * scores->heads * scores->queries));
    TRY_VOID(device.queue.launch(rows, scores->heads * scores->queries));
    const MatrixSlopes matrices{
        *scores, slope ? device.of(back.input(2)) : Elements{}, rows.dy, rows.rows, valueWidth};
    const MatrixAttentionKeysKernel ofKeys{matrices, device.of(dk), device.of(dv)};
    const MatrixAttentionQueriesKernel ofQueries{matrices, device.of(dq)};
    const std::vector<Elements> operands{scores->q, scores->k, matrices.v, matrices.dy};
    TRY(const bool suitsKeys,
        suitsMatrices(device, ofKeys, *scores, valueWidth, operands, {ofKeys.dk, ofKeys.dv}));
    TRY(const bool suitsQueries,
        suitsMatrices(device, ofQueries, *scores, valueWidth, operands, {ofQueries.dq}));
    AttentionSlopeKernel kernel;
    kernel.scores = *scores;
    kernel.v = slope ? device.of(back.input(2)) : Elements{};
    kernel.dy = rows.dy;
    kernel.rows = rows.rows;
    kernel.dq = device.of(dq);
    kernel.dk = device.of(dk);
    kernel.dv = device.of(dv);
    kernel.valueWidth = valueWidth;
    if (dq != nullptr && suitsQueries)
        TRY_VOID(
            device.queue.launch(ofQueries, scores->heads * tilesOf(scores->queries, ofQueries.rowsOfTile())));
    else if (dq != nullptr)
        TRY_VOID(device.queue.launch(kernel, scores->heads * tilesOf(scores->queries)));
    const std::int64_t keyHeads = scores->heads / scores->group;
    kernel.ofKeys = true;
    if ((dk != nullptr || dv != nullptr) && suitsKeys)
        TRY_VOID(device.queue.launch(ofKeys, keyHeads * tilesOf(scores->keys, ofKeys.rowsOfTile())));
    else if (dk != nullptr || dv != nullptr)
        TRY_VOID(device.queue.launch(kernel, keyHeads * tilesOf(scores->keys)));
    return true;
}

} // namespace

Result<bool> launchAttention(const DeviceCall &device)
{
    if (device.call.op->kind != OperatorKind::Attention)
        return false;
    return device.call.op->direction == Direction::Forward ? launchForward(device) : launchBackward(device);
}

} // namespace planloom
