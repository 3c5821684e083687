// Convolution and pooling on the device.

#include "engine/cuda/backend/cuda_products.h"
#include "engine/cuda/kernels/device_product.h"
#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/products/convolution.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int64_t kMostColumnBytes = std::int64_t{256} << 20U; ///< Of images that are unfolded at once.

std::optional<DeviceWindows> windowsOf(const WindowGeometry &g)
{
    if (g.rank() == 0 || g.rank() > kMostWindowDimensions)
        return std::nullopt;
    DeviceWindows windows;
    windows.rank = static_cast<std::int32_t>(g.rank());
    for (std::size_t d = 0; d < g.rank(); ++d) {
        windows.in[d] = g.in[d];
        windows.out[d] = g.out[d];
        windows.first[d] = g.first[d];
        windows.inFirst[d] = g.inFirst[d];
        windows.inWhole[d] = g.inWhole[d];
        windows.kernel[d] = g.kernel[d];
        windows.strides[d] = g.strides[d];
        windows.dilations[d] = g.dilations[d];
        windows.pads[d] = g.pads[d];
        windows.padsAfter[d] = g.padsAfter[d];
    }
    windows.inCount = g.inCount();
    windows.outCount = g.outCount();
    windows.kernelCount = g.kernelCount();
    return windows;
}

Elements behind(const Elements &from, std::int64_t elements)
{
    return {static_cast<std::byte *>(from.data) + elements * sizeOf(from.type), from.type};
}

/// One of the three products that a convolution is made of, over all its images: unfolded a part of them at a
/// time.
class DeviceConvolution
{
public:
    DeviceConvolution(const DeviceCall &device, Convolution conv, const DeviceWindows &windows)
        : m_device(device)
        , m_conv(std::move(conv))
        , m_windows(windows)
        , m_columns(m_conv.groups * m_conv.rows() * m_conv.window.outCount())
        , m_images(m_conv.isPointwise()
                  ? m_conv.n
                  : std::clamp<std::int64_t>(
                      kMostColumnBytes / (4 * std::max<std::int64_t>(m_columns, 1)), 1, m_conv.n))
    {
    }

    /// y = w * unfolded x
    Result<void> forward(const Elements &x, const Elements &w, const Elements &y)
    {
        return inParts(
            x.type, [&](std::int64_t first, std::int64_t images, Elements columns) -> Result<void> {
                TRY_VOID(unfold(x, first, images, columns));
                DeviceProduct product = productOf(m_conv.o, m_conv.window.outCount(), m_conv.rows());
                product.a = w;
                product.shape.aRow = m_conv.rows();
                product.b = columns;
                product.shape.bRow = m_conv.window.outCount();
                product.c = behind(y, first * m_conv.groups * m_conv.yGroup());
                product.shape.cRow = m_conv.window.outCount();
                product.shape.batch = {{images, 0, columnsPerImage(), m_conv.groups * m_conv.yGroup()},
                    {m_conv.groups, m_conv.o * m_conv.rows(), columnsPerGroup(), m_conv.yGroup()}};
                return run(product);
            });
    }

    /// dx = w^T * dy, folded back
    Result<void> ofData(const Elements &dy, const Elements &w, const Elements &dx)
    {
        const bool pointwise = m_conv.isPointwise();
        return inParts(DataType::Float32,
            [&](std::int64_t first, std::int64_t images, Elements columns) -> Result<void> {
                const Elements to = behind(dx, first * m_conv.groups * m_conv.xGroup());
                DeviceProduct product = productOf(m_conv.rows(), m_conv.window.outCount(), m_conv.o);
                product.a = w;
                product.shape.aRow = 1;
                product.shape.aColumn = m_conv.rows();
                product.b = behind(dy, first * m_conv.groups * m_conv.yGroup());
                product.shape.bRow = m_conv.window.outCount();
                product.c = pointwise ? to : columns;
                product.shape.cRow = m_conv.window.outCount();
                product.shape.batch = {{images, 0, m_conv.groups * m_conv.yGroup(), columnsPerImage()},
                    {m_conv.groups, m_conv.o * m_conv.rows(), m_conv.yGroup(), columnsPerGroup()}};
                TRY_VOID(run(product));
                if (pointwise)
                    return {};
                return m_device.queue.launch(
                    FoldKernel{columns, to, m_windows}, images * m_conv.groups * m_conv.xGroup());
            });
    }

    /// dw = sum over images of dy * (unfolded x)^T
    Result<void> ofWeights(const Elements &x, const Elements &dy, const Elements &dw)
    {
        const std::int64_t size = m_conv.groups * m_conv.o * m_conv.rows();
        Elements sums = dw;
        if (dw.type != DataType::Float32) { // rounded once
            TRY(sums.data, m_device.scratch<float>(size));
            sums.type = DataType::Float32;
        }
        m_device.queue.fill(static_cast<std::byte *>(sums.data), 0, static_cast<std::size_t>(size) * 4);
        TRY_VOID(
            inParts(x.type, [&](std::int64_t first, std::int64_t images, Elements columns) -> Result<void> {
                TRY_VOID(unfold(x, first, images, columns));
                DeviceProduct product = productOf(m_conv.o, m_conv.rows(), m_conv.window.outCount());
                product.a = behind(dy, first * m_conv.groups * m_conv.yGroup());
                product.shape.aRow = m_conv.window.outCount();
                product.b = columns;
                product.shape.bRow = 1;
                product.shape.bColumn = m_conv.window.outCount();
                product.c = sums;
                product.shape.cRow = m_conv.rows();
                product.shape.accumulate = true;
                product.shape.batch = {{images, m_conv.groups * m_conv.yGroup(), columnsPerImage(), 0},
                    {m_conv.groups, m_conv.yGroup(), columnsPerGroup(), m_conv.o * m_conv.rows()}};
                return run(product);
            }));
        return sums.data == dw.data ? Result<void>{} : m_device.queue.launch(ConvertKernel{sums, dw}, size);
    }

private:
    std::int64_t columnsPerGroup() const
    {
        return m_conv.isPointwise() ? m_conv.xGroup() : m_conv.rows() * m_conv.window.outCount();
    }
    std::int64_t columnsPerImage() const { return m_conv.groups * columnsPerGroup(); }

    DeviceProduct productOf(std::int64_t m, std::int64_t n, std::int64_t k) const
    {
        DeviceProduct product;
        product.shape.m = m;
        product.shape.n = n;
        product.shape.k = k;
        product.compute = m_device.compute();
        return product;
    }
    Result<void> run(const DeviceProduct &product)
    {
        return m_device.queue.products().run(m_device.queue, product);
    }

    /// Calls `work` with the first of so many images, and room for their columns.
    template<typename Work> Result<void> inParts(DataType type, Work &&work)
    {
        Elements columns{nullptr, type};
        if (!m_conv.isPointwise()) {
            TRY(columns.data,
                m_device.queue.scratch().take(static_cast<std::size_t>(m_images * m_columns * sizeOf(type))));
        }
        for (std::int64_t first = 0; first < m_conv.n; first += m_images)
            TRY_VOID(work(first, std::min(m_images, m_conv.n - first), columns));
        return {};
    }

    /// The columns of some images; those of a pointwise convolution are its input.
    Result<void> unfold(const Elements &x, std::int64_t first, std::int64_t images, Elements &columns)
    {
        const Elements from = behind(x, first * m_conv.groups * m_conv.xGroup());
        if (!m_conv.isPointwise())
            return m_device.queue.launch(UnfoldKernel{from, columns, m_windows}, images * m_columns);
        columns = from;
        return {};
    }

    const DeviceCall &m_device;
    Convolution m_conv;
    DeviceWindows m_windows;
    std::int64_t m_columns; ///< Elements, of one image.
    std::int64_t m_images; ///< Unfolded at once.
};

bool isMultiplied(const Elements &elements)
{
    return elements.type == DataType::Float32 || elements.type == DataType::BFloat16
        || elements.type == DataType::Float16;
}

/// Of y [n c ..]: offsets of elements of the channels alone.
Shape channelStrides(const Shape &y)
{
    Shape strides(y.size(), 0);
    strides[1] = 1;
    return strides;
}

Result<bool> launchConvForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *bias = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr || w == nullptr)
        return false;
    const bool transposed = call.op->kind == OperatorKind::ConvTranspose;
    const Convolution conv =
        transposed ? convolutionOf(*call.op, *y, *w, *x) : convolutionOf(*call.op, *x, *w, *y);
    const auto windows = windowsOf(conv.window);
    const bool adds = bias != nullptr && makesTerm(call, 0, {2});
    const auto nest = nestOf<2>(y->shape, {denseStrides(y->shape), channelStrides(y->shape)});
    if (!windows || !nest)
        return false;
    Elements made = device.of(y);
    if (adds && made.type != DataType::Float32) { // rounded once
        TRY(made.data, device.scratch<float>(elementCount(*y)));
        made.type = DataType::Float32;
    }
    DeviceConvolution convolution(device, conv, *windows);
    TRY_VOID(transposed ? convolution.ofData(device.of(x), device.of(w), made)
                        : convolution.forward(device.of(x), device.of(w), made));
    if (!adds)
        return true;
    BinaryKernel sum;
    sum.a = made;
    sum.b = device.of(bias);
    sum.made = device.of(y);
    sum.nest = *nest;
    TRY_VOID(device.queue.launch(sum, elementCount(*y)));
    return true;
}

/// The piece of the gradient that the part has to itself, in scratch memory unless that is all of it.
Result<Buffer> ownGradient(const DeviceCall &device, const Buffer &dy)
{
    const IndexMask box = ownBox(device.call, 0);
    if (dy.shape == shapeOf(box))
        return dy;
    Buffer piece = dy;
    piece.shape = shapeOf(box);
    piece.mask = box;
    const std::int64_t size = sizeOf(device.of(&dy).type);
    TRY(piece.data, device.queue.scratch().take(static_cast<std::size_t>(elementCount(piece.shape) * size)));
    TRY_VOID(launchMove(device.queue, boxMove(dy.data, dy.mask, piece.data, box, box, size)));
    return piece;
}

Result<bool> launchConvBackward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    const Buffer *dbias = back.wanted(2);
    if (dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr)
        || dy->shape.size() < 3 || dy->shape.size() > 2 + kMostWindowDimensions)
        return false;
    const bool transposed = call.op->kind == OperatorKind::ConvTranspose;
    const DataType type = device.of(dy).type;
    TRY(const Buffer own, ownGradient(device, *dy));
    const Elements ownElements{own.data, type};
    if (dx != nullptr) {
        const Convolution conv =
            transposed ? convolutionOf(*call.op, *dy, *w, *dx) : convolutionOf(*call.op, *dx, *w, *dy);
        DeviceConvolution convolution(device, conv, *windowsOf(conv.window));
        TRY_VOID(transposed ? convolution.forward(device.of(dy), device.of(w), device.of(dx))
                            : convolution.ofData(device.of(dy), device.of(w), device.of(dx)));
    }
    if (dw != nullptr) {
        const Convolution conv =
            transposed ? convolutionOf(*call.op, *dy, *dw, *x) : convolutionOf(*call.op, *x, *dw, own);
        DeviceConvolution convolution(device, conv, *windowsOf(conv.window));
        TRY_VOID(transposed ? convolution.ofWeights(device.of(dy), device.of(x), device.of(dw))
                            : convolution.ofWeights(device.of(x), ownElements, device.of(dw)));
    }
    if (dbias == nullptr)
        return true;
    const auto nests = reducedNests(own.shape,
        {denseStrides(own.shape), Shape(own.shape.size(), 0), Shape(own.shape.size(), 0)},
        channelStrides(own.shape));
    if (!makesTerm(call, 2, {0})) {
        device.queue.fill(
            dbias->data, 0, static_cast<std::size_t>(elementCount(*dbias) * sizeOf(device.of(dbias).type)));
        TRY_VOID(device.queue.outcome());
        return true;
    }
    ReduceKernel sum;
    sum.x = ownElements;
    sum.made = device.of(dbias);
    sum.count = nests->count; // of a few dimensions, there are always nests
    sum.outer = nests->outer;
    sum.inner = nests->inner;
    TRY_VOID(device.queue.launch(sum, nests->outputs));
    return true;
}

Result<bool> launchConv(const DeviceCall &device)
{
    const bool eight = device.compute() == DataType::Float8E4M3 || device.compute() == DataType::Float8E5M2;
    for (std::size_t slot = 0; slot < device.call.inputs.size(); ++slot)
        if (device.input(slot).data != nullptr && !isMultiplied(device.input(slot)))
            return false;
    for (std::size_t slot = 0; slot < device.call.outputs.size(); ++slot)
        if (device.output(slot).data != nullptr && !isMultiplied(device.output(slot)))
            return false;
    if (eight)
        return false;
    return device.call.op->direction == Direction::Forward ? launchConvForward(device)
                                                           : launchConvBackward(device);
}

Pooling poolingOf(OperatorKind kind)
{
    return kind == OperatorKind::MaxPool    ? Pooling::Largest
        : kind == OperatorKind::AveragePool ? Pooling::Average
                                            : Pooling::Norm;
}

Result<bool> launchPool(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Attributes &attributes = call.op->attributes;
    const Shape kernel = attributes.integers("kernel_shape");
    const Pooling pooling = poolingOf(call.op->kind);
    const bool countPadding = attributes.integer("count_include_pad") != 0;
    const auto p = static_cast<double>(attributes.integer("p", 2));
    if (call.op->direction == Direction::Forward) {
        const Buffer *x = findInput(call, 0);
        const Buffer *y = findOutput(call, 0);
        if (y == nullptr)
            return true;
        if (x == nullptr)
            return false;
        const auto windows = windowsOf(windowGeometry(attributes, *x, *y, kernel));
        if (!windows)
            return false;
        TRY_VOID(device.queue.launch(
            PoolKernel{device.of(x), device.of(y), pooling, countPadding, p, *windows}, elementCount(*y)));
        return true;
    }
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *y = back.output();
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return true;
    const bool average = pooling == Pooling::Average;
    if (dy == nullptr || (!average && (x == nullptr || y == nullptr)))
        return false;
    const auto windows = windowsOf(windowGeometry(attributes, average ? *dx : *x, *dy, kernel));
    const auto share = windowsOf(windowGeometry(attributes, *dx, *dy, kernel));
    if (!windows || !share)
        return false;
    TRY_VOID(device.queue.launch(
        PoolSlopeKernel{device.of(dy), average ? Elements{} : device.of(x),
            average ? Elements{} : device.of(y), device.of(dx), pooling, countPadding, p, *windows, *share},
        elementCount(*dx)));
    return true;
}

} // namespace

Result<bool> launchWindows(const DeviceCall &device)
{
    switch (device.call.op->kind) {
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
        return launchConv(device);
    case OperatorKind::MaxPool:
    case OperatorKind::AveragePool:
    case OperatorKind::LpPool:
        return launchPool(device);
    default:
        return false;
    }
}

} // namespace planloom
