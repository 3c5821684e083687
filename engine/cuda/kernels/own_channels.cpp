// Normalization by channels on the device.

#include "engine/cuda/kernels/own_kernels.h"

namespace planloom {

namespace {

/// Statistics' elements; nothing where groups of channels are not all of one size.
std::optional<ChannelPlace> statisticPlace(const ChannelView &view)
{
    if (view.groups != 0 && view.c % view.groups != 0)
        return std::nullopt;
    return ChannelPlace{view, view.groups == 0};
}

Result<bool> launchStatistic(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const bool variance = call.op->kind == OperatorKind::BatchVariance;
    const Buffer *x = findInput(call, 0);
    const Buffer *mean = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr || (variance && mean == nullptr))
        return false;
    const ChannelView view = channelView(x->shape, y->shape);
    const auto place = statisticPlace(view);
    if (!place)
        return false;
    TRY_VOID(device.queue.launch(ChannelStatisticKernel{device.of(x), variance ? device.of(mean) : Elements{},
                                     device.of(y), *place, countOf(*call.op, view)},
        static_cast<std::int64_t>(view.statistics())));
    return true;
}

Result<bool> launchStatisticSlope(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const bool variance = call.op->kind == OperatorKind::BatchVariance;
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *mean = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dmean = variance ? back.wanted(1) : nullptr;
    if (dy == nullptr || (variance && (x == nullptr || mean == nullptr)))
        return false;
    if (dx == nullptr && dmean == nullptr)
        return true;
    const ChannelView view = channelView(variance ? x->shape : dx->shape, dy->shape);
    const auto place = statisticPlace(view);
    if (!place)
        return false;
    const double count = countOf(*call.op, view);
    if (dx != nullptr)
        TRY_VOID(device.queue.launch(ChannelSpreadKernel{device.of(dy), variance ? device.of(x) : Elements{},
                                         variance ? device.of(mean) : Elements{}, device.of(dx), view, count},
            elementCount(*dx)));
    if (dmean != nullptr)
        TRY_VOID(device.queue.launch(ChannelVarianceMeanKernel{device.of(dy), device.of(x), device.of(mean),
                                         device.of(dmean), *place, count},
            static_cast<std::int64_t>(view.statistics())));
    return true;
}

Result<bool> launchNormalize(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    for (std::size_t slot = 0; slot < 3; ++slot)
        if (findInput(call, slot) == nullptr)
            return false;
    const ChannelView view = channelView(call.inputs[0].shape, call.inputs[1].shape);
    TRY_VOID(device.queue.launch(
        ChannelNormalizeKernel{device.input(0), device.input(1), device.input(2), device.input(3),
            device.input(4), device.of(y), view, call.op->attributes.real("epsilon", 1e-5)},
        elementCount(*y)));
    return true;
}

Result<bool> launchNormalizeSlope(const DeviceCall &device)
{
    const BackwardCall back(device.call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *mean = back.input(1);
    const Buffer *variance = back.input(2);
    const Elements scale = device.of(back.input(3));
    const Buffer *dx = back.wanted(0);
    const Buffer *dmean = back.wanted(1);
    const Buffer *dvariance = back.wanted(2);
    const Buffer *dscale = back.wanted(3);
    const Buffer *dbias = back.wanted(4);
    const bool usesX = dvariance != nullptr || dscale != nullptr;
    const bool usesVariance = usesX || dx != nullptr || dmean != nullptr;
    if (dy == nullptr || (usesX && (x == nullptr || mean == nullptr))
        || (usesVariance && variance == nullptr))
        return false;
    const Buffer *statistics = mean != nullptr ? mean : variance != nullptr ? variance : dmean;
    const ChannelView view =
        channelView(dy->shape, statistics != nullptr ? statistics->shape : Shape{dy->shape[1]});
    const auto place = statisticPlace(view);
    if (!place)
        return false;
    const double epsilon = device.call.op->attributes.real("epsilon", 1e-5);
    if (dx != nullptr)
        TRY_VOID(device.queue.launch(ChannelNormalizeKernel{device.of(dy), {}, device.of(variance), scale, {},
                                         device.of(dx), view, epsilon},
            elementCount(*dx)));
    ChannelSlopesKernel slopes;
    slopes.dy = device.of(dy);
    slopes.mean = device.of(mean);
    slopes.variance = device.of(variance);
    slopes.scale = scale;
    slopes.epsilon = epsilon;
    if (dmean != nullptr || dvariance != nullptr) {
        slopes.x = dvariance != nullptr ? device.of(x) : Elements{};
        slopes.ofMean = device.of(dmean);
        slopes.ofVariance = device.of(dvariance);
        slopes.place = *place;
        TRY_VOID(device.queue.launch(slopes, static_cast<std::int64_t>(view.statistics())));
    }
    if (dscale != nullptr || dbias != nullptr) {
        slopes.x = dscale != nullptr ? device.of(x) : Elements{};
        slopes.ofMean = slopes.ofVariance = {};
        slopes.products = device.of(dscale);
        slopes.sums = device.of(dbias);
        slopes.place = {view, true};
        TRY_VOID(device.queue.launch(slopes, view.c));
    }
    return true;
}

} // namespace

Result<bool> launchChannels(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::BatchMean:
    case OperatorKind::BatchVariance:
        return forward ? launchStatistic(device) : launchStatisticSlope(device);
    case OperatorKind::BatchNormalize:
        return forward ? launchNormalize(device) : launchNormalizeSlope(device);
    default:
        return false;
    }
}

} // namespace planloom
