// Normalization by channels on the device.

#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/reductions/row_plans.h"

namespace planloom {

namespace {

/// Statistics' elements; nothing where groups of channels are not all of one size.
std::optional<ChannelPlace> statisticPlace(const ChannelView &view)
{
    if (view.groups != 0 && view.c % view.groups != 0)
        return std::nullopt;
    return ChannelPlace{view, view.groups == 0};
}

Result<bool> launchStatistic(const DeviceCall &device, const StatisticPlan &plan)
{
    const auto place = statisticPlace(plan.view);
    if (!place)
        return false;
    const Elements dy = device.of(plan.dy);
    const Elements x = device.of(plan.x);
    const Elements mean = device.of(plan.mean);
    const auto statistics = static_cast<std::int64_t>(plan.view.statistics());
    if (plan.y != nullptr)
        return launched(device.queue.launch(
            ChannelStatisticKernel{x, mean, device.of(plan.y), *place, plan.count}, statistics));
    if (plan.dx != nullptr)
        TRY_VOID(
            device.queue.launch(ChannelSpreadKernel{dy, x, mean, device.of(plan.dx), plan.view, plan.count},
                elementCount(*plan.dx)));
    if (plan.dmean != nullptr)
        TRY_VOID(device.queue.launch(
            ChannelVarianceMeanKernel{dy, x, mean, device.of(plan.dmean), *place, plan.count}, statistics));
    return true;
}

Result<bool> launchNormalize(const DeviceCall &device, const NormalizePlan &plan)
{
    const Elements variance = device.of(plan.variance);
    const Elements scale = device.of(plan.scale);
    if (plan.dy == nullptr)
        return launched(device.queue.launch(
            ChannelNormalizeKernel{device.of(plan.x), device.of(plan.mean), variance, scale,
                device.of(plan.bias), device.of(plan.made), plan.view, plan.epsilon},
            elementCount(*plan.made)));
    const auto place = statisticPlace(plan.view);
    if (!place)
        return false;
    ChannelSlopesKernel slopes;
    slopes.dy = device.of(plan.dy);
    slopes.mean = device.of(plan.mean);
    slopes.variance = variance;
    slopes.scale = scale;
    slopes.epsilon = plan.epsilon;
    if (plan.made != nullptr)
        TRY_VOID(device.queue.launch(ChannelNormalizeKernel{slopes.dy, {}, variance, scale, {},
                                         device.of(plan.made), plan.view, plan.epsilon},
            elementCount(*plan.made)));
    if (plan.dmean != nullptr || plan.dvariance != nullptr) {
        slopes.x = plan.dvariance != nullptr ? device.of(plan.x) : Elements{};
        slopes.ofMean = device.of(plan.dmean);
        slopes.ofVariance = device.of(plan.dvariance);
        slopes.place = *place;
        TRY_VOID(device.queue.launch(slopes, static_cast<std::int64_t>(plan.view.statistics())));
    }
    if (plan.dscale != nullptr || plan.dbias != nullptr) {
        slopes.x = plan.dscale != nullptr ? device.of(plan.x) : Elements{};
        slopes.ofMean = slopes.ofVariance = {};
        slopes.products = device.of(plan.dscale);
        slopes.sums = device.of(plan.dbias);
        slopes.place = {plan.view, true};
        TRY_VOID(device.queue.launch(slopes, plan.view.c));
    }
    return true;
}

} // namespace

Result<bool> launchChannels(const DeviceCall &device)
{
    switch (device.call.op->kind) {
    case OperatorKind::BatchMean:
    case OperatorKind::BatchVariance:
        return launchPlanned(device, planStatistic(device.call), launchStatistic);
    case OperatorKind::BatchNormalize:
        return launchPlanned(device, planNormalize(device.call), launchNormalize);
    default:
        return false;
    }
}

} // namespace planloom
