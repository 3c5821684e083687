#pragma once

#include "engine/kernels/convolution.h"

#include <algorithm>
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
                std::fill(to, to + run.begin, T(0));
                if (m_step == 1)
                    std::copy(from, from + (run.end - run.begin), to + run.begin);
                else
                    for (std::int64_t i = run.begin; i < run.end; ++i, from += m_step)
                        to[i] = *from;
                std::fill(to + run.end, to + m_width, T(0));
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

/// Some windows of all images: lines of one image, or several images.
struct WindowBlock {
    std::int64_t firstImage = 0;
    std::int64_t images = 1;
    std::int64_t firstLine = 0;
    std::int64_t endLine = 0;
};

/// A convolution cut into blocks, each small enough that a cache holds what it unfolds and large enough that
/// the product is worth packing the weights. How depends on shapes alone.
class BlockedConvolution
{
public:
    explicit BlockedConvolution(const Convolution &conv)
        : m_conv(conv)
        , m_unfolding(conv.window)
        , m_pointwise(conv.isPointwise())
    {
        constexpr std::int64_t kUnfolded = std::int64_t{1} << 18; // elements
        constexpr std::int64_t kFewest = 256; // windows of a product
        const std::int64_t out = std::max<std::int64_t>(1, conv.window.outCount());
        m_images = out >= kFewest ? 1 : std::min(std::max<std::int64_t>(1, conv.n), kFewest / out);
        const std::int64_t most =
            m_pointwise ? out : std::max(kFewest, kUnfolded / std::max<std::int64_t>(1, conv.rows()));
        const std::int64_t blocks = m_images > 1 ? 1 : (out + most - 1) / most;
        m_lines = std::max<std::int64_t>(1, (m_unfolding.lines() + blocks - 1) / blocks);
        m_blocksOfImages = (m_unfolding.lines() + m_lines - 1) / m_lines;
    }

    /// Blocks of the same images follow each other.
    std::int64_t blocks() const { return imageBlocks() * m_blocksOfImages; }
    std::int64_t imageBlocks() const { return (m_conv.n + m_images - 1) / m_images; }
    std::int64_t imagesOfBlock() const { return m_images; } ///< The last block may have fewer.
    std::int64_t blocksOfImages() const { return m_blocksOfImages; }

    WindowBlock block(std::int64_t number) const
    {
        WindowBlock block;
        block.firstImage = number / m_blocksOfImages * m_images;
        block.images = std::min(m_images, m_conv.n - block.firstImage);
        block.firstLine = number % m_blocksOfImages * m_lines;
        block.endLine = std::min(m_unfolding.lines(), block.firstLine + m_lines);
        return block;
    }

    std::int64_t windowsOf(const WindowBlock &block) const
    {
        return block.images * (block.endLine - block.firstLine) * m_unfolding.width();
    }
    /// The most windows of a block.
    std::int64_t mostWindows() const { return m_images * m_lines * m_unfolding.width(); }

    /// A matrix [rows, windows] in someone's memory.
    template<typename T> struct Matrix {
        T *data = nullptr;
        std::int64_t stride = 0;
    };

    /// Channels [from, to) of a group of the input, unfolded: [channels * taps, windows].
    /// @param memory  for what has to be unfolded
    template<typename T>
    Matrix<const T> unfolded(const WindowBlock &block, std::int64_t group, std::int64_t from, std::int64_t to,
        const T *x, T *memory) const
    {
        const std::int64_t plane = m_conv.window.inCount();
        if (m_pointwise && block.images == 1)
            return {imageOf(x, m_conv.xGroup(), block.firstImage, group) + from * plane
                    + block.firstLine * m_unfolding.width(),
                plane};
        const std::int64_t windows = windowsOf(block);
        const std::int64_t each = windows / block.images;
        for (std::int64_t i = 0; i < block.images; ++i) {
            const T *image = imageOf(x, m_conv.xGroup(), block.firstImage + i, group);
            for (std::int64_t c = from; c < to; ++c)
                m_unfolding.unfold(image + c * plane, block.firstLine, block.endLine,
                    memory + (c - from) * m_unfolding.taps() * windows + i * each, windows);
        }
        return {memory, windows};
    }

    /// Where `unfolded` would be written to, to be folded back then.
    template<typename T>
    Matrix<T> toFold(const WindowBlock &block, std::int64_t group, std::int64_t from, T *x, T *memory) const
    {
        if (!m_pointwise || block.images > 1)
            return {memory, windowsOf(block)};
        const std::int64_t plane = m_conv.window.inCount();
        return {imageOf(x, m_conv.xGroup(), block.firstImage, group) + from * plane
                + block.firstLine * m_unfolding.width(),
            plane};
    }

    /// Adds what lies in `toFold`, if that is not the place itself, which began as zeros.
    template<typename T>
    void foldBack(const WindowBlock &block, std::int64_t group, std::int64_t from, std::int64_t to,
        const T *memory, T *x) const
    {
        if (m_pointwise && block.images == 1)
            return;
        const std::int64_t windows = windowsOf(block);
        const std::int64_t each = windows / block.images;
        const std::int64_t plane = m_conv.window.inCount();
        for (std::int64_t i = 0; i < block.images; ++i) {
            T *image = imageOf(x, m_conv.xGroup(), block.firstImage + i, group);
            for (std::int64_t c = from; c < to; ++c)
                m_unfolding.foldBack(memory + (c - from) * m_unfolding.taps() * windows + i * each, windows,
                    block.firstLine, block.endLine, image + c * plane);
        }
    }

    /// The block's part of a group of the output: [o, windows], gathered in `memory` from several images.
    template<typename T>
    Matrix<const T> outputs(const WindowBlock &block, std::int64_t group, const T *y, T *memory) const
    {
        if (block.images == 1)
            return outputPlace(block, group, y);
        forEachOutput(block, group, y,
            [&](const T *image, std::int64_t at, std::int64_t out) { std::copy_n(image, out, memory + at); });
        return {memory, windowsOf(block)};
    }
    /// Where to write it, before `spreadOutputs`.
    template<typename T>
    Matrix<T> toOutputs(const WindowBlock &block, std::int64_t group, T *y, T *memory) const
    {
        return block.images == 1 ? outputPlace(block, group, y) : Matrix<T>{memory, windowsOf(block)};
    }
    template<typename T>
    void spreadOutputs(const WindowBlock &block, std::int64_t group, const T *memory, T *y) const
    {
        if (block.images > 1)
            forEachOutput(block, group, y,
                [&](T *image, std::int64_t at, std::int64_t out) { std::copy_n(memory + at, out, image); });
    }
    /// What these need memory for: channels of an unfolded block, and gathered outputs; 0 where the tensors
    /// themselves do.
    std::int64_t unfoldedSize(std::int64_t channels) const
    {
        return m_pointwise && m_images == 1 ? 0 : channels * m_unfolding.taps() * mostWindows();
    }
    std::int64_t outputsSize() const { return m_images == 1 ? 0 : m_conv.o * mostWindows(); }

private:
    template<typename T>
    T *imageOf(T *tensor, std::int64_t size, std::int64_t image, std::int64_t group) const
    {
        return tensor + (image * m_conv.groups + group) * size;
    }

    template<typename T> Matrix<T> outputPlace(const WindowBlock &block, std::int64_t group, T *y) const
    {
        return {imageOf(y, m_conv.yGroup(), block.firstImage, group) + block.firstLine * m_unfolding.width(),
            m_conv.window.outCount()};
    }

    /// Calls visit(windows of an image and channel of y, where they are in [o, image, windows], their
    /// number).
    template<typename T, typename Visit>
    void forEachOutput(const WindowBlock &block, std::int64_t group, T *y, Visit &&visit) const
    {
        const std::int64_t out = m_conv.window.outCount();
        for (std::int64_t i = 0; i < block.images; ++i) {
            T *image = imageOf(y, m_conv.yGroup(), block.firstImage + i, group);
            for (std::int64_t o = 0; o < m_conv.o; ++o)
                visit(image + o * out, (o * block.images + i) * out, out);
        }
    }

    Convolution m_conv;
    Unfolding m_unfolding;
    bool m_pointwise = false;
    std::int64_t m_images = 1; ///< Of a block.
    std::int64_t m_lines = 1; ///< Of a block.
    std::int64_t m_blocksOfImages = 1;
};

} // namespace planloom
