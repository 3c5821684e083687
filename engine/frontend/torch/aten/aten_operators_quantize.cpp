// Quantisation that is pretended during training: values are rounded to what a few levels can say, and
// gradients pass where a value lies between the outermost levels.
#include "engine/frontend/torch/aten/aten_formula.h"
#include "engine/frontend/writer/tensor_values.h"

#include <cmath>
#include <string>
#include <utility>

namespace planloom {

namespace {

using Made = AtenFormula::Made;

/// Levels of all elements, or of those along a dimension; in shapes that broadcast against x.
struct Levels {
    TensorId x{};
    TensorId scale{};
    TensorId zero{}; ///< A whole number, as floating as x.
    double least = 0;
    double most = 0;
};

/// A scale or zero point, which may be a number, as floating as x and in the shape that broadcasts against
/// it.
Made besideElements(AtenContext &context, const char *name, TensorId x)
{
    const DataType type = context.typeOf(x).dataType;
    TRY(TensorId values, context.operand(name, type));
    TRY(values, context.cast(values, type));
    Shape shape;
    if (context.given("axis") && elementCount(context.shapeOf(values)) != 1) {
        TRY(const std::int64_t axis, context.dimension("axis", context.rankOf(x), 0));
        shape.assign(context.shapeOf(x).size(), 1);
        shape[axisIndex(axis)] = elementCount(context.shapeOf(values));
    }
    return context.reshape(values, std::move(shape), name);
}

Result<Levels> levelsOf(AtenContext &context)
{
    Levels levels;
    TRY(levels.x, context.tensor("self"));
    TRY(levels.scale, besideElements(context, "scale", levels.x));
    TRY(levels.zero, besideElements(context, "zero_point", levels.x));
    TRY(levels.least, context.real("quant_min", -128));
    TRY(levels.most, context.real("quant_max", 127));
    return levels;
}

/// The number of the level nearest to x, outermost ones not yet counted.
Made nearestLevel(AtenFormula &f, const Levels &levels)
{
    const auto steps = f.mul(levels.x, f.div(1.0, levels.scale));
    return f.add(f.of(OperatorKind::Round, steps), levels.zero);
}

/// 0, with the derivative of x.
Made slopeOf(AtenFormula &f, TensorId x)
{
    return f.sub(x, f.detached(x));
}

/// x at its level, with x's own gradient within the levels.
struct Quantized {
    TensorId value{};
    TensorId inside{};
    TensorId clipped{}; ///< The number of the level.
};

Result<Quantized> atLevels(AtenFormula &f, const Levels &levels)
{
    Quantized made;
    TRY(const TensorId level, nearestLevel(f, levels));
    TRY(made.clipped, f.clip(level, levels.least, levels.most));
    TRY(made.inside, f.equal(level, made.clipped));
    TRY(const TensorId plain, f.detached(f.mul(f.sub(made.clipped, levels.zero), levels.scale)));
    TRY(made.value, f.add(plain, f.where(made.inside, slopeOf(f, levels.x), 0.0)));
    return made;
}

Result<void> fakeQuantize(AtenContext &context, AtenFormula &f)
{
    TRY(const Levels levels, levelsOf(context));
    TRY(const Quantized made, atLevels(f, levels));
    if (context.wants(1))
        TRY_VOID(f.finish(made.inside, 1));
    if (!context.given("fake_quant_enabled"))
        return f.finish(made.value);
    TRY(const TensorId enabled, context.tensor("fake_quant_enabled"));
    TRY(const TensorId asked, f.greater(f.reshape(enabled, {}), 0.0));
    return f.finish(f.where(asked, made.value, levels.x));
}

/// The zero point as PyTorch rounds it: of one for all elements, a half is added and the rest cut off.
Made wholeZero(AtenFormula &f, const Levels &levels, bool perChannel)
{
    if (perChannel)
        return f.clip(f.of(OperatorKind::Round, levels.zero), levels.least, levels.most);
    TRY(const TensorId shifted, f.clip(f.add(levels.zero, 0.5), levels.least, levels.most));
    return f.mul(
        f.of(OperatorKind::Sign, shifted), f.of(OperatorKind::Floor, f.of(OperatorKind::Abs, shifted)));
}

/// The same with levels that are learned: their gradients are those of LSQ+ (arXiv:2004.09576), times a
/// factor.
template<bool perChannel> Result<void> learnedQuantize(AtenContext &context, AtenFormula &f)
{
    TRY(const Levels learned, levelsOf(context));
    TRY(const double factor, context.real("grad_factor", 1));
    Levels levels = learned;
    TRY(levels.scale, f.detached(learned.scale));
    TRY(levels.zero, f.detached(wholeZero(f, learned, perChannel)));
    TRY(const Quantized made, atLevels(f, levels));
    const auto error = f.div(f.sub(made.value, levels.x), levels.scale);
    const auto ofScale = f.detached(f.where(made.inside, error, f.sub(made.clipped, levels.zero)));
    const auto ofZero = f.detached(f.where(made.inside, 0.0, f.of(OperatorKind::Neg, levels.scale)));
    const auto slopes =
        f.add(f.mul(slopeOf(f, learned.scale), ofScale), f.mul(slopeOf(f, learned.zero), ofZero));
    return f.finish(f.add(made.value, f.mul(slopes, factor)));
}

// --- levels by what was observed ---------------------------------------------------------------------------

/// Least and largest values, as moving averages; of all elements, or of each channel.
struct Range {
    TensorId least{};
    TensorId largest{};
};

/// What was observed before, moved by a share of the way to the extremes of x; these where nothing was.
Result<Range> observedRange(AtenContext &context, TensorId x, bool perRow, bool observes)
{
    AtenFormula f(context);
    TRY(const double share, context.real("averaging_const", 0.01));
    TRY(const std::int64_t channel, context.integer("ch_axis", 0));
    AtenFormula::Axes axes;
    for (std::int64_t d = 0; d < context.rankOf(x); ++d) {
        if (!perRow || d != channel)
            axes.push_back(d);
    }
    const auto moved = [&](const char *name, OperatorKind kind) -> Made {
        TRY(const TensorId before, context.tensor(name));
        if (!observes)
            return before;
        TRY(const TensorId now, f.reshape(f.reduce(kind, f.detached(x), axes), context.shapeOf(before)));
        const auto average = f.add(before, f.mul(f.sub(now, before), share));
        return f.where(f.of(OperatorKind::IsInf, before), now, average);
    };
    Range range;
    TRY(range.least, moved("running_min", OperatorKind::ReduceMin));
    TRY(range.largest, moved("running_max", OperatorKind::ReduceMax));
    return range;
}

/// Scale and zero point for which the levels cover a range and 0 is one of them; `symmetric` levels lie
/// around it where the range does.
Result<void> chooseLevels(AtenFormula &f, Range range, bool symmetric, Levels &levels)
{
    constexpr double kLeastScale = 6.1e-5; // PyTorch's
    constexpr double kScaleOfNothing = 0.1;
    const double count = levels.most - levels.least;
    TRY(TensorId least, f.clip(range.least, {}, 0.0));
    TRY(TensorId largest, f.clip(range.largest, 0.0));
    TRY(const TensorId around, f.both(f.greater(0.0, least), f.greater(largest, 0.0)));
    if (symmetric) {
        const double half = std::floor(count / 2);
        TRY(const TensorId step, f.make(OperatorKind::Max, {f.div(least, -half - 1), f.div(largest, half)}));
        TRY(least, f.where(around, f.mul(step, -half - 1), least));
        TRY(largest, f.where(around, f.mul(step, half), largest));
    }
    TRY(const TensorId width, f.div(f.sub(largest, least), count));
    TRY(const TensorId scale, f.where(f.greater(width, 0.0), width, kScaleOfNothing));
    TRY(TensorId zero, f.sub(levels.least, f.div(least, scale)));
    if (symmetric) {
        const DataType type = f.typeOf(zero).dataType;
        TRY(zero, f.where(around, f.number(type, (levels.least + levels.most) / 2), zero));
    }
    TRY(levels.zero, f.clip(f.of(OperatorKind::Round, zero), levels.least, levels.most));
    TRY(levels.scale, f.clip(scale, kLeastScale));
    return {};
}

/// True if a stored switch is on.
Result<bool> isOn(AtenContext &context, const char *name)
{
    TRY(const TensorId id, context.tensor(name));
    const auto values = context.graph().valuesOf(id);
    if (!values)
        return context.unsupported(std::string(name) + " is not known before a run",
            "export the model with its observers and quantisers switched on or off");
    const auto numbers = realsOf(*values);
    return !numbers.empty() && numbers.front() != 0;
}

/// Observes, chooses levels by what was observed, and quantises.
Result<void> observeAndQuantize(AtenContext &context, AtenFormula &f)
{
    Levels levels;
    TRY(levels.x, context.tensor("self"));
    TRY(levels.least, context.real("quant_min", -128));
    TRY(levels.most, context.real("quant_max", 127));
    TRY(const bool perRow, context.flag("per_row_fake_quant", false));
    TRY(const bool symmetric, context.flag("symmetric_quant", false));
    TRY(const bool observes, isOn(context, "observer_on"));
    TRY(const bool quantizes, isOn(context, "fake_quant_on"));
    TRY(const Range range, observedRange(context, levels.x, perRow, observes));
    if (observes)
        context.graph().note("what quantisers observed is not kept from step to step: each begins with the "
                             "file's, PyTorch's with what the step before left");
    TRY_VOID(chooseLevels(f, range, symmetric, levels));
    if (context.wants(2)) {
        for (const auto &[slot, value] :
            {std::pair<std::size_t, TensorId>{2, range.least}, {3, range.largest}, {4, levels.scale}})
            TRY_VOID(f.finish(value, slot));
        TRY(const TensorId stored, context.tensor("zero_point"));
        TRY_VOID(f.finish(f.cast(levels.zero, context.typeOf(stored).dataType), 5));
    }
    if (!quantizes)
        return f.finish(levels.x);
    TRY(const std::int64_t channel, context.integer("ch_axis", 0));
    Shape shape(perRow ? context.shapeOf(levels.x).size() : 0, 1);
    if (perRow)
        shape[axisIndex(channel)] = elementCount(context.shapeOf(levels.scale));
    TRY(levels.scale, f.reshape(levels.scale, shape));
    TRY(levels.zero, f.reshape(levels.zero, shape));
    TRY(const Quantized made, atLevels(f, levels));
    if (context.wants(1))
        TRY_VOID(f.finish(made.inside, 1));
    return f.finish(made.value);
}

} // namespace

const AtenHandlers &atenQuantizeHandlers()
{
    static const AtenHandlers kHandlers = {{"fake_quantize_per_tensor_affine", formula<fakeQuantize>},
        {"fake_quantize_per_tensor_affine_cachemask", formula<fakeQuantize>},
        {"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", formula<fakeQuantize>},
        {"fake_quantize_per_channel_affine", formula<fakeQuantize>},
        {"fake_quantize_per_channel_affine_cachemask", formula<fakeQuantize>},
        {"fused_moving_avg_obs_fake_quant", formula<observeAndQuantize>},
        {"_fused_moving_avg_obs_fq_helper", formula<observeAndQuantize>},
        {"_fused_moving_avg_obs_fq_helper_functional", formula<observeAndQuantize>},
        {"_fake_quantize_learnable_per_tensor_affine", formula<learnedQuantize<false>>},
        {"_fake_quantize_learnable_per_channel_affine", formula<learnedQuantize<true>>}};
    return kHandlers;
}

} // namespace planloom
