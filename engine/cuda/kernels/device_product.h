#pragma once

#include "engine/cuda/kernels/device_code.h"
#include "engine/kernels/products/gemm.h"

namespace planloom {

/// One matrix product in the memory of the device. Strides are in elements, as MatrixProduct of gemm.h has
/// them; its pointers are not used.
struct DeviceProduct {
    MatrixProduct<float> shape{};
    Elements a{};
    Elements b{};
    Elements c{};
    Elements bias{}; ///< [n], of c's type; no data: none.
    DataType compute = DataType::Float32; ///< What is seen of the operands.
};

} // namespace planloom
