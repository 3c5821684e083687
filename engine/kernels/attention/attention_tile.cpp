#include "engine/kernels/attention/attention_tile.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include "engine/kernels/kernel_call.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planloom {

namespace {

template<typename T> PLANLOOM_INLINE void addRowTo(T *x, const T *added, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i)
        x[i] += added[i];
}
template<typename T>
PLANLOOM_INLINE void hideRowOf(T *x, const std::uint8_t *shown, std::int64_t count, T hidden)
{
    for (std::int64_t i = 0; i < count; ++i)
        x[i] = shown[i] != 0 ? x[i] : hidden;
}
template<typename T> PLANLOOM_INLINE double exponentialsOf(T *x, std::int64_t count, T shift, T factor)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
        const T value = expOf(x[i] - shift);
        sum += static_cast<double>(value);
        x[i] = value * factor;
    }
    return sum;
}
template<typename T> PLANLOOM_INLINE void scaleRowOf(T *x, std::int64_t count, T factor)
{
    for (std::int64_t i = 0; i < count; ++i)
        x[i] *= factor;
}
template<typename T> PLANLOOM_INLINE double dotOf(const T *a, const T *b, std::int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}
template<typename T> PLANLOOM_INLINE void slopeRowOf(const T *p, T *slope, std::int64_t count, T shift)
{
    for (std::int64_t i = 0; i < count; ++i)
        slope[i] = p[i] * (slope[i] - shift);
}

PLANLOOM_HOT void addToRow(float *x, const float *added, std::int64_t count)
{
    addRowTo(x, added, count);
}
PLANLOOM_HOT void hideRow(float *x, const std::uint8_t *shown, std::int64_t count, float hidden)
{
    hideRowOf(x, shown, count, hidden);
}
PLANLOOM_HOT float largestOf(const float *x, std::int64_t count)
{
    return maximumOf(x, count);
}
PLANLOOM_HOT double hotExponentials(float *x, std::int64_t count, float shift, float factor)
{
    return exponentialsOf(x, count, shift, factor);
}
PLANLOOM_HOT void hotScaleRow(float *x, std::int64_t count, float factor)
{
    scaleRowOf(x, count, factor);
}
PLANLOOM_HOT double hotDot(const float *a, const float *b, std::int64_t count)
{
    return dotOf(a, b, count);
}
PLANLOOM_HOT void hotSlopeRow(const float *p, float *slope, std::int64_t count, float shift)
{
    slopeRowOf(p, slope, count, shift);
}
PLANLOOM_HOT void dropRow(
    float *x, std::int64_t count, std::uint64_t key, std::uint64_t bound, std::uint64_t first, float scale)
{
    for (std::int64_t i = 0; i < count; ++i) {
        const float kept = x[i] * scale;
        x[i] = keeps(key, bound, first + static_cast<std::uint64_t>(i)) ? kept : 0.0f;
    }
}
void addToRow(double *x, const double *added, std::int64_t count)
{
    addRowTo(x, added, count);
}
void hideRow(double *x, const std::uint8_t *shown, std::int64_t count, double hidden)
{
    hideRowOf(x, shown, count, hidden);
}
double largestOf(const double *x, std::int64_t count)
{
    return maximumOf(x, count);
}
void dropRow(
    double *x, std::int64_t count, std::uint64_t key, std::uint64_t bound, std::uint64_t first, double scale)
{
    for (std::int64_t i = 0; i < count; ++i)
        x[i] = keeps(key, bound, first + static_cast<std::uint64_t>(i)) ? x[i] * scale : 0.0;
}

/// Elements `keys` of a mask's row, one behind another: copied to `spread` where one stands for all.
template<typename M> const M *maskRow(const M *row, std::int64_t column, Range keys, std::vector<M> &spread)
{
    if (column == 1)
        return row + keys.begin;
    spread.assign(static_cast<std::size_t>(keys.size()), *row);
    return spread.data();
}

} // namespace

double exponentials(float *x, std::int64_t count, float shift, float factor)
{
    return hotExponentials(x, count, shift, factor);
}
double exponentials(double *x, std::int64_t count, double shift, double factor)
{
    return exponentialsOf(x, count, shift, factor);
}
void scaleRow(float *x, std::int64_t count, float factor)
{
    hotScaleRow(x, count, factor);
}
void scaleRow(double *x, std::int64_t count, double factor)
{
    scaleRowOf(x, count, factor);
}
double dot(const float *a, const float *b, std::int64_t count)
{
    return hotDot(a, b, count);
}
double dot(const double *a, const double *b, std::int64_t count)
{
    return dotOf(a, b, count);
}
void slopeRow(const float *probabilities, float *slope, std::int64_t count, float shift)
{
    hotSlopeRow(probabilities, slope, count, shift);
}
void slopeRow(const double *probabilities, double *slope, std::int64_t count, double shift)
{
    slopeRowOf(probabilities, slope, count, shift);
}

template<typename T>
AttentionTiles<T>::AttentionTiles(const AttentionPlan &plan)
    : m_plan(plan)
    , m_drawn(firstsOf(plan.dropped.heads))
    , m_scale(static_cast<T>(plan.scale))
    , m_softcap(static_cast<T>(plan.softcap))
    , m_maskedScore(static_cast<T>(plan.maskedScore))
{
    for (std::int64_t &drawn : m_drawn)
        drawn += plan.dropped.first;
    for (const AttentionPlan::Mask &mask : plan.masks)
        m_masks.push_back(
            mask.buffer == nullptr ? std::nullopt : std::optional(Mask{mask, firstsOf(mask.heads)}));
}

template<typename T> std::vector<std::int64_t> AttentionTiles<T>::firstsOf(const Shape &strides) const
{
    std::vector<std::int64_t> firsts{0};
    for (std::size_t d = 0; d < strides.size(); ++d) {
        std::vector<std::int64_t> next;
        next.reserve(firsts.size() * static_cast<std::size_t>(m_plan.leading[d]));
        for (const std::int64_t outer : firsts) {
            for (std::int64_t i = 0; i < m_plan.leading[d]; ++i)
                next.push_back(outer + i * strides[d]);
        }
        firsts = std::move(next);
    }
    return firsts;
}

template<typename T> Range AttentionTiles<T>::keysOf(Range queries) const
{
    // Both ends move on with the query.
    const Range first = m_plan.reach.keysOf(m_plan.firstQuery + queries.begin, m_plan.allKeys);
    const Range last = m_plan.reach.keysOf(m_plan.firstQuery + queries.end - 1, m_plan.allKeys);
    const std::int64_t end = std::clamp(last.end - m_plan.firstKey, std::int64_t{0}, m_plan.keys);
    return {std::clamp(first.begin - m_plan.firstKey, std::int64_t{0}, end), end};
}

template<typename T>
void AttentionTiles<T>::multiplyKeys(std::int64_t head, Range queries, Range keys, T *tile) const
{
    const std::int64_t count = keys.size();
    MatrixProduct<T> product;
    product.m = queries.size();
    product.n = count;
    product.k = m_plan.width;
    product.a = elements<const T>(*m_plan.q) + (head * m_plan.queries + queries.begin) * m_plan.width;
    product.aRow = m_plan.width;
    product.b = elements<const T>(*m_plan.k) + (keyHeadOf(head) * m_plan.keys + keys.begin) * m_plan.width;
    product.bRow = 1;
    product.bColumn = m_plan.width;
    product.c = tile;
    product.cRow = count;
    multiply(std::move(product));
    if (!isCapped())
        return;
    for (std::int64_t i = 0; i < queries.size() * count; ++i)
        tile[i] = std::tanh(tile[i] * (m_scale / m_softcap));
}

template<typename T>
void AttentionTiles<T>::slopeOfCap(std::int64_t head, Range queries, Range keys, T *scratch, T *slope) const
{
    multiplyKeys(head, queries, keys, scratch);
    for (std::int64_t i = 0; i < queries.size() * keys.size(); ++i)
        slope[i] *= 1 - scratch[i] * scratch[i];
}

template<typename T>
void AttentionTiles<T>::score(std::int64_t head, Range queries, Range keys, T *tile, T *highest) const
{
    const std::int64_t count = keys.size();
    multiplyKeys(head, queries, keys, tile);
    std::vector<T> spread;
    std::vector<std::uint8_t> spreadBits;
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
        T *row = tile + (i - queries.begin) * count;
        scaleRow(row, count, isCapped() ? m_softcap : m_scale);
        for (const auto &mask : m_masks) {
            if (mask && !mask->isBoolean())
                addToRow(row, maskRow(mask->template rowOf<T>(head, i), mask->planned.column, keys, spread),
                    count);
        }
        for (const auto &mask : m_masks) {
            if (mask && mask->isBoolean())
                hideRow(row,
                    maskRow(
                        mask->template rowOf<std::uint8_t>(head, i), mask->planned.column, keys, spreadBits),
                    count, m_maskedScore);
        }
        const Range seen = m_plan.reach.keysOf(m_plan.firstQuery + i, m_plan.allKeys);
        const std::int64_t begin =
            std::clamp(seen.begin - m_plan.firstKey - keys.begin, std::int64_t{0}, count);
        const std::int64_t end = std::clamp(seen.end - m_plan.firstKey - keys.begin, begin, count);
        std::fill(row, row + begin, -std::numeric_limits<T>::infinity());
        std::fill(row + end, row + count, -std::numeric_limits<T>::infinity());
        highest[i - queries.begin] = largestOf(row + begin, end - begin);
    }
}

template<typename T>
std::int64_t AttentionTiles<T>::drawnAt(std::int64_t head, std::int64_t query, std::int64_t key) const
{
    return m_drawn[static_cast<std::size_t>(head)] + (m_plan.firstQuery + query) * m_plan.allKeys
        + m_plan.firstKey + key;
}

template<typename T> void AttentionTiles<T>::drop(std::int64_t head, Range queries, Range keys, T *tile) const
{
    if (!drops())
        return;
    const T enlarged = static_cast<T>(1 / (1 - m_plan.dropped.ratio));
    for (std::int64_t i = queries.begin; i < queries.end; ++i)
        dropRow(tile + (i - queries.begin) * keys.size(), keys.size(), m_plan.dropped.draw.key,
            m_plan.dropped.draw.bound, static_cast<std::uint64_t>(drawnAt(head, i, keys.begin)), enlarged);
}

template<typename T>
void AttentionTiles<T>::clearFixed(std::int64_t head, Range queries, Range keys, T *tile) const
{
    for (const auto &mask : m_masks) {
        if (!mask || !mask->isBoolean())
            continue;
        for (std::int64_t i = queries.begin; i < queries.end; ++i) {
            const auto *shown = mask->template rowOf<std::uint8_t>(head, i);
            T *row = tile + (i - queries.begin) * keys.size();
            for (std::int64_t j = keys.begin; j < keys.end; ++j)
                row[j - keys.begin] = shown[j * mask->planned.column] != 0 ? row[j - keys.begin] : T(0);
        }
    }
}

template<typename T>
void AttentionTiles<T>::addToMask(
    std::size_t index, std::int64_t head, Range queries, Range keys, const T *tile, double *sums) const
{
    const Mask &mask = *m_masks[index];
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
        double *to = sums + mask.at(head, i);
        const T *row = tile + (i - queries.begin) * keys.size();
        for (std::int64_t j = keys.begin; j < keys.end; ++j)
            to[j * mask.planned.column] += static_cast<double>(row[j - keys.begin]);
    }
}

template class AttentionTiles<float>;
template class AttentionTiles<double>;

} // namespace planloom
