#include "engine/runtime/training/check.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/memory_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

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

/// By what share of its size a number may be off that was rounded to `type`; 0 for Float32 and wider. That of
/// Float8E4M3, which operands of products are rounded to, is what is left of it in their sums.
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

/// Of what is finite.
double largest(const TensorData &data)
{
    double most = 0;
    for (std::size_t i = 0; i < countOf(data); ++i)
        if (const double value = std::abs(elementAt(data, i)); std::isfinite(value))
            most = std::max(most, value);
    return most;
}

double largestOf(const NamedArrays &arrays)
{
    double most = 0;
    for (const auto &[name, array] : arrays)
        if (isFloating(array.type.dataType))
            most = std::max(most, largest(array));
    return most;
}

/// |a - b|; infinite where one is NaN and the other is not.
double distanceOf(double a, double b)
{
    if (a == b || (std::isnan(a) && std::isnan(b)))
        return 0;
    const double distance = std::abs(a - b);
    return std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
}

/// max|a - b|, leaving out elements for which `skip` is true.
template<typename Skip> double difference(const TensorData &got, const TensorData &reference, Skip skip)
{
    double most = 0;
    for (std::size_t i = 0; i < countOf(reference); ++i)
        if (const double distance = distanceOf(elementAt(got, i), elementAt(reference, i));
            distance > most && !skip(i))
            most = distance;
    return most;
}

/// One comparison: how far apart, and how far that may be.
void note(CheckReport &report, const std::string &name, double distance, double scale, double allowed)
{
    const double unit = std::max(scale, std::numeric_limits<double>::min());
    // Where rounding makes infinity of a number (Float16), anything may come of it.
    const auto shareOf = [](double of, double most) { return of == 0 || std::isinf(most) ? 0 : of / most; };
    const double share = shareOf(distance, allowed);
    report.ok = report.ok && share <= 1;
    if (!report.worstTensor.empty() && share <= shareOf(report.worstError, report.allowed))
        return;
    report.worstTensor = name;
    report.worstError = distance / unit;
    report.allowed = allowed / unit;
}

Error mismatch(const std::string &name, const std::string &what)
{
    return {ErrorCode::InvalidInput, "the two runs cannot be compared: " + what, "run the same model twice",
        name};
}

/// The tensor of that name, of as many elements as `like`.
Result<const TensorData *> counterpart(
    const NamedArrays &arrays, const std::string &name, const TensorData &like, const char *group)
{
    const auto found = arrays.find(name);
    if (found == arrays.end() || found->second.type.shape != like.type.shape)
        return mismatch(group + name, "one of them lacks this tensor, or has it in another shape");
    return &found->second;
}

/// The groups of tensors that a run leaves, with the names that reports give them.
struct Group {
    const char *name;
    NamedArrays RunOutcome::*arrays;
    double CheckTolerances::*tolerance;
};
constexpr std::array kGroups{Group{"out/", &RunOutcome::outputs, &CheckTolerances::outputs},
    Group{"grad/", &RunOutcome::gradients, &CheckTolerances::gradients},
    Group{"weight/", &RunOutcome::weights, &CheckTolerances::weights}};

/// @param times  how many times as far as in `other` it moves what `movement` is of
void keepLargest(Movement &movement, const Movement &other, double times = 1)
{
    movement.losses.resize(std::max(movement.losses.size(), other.losses.size()));
    for (std::size_t i = 0; i < other.losses.size(); ++i)
        movement.losses[i] = std::max(movement.losses[i], times * other.losses[i]);
    for (const auto &[name, distance] : other.tensors)
        movement.tensors[name] = std::max(movement.tensors[name], times * distance);
}

/// The coarsest format that values of a plan are rounded to; 0 for Float32 and wider.
double coarsestRounding(const ExecutionPlan &plan)
{
    double rounding = 0;
    for (const Precision &precision : plan.precisions)
        for (const DataType type : {precision.compute, precision.storage, precision.gradient,
                 precision.reduction, precision.optimizer})
            rounding = std::max(rounding, roundingOf(type));
    for (const Tensor &tensor : plan.graph->tensors) // models of 16 bits round by themselves
        rounding = std::max(rounding, roundingOf(tensor.type.dataType));
    return rounding;
}

/// What rounding explains may be so many times what was seen of it: the largest of a few draws against
/// another draw.
constexpr double kTimesSeen = 16;
constexpr std::uint64_t kMostSamples = 4;
/// Samples differ from one another, but not by this: what is as far beyond the first ones is something else.
constexpr double kHopeless = 256;
/// In Float64: room for sums in another order behind a hundred normalisations, which multiply what comes in
/// by up to 1e6.
constexpr CheckTolerances kInDouble{1e-9, 1e-9, 1e-9, 1e-9, 1e-9};
/// A unit in the last place of a Float32, in those of a Float64: what sums in the plan's order differ by
/// there tells what they differ by in Float32, also where the unpartitioned model rounds nothing at all.
constexpr double kFloat32PerDouble = 0x1p29;
/// In Float32, below which nobody looks further where that takes long: less than a weight that missed an
/// update is off by.
constexpr CheckTolerances kInFloat32{
    .loss = 2e-6, .laterLosses = 2e-5, .outputs = 5e-6, .gradients = 2e-5, .weights = 2e-6};

/// A gradient whose weight changes the loss by less than this share of it when it doubles is as good as zero,
/// as that of equal logits is: what is computed of it is what rounding leaves of its summands.
constexpr double kNoGradient = 1e-6;

/// So many operations of a step are computed again in Float64 whatever Float32 says: about a second.
constexpr double kSoonComputed = 1e9;

double operationsOf(const Graph &graph)
{
    double operations = 0;
    for (const Operator &op : graph.operators)
        operations += workOf(graph, op).flops;
    return operations;
}

/// The runs that a judgement takes.
class Judge
{
public:
    Judge(const ExecutionPlan &reference, const ExecutionPlan &plan, const RunOptions &options,
        std::stop_token stop)
        : m_reference(reference)
        , m_plan(plan)
        , m_options(options)
        , m_stop(std::move(stop))
    {
        m_options.keepGradients = true;
        m_options.training.checkpoints.clear(); // those are the run's own
        m_options.training.every = 0;
    }

    Result<CheckReport> judge(const RunOutcome &got);

private:
    /// Compares, and looks at what rounding does for as long as that may explain what differs.
    Result<CheckReport> compare(const RunOutcome &got, const RunOutcome &expected,
        const CheckTolerances &tolerances, Movement movement) const
    {
        for (std::uint64_t sample = 1;; ++sample) {
            TRY(auto report, compareOutcomes(got, expected, tolerances, movement));
            if (report.ok || sample > kMostSamples
                || (sample > 2 && report.worstError > kHopeless * report.allowed))
                return report;
            RunOptions moved{m_options};
            moved.moved = sample;
            TRY(const auto again, runOnCpu(m_reference, moved, {}, m_stop));
            TRY(const auto seen, movementBetween(again, expected));
            keepLargest(movement, seen);
        }
    }

    Result<void> nameFirstDifference(CheckReport &report, double tolerance)
    {
        m_options.keepGradients = false;
        m_options.keepAll = true;
        m_options.steps = 1;
        TRY(const auto expected, runOnCpu(m_reference, m_options, {}, m_stop));
        TRY(const auto traced, runOnCpu(m_plan, m_options, {}, m_stop));
        report.firstDifference = firstDifference(*m_plan.graph, traced, expected, tolerance);
        return {};
    }

    const ExecutionPlan &m_reference;
    const ExecutionPlan &m_plan;
    RunOptions m_options;
    std::stop_token m_stop;
};

Result<CheckReport> Judge::judge(const RunOutcome &got)
{
    const CheckTolerances tolerances = coarsestRounding(m_plan) == 0 ? kInFloat32 : tolerancesOf(m_plan);
    TRY(const auto expected, runOnCpu(m_reference, m_options, {}, m_stop));
    TRY(CheckReport report, compareOutcomes(got, expected, tolerances));
    const bool isSoonComputed = operationsOf(*m_reference.graph) <= kSoonComputed;
    if (report.ok && (report.worstError == 0 || (coarsestRounding(m_plan) == 0 && !isSoonComputed)))
        return report;
    Movement movement;
    std::optional<double> worstInDouble;
    m_options.inDouble = true;
    auto exact = runOnCpu(m_reference, m_options, {}, m_stop);
    auto planned = exact ? runOnCpu(m_plan, m_options, {}, m_stop) : Result<RunOutcome>{exact.error()};
    if (planned) {
        TRY(CheckReport wide, compare(*planned, *exact, kInDouble, {}));
        worstInDouble = wide.worstError;
        if (!wide.ok) {
            wide.inDouble = worstInDouble;
            TRY_VOID(nameFirstDifference(wide, kInDouble.outputs));
            return wide;
        }
        TRY(movement, movementBetween(expected, *exact));
        TRY(const auto own, movementBetween(*planned, *exact));
        keepLargest(movement, own, kFloat32PerDouble);
        movement.shared = true;
    } else if (planned.error().code
        == ErrorCode::Cancelled) { // else a kernel of a library, say, has no Float64
        return std::move(planned).error();
    }
    m_options.inDouble = false;
    exact = planned = RunOutcome{}; // their memory is needed
    TRY(report, compare(got, expected, tolerances, std::move(movement)));
    report.inDouble = worstInDouble;
    if (!report.ok)
        TRY_VOID(nameFirstDifference(report, tolerances.outputs));
    return report;
}

} // namespace

CheckTolerances tolerancesOf(const ExecutionPlan &plan)
{
    const double rounding = coarsestRounding(plan);
    if (rounding == 0)
        return {};
    return {.loss = 8 * rounding,
        .laterLosses = 32 * rounding,
        .outputs = 16 * rounding,
        .gradients = 32 * rounding,
        .weights = 32 * rounding}; // as far as the gradients that they follow
}

Result<Movement> movementBetween(const RunOutcome &a, const RunOutcome &b)
{
    Movement movement;
    if (a.losses.size() != b.losses.size())
        return mismatch("loss", "they took different numbers of steps");
    for (std::size_t i = 0; i < a.losses.size(); ++i)
        movement.losses.push_back(distanceOf(a.losses[i], b.losses[i]));
    for (const Group &group : kGroups) {
        for (const auto &[name, data] : b.*group.arrays) {
            TRY(const auto *other, counterpart(a.*group.arrays, name, data, group.name));
            movement.tensors[group.name + name] = difference(*other, data, [](std::size_t) { return false; });
        }
    }
    return movement;
}

Result<CheckReport> compareOutcomes(const RunOutcome &got, const RunOutcome &reference,
    const CheckTolerances &tolerances, const Movement &movement)
{
    CheckReport report;
    const double times = movement.shared ? kHopeless : kTimesSeen;
    if (got.losses.size() != reference.losses.size())
        return mismatch("loss", "they took different numbers of steps");
    for (std::size_t i = 0; i < got.losses.size(); ++i) {
        const double scale = std::abs(reference.losses[i]);
        if (std::isnan(got.losses[i]) && std::isnan(reference.losses[i]))
            continue; // a model without a loss
        const double moved = i < movement.losses.size() ? times * movement.losses[i] : 0;
        note(report, "loss", distanceOf(got.losses[i], reference.losses[i]), scale,
            (i == 0 ? tolerances.loss : tolerances.laterLosses) * scale + moved);
    }
    const double gradientScale = largestOf(reference.gradients);
    const double loss = reference.losses.empty() ? 0 : std::abs(reference.losses.back());
    /// The smallest size of a gradient that is one.
    const auto leastGradientOf = [&](const std::string &name) {
        const auto weight = reference.weights.find(name);
        const double size = weight == reference.weights.end() ? 0 : largest(weight->second);
        return size > 0 && std::isfinite(loss) ? kNoGradient * loss / size : 0;
    };
    const auto seenOf = [&](const std::string &name) {
        const auto found = movement.tensors.find(name);
        return found == movement.tensors.end() ? 0 : found->second;
    };
    double gradientShare = 0;
    for (const Group &group : kGroups) {
        const double least = tolerances.least * largestOf(reference.*group.arrays);
        const bool isWeights = group.arrays == &RunOutcome::weights;
        const bool isGradients = group.arrays == &RunOutcome::gradients;
        const auto scaleOf = [&](const std::string &name, const TensorData &expected) {
            return std::max({largest(expected), least, isGradients ? leastGradientOf(name) : 0});
        };
        double share = 0; // of any tensor's size
        double step = 0; // of any weight: optimizers step as far in each, whatever its size
        for (const auto &[name, expected] : reference.*group.arrays) {
            const double seen = movement.shared ? seenOf(group.name + name) : 0;
            if (isWeights)
                step = std::max(step, seen);
            else if (const double scale = scaleOf(name, expected); scale > 0)
                share = std::max(share, seen / scale);
        }
        gradientShare = isGradients ? share : gradientShare;
        for (const auto &[name, expected] : reference.*group.arrays) {
            TRY(const auto *own, counterpart(got.*group.arrays, name, expected, group.name));
            const TensorData *gradient = nullptr;
            if (isWeights)
                if (const auto g = reference.gradients.find(name);
                    g != reference.gradients.end() && g->second.type.shape == expected.type.shape)
                    gradient = &g->second;
            double noise = 0;
            if (gradient != nullptr) {
                const double size =
                    std::max({largest(*gradient), 1e-3 * gradientScale, leastGradientOf(name)});
                noise = 10 * tolerances.gradients * size
                    + times * std::max(seenOf("grad/" + name), gradientShare * size);
            }
            const double distance = difference(*own, expected, [&](std::size_t i) {
                return gradient != nullptr && std::abs(elementAt(*gradient, i)) <= noise;
            });
            const double scale = scaleOf(name, expected);
            note(report, group.name + name, distance, scale,
                tolerances.*group.tolerance * scale
                    + times * std::max({seenOf(group.name + name), share * scale, step}));
        }
    }
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
            const double distance = difference(a->second, b->second, [](std::size_t) { return false; });
            if (distance > tolerance * std::max(largest(b->second), scale))
                return op.name;
        }
    }
    return {};
}

Result<void> requireMemoryOfCheck(
    const ExecutionPlan &reference, const ExecutionPlan &plan, const std::optional<Bytes> &free)
{
    const auto handedBack = [](const Graph &graph) {
        std::int64_t bytes = 0;
        const auto add = [&](TensorId id, std::int64_t times) {
            const TensorType &type = graph.at(id).type;
            bytes += times * elementCount(type.shape) * sizeOf(type.dataType);
        };
        for (const TensorId output : graph.outputs)
            add(output, 1);
        for (const Operator &op : graph.operators)
            if (op.direction == Direction::Optimizer && updatesWeight(op))
                add(op.inputs[0], 2); // its gradient, and itself
        return bytes;
    };
    constexpr std::int64_t kAlignment = 64;
    std::int64_t need = handedBack(*plan.graph) + handedBack(*reference.graph);
    for (std::size_t d = 0; d < reference.devices.size(); ++d) {
        TRY(const MemoryPlan memory, planMemory(reference, static_cast<std::int32_t>(d), kAlignment));
        need += memory.arenaBytes[0] + memory.arenaBytes[1];
    }
    if (!free || need <= free->count)
        return {};
    const auto gibibytes = [](std::int64_t bytes) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
        return std::string(text.data());
    };
    return Error{ErrorCode::ResourceLimit,
        "a check against the unpartitioned model needs " + gibibytes(need)
            + " for that model on one device and for the gradients and weights of both runs; this machine "
              "has "
            + gibibytes(free->count) + " of memory free",
        "run without --check, use a smaller model or batch, or check on a machine with more memory", {}};
}

Result<CheckReport> checkAgainst(const ExecutionPlan &reference, const ExecutionPlan &plan,
    const RunOutcome &got, const RunOptions &options, std::stop_token stop)
{
    return Judge(reference, plan, options, std::move(stop)).judge(got);
}

} // namespace planloom
