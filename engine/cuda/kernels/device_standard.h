#pragma once

// What kernels that are compiled when a plan runs (compiled_kernels.h) use of the standard library. NVRTC has
// none of it: it is given this header under the names of all standard headers that they include. On the host
// nothing includes it.

namespace std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using size_t = decltype(sizeof 0);

// The functions of floats by the names that CUDA gives them.
#define PLANLOOM_FUNCTION_OF_ONE(name)                                                                       \
    __device__ inline float name(float x)                                                                    \
    {                                                                                                        \
        return ::name##f(x);                                                                                 \
    }                                                                                                        \
    __device__ inline double name(double x)                                                                  \
    {                                                                                                        \
        return ::name(x);                                                                                    \
    }
PLANLOOM_FUNCTION_OF_ONE(acos)
PLANLOOM_FUNCTION_OF_ONE(acosh)
PLANLOOM_FUNCTION_OF_ONE(asin)
PLANLOOM_FUNCTION_OF_ONE(asinh)
PLANLOOM_FUNCTION_OF_ONE(atan)
PLANLOOM_FUNCTION_OF_ONE(atanh)
PLANLOOM_FUNCTION_OF_ONE(ceil)
PLANLOOM_FUNCTION_OF_ONE(cos)
PLANLOOM_FUNCTION_OF_ONE(cosh)
PLANLOOM_FUNCTION_OF_ONE(erf)
PLANLOOM_FUNCTION_OF_ONE(exp)
PLANLOOM_FUNCTION_OF_ONE(fabs)
PLANLOOM_FUNCTION_OF_ONE(floor)
PLANLOOM_FUNCTION_OF_ONE(log)
PLANLOOM_FUNCTION_OF_ONE(log1p)
PLANLOOM_FUNCTION_OF_ONE(nearbyint)
PLANLOOM_FUNCTION_OF_ONE(sin)
PLANLOOM_FUNCTION_OF_ONE(sinh)
PLANLOOM_FUNCTION_OF_ONE(sqrt)
PLANLOOM_FUNCTION_OF_ONE(tan)
PLANLOOM_FUNCTION_OF_ONE(tanh)
PLANLOOM_FUNCTION_OF_ONE(trunc)
#undef PLANLOOM_FUNCTION_OF_ONE

__device__ inline float fmod(float a, float b)
{
    return ::fmodf(a, b);
}
__device__ inline double fmod(double a, double b)
{
    return ::fmod(a, b);
}
__device__ inline float pow(float a, float b)
{
    return ::powf(a, b);
}
__device__ inline double pow(double a, double b)
{
    return ::pow(a, b);
}

template<typename T> __host__ __device__ constexpr T min(T a, T b)
{
    return b < a ? b : a;
}

template<typename To, typename From> __device__ To bit_cast(const From &from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

template<typename T> inline constexpr bool is_integral_v = false;
template<> inline constexpr bool is_integral_v<int32_t> = true;
template<> inline constexpr bool is_integral_v<int64_t> = true;

template<typename T> struct numeric_limits;
template<> struct numeric_limits<float> {
    __device__ static float infinity() { return __int_as_float(0x7f800000); }
};

namespace numbers {
template<typename T> inline constexpr T inv_sqrtpi_v = static_cast<T>(0.564189583547756286948079451560772586);
inline constexpr double inv_sqrtpi = inv_sqrtpi_v<double>;
inline constexpr double sqrt2 = 1.41421356237309504880168872420969808;
} // namespace numbers

// Of what headers declare for the host alone.
class string
{
};
template<typename T> class vector
{
};

} // namespace std
