#pragma once

#include "engine/cuda/kernels/element_kernels.h"

// Comparisons, logic and integers element by element; elements that indices or a condition choose.

namespace planloom {

enum class PairFunction : std::int32_t {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    And,
    Or,
    Xor,
    FloorMod,
    TruncatedMod, ///< Those before take floats, too.
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    ShiftLeft,
    ShiftRight,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
};

/// made = f(a, b), both of one type: of logic_functions.h, or binary_functions.h for integers.
struct PairKernel {
    Elements a{};
    Elements b{};
    Elements made{};
    PairFunction function{};
    bool floats = false;
    Nest<2> nest{}; ///< Of a and b.
    Problem *problem = nullptr; ///< Told of integers that are divided by 0.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[2] = {};
        nest.find(i, places);
        if (floats)
            return store(made, i, ofFloats(at(a, places[0]), at(b, places[1])));
        store(made, i, ofIntegers(load<std::int64_t>(a, places[0]), load<std::int64_t>(b, places[1])));
    }

    template<typename T> PLANLOOM_INLINE bool holds(T first, T second) const
    {
        switch (function) {
        case PairFunction::Equal:
            return logic::Equal{}(first, second);
        case PairFunction::Greater:
            return logic::Greater{}(first, second);
        case PairFunction::GreaterOrEqual:
            return logic::GreaterOrEqual{}(first, second);
        case PairFunction::Less:
            return logic::Less{}(first, second);
        case PairFunction::LessOrEqual:
            return logic::LessOrEqual{}(first, second);
        case PairFunction::And:
            return logic::And{}(first, second);
        case PairFunction::Or:
            return logic::Or{}(first, second);
        default:
            return logic::Xor{}(first, second);
        }
    }
    PLANLOOM_INLINE float ofFloats(float first, float second) const
    {
        if (function == PairFunction::FloorMod || function == PairFunction::TruncatedMod)
            return logic::remainder(first, second, function == PairFunction::TruncatedMod);
        return holds(first, second) ? 1.0f : 0.0f;
    }
    PLANLOOM_INLINE std::int64_t ofIntegers(std::int64_t first, std::int64_t second) const
    {
        const bool divides = function == PairFunction::FloorMod || function == PairFunction::TruncatedMod
            || function == PairFunction::Div;
        if (divides && second == 0) {
            problem->tell(0, 0);
            return 0;
        }
        const auto a64 = static_cast<std::uint64_t>(first); // wraps around
        const auto b64 = static_cast<std::uint64_t>(second);
        const std::uint64_t bits = 8 * static_cast<std::uint64_t>(sizeInBytes(a.type));
        const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        switch (function) {
        case PairFunction::FloorMod:
        case PairFunction::TruncatedMod:
            return logic::remainder(first, second, function == PairFunction::TruncatedMod);
        case PairFunction::BitwiseAnd:
            return logic::BitwiseAnd{}(first, second);
        case PairFunction::BitwiseOr:
            return logic::BitwiseOr{}(first, second);
        case PairFunction::BitwiseXor:
            return logic::BitwiseXor{}(first, second);
        case PairFunction::ShiftLeft:
        case PairFunction::ShiftRight:
            return static_cast<std::int64_t>(
                logic::shifted(a64 & mask, b64 & mask, bits, function == PairFunction::ShiftLeft));
        case PairFunction::Add:
            return static_cast<std::int64_t>(a64 + b64);
        case PairFunction::Sub:
            return static_cast<std::int64_t>(a64 - b64);
        case PairFunction::Mul:
            return static_cast<std::int64_t>(a64 * b64);
        case PairFunction::Div:
            return second == -1 ? static_cast<std::int64_t>(0 - a64) : first / second;
        case PairFunction::Pow:
            return binary::power(first, second);
        case PairFunction::Min:
            return second < first ? second : first;
        case PairFunction::Max:
            return second > first ? second : first;
        default:
            return holds(first, second) ? 1 : 0;
        }
    }
    PLANLOOM_INLINE static std::int64_t sizeInBytes(DataType type)
    {
        return type == DataType::Int64 ? 8 : type == DataType::Int32 ? 4 : type == DataType::Int16 ? 2 : 1;
    }
};

/// made[i] = start + i delta: of integers, or in double.
struct RangeKernel {
    Elements made{};
    bool floats = false;
    double start = 0;
    double delta = 0;
    std::int64_t wholeStart = 0;
    std::int64_t wholeDelta = 0;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        if (floats)
            store(made, i, static_cast<float>(start + static_cast<double>(i) * delta));
        else
            store(made, i, wholeStart + i * wholeDelta);
    }
};

/// Running sums of line i along an axis.
struct ScanKernel {
    Elements x{};
    Elements made{};
    std::int64_t extent = 1;
    std::int64_t inner = 1;
    bool fromBack = false;
    bool exclusive = false;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        if (x.type == DataType::Float32 || x.type == DataType::BFloat16 || x.type == DataType::Float16)
            scanAs<double, float>(i);
        else
            scanAs<std::int64_t, std::int64_t>(i);
    }
    template<typename Sum, typename T> PLANLOOM_INLINE void scanAs(std::int64_t line) const
    {
        Sum sum = 0;
        for (std::int64_t j = 0; j < extent; ++j) {
            const std::int64_t place =
                line / inner * extent * inner + line % inner + (fromBack ? extent - 1 - j : j) * inner;
            const Sum next = sum + load<Sum>(x, place);
            store(made, place, static_cast<T>(exclusive ? sum : next));
            sum = next;
        }
    }
};

/// Of a Where: the gradient of one of its sides where nothing is summed.
struct WhereSlopeKernel {
    const std::uint8_t *condition = nullptr;
    Elements dy{};
    Elements made{};
    bool whenTrue = true;
    Nest<1> nest{}; ///< Of the condition.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t place = 0;
        nest.find(i, &place);
        store(made, i, (condition[place] != 0) == whenTrue ? at(dy, i) : 0.0f);
    }
};

/// The same of a side that was broadcast: one team for each of its elements.
struct WhereSumKernel {
    const std::uint8_t *condition = nullptr;
    Elements dy{};
    Elements made{};
    bool whenTrue = true;
    std::int64_t count = 1;
    Nest<3> outer{}; ///< Of dy and the condition, over the elements made.
    Nest<3> inner{};

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        std::int64_t base[3] = {};
        outer.find(row, base);
        double part = 0;
        for (std::int64_t i = team.index(); i < count; i += team.size()) {
            std::int64_t places[3] = {base[0], base[1], base[2]};
            inner.find(i, places);
            if ((condition[places[1]] != 0) == whenTrue)
                part += static_cast<double>(at(dy, places[0]));
        }
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, row, static_cast<float>(sum));
    }
};

constexpr std::int32_t kMostIndices = 8; ///< That name one place together.

/// An index, or a tuple of them, as an offset.
struct IndexTuple {
    Elements indices{};
    std::int32_t width = 1;
    std::int64_t bounds[kMostIndices] = {};
    std::int64_t strides[kMostIndices] = {};
    Problem *problem = nullptr;

    /// Of the tuple that begins at element `place`; -1 where one is out of range.
    PLANLOOM_INLINE std::int64_t offset(std::int64_t place) const
    {
        std::int64_t sum = 0;
        for (std::int32_t q = 0; q < width; ++q) {
            const auto index = load<std::int64_t>(indices, place + q);
            if (index < -bounds[q] || index >= bounds[q]) {
                problem->tell(index, bounds[q]);
                return -1;
            }
            sum += (index < 0 ? index + bounds[q] : index) * strides[q];
        }
        return sum;
    }
};

/// y = elements of x that indices name.
struct PickKernel {
    const void *x = nullptr;
    void *made = nullptr;
    std::int32_t size = 4;
    IndexTuple tuple{};
    Nest<2> nest{}; ///< Over y: what x begins at, and where the indices are.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[2] = {};
        nest.find(i, places);
        const std::int64_t offset = tuple.offset(places[1]);
        if (offset < 0)
            return;
        const MoveKernel move{x, made, size, {}};
        const std::int64_t fromTo[2] = {places[0] + offset, i};
        switch (size) {
        case 1:
            return move.moveAs<std::uint8_t>(fromTo);
        case 2:
            return move.moveAs<std::uint16_t>(fromTo);
        case 4:
            return move.moveAs<std::uint32_t>(fromTo);
        default:
            return move.moveAs<std::uint64_t>(fromTo);
        }
    }
};

/// Element i of dx: the sum of what was picked from it, in the order of the indices, so that it is always the
/// same. O(indices of its row) for each.
struct PickSumKernel {
    Elements dy{};
    Elements made{};
    IndexTuple tuple{};
    std::int64_t count = 0; ///< Tuples that may name it,
    std::int64_t indexStep = 1; ///< so far apart,
    std::int64_t step = 1; ///< and what they picked, in dy.
    Nest<3> nest{}; ///< Over dx: its own offset, where its indices begin, and where its dy does.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[3] = {};
        nest.find(i, places);
        double sum = 0;
        for (std::int64_t k = 0; k < count; ++k)
            if (tuple.offset(places[1] + k * indexStep) == places[0])
                sum += static_cast<double>(at(dy, places[2] + k * step));
        store(made, i, static_cast<float>(sum));
    }
};

} // namespace planloom
