#include "engine/kernels/products/gemm.h"
#include "engine/base/work_pool.h"
#include "engine/kernels/iteration.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

namespace planloom {

namespace {

/// Folds batch loops that merely lengthen m, n or k into them: then one large product does what many small
/// ones would.
template<typename T, typename R> void fold(MatrixProduct<T, R> &p)
{
    std::vector<BatchLoop> kept;
    // Innermost first, since a loop can only be folded when what lies inside it has been.
    for (std::size_t i = p.batch.size(); i-- > 0;) {
        const BatchLoop &loop = p.batch[i];
        if (loop.extent == 1)
            continue;
        if (kept.empty()) {
            const bool rowsFree = p.m == 1 && (p.cColumn == 1 || p.n == 1);
            if (loop.b == 0 && loop.c != 0
                && (rowsFree || (p.m != 1 && loop.a == p.m * p.aRow && loop.c == p.m * p.cRow))) {
                if (p.m == 1) {
                    p.aRow = loop.a;
                    p.cRow = loop.c;
                }
                p.m *= loop.extent;
                continue;
            }
            if (p.bias == nullptr && loop.a == 0 && loop.c != 0 && p.n != 1 && loop.b == p.n * p.bColumn
                && loop.c == p.n * p.cColumn) {
                p.n *= loop.extent;
                continue;
            }
            if (loop.c == 0 && (p.k == 1 || (loop.a == p.k * p.aColumn && loop.b == p.k * p.bRow))) {
                if (p.k == 1) {
                    p.aColumn = loop.a;
                    p.bRow = loop.b;
                }
                p.k *= loop.extent;
                continue;
            }
        }
        if (!kept.empty()) {
            BatchLoop &inner = kept.back();
            if (inner.a * inner.extent == loop.a && inner.b * inner.extent == loop.b
                && inner.c * inner.extent == loop.c) {
                inner.extent *= loop.extent;
                continue;
            }
        }
        kept.push_back(loop);
    }
    std::reverse(kept.begin(), kept.end());
    p.batch = std::move(kept);
}

template<typename T, typename R> void runPiece(const ProductStep<T, R> &step)
{
    if constexpr (std::is_same_v<T, float>) {
        if (isWideFaster(step) && multiplyWide(step))
            return;
    }
    if (!multiplyWithOneDnn(step))
        multiplyPortably(step);
}

void runPiece(const ProductStep<double> &step)
{
    multiplyPortably(step);
}

constexpr std::int64_t kMostPieces = 16;
constexpr std::int64_t kWholeVectors = 32; ///< Rows and columns of pieces are a multiple of it.

/// Into how many pieces to cut rows or columns of a product: as many as are worth it, a power of two. Each
/// piece packs the other operand anew, which may cost so much less than the product itself.
std::int64_t piecesOf(std::int64_t cut, std::int64_t other, std::int64_t k)
{
    constexpr std::int64_t kProductsByPacking = 384; // of an element, in multiplications
    std::int64_t pieces = 1;
    while (pieces < kMostPieces && cut / (2 * pieces) >= kWholeVectors
        && cut * other / (2 * pieces) >= kWorkOfPiece / std::max<std::int64_t>(k, 1)
        && (2 * pieces - 1) * kProductsByPacking <= cut)
        pieces *= 2;
    return pieces;
}

/// Cuts a product where its shape makes that worth it, into pieces whose sums over k are whole.
template<typename T, typename R> void run(const ProductStep<T, R> &step)
{
    const MatrixProduct<T, R> &p = step.product;
    if (step.repeats > 1) {
        const std::int64_t one = std::max<std::int64_t>(1, p.m * p.n * p.k);
        forEachStretch(step.repeats, std::max<std::int64_t>(1, kWorkOfPiece / one),
            [&](std::int64_t begin, std::int64_t end) {
                ProductStep<T, R> piece = step;
                piece.repeats = end - begin;
                piece.product.a += begin * step.aStep;
                piece.product.b += begin * step.bStep;
                piece.product.c += begin * step.cStep;
                runPiece(piece);
            });
        return;
    }
    const bool byRows = p.m > p.n;
    const std::int64_t cut = byRows ? p.m : p.n;
    const std::int64_t pieces = piecesOf(cut, byRows ? p.n : p.m, p.k);
    const std::int64_t length =
        ((cut + pieces - 1) / pieces + kWholeVectors - 1) / kWholeVectors * kWholeVectors;
    forEachStretch(cut, pieces == 1 ? cut : length, [&](std::int64_t begin, std::int64_t end) {
        ProductStep<T, R> piece = step;
        if (byRows) {
            piece.product.m = end - begin;
            piece.product.a += begin * p.aRow;
            piece.product.c += begin * p.cRow;
        } else {
            piece.product.n = end - begin;
            piece.product.b += begin * p.bColumn;
            piece.product.c += begin;
            if (p.bias != nullptr)
                piece.product.bias += begin;
        }
        runPiece(piece);
    });
}

/// Runs the loops from `depth` on. `first` is false where c already holds a summand.
template<typename T, typename R, typename Visit>
void runLoops(const std::vector<BatchLoop> &loops, std::size_t depth, ProductStep<T, R> step, bool first,
    const Visit &visit)
{
    if (depth == loops.size()) {
        step.accumulate = !first;
        assert(first || (std::is_same_v<R, SumOf<T>>));
        visit(step);
        return;
    }
    const BatchLoop &loop = loops[depth];
    for (std::int64_t i = 0; i < loop.extent; ++i) {
        runLoops(loops, depth + 1, step, first && (loop.c != 0 || i == 0), visit);
        step.product.a += loop.a;
        step.product.b += loop.b;
        step.product.c += loop.c;
    }
}

} // namespace

template<typename T, typename R>
void forEachStep(MatrixProduct<T, R> product,
    const std::type_identity_t<std::function<void(const ProductStep<T, R> &)>> &visit)
{
    for (const BatchLoop &loop : product.batch) {
        if (loop.extent == 0)
            return; // The caller has cleared what a sum over nothing leaves.
    }
    fold(product);
    if (product.cColumn != 1 && product.n != 1) {
        // c^T = b^T a^T
        assert((product.cRow == 1 || product.m == 1) && product.bias == nullptr);
        std::swap(product.a, product.b);
        std::swap(product.m, product.n);
        std::swap(product.aRow, product.bColumn);
        std::swap(product.aColumn, product.bRow);
        std::swap(product.cRow, product.cColumn);
        for (BatchLoop &loop : product.batch)
            std::swap(loop.a, loop.b);
    }
    product.cColumn = 1;
    if (product.m == 0 || product.n == 0)
        return;
    ProductStep<T, R> step;
    std::vector<BatchLoop> loops = std::move(product.batch);
    product.batch.clear();
    if (!loops.empty() && loops.back().c != 0) {
        const BatchLoop inner = loops.back();
        loops.pop_back();
        step.repeats = inner.extent;
        step.aStep = inner.a;
        step.bStep = inner.b;
        step.cStep = inner.c;
    }
    // Loops that sum go innermost, so that the product before is still in the cache.
    std::stable_partition(loops.begin(), loops.end(), [](const BatchLoop &loop) { return loop.c != 0; });
    const bool fresh = !product.accumulate;
    assert(fresh || product.bias == nullptr);
    step.product = std::move(product);
    runLoops(loops, 0, std::move(step), fresh, visit);
}

template<typename T, typename R> void multiply(MatrixProduct<T, R> product)
{
    forEachStep(std::move(product), run<T, R>);
}

template void forEachStep<float>(
    MatrixProduct<float> product, const std::function<void(const ProductStep<float> &)> &visit);
template void multiply<float>(MatrixProduct<float> product);
template void multiply<double>(MatrixProduct<double> product);
template void multiply<BFloat16>(MatrixProduct<BFloat16> product);
template void multiply<BFloat16>(MatrixProduct<BFloat16, BFloat16> product);

} // namespace planloom
