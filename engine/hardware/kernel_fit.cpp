#include "engine/hardware/kernel_fit.h"

#include "engine/graph/precision.h"
#include "engine/hardware/figure_fit.h"
#include "engine/hardware/kernel_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

namespace planloom {

namespace {

template<typename Row> std::vector<Row> ofFormat(const std::vector<Row> &rows, bool eight)
{
    std::vector<Row> own;
    for (const Row &row : rows)
        if ((row.format == DataType::Float8E4M3) == eight)
            own.push_back(row);
    return own;
}

double memoryRate(const DeviceModel &device)
{
    return device.memoryBandwidth.value * device.memoryEfficiency.value;
}

double bytesOf(DataType format)
{
    return format == DataType::TensorFloat32 ? 4 : static_cast<double>(sizeOf(format));
}

double flopsOf(const MatrixProduct &product)
{
    return 2 * product.m * product.n * product.k * product.count;
}

/// A product whose operands have the width of its format, and whose result that of bfloat16 at least.
double operandSeconds(const DeviceModel &device, const MatrixProduct &product, DataType format)
{
    const double width = bytesOf(format);
    const double bytes = product.count
        * ((product.m + product.n) * product.k * width + product.m * product.n * std::max(width, 2.0));
    return overlapped(device, productSeconds(device, product, format), bytes / memoryRate(device));
}

double predicted(const DeviceModel &device, const Overheads &overheads, const ProductTiming &row)
{
    const MatrixProduct &p = row.product;
    const double computing = operandSeconds(device, p, row.format);
    const double roundedBytes = row.format == DataType::Float8E4M3 ? p.m * p.k * kRoundingBytes : 0;
    return overheads.product + computing + roundedBytes / memoryRate(device);
}

double flopsOf(const AttentionTiming &row)
{
    return 2 * row.batch * row.heads * row.sequence * row.sequence * row.width; // half of the square
}

double predicted(const DeviceModel &device, const Overheads &overheads, const AttentionTiming &row)
{
    const double rate = matrixFlopsOf(device, row.format)
        * attentionShapeEfficiency(device, row.format, false, true, row.width, row.sequence);
    const double bytes = row.batch * row.sequence * row.width * 2 * (2 * row.heads + 2 * row.keyHeads);
    return overheads.attention + overheads.attentionPasses * bytes / memoryRate(device) + flopsOf(row) / rate;
}

/// The products of a gated feed-forward: both of its first matrices at once, then the second.
std::array<MatrixProduct, 2> productsOf(const GroupedTiming &row)
{
    const double local = row.experts / row.parts;
    const double each = row.tokens * row.chosen / row.experts;
    return {MatrixProduct{each, 2 * row.width, row.hidden, local},
        MatrixProduct{each, row.hidden, row.width, local}};
}

double predicted(const DeviceModel &device, const Overheads &overheads, const GroupedTiming &row)
{
    const double rows = row.tokens * row.chosen / row.parts;
    const double width = bytesOf(row.format);
    // Tokens are read and laid out by expert, the gate reads two and writes one, results are read and added
    // up.
    const double bytes = 2 * row.tokens * row.hidden * 2 + rows * row.hidden * (width + 2)
        + rows * row.width * (2 * 2 + width);
    double seconds = overheads.experts + bytes / memoryRate(device);
    for (const MatrixProduct &product : productsOf(row))
        seconds += operandSeconds(device, product, row.format);
    return seconds;
}

double predicted(const Cluster &cluster, const CollectiveTiming &row)
{
    return collectiveSeconds(cluster.links, row.kind, row.bytes, row.shape);
}

bool isSent(const CollectiveTiming &row)
{
    return row.kind == CollectiveKind::SendRecv || row.kind == CollectiveKind::Shift;
}

const char *nameOf(CollectiveKind kind)
{
    switch (kind) {
    case CollectiveKind::AllReduce:
        return "all_reduce";
    case CollectiveKind::AllGather:
        return "all_gather";
    case CollectiveKind::ReduceScatter:
        return "reduce_scatter";
    case CollectiveKind::AllToAll:
        return "alltoall";
    case CollectiveKind::SendRecv:
        return "send";
    case CollectiveKind::Shift:
        return "shift";
    case CollectiveKind::Broadcast:
        break;
    }
    return "broadcast";
}

/// Faster than every multiplier at its peak: of another device, or in other units.
Result<void> checkPeak(const DeviceModel &device, const Timing &row, double flops)
{
    const double peak = matrixFlopsOf(device, row.format);
    if (flops / row.seconds <= peak)
        return {};
    char found[96];
    std::snprintf(found, sizeof found, "%.4g TFLOP/s, found %.4g", peak / 1e12, flops / row.seconds / 1e12);
    return Error{ErrorCode::InvalidInput, "expected at most " + device.name + "'s peak of " + found,
        "choose the profile of this device as the base (--base), and see that times are in microseconds",
        row.where};
}

Result<void> checkPeaks(const DeviceModel &device, const KernelTimings &timings)
{
    for (const ProductTiming &row : timings.products)
        TRY_VOID(checkPeak(device, row, flopsOf(row.product)));
    for (const AttentionTiming &row : timings.attentions)
        TRY_VOID(checkPeak(device, row, flopsOf(row)));
    for (const GroupedTiming &row : timings.experts) {
        const auto products = productsOf(row);
        TRY_VOID(checkPeak(device, row, flopsOf(products[0]) + flopsOf(products[1])));
    }
    return {};
}

/// Figures of a device while its timings are looked at.
class Fitting
{
public:
    Fitting(FittedCluster &fitted, const KernelTimings &timings)
        : m_fitted(fitted)
        , m_timings(timings)
    {
    }

    void products(bool eight)
    {
        const auto rows = ofFormat(m_timings.products, eight);
        if (rows.empty())
            return;
        Sourced product{0.6, {}};
        Sourced tile{0.8, {}};
        double &overhead = overheads(eight).product;
        overhead = 2e-6;
        FormatEfficiency *own = eight ? &eightBits() : nullptr;
        const auto set = [&] {
            (own ? own->product : device().productEfficiency) = product;
            (own ? own->tile : device().tileEfficiency) = tile;
        };
        const auto predict = [&](const ProductTiming &row) {
            return predicted(device(), overheads(eight), row);
        };
        fitFigures({{&product.value, 0.01, 1}, {&tile.value, 0.01, 1}, {&overhead, 1e-7, 1e-3}}, [&] {
            set();
            return fitDistance(rows, predict);
        });
        // Above what tiles reach it limits nothing: then they are all that is known.
        product.value = roundedFigure(std::min(product.value, tile.value));
        tile.value = roundedFigure(tile.value);
        set();
        product.source = tile.source =
            sourceOf(fitErrorOf(eight ? "products in 8 bits" : "products", rows, predict));
        set();
    }

    void experts(bool eight)
    {
        const auto rows = ofFormat(m_timings.experts, eight);
        if (rows.empty())
            return;
        const DataType format = rows.front().format;
        const double tile = efficiencyOf(device(), KernelRate::Tile, format).value;
        Sourced grouped{efficiencyOf(device(), KernelRate::Product, format).value, {}};
        FormatEfficiency *own = eight ? &eightBits() : nullptr;
        const auto set = [&] { (own ? own->grouped : device().groupedEfficiency) = grouped; };
        const auto predict = [&](const GroupedTiming &row) {
            return predicted(device(), overheads(eight), row);
        };
        overheads(eight).experts = 2e-5;
        fitFigures(
            {{&grouped.value, 0.01, std::max(tile, grouped.value)}, {&overheads(eight).experts, 1e-7, 1e-3}},
            [&] {
                set();
                return fitDistance(rows, predict);
            });
        grouped.value = roundedFigure(grouped.value);
        set();
        grouped.source = sourceOf(fitErrorOf("layers of experts", rows, predict));
        set();
    }

    void attention(bool eight)
    {
        const auto rows = ofFormat(m_timings.attentions, eight);
        if (rows.empty())
            return;
        const double backward =
            device().attentionBackwardEfficiency.value / std::max(device().attentionEfficiency.value, 1e-9);
        const bool isFirst = !eight || ofFormat(m_timings.attentions, false).empty();
        Overheads &beside = overheads(eight);
        beside.attention = 2e-5;
        beside.attentionPasses = 2;
        Sourced share{0.5, {}};
        Sourced lost{300, {}};
        FormatEfficiency *own = eight ? &eightBits() : nullptr;
        const auto set = [&] {
            (own ? own->attention : device().attentionEfficiency) = share;
            if (isFirst)
                device().attentionKeysLost = lost;
        };
        const auto predict = [&](const AttentionTiming &row) { return predicted(device(), beside, row); };
        std::vector<FreeFigure> figures{
            {&share.value, 0.01, 1}, {&beside.attention, 1e-7, 1e-3}, {&beside.attentionPasses, 0.01, 100}};
        if (isFirst)
            figures.push_back({&lost.value, 1, 1e5});
        fitFigures(figures, [&] {
            set();
            return fitDistance(rows, predict);
        });
        share.value = roundedFigure(share.value);
        lost.value = roundedFigure(lost.value);
        set();
        share.source = lost.source =
            sourceOf(fitErrorOf(eight ? "causal attention in 8 bits" : "causal attention", rows, predict));
        set();
        if (!eight && backward > 0)
            device().attentionBackwardEfficiency = {roundedFigure(std::min(backward * share.value, 1.0)),
                "the forward rate times the same ratio as before, not measured: "
                    + device().attentionBackwardEfficiency.source};
    }

    void collectives()
    {
        const auto &rows = m_timings.collectives;
        if (rows.empty())
            return;
        const auto has = [&](const auto &test) { return std::any_of(rows.begin(), rows.end(), test); };
        const bool rings = has([](const CollectiveTiming &row) {
            return row.kind != CollectiveKind::AllToAll && !isSent(row) && row.shape.nodes == 1;
        });
        const bool chunks = has([](const CollectiveTiming &row) {
            return row.kind == CollectiveKind::AllToAll && row.shape.nodes == 1;
        });
        const bool nodes = has([](const CollectiveTiming &row) { return row.shape.nodes > 1; });
        Interconnect &links = m_fitted.cluster.links;
        std::vector<Sourced *> figures;
        std::vector<FreeFigure> free;
        const auto look = [&](Sourced &figure, double usual, double least, double most) {
            if (figure.value <= 0)
                figure.value = usual;
            figures.push_back(&figure);
            free.push_back({&figure.value, least, most});
        };
        if (links.architecture == LinkArchitecture::SharedMemory) { // which has no more than these two
            look(links.intraLatency, 1e-6, 1e-8, 1);
            look(links.intraBandwidth, 1e9, 1e3, 1e14);
            fitFigures(free, [&] {
                return fitDistance(
                    rows, [&](const CollectiveTiming &row) { return predicted(m_fitted.cluster, row); });
            });
            return take(figures);
        }
        // Not above what the links carry, which NCCL's constants are about eight tenths of.
        const double most = links.intraBandwidth.value * 1.25;
        if (rings) {
            look(links.startLatency, 6.6e-6, 1e-7, 1e-3);
            look(links.hopLatency, 0.6e-6, 1e-8, 1e-3);
            look(links.ownCopyBandwidth, 1e12, 1e9, 1e14);
        }
        if (chunks) {
            look(links.allToAllBandwidth, links.intraBandwidth.value, 1e6, most);
            look(links.allToAllLatency, links.intraLatency.value, 1e-7, 1e-3);
        }
        if (nodes)
            look(links.interBandwidth, 1e11, 1e6, 1e14);
        const auto loss = [&] {
            return fitDistance(
                rows, [&](const CollectiveTiming &row) { return predicted(m_fitted.cluster, row); });
        };
        fitFigures(free, loss);
        if (rings) { // What the links are known to carry stands, unless it explains the times much worse.
            constexpr double kMuchBetter = 0.75;
            const Interconnect kept = links;
            const double before = loss();
            look(links.intraBandwidth, most, 1e6, most);
            fitFigures(free, loss);
            if (loss() > kMuchBetter * before) {
                links = kept;
                figures.pop_back();
            }
        }
        take(figures);
        if (rings)
            links.intraLatency = {roundedFigure(links.startLatency.value + links.hopLatency.value),
                "a collective's start and its first hop: " + links.startLatency.source};
        sends();
    }

private:
    /// From one device to another of its node there are no rings: what that takes says how long it is on its
    /// way.
    void sends()
    {
        std::vector<CollectiveTiming> rows = m_timings.collectives;
        std::erase_if(rows, [](const CollectiveTiming &row) { return !isSent(row) || row.shape.nodes > 1; });
        if (rows.empty())
            return;
        const auto predict = [&](const CollectiveTiming &row) { return predicted(m_fitted.cluster, row); };
        Sourced &latency = m_fitted.cluster.links.intraLatency;
        latency.value = std::max(latency.value, 1e-8);
        fitFigures({{&latency.value, 1e-8, 1}}, [&] { return fitDistance(rows, predict); });
        latency.value = roundedFigure(latency.value);
        latency.source = sourceOf(fitErrorOf("sends", rows, predict));
    }

    /// What was found for collectives, with how far it is from their times.
    void take(const std::vector<Sourced *> &figures)
    {
        for (Sourced *figure : figures)
            figure->value = roundedFigure(figure->value);
        const auto error = fitErrorOf("collectives", m_timings.collectives,
            [&](const CollectiveTiming &row) { return predicted(m_fitted.cluster, row); });
        for (Sourced *figure : figures)
            figure->source = sourceOf(error);
    }

    Overheads &overheads(bool eight) { return m_fitted.overheads[eight ? 1 : 0]; }

    DeviceModel &device() { return m_fitted.cluster.device; }

    FormatEfficiency &eightBits()
    {
        for (FormatEfficiency &each : device().formats)
            if (each.format == DataType::Float8E4M3)
                return each;
        device().formats.push_back({.format = DataType::Float8E4M3});
        return device().formats.back();
    }

    std::string sourceOf(const FitError &error) const
    {
        const bool links = error.kind == "collectives";
        const std::string &file = links ? m_timings.collectiveSource : m_timings.source;
        return "fitted to kernel timings" + (m_timings.device.empty() ? "" : " of " + m_timings.device) + ", "
            + planloom::toString(error) + (file.empty() ? "" : ": " + file);
    }

    FittedCluster &m_fitted;
    const KernelTimings &m_timings;
};

} // namespace

std::string toString(const FitError &error)
{
    char text[96];
    std::snprintf(text, sizeof text, ": off by %.1f%% in the median, %.1f%% at worst, of %zu times",
        100 * error.median, 100 * error.worst, error.rows);
    return error.kind + text;
}

std::vector<FitError> errorsBeside(
    const Cluster &cluster, const std::array<Overheads, 2> &overheads, const KernelTimings &timings)
{
    std::vector<FitError> errors;
    const auto add = [&](FitError error) {
        if (error.rows > 0)
            errors.push_back(std::move(error));
    };
    for (const bool eight : {false, true}) {
        const auto predict = [&](const auto &row) {
            return predicted(cluster.device, overheads[eight ? 1 : 0], row);
        };
        const std::string format = eight ? "8 bits" : "16 bits and more";
        add(fitErrorOf("products, " + format, ofFormat(timings.products, eight), predict));
        add(fitErrorOf("experts, " + format, ofFormat(timings.experts, eight), predict));
        add(fitErrorOf("attention, " + format, ofFormat(timings.attentions, eight), predict));
    }
    for (const auto kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
             CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Broadcast,
             CollectiveKind::SendRecv, CollectiveKind::Shift}) {
        std::vector<CollectiveTiming> rows;
        for (const CollectiveTiming &row : timings.collectives)
            if (row.kind == kind)
                rows.push_back(row);
        add(fitErrorOf(
            nameOf(kind), rows, [&](const CollectiveTiming &row) { return predicted(cluster, row); }));
    }
    return errors;
}

Result<FittedCluster> fittedCluster(Cluster base, const KernelTimings &timings)
{
    TRY_VOID(checkPeaks(base.device, timings));
    FittedCluster fitted{.cluster = std::move(base)};
    Fitting fitting(fitted, timings);
    for (const bool eight : {false, true}) {
        fitting.products(eight);
        fitting.experts(eight);
        fitting.attention(eight);
    }
    fitting.collectives();
    fitted.errors = errorsBeside(fitted.cluster, fitted.overheads, timings);
    return fitted;
}

} // namespace planloom
