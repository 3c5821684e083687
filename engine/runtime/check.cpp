#include "engine/runtime/check.h"

#include "engine/kernels/narrow_float.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace planloom {

namespace {

/// Element `i` as a double.
double elementAt(const TensorData &data, std::size_t i)
{
    const std::byte *at = data.bytes.data() + i * static_cast<std::size_t>(sizeOf(data.type.dataType));
    const auto as = [at](auto value) {
        std::memcpy(&value, at, sizeof(value));
        return static_cast<double>(value);
    };
    switch (data.type.dataType) {
    case DataType::Float32:
        return as(float{});
    case DataType::Float64:
        return as(double{});
    case DataType::Int64:
        return as(std::int64_t{});
    case DataType::Int32:
        return as(std::int32_t{});
    case DataType::Int16:
        return as(std::int16_t{});
    case DataType::Float16:
    case DataType::BFloat16: {
        float wide = 0;
        widen(at, data.type.dataType, &wide, 1);
        return wide;
    }
    case DataType::Int8:
        return as(std::int8_t{});
    case DataType::UInt8:
    case DataType::Bool:
    case DataType::Float8E4M3: // of no pTensor
    case DataType::Float8E5M2:
        return as(std::uint8_t{});
    case DataType::TensorFloat32:
        return as(float{});
    }
    return 0;
}

/// By what a number differs from another that is rounded to the neighbour in `type`, see `tolerancesOf`; 0
/// for Float32.
double roundingOf(DataType type)
{
    switch (type) {
    case DataType::Float16:
    case DataType::TensorFloat32:
        return 0x1p-12;
    case DataType::BFloat16:
        return 0x1p-9;
    case DataType::Float8E4M3:
        return 0x1p-6;
    default:
        return 0;
    }
}

std::size_t countOf(const TensorData &data)
{
    return data.bytes.size() / static_cast<std::size_t>(sizeOf(data.type.dataType));
}

double largest(const TensorData &data)
{
    double most = 0;
    for (std::size_t i = 0; i < countOf(data); ++i) {
        const double value = std::abs(elementAt(data, i));
        if (!(value <= most)) // NaN wins
            most = value;
    }
    return most;
}

double largestOf(const NamedArrays &arrays)
{
    double most = 0;
    for (const auto &[name, array] : arrays)
        if (isFloating(array.type.dataType))
            if (const double value = largest(array); std::isfinite(value))
                most = std::max(most, value);
    return most;
}

/// max|a - b| / scale, leaving out elements for which `skip` is true. Infinite where one is NaN and the other
/// is not.
template<typename Skip>
double difference(const TensorData &got, const TensorData &reference, double scale, Skip skip)
{
    double most = 0;
    for (std::size_t i = 0; i < countOf(reference); ++i) {
        const double a = elementAt(got, i);
        const double b = elementAt(reference, i);
        if (a == b || (std::isnan(a) && std::isnan(b)) || skip(i))
            continue;
        const double distance = std::abs(a - b);
        if (!std::isfinite(distance))
            return std::numeric_limits<double>::infinity();
        most = std::max(most, distance);
    }
    return most == 0 ? 0 : most / std::max(scale, std::numeric_limits<double>::min());
}

void note(CheckReport &report, double &worstShare, const std::string &name, double error, double tolerance)
{
    const double share = error / tolerance;
    report.ok = report.ok && share <= 1;
    if (share <= worstShare && !report.worstTensor.empty())
        return;
    worstShare = share;
    report.worstTensor = name;
    report.worstError = error;
}

Error mismatch(const std::string &name, const std::string &what)
{
    return {ErrorCode::InvalidInput, "the two runs cannot be compared: " + what, "run the same model twice",
        name};
}

/// Notes the distance of a group under the name of the tensor that has most of it.
Result<void> noteNorm(CheckReport &report, double &worstShare, const NamedArrays &got,
    const NamedArrays &expected, const std::string &group, double tolerance)
{
    double distance = 0;
    double size = 0;
    double most = -1;
    const std::string *name = nullptr;
    for (const auto &[own, reference] : expected) {
        const auto found = got.find(own);
        if (found == got.end() || found->second.type != reference.type
            || found->second.bytes.size() != reference.bytes.size())
            return mismatch(group + own, "one of them lacks this tensor, or has it in another shape");
        double here = 0;
        for (std::size_t i = 0; i < countOf(reference); ++i) {
            const double a = elementAt(found->second, i);
            const double b = elementAt(reference, i);
            if (a == b || (std::isnan(a) && std::isnan(b)))
                here += 0;
            else
                here += std::isfinite(a - b) ? (a - b) * (a - b) : std::numeric_limits<double>::infinity();
            if (std::isfinite(b))
                size += b * b;
        }
        distance += here;
        if (here > most) {
            most = here;
            name = &own;
        }
    }
    if (name)
        note(report, worstShare, group + *name,
            distance == 0 ? 0 : std::sqrt(distance / std::max(size, std::numeric_limits<double>::min())),
            tolerance);
    return {};
}

} // namespace

CheckTolerances tolerancesOf(const ExecutionPlan &plan)
{
    double rounding = 0;
    for (const Precision &precision : plan.precisions)
        for (const DataType type : {precision.compute, precision.storage, precision.gradient,
                 precision.reduction, precision.optimizer})
            rounding = std::max(rounding, roundingOf(type));
    for (const Tensor &tensor : plan.graph->tensors) // models of 16 bits round by themselves
        rounding = std::max(rounding, roundingOf(tensor.type.dataType));
    if (rounding == 0)
        return {};
    return {.byNorm = true,
        .loss = 4 * rounding,
        .laterLosses = std::sqrt(rounding),
        .outputs = std::sqrt(rounding),
        .gradients = 2 * std::sqrt(rounding),
        .weights = std::sqrt(rounding)};
}

Result<CheckReport> compareOutcomes(
    const RunOutcome &got, const RunOutcome &reference, const CheckTolerances &tolerances)
{
    CheckReport report;
    double worstShare = 0;
    if (got.losses.size() != reference.losses.size())
        return mismatch("loss", "they took different numbers of steps");
    for (std::size_t i = 0; i < got.losses.size(); ++i) {
        const double a = got.losses[i];
        const double b = reference.losses[i];
        if (std::isnan(a) && std::isnan(b))
            continue; // a model without a loss
        double error = std::abs(a - b) / std::max(std::abs(b), std::numeric_limits<double>::min());
        if (std::isnan(error))
            error = std::numeric_limits<double>::infinity();
        note(report, worstShare, "loss", a == b ? 0 : error,
            i == 0 ? tolerances.loss : tolerances.laterLosses);
    }
    if (tolerances.byNorm) {
        TRY_VOID(noteNorm(report, worstShare, got.outputs, reference.outputs, "out/", tolerances.outputs));
        TRY_VOID(
            noteNorm(report, worstShare, got.gradients, reference.gradients, "grad/", tolerances.gradients));
        TRY_VOID(noteNorm(report, worstShare, got.weights, reference.weights, "weight/", tolerances.weights));
        return report;
    }
    const double gradientScale = largestOf(reference.gradients);
    const auto compare = [&](const NamedArrays &a, const NamedArrays &b, const std::string &group,
                             double tolerance) -> Result<void> {
        const double scale = 1e-3 * largestOf(b);
        for (const auto &[name, expected] : b) {
            const auto found = a.find(name);
            if (found == a.end() || found->second.type != expected.type
                || found->second.bytes.size() != expected.bytes.size())
                return mismatch(group + name, "one of them lacks this tensor, or has it in another shape");
            const TensorData *gradient = nullptr;
            if (group == "weight/")
                if (const auto g = reference.gradients.find(name);
                    g != reference.gradients.end() && g->second.bytes.size() == expected.bytes.size())
                    gradient = &g->second;
            const double noise = gradient == nullptr
                ? 0
                : 10 * tolerances.gradients * std::max(largest(*gradient), 1e-3 * gradientScale);
            const double error =
                difference(found->second, expected, std::max(largest(expected), scale), [&](std::size_t i) {
                    return gradient != nullptr && std::abs(elementAt(*gradient, i)) <= noise;
                });
            note(report, worstShare, group + name, error, tolerance);
        }
        return {};
    };
    TRY_VOID(compare(got.outputs, reference.outputs, "out/", tolerances.outputs));
    TRY_VOID(compare(got.gradients, reference.gradients, "grad/", tolerances.gradients));
    TRY_VOID(compare(got.weights, reference.weights, "weight/", tolerances.weights));
    return report;
}

std::string firstDifference(
    const Graph &graph, const RunOutcome &got, const RunOutcome &reference, double tolerance)
{
    const double scale = 1e-3 * largestOf(reference.tensors);
    for (const Operator &op : graph.operators) {
        for (const TensorId output : op.outputs) {
            if (!output.valid())
                continue;
            const auto a = got.tensors.find(graph.at(output).name);
            const auto b = reference.tensors.find(graph.at(output).name);
            if (a == got.tensors.end() || b == reference.tensors.end()
                || a->second.bytes.size() != b->second.bytes.size())
                continue;
            const double error = difference(
                a->second, b->second, std::max(largest(b->second), scale), [](std::size_t) { return false; });
            if (error > tolerance)
                return op.name;
        }
    }
    return {};
}

Result<CheckReport> checkAgainst(const ExecutionPlan &reference, const ExecutionPlan &plan,
    const RunOutcome &got, const RunOptions &options, const CheckTolerances &tolerances, std::stop_token stop)
{
    RunOptions again{options};
    again.keepGradients = true;
    again.training.checkpoints.clear(); // those are the run's own
    again.training.every = 0;
    CheckReport report;
    if (options.steps > 1) {
        again.keepGradients = false;
        TRY(const auto losses, runOnCpu(reference, again, {}, stop));
        RunOutcome gotLosses;
        gotLosses.losses = got.losses;
        RunOutcome expectedLosses;
        expectedLosses.losses = losses.losses;
        TRY(report, compareOutcomes(gotLosses, expectedLosses, tolerances));
        again.keepGradients = true;
        again.steps = 1;
        TRY(const auto first, runOnCpu(plan, again, {}, stop));
        TRY(const auto expected, runOnCpu(reference, again, {}, stop));
        TRY(const auto tensors, compareOutcomes(first, expected, tolerances));
        if (report.ok)
            report = tensors;
    } else {
        TRY(const auto expected, runOnCpu(reference, again, {}, stop));
        TRY(report, compareOutcomes(got, expected, tolerances));
    }
    if (report.ok)
        return report;
    again.keepGradients = false;
    again.keepAll = true;
    again.steps = 1;
    TRY(const auto tracedReference, runOnCpu(reference, again, {}, stop));
    TRY(const auto traced, runOnCpu(plan, again, {}, stop));
    report.firstDifference = firstDifference(*plan.graph, traced, tracedReference, tolerances.outputs);
    return report;
}

} // namespace planloom
