#pragma once

#include "engine/kernels/movement/window.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Where the elements that the windows read lie in a plane of the input. Windows that follow each other along
/// the last dimension, a line of them, read elements that are equally far apart: they are copied as runs.
class Unfolding
{
public:
    explicit Unfolding(const WindowGeometry &g)
        : m_taps(g.kernelCount())
    {
        if (g.rank() == 0) {
            m_runs.push_back({0, 1, 0});
            return;
        }
        const std::size_t last = g.rank() - 1;
        m_width = g.out[last];
        m_step = g.strides[last];
        Shape lines = g.out;
        lines[last] = 1;
        m_lines = g.outCount() == 0 ? 0 : elementCount(lines);
        if (m_lines == 0 || m_taps == 0)
            return;
        m_runs.reserve(static_cast<std::size_t>(m_lines * m_taps));
        Shape position(g.rank(), 0);
        do {
            Shape tap(g.rank(), 0);
            do {
                m_runs.push_back(runOf(g, position, tap));
            } while (advance(tap, g.kernel));
        } while (advance(position, lines));
    }

    std::int64_t lines() const { return m_lines; }
    std::int64_t width() const { return m_width; } ///< Windows of a line.
    std::int64_t taps() const { return m_taps; }

    /// Lines [begin, end) of a plane, a row for each tap; rows are `stride` apart.
    template<typename T>
    void unfold(const T *plane, std::int64_t begin, std::int64_t end, T *rows, std::int64_t stride) const
    {
        for (std::int64_t tap = 0; tap < m_taps; ++tap) {
            T *to = rows + tap * stride;
            for (std::int64_t line = begin; line < end; ++line, to += m_width) {
                const Run &run = runAt(line, tap);
                const T *from = plane + run.offset;
                std::fill(to, to + run.begin, T{});
                if (m_step == 1)
                    std::copy(from, from + (run.end - run.begin), to + run.begin);
                else
                    for (std::int64_t i = run.begin; i < run.end; ++i, from += m_step)
                        to[i] = *from;
                std::fill(to + run.end, to + m_width, T{});
            }
        }
    }

    /// The reverse, adding where windows overlap.
    template<typename T>
    void foldBack(const T *rows, std::int64_t stride, std::int64_t begin, std::int64_t end, T *plane) const
    {
        for (std::int64_t tap = 0; tap < m_taps; ++tap) {
            const T *from = rows + tap * stride;
            for (std::int64_t line = begin; line < end; ++line, from += m_width) {
                const Run &run = runAt(line, tap);
                T *to = plane + run.offset;
                if (m_step == 1)
                    for (std::int64_t i = run.begin; i < run.end; ++i)
                        to[i - run.begin] += from[i];
                else
                    for (std::int64_t i = run.begin; i < run.end; ++i, to += m_step)
                        *to += from[i];
            }
        }
    }

private:
    /// Windows [begin, end) of a line have this tap inside the input; `offset` is the first one's element.
    struct Run {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::int64_t offset = 0;
    };

    const Run &runAt(std::int64_t line, std::int64_t tap) const
    {
        return m_runs[static_cast<std::size_t>(line * m_taps + tap)];
    }

    static Run runOf(const WindowGeometry &g, const Shape &position, const Shape &tap)
    {
        Run run;
        const std::size_t last = g.rank() - 1;
        for (std::size_t d = 0; d < last; ++d) {
            const std::int64_t at = g.elementAt(d, position[d], tap[d]) - g.inFirst[d];
            if (at < 0 || at >= g.in[d])
                return {};
            run.offset = run.offset * g.in[d] + at;
        }
        const std::int64_t first = g.elementAt(last, 0, tap[last]) - g.inFirst[last];
        const std::int64_t step = g.strides[last];
        run.begin = first >= 0 ? 0 : std::min(g.out[last], (-first + step - 1) / step);
        run.end = first >= g.in[last] ? 0 : std::min(g.out[last], (g.in[last] - first + step - 1) / step);
        run.end = std::max(run.begin, run.end);
        if (run.begin == run.end)
            return {};
        run.offset = run.offset * g.in[last] + first + run.begin * step;
        return run;
    }

    std::int64_t m_taps = 1;
    std::int64_t m_lines = 1;
    std::int64_t m_width = 1;
    std::int64_t m_step = 1;
    std::vector<Run> m_runs{};
};

} // namespace planloom
