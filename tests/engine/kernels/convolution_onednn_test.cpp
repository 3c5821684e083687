// Convolutions by oneDNN against their definition, and the same bits on any number of threads.

#include "engine/kernels/products/convolution_onednn.h"

#include "engine/base/work_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <vector>

namespace planloom {
namespace {

using FloatList = std::vector<float>;

FloatList drawnFloats(std::int64_t count, std::uint32_t seed)
{
    FloatList made(static_cast<std::size_t>(count));
    for (float &each : made) {
        seed = seed * 1664525U + 1013904223U;
        each = static_cast<float>(seed >> 8U) / (1U << 24U) - 0.5F;
    }
    return made;
}

struct ImageConvolution {
    std::int64_t n;
    std::int64_t c;
    std::int64_t o;
    std::int64_t extent;
    std::int64_t kernel;
    std::int64_t stride;
    std::int64_t pad;
    std::int64_t firstLine = 0; ///< Of a part: windows from this line on, over all lines of the input.
};

Convolution convolutionLike(const ImageConvolution &given)
{
    const std::int64_t out = (given.extent + 2 * given.pad - given.kernel) / given.stride + 1;
    Convolution conv;
    conv.n = given.n;
    conv.c = given.c;
    conv.o = given.o;
    conv.window.in = {given.extent, given.extent};
    conv.window.inWhole = conv.window.in;
    conv.window.out = {out - given.firstLine, out};
    conv.window.first = {given.firstLine, 0};
    conv.window.inFirst = {0, 0};
    conv.window.kernel = {given.kernel, given.kernel};
    conv.window.strides = {given.stride, given.stride};
    conv.window.dilations = {1, 1};
    conv.window.pads = {given.pad, given.pad};
    conv.window.padsAfter = conv.window.pads;
    return conv;
}

/// Calls visit(element of x, of w, of y) for all that are multiplied.
template<typename Visit> void forEachMultiplied(const Convolution &conv, const Visit &visit)
{
    const WindowGeometry &g = conv.window;
    for (std::int64_t n = 0; n < conv.n; ++n)
        for (std::int64_t o = 0; o < conv.o; ++o)
            for (std::int64_t window = 0; window < g.outCount(); ++window)
                for (std::int64_t c = 0; c < conv.c; ++c)
                    forEachTap(g, {window / g.out[1], window % g.out[1]}, [&](auto tap, auto offset) {
                        visit((n * conv.c + c) * g.inCount() + offset,
                            (o * conv.c + c) * g.kernelCount() + tap,
                            (n * conv.o + o) * g.outCount() + window);
                    });
}

struct MadeByOneDnn {
    bool done = false;
    FloatList y{};
    FloatList dx{};
    FloatList dw{};
};

/// All three on `threads` threads.
MadeByOneDnn madeOnThreads(std::int32_t threads, const Convolution &conv, const FloatList &x,
    const FloatList &w, const FloatList &dy)
{
    MadeByOneDnn made{false, FloatList(dy.size(), NAN), FloatList(x.size(), NAN), FloatList(w.size(), NAN)};
    WorkPool pool(threads);
    std::latch done(1);
    pool.submit([&] {
        made.done = convolveWithOneDnn(conv, x.data(), w.data(), made.y.data())
            && convolveDataWithOneDnn(conv, dy.data(), w.data(), made.dx.data())
            && convolveWeightsWithOneDnn(conv, x.data(), dy.data(), made.dw.data());
        done.count_down();
    });
    done.wait();
    return made;
}

void expectFloatsNear(const FloatList &got, const std::vector<double> &expected)
{
    double largest = 0;
    for (const double each : expected)
        largest = std::max(largest, std::abs(each));
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-5 * largest) << i;
}

TEST(ConvolutionByOneDnn, IsWhatItsDefinitionSaysOnAnyNumberOfThreads)
{
    const ImageConvolution cases[] = {{4, 16, 16, 9, 3, 1, 1}, {5, 32, 48, 12, 3, 2, 1},
        {9, 24, 16, 7, 3, 1, 1}, {4, 16, 32, 15, 5, 2, 2}, {8, 16, 16, 10, 3, 1, 0},
        {6, 20, 33, 11, 2, 2, 0}};
    for (const ImageConvolution &given : cases) {
        SCOPED_TRACE(::testing::Message() << given.n << " images, " << given.c << " to " << given.o
                                          << " channels, " << given.kernel << " by " << given.kernel);
        const Convolution conv = convolutionLike(given);
        const FloatList x = drawnFloats(conv.n * conv.xGroup(), 1);
        const FloatList w = drawnFloats(conv.o * conv.rows(), 2);
        const FloatList dy = drawnFloats(conv.n * conv.yGroup(), 3);
        const MadeByOneDnn one = madeOnThreads(1, conv, x, w, dy);
        if (!one.done)
            GTEST_SKIP() << "this build has no oneDNN";
        const MadeByOneDnn three = madeOnThreads(3, conv, x, w, dy);
        EXPECT_EQ(one.y, three.y);
        EXPECT_EQ(one.dx, three.dx);
        EXPECT_EQ(one.dw, three.dw);
        std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
        forEachMultiplied(conv, [&](auto atX, auto atW, auto atY) {
            const auto i = static_cast<std::size_t>(atX);
            const auto j = static_cast<std::size_t>(atW);
            const auto k = static_cast<std::size_t>(atY);
            y[k] += static_cast<double>(x[i]) * static_cast<double>(w[j]);
            dx[i] += static_cast<double>(dy[k]) * static_cast<double>(w[j]);
            dw[j] += static_cast<double>(x[i]) * static_cast<double>(dy[k]);
        });
        expectFloatsNear(one.y, y);
        expectFloatsNear(one.dx, dx);
        expectFloatsNear(one.dw, dw);
    }
}

TEST(ConvolutionByOneDnn, LeavesToOthersWhatTheyAreFasterAt)
{
    for (const ImageConvolution &given :
        {ImageConvolution{8, 16, 16, 8, 1, 1, 0}, ImageConvolution{2, 16, 16, 8, 3, 1, 1},
            ImageConvolution{8, 16, 8, 8, 3, 1, 1}, ImageConvolution{8, 16, 16, 8, 3, 1, 1, 3}}) {
        const Convolution conv = convolutionLike(given);
        FloatList y(static_cast<std::size_t>(conv.n * conv.yGroup()));
        EXPECT_FALSE(convolveWithOneDnn(conv, drawnFloats(conv.n * conv.xGroup(), 1).data(),
            drawnFloats(conv.o * conv.rows(), 2).data(), y.data()));
    }
}

} // namespace
} // namespace planloom
