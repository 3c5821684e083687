// Attention on the device; what its slots and attributes mean is in engine/graph/operators/attention.h.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/attention/attention_plan.h"

#include <algorithm>

namespace planloom {

namespace {

std::int64_t tilesOf(std::int64_t rows, std::int64_t each = kCudaTileRows)
{
    return (rows + each - 1) / each;
}

/// Nothing where kernels of the device do not take it.
std::optional<AttentionScores> scoresOf(const DeviceCall &device, const AttentionPlan &plan)
{
    AttentionScores s;
    s.compute = device.compute();
    const auto drawn = nestOf<1>(plan.leading, {plan.dropped.heads});
    if (s.compute == DataType::Float8E4M3 || s.compute == DataType::Float8E5M2 || plan.width > kMostHeadWidth
        || plan.valueWidth > kMostHeadWidth || plan.masks.size() > kMostMasks || !drawn)
        return std::nullopt;
    s.q = device.of(plan.q);
    s.k = device.of(plan.k);
    static_cast<AttentionSizes &>(s) = plan;
    s.causal = plan.reach.causal;
    s.offset = plan.reach.offset;
    s.window = plan.reach.window;
    s.scale = static_cast<float>(plan.scale);
    s.softcap = static_cast<float>(plan.softcap);
    s.maskedScore = static_cast<float>(plan.maskedScore);
    s.drops = plan.dropped.ratio > 0;
    s.dropKey = plan.dropped.draw.key;
    s.dropBound = plan.dropped.draw.bound;
    s.enlarged = static_cast<float>(1 / (1 - plan.dropped.ratio));
    s.firstDrawn = plan.dropped.first;
    s.drawn = *drawn;
    for (std::size_t i = 0; i < plan.masks.size(); ++i) {
        const AttentionPlan::Mask &mask = plan.masks[i];
        if (mask.gradient != nullptr)
            return std::nullopt; // it may be a sum over all heads
        if (mask.buffer == nullptr)
            continue;
        const auto heads = nestOf<1>(plan.leading, {mask.heads});
        if (!heads)
            return std::nullopt;
        s.masks[i] = {device.of(mask.buffer), mask.row, mask.column, *heads};
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

Result<bool> launchForward(const DeviceCall &device, const AttentionPlan &plan, const AttentionScores &scores)
{
    const Elements v = device.of(plan.v);
    const Elements y = device.of(plan.y);
    const Elements logSum = device.of(plan.logSum);
    const MatrixAttentionKernel matrices{scores, v, y, logSum, plan.valueWidth};
    TRY(const bool suits,
        suitsMatrices(device, matrices, scores, plan.valueWidth, {scores.q, scores.k, v}, {y, logSum}));
    if (suits)
        return launched(device.queue.launch(
            matrices, scores.heads * tilesOf(scores.queries, MatrixAttentionKernel::kQueries)));
    return launched(device.queue.launch(
        AttentionKernel{scores, v, y, logSum, plan.valueWidth}, scores.heads * tilesOf(scores.queries)));
}

Result<bool> launchBackward(
    const DeviceCall &device, const AttentionPlan &plan, const AttentionScores &scores)
{
    const bool slope = plan.needsSlope();
    const std::int64_t valueWidth = plan.valueWidth;
    const Elements v = slope ? device.of(plan.v) : Elements{};
    const Elements dq = device.of(plan.dq);
    const Elements dk = device.of(plan.dk);
    const Elements dv = device.of(plan.dv);
    AttentionRowsKernel rows;
    rows.scores = scores;
    rows.dy = device.of(plan.dy);
    rows.y = slope ? device.of(plan.y) : Elements{};
    rows.logSum = device.of(plan.logSum);
    rows.valueWidth = valueWidth;
    rows.allKeys = plan.hasAllKeys();
    TRY(rows.rows, device.scratch<float>(3 * scores.heads * scores.queries));
    TRY_VOID(device.queue.launch(rows, scores.heads * scores.queries));
    const MatrixSlopes matrices{scores, v, rows.dy, rows.rows, valueWidth};
    const MatrixAttentionKeysKernel ofKeys{matrices, dk, dv};
    const MatrixAttentionQueriesKernel ofQueries{matrices, dq};
    const std::vector<Elements> operands{scores.q, scores.k, v, rows.dy};
    TRY(const bool suitsKeys, suitsMatrices(device, ofKeys, scores, valueWidth, operands, {dk, dv}));
    TRY(const bool suitsQueries, suitsMatrices(device, ofQueries, scores, valueWidth, operands, {dq}));
    AttentionSlopeKernel kernel;
    kernel.scores = scores;
    kernel.v = v;
    kernel.dy = rows.dy;
    kernel.rows = rows.rows;
    kernel.dq = dq;
    kernel.dk = dk;
    kernel.dv = dv;
    kernel.valueWidth = valueWidth;
    if (plan.dq != nullptr && suitsQueries)
        TRY_VOID(
            device.queue.launch(ofQueries, scores.heads * tilesOf(scores.queries, ofQueries.rowsOfTile())));
    else if (plan.dq != nullptr)
        TRY_VOID(device.queue.launch(kernel, scores.heads * tilesOf(scores.queries)));
    const std::int64_t keyHeads = scores.heads / scores.group;
    const bool hasKeys = plan.dk != nullptr || plan.dv != nullptr;
    kernel.ofKeys = true;
    if (hasKeys && suitsKeys)
        TRY_VOID(device.queue.launch(ofKeys, keyHeads * tilesOf(scores.keys, ofKeys.rowsOfTile())));
    else if (hasKeys)
        TRY_VOID(device.queue.launch(kernel, keyHeads * tilesOf(scores.keys)));
    return true;
}

Result<bool> launchPlan(const DeviceCall &device, const AttentionPlan &plan)
{
    const auto scores = scoresOf(device, plan);
    if (!scores || plan.probabilities != nullptr)
        return false;
    return plan.dy == nullptr ? launchForward(device, plan, *scores) : launchBackward(device, plan, *scores);
}

} // namespace

Result<bool> launchAttention(const DeviceCall &device)
{
    if (device.call.op->kind != OperatorKind::Attention)
        return false;
    return launchPlanned(device, planAttention(device.call), launchPlan);
}

} // namespace planloom
