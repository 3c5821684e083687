// Convolution and pooling on the device.

#include "engine/cuda/backend/cuda_products.h"
#include "engine/cuda/kernels/device_product.h"
#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/movement/window_plans.h"

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

/// Of y [n c ..]: offsets of elements of the channels alone.
Shape channelStrides(const Shape &y)
{
    Shape strides(y.size(), 0);
    strides[1] = 1;
    return strides;
}

/// @param own  the plan's @param result  which buffer's place `made` is to take; may be null
Result<void> launchProducts(const DeviceCall &device, const ConvolutionPlan &plan, const Elements &own,
    const Buffer *result, const Elements &made)
{
    const auto of = [&](const Buffer *buffer) {
        return buffer == nullptr ? own : buffer == result ? made : device.of(buffer);
    };
    for (const PlannedConvolution &planned : plan.products) {
        DeviceConvolution convolution(device, planned.conv, *windowsOf(planned.conv.window));
        const Elements x = of(planned.x);
        const Elements w = of(planned.w);
        const Elements y = of(planned.y);
        TRY_VOID(planned.pass == ConvolutionPass::Forward ? convolution.forward(x, w, y)
                : planned.pass == ConvolutionPass::OfData ? convolution.ofData(y, w, x)
                                                          : convolution.ofWeights(x, y, w));
    }
    return {};
}

Result<bool> launchConvForward(const DeviceCall &device, const ConvolutionPlan &plan)
{
    const Buffer &y = device.call.outputs[0];
    const auto nest = nestOf<2>(y.shape, {denseStrides(y.shape), channelStrides(y.shape)});
    if (!nest)
        return false;
    Elements made = device.output(0);
    if (plan.bias != nullptr && made.type != DataType::Float32) { // rounded once
        TRY(made.data, device.scratch<float>(elementCount(y)));
        made.type = DataType::Float32;
    }
    TRY_VOID(launchProducts(device, plan, {}, &y, made));
    if (plan.bias == nullptr)
        return true;
    BinaryKernel sum;
    sum.a = made;
    sum.b = device.of(plan.bias);
    sum.made = device.output(0);
    sum.nest = *nest;
    return launched(device.queue.launch(sum, elementCount(y)));
}

/// The piece of the gradient that the part has to itself, in scratch memory unless that is all of it.
Result<Elements> ownGradient(const DeviceCall &device, const ConvolutionPlan &plan)
{
    Elements own = device.of(plan.dy);
    if (plan.dy->shape == plan.own.shape)
        return own;
    const std::int64_t size = sizeOf(own.type);
    TRY(std::byte *const piece,
        device.queue.scratch().take(static_cast<std::size_t>(elementCount(plan.own) * size)));
    TRY_VOID(launchMove(
        device.queue, boxMove(plan.dy->data, plan.dy->mask, piece, plan.own.mask, plan.own.mask, size)));
    own.data = piece;
    return own;
}

Result<bool> launchConvBackward(const DeviceCall &device, const ConvolutionPlan &plan)
{
    const Shape &shape = plan.own.shape;
    const Shape still(shape.size(), 0);
    const auto nests =
        reducedNests(shape, {denseStrides(shape), still, still}, channelStrides(shape), shape[1]);
    if (!nests)
        return false;
    TRY(const Elements own, ownGradient(device, plan));
    TRY_VOID(launchProducts(device, plan, own, nullptr, {}));
    if (plan.dbias == nullptr)
        return true;
    if (!plan.addsUpBias) {
        device.clear(*plan.dbias);
        TRY_VOID(device.queue.outcome());
        return true;
    }
    ReduceKernel sum;
    sum.x = own;
    sum.made = device.of(plan.dbias);
    sum.count = nests->count;
    sum.outer = nests->outer;
    sum.inner = nests->inner;
    return launched(device.queue.launch(sum, nests->outputs));
}

Result<bool> launchConv(const DeviceCall &device, const ConvolutionPlan &plan)
{
    const auto isTaken = [](const Elements &elements) {
        return elements.data == nullptr || elements.type == DataType::Float32
            || elements.type == DataType::BFloat16 || elements.type == DataType::Float16;
    };
    for (std::size_t slot = 0; slot < device.call.inputs.size(); ++slot)
        if (!isTaken(device.input(slot)))
            return false;
    for (std::size_t slot = 0; slot < device.call.outputs.size(); ++slot)
        if (!isTaken(device.output(slot)))
            return false;
    for (const PlannedConvolution &planned : plan.products)
        if (!windowsOf(planned.conv.window))
            return false;
    if (device.compute() == DataType::Float8E4M3 || device.compute() == DataType::Float8E5M2)
        return false;
    return plan.dy == nullptr ? launchConvForward(device, plan) : launchConvBackward(device, plan);
}

Result<bool> launchPool(const DeviceCall &device, const PoolPlan &plan)
{
    const auto windows = windowsOf(plan.windows);
    if (!windows)
        return false;
    const Elements x = device.of(plan.x);
    const Elements y = device.of(plan.y);
    if (plan.dy == nullptr)
        return launched(device.queue.launch(PoolKernel{x, y, plan.rule, *windows}, elementCount(*plan.y)));
    return launched(device.queue.launch(PoolSlopeKernel{device.of(plan.dy), x, y, device.of(plan.dx),
                                            plan.rule, *windows, *windowsOf(plan.share)},
        elementCount(*plan.dx)));
}

} // namespace

Result<bool> launchWindows(const DeviceCall &device)
{
    switch (device.call.op->kind) {
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
        return launchPlanned(device, planConvolution(device.call), launchConv);
    case OperatorKind::MaxPool:
    case OperatorKind::AveragePool:
    case OperatorKind::LpPool:
        return launchPlanned(device, planPool(device.call), launchPool);
    default:
        return false;
    }
}

} // namespace planloom
