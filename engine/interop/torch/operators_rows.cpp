// Norms, softmaxes, reductions, losses and attention.

#include "engine/graph/operators/attention.h"
#include "engine/graph/operators/class_axis.h"
#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/kernels/attention/attention_plan.h"
#include "engine/kernels/reductions/loss_plans.h"
#include "engine/kernels/reductions/row_plans.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace row_texts {

using enum OperatorKind;

std::string named(const char *name, const std::string &value)
{
    return std::string(name) + "=" + value;
}

/// Arguments behind one another, without those that are None.
std::vector<std::string> given(std::vector<std::string> arguments)
{
    while (!arguments.empty() && (arguments.back() == "None" || arguments.back().ends_with("=None")))
        arguments.pop_back();
    return arguments;
}

// --- norms

Result<TorchText> layerNorm(const OperatorSlots &slots)
{
    const Shape &x = slots.isBackward() ? slots.bufferY().shape : slots.bufferX(0).shape;
    const auto axis =
        static_cast<std::size_t>(slots.attributes().integer("axis", static_cast<std::int64_t>(x.size()) - 1));
    const Shape normalized(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
    const std::string epsilon = pythonNumber(slots.attributes().real("epsilon", 1e-5));
    const std::string kind = slots.kind() == RmsNorm ? "rms_norm" : "layer_norm";
    for (std::size_t i = 1; i < slots.forwardInputs(); ++i)
        if (slots.bufferX(i).data != nullptr && slots.bufferX(i).shape != normalized)
            return noText(slots, "its scale or bias has another shape than what it normalises");
    if (slots.isBackward()) {
        TorchText made;
        made.all = callText("ops." + kind + "_backward",
            {slots.dy(), slots.x(0), slots.x(1), pythonTuple(normalized), epsilon,
                named("mask", slots.mask())});
        return made;
    }
    if (kind == "rms_norm")
        return oneText(callText("F.rms_norm", {slots.x(0), pythonTuple(normalized), slots.x(1), epsilon}));
    return oneText(
        callText("F.layer_norm", {slots.x(0), pythonTuple(normalized), slots.x(1), slots.x(2), epsilon}));
}

Result<TorchText> instanceNorm(const OperatorSlots &slots)
{
    const std::string function = "F.instance_norm(a, weight=b, bias=c, eps="
        + pythonNumber(slots.attributes().real("epsilon", 1e-5)) + ")";
    if (!slots.isBackward())
        return oneText("F.instance_norm(" + slots.x(0) + ", weight=" + slots.x(1) + ", bias=" + slots.x(2)
            + ", eps=" + pythonNumber(slots.attributes().real("epsilon", 1e-5)) + ")");
    TorchText made;
    made.all = callText("ops.instance_norm_backward",
        {slots.dy(), slots.x(0), slots.x(1), pythonNumber(slots.attributes().real("epsilon", 1e-5)),
            named("mask", slots.mask())});
    return made;
}

Result<TorchText> statistic(const OperatorSlots &slots)
{
    TRY(const auto plan, planStatistic(slots.call()));
    const std::string count = pythonNumber(plan->count);
    const std::string groups = std::to_string(plan->view.groups);
    const bool variance = slots.kind() == BatchVariance;
    const std::string name = variance ? "ops.batch_variance" : "ops.batch_mean";
    if (!slots.isBackward())
        return oneText(variance ? callText(name, {slots.x(0), slots.x(1), count, groups})
                                : callText(name, {slots.x(0), count, groups}));
    if (!variance)
        return oneText(
            callText(name + "_backward", {slots.dy(), pythonTuple(plan->dx->shape), count, groups}));
    TorchText made;
    made.all = callText(
        name + "_backward", {slots.dy(), slots.x(0), slots.x(1), count, groups, named("mask", slots.mask())});
    return made;
}

Result<TorchText> batchNormalize(const OperatorSlots &slots)
{
    TRY(const auto plan, planNormalize(slots.call()));
    const std::string epsilon = pythonNumber(plan->epsilon);
    const std::string groups = std::to_string(plan->view.groups);
    std::vector<std::string> arguments;
    if (slots.isBackward())
        arguments.push_back(slots.dy());
    for (std::size_t i = 0; i < (slots.isBackward() ? 4U : 5U); ++i)
        arguments.push_back(slots.x(i));
    arguments.push_back(epsilon);
    arguments.push_back(groups);
    if (!slots.isBackward())
        return oneText(callText("ops.batch_normalize", arguments));
    TorchText made;
    arguments.push_back(named("mask", slots.mask()));
    made.all = callText("ops.batch_normalize_backward", arguments);
    return made;
}

Result<TorchText> responseNorm(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    const std::int64_t size = a.integer("size", 1);
    const std::string more = ", " + std::to_string(size) + ", " + pythonNumber(a.real("alpha", 1e-4)) + ", "
        + pythonNumber(a.real("beta", 0.75)) + ", " + pythonNumber(a.real("bias", 1)) + ")";
    if (slots.isBackward())
        return derivativeText(slots, "F.local_response_norm(a" + more, {0});
    return oneText("F.local_response_norm(" + slots.x() + more);
}

Result<TorchText> lpNormalize(const OperatorSlots &slots)
{
    const std::string more = ", p=" + std::to_string(slots.attributes().integer("p", 2))
        + ", dim=" + std::to_string(slots.attributes().integer("axis", -1)) + ")";
    if (slots.isBackward())
        return derivativeText(slots, "F.normalize(a" + more, {0});
    return oneText("F.normalize(" + slots.x() + more);
}

Result<TorchText> softmax(const OperatorSlots &slots)
{
    const std::string axis = std::to_string(slots.attributes().integer("axis"));
    const bool logarithm = slots.kind() == LogSoftmax;
    if (!slots.isBackward())
        return oneText(callText(logarithm ? "torch.log_softmax" : "torch.softmax", {slots.x(), axis}));
    return oneText(callText(
        logarithm ? "torch.ops.aten._log_softmax_backward_data" : "torch.ops.aten._softmax_backward_data",
        {slots.dy(), slots.y(), axis, operandText(slots.y()) + ".dtype"}));
}

// --- reductions

Result<TorchText> reduction(const OperatorSlots &slots)
{
    TRY(const auto plan, planReduce(slots.call()));
    if (!plan)
        return noText(slots, "it makes nothing");
    const Attributes &a = slots.attributes();
    const Shape &x = plan->dx != nullptr ? plan->dx->shape : plan->x->shape;
    std::vector<std::int64_t> axes = a.integers("axes");
    if (!a.has("axes"))
        for (std::size_t d = 0; d < x.size(); ++d)
            axes.push_back(static_cast<std::int64_t>(d));
    const bool keep = a.integer("keepdims", 1) != 0;
    const std::string how = pythonTuple(axes) + (keep ? ", keepdim=True" : "");
    if (axes.empty())
        return noText(slots, "it reduces over no dimension");
    const OperatorKind kind = slots.kind();
    const bool mean = kind == ReduceMean;
    if (kind == ReduceSum || mean) {
        const std::string divided = mean ? " / " + pythonNumber(plan->divisor) : "";
        if (!slots.isBackward()) {
            const std::string summed = "torch.sum(" + slots.x() + ", " + how;
            return oneText(summed
                + (isFloating(slots.bufferY().dataType)
                        ? ")"
                        : ", dtype=" + pythonType(slots.bufferY().dataType) + ")")
                + divided);
        }
        const std::string from = mean ? "(" + slots.dy() + divided + ")" : slots.dy();
        return oneText(callText("ops.spread",
                           {from, pythonTuple(x), pythonTuple(axes), named("keepdim", pythonFlag(keep))}),
            mean ? -1 : 0);
    }
    const auto form = [&](const std::string &of) -> std::string {
        switch (kind) {
        case ReduceMax:
            return "torch.amax(" + of + ", " + how + ")";
        case ReduceMin:
            return "torch.amin(" + of + ", " + how + ")";
        case ReduceL1:
            return "torch.sum(torch.abs(" + of + "), " + how + ")";
        case ReduceL2:
            return "torch.sqrt(torch.sum(torch.square(" + of + "), " + how + "))";
        case ReduceSumSquare:
            return "torch.sum(torch.square(" + of + "), " + how + ")";
        case ReduceLogSum:
            return "torch.log(torch.sum(" + of + ", " + how + "))";
        case ReduceLogSumExp:
            return "torch.logsumexp(" + of + ", " + how + ")";
        default:
            return callText("ops.product", {of, pythonTuple(axes), named("keepdim", pythonFlag(keep))});
        }
    };
    if (!slots.isBackward())
        return oneText(form(slots.x()));
    const std::string spread =
        ", " + pythonTuple(x) + ", " + pythonTuple(axes) + ", keepdim=" + pythonFlag(keep) + ")";
    const std::string dy = "ops.spread(" + slots.dy() + spread;
    const std::string y = "ops.spread(" + slots.y() + spread;
    switch (kind) {
    case ReduceMax:
    case ReduceMin:
        return oneText(callText("ops.extreme_backward",
            {slots.dy(), slots.x(), slots.y(), pythonTuple(axes), named("keepdim", pythonFlag(keep))}));
    case ReduceLogSum:
        return oneText(dy + " * torch.exp(-" + y + ")");
    case ReduceLogSumExp:
        return oneText(dy + " * torch.exp(" + slots.x() + " - " + y + ")");
    default:
        return derivativeText(slots, form("a"), {0});
    }
}

Result<TorchText> argument(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    if (a.integer("select_last_index") != 0)
        return noText(slots, "it takes the last of equal elements");
    return oneText(callText(slots.kind() == ArgMax ? "torch.argmax" : "torch.argmin",
        {slots.x(), std::to_string(a.integer("axis")),
            named("keepdim", pythonFlag(a.integer("keepdims", 1) != 0))}));
}

// --- losses

std::string ignored(const OperatorSlots &slots)
{
    return slots.attributes().has("ignore_index") ? std::to_string(slots.attributes().integer("ignore_index"))
                                                  : "None";
}

Result<TorchText> loss(const OperatorSlots &slots)
{
    TRY(const auto plan, planLoss(slots.call()));
    const std::string name = plan->logits ? "ops.cross_entropy" : "ops.nll";
    const std::string each = plan->isSum ? "" : "none";
    const std::size_t rank = slots.bufferX(0).shape.size();
    const std::string axis = std::to_string(classAxis(slots.attributes(), rank));
    std::vector<std::string> arguments{
        slots.x(0), slots.x(1), axis, named("weights", slots.x(2)), named("ignore", ignored(slots))};
    if (slots.isBackward()) {
        if (!plan->logits)
            arguments[0] = pythonTuple(plan->made->shape);
        arguments.insert(arguments.begin(), slots.dy());
    }
    std::erase_if(arguments, [](const std::string &argument) { return argument.ends_with("=None"); });
    if (!plan->isSum && !slots.isBackward())
        arguments.emplace_back("reduction=\"none\"");
    if (slots.isBackward()) {
        TorchText made;
        made.each.push_back(callText(name + "_backward", arguments));
        made.each.resize(slots.forwardInputs());
        return made;
    }
    return oneText(callText(name, arguments));
}

Result<TorchText> classStatistics(const OperatorSlots &slots)
{
    TRY(const auto plan, planClassStatistics(slots.call()));
    if (!plan)
        return noText(slots, "it makes nothing");
    const std::size_t rank = (plan->x != nullptr ? plan->x : plan->dx)->shape.size();
    const std::string axis = std::to_string(classAxis(slots.attributes(), rank));
    const std::string first = named("first", rankNumber("part", plan->first));
    TorchText made;
    if (!slots.isBackward()) {
        made.all = callText("ops.class_statistics", {slots.x(0), slots.x(1), axis, first});
        return made;
    }
    made.each.push_back(callText("ops.class_statistics_backward",
        {slots.dy(0), slots.dy(1), slots.x(0), slots.x(1), slots.y(0), axis, first}));
    made.each.resize(slots.forwardInputs());
    return made;
}

Result<TorchText> classLoss(const OperatorSlots &slots)
{
    const bool sum = slots.attributes().text("reduction", "sum") == "sum";
    std::vector<std::string> more{named("weights", slots.x(3)), named("ignore", ignored(slots))};
    std::erase_if(more, [](const std::string &argument) { return argument.ends_with("=None"); });
    TorchText made;
    if (slots.isBackward()) {
        std::vector<std::string> arguments{slots.dy(), slots.x(2)};
        arguments.insert(arguments.end(), more.begin(), more.end());
        made.each.push_back(slots.wants(0) ? callText("ops.class_loss_backward", arguments) : "");
        made.each.push_back(slots.wants(1) ? "-" + callText("ops.class_loss_backward", arguments) : "");
        made.each.resize(slots.forwardInputs());
        return made;
    }
    std::vector<std::string> arguments{slots.x(0), slots.x(1), slots.x(2)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (!sum)
        arguments.emplace_back("reduction=\"none\"");
    return oneText(callText("ops.class_loss", arguments));
}

Result<TorchText> countValid(const OperatorSlots &slots)
{
    std::vector<std::string> arguments{
        slots.x(0), named("weights", slots.x(1)), named("ignore", ignored(slots))};
    std::erase_if(arguments, [](const std::string &argument) { return argument.ends_with("=None"); });
    return oneText(callText("ops.count_valid", arguments));
}

// --- attention

/// What is not as usual, by name.
std::vector<std::string> attentionOptions(const OperatorSlots &slots, const AttentionPlan &plan)
{
    std::vector<std::string> options{named("scale", pythonNumber(plan.scale))};
    if (plan.reach.causal)
        options.emplace_back("causal=True");
    if (plan.reach.window != 0)
        options.push_back(named("window", std::to_string(plan.reach.window)));
    if (plan.reach.causal || plan.reach.window != 0) {
        options.push_back(named("first_query", rankNumber("part", plan.firstQuery + plan.reach.offset)));
        options.push_back(named("first_key", rankNumber("part", plan.firstKey)));
    }
    if (plan.softcap != 0)
        options.push_back(named("softcap", pythonNumber(plan.softcap)));
    if (slots.attributes().has("masked_score"))
        options.push_back(named("masked_score", pythonNumber(plan.maskedScore)));
    if (plan.dropped.ratio > 0) {
        std::vector<std::int64_t> strides(plan.dropped.heads.begin(), plan.dropped.heads.end());
        strides.push_back(plan.allKeys);
        strides.push_back(1);
        options.push_back("dropout=(" + pythonNumber(plan.dropped.ratio) + ", "
            + std::to_string(slots.attributes().integer("seed")) + ", m, "
            + rankNumber("part", plan.dropped.first + plan.firstQuery * plan.allKeys + plan.firstKey) + ", "
            + pythonTuple(strides) + ")");
    }
    return options;
}

Result<TorchText> attention(const OperatorSlots &slots)
{
    TRY(const auto plan, planAttention(slots.call()));
    if (!plan)
        return noText(slots, "it makes nothing");
    std::vector<std::string> masks;
    for (std::size_t i = 3; i < slots.forwardInputs(); ++i)
        if (slots.hasX(i))
            masks.push_back(slots.x(i));
    std::vector<std::string> options = attentionOptions(slots, *plan);
    if (!masks.empty())
        options.insert(options.begin(), "masks=(" + joinedBy(masks) + ",)");
    TorchText made;
    std::vector<std::string> arguments;
    if (!slots.isBackward()) {
        arguments = {slots.x(0), slots.x(1), slots.x(2)};
        if (slots.wants(2))
            options.emplace_back("keep_probabilities=True");
        arguments.insert(arguments.end(), options.begin(), options.end());
        made.all = callText("ops.attention", arguments);
        return made;
    }
    for (std::size_t i = 3; i < slots.forwardInputs(); ++i)
        if (slots.wants(i) && masks.size() + 3 != slots.forwardInputs())
            return noText(slots, "only some of its masks are there");
    arguments = {slots.dy(), slots.x(0), slots.x(1), slots.x(2), slots.y(0), slots.y(1)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back(named("mask", slots.mask()));
    made.all = callText("ops.attention_backward", arguments);
    return made;
}

Result<TorchText> rotary(const OperatorSlots &slots)
{
    const std::string more = slots.attributes().integer("interleaved") != 0 ? ", interleaved=True)" : ")";
    if (!slots.isBackward())
        return oneText("ops.rotary(" + slots.x(0) + ", " + slots.x(1) + ", " + slots.x(2) + more);
    TorchText made;
    made.each.resize(3);
    if (slots.wants(0) && !slots.wants(1) && !slots.wants(2)) {
        made.each[0] = "ops.rotary_backward(" + slots.dy() + ", " + slots.x(1) + ", " + slots.x(2) + more;
        return made;
    }
    return derivativeText(slots, "ops.rotary(a, b, c" + more, {0, 1, 2});
}

} // namespace row_texts

void addRowTexts(OperatorWriters &writers)
{
    using namespace row_texts;
    writers[LayerNorm] = layerNorm;
    writers[RmsNorm] = layerNorm;
    writers[InstanceNorm] = instanceNorm;
    writers[BatchMean] = statistic;
    writers[BatchVariance] = statistic;
    writers[BatchNormalize] = batchNormalize;
    writers[LocalResponseNorm] = responseNorm;
    writers[LpNormalize] = lpNormalize;
    writers[Softmax] = softmax;
    writers[LogSoftmax] = softmax;
    for (const OperatorKind kind : {ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1,
             ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare})
        writers[kind] = reduction;
    writers[ArgMax] = argument;
    writers[ArgMin] = argument;
    writers[CrossEntropy] = loss;
    writers[NegativeLogLikelihood] = loss;
    writers[ClassStatistics] = classStatistics;
    writers[ClassLoss] = classLoss;
    writers[CountValid] = countValid;
    writers[Attention] = attention;
    writers[Rotary] = rotary;
}

} // namespace planloom
