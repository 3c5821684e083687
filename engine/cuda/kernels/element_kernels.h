#pragma once

#include "engine/cuda/kernels/chain_kernels.h"
#include "engine/graph/annotation/combination.h"
#include "engine/kernels/elements/logic_functions.h"
#include "engine/kernels/optimizers/optimizer_values.h"

// Kernels of which each thread makes one element: the arguments, and what is done for element i.

namespace planloom {

/// to = from, by bits.
struct MoveKernel {
    const void *from = nullptr;
    void *to = nullptr;
    std::int32_t size = 4; ///< Of an element: 1, 2, 4 or 8.
    Nest<2> nest{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[2] = {};
        nest.find(i, places);
        switch (size) {
        case 1:
            return moveAs<std::uint8_t>(places);
        case 2:
            return moveAs<std::uint16_t>(places);
        case 4:
            return moveAs<std::uint32_t>(places);
        default:
            return moveAs<std::uint64_t>(places);
        }
    }
    template<typename T> PLANLOOM_INLINE void moveAs(const std::int64_t *places) const
    {
        static_cast<T *>(to)[places[1]] = static_cast<const T *>(from)[places[0]];
    }
};

constexpr std::int32_t kMostSources = 64;

/// to[i] = all sources' element i combined, in their order (`combineInto` of box_copy.h). Sources may be rows
/// apart: each `run` elements of `to` are next to each other, and `step` apart in the sources.
struct CombineKernel {
    void *to = nullptr;
    const void *from[kMostSources] = {};
    std::int32_t sources = 0;
    DataType type = DataType::Float32;
    Combination combination = Combination::Sum;
    std::int64_t run = 1;
    std::int64_t step = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t place = i / run * step + i % run;
        if (type == DataType::Float64)
            combineAs<double>(i, place);
        else if (type == DataType::Float32 || type == DataType::BFloat16 || type == DataType::Float16)
            combineAs<float>(i, place);
        else
            combineAs<std::int64_t>(i, place);
    }
    template<typename T> PLANLOOM_INLINE T source(std::int32_t k, std::int64_t place) const
    {
        return load<T>({const_cast<void *>(from[k]), type}, place);
    }
    template<typename T> PLANLOOM_INLINE void combineAs(std::int64_t i, std::int64_t place) const
    {
        T value = source<T>(0, place);
        if (combination == Combination::Sum) {
            for (std::int32_t k = 1; k < sources; ++k)
                value = static_cast<T>(value + source<T>(k, place));
            return store(Elements{to, type}, i, value);
        }
        for (std::int32_t k = 1; k < sources; ++k) {
            const T other = source<T>(k, place);
            value = other > value || other != other ? other : value;
        }
        const double top = static_cast<double>(value);
        if (combination == Combination::Max || !(top - top == 0)) // infinite, or NaN
            return store(Elements{to, type}, i, value);
        double sum = 0;
        for (std::int32_t k = 0; k < sources; ++k)
            sum += exp(static_cast<double>(source<T>(k, place)) - top);
        store(Elements{to, type}, i, static_cast<T>(top + log(sum)));
    }
};

/// What a part counts beside others, by the log-sum-exps of its row and of all: 0 where it has nothing.
PLANLOOM_INLINE double weightOfRow(const Elements &own, const Elements &all, std::int64_t row)
{
    const auto mine = load<double>(own, row);
    return mine < 0 && mine - mine != 0 ? 0 : exp(mine - load<double>(all, row));
}

/// As `weighInto` of box_copy.h.
struct WeighKernel {
    Elements to{};
    Elements from{};
    Elements own{};
    Elements all{};
    std::int64_t width = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        store(to, i, load<double>(from, i) * weightOfRow(own, all, i / width));
    }
};

/// As `mergeInto` of box_copy.h, with the log-sum-exps of both made before.
struct MergeKernel {
    Elements to{};
    Elements from[2] = {};
    Elements own[2] = {};
    Elements all{};
    std::int64_t width = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t row = i / width;
        store(to, i,
            load<double>(from[0], i) * weightOfRow(own[0], all, row)
                + load<double>(from[1], i) * weightOfRow(own[1], all, row));
    }
};

/// made = condition ? a : b, by bits.
struct WhereKernel {
    const std::uint8_t *condition = nullptr;
    const void *a = nullptr;
    const void *b = nullptr;
    void *made = nullptr;
    std::int32_t size = 4;
    Nest<3> nest{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t places[3] = {};
        nest.find(i, places);
        const bool first = condition[places[0]] != 0;
        const MoveKernel move{first ? a : b, made, size, {}};
        const std::int64_t fromTo[2] = {first ? places[1] : places[2], i};
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

/// As optimizer.cpp's adamW, with its names.
struct AdamWKernel {
    Elements weight{};
    Elements gradient{};
    Elements m{};
    Elements v{};
    Elements newWeight{};
    Elements newM{};
    Elements newV{};
    float gradientFactor = 1;
    AdamW<float> own{};
    const AdamW<float> *fresh = nullptr; ///< In place of `own`, on the device.
    Elements factor{}; ///< No data: 1.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const AdamW<float> &p = fresh != nullptr ? *fresh : own;
        const float g = at(gradient, i) * gradientFactor * (factor.data != nullptr ? at(factor, 0) : 1);
        const float first = p.beta1 * at(m, i) + p.rest1 * g;
        const float second = p.beta2 * at(v, i) + p.rest2 * g * g;
        const float w = at(weight, i);
        store(newM, i, first);
        store(newV, i, second);
        store(newWeight, i, w * p.keep - p.rate * first / (sqrtf(second) * p.scale + p.epsilon));
    }
};

/// As optimizer.cpp's sgd.
struct SgdKernel {
    Elements weight{};
    Elements gradient{};
    Elements momentum{}; ///< No data: none.
    Elements newWeight{};
    Elements newMomentum{};
    float gradientFactor = 1;
    float decay = 0;
    float kept = 0;
    float ownRate = 0;
    const float *freshRate = nullptr; ///< In place of `ownRate`, on the device.
    Elements factor{}; ///< No data: 1.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const float w = at(weight, i);
        const float clipped = factor.data != nullptr ? at(factor, 0) : 1;
        float direction = at(gradient, i) * gradientFactor * clipped + decay * w;
        if (momentum.data != nullptr)
            direction += kept * at(momentum, i);
        if (newMomentum.data != nullptr)
            store(newMomentum, i, direction);
        store(newWeight, i, w - (freshRate != nullptr ? *freshRate : ownRate) * direction);
    }
};

/// y = the rows of a table that indices name; zeros for rows of other parts. Element i of y.
struct EmbedKernel {
    const void *table = nullptr;
    Elements indices{};
    void *made = nullptr;
    std::int32_t size = 4; ///< Of an element.
    std::int64_t width = 1;
    std::int64_t first = 0; ///< Of the table's rows that this part has.
    std::int64_t rows = 0;
    std::int64_t allRows = 0;
    Problem *problem = nullptr;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const auto index = load<std::int64_t>(indices, i / width);
        if (index < -allRows || index >= allRows) {
            problem->tell(index, allRows);
            return;
        }
        const std::int64_t row = (index < 0 ? index + allRows : index) - first;
        const bool here = row >= 0 && row < rows;
        const std::int64_t from = here ? row * width + i % width : 0;
        switch (size) {
        case 2:
            static_cast<std::uint16_t *>(made)[i] =
                here ? static_cast<const std::uint16_t *>(table)[from] : std::uint16_t{0};
            break;
        case 4:
            static_cast<std::uint32_t *>(made)[i] =
                here ? static_cast<const std::uint32_t *>(table)[from] : 0;
            break;
        default:
            static_cast<std::uint64_t *>(made)[i] =
                here ? static_cast<const std::uint64_t *>(table)[from] : 0;
        }
    }
};

/// Of position i: the next one with the same index, or -1; and its row in this part of the table where it is
/// the first of them and the row is here, else -1. So that rows are added up in the order of positions, by
/// one thread each.
struct EmbedChainKernel {
    Elements indices{};
    std::int64_t count = 0;
    std::int64_t first = 0;
    std::int64_t rows = 0;
    std::int64_t allRows = 0;
    std::int64_t padding = -1; ///< A row that gets no gradient.
    std::int64_t *next = nullptr;
    std::int64_t *row = nullptr;
    Problem *problem = nullptr;

    PLANLOOM_INLINE std::int64_t indexAt(std::int64_t i) const
    {
        const auto index = load<std::int64_t>(indices, i);
        return index < 0 ? index + allRows : index;
    }
    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t index = indexAt(i);
        if (index < 0 || index >= allRows) {
            problem->tell(index, allRows);
            next[i] = row[i] = -1;
            return;
        }
        std::int64_t before = i - 1;
        while (before >= 0 && indexAt(before) != index)
            --before;
        std::int64_t after = i + 1;
        while (after < count && indexAt(after) != index)
            ++after;
        const std::int64_t own = index - first;
        next[i] = after < count ? after : -1;
        row[i] = before < 0 && own >= 0 && own < rows && index != padding ? own : -1;
    }
};

/// Adds up what comes to a row, by the chains above: element i of dy. Rows that nothing comes to were cleared
/// before.
struct EmbedSumKernel {
    Elements dy{};
    Elements made{};
    const std::int64_t *next = nullptr;
    const std::int64_t *row = nullptr;
    std::int64_t width = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t position = i / width;
        const std::int64_t column = i % width;
        if (row[position] < 0)
            return;
        const std::int64_t to = row[position] * width + column;
        float sum = 0;
        for (; position >= 0; position = next[position])
            sum += at(dy, position * width + column);
        store(made, to, sum);
    }
};

/// As rotary.cpp's: pairs of the last dimension are rotated. Backward (`inverse`), an element's partner gives
/// with its own sine and the opposite sign.
struct RotaryKernel {
    Elements x{};
    Elements cosine{};
    Elements sine{};
    Elements made{};
    std::int64_t width = 2;
    bool interleaved = false;
    bool inverse = false;
    Nest<2> nest{}; ///< Of cosine and sine, over x's elements.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t place = i % width;
        const std::int64_t half = width / 2;
        const bool first = interleaved ? place % 2 == 0 : place < half;
        const std::int64_t distance = interleaved ? 1 : half;
        const std::int64_t partner = first ? i + distance : i - distance;
        std::int64_t own[2] = {};
        nest.find(i, own);
        std::int64_t other[2] = {};
        nest.find(inverse ? partner : i, other);
        const float turned = at(x, partner) * at(sine, other[1]);
        const float sign = first != inverse ? -1.0f : 1.0f;
        store(made, i, at(x, i) * at(cosine, own[0]) + sign * turned);
    }
};

/// dx[i] = dy[where i goes] * factor: the gradient of a sum or a mean.
struct SpreadKernel {
    Elements dy{};
    Elements made{};
    float factor = 1;
    Nest<1> nest{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        std::int64_t place = 0;
        nest.find(i, &place);
        store(made, i, at(dy, place) * factor);
    }
};

/// Element i of c = a b (+ bias, + c), over all repeats; for products that cuBLASLt does not take.
struct PlainProductKernel {
    Elements a{};
    Elements b{};
    Elements bias{};
    Elements c{};
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t aRow = 0, aColumn = 1, bRow = 0, bColumn = 1, cRow = 0;
    std::int64_t aStep = 0, bStep = 0, cStep = 0;
    DataType compute = DataType::Float32; ///< What is seen of the operands.
    bool accumulate = false;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t repeat = i / (m * n);
        const std::int64_t row = i / n % m;
        const std::int64_t column = i % n;
        const std::int64_t to = repeat * cStep + row * cRow + column;
        const std::int64_t fromA = repeat * aStep + row * aRow;
        const std::int64_t fromB = repeat * bStep + column * bColumn;
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
            sum += roundedFor(compute, at(a, fromA + p * aColumn))
                * roundedFor(compute, at(b, fromB + p * bRow));
        if (bias.data != nullptr)
            sum += at(bias, column);
        store(c, to, accumulate ? at(c, to) + sum : sum);
    }
};

} // namespace planloom
