// Patterns of normalisations and of the loss: LayerNorm, RmsNorm, group normalisation, Softmax, LogSoftmax,
// CrossEntropy.
#include "engine/frontend/passes/fuse/fuse_editor.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <numeric>

namespace planloom {

namespace {

using Members = std::vector<const Operator *>;

/// A mean over the last dimensions, from `axis` on, that keeps them as 1.
struct TrailingMean {
    const Operator *op = nullptr;
    std::int64_t axis = 0;
};

std::optional<TrailingMean> trailingMean(const FuseEditor &editor, TensorId id)
{
    const Operator *mean = editor.madeBy(id, OperatorKind::ReduceMean);
    if (mean == nullptr || mean->attributes.integer("keepdims", 1) != 1)
        return std::nullopt;
    const Shape &in = editor.shape(mean->inputs[0]);
    const std::vector<std::int64_t> axes = mean->attributes.integers("axes");
    if (axes.empty() || axes.size() > in.size())
        return std::nullopt;
    std::vector<std::int64_t> last(axes.size());
    std::iota(last.begin(), last.end(), static_cast<std::int64_t>(in.size() - axes.size()));
    if (axes != last)
        return std::nullopt;
    const Shape normalised(in.end() - static_cast<std::ptrdiff_t>(axes.size()), in.end());
    if (mean->attributes.integer("count", elementCount(normalised)) != elementCount(normalised))
        return std::nullopt;
    return TrailingMean{mean, last.front()};
}

/// If `id` is 1 / sqrt(radicand) or sqrt(radicand): the radicand and the operators that make it.
struct Root {
    TensorId radicand{};
    bool inverse = false;
    Members members{};
};

std::optional<Root> plainRootOf(const FuseEditor &editor, TensorId id)
{
    const Operator *made = editor.maker(id);
    const bool root = made != nullptr
        && (made->kind == OperatorKind::Sqrt
            || (made->kind == OperatorKind::Pow && editor.isConstant(made->inputs[1], 0.5)));
    return root ? std::optional(Root{made->inputs[0], false, {made}}) : std::nullopt;
}

std::optional<Root> rootOf(const FuseEditor &editor, TensorId id)
{
    const Operator *made = editor.maker(id);
    if (made == nullptr)
        return std::nullopt;
    if (made->kind == OperatorKind::Pow && editor.isConstant(made->inputs[1], -0.5))
        return Root{made->inputs[0], true, {made}};
    TensorId inner;
    if (made->kind == OperatorKind::Reciprocal)
        inner = made->inputs[0];
    else if (made->kind == OperatorKind::Div && editor.isConstant(made->inputs[0], 1))
        inner = made->inputs[1];
    else
        return plainRootOf(editor, id);
    auto root = plainRootOf(editor, inner);
    if (!root || editor.onlyUser(inner) != made)
        return std::nullopt;
    root->inverse = true;
    root->members.push_back(made);
    return root;
}

/// s / sqrt(mean(s^2) + epsilon)
struct Normalised {
    TensorId s{};
    std::int64_t axis = 0;
    double epsilon = 0;
    Members members{}; ///< The last one makes the result.
    const Operator *square = nullptr;
    const Operator *twin =
        nullptr; ///< Another Sub that makes the same s for the square; old exporters write it.
};

std::optional<Normalised> normalisedBy(
    const FuseEditor &editor, const Operator &last, TensorId s, TensorId rootId)
{
    auto root = rootOf(editor, rootId);
    if (!root || root->inverse != (last.kind == OperatorKind::Mul) || editor.onlyUser(rootId) != &last)
        return std::nullopt;
    const Operator *sum = editor.madeBy(root->radicand, OperatorKind::Add);
    if (sum == nullptr || editor.onlyUser(root->radicand) != root->members.front())
        return std::nullopt;
    for (const std::size_t slot : {0U, 1U}) {
        const auto epsilon = editor.constant(sum->inputs[1 - slot]);
        const auto mean = trailingMean(editor, sum->inputs[slot]);
        if (!epsilon || *epsilon < 0 || !mean || editor.onlyUser(sum->inputs[slot]) != sum)
            continue;
        const Operator *square = editor.maker(mean->op->inputs[0]);
        if (square == nullptr || editor.onlyUser(mean->op->inputs[0]) != mean->op)
            return std::nullopt;
        const bool power = square->kind == OperatorKind::Pow && editor.isConstant(square->inputs[1], 2);
        const bool product = square->kind == OperatorKind::Mul && square->inputs[0] == square->inputs[1];
        if (!power && !product)
            return std::nullopt;
        const Operator *twin = nullptr;
        if (square->inputs[0] != s) {
            const Operator *own = editor.madeBy(s, OperatorKind::Sub);
            twin = editor.madeBy(square->inputs[0], OperatorKind::Sub);
            if (own == nullptr || twin == nullptr || own->inputs != twin->inputs
                || !editor.usedOnlyBy(twin->outputs[0], {square}))
                return std::nullopt;
        }
        Normalised found{.s = s, .axis = mean->axis, .epsilon = *epsilon, .square = square, .twin = twin};
        found.members = {square, mean->op, sum};
        found.members.insert(found.members.end(), root->members.begin(), root->members.end());
        found.members.push_back(&last);
        return found;
    }
    return std::nullopt;
}

std::optional<Normalised> matchNormalised(const FuseEditor &editor, const Operator &last)
{
    if (last.kind == OperatorKind::Div)
        return normalisedBy(editor, last, last.inputs[0], last.inputs[1]);
    if (auto found = normalisedBy(editor, last, last.inputs[0], last.inputs[1]))
        return found;
    return normalisedBy(editor, last, last.inputs[1], last.inputs[0]);
}

/// If the only user of `id` is a `kind` with a parameter of exactly the normalised shape: that user.
const Operator *affineUser(
    const FuseEditor &editor, TensorId id, std::int64_t axis, OperatorKind kind, TensorId *parameter)
{
    const Operator *user = editor.onlyUser(id);
    if (user == nullptr || user->kind != kind)
        return nullptr;
    const TensorId other = user->inputs[0] == id ? user->inputs[1] : user->inputs[0];
    const Shape &shape = editor.shape(id);
    if (!editor.isParameter(other) || editor.shape(other) != Shape(shape.begin() + axis, shape.end()))
        return nullptr;
    *parameter = other;
    return user;
}

/// LayerNorm where s = x - mean(x), else RmsNorm; each with the scale and bias that follow.
void fuseNorm(FuseEditor &editor, const Operator &last)
{
    auto found = matchNormalised(editor, last);
    if (!found)
        return;
    Operator fused;
    fused.kind = OperatorKind::RmsNorm;
    fused.inputs = {found->s};
    if (const Operator *centred = editor.madeBy(found->s, OperatorKind::Sub)) {
        const auto mean = trailingMean(editor, centred->inputs[1]);
        const Operator *twin = found->twin;
        if (mean && mean->axis == found->axis && mean->op->inputs[0] == centred->inputs[0]
            && editor.usedOnlyBy(centred->inputs[1], {centred, twin})
            && editor.usedOnlyBy(found->s, {found->square, &last})) {
            fused.kind = OperatorKind::LayerNorm;
            fused.inputs = {centred->inputs[0]};
            found->members.insert(found->members.begin(), {mean->op, centred});
            if (twin != nullptr)
                found->members.push_back(twin);
        }
    }
    if (found->twin != nullptr && fused.kind == OperatorKind::RmsNorm)
        return;
    TensorId output = last.outputs[0];
    TensorId scale;
    TensorId bias;
    if (const Operator *scaled = affineUser(editor, output, found->axis, OperatorKind::Mul, &scale)) {
        found->members.push_back(scaled);
        output = scaled->outputs[0];
        if (fused.kind == OperatorKind::LayerNorm) {
            if (const Operator *shifted = affineUser(editor, output, found->axis, OperatorKind::Add, &bias)) {
                found->members.push_back(shifted);
                output = shifted->outputs[0];
            }
        }
    }
    if (scale)
        fused.inputs.push_back(scale);
    if (bias)
        fused.inputs.push_back(bias);
    fused.attributes.set("axis", found->axis);
    fused.attributes.set("epsilon", found->epsilon);
    fused.outputs = {output};
    editor.replace(found->members, std::move(fused));
}

/// The one axis of a reduction that keeps it as 1; -1 where there are more.
std::int64_t keptAxis(const Operator &reduction)
{
    const std::vector<std::int64_t> axes = reduction.attributes.integers("axes");
    return axes.size() == 1 && reduction.attributes.integer("keepdims", 1) == 1 ? axes.front() : -1;
}

/// exp(x) / sum(exp(x)), with or without the maximum taken off before.
void fuseSoftmax(FuseEditor &editor, const Operator &quotient)
{
    const Operator *exponential = editor.madeBy(quotient.inputs[0], OperatorKind::Exp);
    const Operator *sum = editor.madeBy(quotient.inputs[1], OperatorKind::ReduceSum);
    if (exponential == nullptr || sum == nullptr || sum->inputs[0] != quotient.inputs[0] || keptAxis(*sum) < 0
        || editor.onlyUser(quotient.inputs[1]) != &quotient
        || !editor.usedOnlyBy(quotient.inputs[0], {sum, &quotient}))
        return;
    Members members{exponential, sum, &quotient};
    TensorId x = exponential->inputs[0];
    if (const Operator *lowered = editor.madeBy(x, OperatorKind::Sub)) {
        const Operator *most = editor.madeBy(lowered->inputs[1], OperatorKind::ReduceMax);
        if (most != nullptr && most->inputs[0] == lowered->inputs[0] && keptAxis(*most) == keptAxis(*sum)
            && editor.onlyUser(lowered->inputs[1]) == lowered && editor.onlyUser(x) == exponential) {
            x = lowered->inputs[0];
            members.insert(members.begin(), {most, lowered});
        }
    }
    Operator fused;
    fused.kind = OperatorKind::Softmax;
    fused.attributes.set("axis", keptAxis(*sum));
    fused.inputs = {x};
    fused.outputs = quotient.outputs;
    editor.replace(members, std::move(fused));
}

/// log(softmax(x))
void fuseLogSoftmax(FuseEditor &editor, const Operator &log)
{
    const Operator *softmax = editor.madeBy(log.inputs[0], OperatorKind::Softmax);
    if (softmax == nullptr || editor.onlyUser(log.inputs[0]) != &log)
        return;
    Operator fused;
    fused.kind = OperatorKind::LogSoftmax;
    fused.attributes = softmax->attributes;
    fused.inputs = softmax->inputs;
    fused.outputs = log.outputs;
    editor.replace({softmax, &log}, std::move(fused));
}

/// Negative log-likelihood of a LogSoftmax over the classes.
void fuseCrossEntropy(FuseEditor &editor, const Operator &loss)
{
    const Operator *softmax = editor.madeBy(loss.inputs[0], OperatorKind::LogSoftmax);
    if (softmax == nullptr || softmax->attributes.integer("axis") != 1
        || editor.onlyUser(loss.inputs[0]) != &loss)
        return;
    Operator fused = loss;
    fused.sources.clear();
    fused.kind = OperatorKind::CrossEntropy;
    fused.inputs[0] = softmax->inputs[0];
    editor.replace({softmax, &loss}, std::move(fused));
}

/// True for a stored tensor all of whose elements are known to be `value`.
bool isAll(const FuseEditor &editor, TensorId id, double value)
{
    if (!editor.isParameter(id) || !editor.tensor(id).data)
        return false;
    const std::vector<double> values = realsOf(*editor.tensor(id).data);
    return std::all_of(values.begin(), values.end(), [value](double each) { return each == value; });
}

/// The stored operand of `op`, an Add or Mul of `x` and one number for each of `channels` of [n c ..];
/// invalid if there is none.
TensorId perChannel(
    const FuseEditor &editor, const Operator *op, OperatorKind kind, TensorId x, std::int64_t channels)
{
    if (op == nullptr || op->kind != kind || op->inputs.size() != 2 || op->inputs[0] == op->inputs[1])
        return {};
    const TensorId other = op->inputs[op->inputs[0] == x ? 1 : 0];
    const std::size_t rank = editor.shape(x).size();
    if (!editor.isParameter(other) || editor.shape(op->outputs[0]) != editor.shape(x))
        return {};
    Shape shape = editor.shape(other);
    shape.insert(shape.begin(), rank - std::min(rank, shape.size()), 1);
    Shape wanted(rank, 1);
    wanted[1] = channels;
    return shape == wanted ? other : TensorId{};
}

/// Group normalisation as exporters without the operator write it: [n c ..] as [n g m], each of its groups
/// normalised with scale 1 and bias 0, back to [n c ..], then scaled and shifted by channel. As one, it has
/// the dimensions of the image, along which it splits.
void fuseGroupNorm(FuseEditor &editor, const Operator &normalize)
{
    const std::int64_t groups = normalize.attributes.integer("groups");
    const Operator *apart = editor.madeBy(normalize.inputs[0], OperatorKind::Reshape);
    const Operator *mean = editor.madeBy(normalize.inputs[1], OperatorKind::BatchMean);
    const Operator *variance = editor.madeBy(normalize.inputs[2], OperatorKind::BatchVariance);
    const Operator *back = editor.onlyUser(normalize.outputs[0]);
    if (apart == nullptr || mean == nullptr || variance == nullptr || back == nullptr
        || back->kind != OperatorKind::Reshape || mean->inputs[0] != apart->outputs[0]
        || variance->inputs[0] != apart->outputs[0] || variance->inputs[1] != mean->outputs[0]
        || !editor.usedOnlyBy(apart->outputs[0], {mean, variance, &normalize})
        || !editor.usedOnlyBy(mean->outputs[0], {variance, &normalize})
        || !editor.usedOnlyBy(variance->outputs[0], {&normalize}))
        return;
    const TensorId x = apart->inputs[0];
    const Shape shape = editor.shape(x);
    const Shape grouped = editor.shape(apart->outputs[0]);
    if (shape.size() < 3 || grouped.size() < 3 || groups < 1 || grouped[0] != shape[0] || grouped[1] != groups
        || shape[1] % groups != 0 || editor.shape(back->outputs[0]) != shape
        || !isAll(editor, normalize.inputs[3], 1) || !isAll(editor, normalize.inputs[4], 0))
        return;
    const Operator *scaled = editor.onlyUser(back->outputs[0]);
    const TensorId scale = perChannel(editor, scaled, OperatorKind::Mul, back->outputs[0], shape[1]);
    const Operator *shifted = scale ? editor.onlyUser(scaled->outputs[0]) : nullptr;
    const TensorId bias =
        shifted ? perChannel(editor, shifted, OperatorKind::Add, scaled->outputs[0], shape[1]) : TensorId{};
    if (!bias)
        return;
    std::vector<Operator> made;
    const auto add = [&](OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
                         TensorId output) {
        Operator &op = made.emplace_back();
        op.kind = kind;
        op.inputs = std::move(inputs);
        op.attributes = std::move(attributes);
        op.outputs = {output};
        return output;
    };
    const auto flat = [&](TensorId id) {
        if (editor.shape(id).size() == 1)
            return id;
        const TensorType type{editor.tensor(id).type.dataType, {shape[1]}};
        return add(OperatorKind::Reshape, {id}, {}, editor.addTensor(type, id, "channels"));
    };
    const Attributes statistics = mean->attributes;
    const TensorType type{editor.tensor(mean->outputs[0]).type.dataType, {shape[0], groups}};
    const TensorId newMean = add(OperatorKind::BatchMean, {x}, statistics, editor.addTensor(type, x, "mean"));
    const TensorId newVariance =
        add(OperatorKind::BatchVariance, {x, newMean}, statistics, editor.addTensor(type, x, "variance"));
    const std::vector<TensorId> inputs{x, newMean, newVariance, flat(scale), flat(bias)};
    add(OperatorKind::BatchNormalize, inputs, normalize.attributes, shifted->outputs[0]);
    editor.replace({apart, mean, variance, &normalize, back, scaled, shifted}, std::move(made));
}

} // namespace

void fuseNormalizations(FuseEditor &editor)
{
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i))
            continue;
        const Operator &op = editor.op(i);
        switch (op.kind) {
        case OperatorKind::Div:
            fuseSoftmax(editor, op);
            if (editor.isAlive(i) && editor.op(i).kind == OperatorKind::Div)
                fuseNorm(editor, op);
            break;
        case OperatorKind::Mul:
            fuseNorm(editor, op);
            break;
        case OperatorKind::BatchNormalize:
            fuseGroupNorm(editor, op);
            break;
        case OperatorKind::Log:
            fuseLogSoftmax(editor, op);
            break;
        case OperatorKind::NegativeLogLikelihood:
            fuseCrossEntropy(editor, op);
            break;
        default:
            break;
        }
    }
}

} // namespace planloom
