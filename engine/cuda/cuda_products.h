#pragma once

#include "engine/cuda/cuda_queue.h"

#include <cstddef>
#include <map>

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

    Result<void> run(CudaQueue &queue, const DeviceProduct &product);

    std::size_t chosen() const { return m_plans.size(); } ///< Shapes so far.

private:
    struct Plan {
        CudaProduct product = nullptr; ///< Null where cuBLASLt does not take it.
        std::size_t workspace = 0;
    };
    const Plan &planOf(const ProductShape &shape);
    Result<Elements> operand(CudaQueue &queue, const Elements &from, DataType wanted, std::int64_t count);

    CudaFunctions &m_cuda;
    std::map<ProductShape, Plan> m_plans{};
};

} // namespace planloom
