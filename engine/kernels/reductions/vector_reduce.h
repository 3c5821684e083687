#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cstdint>
#include <limits>

namespace planloom {

// Reductions that vectorise, where loops are compiled with -fopenmp-simd.

/// Sum of `count` values, accumulated in double.
template<typename T> PLANLOOM_INLINE double sumOf(const T *x, std::int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(x[i]);
    return sum;
}

/// Largest of `count` values; minus infinity for none.
template<typename T> PLANLOOM_INLINE T maximumOf(const T *x, std::int64_t count)
{
    T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

} // namespace planloom
