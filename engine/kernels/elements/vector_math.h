#pragma once

#include "engine/base/hot_loop.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Must become part of the hot loop that calls it, in each of its versions. In CUDA sources: code of the
// device, too.
#if defined(__CUDACC__)
#define PLANLOOM_INLINE __host__ __device__ __forceinline__
#else
#define PLANLOOM_INLINE [[gnu::always_inline]] inline
#endif

namespace planloom {

// On the CPU as builtins: calls would keep loops from being vectorised.
PLANLOOM_INLINE float nearestWhole(float x)
{
#if defined(__CUDACC__)
    return rintf(x);
#else
    return __builtin_rintf(x);
#endif
}
PLANLOOM_INLINE float magnitudeOf(float x)
{
#if defined(__CUDACC__)
    return fabsf(x);
#else
    return __builtin_fabsf(x);
#endif
}
PLANLOOM_INLINE float withSignOf(float size, float sign)
{
#if defined(__CUDACC__)
    return copysignf(size, sign);
#else
    return __builtin_copysignf(size, sign);
#endif
}

// Elementary functions without branches or calls, so that loops over them vectorise. Those for float are
// accurate to about 1e-7 relative (2 units in the last place); those for double are the standard library's.

/// 2^n * e^r = e^x with |r| <= ln(2)/2: returns r, sets n. `x` must lie within [-125 ln 2, 128 ln 2].
PLANLOOM_INLINE float reduceExponent(float x, float &n)
{
    n = nearestWhole(x * 1.44269504f);
    const float r = x - n * 0.693145752f; // The leading bits of ln 2: n times it is exact.
    return r - n * 1.42860677e-6f;
}

/// e^r - 1 for |r| <= ln(2)/2, by its series.
PLANLOOM_INLINE float smallExpm1(float r)
{
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    return p * r * r + r;
}

PLANLOOM_INLINE float powerOfTwo(float n)
{
    return std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

/// e^x; 0 below 2.5e-38.
PLANLOOM_INLINE float expOf(float x)
{
    float bounded = x < -86.6f ? -86.6f : x;
    bounded = bounded > 88.722839f ? 88.722839f : bounded;
    float n = 0;
    const float r = reduceExponent(bounded, n);
    const float value = (smallExpm1(r) + 1.0f) * powerOfTwo(n - 1.0f) * 2.0f; // 2^128 has no float.
    const float finite = x > 88.722839f ? std::numeric_limits<float>::infinity() : value;
    return x < -86.6f ? 0.0f : finite;
}
PLANLOOM_INLINE double expOf(double x)
{
    return std::exp(x);
}

PLANLOOM_INLINE float tanhOf(float x)
{
    float twice = 2.0f * magnitudeOf(x);
    twice = twice > 20.0f ? 20.0f : twice;
    float n = 0;
    const float r = reduceExponent(twice, n);
    const float scale = powerOfTwo(n);
    const float expm1 = scale * smallExpm1(r) + (scale - 1.0f);
    return withSignOf(expm1 / (expm1 + 2.0f), x);
}
PLANLOOM_INLINE double tanhOf(double x)
{
    return std::tanh(x);
}

PLANLOOM_INLINE float sigmoidOf(float x)
{
    return 1.0f / (1.0f + expOf(-x));
}
PLANLOOM_INLINE double sigmoidOf(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

/// Below 1 by its series; beyond, 1 - e^(-x^2) q(1/x) / x with q interpolated at Chebyshev nodes on [1, 4.2].
PLANLOOM_INLINE float erfOf(float x)
{
    const float a = magnitudeOf(x);
    const float s = x * x;
    float p = -1.0f / (19 * 362880.0f);
    p = p * s + 1.0f / (17 * 40320);
    p = p * s - 1.0f / (15 * 5040);
    p = p * s + 1.0f / (13 * 720);
    p = p * s - 1.0f / (11 * 120);
    p = p * s + 1.0f / (9 * 24);
    p = p * s - 1.0f / (7 * 6);
    p = p * s + 1.0f / (5 * 2);
    p = p * s - 1.0f / 3;
    const float small = 1.12837917f * a * (p * s + 1.0f);
    float bounded = a > 4.2f ? 4.2f : a;
    bounded = bounded < 1.0f ? 1.0f : bounded;
    const float u = 1.0f / bounded;
    float q = 0.0568751810f;
    q = q * u - 0.324616328f;
    q = q * u + 0.786424340f;
    q = q * u - 1.01249456f;
    q = q * u + 0.644468930f;
    q = q * u + 0.00584678589f;
    q = q * u - 0.295611240f;
    q = q * u + 0.00268005543f;
    q = q * u + 0.564010440f;
    const float large = 1.0f - expOf(-bounded * bounded) * q * u;
    return withSignOf(a < 1.0f ? small : large, x);
}
PLANLOOM_INLINE double erfOf(double x)
{
    return std::erf(x);
}

} // namespace planloom
