// Attention in tiles: no pass holds more scores than kTileQueries x kTileKeys, unless probabilities are asked
// for (FlashAttention, arXiv:2205.14135; the order of the loops is that of FlashAttention-2,
// arXiv:2307.08691).
#include "engine/base/work_pool.h"
#include "engine/kernels/attention/attention_tile.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

template<typename T> constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// A log-sum-exp beyond this has lost the digits that tell how many keys share the weight, as where large
/// negative numbers hide all keys; its sum is then found anew.
constexpr double kExactLogSum = 128;

Range tileAt(std::int64_t begin, std::int64_t size, std::int64_t end)
{
    return {begin, std::min(begin + size, end)};
}

/// c (+)= a b
template<typename T>
void product(std::int64_t m, std::int64_t n, std::int64_t k, const T *a, std::array<std::int64_t, 2> aStrides,
    const T *b, std::array<std::int64_t, 2> bStrides, T *c, bool accumulate)
{
    MatrixProduct<T> made;
    made.m = m;
    made.n = n;
    made.k = k;
    made.a = a;
    made.aRow = aStrides[0];
    made.aColumn = aStrides[1];
    made.b = b;
    made.bRow = bStrides[0];
    made.bColumn = bStrides[1];
    made.c = c;
    made.cRow = n;
    made.accumulate = accumulate;
    multiply(std::move(made));
}

/// Largest score and sum of exponentials of every query of a tile, over the keys so far.
template<typename T> struct Running {
    std::array<T, kTileQueries> largest{};
    std::array<double, kTileQueries> sum{};
};

template<typename T> class Forward
{
public:
    explicit Forward(const AttentionPlan &plan)
        : m_plan(plan)
        , m_tiles(plan)
        , m_v(elements<const T>(*plan.v))
        , m_width(plan.valueWidth)
        , m_scores(static_cast<std::size_t>(kTileQueries * kTileKeys))
        , m_sums(static_cast<std::size_t>(kTileQueries * m_width))
    {
    }

    void run(std::int64_t firstHead, std::int64_t lastHead)
    {
        for (std::int64_t head = firstHead; head < lastHead; ++head) {
            for (std::int64_t i = 0; i < m_plan.queries; i += kTileQueries)
                attend(head, tileAt(i, kTileQueries, m_plan.queries));
        }
    }

private:
    void attend(std::int64_t head, Range queries)
    {
        std::fill(m_sums.begin(), m_sums.end(), T(0));
        m_running.largest.fill(kNothing<T>);
        m_running.sum.fill(0);
        const Range keys = m_tiles.keysOf(queries);
        if (m_plan.probabilities != nullptr)
            clearProbabilities(head, queries);
        for (std::int64_t j = keys.begin; j < keys.end; j += kTileKeys)
            addTile(head, queries, tileAt(j, kTileKeys, keys.end));
        finish(head, queries, keys);
    }

    T *probabilitiesAt(std::int64_t head, std::int64_t query) const
    {
        return elements<T>(*m_plan.probabilities) + (head * m_plan.queries + query) * m_plan.keys;
    }

    void clearProbabilities(std::int64_t head, Range queries)
    {
        T *begin = probabilitiesAt(head, queries.begin);
        std::fill(begin, begin + queries.size() * m_plan.keys, T(0));
    }

    void addTile(std::int64_t head, Range queries, Range keys)
    {
        std::array<T, kTileQueries> highest;
        m_tiles.score(head, queries, keys, m_scores.data(), highest.data());
        for (std::int64_t i = 0; i < queries.size(); ++i) {
            T *row = m_scores.data() + i * keys.size();
            if (m_plan.probabilities != nullptr) // as scores, until all sums are known
                std::copy_n(row, keys.size(), probabilitiesAt(head, queries.begin + i) + keys.begin);
            const auto at = static_cast<std::size_t>(i);
            const T largest = std::max(m_running.largest[at], highest[at]);
            if (largest == kNothing<T>) {
                // Nothing is seen; or what is there is no number, which must not be lost.
                if (std::any_of(row, row + keys.size(), [](T score) { return std::isnan(score); }))
                    m_running.sum[at] = std::numeric_limits<double>::quiet_NaN();
                std::fill(row, row + keys.size(), T(0));
                continue;
            }
            if (largest > m_running.largest[at]) {
                const T shrunk = std::exp(m_running.largest[at] - largest);
                scaleRow(m_sums.data() + i * m_width, m_width, shrunk);
                m_running.sum[at] *= static_cast<double>(shrunk);
                m_running.largest[at] = largest;
            }
            m_running.sum[at] += exponentials(row, keys.size(), largest, T(1));
        }
        m_tiles.drop(head, queries, keys, m_scores.data());
        product<T>(queries.size(), m_width, keys.size(), m_scores.data(), {keys.size(), 1},
            m_v + (m_tiles.keyHeadOf(head) * m_plan.keys + keys.begin) * m_width, {m_width, 1}, m_sums.data(),
            true);
    }

    void finish(std::int64_t head, Range queries, Range keys)
    {
        for (std::int64_t i = 0; i < queries.size(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            const std::int64_t row = head * m_plan.queries + queries.begin + i;
            const double sum = m_running.sum[at];
            const T share = sum == 0 ? T(0) : static_cast<T>(1 / sum);
            if (m_plan.y != nullptr) {
                T *y = elements<T>(*m_plan.y) + row * m_width;
                std::copy_n(m_sums.data() + i * m_width, m_width, y);
                scaleRow(y, m_width, share);
            }
            if (m_plan.logSum != nullptr) {
                elements<T>(*m_plan.logSum)[row] =
                    sum == 0 ? kNothing<T> : m_running.largest[at] + static_cast<T>(std::log(sum));
            }
            if (m_plan.probabilities == nullptr)
                continue;
            T *probabilities = probabilitiesAt(head, queries.begin + i) + keys.begin;
            if (sum != 0)
                exponentials(probabilities, keys.size(), m_running.largest[at], share);
            else
                std::fill(probabilities, probabilities + keys.size(), T(0));
        }
    }

    const AttentionPlan &m_plan;
    AttentionTiles<T> m_tiles;
    const T *m_v;
    std::int64_t m_width;
    std::vector<T> m_scores; ///< [queries keys] of one tile.
    std::vector<T> m_sums; ///< [queries f]: weighted sums of values, not yet divided.
    Running<T> m_running{};
};

/// Heads that are worth a thread of their own, and share no keys with others.
std::int64_t headsAtOnce(const AttentionPlan &plan)
{
    constexpr std::int64_t kScores = std::int64_t{1} << 15;
    const std::int64_t scores = std::max<std::int64_t>(1, plan.queries * plan.keys);
    const std::int64_t group = std::max<std::int64_t>(1, plan.group);
    return (std::max<std::int64_t>(1, kScores / scores) + group - 1) / group * group;
}

Result<void> attentionForward(const KernelCall &call, const AttentionPlan &plan)
{
    return withFloat(call, plan.q->dataType, [&]<typename T>(T) {
        forEachStretch(
            plan.heads, headsAtOnce(plan), [&](auto begin, auto end) { Forward<T>(plan).run(begin, end); });
    });
}

/// With P the probabilities, P~ what the dropout leaves of them, and D the rows' sums of dy y:
/// dv = P~^T dy, dP = dropped(dy v^T), dS = P (dP - D), dq = scale dS k, dk = scale dS^T q, dmask = dS.
template<typename T> class Backward
{
public:
    explicit Backward(const AttentionPlan &plan)
        : m_plan(plan)
        , m_tiles(plan)
        , m_q(at<const T>(plan.q))
        , m_k(at<const T>(plan.k))
        , m_v(at<const T>(plan.v))
        , m_dy(at<const T>(plan.dy))
        , m_y(at<const T>(plan.y))
        , m_logSum(at<const T>(plan.logSum))
        , m_probabilities(at<const T>(plan.probabilities))
        , m_dq(at<T>(plan.dq))
        , m_dk(at<T>(plan.dk))
        , m_dv(at<T>(plan.dv))
        , m_tile(static_cast<std::size_t>(kTileQueries * kTileKeys))
        , m_slope(m_tile.size())
        , m_kept(m_tiles.drops() ? m_tile.size() : 0)
    {
        for (std::size_t mask = 0; mask < plan.masks.size(); ++mask) {
            if (const Buffer *const gradient = plan.masks[mask].gradient)
                m_maskSums.push_back(
                    {mask, std::vector<double>(static_cast<std::size_t>(elementCount(*gradient)), 0.0)});
        }
    }

    void run(std::int64_t firstHead, std::int64_t lastHead)
    {
        for (std::int64_t head = firstHead; head < lastHead; ++head) {
            normalise(head);
            for (std::int64_t j = 0; j < m_plan.keys; j += kTileKeys) {
                const Range keys = tileAt(j, kTileKeys, m_plan.keys);
                for (std::int64_t i = 0; i < m_plan.queries; i += kTileQueries) {
                    const Range queries = tileAt(i, kTileQueries, m_plan.queries);
                    const Range seen = m_tiles.keysOf(queries);
                    const Range both{std::max(keys.begin, seen.begin), std::min(keys.end, seen.end)};
                    if (both.begin < both.end)
                        addTile(head, queries, both);
                }
            }
        }
    }

    /// Of the masks whose gradients are wanted.
    struct MaskSums {
        std::size_t mask = 0;
        std::vector<double> sums{};
    };
    const std::vector<MaskSums> &maskSums() const { return m_maskSums; }

private:
    template<typename E> static E *at(const Buffer *buffer)
    {
        return buffer == nullptr ? nullptr : elements<E>(*buffer);
    }

    /// Of every query of a head: what probabilities are made of scores with, and D.
    void normalise(std::int64_t head)
    {
        const std::int64_t queries = m_plan.queries;
        m_shift.resize(static_cast<std::size_t>(queries));
        m_share.assign(static_cast<std::size_t>(queries), T(1));
        m_dot.assign(static_cast<std::size_t>(queries), T(0));
        for (std::int64_t i = 0; i < queries; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const std::int64_t row = head * queries + i;
            m_shift[at] = m_logSum[row];
            if (m_probabilities == nullptr && m_plan.hasAllKeys() && std::isfinite(m_shift[at])
                && std::fabs(static_cast<double>(m_shift[at])) > kExactLogSum)
                normaliseExactly(head, i);
            if (!m_plan.needsSlope())
                continue;
            m_dot[at] = static_cast<T>(
                dot(m_dy + row * m_plan.valueWidth, m_y + row * m_plan.valueWidth, m_plan.valueWidth));
        }
    }

    void normaliseExactly(std::int64_t head, std::int64_t query)
    {
        const Range row{query, query + 1};
        const Range keys = m_tiles.keysOf(row);
        T largest = kNothing<T>;
        double sum = 0;
        for (std::int64_t j = keys.begin; j < keys.end; j += kTileKeys) {
            const Range tile = tileAt(j, kTileKeys, keys.end);
            T highest = 0;
            m_tiles.score(head, row, tile, m_tile.data(), &highest);
            if (highest == kNothing<T>)
                continue;
            if (highest > largest) {
                sum *= std::exp(static_cast<double>(largest) - static_cast<double>(highest));
                largest = highest;
            }
            sum += exponentials(m_tile.data(), tile.size(), largest, T(1));
        }
        if (sum <= 0)
            return;
        m_shift[static_cast<std::size_t>(query)] = largest;
        m_share[static_cast<std::size_t>(query)] = static_cast<T>(1 / sum);
    }

    /// The probabilities of a tile into m_tile.
    void makeProbabilities(std::int64_t head, Range queries, Range keys)
    {
        std::array<T, kTileQueries> highest;
        if (m_probabilities == nullptr)
            m_tiles.score(head, queries, keys, m_tile.data(), highest.data());
        for (std::int64_t i = queries.begin; i < queries.end; ++i) {
            T *row = m_tile.data() + (i - queries.begin) * keys.size();
            const auto at = static_cast<std::size_t>(i);
            if (m_probabilities != nullptr)
                std::copy_n(m_probabilities + (head * m_plan.queries + i) * m_plan.keys + keys.begin,
                    keys.size(), row);
            else if (m_shift[at] == kNothing<T>)
                std::fill(row, row + keys.size(), T(0));
            else
                exponentials(row, keys.size(), m_shift[at], m_share[at]);
        }
    }

    void addTile(std::int64_t head, Range queries, Range keys)
    {
        makeProbabilities(head, queries, keys);
        const std::int64_t m = queries.size();
        const std::int64_t n = keys.size();
        const std::int64_t keyRow = m_tiles.keyHeadOf(head) * m_plan.keys + keys.begin;
        const std::int64_t queryRow = head * m_plan.queries + queries.begin;
        const T *dy = m_dy + queryRow * m_plan.valueWidth;
        if (m_dv != nullptr) {
            const T *kept = m_tile.data();
            if (m_tiles.drops()) {
                std::copy_n(m_tile.data(), m * n, m_kept.data());
                m_tiles.drop(head, queries, keys, m_kept.data());
                kept = m_kept.data();
            }
            product<T>(n, m_plan.valueWidth, m, kept, {1, n}, dy, {m_plan.valueWidth, 1},
                m_dv + keyRow * m_plan.valueWidth, true);
        }
        if (!m_plan.needsSlope())
            return;
        product<T>(m, n, m_plan.valueWidth, dy, {m_plan.valueWidth, 1}, m_v + keyRow * m_plan.valueWidth,
            {1, m_plan.valueWidth}, m_slope.data(), false);
        m_tiles.drop(head, queries, keys, m_slope.data());
        for (std::int64_t i = 0; i < m; ++i)
            slopeRow(m_tile.data() + i * n, m_slope.data() + i * n, n,
                m_dot[static_cast<std::size_t>(queries.begin + i)]);
        m_tiles.clearFixed(head, queries, keys, m_slope.data());
        for (MaskSums &wanted : m_maskSums)
            m_tiles.addToMask(wanted.mask, head, queries, keys, m_slope.data(), wanted.sums.data());
        if (m_dq == nullptr && m_dk == nullptr)
            return;
        if (m_tiles.isCapped()) // the probabilities are not needed any more
            m_tiles.slopeOfCap(head, queries, keys, m_tile.data(), m_slope.data());
        scaleRow(m_slope.data(), m * n, m_tiles.scale());
        if (m_dq != nullptr)
            product<T>(m, m_plan.width, n, m_slope.data(), {n, 1}, m_k + keyRow * m_plan.width,
                {m_plan.width, 1}, m_dq + queryRow * m_plan.width, true);
        if (m_dk != nullptr)
            product<T>(n, m_plan.width, m, m_slope.data(), {1, n}, m_q + queryRow * m_plan.width,
                {m_plan.width, 1}, m_dk + keyRow * m_plan.width, true);
    }

    const AttentionPlan &m_plan;
    AttentionTiles<T> m_tiles;
    const T *m_q;
    const T *m_k;
    const T *m_v;
    const T *m_dy;
    const T *m_y;
    const T *m_logSum;
    const T *m_probabilities; ///< Null where they are made anew.
    T *m_dq;
    T *m_dk;
    T *m_dv;
    std::vector<MaskSums> m_maskSums{};
    std::vector<T> m_tile; ///< [queries keys]: probabilities.
    std::vector<T> m_slope; ///< [queries keys]: gradients of probabilities, then of scores.
    std::vector<T> m_kept; ///< [queries keys]: probabilities that the dropout leaves.
    std::vector<T> m_shift{}; ///< By query of the head: probability = e^(score - shift) * share.
    std::vector<T> m_share{};
    std::vector<T> m_dot{}; ///< By query of the head: D.
};

Result<void> attentionBackward(const KernelCall &call, const AttentionPlan &plan)
{
    return withFloat(call, plan.dy->dataType, [&]<typename T>(T) -> Result<void> {
        for (const Buffer *const wanted : {plan.dq, plan.dk, plan.dv})
            if (wanted != nullptr)
                fillZero(*wanted);
        Backward<T> whole(plan);
        if (whole.maskSums().empty()) {
            forEachStretch(plan.heads, headsAtOnce(plan),
                [&](auto begin, auto end) { Backward<T>(plan).run(begin, end); });
            return {};
        }
        whole.run(0, plan.heads); // masks may be shared by all heads
        for (const auto &[mask, sums] : whole.maskSums())
            storeSums<T>(sums, *plan.masks[mask].gradient);
        return {};
    });
}

} // namespace

void addAttentionKernels(KernelTable &table)
{
    table.add({OperatorKind::Attention}, planned<planAttention, attentionForward>,
        planned<planAttention, attentionBackward>);
}

} // namespace planloom
