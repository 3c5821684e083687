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
    Forward(const KernelCall &call, const Buffer &q, const Buffer &k, const Buffer &v)
        : m_tiles(call, q, k, masksOf(call))
        , m_v(elements<const T>(v))
        , m_width(v.shape.back())
        , m_y(findOutput(call, 0))
        , m_logSum(findOutput(call, 1))
        , m_probabilities(findOutput(call, 2))
        , m_scores(static_cast<std::size_t>(kTileQueries * kTileKeys))
        , m_sums(static_cast<std::size_t>(kTileQueries * m_width))
    {
    }

    static std::vector<const Buffer *> masksOf(const KernelCall &call)
    {
        std::vector<const Buffer *> masks;
        for (std::size_t slot = 3; slot < call.inputs.size(); ++slot)
            masks.push_back(findInput(call, slot));
        return masks;
    }

    const AttentionTiles<T> &tiles() const { return m_tiles; }

    void run(std::int64_t firstHead, std::int64_t lastHead)
    {
        for (std::int64_t head = firstHead; head < lastHead; ++head) {
            for (std::int64_t i = 0; i < m_tiles.queries(); i += kTileQueries)
                attend(head, tileAt(i, kTileQueries, m_tiles.queries()));
        }
    }

private:
    void attend(std::int64_t head, Range queries)
    {
        std::fill(m_sums.begin(), m_sums.end(), T(0));
        m_running.largest.fill(kNothing<T>);
        m_running.sum.fill(0);
        const Range keys = m_tiles.keysOf(queries);
        if (m_probabilities != nullptr)
            clearProbabilities(head, queries);
        for (std::int64_t j = keys.begin; j < keys.end; j += kTileKeys)
            addTile(head, queries, tileAt(j, kTileKeys, keys.end));
        finish(head, queries, keys);
    }

    T *probabilitiesAt(std::int64_t head, std::int64_t query) const
    {
        return elements<T>(*m_probabilities) + (head * m_tiles.queries() + query) * m_tiles.keys();
    }

    void clearProbabilities(std::int64_t head, Range queries)
    {
        T *begin = probabilitiesAt(head, queries.begin);
        std::fill(begin, begin + queries.size() * m_tiles.keys(), T(0));
    }

    void addTile(std::int64_t head, Range queries, Range keys)
    {
        std::array<T, kTileQueries> highest;
        m_tiles.score(head, queries, keys, m_scores.data(), highest.data());
        for (std::int64_t i = 0; i < queries.size(); ++i) {
            T *row = m_scores.data() + i * keys.size();
            if (m_probabilities != nullptr) // as scores, until all sums are known
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
            m_v + (m_tiles.keyHeadOf(head) * m_tiles.keys() + keys.begin) * m_width, {m_width, 1},
            m_sums.data(), true);
    }

    void finish(std::int64_t head, Range queries, Range keys)
    {
        for (std::int64_t i = 0; i < queries.size(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            const std::int64_t row = head * m_tiles.queries() + queries.begin + i;
            const double sum = m_running.sum[at];
            const T share = sum == 0 ? T(0) : static_cast<T>(1 / sum);
            if (m_y != nullptr) {
                T *y = elements<T>(*m_y) + row * m_width;
                std::copy_n(m_sums.data() + i * m_width, m_width, y);
                scaleRow(y, m_width, share);
            }
            if (m_logSum != nullptr) {
                elements<T>(*m_logSum)[row] =
                    sum == 0 ? kNothing<T> : m_running.largest[at] + static_cast<T>(std::log(sum));
            }
            if (m_probabilities == nullptr)
                continue;
            T *probabilities = probabilitiesAt(head, queries.begin + i) + keys.begin;
            if (sum != 0)
                exponentials(probabilities, keys.size(), m_running.largest[at], share);
            else
                std::fill(probabilities, probabilities + keys.size(), T(0));
        }
    }

    AttentionTiles<T> m_tiles;
    const T *m_v;
    std::int64_t m_width;
    const Buffer *m_y;
    const Buffer *m_logSum;
    const Buffer *m_probabilities;
    std::vector<T> m_scores; ///< [queries keys] of one tile.
    std::vector<T> m_sums; ///< [queries f]: weighted sums of values, not yet divided.
    Running<T> m_running{};
};

/// Heads that are worth a thread of their own, and share no keys with others.
template<typename T> std::int64_t headsAtOnce(const AttentionTiles<T> &tiles)
{
    constexpr std::int64_t kScores = std::int64_t{1} << 15;
    const std::int64_t scores = std::max<std::int64_t>(1, tiles.queries() * tiles.keys());
    const std::int64_t group = std::max<std::int64_t>(1, tiles.headsByKeys());
    return (std::max<std::int64_t>(1, kScores / scores) + group - 1) / group * group;
}

Result<void> attentionForward(const KernelCall &call)
{
    const Buffer *q = findInput(call, 0);
    const Buffer *k = findInput(call, 1);
    const Buffer *v = findInput(call, 2);
    if (q == nullptr || k == nullptr || v == nullptr)
        return missingSlot(call, "queries, keys and values");
    return withFloat(call, q->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const Forward<T> first(call, *q, *k, *v);
        forEachStretch(first.tiles().heads(), headsAtOnce(first.tiles()),
            [&](auto begin, auto end) { Forward<T>(call, *q, *k, *v).run(begin, end); });
        return {};
    });
}

/// With P the probabilities, P~ what the dropout leaves of them, and D the rows' sums of dy y:
/// dv = P~^T dy, dP = dropped(dy v^T), dS = P (dP - D), dq = scale dS k, dk = scale dS^T q, dmask = dS.
template<typename T> class Backward
{
public:
    Backward(const KernelCall &call, const BackwardCall &back)
        : m_tiles(call, *back.input(0), *back.input(1), masksOf(back))
        , m_q(elements<const T>(*back.input(0)))
        , m_k(elements<const T>(*back.input(1)))
        , m_v(back.input(2) == nullptr ? nullptr : elements<const T>(*back.input(2)))
        , m_dy(elements<const T>(*back.gradient()))
        , m_y(back.output(0) == nullptr ? nullptr : elements<const T>(*back.output(0)))
        , m_logSum(elements<const T>(*back.output(1)))
        , m_probabilities(back.output(2) == nullptr ? nullptr : elements<const T>(*back.output(2)))
        , m_width(back.input(0)->shape.back())
        , m_valueWidth(back.gradient()->shape.back())
        , m_dq(target(back, 0))
        , m_dk(target(back, 1))
        , m_dv(target(back, 2))
        , m_tile(static_cast<std::size_t>(kTileQueries * kTileKeys))
        , m_slope(m_tile.size())
        , m_kept(m_tiles.drops() ? m_tile.size() : 0)
    {
        for (std::size_t slot = 3; slot < back.forwardInputs(); ++slot) {
            if (back.wanted(slot) != nullptr)
                m_maskSums.push_back({slot - 3,
                    std::vector<double>(static_cast<std::size_t>(elementCount(*back.wanted(slot))), 0.0)});
        }
    }

    const AttentionTiles<T> &tiles() const { return m_tiles; }

    void run(std::int64_t firstHead, std::int64_t lastHead)
    {
        for (std::int64_t head = firstHead; head < lastHead; ++head) {
            normalise(head);
            for (std::int64_t j = 0; j < m_tiles.keys(); j += kTileKeys) {
                const Range keys = tileAt(j, kTileKeys, m_tiles.keys());
                for (std::int64_t i = 0; i < m_tiles.queries(); i += kTileQueries) {
                    const Range queries = tileAt(i, kTileQueries, m_tiles.queries());
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
    static std::vector<const Buffer *> masksOf(const BackwardCall &back)
    {
        std::vector<const Buffer *> masks;
        for (std::size_t slot = 3; slot < back.forwardInputs(); ++slot)
            masks.push_back(back.input(slot));
        return masks;
    }

    /// Where a gradient is added to; null if it is not wanted.
    static T *target(const BackwardCall &back, std::size_t slot)
    {
        const Buffer *wanted = back.wanted(slot);
        return wanted == nullptr ? nullptr : elements<T>(*wanted);
    }

    bool needsSlope() const { return m_dq != nullptr || m_dk != nullptr || !m_maskSums.empty(); }

    /// Of every query of a head: what probabilities are made of scores with, and D.
    void normalise(std::int64_t head)
    {
        const std::int64_t queries = m_tiles.queries();
        m_shift.resize(static_cast<std::size_t>(queries));
        m_share.assign(static_cast<std::size_t>(queries), T(1));
        m_dot.assign(static_cast<std::size_t>(queries), T(0));
        for (std::int64_t i = 0; i < queries; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const std::int64_t row = head * queries + i;
            m_shift[at] = m_logSum[row];
            if (m_probabilities == nullptr && m_tiles.hasAllKeys() && std::isfinite(m_shift[at])
                && std::fabs(static_cast<double>(m_shift[at])) > kExactLogSum)
                normaliseExactly(head, i);
            if (!needsSlope())
                continue;
            m_dot[at] =
                static_cast<T>(dot(m_dy + row * m_valueWidth, m_y + row * m_valueWidth, m_valueWidth));
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
                std::copy_n(m_probabilities + (head * m_tiles.queries() + i) * m_tiles.keys() + keys.begin,
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
        const std::int64_t keyRow = m_tiles.keyHeadOf(head) * m_tiles.keys() + keys.begin;
        const std::int64_t queryRow = head * m_tiles.queries() + queries.begin;
        const T *dy = m_dy + queryRow * m_valueWidth;
        if (m_dv != nullptr) {
            const T *kept = m_tile.data();
            if (m_tiles.drops()) {
                std::copy_n(m_tile.data(), m * n, m_kept.data());
                m_tiles.drop(head, queries, keys, m_kept.data());
                kept = m_kept.data();
            }
            product<T>(
                n, m_valueWidth, m, kept, {1, n}, dy, {m_valueWidth, 1}, m_dv + keyRow * m_valueWidth, true);
        }
        if (!needsSlope())
            return;
        product<T>(m, n, m_valueWidth, dy, {m_valueWidth, 1}, m_v + keyRow * m_valueWidth, {1, m_valueWidth},
            m_slope.data(), false);
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
            product<T>(m, m_width, n, m_slope.data(), {n, 1}, m_k + keyRow * m_width, {m_width, 1},
                m_dq + queryRow * m_width, true);
        if (m_dk != nullptr)
            product<T>(n, m_width, m, m_slope.data(), {1, n}, m_q + queryRow * m_width, {m_width, 1},
                m_dk + keyRow * m_width, true);
    }

    AttentionTiles<T> m_tiles;
    const T *m_q;
    const T *m_k;
    const T *m_v;
    const T *m_dy;
    const T *m_y;
    const T *m_logSum;
    const T *m_probabilities; ///< Null where they are made anew.
    std::int64_t m_width;
    std::int64_t m_valueWidth;
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

Result<void> attentionBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    bool slope = back.wanted(0) != nullptr || back.wanted(1) != nullptr;
    for (std::size_t slot = 3; slot < back.forwardInputs(); ++slot)
        slope = slope || back.wanted(slot) != nullptr;
    if (!slope && back.wanted(2) == nullptr)
        return {};
    if (back.gradient() == nullptr || back.input(0) == nullptr || back.input(1) == nullptr
        || back.output(1) == nullptr || (slope && (back.input(2) == nullptr || back.output(0) == nullptr)))
        return missingSlot(call, "a gradient, a saved input or a saved output");
    return withFloat(call, back.gradient()->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        for (const std::size_t slot : {0, 1, 2})
            if (const Buffer *const wanted = back.wanted(slot))
                fillZero(*wanted);
        Backward<T> whole(call, back);
        if (whole.maskSums().empty()) {
            forEachStretch(whole.tiles().heads(), headsAtOnce(whole.tiles()),
                [&](auto begin, auto end) { Backward<T>(call, back).run(begin, end); });
            return {};
        }
        whole.run(0, whole.tiles().heads()); // masks may be shared by all heads
        for (const auto &[mask, sums] : whole.maskSums())
            storeSums<T>(sums, *back.wanted(mask + 3));
        return {};
    });
}

} // namespace

void addAttentionKernels(KernelTable &table)
{
    table.add(OperatorKind::Attention, Direction::Forward, attentionForward);
    table.add(OperatorKind::Attention, Direction::Backward, attentionBackward);
}

} // namespace planloom
