#include "engine/kernels/gemm.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace planloom {

namespace {

/// Folds batch loops that merely lengthen m, n or k into them: then one large product does what many small
/// ones would.
template<typename T> void fold(MatrixProduct<T> &p)
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

void run(const ProductStep<float> &step)
{
    if (!multiplyWithOneDnn(step))
        multiplyPortably(step);
}

void run(const ProductStep<double> &step)
{
    multiplyPortably(step);
}

/// Runs the loops from `depth` on. `first` is false where c already holds a summand.
template<typename T>
void runLoops(const std::vector<BatchLoop> &loops, std::size_t depth, ProductStep<T> step, bool first)
{
    if (depth == loops.size()) {
        step.accumulate = !first;
        run(step);
        return;
    }
    const BatchLoop &loop = loops[depth];
    for (std::int64_t i = 0; i < loop.extent; ++i) {
        runLoops(loops, depth + 1, step, first && (loop.c != 0 || i == 0));
        step.product.a += loop.a;
        step.product.b += loop.b;
        step.product.c += loop.c;
    }
}

} // namespace

template<typename T> void multiply(MatrixProduct<T> product)
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
    ProductStep<T> step;
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
    runLoops(loops, 0, std::move(step), fresh);
}

template void multiply<float>(MatrixProduct<float> product);
template void multiply<double>(MatrixProduct<double> product);

} // namespace planloom
