#pragma once

#include "engine/cuda/kernels/device_code.h"
#include "engine/kernels/elements/binary_functions.h"
#include "engine/kernels/elements/conversion.h"
#include "engine/kernels/elements/unary_functions.h"
#include "engine/kernels/movement/draw.h"

// Kernels of which each thread makes one element, and that can become one kernel with others
// (element_chain.h): the arguments, and what is done for element i. What such a kernel is compiled from when
// a plan runs includes this header, so it includes nothing but what CMakeLists.txt embeds.

namespace planloom {

/// to = from as another type (`wholeNumber` of conversion.h).
struct ConvertKernel {
    Elements from{};
    Elements to{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        if (to.type == DataType::Bool)
            return store(to, i, load<double>(from, i) != 0 ? 1 : 0);
        if (from.type == DataType::Int64 || to.type == DataType::Float64)
            return from.type == DataType::Int64 ? store(to, i, load<std::int64_t>(from, i))
                                                : store(to, i, load<double>(from, i));
        const double value = load<double>(from, i);
        switch (to.type) {
        case DataType::Int64:
            return store(to, i, wholeNumber<std::int64_t>(value));
        case DataType::Int32:
        case DataType::Int16:
        case DataType::Int8:
        case DataType::UInt8: // which keep the lowest bits
            return store(to, i, std::int64_t{wholeNumber<std::int32_t>(value)});
        default:
            return store(to, i, load<float>(from, i));
        }
    }
};

/// to[i] += from[i], which is first converted to the type of `to` (`addConverted` of box_copy.h).
struct AddKernel {
    Elements to{};
    Elements from{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        if (to.type == DataType::Float64)
            return store(to, i, load<double>(to, i) + load<double>(from, i));
        if (to.type == DataType::Float32 || to.type == DataType::BFloat16 || to.type == DataType::Float16)
            return store(to, i, at(to, i) + roundedFor(to.type, at(from, i)));
        store(to, i, load<std::int64_t>(to, i) + load<std::int64_t>(from, i));
    }
};

/// The functions of one operand by number.
enum class UnaryFunction : std::int32_t {
#define PLANLOOM_NAME_FUNCTION(Name) Name,
    PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_NAME_FUNCTION) PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_NAME_FUNCTION)
        GeluErf,
    GeluTanh,
    Dropped, ///< None: what follows is not a function.
};

/// y = f(x); or with dy, dx = dy f'(x), or of functions that allow it, of the value y = f(x).
struct UnaryKernel {
    Elements x{};
    Elements dy{}; ///< No data: forward.
    Elements made{};
    UnaryFunction function{};
    bool fromValue = false; ///< x is the value.
    unary::Parameters<float> parameters{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const float value = at(x, i);
        float result = 0;
        switch (function) {
#define PLANLOOM_RUN_FUNCTION(Name)                                                                          \
    case UnaryFunction::Name:                                                                                \
        result = of<unary::Name>(value, i);                                                                  \
        break;
            PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_RUN_FUNCTION)
            PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_RUN_FUNCTION)
            PLANLOOM_RUN_FUNCTION(GeluErf)
            PLANLOOM_RUN_FUNCTION(GeluTanh)
        case UnaryFunction::Dropped:
            break;
        }
        store(made, i, result);
    }
    template<typename Function> PLANLOOM_INLINE float of(float value, std::int64_t i) const
    {
        if (dy.data == nullptr)
            return Function::value(value, parameters);
        if constexpr (Function::kFromValue)
            if (fromValue)
                return unary::gradient<Function>(at(dy, i), Function::slopeOfValue(value, parameters));
        return unary::gradient<Function>(at(dy, i), Function::slope(value, parameters));
    }
};

enum class BinaryFunction : std::int32_t { Add, Sub, Mul, Div, Pow, Min, Max, PRelu, FloorMod, TruncatedMod };

/// f(a, b), or the gradient of a or of b, whose slope is asked for, from that of f(a, b).
PLANLOOM_INLINE float binaryOf(BinaryFunction function, std::int32_t slope, float a, float b, float dy)
{
    switch (function) {
#define PLANLOOM_RUN_FUNCTION_OF_TWO(Name)                                                                   \
    case BinaryFunction::Name:                                                                               \
        return slope < 0 ? binary::Name::value(a, b)                                                         \
            : slope == 0 ? binary::gradient<binary::Name, 0>(dy, binary::Name::slope<0>(a, b))               \
                         : binary::gradient<binary::Name, 1>(dy, binary::Name::slope<1>(a, b));
        PLANLOOM_RUN_FUNCTION_OF_TWO(Add)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Sub)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Mul)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Div)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Pow)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Min)
        PLANLOOM_RUN_FUNCTION_OF_TWO(Max)
        PLANLOOM_RUN_FUNCTION_OF_TWO(PRelu)
        PLANLOOM_RUN_FUNCTION_OF_TWO(FloorMod)
        PLANLOOM_RUN_FUNCTION_OF_TWO(TruncatedMod)
    }
    return 0;
}

/// made = f(a, b); or with dy, dy times the slope in operand `slope`. Operands broadcast by strides of 0.
struct BinaryKernel {
    Elements a{};
    Elements b{};
    Elements dy{}; ///< No data: forward.
    Elements made{};
    BinaryFunction function{};
    std::int32_t slope = -1; ///< Of operand 0 or 1.
    Nest<2> nest{}; ///< Of a and b; the others are dense.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[2] = {};
        nest.find(i, places);
        const float first = a.data == nullptr ? 1 : at(a, places[0]);
        const float second = b.data == nullptr ? 1 : at(b, places[1]);
        const float gradient = dy.data == nullptr ? 1 : at(dy, i);
        store(made, i, binaryOf(function, slope, first, second, gradient));
    }
};

/// As cast.cpp's: y = x / (1 - ratio) where the element of the whole pTensor is kept, else 0.
struct DropoutKernel {
    Elements from{};
    Elements to{};
    std::uint64_t key = 0;
    std::uint64_t bound = 0;
    std::uint64_t first = 0;
    float scale = 1;
    Nest<1> whole{}; ///< Where element i lies in the whole pTensor, behind `first`.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t place = 0;
        whole.find(i, &place);
        store(
            to, i, keeps(key, bound, first + static_cast<std::uint64_t>(place)) ? at(from, i) * scale : 0.0f);
    }
};

} // namespace planloom
