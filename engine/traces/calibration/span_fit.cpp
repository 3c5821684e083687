#include "engine/traces/calibration/span_fit.h"

#include "engine/analyse/statistics.h"
#include "engine/hardware/figure_fit.h"
#include "engine/hardware/framework.h"
#include "engine/hardware/kernel_cost.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/calibration/run_times.h"

#include <array>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr double kLeastShare = 1e-6; ///< Of a peak: a plan for GPUs may have run on processors.

bool multiplies(OperatorCategory category)
{
    return category == OperatorCategory::Product || category == OperatorCategory::Recurrent;
}

/// Fits the figures of one device, kind of kernel after kind of kernel.
class DeviceFit
{
public:
    DeviceFit(DeviceModel &device, const ExecutionPlan &plan, const std::vector<RunKernel> &kernels,
        std::string source)
        : m_device(device)
        , m_plan(plan)
        , m_source(std::move(source))
    {
        m_costs.kernel = [this](const KernelQuery &query) { return kernelSeconds(m_device, query); };
        m_costs.copy = [this](Bytes bytes, std::int32_t) { return copySeconds(m_device, bytes); };
        m_costs.hostCopy = [this](Bytes bytes, std::int32_t) { return hostCopySeconds(m_device, bytes); };
        for (const RunKernel &kernel : kernels)
            if (predicted(kernel) > 0) // what is thought to take no time, no figure changes
                m_kernels.push_back(kernel);
    }

    const std::vector<RunKernel> &kernels() const { return m_kernels; }

    double predicted(const RunKernel &row) const
    {
        return static_cast<double>(
                   localDuration(m_plan, *row.program, *row.instruction, m_costs, row.spared).usual.count())
            * 1e-9;
    }

    /// What a few products that fit by chance don't show: that they ran on faster devices than these.
    Result<void> checkPeaks() const
    {
        std::vector<double> shares;
        for (const RunKernel &row : rowsOf(multiplies))
            if (const double peak = matrixFlopsOf(m_device, row.format); peak > 0)
                shares.push_back(row.flops / row.seconds / peak);
        std::sort(shares.begin(), shares.end());
        if (shares.empty() || shares[shares.size() / 2] <= 1)
            return {};
        char found[32];
        std::snprintf(found, sizeof found, "%.3g", shares[shares.size() / 2]);
        return Error{ErrorCode::InvalidInput,
            std::string("products ran at ") + found + " times the peak of " + m_device.name,
            "choose the cluster that it ran on", "--base"};
    }

    void memory()
    {
        const auto rows = rowsOf([](OperatorCategory category) {
            return !multiplies(category) && category != OperatorCategory::Attention;
        });
        // Where nothing moves memory, what products take at least says what a launch takes.
        search(rows.empty() ? m_kernels : rows,
            rows.empty() ? std::vector<Share>{} : std::vector<Share>{{&m_device.memoryEfficiency}}, true,
            "kernels that move memory");
    }

    void products()
    {
        for (const DataType format : formatsOf(multiplies)) {
            std::vector<Share> figures{{&efficiency(KernelRate::Product, format)}};
            if (m_device.multiprocessors.value > 0)
                figures.push_back({&efficiency(KernelRate::Tile, format)});
            search(rowsOf(multiplies, format), figures, false, "products");
        }
    }

    void attention()
    {
        const auto isAttention = [](OperatorCategory category) {
            return category == OperatorCategory::Attention;
        };
        for (const DataType format : formatsOf(isAttention))
            for (const bool backward : {false, true}) {
                auto rows = rowsOf(isAttention, format);
                std::erase_if(rows,
                    [&](const RunKernel &row) { return (row.direction == Direction::Backward) != backward; });
                if (rows.empty())
                    continue;
                Sourced &general =
                    backward ? m_device.attentionBackwardEfficiency : m_device.attentionEfficiency;
                const Sourced before = general; // without a figure of its own it runs as products do
                const double distance = distanceOf(rows);
                if (general.value <= 0)
                    general = m_device.productEfficiency;
                search(rows,
                    {{&efficiency(backward ? KernelRate::AttentionBackward : KernelRate::Attention, format)}},
                    false, backward ? "attention, backward" : "attention");
                if (before.value <= 0 && distanceOf(rows) >= distance)
                    general = before;
            }
    }

private:
    struct Share {
        Sourced *figure = nullptr;
    };

    template<typename Test> std::vector<RunKernel> rowsOf(const Test &test) const
    {
        std::vector<RunKernel> rows;
        for (const RunKernel &kernel : m_kernels)
            if (test(kernel.category))
                rows.push_back(kernel);
        return rows;
    }

    template<typename Test> std::vector<RunKernel> rowsOf(const Test &test, DataType format) const
    {
        auto rows = rowsOf(test);
        std::erase_if(rows, [format](const RunKernel &row) { return row.format != format; });
        return rows;
    }

    template<typename Test> std::set<DataType> formatsOf(const Test &test) const
    {
        std::set<DataType> formats;
        for (const RunKernel &kernel : rowsOf(test))
            formats.insert(kernel.format);
        return formats;
    }

    /// The figure that counts for a format, to be changed.
    Sourced &efficiency(KernelRate rate, DataType format)
    {
        return const_cast<Sourced &>(efficiencyOf(m_device, rate, format)); // a part of `m_device`
    }

    double distanceOf(const std::vector<RunKernel> &rows) const
    {
        return fitDistance(rows, [this](const RunKernel &row) { return std::max(predicted(row), 1e-9); });
    }

    void search(
        const std::vector<RunKernel> &rows, const std::vector<Share> &shares, bool launches, const char *what)
    {
        if (rows.empty())
            return;
        std::vector<FreeFigure> figures;
        for (const Share &share : shares)
            figures.push_back({&share.figure->value, kLeastShare, 1});
        if (launches) {
            m_device.launchLatency.value = std::max(m_device.launchLatency.value, 1e-7);
            figures.push_back({&m_device.launchLatency.value, 1e-8, 1e-1});
        }
        fitFigures(figures, [&] { return distanceOf(rows); });
        std::vector<Sourced *> found;
        for (const Share &share : shares)
            found.push_back(share.figure);
        if (launches)
            found.push_back(&m_device.launchLatency);
        for (Sourced *figure : found)
            figure->value = roundedFigure(figure->value);
        const FitError error =
            fitErrorOf(what, rows, [this](const RunKernel &row) { return predicted(row); });
        for (Sourced *figure : found)
            figure->source = "measured, " + m_source + ": " + toString(error);
    }

    DeviceModel &m_device;
    const ExecutionPlan &m_plan;
    std::string m_source;
    CostModel m_costs{};
    std::vector<RunKernel> m_kernels{};
};

/// Of each kind of kernel, then of each kind of communication.
std::vector<FitError> errorsOf(
    const DeviceFit &fit, const Cluster &cluster, const std::vector<CollectiveTiming> &collectives)
{
    std::map<OperatorCategory, std::vector<RunKernel>> kinds;
    for (const RunKernel &row : fit.kernels())
        kinds[row.category].push_back(row);
    std::vector<FitError> errors;
    for (const auto &[category, rows] : kinds)
        errors.push_back(
            fitErrorOf(nameOf(category), rows, [&](const RunKernel &row) { return fit.predicted(row); }));
    KernelTimings timings;
    timings.collectives = collectives;
    for (FitError &error : errorsBeside(cluster, {}, timings))
        errors.push_back(std::move(error));
    return errors;
}

double stepSeconds(const ExecutionPlan &plan, const Cluster &cluster, const std::stop_token &stop)
{
    const auto timeline = simulate(plan, cluster, {.spans = false}, stop);
    return timeline ? static_cast<double>(timeline->step.count()) * 1e-9 : 0;
}

} // namespace

Result<SpanFit> fittedToSpans(Cluster base, const ExecutionPlan &plan, const Timeline &measured,
    const std::string &source, bool runsAlone, const std::stop_token &stop)
{
    if (!base.otherClasses.empty())
        return Error{ErrorCode::NotSupported, "the cluster has devices of several kinds",
            "measure a plan on devices of one kind", "--base"};
    const RunTimes times = runTimesOf(plan, measured, base);
    if (times.kernels.empty() && times.collectives.empty())
        return Error{ErrorCode::InvalidInput, "no span of the run is an instruction of the plan",
            "give the spans of a run of this plan", source};
    SpanFit made;
    made.predictedBefore = stepSeconds(plan, base, stop);
    made.measured = static_cast<double>(measured.step.count()) * 1e-9;
    if (runsAlone)
        base.device.unfused = {1, "measured, " + source + ": operators ran one by one"};
    {
        DeviceModel device = base.device;
        const DeviceFit before(device, plan, times.kernels, source);
        TRY_VOID(before.checkPeaks());
        made.before = errorsOf(before, base, times.collectives);
    }
    DeviceFit fit(base.device, plan, times.kernels, source);
    for (const auto step : {&DeviceFit::memory, &DeviceFit::products, &DeviceFit::attention}) {
        if (stop.stop_requested())
            return cancelled();
        (fit.*step)();
    }
    KernelTimings timings;
    timings.collectives = times.collectives;
    timings.collectiveSource = source;
    TRY(FittedCluster links, fittedCluster(base, timings));
    base.links = links.cluster.links;
    base.name = splitFramework(base.name).first;
    base.name = base.name.substr(0, base.name.find(':')) + "-measured";
    made.errors = errorsOf(fit, base, times.collectives);
    made.predicted = stepSeconds(plan, base, stop);
    if (stop.stop_requested())
        return cancelled();
    made.cluster = std::move(base);
    return made;
}

} // namespace planloom
