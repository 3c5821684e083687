#pragma once

#include "engine/cuda/backend/cuda_functions.h"

namespace planloom {

// As those of CudaFunctions, by cuBLASLt.
std::string whyNoProducts();
CudaStatus planProduct(const ProductShape &shape, std::size_t &workspace, CudaProduct *product);
CudaStatus multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c, void *aux,
    void *workspace, CudaStream stream);
void forgetProduct(CudaProduct product);

} // namespace planloom
