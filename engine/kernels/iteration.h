#pragma once

#include "engine/base/work_pool.h"
#include "engine/graph/shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Elements that are worth a thread of their own where little is done with each.
constexpr std::int64_t kElementStretch = 32768;
/// Multiplications and additions that are.
constexpr std::int64_t kWorkOfPiece = std::int64_t{1} << 22;

/// Row-major strides of a dense tensor, in elements.
inline Shape denseStrides(const Shape &shape)
{
    Shape strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = stride;
        stride *= shape[d];
    }
    return strides;
}

/// Strides with which a dense tensor of shape `operand` is read as if it had shape `target`, aligned at the
/// last dimension (NumPy broadcasting): 0 along dimensions that it lacks or where its extent is 1.
inline Shape broadcastStrides(const Shape &operand, const Shape &target)
{
    const Shape dense = denseStrides(operand);
    Shape strides(target.size(), 0);
    for (std::size_t d = 0; d < operand.size() && d < target.size(); ++d) {
        const std::size_t from = operand.size() - 1 - d;
        if (operand[from] != 1)
            strides[target.size() - 1 - d] = dense[from];
    }
    return strides;
}

/// A loop nest over one index space with N operands, each with strides of its own; neighbouring loops that
/// all operands walk without a gap are merged.
template<std::size_t N> class LoopNest
{
public:
    LoopNest(const Shape &extents, const std::array<Shape, N> &strides)
    {
        for (std::size_t d = 0; d < extents.size(); ++d) {
            if (extents[d] == 1)
                continue;
            if (extents[d] == 0)
                m_empty = true;
            bool merged = !m_loops.empty();
            for (std::size_t i = 0; merged && i < N; ++i)
                merged = m_loops.back().strides[i] == strides[i][d] * extents[d];
            if (!merged)
                m_loops.push_back({});
            Loop &loop = m_loops.back();
            loop.extent *= extents[d];
            for (std::size_t i = 0; i < N; ++i)
                loop.strides[i] = strides[i][d];
        }
        if (m_loops.empty())
            m_loops.push_back({});
    }

    /// Calls body(offsets, count, steps) for every run of the innermost loop: operand i's elements are at
    /// offsets[i] + j * steps[i], 0 <= j < count.
    template<typename Body> void forEachRow(Body &&body) const
    {
        if (m_empty)
            return;
        const Loop &inner = m_loops.back();
        const std::size_t outer = m_loops.size() - 1;
        std::array<std::int64_t, N> offsets{};
        Shape counter(outer, 0);
        for (;;) {
            body(offsets, inner.extent, inner.strides);
            std::size_t d = outer;
            for (;;) {
                if (d == 0)
                    return;
                --d;
                for (std::size_t i = 0; i < N; ++i)
                    offsets[i] += m_loops[d].strides[i];
                if (++counter[d] < m_loops[d].extent)
                    break;
                for (std::size_t i = 0; i < N; ++i)
                    offsets[i] -= m_loops[d].strides[i] * m_loops[d].extent;
                counter[d] = 0;
            }
        }
    }

    /// As `forEachRow`, with long rows cut into stretches for several threads: each run must write elements
    /// of its own.
    template<typename Body> void forEachStretchOfRow(const Body &body) const
    {
        forEachRow([&](const auto &offsets, std::int64_t count, const auto &steps) {
            forEachStretch(count, kElementStretch, [&](std::int64_t begin, std::int64_t end) {
                std::array<std::int64_t, N> from = offsets;
                for (std::size_t i = 0; i < N; ++i)
                    from[i] += begin * steps[i];
                body(from, end - begin, steps);
            });
        });
    }

private:
    struct Loop {
        std::int64_t extent = 1;
        std::array<std::int64_t, N> strides{};
    };
    std::vector<Loop> m_loops;
    bool m_empty = false;
};

/// A tensor seen from one of its axes: [outer, extent, inner].
struct AxisView {
    std::int64_t outer = 1;
    std::int64_t extent = 1;
    std::int64_t inner = 1;
};

inline AxisView axisView(const Shape &shape, std::int64_t axis)
{
    AxisView view;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const auto at = static_cast<std::int64_t>(d);
        (at < axis ? view.outer : at == axis ? view.extent : view.inner) *= shape[d];
    }
    return view;
}

/// Calls visit(line, first element, step) for every line along the axis.
template<typename Visit> void forEachLine(const AxisView &view, Visit &&visit)
{
    for (std::int64_t o = 0; o < view.outer; ++o) {
        for (std::int64_t i = 0; i < view.inner; ++i)
            visit(o * view.inner + i, o * view.extent * view.inner + i, view.inner);
    }
}

} // namespace planloom
