#include "engine/kernels/elements/rounded_kernel.h"
#include "engine/kernels/products/gemm.h"

#ifdef PLANLOOM_HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <type_traits>

#ifdef PLANLOOM_HAVE_OPENMP
#include <omp.h>
#endif

namespace planloom {

void holdToOneThread()
{
#ifdef PLANLOOM_HAVE_OPENMP
    // The number of threads is a setting of each thread of its own.
    static thread_local const bool held = [] {
        omp_set_num_threads(1);
        return true;
    }();
    static_cast<void>(held);
#endif
}

namespace {

/// Everything that a compiled product depends on: extents, strides, batch, bias, accumulation, type.
using ProductKey = std::array<std::int64_t, 13>;

/// A compiled product and the descriptions of its arguments, whose memory is set at each call.
struct CompiledProduct {
    dnnl::matmul primitive{};
    dnnl::memory a{};
    dnnl::memory b{};
    dnnl::memory c{};
    dnnl::memory bias{};
};

/// One engine, stream and store of compiled products per thread, so that threads never wait for one another.
struct OneDnn {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    std::map<ProductKey, CompiledProduct> products{};
};

constexpr std::size_t kMostProducts = 512; ///< Of a thread; beyond, its store starts afresh.

/// Strides that oneDNN can take: one of them 1, the other at least the extent beside it. Where an extent is 1
/// its stride is free, and is made what a dense matrix would have.
bool tidy(std::int64_t rows, std::int64_t columns, std::int64_t &row, std::int64_t &column)
{
    if (columns == 1 && rows == 1) {
        row = 1;
        column = 1;
    } else if (columns == 1) {
        if (row == 1)
            column = rows; // A column of consecutive elements is a transposed row.
        else
            column = 1;
    } else if (rows == 1) {
        if (column == 1)
            row = columns;
        else
            row = 1;
    }
    return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

template<typename T> constexpr auto kTypeOf = dnnl::memory::data_type::f32;
template<> constexpr auto kTypeOf<BFloat16> = dnnl::memory::data_type::bf16;

template<typename T, typename R> CompiledProduct compile(OneDnn &dnn, const ProductStep<T, R> &step)
{
    using dnnl::memory;
    const MatrixProduct<T, R> &p = step.product;
    const auto describe = [&](memory::data_type type, std::int64_t rows, std::int64_t columns,
                              std::int64_t row, std::int64_t column, std::int64_t stride) {
        const bool still = stride == 0;
        return memory::desc({still ? 1 : step.repeats, rows, columns}, type,
            {still ? std::max(rows * row, columns * column) : stride, row, column});
    };
    const memory::desc a = describe(kTypeOf<T>, p.m, p.k, p.aRow, p.aColumn, step.aStep);
    const memory::desc b = describe(kTypeOf<T>, p.k, p.n, p.bRow, p.bColumn, step.bStep);
    const memory::desc c = describe(kTypeOf<R>, p.m, p.n, p.cRow, 1, step.cStep);
    dnnl::primitive_attr attributes;
    if (step.accumulate) {
        dnnl::post_ops sum;
        sum.append_sum(1.0f);
        attributes.set_post_ops(sum);
    }
    std::optional<memory::desc> bias;
    if (p.bias != nullptr)
        bias = memory::desc({1, 1, p.n}, kTypeOf<float>, {p.n, p.n, 1});
#if DNNL_VERSION_MAJOR >= 3
    const auto description = bias ? dnnl::matmul::primitive_desc(dnn.engine, a, b, *bias, c, attributes)
                                  : dnnl::matmul::primitive_desc(dnn.engine, a, b, c, attributes);
#else
    const auto operation = bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc description(operation, attributes, dnn.engine);
#endif
    CompiledProduct compiled;
    compiled.primitive = dnnl::matmul(description);
    compiled.a = memory(a, dnn.engine, nullptr);
    compiled.b = memory(b, dnn.engine, nullptr);
    compiled.c = memory(c, dnn.engine, nullptr);
    if (bias)
        compiled.bias = memory(*bias, dnn.engine, nullptr);
    return compiled;
}

/// A single product. oneDNN's BLAS-like entry packs its operands, which its matmul primitive does not where
/// they are plain: with rows of a multiple of 4 KiB that one was measured at half the speed.
bool multiplyOne(const ProductStep<float> &step)
{
    const MatrixProduct<float> &p = step.product;
    if (p.bias != nullptr) {
        for (std::int64_t i = 0; i < p.m; ++i)
            std::copy_n(p.bias, p.n, p.c + i * p.cRow);
    }
    const bool transposedA = p.aColumn != 1;
    const bool transposedB = p.bColumn != 1;
    return dnnl_sgemm(transposedA ? 'T' : 'N', transposedB ? 'T' : 'N', p.m, p.n, p.k, 1.0f, p.a,
               transposedA ? p.aColumn : p.aRow, p.b, transposedB ? p.bColumn : p.bRow,
               step.accumulate || p.bias != nullptr ? 1.0f : 0.0f, p.c, p.cRow)
        == dnnl_success;
}

/// By a compiled product. False if oneDNN does not have it; nothing was written then.
template<typename T, typename R> bool multiplyCompiled(const ProductStep<T, R> &step)
{
    const MatrixProduct<T, R> &p = step.product;
    try {
        static thread_local OneDnn dnn;
        const int kind = (step.accumulate ? 1 : 0) + (p.bias != nullptr ? 2 : 0)
            + (std::is_same_v<T, BFloat16> ? 4 : 0) + (std::is_same_v<R, BFloat16> ? 8 : 0);
        const ProductKey key{p.m, p.n, p.k, p.aRow, p.aColumn, p.bRow, p.bColumn, p.cRow, step.repeats,
            step.aStep, step.bStep, step.cStep, kind};
        auto found = dnn.products.find(key);
        if (found == dnn.products.end()) {
            if (dnn.products.size() >= kMostProducts)
                dnn.products.clear();
            found = dnn.products.emplace(key, compile(dnn, step)).first;
        }
        CompiledProduct &product = found->second;
        // oneDNN only reads from these two and the bias, but its handles are not const.
        product.a.set_data_handle(const_cast<T *>(p.a));
        product.b.set_data_handle(const_cast<T *>(p.b));
        product.c.set_data_handle(p.c);
        if (p.bias != nullptr) {
            product.bias.set_data_handle(const_cast<float *>(p.bias));
            product.primitive.execute(dnn.stream,
                {{DNNL_ARG_SRC, product.a}, {DNNL_ARG_WEIGHTS, product.b}, {DNNL_ARG_DST, product.c},
                    {DNNL_ARG_BIAS, product.bias}});
        } else {
            product.primitive.execute(dnn.stream,
                {{DNNL_ARG_SRC, product.a}, {DNNL_ARG_WEIGHTS, product.b}, {DNNL_ARG_DST, product.c}});
        }
        dnn.stream.wait();
        return true;
    } catch (const dnnl::error &) {
        return false; // It does not have this product; ours does.
    }
}

/// The step with strides that oneDNN can take; nothing if it cannot take it.
template<typename T, typename R> std::optional<ProductStep<T, R>> suited(ProductStep<T, R> step)
{
    MatrixProduct<T, R> &p = step.product;
    if (p.k == 0 || (step.accumulate && p.bias != nullptr))
        return std::nullopt;
    if (p.m == 1)
        p.cRow = p.n;
    if (!tidy(p.m, p.k, p.aRow, p.aColumn) || !tidy(p.k, p.n, p.bRow, p.bColumn) || p.cRow < p.n)
        return std::nullopt;
    return step;
}

} // namespace

bool multiplyWithOneDnn(const ProductStep<float> &given)
{
    const auto step = suited(given);
    if (!step)
        return false;
    holdToOneThread();
    return step->repeats == 1 ? multiplyOne(*step) : multiplyCompiled(*step);
}

bool multiplyWithOneDnn(const ProductStep<BFloat16> &given)
{
    const auto step = suited(given);
    if (!step)
        return false;
    holdToOneThread();
    return multiplyCompiled(*step);
}

bool multiplyWithOneDnn(const ProductStep<BFloat16, BFloat16> &given)
{
    const auto step = suited(given);
    if (!step || step->accumulate)
        return false;
    holdToOneThread();
    return multiplyCompiled(*step);
}

bool hasBFloat16Products()
{
    static const bool has = [] {
        const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
        const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
        return (isa & wanted) == wanted; // later sets contain earlier ones, bit by bit
    }();
    return has;
}

} // namespace planloom

#else

namespace planloom {

void holdToOneThread() { }

bool multiplyWithOneDnn(const ProductStep<float> &)
{
    return false;
}

bool multiplyWithOneDnn(const ProductStep<BFloat16> &)
{
    return false;
}

bool multiplyWithOneDnn(const ProductStep<BFloat16, BFloat16> &)
{
    return false;
}

bool hasBFloat16Products()
{
    return false;
}

} // namespace planloom

#endif
