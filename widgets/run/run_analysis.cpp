#include "widgets/run/run_analysis.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// How much slower than the one in the middle a straggler is.
constexpr double kStraggles = 1.5;
/// Kernels' time below which nothing is said: clocks are too coarse.
constexpr double kLeastSeconds = 2e-3;

const Instruction &instructionOf(const ExecutionPlan &plan, const SpanColumns &spans, std::size_t row)
{
    return plan.devices[static_cast<std::size_t>(spans.device[row])]
        .segments[static_cast<std::size_t>(spans.segment[row])]
        .instructions[static_cast<std::size_t>(spans.instruction[row])];
}

} // namespace

std::string stragglerOf(const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured)
{
    // Predicted time of every kernel, to hold those that have been measured against.
    std::vector<std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::int64_t, std::int64_t>>> known(
        plan.devices.size());
    for (std::size_t row = 0; row < predicted.spans.size(); ++row) {
        if (instructionOf(plan, predicted.spans, row).kind != InstructionKind::Kernel)
            continue;
        auto &[sum, count] = known[static_cast<std::size_t>(predicted.spans.device[row])]
                                  [{predicted.spans.segment[row], predicted.spans.instruction[row]}];
        sum += predicted.spans.duration[row];
        ++count;
    }
    std::vector<double> expected(plan.devices.size(), 0);
    std::vector<double> taken(plan.devices.size(), 0);
    for (std::size_t row = 0; row < measured.spans.size(); ++row) {
        const auto device = static_cast<std::size_t>(measured.spans.device[row]);
        const auto found = known[device].find({measured.spans.segment[row], measured.spans.instruction[row]});
        if (found == known[device].end())
            continue;
        expected[device] +=
            static_cast<double>(found->second.first) * 1e-9 / static_cast<double>(found->second.second);
        taken[device] += static_cast<double>(measured.spans.duration[row]) * 1e-9;
    }
    std::vector<std::pair<double, std::size_t>> ratios;
    for (std::size_t d = 0; d < expected.size(); ++d) {
        if (expected[d] > 0 && taken[d] > kLeastSeconds)
            ratios.emplace_back(taken[d] / expected[d], d);
    }
    if (ratios.size() < 2)
        return {};
    std::sort(ratios.begin(), ratios.end());
    const double middle = ratios[(ratios.size() - 1) / 2].first;
    const auto [worst, device] = ratios.back();
    if (!(middle > 0) || worst < kStraggles * middle)
        return {};
    char text[160];
    std::snprintf(text, sizeof text,
        "device %zu holds the others up: its operators take %.1f times as long as predicted, those of the "
        "device in the middle "
        "%.1f times",
        device, worst, middle);
    return text;
}

StepSpans meanOf(const std::vector<const StepSpans *> &steps)
{
    StepSpans mean;
    std::size_t devices = 0;
    for (const StepSpans *step : steps)
        devices = std::max(devices, step->size());
    mean.resize(devices);
    struct Sum {
        std::int64_t start = 0;
        std::int64_t duration = 0;
        std::int64_t count = 0;
    };
    for (std::size_t d = 0; d < devices; ++d) {
        std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Sum>
            sums; // segment, instruction, micro-batch
        for (const StepSpans *step : steps) {
            if (d >= step->size())
                continue;
            for (const LiveSpan &span : (*step)[d]) {
                Sum &sum = sums[{span.segment, span.instruction, span.microBatch}];
                sum.start += span.start;
                sum.duration += span.duration;
                ++sum.count;
            }
        }
        for (const auto &[key, sum] : sums) {
            const auto &[segment, instruction, microBatch] = key;
            mean[d].push_back(
                {0, segment, instruction, microBatch, sum.start / sum.count, sum.duration / sum.count});
        }
        std::sort(mean[d].begin(), mean[d].end(),
            [](const LiveSpan &a, const LiveSpan &b) { return a.start < b.start; });
    }
    return mean;
}

std::size_t worstStep(const std::vector<double> &stepSeconds)
{
    if (stepSeconds.size() < 2)
        return 0;
    return static_cast<std::size_t>(
        std::max_element(stepSeconds.begin() + 1, stepSeconds.end()) - stepSeconds.begin());
}

} // namespace planloom
