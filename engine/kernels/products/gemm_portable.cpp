#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace planloom {

namespace {

// The classic blocking (Goto, van de Geijn: Anatomy of High-Performance Matrix Multiplication, 2008): a panel
// of b that stays in the cache, strips of a beside it, and a tile of c in registers.
constexpr std::int64_t kTileRows = 6;
constexpr std::int64_t kTileColumns = 32;
constexpr std::int64_t kDepth = 256; ///< Of a panel, along k.
constexpr std::int64_t kPanelColumns = 512;

template<typename T>
PLANLOOM_INLINE void tileProduct(const T *strip, const T *panel, std::int64_t depth, T *tile)
{
    T sums[kTileRows][kTileColumns] = {};
    for (std::int64_t p = 0; p < depth; ++p) {
        const T *a = strip + p * kTileRows;
        const T *b = panel + p * kTileColumns;
        for (std::int64_t i = 0; i < kTileRows; ++i) {
            for (std::int64_t j = 0; j < kTileColumns; ++j)
                sums[i][j] += a[i] * b[j];
        }
    }
    std::memcpy(tile, sums, sizeof(sums));
}

PLANLOOM_HOT void tileOf(const float *strip, const float *panel, std::int64_t depth, float *tile)
{
    tileProduct(strip, panel, depth, tile);
}

PLANLOOM_HOT void tileOf(const double *strip, const double *panel, std::int64_t depth, double *tile)
{
    tileProduct(strip, panel, depth, tile);
}

template<typename T>
void packStrips(const MatrixProduct<T> &p, std::int64_t k0, std::int64_t depth, std::vector<SumOf<T>> &packed)
{
    using Sum = SumOf<T>;
    const std::int64_t strips = (p.m + kTileRows - 1) / kTileRows;
    packed.assign(static_cast<std::size_t>(strips * kTileRows * depth), Sum(0));
    for (std::int64_t i = 0; i < p.m; ++i) {
        const T *from = p.a + i * p.aRow + k0 * p.aColumn;
        Sum *to = packed.data() + i / kTileRows * kTileRows * depth + i % kTileRows;
        for (std::int64_t q = 0; q < depth; ++q)
            to[q * kTileRows] = static_cast<Sum>(from[q * p.aColumn]);
    }
}

template<typename T>
void packPanels(const MatrixProduct<T> &p, std::int64_t k0, std::int64_t depth, std::int64_t n0,
    std::int64_t columns, std::vector<SumOf<T>> &packed)
{
    using Sum = SumOf<T>;
    const std::int64_t panels = (columns + kTileColumns - 1) / kTileColumns;
    packed.assign(static_cast<std::size_t>(panels * kTileColumns * depth), Sum(0));
    for (std::int64_t panel = 0; panel < panels; ++panel) {
        const std::int64_t width = std::min(kTileColumns, columns - panel * kTileColumns);
        for (std::int64_t q = 0; q < depth; ++q) {
            const T *from = p.b + (k0 + q) * p.bRow + (n0 + panel * kTileColumns) * p.bColumn;
            Sum *to = packed.data() + (panel * depth + q) * kTileColumns;
            for (std::int64_t j = 0; j < width; ++j)
                to[j] = static_cast<Sum>(from[j * p.bColumn]);
        }
    }
}

template<typename T> void clear(const MatrixProduct<T> &p)
{
    for (std::int64_t i = 0; i < p.m; ++i) {
        SumOf<T> *row = p.c + i * p.cRow;
        for (std::int64_t j = 0; j < p.n; ++j)
            row[j] = p.bias == nullptr ? SumOf<T>(0) : p.bias[j];
    }
}

template<typename T> void multiplyOne(const MatrixProduct<T> &p, bool accumulate)
{
    if (!accumulate)
        clear(p);
    using Sum = SumOf<T>;
    std::vector<Sum> strips;
    std::vector<Sum> panels;
    Sum tile[kTileRows * kTileColumns];
    for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
        const std::int64_t depth = std::min(kDepth, p.k - k0);
        packStrips(p, k0, depth, strips);
        for (std::int64_t n0 = 0; n0 < p.n; n0 += kPanelColumns) {
            const std::int64_t columns = std::min(kPanelColumns, p.n - n0);
            packPanels(p, k0, depth, n0, columns, panels);
            for (std::int64_t j = 0; j < columns; j += kTileColumns) {
                const std::int64_t width = std::min(kTileColumns, columns - j);
                for (std::int64_t i = 0; i < p.m; i += kTileRows) {
                    tileOf(strips.data() + i * depth, panels.data() + j * depth, depth, tile);
                    const std::int64_t height = std::min(kTileRows, p.m - i);
                    for (std::int64_t r = 0; r < height; ++r) {
                        Sum *c = p.c + (i + r) * p.cRow + n0 + j;
                        for (std::int64_t s = 0; s < width; ++s)
                            c[s] += tile[r * kTileColumns + s];
                    }
                }
            }
        }
    }
}

template<typename T> void multiplyAll(const ProductStep<T> &step)
{
    MatrixProduct<T> product = step.product;
    for (std::int64_t i = 0; i < step.repeats; ++i) {
        multiplyOne(product, step.accumulate);
        product.a += step.aStep;
        product.b += step.bStep;
        product.c += step.cStep;
    }
}

} // namespace

void multiplyPortably(const ProductStep<float> &step)
{
    multiplyAll(step);
}

void multiplyPortably(const ProductStep<double> &step)
{
    multiplyAll(step);
}

void multiplyPortably(const ProductStep<BFloat16> &step)
{
    multiplyAll(step);
}

void multiplyPortably(const ProductStep<BFloat16, BFloat16> &step)
{
    const MatrixProduct<BFloat16, BFloat16> &p = step.product;
    std::vector<float> sums(static_cast<std::size_t>(p.m * p.n));
    for (std::int64_t i = 0; i < step.repeats; ++i) {
        multiplyOne(MatrixProduct<BFloat16>{p.m, p.n, p.k, p.a + i * step.aStep, p.aRow, p.aColumn,
                        p.b + i * step.bStep, p.bRow, p.bColumn, sums.data(), p.n, 1, p.bias},
            false);
        for (std::int64_t row = 0; row < p.m; ++row)
            narrow(sums.data() + row * p.n, DataType::BFloat16,
                reinterpret_cast<std::byte *>(p.c + i * step.cStep + row * p.cRow),
                static_cast<std::size_t>(p.n));
    }
}

} // namespace planloom
