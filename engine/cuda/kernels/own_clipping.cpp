#include "engine/cuda/kernels/own_kernels.h"

namespace planloom {

namespace {

constexpr std::int64_t kStretch = 1 << 16; ///< Elements that one team adds up.

} // namespace

Result<bool> launchClipping(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *from = findInput(call, 0);
    const Buffer *made = findOutput(call, 0);
    if (from == nullptr || made == nullptr || !isFloating(device.of(from).type))
        return false;
    if (call.op->kind == OperatorKind::ClipFactor) {
        const auto most = static_cast<float>(call.op->attributes.real("clip_norm"));
        TRY_VOID(device.queue.launch(ClipFactorKernel{device.of(from), device.of(made), most}, 1));
        return true;
    }
    const std::int64_t count = elementCount(*from);
    const std::int64_t rows = (count + kStretch - 1) / kStretch;
    TRY(double *const sums, device.scratch<double>(rows));
    TRY_VOID(device.queue.launch(
        SquaresKernel{device.of(from), sums, device.gradientFactor(), count, kStretch}, rows));
    TRY_VOID(device.queue.launch(SquareSumKernel{sums, rows, device.of(made)}, 1));
    return true;
}

} // namespace planloom
