#include "engine/kernels/products/convolution_onednn.h"

#ifdef PLANLOOM_HAVE_ONEDNN

#include "engine/base/work_pool.h"
#include "engine/kernels/products/gemm.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace planloom {

namespace {

using dnnl::memory;

enum class ConvolutionPass { Forward, Data, Weights };
constexpr std::size_t kX = 0; ///< Of the three operands,
constexpr std::size_t kW = 1;
constexpr std::size_t kY = 2;

/// The operand that a pass makes.
std::size_t madeBy(ConvolutionPass pass)
{
    return pass == ConvolutionPass::Forward ? kY : pass == ConvolutionPass::Data ? kX : kW;
}

/// All that a compiled pass depends on.
struct ConvolutionShape {
    ConvolutionPass pass{};
    std::int64_t images = 1;
    std::int64_t c = 1;
    std::int64_t o = 1;
    std::array<std::int64_t, 2> in{};
    std::array<std::int64_t, 2> out{};
    std::array<std::int64_t, 2> kernel{};
    std::array<std::int64_t, 2> strides{};
    std::array<std::int64_t, 2> before{}; ///< Padding.
    std::array<std::int64_t, 2> after{};
    friend auto operator<=>(const ConvolutionShape &, const ConvolutionShape &) = default;
};

/// One pass over some images, compiled. oneDNN's fast convolutions have channels in blocks: operands are
/// brought into its formats and out of them.
struct CompiledConvolution {
    dnnl::primitive primitive{};
    std::array<memory, 3> plain{};
    std::array<memory, 3> inner{};
    std::array<std::optional<dnnl::reorder>, 3>
        moves{}; ///< Into the inner format, or what is made out of it.
};

struct ConvolutionStore {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    std::map<ConvolutionShape, CompiledConvolution> passes{};
};
constexpr std::size_t kMostPasses = 256; ///< Of a thread; beyond, its store starts afresh.

using Descriptions = std::array<memory::desc, 3>;

template<typename Pass, typename... Hint>
typename Pass::primitive_desc describePass(
    const dnnl::engine &engine, const ConvolutionShape &s, const Descriptions &d, const Hint &...hint)
{
    const memory::dims strides(s.strides.begin(), s.strides.end());
    const memory::dims before(s.before.begin(), s.before.end());
    const memory::dims after(s.after.begin(), s.after.end());
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    constexpr bool kIsForward = std::is_same_v<Pass, dnnl::convolution_forward>;
#if DNNL_VERSION_MAJOR >= 3
    if constexpr (kIsForward)
        return {
            engine, dnnl::prop_kind::forward_training, kDirect, d[kX], d[kW], d[kY], strides, before, after};
    else
        return {engine, kDirect, d[kX], d[kW], d[kY], strides, before, after, hint...};
#else
    if constexpr (kIsForward)
        return {typename Pass::desc(
                    dnnl::prop_kind::forward_training, kDirect, d[kX], d[kW], d[kY], strides, before, after),
            engine};
    else
        return {typename Pass::desc(kDirect, d[kX], d[kW], d[kY], strides, before, after), engine, hint...};
#endif
}

CompiledConvolution compilePass(ConvolutionStore &store, const ConvolutionShape &s)
{
    const std::array<memory::dims, 3> extents{memory::dims{s.images, s.c, s.in[0], s.in[1]},
        memory::dims{s.o, s.c, s.kernel[0], s.kernel[1]}, memory::dims{s.images, s.o, s.out[0], s.out[1]}};
    Descriptions any;
    Descriptions plain;
    for (std::size_t i = 0; i < 3; ++i) {
        any[i] = memory::desc(extents[i], memory::data_type::f32, memory::format_tag::any);
        plain[i] = memory::desc(extents[i], memory::data_type::f32, memory::format_tag::abcd);
    }
    CompiledConvolution made;
    Descriptions inner;
    const auto forward = describePass<dnnl::convolution_forward>(store.engine, s, any);
    if (s.pass == ConvolutionPass::Forward) {
        made.primitive = dnnl::convolution_forward(forward);
        inner = {forward.src_desc(), forward.weights_desc(), forward.dst_desc()};
    } else if (s.pass == ConvolutionPass::Data) {
        const auto pass = describePass<dnnl::convolution_backward_data>(store.engine, s, any, forward);
        made.primitive = dnnl::convolution_backward_data(pass);
        inner = {pass.diff_src_desc(), pass.weights_desc(), pass.diff_dst_desc()};
    } else {
        const auto pass = describePass<dnnl::convolution_backward_weights>(store.engine, s, any, forward);
        made.primitive = dnnl::convolution_backward_weights(pass);
        inner = {pass.src_desc(), pass.diff_weights_desc(), pass.diff_dst_desc()};
    }
    for (std::size_t i = 0; i < 3; ++i) {
        made.plain[i] = memory(plain[i], store.engine, nullptr);
        made.inner[i] = memory(inner[i], store.engine, nullptr);
        if (inner[i] != plain[i])
            made.moves[i] = madeBy(s.pass) == i ? dnnl::reorder(made.inner[i], made.plain[i])
                                                : dnnl::reorder(made.plain[i], made.inner[i]);
    }
    return made;
}

ConvolutionStore &storeOfThread()
{
    static thread_local ConvolutionStore store;
    return store;
}

CompiledConvolution &compiledPass(ConvolutionStore &store, const ConvolutionShape &shape)
{
    auto found = store.passes.find(shape);
    if (found == store.passes.end()) {
        if (store.passes.size() >= kMostPasses)
            store.passes.clear();
        found = store.passes.emplace(shape, compilePass(store, shape)).first;
    }
    return found->second;
}

using Scratch = std::unique_ptr<std::byte[]>;

/// Moves an operand that is read into the inner format. @return null where it is as it should be
Scratch moveIn(ConvolutionStore &store, CompiledConvolution &pass, std::size_t operand, float *plain)
{
    pass.inner[operand].set_data_handle(plain);
    if (!pass.moves[operand])
        return nullptr;
    auto moved = std::make_unique_for_overwrite<std::byte[]>(pass.inner[operand].get_desc().get_size());
    pass.plain[operand].set_data_handle(plain);
    pass.inner[operand].set_data_handle(moved.get());
    pass.moves[operand]->execute(store.stream, pass.plain[operand], pass.inner[operand]);
    store.stream.wait();
    return moved;
}

/// @param weights  in the inner format already; null: they are an operand like the others
void runPass(const ConvolutionShape &shape, std::array<float *, 3> operands, std::byte *weights)
{
    holdToOneThread();
    ConvolutionStore &store = storeOfThread();
    CompiledConvolution &pass = compiledPass(store, shape);
    const std::size_t made = madeBy(shape.pass);
    std::array<Scratch, 3> moved;
    for (std::size_t i = 0; i < 3; ++i) {
        if (i == kW && weights != nullptr) {
            pass.inner[kW].set_data_handle(weights);
        } else if (i != made) {
            moved[i] = moveIn(store, pass, i, operands[i]);
        } else if (pass.moves[i]) {
            moved[i] = std::make_unique_for_overwrite<std::byte[]>(pass.inner[i].get_desc().get_size());
            pass.inner[i].set_data_handle(moved[i].get());
        } else {
            pass.inner[i].set_data_handle(operands[i]);
        }
    }
    switch (shape.pass) {
    case ConvolutionPass::Forward:
        pass.primitive.execute(store.stream,
            {{DNNL_ARG_SRC, pass.inner[kX]}, {DNNL_ARG_WEIGHTS, pass.inner[kW]},
                {DNNL_ARG_DST, pass.inner[kY]}});
        break;
    case ConvolutionPass::Data:
        pass.primitive.execute(store.stream,
            {{DNNL_ARG_DIFF_SRC, pass.inner[kX]}, {DNNL_ARG_WEIGHTS, pass.inner[kW]},
                {DNNL_ARG_DIFF_DST, pass.inner[kY]}});
        break;
    case ConvolutionPass::Weights:
        pass.primitive.execute(store.stream,
            {{DNNL_ARG_SRC, pass.inner[kX]}, {DNNL_ARG_DIFF_WEIGHTS, pass.inner[kW]},
                {DNNL_ARG_DIFF_DST, pass.inner[kY]}});
        break;
    }
    store.stream.wait();
    if (pass.moves[made]) {
        pass.plain[made].set_data_handle(operands[made]);
        pass.moves[made]->execute(store.stream, pass.inner[made], pass.plain[made]);
        store.stream.wait();
    }
}

/// The pass over all images; nothing where products of unfolded windows are faster, or oneDNN has no such
/// convolution.
std::optional<ConvolutionShape> suitedShape(const Convolution &conv, ConvolutionPass pass)
{
    constexpr std::int64_t kFewestImages = 4; ///< That threads share.
    constexpr std::int64_t kFewestChannels = 16; ///< A block of them.
    const WindowGeometry &g = conv.window;
    if (g.rank() != 2 || conv.groups != 1 || conv.n < kFewestImages || conv.o < kFewestChannels
        || g.kernelCount() < 4 || (pass == ConvolutionPass::Data && conv.c < kFewestChannels))
        return std::nullopt;
    ConvolutionShape shape{.pass = pass, .images = conv.n, .c = conv.c, .o = conv.o};
    for (std::size_t d = 0; d < 2; ++d) {
        const std::int64_t first = g.elementAt(d, 0, 0) - g.inFirst[d]; // that the first window reads
        const std::int64_t last = first + (g.out[d] - 1) * g.strides[d] + g.kernel[d];
        if (g.dilations[d] != 1 || g.out[d] < 1 || g.in[d] < 1 || first > 0 || -first >= g.kernel[d]
            || last - g.in[d] >= g.kernel[d] || g.in[d] - last >= g.strides[d])
            return std::nullopt;
        shape.in[d] = g.in[d];
        shape.out[d] = g.out[d];
        shape.kernel[d] = g.kernel[d];
        shape.strides[d] = g.strides[d];
        shape.before[d] = -first;
        shape.after[d] = std::max<std::int64_t>(0, last - g.in[d]);
    }
    return shape;
}

/// Images that one call takes: small ones together, so that weights are read less often.
std::int64_t imagesAtOnce(const Convolution &conv)
{
    constexpr std::int64_t kSmall = 200; // windows
    return conv.window.outCount() < kSmall && conv.n >= 8 ? 2 : 1;
}

bool passOverImages(const Convolution &conv, ConvolutionPass pass, std::array<float *, 3> operands)
{
    auto shape = suitedShape(conv, pass);
    if (!shape)
        return false;
    const std::int64_t step = imagesAtOnce(conv);
    shape->images = step;
    try {
        holdToOneThread();
        ConvolutionStore &store = storeOfThread();
        CompiledConvolution &compiled = compiledPass(store, *shape);
        const Scratch weights = moveIn(store, compiled, kW, operands[kW]);
        std::byte *const inner = weights ? weights.get() : reinterpret_cast<std::byte *>(operands[kW]);
        std::atomic<bool> failed{false};
        forEachStretch(conv.n, step, [&](std::int64_t begin, std::int64_t end) {
            ConvolutionShape own = *shape;
            own.images = end - begin;
            // The rest of the images may have another format for its weights.
            std::byte *const of = own.images == step ? inner : nullptr;
            try {
                runPass(own,
                    {operands[kX] + begin * conv.xGroup(), operands[kW],
                        operands[kY] + begin * conv.yGroup()},
                    of);
            } catch (const dnnl::error &) {
                failed = true;
            }
        });
        return !failed; // else all of it is made anew
    } catch (const dnnl::error &) {
        return false; // it does not have this convolution; ours does
    }
}

} // namespace

bool convolveWithOneDnn(const Convolution &conv, const float *x, const float *w, float *y)
{
    // oneDNN only reads from inputs, but its handles are not const; likewise below.
    return passOverImages(
        conv, ConvolutionPass::Forward, {const_cast<float *>(x), const_cast<float *>(w), y});
}

bool convolveDataWithOneDnn(const Convolution &conv, const float *dy, const float *w, float *dx)
{
    return passOverImages(conv, ConvolutionPass::Data, {dx, const_cast<float *>(w), const_cast<float *>(dy)});
}

bool convolveWeightsWithOneDnn(const Convolution &conv, const float *x, const float *dy, float *dw)
{
    const auto shape = suitedShape(conv, ConvolutionPass::Weights);
    if (!shape)
        return false;
    // Images are parts, whose sums are added in their order.
    constexpr std::int64_t kParts = 4;
    const std::int64_t length = (conv.n + kParts - 1) / kParts;
    const std::int64_t size = conv.o * conv.rows();
    std::vector<float> others(static_cast<std::size_t>((kParts - 1) * size));
    std::atomic<bool> failed{false};
    const std::int64_t parts = (conv.n + length - 1) / length;
    forEachStretch(conv.n, length, [&](std::int64_t begin, std::int64_t end) {
        ConvolutionShape own = *shape;
        own.images = end - begin;
        const std::int64_t part = begin / length;
        float *const to = part == 0 ? dw : others.data() + (part - 1) * size;
        try {
            runPass(own,
                {const_cast<float *>(x) + begin * conv.xGroup(), to,
                    const_cast<float *>(dy) + begin * conv.yGroup()},
                nullptr);
        } catch (const dnnl::error &) {
            failed = true;
        }
    });
    if (failed)
        return false;
    constexpr std::int64_t kAdded = 1 << 16;
    forEachStretch(size, kAdded, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = 1; part < parts; ++part)
            for (std::int64_t i = begin; i < end; ++i)
                dw[i] += others[static_cast<std::size_t>((part - 1) * size + i)];
    });
    return true;
}

} // namespace planloom

#else

namespace planloom {

bool convolveWithOneDnn(const Convolution &, const float *, const float *, float *)
{
    return false;
}

bool convolveDataWithOneDnn(const Convolution &, const float *, const float *, float *)
{
    return false;
}

bool convolveWeightsWithOneDnn(const Convolution &, const float *, const float *, float *)
{
    return false;
}

} // namespace planloom

#endif
