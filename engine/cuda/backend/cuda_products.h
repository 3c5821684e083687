#pragma once

#include "engine/cuda/backend/cuda_queue.h"

#include <cstddef>
#include <map>
#include <optional>

namespace planloom {

struct DeviceProduct; // device_product.h

/// Runs products by cuBLASLt, with what it chose for each shape kept; and by a kernel of our own what it does
/// not take.
class CudaProducts
{
public:
    explicit CudaProducts(CudaFunctions &cuda)
        : m_cuda(cuda)
    {
    }
    CudaProducts(const CudaProducts &) = delete;
    CudaProducts &operator=(const CudaProducts &) = delete;
    ~CudaProducts();

    /// Where the queue lets things wait, a product alone waits for an activation of its result, or its slope,
    /// which cuBLASLt then does as well.
    Result<void> run(CudaQueue &queue, const DeviceProduct &product);
    /// With the sums of a's rows, or of b's columns, which are those of a bias' gradient, by one call.
    /// @return false if cuBLASLt does not take that; nothing was launched then
    Result<bool> runWithSums(
        CudaQueue &queue, const DeviceProduct &product, const Elements &sums, Epilogue ofWhich);

    std::size_t chosen() const { return m_plans.size(); } ///< Shapes so far.

private:
    struct Plan {
        CudaProduct product = nullptr; ///< Null where cuBLASLt does not take it.
        std::size_t workspace = 0;
    };
    /// One call of cuBLASLt.
    struct Call {
        ProductShape shape{};
        const void *a = nullptr;
        const void *b = nullptr;
        const void *bias = nullptr;
        void *c = nullptr;
        void *aux = nullptr;
    };
    const Plan &planOf(const ProductShape &shape);
    Result<void> multiply(const Plan &plan, const Call &call, CudaScratch &scratch, CudaStream stream);
    Result<void> holdOrMultiply(CudaQueue &queue, const Call &call);
    static std::optional<Call> withActivation(
        Call call, const ElementChain::Step &next, std::int64_t items, bool isOver);
    Result<Elements> operand(CudaQueue &queue, const Elements &from, DataType wanted, std::int64_t count);

    CudaFunctions &m_cuda;
    std::map<ProductShape, Plan> m_plans{};
};

} // namespace planloom
