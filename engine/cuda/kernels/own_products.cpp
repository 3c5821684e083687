// Matrix products on the device: by cuBLASLt, or what stands in for it (cuda_products.h).

#include "engine/cuda/backend/cuda_products.h"
#include "engine/cuda/kernels/device_product.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/products/matmul_plan.h"

#include <algorithm>

namespace planloom {

namespace {

bool isProductType(DataType type)
{
    return type == DataType::Float32 || type == DataType::BFloat16 || type == DataType::Float16;
}

/// The planned product in the device's memory; nothing where the device does not multiply such types.
std::optional<DeviceProduct> productOf(const DeviceCall &device, const PlannedProduct &plan)
{
    const DeviceProduct product{
        plan.shape, device.of(plan.a), device.of(plan.b), device.of(plan.c), {}, device.compute()};
    const bool eight = product.compute == DataType::Float8E4M3 || product.compute == DataType::Float8E5M2;
    if (eight || !isProductType(product.a.type) || !isProductType(product.b.type)
        || !isProductType(product.c.type))
        return std::nullopt;
    return product;
}

Result<bool> launchMatMul(const DeviceCall &device)
{
    const auto plan = planMatMul(device.call);
    if (!plan)
        return false;
    std::vector<DeviceProduct> products;
    for (const PlannedProduct &planned : *plan) {
        const auto product = productOf(device, planned);
        // Sums over a broadcast operand's batches are rounded once: not in the memory of a narrow type.
        const auto isSummed = [](const BatchLoop &loop) { return loop.c == 0 && loop.extent > 1; };
        if (!product
            || (product->c.type != DataType::Float32
                && std::any_of(planned.shape.batch.begin(), planned.shape.batch.end(), isSummed)))
            return false;
        products.push_back(*product);
    }
    for (const DeviceProduct &product : products)
        TRY_VOID(device.queue.products().run(device.queue, product));
    return true;
}

/// y = x w with a bias that is not of y's type, or one for all columns: added in Float32, and rounded once.
Result<void> addBias(const DeviceCall &device, DeviceProduct product, const Buffer &bias, std::int64_t n)
{
    const Elements y = product.c;
    const std::int64_t count = product.shape.m * n;
    TRY(float *const sums, device.scratch<float>(count));
    product.c = {sums, DataType::Float32};
    TRY_VOID(device.queue.products().run(device.queue, product));
    BinaryKernel kernel;
    kernel.a = product.c;
    kernel.b = device.of(&bias);
    kernel.made = y;
    kernel.nest.loops = 2;
    kernel.nest.extents[0] = product.shape.m;
    kernel.nest.extents[1] = n;
    kernel.nest.strides[0][0] = n;
    kernel.nest.strides[0][1] = 1;
    kernel.nest.strides[1][1] = elementCount(bias.shape) == 1 ? 0 : 1;
    return device.queue.launch(kernel, count);
}

Result<bool> launchLinear(const DeviceCall &device, const LinearPlan &plan)
{
    auto product = productOf(device, plan.product);
    if (!product)
        return false;
    const std::int64_t n = product->shape.n;
    if (plan.bias != nullptr
        && (device.of(plan.bias).type != product->c.type || elementCount(*plan.bias) != n)) {
        TRY_VOID(addBias(device, *product, *plan.bias, n));
        return true;
    }
    product->bias = device.of(plan.bias);
    TRY_VOID(device.queue.products().run(device.queue, *product));
    return true;
}

/// Gradient of the bias: dy summed over its rows, or over everything.
Result<void> sumRows(const DeviceCall &device, const LinearSlopes &plan)
{
    const std::int64_t n = plan.columns;
    const bool all = elementCount(*plan.ofBias) != n;
    ReduceKernel kernel;
    kernel.x = device.of(plan.dy);
    kernel.made = device.of(plan.ofBias);
    kernel.count = all ? plan.rows() * n : plan.rows();
    kernel.inner.loops = 1;
    kernel.inner.extents[0] = kernel.count;
    kernel.inner.strides[0][0] = all ? 1 : n;
    kernel.outer.loops = 1;
    kernel.outer.extents[0] = all ? 1 : n;
    kernel.outer.strides[0][0] = 1;
    return device.queue.launch(kernel, all ? 1 : n);
}

Result<bool> launchLinearSlopes(const DeviceCall &device)
{
    const auto plan = planLinearSlopes(device.call);
    if (!plan)
        return false;
    const auto ofX = plan->ofInput ? productOf(device, *plan->ofInput) : std::nullopt;
    const auto ofW = plan->ofWeight ? productOf(device, *plan->ofWeight) : std::nullopt;
    if ((plan->ofInput && !ofX) || (plan->ofWeight && !ofW))
        return false;
    bool hasBias = false; // its gradient, from a product
    if (ofW && plan->addsUpBias && elementCount(*plan->ofBias) == plan->columns) {
        TRY(hasBias,
            device.queue.products().runWithSums(device.queue, *ofW, device.of(plan->ofBias),
                plan->ofWeight->a == plan->dy ? Epilogue::SumsOfA : Epilogue::SumsOfB));
    }
    if (ofW && !hasBias)
        TRY_VOID(device.queue.products().run(device.queue, *ofW));
    if (plan->addsUpBias && !hasBias)
        TRY_VOID(sumRows(device, *plan));
    else if (plan->ofBias != nullptr && !hasBias)
        device.clear(*plan->ofBias);
    if (ofX) // last, since what follows may be done with it
        TRY_VOID(device.queue.products().run(device.queue, *ofX));
    TRY_VOID(device.queue.outcome());
    return true;
}

} // namespace

Result<bool> launchProduct(const DeviceCall &device)
{
    const Operator &op = *device.call.op;
    if (op.kind == OperatorKind::MatMul)
        return launchMatMul(device);
    if (op.kind == OperatorKind::Linear)
        return op.direction == Direction::Forward
            ? launchPlanned(device, planLinear(device.call), launchLinear)
            : launchLinearSlopes(device);
    return false;
}

} // namespace planloom
