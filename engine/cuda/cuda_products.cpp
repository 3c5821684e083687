#include "engine/cuda/cuda_products.h"

#include "engine/cuda/device_product.h"

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

Result<void> CudaProducts::run(CudaQueue &queue, const DeviceProduct &product)
{
    // What the matrix units read: the type computed with, or the one that both operands have.
    const bool alike = product.a.type == product.b.type && isLoadable(product.a.type);
    DataType seen = product.compute;
    if (seen == DataType::Float32 || seen == DataType::TensorFloat32)
        seen = alike ? product.a.type : DataType::Float32;
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
                std::byte *workspace = nullptr;
                if (plan->workspace > 0) {
                    TRY(workspace, queue.scratch().take(plan->workspace));
                }
                const CudaStatus status = m_cuda.multiply(plan->product, seenA.data, seenB.data,
                    product.bias.data, c.data, workspace, queue.stream());
                if (status != kCudaSuccess)
                    return Error{ErrorCode::Internal, "cublasLtMatmul failed with " + std::to_string(status),
                        "look whether other versions of cuBLAS are in the way (LD_LIBRARY_PATH)", {}};
                return {};
            }
            PlainProductKernel kernel{a, b, product.bias, c, p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow,
                p.bColumn, p.cRow, step.aStep, step.bStep, step.cStep, product.compute, step.accumulate};
            return queue.launch(kernel, p.m * p.n * step.repeats);
        }();
    });
    return outcome;
}

} // namespace planloom
