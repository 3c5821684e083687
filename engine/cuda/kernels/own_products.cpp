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

/// A product of two buffers into a third; nothing where the device does not multiply such types.
std::optional<DeviceProduct> productOf(
    const DeviceCall &device, const Buffer &a, const Buffer &b, const Buffer &c)
{
    DeviceProduct product;
    product.a = device.of(&a);
    product.b = device.of(&b);
    product.c = device.of(&c);
    product.compute = device.compute();
    const bool eight = product.compute == DataType::Float8E4M3 || product.compute == DataType::Float8E5M2;
    if (eight || !isProductType(product.a.type) || !isProductType(product.b.type)
        || !isProductType(product.c.type))
        return std::nullopt;
    return product;
}

Result<bool> launchMatMul(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    if (call.op->direction == Direction::Forward) {
        const Buffer *a = findInput(call, 0);
        const Buffer *b = findInput(call, 1);
        const Buffer *y = findOutput(call, 0);
        if (y == nullptr)
            return true;
        if (a == nullptr || b == nullptr)
            return false;
        auto product = productOf(device, *a, *b, *y);
        if (!product)
            return false;
        const MatMulPlan plan = planMatMul(a->shape, b->shape);
        MatrixProduct<float> &shape = product->shape;
        shape.m = plan.m;
        shape.n = plan.n;
        shape.k = plan.k;
        shape.aRow = plan.k;
        shape.bRow = plan.n;
        shape.cRow = plan.n;
        shape.batch = plan.batch;
        TRY_VOID(device.queue.products().run(device.queue, *product));
        return true;
    }
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *a = back.input(0);
    const Buffer *b = back.input(1);
    const Buffer *da = back.wanted(0);
    const Buffer *db = back.wanted(1);
    if (dy == nullptr || (da != nullptr && b == nullptr) || (db != nullptr && a == nullptr))
        return false;
    if (da == nullptr && db == nullptr)
        return true;
    const MatMulPlan plan = planMatMul((a != nullptr ? a : da)->shape, (b != nullptr ? b : db)->shape);
    std::optional<DeviceProduct> first;
    std::optional<DeviceProduct> second;
    if (da != nullptr) { // dy b^T
        first = productOf(device, *dy, *b, *da);
        if (!first)
            return false;
        MatrixProduct<float> &shape = first->shape;
        shape.m = plan.m;
        shape.n = plan.k;
        shape.k = plan.n;
        shape.aRow = plan.n;
        shape.bRow = 1;
        shape.bColumn = plan.n;
        shape.cRow = plan.k;
        for (const BatchLoop &loop : plan.batch)
            shape.batch.push_back({loop.extent, loop.c, loop.b, loop.a});
    }
    if (db != nullptr) { // a^T dy
        second = productOf(device, *a, *dy, *db);
        if (!second)
            return false;
        MatrixProduct<float> &shape = second->shape;
        shape.m = plan.k;
        shape.n = plan.n;
        shape.k = plan.m;
        shape.aRow = 1;
        shape.aColumn = plan.k;
        shape.bRow = plan.n;
        shape.cRow = plan.n;
        for (const BatchLoop &loop : plan.batch)
            shape.batch.push_back({loop.extent, loop.a, loop.c, loop.b});
    }
    // Sums over a broadcast operand's batches are rounded once: not in the memory of a narrow type.
    const auto sums = [](const std::optional<DeviceProduct> &product) {
        return product && product->c.type != DataType::Float32
            && std::any_of(product->shape.batch.begin(), product->shape.batch.end(),
                [](const BatchLoop &loop) { return loop.c == 0 && loop.extent > 1; });
    };
    if (sums(first) || sums(second))
        return false;
    if (first)
        TRY_VOID(device.queue.products().run(device.queue, *first));
    if (second)
        TRY_VOID(device.queue.products().run(device.queue, *second));
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

Result<bool> launchLinearForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *bias = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr || w == nullptr)
        return false;
    auto product = productOf(device, *x, *w, *y);
    if (!product)
        return false;
    const bool transposed = call.op->attributes.integer("transposed") != 0;
    const std::int64_t k = x->shape.back();
    const std::int64_t n = columnsOf(*y, w->shape.size() - 1);
    MatrixProduct<float> &shape = product->shape;
    shape.m = n == 0 ? 0 : elementCount(*y) / n;
    shape.n = n;
    shape.k = k;
    shape.aRow = k;
    shape.bRow = transposed ? 1 : n;
    shape.bColumn = transposed ? k : 1;
    shape.cRow = n;
    if (bias != nullptr && !makesTerm(call, 0, {2}))
        bias = nullptr;
    if (bias != nullptr && (device.of(bias).type != product->c.type || elementCount(*bias) != n)) {
        TRY_VOID(addBias(device, *product, *bias, n));
        return true;
    }
    if (bias != nullptr)
        product->bias = device.of(bias);
    TRY_VOID(device.queue.products().run(device.queue, *product));
    return true;
}

/// Gradient of the bias: dy summed over its rows, or over everything.
Result<void> sumRows(const DeviceCall &device, const Buffer &dy, std::int64_t n, const Buffer &target)
{
    const bool all = elementCount(target) != n;
    const std::int64_t rows = n == 0 ? 0 : elementCount(dy) / n;
    ReduceKernel kernel;
    kernel.x = device.of(&dy);
    kernel.made = device.of(&target);
    kernel.count = all ? rows * n : rows;
    kernel.inner.loops = 1;
    kernel.inner.extents[0] = kernel.count;
    kernel.inner.strides[0][0] = all ? 1 : n;
    kernel.outer.loops = 1;
    kernel.outer.extents[0] = all ? 1 : n;
    kernel.outer.strides[0][0] = 1;
    return device.queue.launch(kernel, all ? 1 : n);
}

Result<bool> launchLinearBackward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    const Buffer *dbias = back.wanted(2);
    if (dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr))
        return false;
    const bool transposed = call.op->attributes.integer("transposed") != 0;
    const std::size_t dimensions = w != nullptr ? w->shape.size() - 1
        : dw != nullptr                         ? dw->shape.size() - 1
        : dbias != nullptr                      ? std::max<std::size_t>(dbias->shape.size(), 1)
                                                : 1;
    const std::int64_t n = columnsOf(*dy, dimensions);
    const std::int64_t rows = n == 0 ? 0 : elementCount(*dy) / n;
    std::optional<DeviceProduct> ofX;
    std::optional<DeviceProduct> ofW;
    if (dx != nullptr && !(ofX = productOf(device, *dy, *w, *dx)))
        return false;
    if (dw != nullptr && !(ofW = productOf(device, transposed ? *dy : *x, transposed ? *x : *dy, *dw)))
        return false;
    bool hasBias = false; // its gradient, from a product
    if (ofW) { // [n k] = dy^T x, or [k n] = x^T dy
        MatrixProduct<float> &shape = ofW->shape;
        const std::int64_t k = x->shape.back();
        shape.m = transposed ? n : k;
        shape.n = transposed ? k : n;
        shape.k = rows;
        shape.aRow = 1;
        shape.aColumn = shape.m;
        shape.bRow = shape.n;
        shape.cRow = shape.n;
        const bool sumsOfRows = dbias != nullptr && elementCount(*dbias) == n && makesTerm(call, 2, {0});
        if (sumsOfRows) { // dy's are those that both products need
            TRY(hasBias,
                device.queue.products().runWithSums(device.queue, *ofW, device.of(dbias),
                    transposed ? Epilogue::SumsOfA : Epilogue::SumsOfB));
        }
        if (!hasBias)
            TRY_VOID(device.queue.products().run(device.queue, *ofW));
    }
    if (dbias != nullptr && !hasBias && makesTerm(call, 2, {0}))
        TRY_VOID(sumRows(device, *dy, n, *dbias));
    else if (dbias != nullptr && !hasBias)
        device.queue.fill(
            dbias->data, 0, static_cast<std::size_t>(elementCount(*dbias) * sizeOf(device.of(dbias).type)));
    if (ofX) { // Last, since what follows may be done with it: [rows k] = dy [rows n] * w [n k]
        MatrixProduct<float> &shape = ofX->shape;
        const std::int64_t k = dx->shape.back();
        shape.m = rows;
        shape.n = k;
        shape.k = n;
        shape.aRow = n;
        shape.bRow = transposed ? k : 1;
        shape.bColumn = transposed ? 1 : n;
        shape.cRow = k;
        TRY_VOID(device.queue.products().run(device.queue, *ofX));
    }
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
        return op.direction == Direction::Forward ? launchLinearForward(device)
                                                  : launchLinearBackward(device);
    return false;
}

} // namespace planloom
