#include "engine/cuda/backend/cuda_products.h"

#include "engine/cuda/kernels/device_product.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20U; ///< What cuBLASLt's own default is on Hopper.

/// What is stored at the furthest, from the first element on.
std::int64_t spanOf(const ProductShape &shape, bool ofA)
{
    const std::int64_t rows = ofA ? shape.m : shape.k;
    const std::int64_t columns = ofA ? shape.k : shape.n;
    const std::int64_t row = ofA ? shape.aRow : shape.bRow;
    const std::int64_t column = ofA ? shape.aColumn : shape.bColumn;
    const std::int64_t step = ofA ? shape.aStep : shape.bStep;
    return (rows - 1) * row + (columns - 1) * column + (shape.repeats - 1) * step + 1;
}

/// True where one of the strides of a matrix is 1, and the other at least as long as its rows: what BLAS
/// calls a matrix.
bool isMatrix(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column)
{
    return (column == 1 && (row >= columns || rows == 1)) || (row == 1 && (column >= rows || columns == 1));
}

/// What the matrix units read: the type computed with, or the one that both operands have.
DataType seenTypeOf(const DeviceProduct &product)
{
    const bool alike = product.a.type == product.b.type && isLoadable(product.a.type);
    if (product.compute != DataType::Float32 && product.compute != DataType::TensorFloat32)
        return product.compute;
    return alike ? product.a.type : DataType::Float32;
}

bool overlap(const void *a, std::int64_t aBytes, const void *b, std::int64_t bBytes)
{
    const auto *const first = static_cast<const std::byte *>(a);
    const auto *const second = static_cast<const std::byte *>(b);
    return first < second + bBytes && second < first + aBytes;
}

Elements shifted(const Elements &from, std::int64_t by)
{
    return {static_cast<std::byte *>(from.data) + by * sizeOf(from.type), from.type};
}

} // namespace

CudaProducts::~CudaProducts()
{
    for (const auto &[shape, plan] : m_plans)
        if (plan.product != nullptr)
            m_cuda.forgetProduct(plan.product);
}

const CudaProducts::Plan &CudaProducts::planOf(const ProductShape &shape)
{
    const auto [found, isNew] = m_plans.try_emplace(shape);
    Plan &plan = found->second;
    if (!isNew)
        return plan;
    plan.workspace = kMostWorkspace;
    if (!isMatrix(shape.m, shape.k, shape.aRow, shape.aColumn)
        || !isMatrix(shape.k, shape.n, shape.bRow, shape.bColumn)
        || m_cuda.planProduct(shape, plan.workspace, &plan.product) != kCudaSuccess)
        plan.product = nullptr;
    return plan;
}

Result<Elements> CudaProducts::operand(
    CudaQueue &queue, const Elements &from, DataType wanted, std::int64_t count)
{
    if (from.type == wanted)
        return from;
    TRY(std::byte *const made, queue.scratch().take(static_cast<std::size_t>(count * sizeOf(wanted))));
    const Elements to{made, wanted};
    TRY_VOID(queue.launch(ConvertKernel{from, to}, count));
    return to;
}

Result<void> CudaProducts::multiply(
    const Plan &plan, const Call &call, CudaScratch &scratch, CudaStream stream)
{
    std::byte *workspace = nullptr;
    if (plan.workspace > 0) {
        TRY(workspace, scratch.take(plan.workspace));
    }
    const CudaStatus status =
        m_cuda.multiply(plan.product, call.a, call.b, call.bias, call.c, call.aux, workspace, stream);
    if (status != kCudaSuccess)
        return Error{ErrorCode::Internal, "cublasLtMatmul failed with " + std::to_string(status),
            "look whether other versions of cuBLAS are in the way (LD_LIBRARY_PATH)", {}};
    return {};
}

Result<void> CudaProducts::holdOrMultiply(CudaQueue &queue, const Call &call)
{
    const ProductShape &shape = call.shape;
    // What lies in scratch memory is there no more once another kernel has begun.
    const auto isKept = [&](const void *data) { return data == nullptr || !queue.scratch().has(data); };
    if (queue.chain() == nullptr || shape.accumulate || shape.repeats != 1 || shape.cRow != shape.n
        || !isKept(call.a) || !isKept(call.b) || !isKept(call.bias) || !isKept(call.c)) {
        const CudaStream stream = queue.stream();
        return multiply(planOf(shape), call, queue.scratch(), stream);
    }
    const std::int64_t bytes = shape.m * shape.n * sizeOf(shape.result);
    HeldProduct held;
    held.made = {static_cast<const std::byte *>(call.c), static_cast<std::size_t>(bytes)};
    held.moved = bytes + (shape.m * shape.k + shape.k * shape.n) * sizeOf(shape.operands);
    held.run = [this, call, &scratch = queue.scratch()](const HeldProduct &self,
                   const ElementChain::Step *next, std::int64_t items, CudaStream stream) -> Result<bool> {
        if (const auto fused =
                next == nullptr ? std::nullopt : withActivation(call, *next, items, self.isOver))
            if (const Plan &plan = planOf(fused->shape); plan.product != nullptr) {
                TRY_VOID(multiply(plan, *fused, scratch, stream));
                return true;
            }
        TRY_VOID(multiply(planOf(call.shape), call, scratch, stream));
        return false;
    };
    return queue.chain()->hold(std::move(held));
}

/// ReLU's slope is of a mask of bits for cuBLASLt, which no plan keeps: it stays a kernel. So does GELU by
/// erf.
std::optional<CudaProducts::Call> CudaProducts::withActivation(
    Call call, const ElementChain::Step &next, std::int64_t items, bool isOver)
{
    ProductShape &shape = call.shape;
    const auto *const kernel = std::get_if<UnaryKernel>(&next.kernel);
    if (kernel == nullptr || items != shape.m * shape.n || kernel->made.type != shape.result
        || kernel->x.type != shape.result)
        return std::nullopt;
    const bool forward = kernel->dy.data == nullptr;
    const bool isNeeded = !isOver && kernel->made.data != call.c;
    if (forward && kernel->x.data == call.c) {
        if (kernel->function == UnaryFunction::Relu && !isNeeded)
            shape.epilogue = Epilogue::Relu;
        else if (kernel->function == UnaryFunction::GeluTanh)
            shape.epilogue = isNeeded ? Epilogue::GeluKeeping : Epilogue::Gelu;
        call.aux = shape.epilogue == Epilogue::GeluKeeping ? call.c : nullptr;
    } else if (!forward && kernel->dy.data == call.c && kernel->dy.type == shape.result && !isNeeded
        && kernel->function == UnaryFunction::GeluTanh && !kernel->fromValue && call.bias == nullptr) {
        shape.epilogue = Epilogue::GeluSlope;
        call.aux = kernel->x.data;
    }
    call.c = kernel->made.data;
    // The activation's result may lie where the product's operands were, which was right for two kernels.
    const std::int64_t bytes = items * sizeOf(shape.result);
    const std::int64_t size = sizeOf(shape.operands);
    const bool isApart = !overlap(call.c, bytes, call.a, spanOf(shape, true) * size)
        && !overlap(call.c, bytes, call.b, spanOf(shape, false) * size)
        && (call.bias == nullptr || !overlap(call.c, bytes, call.bias, shape.n * sizeOf(shape.result)))
        && (call.aux == nullptr || !overlap(call.c, bytes, call.aux, bytes));
    const bool isAligned = reinterpret_cast<std::uintptr_t>(call.aux) % 16 == 0
        && reinterpret_cast<std::uintptr_t>(call.c) % 16 == 0;
    return shape.epilogue != Epilogue::None && isApart && isAligned ? std::optional(call) : std::nullopt;
}

Result<bool> CudaProducts::runWithSums(
    CudaQueue &queue, const DeviceProduct &product, const Elements &sums, Epilogue ofWhich)
{
    const DataType seen = seenTypeOf(product);
    const MatrixProduct<float> &p = product.shape;
    // Sums of what the products see would not be those of what is there.
    if (!p.batch.empty() || p.k == 0 || product.a.type != seen || product.b.type != seen
        || product.compute == DataType::TensorFloat32 || sums.type != product.c.type)
        return false;
    const ProductShape shape{p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow, p.bColumn, p.cRow, 1, 0, 0, 0, seen,
        product.c.type, false, false, false, ofWhich};
    const Plan &plan = planOf(shape);
    if (plan.product == nullptr)
        return false;
    const CudaStream stream = queue.stream();
    TRY_VOID(queue.outcome());
    TRY_VOID(multiply(plan, {shape, product.a.data, product.b.data, nullptr, product.c.data, sums.data},
        queue.scratch(), stream));
    return true;
}

Result<void> CudaProducts::run(CudaQueue &queue, const DeviceProduct &product)
{
    const DataType seen = seenTypeOf(product);
    MatrixProduct<float> shape = product.shape;
    shape.a = static_cast<const float *>(product.a.data);
    shape.b = static_cast<const float *>(product.b.data);
    shape.c = static_cast<float *>(product.c.data);
    shape.bias = nullptr;
    Result<void> outcome;
    forEachStep<float>(shape, [&](const ProductStep<float> &step) {
        if (!outcome)
            return;
        const MatrixProduct<float> &p = step.product;
        ProductShape each{p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow, p.bColumn, p.cRow, step.repeats,
            step.aStep, step.bStep, step.cStep, seen, product.c.type,
            product.compute == DataType::TensorFloat32, product.bias.data != nullptr, step.accumulate};
        // Pointers count as many elements as if those were floats.
        const Elements a = shifted(product.a, p.a - shape.a);
        const Elements b = shifted(product.b, p.b - shape.b);
        const Elements c = shifted(product.c, p.c - shape.c);
        outcome = [&]() -> Result<void> {
            const Plan *const plan = p.k == 0 ? nullptr : &planOf(each);
            if (plan != nullptr && plan->product != nullptr) {
                TRY(const Elements seenA, operand(queue, a, seen, spanOf(each, true)));
                TRY(const Elements seenB, operand(queue, b, seen, spanOf(each, false)));
                const Call call{each, seenA.data, seenB.data, product.bias.data, c.data, nullptr};
                if (product.shape.batch.empty())
                    return holdOrMultiply(queue, call);
                const CudaStream stream = queue.stream();
                return multiply(*plan, call, queue.scratch(), stream);
            }
            PlainProductKernel kernel{a, b, product.bias, c, p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow,
                p.bColumn, p.cRow, step.aStep, step.bStep, step.cStep, product.compute, step.accumulate};
            return queue.launch(kernel, p.m * p.n * step.repeats);
        }();
    });
    return outcome;
}

} // namespace planloom
