#pragma once

#include "engine/kernels/products/convolution.h"
#include "engine/kernels/products/unfolding.h"

#include <algorithm>
#include <cstdint>

namespace planloom {

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
